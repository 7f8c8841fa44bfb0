"""After the charge a question is answered, failed or unfinished: the first two are final, the third is drawn anew.

Whatever the engine or the draw raises, there is one sentence; it is kept like an answer, and no later question, in
whichever process, computes anything again. What was interrupted has no end yet, and is finished under its charge.
"""

import json
import pickle
import signal
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from tests.curator.clinic import opened, watch
from tests.curator.hostile import CANARY
from tests.curator.test_hostile import sentence, tells

import noisette as nz
from noisette.curator.project import Project
from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError
from noisette.ledger import Book, Memory, open_ledger
from noisette.mechanisms import SparseVector
from noisette.questions import Above, Best, Mode
from noisette.questions.contract import Offer

ROOT = Path(__file__).resolve().parents[2]
COUNT = "SELECT COUNT(*) AS n FROM visits"
PEOPLE = "SELECT COUNT(DISTINCT patient_id) FROM visits"
QUESTIONS = {
    "sql": COUNT,
    "several": [COUNT, "SELECT SUM(cost) AS s FROM visits"],
    "mode": Mode("ward"),
    "best": Best([COUNT, "SELECT COUNT(*) AS n FROM visits WHERE age > 9"], by="n", runs=2),
}
FAULTS = [
    NoisetteError(f"The engine could not compute {CANARY}."),
    InputError(CANARY),
    PrivacyError(CANARY),
    FailedError(CANARY),
    ValueError(CANARY),
    MemoryError(),
    RecursionError(CANARY),
    AssertionError(CANARY),
    pyarrow.ArrowIndexError(CANARY),
    RuntimeError(CANARY),
]
INTERRUPTS = [KeyboardInterrupt(), SystemExit(3), GeneratorExit()]


@pytest.fixture(params=["memory", "book"])
def clinic(request, tmp_path):
    """A curator with a ledger of either sort, and its source."""
    ledger = {} if request.param == "memory" else {"ledger": tmp_path / "clinic.ledger"}
    curator = opened(nz.Approx(1000, "1e-3"), **ledger)
    yield curator, watch(curator)
    if isinstance(curator.ledger, Book):
        curator.ledger.verify()
        curator.ledger.close()


def raising(fault):
    def raises(*_, **__):
        raise fault

    return raises


def failed(ask):
    """The sentence of a question that failed."""
    with pytest.raises(FailedError) as caught:
        ask()
    assert not tells("".join(traceback.format_exception(caught.value)))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert sentence(str(caught.value))
    return type(caught.value), str(caught.value)


# Failed


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_that_failed_fails_for_ever_and_is_charged_once(clinic, name):
    curator, source = clinic
    source.fails = True
    first = failed(lambda: curator.ask(QUESTIONS[name], spend=2))
    spent, computed = curator.budget.spent, source.computed
    source.fails = False
    for level in (0.95, 0.95, *([0.9] if name != "best" else [])):  # error bars of the best are drawn, for their level
        assert failed(lambda level=level: curator.ask(QUESTIONS[name], spend=2, level=level)) == first
    assert (curator.budget.spent, source.computed, len(curator.ledger.entries)) == (spent, computed, 1)
    curator.ask(QUESTIONS[name], spend=3)  # another spend is another question, which is paid for
    assert len(curator.ledger.entries) == 2


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_one_sentence_for_all_reasons(clinic, fault):
    curator, source = clinic
    source.source.aggregate = raising(fault)
    found = failed(lambda: curator.sql(COUNT, spend=1))
    del source.source.aggregate
    assert found == failed(lambda: curator.sql(COUNT, spend=1)) == (FailedError, str(FailedError()))
    assert curator.budget.spent.epsilon == 1


@pytest.mark.parametrize("step", ["draw", "pack"])
def test_so_it_is_wherever_it_fails(clinic, monkeypatch, step):
    curator, _ = clinic
    with monkeypatch.context() as broken:
        broken.setattr(Offer, step, raising(ValueError(CANARY)))
        failed(lambda: curator.sql(COUNT, spend=1))
    failed(lambda: curator.sql(COUNT, spend=1))
    assert curator.budget.spent.epsilon == 1


