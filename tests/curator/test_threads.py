"""Many threads ask one curator: nobody waits for another question, the same one is drawn once, nothing is overspent."""

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from tests.curator.clinic import Watched, opened, watch

import noisette as nz
from noisette.curator.answer_cache import AnswerCache
from noisette.curator.budget import Budget
from noisette.errors import BudgetError, FailedError, PrivacyError
from noisette.ledger import Book, Memory, open_ledger

COUNT = "SELECT COUNT(*) AS n FROM visits"
SUM = "SELECT SUM(cost) AS n FROM visits"
LONG = 60  # seconds: who waits that long hangs


class Gate(Watched):
    """A source that stops at a gate while it computes."""

    def __init__(self, source):
        super().__init__(source)
        self.reached, self.open = threading.Event(), threading.Event()

    def aggregate(self, *arguments):
        self.reached.set()
        assert self.open.wait(LONG)
        return super().aggregate(*arguments)


@pytest.fixture(params=["memory", "book"])
def clinic(request, tmp_path):
    """A curator with a ledger of either sort."""
    ledger = {} if request.param == "memory" else {"ledger": tmp_path / "clinic.ledger"}
    curator = opened(nz.Approx(1000, "1e-3"), **ledger)
    yield curator
    if isinstance(curator.ledger, Book):
        curator.ledger.verify()
        curator.ledger.close()


def numbers(release):
    return release["n"].values.to_pylist()


@pytest.mark.slow_after(1)
def test_a_repeated_answer_does_not_wait_for_a_running_question(clinic):
    first, gate = clinic.sql(COUNT, spend=1), Gate(clinic._source)
    clinic._source = gate
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(clinic.sql, SUM, spend=1)
        try:
            assert gate.reached.wait(LONG)
            assert numbers(pool.submit(clinic.sql, COUNT, spend=1).result(LONG)) == numbers(first)
            clinic._answers = AnswerCache(most_answers=0)  # nor does one that is read from the ledger
            assert numbers(pool.submit(clinic.sql, COUNT, spend=1).result(LONG)) == numbers(first)
            assert clinic.explain(SUM, spend=2).allowed
            assert not slow.done()
        finally:
            gate.open.set()
        slow.result(LONG)
    assert (gate.computed, len(clinic.ledger.entries)) == (1, 2)


@pytest.mark.slow_after(1)
def test_another_question_runs_beside_it_as_far_as_the_engine_allows(clinic):
    """Both stand at the gate at once: the curator itself holds no lock while an engine computes."""
    meet = threading.Barrier(2, timeout=LONG)

    class Meeting(Watched):
        def aggregate(self, *arguments):
            meet.wait()
            return super().aggregate(*arguments)

    clinic._source = Meeting(clinic._source)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda text: clinic.sql(text, spend=1), (COUNT, SUM)))
    assert [len(answer) for answer in answers] == [1, 1]
    assert len(clinic.ledger.entries) == 2


@pytest.mark.slow_after(1)
def test_the_same_question_from_many_threads_is_charged_and_drawn_once(clinic):
    gate = Gate(clinic._source)
    clinic._source = gate
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(clinic.sql, COUNT, spend="1/1000") for _ in range(8)]
        assert gate.reached.wait(LONG)
        gate.open.set()
        answers = [numbers(each.result(LONG)) for each in asked]
    assert len({tuple(answer) for answer in answers}) == 1
    assert (gate.computed, len(clinic.ledger.entries)) == (1, 1)
    assert len(clinic._answers._questions) == 0  # no lock is left


def test_a_question_that_fails_in_one_thread_fails_in_all(clinic):
    gate = Gate(clinic._source)
    clinic._source, gate.fails = gate, True
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(clinic.sql, COUNT, spend=1) for _ in range(4)]
        assert gate.reached.wait(LONG)
        gate.open.set()
        assert all(isinstance(each.exception(LONG), FailedError) for each in asked)
    assert (gate.computed, len(clinic.ledger.entries)) == (1, 1)


