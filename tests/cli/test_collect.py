"""`noisette collect`: a round, its reports, and partial aggregates."""

import json

import numpy as np
import pytest
from tests.cli.tools import CANARY, refused, run, well

from noisette.local.wire import Round, as_lines


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def survey(here):
    """A round with three names, and three files of reports."""
    (here / "names.txt").write_text("cat\ndog\nnone\n")
    well("collect", "new", "round.json", "--names", "names.txt", "--epsilon", "2", "--round", "4")
    made = Round.from_json((here / "round.json").read_text())
    for name, start in (("a", 0), ("b", 300)):
        (here / f"{name}.reports").write_bytes(made.encode(made.protocol.clients(np.arange(start, start + 300) % 3)))
    (here / "c.txt").write_text(as_lines(made.encode([0, 1]), made.record_bytes))
    return made


def test_estimates_error_bars_rejections_and_epsilon(survey, here):
    (here / "junk").write_bytes(b"\xd1junk" + Round(survey.protocol, number=9).encode([1]))
    shown = well("collect", "round.json", "a.reports", "b.reports", "c.txt", "a.reports", "junk")
    assert "602 reports count" in shown
    for part in ("cat", "dog", "none", "95% error bar", "came again: 300", "1 malformed", "ε = 2"):
        assert part in shown, part


def test_partial_aggregates_merge_in_any_order(survey, here):
    well("collect", "round.json", "a.reports", "c.txt", "-o", "north.partial")
    well("collect", "round.json", "b.reports", "-o", "south.partial")
    one = well("collect", "--merge", "north.partial", "south.partial", "-o", "one.partial", "--json")
    other = well("collect", "--merge", "south.partial", "north.partial", "-o", "other.partial", "--json")
    all_at_once = well("collect", "round.json", "c.txt", "b.reports", "a.reports", "--json", "-o", "all.partial")
    assert one == other == all_at_once
    files = [(here / f"{name}.partial").read_bytes() for name in ("one", "other", "all")]
    assert files[0] == files[1] == files[2]
    found = json.loads(one)
    assert (found["people"], found["round"], found["epsilon"]) == (602, 4, "2")
    assert [row["value"] for row in found["estimates"]] == ["cat", "dog", "none"]
    assert all(row["low"] <= max(0, row["share"]) <= row["high"] for row in found["estimates"])


def test_one_bad_file_does_not_spoil_a_merge(survey, here):
    """Whichever it is: it is named, the others count, and what is written is what they have."""
    for name in "ab":
        well("collect", "round.json", f"{name}.reports", "-o", f"{name}.partial")
    both = well("collect", "--merge", "a.partial", "b.partial", "-o", "both.partial", "--json")
    (here / "bad.partial").write_bytes((here / "a.partial").read_bytes()[:-1])
    for files in (["bad", "a", "b"], ["a", "bad", "b"]):
        found = run("collect", "--merge", *(f"{name}.partial" for name in files), "-o", "one.partial", "--json")
        assert found.exit_code == 1
        assert found.stdout == both
        said = "The file bad.partial is refused and does not count: This partial aggregate is damaged: write it again"
        assert found.stderr.startswith(said)
        assert found.stderr.count("\n") == 1
        assert (here / "one.partial").read_bytes() == (here / "both.partial").read_bytes()
    mixed = run("collect", "round.json", "a.reports", "bad.partial", "b.reports", "--json")
    assert (mixed.exit_code, mixed.stdout) == (1, both)


@pytest.mark.parametrize("files", [["--merge", "bad", "bad"], ["round.json", "bad"], ["--merge", "bad"]])
def test_files_that_are_all_bad_write_nothing(survey, here, files):
    well("collect", "round.json", "a.reports", "-o", "bad")
    (here / "bad").write_bytes((here / "bad").read_bytes()[:-1])
    found = run("collect", *files, "-o", "none.partial")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "is refused" in found.stderr
    assert not (here / "none.partial").exists()


def test_a_stream(survey, here):
    found = run("collect", "round.json", "-", "--json", input=(here / "a.reports").read_bytes())
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["people"] == 300