def test_a_failure_is_an_entry_of_the_chain_and_the_next_curator_knows_it(tmp_path):
    project = clinic_project(tmp_path)
    first = project.curator()
    watch(first, fails=True)
    failed(lambda: first.sql(COUNT, spend=1))
    assert [body["kind"] for body in first.ledger.history][-2:] == ["charge", "answer"]
    first.ledger.close()
    second = project.curator()
    source = watch(second)
    failed(lambda: second.sql(COUNT, spend=1))
    assert (source.computed, len(second.ledger.entries)) == (0, 1)
    second.ledger.verify()
    second.ledger.close()


@pytest.mark.slow
def test_what_is_bought_goes_through_the_same_door(tmp_path):
    rules = RULES.replace("bounds = [0, 100], nullable = false", 'bounds = "private"')
    project = clinic_project(tmp_path, rules)
    curator = project.curator()
    source = watch(curator, fails=True)
    failed(lambda: curator.bounds("visits.age", spend=1))
    source.fails = False
    failed(lambda: curator.bounds("visits.age", spend=1))
    curator.ledger.close()
    curator = project.curator()
    failed(lambda: curator.bounds("visits.age", spend=1))
    assert curator.ledger.purchases == ()
    assert len(curator.ledger.entries) == 1
    assert curator.bounds("visits.age", spend=2)
    curator.ledger.close()


def test_explain_and_refusals_are_as_ever(clinic):
    curator, source = clinic
    source.fails = True
    failed(lambda: curator.sql(COUNT, spend=1))
    assert curator.explain(COUNT, spend=1).allowed
    with pytest.raises(InputError):
        curator.sql("SELECT SUM(weight) FROM visits", spend=1)
    assert curator.budget.spent.epsilon == 1


def test_the_error_can_be_sent_elsewhere():
    assert str(pickle.loads(pickle.dumps(FailedError()))) == str(FailedError())


# Unfinished


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("fault", INTERRUPTS, ids=repr)
def test_an_interrupt_leaves_a_question_unfinished(clinic, fault):
    curator, source = clinic
    source.source.aggregate = raising(fault)
    for _ in range(2):
        with pytest.raises(type(fault)):
            curator.sql(COUNT, spend=1)
    del source.source.aggregate
    first = curator.sql(COUNT, spend=1)["n"].values
    assert curator.sql(COUNT, spend=1)["n"].values == first
    assert (source.computed, curator.budget.spent.epsilon, len(curator.ledger.entries)) == (3, 1, 1)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("fault", [NoisetteError("The ledger is out of reach."), OSError(CANARY), KeyboardInterrupt()])
def test_a_ledger_that_is_lost_before_it_kept_leaves_a_question_unfinished(clinic, monkeypatch, fault):
    curator, source = clinic
    with monkeypatch.context() as lost:
        lost.setattr(curator.ledger, "keep", raising(fault))
        with pytest.raises(type(fault)):
            curator.sql(COUNT, spend=1)
    curator.sql(COUNT, spend=1)
    assert (source.computed, len(curator.ledger.entries)) == (2, 1)


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_kept_though_nobody_heard_is_the_answer(clinic, monkeypatch, fails):
    curator, source = clinic
    source.fails, right = fails, curator.ledger.keep

    def deaf(*given):
        right(*given)
        raise OSError("gone")

    with monkeypatch.context() as lost:
        lost.setattr(curator.ledger, "keep", deaf)
        with pytest.raises(OSError, match="gone"):
            curator.sql(COUNT, spend=1)
    source.fails = False
    if fails:
        failed(lambda: curator.sql(COUNT, spend=1))
    else:
        curator.sql(COUNT, spend=1)
    assert (source.computed, len(curator.ledger.entries)) == (1, 1)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("fault", ["RuntimeError", "InterruptException", "ArrowCancelled"])
def test_the_engine_is_not_failed_by_a_key(clinic, fault):
    """Ctrl-C reaches Python as an error of the engine; any other RuntimeError is one."""
    import duckdb

    curator, source = clinic
    kinds = {"RuntimeError": RuntimeError, "InterruptException": duckdb.InterruptException}
    session = source.source._session
    right = session.connection

    class Interrupted:
        said = "Query interrupted"

        def sql(self, _):
            raise kinds.get(fault, pyarrow.ArrowCancelled)(self.said)

    session.connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        curator.sql(PEOPLE, spend=1)
    Interrupted.said = "Unlucky"
    if fault == "RuntimeError":
        failed(lambda: curator.sql(COUNT, spend=1))
    session.connection = right
    curator.sql(PEOPLE, spend=1)
    assert len(curator.ledger.entries) == 1 + (fault == "RuntimeError")


@pytest.mark.slow
def test_two_who_share_a_ledger_in_memory_share_answers():
    """Two curators of one state of the data would draw twice under one charge, if the ledger kept nothing."""
    ledger = Memory(nz.Pure(10))
    first, second = opened(nz.Pure(10)), opened(nz.Pure(10))
    for curator in (first, second):
        curator.ledger, curator._pin = ledger, lambda: "one"
    sources = [watch(curator) for curator in (first, second)]
    answers = [curator.sql(COUNT, spend="1/1000")["n"].values for curator in (first, second)]
    assert answers[0] == answers[1]
    assert ([source.computed for source in sources], len(ledger.entries)) == ([1, 0], 1)


# In other processes


RULES = """
[budget]
epsilon = "1000"
[tables.visits]
unit = "patient_id"
rows = 3
[tables.visits.columns]
age = { bounds = [0, 100], nullable = false }
"""
CHILD = """
import os, signal, sys
from noisette.curator.project import Project
from noisette.errors import FailedError
curator = Project.read(sys.argv[1]).curator()
def aggregate(*_):
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError
curator._source.aggregate = aggregate
try:
    curator.sql(sys.argv[3], spend=1)
except FailedError:
    print("failed")
"""


def clinic_project(folder, rules=RULES):
    from tests.curator.clinic import visits

    pyarrow.parquet.write_table(visits(), folder / "visits.parquet")
    (folder / "rules.toml").write_text(rules)
    return Project.create([folder / "visits.parquet"], policy=folder / "rules.toml")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["die", "fail"])
def test_a_killed_process_leaves_it_unfinished_and_a_failed_one_does_not(tmp_path, what):
    project = clinic_project(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), what, COUNT], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == ((-signal.SIGKILL, "") if what == "die" else (0, "failed\n")), done.stderr
    curator = project.curator()
    source = watch(curator)
    if what == "die":
        curator.sql(COUNT, spend=1)
    else:
        failed(lambda: curator.sql(COUNT, spend=1))
    assert (source.computed, len(curator.ledger.entries)) == (what == "die", 1)
    curator.ledger.close()


# Streams


SURE = 50


def test_a_question_that_fails_ends_its_stream(clinic):
    curator, source = clinic
    stream = curator.stream(Above(30, positives=3), spend=SURE)
    assert stream.ask(PEOPLE) is not None
    source.fails = True
    first, touched = failed(lambda: stream.ask(PEOPLE)), source.computed
    source.fails = False
    for question in (PEOPLE, f"{PEOPLE} WHERE age > 1000", COUNT.replace("COUNT(*)", "COUNT(DISTINCT patient_id)")):
        assert failed(lambda question=question: stream.ask(question)) == first
    assert (source.computed, stream.left, repr(stream)) == (touched, 0, "<stream above 30: 0 of 3 left>")
    again = curator.stream(Above(30, positives=3), spend=SURE)
    assert failed(lambda: again.ask(PEOPLE)) == first
    assert len(curator.ledger.entries) == 1
    assert curator.stream(Above(30, positives=3, name="second"), spend=SURE).ask(PEOPLE) is not None
    assert len(curator.ledger.entries) == 2


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_one_sentence_for_all_reasons_in_a_stream(clinic, fault):
    curator, source = clinic
    source.source.aggregate = raising(fault)
    stream = curator.stream(Above(30), spend=SURE)
    assert failed(lambda: stream.ask(PEOPLE)) == (FailedError, str(FailedError()))


def test_a_comparison_that_fails_ends_it_too(clinic, monkeypatch):
    curator, _ = clinic
    stream = curator.stream(Above(30), spend=SURE)
    with monkeypatch.context() as broken:
        broken.setattr(SparseVector, "report", raising(MemoryError()))
        failed(lambda: stream.ask(PEOPLE))
    failed(lambda: stream.ask(PEOPLE))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("fault", INTERRUPTS, ids=repr)
def test_an_interrupt_leaves_a_stream_as_it_was(clinic, fault):
    curator, source = clinic
    stream = curator.stream(Above(30), spend=SURE)
    source.source.aggregate = raising(fault)
    with pytest.raises(type(fault)):
        stream.ask(PEOPLE)
    del source.source.aggregate
    assert stream.left == 1
    assert stream.ask(PEOPLE) is not None
    with pytest.raises(BudgetError):
        stream.ask(PEOPLE)


@pytest.mark.slow
def test_who_is_overtaken_by_a_failure_tells_nothing(tmp_path):
    project = clinic_project(tmp_path)
    fine, broken = project.curator(), project.curator()
    watch(broken, fails=True)
    streams = [curator.stream(Above(30, positives=2), spend=SURE) for curator in (fine, broken)]
    right = fine._source.aggregate

    def slow(*given):
        failed(lambda: streams[1].ask(PEOPLE))
        return right(*given)

    fine._source.aggregate = slow
    failed(lambda: streams[0].ask(PEOPLE))
    again = project.curator()
    failed(lambda: again.stream(Above(30, positives=2), spend=SURE).ask(PEOPLE))
    for curator in (fine, broken, again):
        curator.ledger.close()


def test_a_failure_looks_like_any_other_state(tmp_path):
    """Who reads the ledger's file cannot tell that a stream has failed: its states are of one length, and sealed."""
    curator = opened(nz.Pure(1000), ledger=tmp_path / "x.ledger")
    stream = curator.stream(Above(30, positives=3), spend=SURE)
    stream.ask(PEOPLE)
    watch(curator, fails=True)
    failed(lambda: stream.ask(PEOPLE))
    kept = list(curator.ledger._store.answers())
    assert len({len(body) for _, body in kept}) == 1
    assert len(kept) == 3
    curator.ledger.close()


def test_an_old_stream_goes_on(tmp_path):
    """States as they were written before there was a failed one are read as ever."""
    curator = opened(nz.Pure(1000), ledger=tmp_path / "x.ledger")
    stream = curator.stream(Above(30, positives=2), spend=SURE)
    line = stream._line
    for given in (1, 2):
        state = replace(line._last, asked=given, given=given)
        assert set(json.loads(json.dumps(vars(state)))) == {
            "mechanism",
            "stream",
            "threshold",
            "asked",
            "given",
            "noise",
        }
        assert curator.ledger.advance(line._seal.key, given, line._seal.closed(vars(state), given))
        assert stream.left == 2 - given
    with pytest.raises(BudgetError):
        stream.ask(PEOPLE)
    curator.ledger.close()


def test_a_charge_without_an_answer_from_before_is_drawn_for(tmp_path):
    """Ledgers from before kept no failures: what they charged for and did not answer is unfinished."""
    curator = opened(nz.Pure(10), ledger=tmp_path / "x.ledger")
    offer = curator.explain(COUNT, spend=1).offer
    key = curator._key(offer, nz.Pure(1), None, curator._about())
    curator.ledger.charge(offer.text, offer.guarantee, offer.parts, key=key)
    curator.sql(COUNT, spend=1)
    assert len(curator.ledger.entries) == 1
    curator.ledger.close()
    open_ledger(tmp_path / "x.ledger").close()
