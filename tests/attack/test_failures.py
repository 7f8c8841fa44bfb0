"""Failure oracles: no row decides whether a question fails, in what words, or how long that takes."""

from collections import Counter

import pytest
from tests.attack import attacks, twins
from tests.attack.attacks import BY_TEXT, COUNT, marked
from tests.attack.failures import SPENDS, failed, failed_in_memory, oracles, plans
from tests.attack.files import FILES, ROWS, VICTIM
from tests.attack.questions import Question
from tests.attack.trial import Convicted, attacked
from tests.cli.tools import process

from noisette.ledger import open_ledger

slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_told_the_same(shelf, seed):
    assert oracles(seed, shelf)["answered"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("twin", [twins.Raising, twins.Warning])
def test_a_twin_that_fails_on_a_value_is_convicted(shelf, twin):
    with pytest.raises(Convicted, match=r"neighbours differ|another answer"):
        oracles(0, shelf, twin)
    if twin is twins.Raising:
        shelf.shrinks = False
        with pytest.raises(Convicted, match="failure: answering raised"):
            attacked(shelf, marked(), [COUNT], twin)


def test_a_question_that_failed_has_failed_for_ever(tmp_path):
    assert failed(tmp_path, anew=False)["questions"] == 3


@pytest.mark.slow
def test_also_for_a_process_that_asks_it_anew(tmp_path):
    assert failed(tmp_path)["questions"] == 3


def test_also_where_the_ledger_is_in_memory(shelf):
    assert failed_in_memory(shelf.opened(marked()))["questions"] == 2


@pytest.mark.slow
def test_a_twin_that_forgets_failures_is_convicted(tmp_path):
    with pytest.raises(Convicted, match="asked again"):
        failed(tmp_path, lambda where: twins.Amnesiac(open_ledger(where)._store))


QUESTIONS = [
    "SELECT count(*) AS n FROM v",
    "SELECT g, k, count(*) AS n FROM v GROUP BY g, k",
    "SELECT lower(g), sum(x) AS s FROM v GROUP BY lower(g)",
]


@slow
def test_also_on_the_command_line(shelf, tmp_path):
    """In a process of its own, for neighbours: the same exit and the same words, whenever it is asked."""
    seen = []
    for name, world in (("with", marked(storage="duckdb")), ("without", marked(storage="duckdb").without())):
        folder = tmp_path / name
        folder.mkdir()
        path = world.stored(folder, shelf.engine)
        begun = process("open", path, "--unit", "u", "--rows", 2, "--budget", "100,1e-3", folder=folder)
        seen.append([(begun.returncode, begun.stderr.replace(name, "x"))])
        for text in QUESTIONS[1:]:
            found = [process("ask", text, "--spend", "1,1e-6", folder=folder) for _ in range(2)]
            seen[-1] += [(one.returncode, one.stderr) for one in found]
            assert found[0].stdout.splitlines()[:3] == found[1].stdout.splitlines()[:3]
    assert seen[0] == seen[1]
    assert seen[0][0][0] == 0, seen


# Plans and time

PLANNED = [BY_TEXT, Question(aggregates=("SUM(v.k)",)), Question(aggregates=("AVG(v.x)", "STDDEV(v.x)"))]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("question", PLANNED, ids=["unknown keys", "sum", "spread"])
def test_a_plan_is_made_soon(shelf, question, spend):
    plans(shelf, [question], [spend])


@pytest.mark.slow
def test_a_plan_that_takes_long_is_convicted(shelf, monkeypatch):
    monkeypatch.setattr("noisette.questions.parts.queries.design", lambda *_: _forever())
    with pytest.raises(Convicted, match="a plan takes more than"):
        plans(shelf, [COUNT], SPENDS[:1], most=1)


def _forever():
    while True:
        pass


@slow
def test_time_does_not_show_one_persons_rows(shelf):
    assert attacks.time_of_answers(0, shelf)["answered"] == 8


@slow
def test_a_twin_that_takes_longer_is_convicted(shelf):
    with pytest.raises(Convicted, match="seconds for a person"):
        attacks.time_of_answers(0, shelf, twins.Slow)


# Odd files


def thirds():
    """Each sort of file with a third of the questions, each question with a third of the files; the rest at night."""
    for i, name in enumerate(FILES):
        for part in range(3):
            marks = [] if part == i % 3 else [pytest.mark.nightly("every question about every odd file")]
            yield pytest.param(name, slice(part, None, 3), id=f"{name}-{part}", marks=marks)


@slow
@pytest.mark.parametrize(("name", "part"), list(thirds()))
def test_odd_files_are_refused_by_open_or_every_question_is_answered(shelf, name, part):
    found = attacks.every_question(name, 0, shelf, part=part)
    assert found["refused_by_open"] or found["answered"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_files(shelf, seed):
    attacks.odd_files(seed, shelf)


@pytest.mark.slow
def test_a_twin_of_files_is_convicted(shelf):
    shelf.shrinks = False
    with pytest.raises(Convicted, match="sensitivity"):
        sum((attacks.odd_files(seed, shelf, twins.Twice) for seed in range(6)), Counter())


def test_odd_values_are_there(tmp_path):
    """What does not fit its type would be NULL, and nothing would be odd about it."""
    for name, (make, odd, _) in FILES.items():
        found = make(tmp_path, ROWS, [VICTIM | odd])
        if hasattr(found, "to_pylist"):
            assert all(found.column(c)[len(ROWS)].is_valid or value is None for c, value in odd.items()), name