def test_no_reports_yet(survey):
    assert "0 reports count" in well("collect", "round.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("collect", "nowhere.json"),
        ("collect", "names.txt"),
        ("collect", "a.reports"),
        ("collect", "round.json", "nowhere"),
        ("collect", "--merge", "round.json"),
        ("collect", "round.json", "a.reports", "-o", "no/where"),
        ("collect", "round.json", "a.reports", "--level", "2"),
        ("collect", "new", "round.json", "--values", "3", "--epsilon", "1"),
        ("collect", "new", "x.json", "--epsilon", "1"),
        ("collect", "new", "x.json", "--values", "1", "--epsilon", "1"),
        ("collect", "new", "x.json", "--values", "3", "--epsilon", "0"),
        ("collect", "new", "x.json", "--values", "3", "--epsilon", "1", "--protocol", CANARY),
        ("collect", "new", "x.json", "--values", "1000", "--epsilon", "1", "--bits", "1"),
        ("collect", "new", "x.json", "--values", "3", "--names", "names.txt", "--epsilon", "1"),
        ("collect", "new", "x.json", "--values", "3"),
        ("collect", "new", "x.json", "--values", "3", "--epsilon", "1", "--with", "low=0"),
        ("collect", "new", "x.json", "--epsilon", "1", "--protocol", CANARY),
        ("collect", "new", "x.json", "--epsilon", "1", "--protocol", "PrivUnitG"),
        ("collect", "new", "x.json", "--epsilon", "1", "--protocol", "Duchi", "--with", f"{CANARY}=3"),
        ("collect", "new", "x.json", "--epsilon", "1", "--protocol", "Duchi", "--with", f"low={CANARY}"),
        ("collect", "new", "x.json", "--epsilon", "1", "--protocol", "Duchi", "--with", "low=3", "--with", "high=2"),
        ("collect", "new", "x.json", "--epsilon", "1", "--protocol", "Piecewise", "--with", "steps=half"),
    ],
)
def test_bad_input_gets_one_sentence(survey, arguments):
    assert CANARY not in refused(2, *arguments)


def test_choose_says_why(here):
    assert "least variance" in well(
        "collect", "new", "round.json", "--values", "1000", "--epsilon", "1", "--bits", "32"
    )
    assert "OLH" in well("collect", "new", "olh.json", "--values", "1000", "--epsilon", "1", "--protocol", "OLH")
    assert json.loads((here / "olh.json").read_text())["protocol"] == "OLH"


NUMBERS = {
    "Hybrid": (["low=0", "high=100"], 50, "mean"),
    "SquareWave": (["low=0", "high=100", "buckets=32"], 50, "quantile"),
    "PrivUnitG": (["dimension=3", "candidates=16"], (0.5, 0, 0), "mean"),
    "PlanarLaplace": (["step=10", "reach=5000"], (100, 200), "mean"),
    "SplitQueries": (["queries=3"], (0, 1, 1), "share"),
}


@pytest.mark.parametrize("protocol", NUMBERS)
def test_means_vectors_distributions_places_and_queries(protocol, here):
    given, value, what = NUMBERS[protocol]
    options = [part for one in given for part in ("--with", one)]
    epsilon = "0.01" if protocol == "PlanarLaplace" else "2"
    said = well("collect", "new", "round.json", "--protocol", protocol, "--epsilon", epsilon, *options)
    assert ("for each metre" in said) == (protocol == "PlanarLaplace")
    made = Round.from_json((here / "round.json").read_text())
    (here / "a").write_bytes(made.encode(made.protocol.clients([value] * 300)))
    found = json.loads(well("collect", "round.json", "a", "a", "--json"))
    assert (found["people"], found["repeated"]) == (300, 300)
    assert all({what, "low", "high"} <= set(row) for row in found["estimates"])
    shown = well("collect", "round.json", "a", "--top", "2")
    assert "95% error bar" in shown
    assert ("1 more rows" in shown) == (len(found["estimates"]) == 3)
    assert ("for each metre" in shown) == (protocol == "PlanarLaplace")


def test_rappor_has_an_epsilon_of_its_own(here):
    parameters = ("f=1/2", "p=1/2", "q=3/4", "domain=8", "length=32", "hashes=2")
    options = [part for one in parameters for part in ("--with", one)]
    assert "ε = 1.07" in well("collect", "new", "round.json", "--protocol", "Rappor", *options)
    refused(2, "collect", "new", "other.json", "--protocol", "Rappor", "--epsilon", "1", *options)