def test_an_interrupt_in_one_thread_leaves_it_to_the_next(clinic):
    """The first is interrupted and unfinished; who waited for it draws under the same charge."""
    reached, go, times = threading.Event(), threading.Event(), []

    class Interrupted(Watched):
        def aggregate(self, *arguments):
            times.append(None)
            if len(times) == 1:
                reached.set()
                assert go.wait(LONG)
                raise KeyboardInterrupt
            return super().aggregate(*arguments)

    clinic._source = Interrupted(clinic._source)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(clinic.sql, COUNT, spend=1)
        assert reached.wait(LONG)
        second = pool.submit(clinic.sql, COUNT, spend=1)
        go.set()
        assert isinstance(first.exception(LONG), KeyboardInterrupt)
        assert numbers(second.result(LONG)) == numbers(clinic.sql(COUNT, spend=1))
    assert (len(times), len(clinic.ledger.entries)) == (2, 1)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("ledger", [False, True])
def test_different_questions_never_overspend(tmp_path, ledger):
    curator = opened(nz.Pure(1), **({"ledger": tmp_path / "x.ledger"} if ledger else {}))

    def asks(age):
        try:
            curator.sql(f"SELECT COUNT(*) FROM visits WHERE age > {age}", spend="1/4")
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(asks, range(12))) == 4
    assert curator.budget.spent.epsilon == 1
    assert len(curator.ledger.entries) == 4
    if ledger:
        curator.ledger.verify()
        curator.ledger.close()


MANY = [
    *(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in (10, 30, 50)),
    *(f"SELECT COUNT(DISTINCT patient_id) AS n FROM visits WHERE age > {age}" for age in (10, 30, 50)),
    *(f"SELECT ward, SUM(cost) AS n FROM visits WHERE age > {age} GROUP BY ward" for age in (10, 30, 50)),
    "SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT smoker, AVG(age) AS n FROM visits GROUP BY smoker",
    "SELECT SUM(value) AS n FROM labs",
]


@pytest.mark.slow
def test_the_engine_is_not_confused_by_threads():
    """At epsilon 50,000 noise moves no number here by 5 (a chance below e^-80): all are as one thread asks them."""
    alone, crowd = opened(nz.Pure(10**6)), opened(nz.Pure(10**6))
    expected = [alone.sql(text, spend=50_000).rows() for text in MANY]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda text: crowd.sql(text, spend=50_000).rows(), MANY))
    for one, other in zip(expected, found, strict=True):
        assert [row.keys() for row in one] == [row.keys() for row in other]
        assert [row["n"] for row in one] == pytest.approx([row["n"] for row in other], rel=0.01, abs=5)


# The cache


@pytest.mark.slow_after(1)
def test_an_answer_that_was_dropped_is_read_from_the_ledger(clinic):
    clinic._answers, source = AnswerCache(most_answers=1), watch(clinic)
    a, b, again = (numbers(clinic.sql(text, spend="1/1000")) for text in (COUNT, SUM, COUNT))
    assert a == again
    assert a != b
    assert (source.computed, len(clinic.ledger.entries), len(clinic._answers)) == (2, 2, 1)


@pytest.mark.slow_after(1)
def test_a_cache_is_limited_by_bytes_too(clinic):
    clinic._answers, source = AnswerCache(most_bytes=1), watch(clinic)
    assert numbers(clinic.sql(COUNT, spend=1)) == numbers(clinic.sql(COUNT, spend=1))
    assert (source.computed, len(clinic._answers), clinic._answers._bytes) == (1, 0, 0)


# Analysts


@pytest.mark.slow
def test_each_call_says_who_asks(tmp_path):
    where = tmp_path / "x.ledger"
    shares = {"ana": nz.Pure(1), "bob": nz.Pure("1/2")}
    open_ledger(where, budget=nz.Pure(1), shares=shares).close()
    for ledger in (Memory(nz.Pure(1), shares=shares), open_ledger(where)):
        curator = opened(nz.Pure(1))
        curator.ledger = ledger
        for ask in (curator.sql, curator.explain):
            with pytest.raises(PrivacyError, match="no share"):
                ask(COUNT, spend="1/4")
        curator.sql(COUNT, spend="1/4", analyst="ana")
        curator.table("visits").count().release(spend="1/4", analyst="bob")
        assert curator.explain(COUNT, spend="1/4", analyst="bob").allowed
        assert not curator.explain(COUNT, spend="1/2", analyst="bob").allowed
        curator.sql(COUNT, spend="1/4", analyst="ana")  # free
        assert [entry.analyst for entry in ledger.entries] == ["ana", "bob"]
        assert curator.budget_of("bob").shares["bob"].left.epsilon == Fraction(1, 4)
        assert set(curator.budget.shares) == {"ana", "bob"}
        assert curator.budget_of("bob").more == 1
        assert Budget.of(ledger, "ana").shares.keys() == {"ana"}
    ledger.close()
