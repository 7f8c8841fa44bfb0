"""The tour runs from end to end; what it claims is asserted from its values, not from its words."""

import re
import tempfile
from html import escape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from noisette.answers import check
from noisette.cli import app
from noisette.cli.demo.questions import QUESTIONS
from noisette.cli.demo.report import report
from noisette.cli.demo.tour import SMALL, Counts, held, toured
from noisette.curator.demo import OLDEST, RARE, tables
from noisette.privacy import Approx

VOID = {"meta", "line", "circle", "rect", "polyline", "br"}


class Reader(HTMLParser):
    """Reads a page, counts its elements and insists that each one is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.attributes = [], {}, []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def tour():
    return toured(SMALL)


@pytest.fixture(scope="module")
def page(tour):
    return report(tour)


# The data


def test_the_data_is_the_same_every_time():
    assert tables(1_000)["visits"].equals(tables(1_000)["visits"])


def test_the_data_is_skewed_with_rare_diagnoses_and_one_oldest_patient():
    visits = tables(SMALL)["visits"].to_pandas()
    times = visits.groupby("patient_id").size()
    assert times.median() < times.mean() < times.max() / 3
    assert visits[visits.age == OLDEST].patient_id.nunique() == 1
    assert visits.groupby("diagnosis").patient_id.nunique()[list(RARE)].to_dict() == RARE


# The tour


@pytest.mark.slow
def test_the_attack_succeeds_on_exact_answers_and_fails_through_noisette(tour):
    attack = tour.attack
    assert attack.exact.difference == attack.secret > 0
    assert attack.exact.reveals(attack.most)
    assert attack.private.doubt > attack.most
    assert not attack.private.reveals(attack.most)
    assert attack.repeated == {attack.private.everyone}
    assert 0.5 < attack.ceiling < 0.6


def test_too_little_noise_would_be_called_an_attack_that_succeeds():
    assert Counts(130, 125, error=1).reveals(16)
    assert not Counts(130, 125, error=16).reveals(16)


def test_every_kind_is_asked_and_checked(tour):
    asked = {answer.question.title for answer in tour.answers}
    assert {question.title for question in QUESTIONS} < asked
    for answer in tour.answers:
        assert check(answer.release.to_json()) <= Approx(tour.budget.epsilon, tour.budget.delta)
        assert len(answer.release) > 0
        for name, truth in answer.truth.items():
            assert len(truth) == len(answer.release[name].values)


def test_error_bars_hold_most_truths(tour):
    """Each misses with 5 %: that 4 in 10 do has a probability below 1e-9."""
    right, bars = tour.bars
    assert bars > 40
    assert right > 0.6 * bars
    column = tour.answers[0].release["visits"]
    assert held(column, np.full(len(column.values), 1e9)) == 0


def test_rare_diagnoses_are_not_released(tour):
    """Each of 18 patients is released with a probability of at most 1e-12."""
    assert RARE.items() <= tour.hidden.items()


def test_the_budget_shrinks_to_nothing_and_never_below(tour):
    left = [eps for _, eps in tour.left]
    assert left[0] == tour.budget.epsilon
    assert all(after < before for before, after in pairwise(left))
    assert left[-1] == 0
    assert len(tour.entries) == len(left) - 1 == tour.checked
    assert tour.budget.epsilon <= sum(entry.guarantee.epsilon for entry in tour.entries) < 1.01 * tour.budget.epsilon


def test_both_refusals_are_shown(tour):
    assert len(tour.refusals) == 2
    assert re.search(r"The budget has ε = 0\.2\d* left", tour.refusals[0])
    assert all("this question costs" in refusal for refusal in tour.refusals)


def test_the_error_falls_with_epsilon_and_was_known_before(tour):
    for points in tour.curves.values():
        errors = [error for _, error in points]
        assert errors == sorted(errors, reverse=True)
    assert tour.explained.startswith("ε = 0.3186 ")


def test_the_map_counts_everybody(tour):
    """A bar of 95 % that is missed by ten times its width has a probability below 1e-9."""
    total = tour.maps.release.value.total
    assert tour.maps.truth.sum() == tour.maps.people == SMALL
    assert abs(total.value - SMALL) < 10 * (total.high - total.low)
    assert tour.maps.release.value.x.shape == tour.maps.truth.shape


# The report


@pytest.mark.slow
def test_the_report_is_whole_and_needs_nothing_from_outside(tour, page):
    read = Reader(page)
    assert not {"script", "link", "img", "iframe", "object", "image", "use"} & read.seen.keys()
    assert not {"src", "href", "xlink:href", "srcset", "action", "onload"} & {name for name, _ in read.attributes}
    assert not any(word in page for word in ("http:", "https:", "//", "@import", "url("))
    assert not re.search(r"\b(nan|inf)\b", page)


def test_the_report_shows_everything(tour, page):
    read = Reader(page)
    assert read.seen["table"] == len(tour.answers) + 3  # the attack, the budget, the ledger
    assert read.seen["svg"] >= len(tour.answers) + 2
    titles = {answer.question.title for answer in tour.answers} | {"An attack", "The budget", "The ledger"}
    assert all(title in page for title in titles)
    assert all(escape(refusal) in page for refusal in tour.refusals)
    assert all(escape(answer.release.statement) in page for answer in tour.answers[:8])
    assert "invented" in page
    assert "±" in page
    assert tour.head in page
    assert "Where people live" in page
    assert escape(tour.maps.release.statement) in page


# The command


@pytest.mark.slow
def test_the_command_writes_one_file_and_leaves_nothing_else(tmp_path, monkeypatch):
    here, spare = tmp_path / "here", tmp_path / "spare"
    here.mkdir()
    spare.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    result = CliRunner().invoke(app, ["demo", "--quick"])
    assert result.exit_code == 0, result.output
    assert [path.name for path in here.iterdir()] == ["noisette-demo.html"]
    assert list(spare.iterdir()) == []
    for part in ("revealed", "truth", "refused", "noisette-demo.html", "invented"):
        assert part in result.output
    assert len(result.output.splitlines()) < 120


@pytest.mark.parametrize("name", ["none/x.html", "."])
def test_a_folder_is_refused_at_once(tmp_path, name):
    result = CliRunner().invoke(app, ["demo", "--html", str(tmp_path / name)])
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []
