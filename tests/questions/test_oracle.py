"""The oracle: the exact law of its transcripts, its bars, its line of states, and what it says when it is over.

The law: the machine runs with a scripted sparse vector, which releases what a transcript says and remembers what was
compared. So two neighbours have two lists of comparisons for one transcript, from the code that releases it, and the
sparse vector's law (which its own suite checks) gives the probabilities of both.
"""

import dataclasses
import json
import math
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.curator.test_stream import RULES

import noisette as nz
from noisette.curator.demo import tables
from noisette.curator.project import Project
from noisette.errors import FailedError, InputError, PrivacyError
from noisette.mechanisms import Geometric, SparseVector
from noisette.privacy import Neighbours
from noisette.questions.oracle import Oracle
from noisette.questions.parts.oracle_states import Correcting, OracleState

ROOT = Path(__file__).resolve().parents[2]
ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
AGES = {"age": {"bounds": [0, 15], "nullable": False}, "ward": {"keys": ["a", "b", "c", "d"], "nullable": False}}


def opened(counts, *, rows=1, budget=1000, **options):
    """A curator of a table with that many rows in each of 16 x 4 cells, each of a unit of its own."""
    cells = np.repeat(np.arange(64), counts)
    table = pyarrow.table(
        {"unit": np.arange(len(cells)), "age": cells // 4, "ward": [("abcd")[i] for i in (cells % 4).tolist()]}
    )
    policy = {"tables": {"t": {"unit": "unit", "rows": rows, "columns": AGES}}}
    return nz.open({"t": table}, budget=nz.Pure(budget), policy=policy, **options)


COUNTS = np.random.default_rng(0).integers(0, 60, 64)
COUNTS[:8] += 400
QUERIES = [{"age": [i, j]} for i in range(0, 16, 3) for j in range(i, 16, 4)] + [{"ward": one} for one in "abcd"]


def truth(query):
    low, high = query.get("age", [0, 15])
    table = COUNTS.reshape(16, 4)[low : high + 1]
    return int(table[:, "abcd".index(query["ward"])].sum() if "ward" in query else table.sum())


# The law


class Script:
    """A sparse vector that releases what a script says, and remembers what was compared."""

    def __init__(self, mechanism, released):
        self.mechanism, self.released, self.compared = mechanism, list(released), []

    def __getattr__(self, name):
        return getattr(self.mechanism, name)

    def resume(self, state, keep):
        return self._resumed(state, keep)

    def _resumed(self, state, keep):
        outer = self

        class Stream:
            def ask(self, query):
                outer.compared.append(query - state.threshold)
                gap = outer.released.pop(0)
                keep(dataclasses.replace(state, asked=state.asked + 1, given=state.given + (gap is not None)))
                return gap

        return Stream()


def compared(mechanism, script, answers, *, threshold=2):
    """What is compared if these are the exact answers and this is released; the second query has two boxes."""
    scripted = Script(mechanism, script)
    machine = Correcting((4,), scripted, threshold=threshold, total=8, counting=None)
    state, released = machine.begin(), []
    where = [[[0], [[[0, 0]]]], [[0], [[[0, 0]], [[2, 3]]]], [[0], [[[1, 2]]]]]
    for query, exact in zip(where, answers, strict=False):
        if state.sparse.given >= mechanism.positives:
            break
        one, state = machine.step(state, (query, exact, 8))
        released.append(one)
    assert not scripted.released
    return scripted.compared, released, state


# after None, None the public answer is released; a gap ends the query
SCRIPTS = [
    (None, None, 0, 0),
    (None, None, None, 3, 0),
    (0, None, 2),
    (None, 0, None, None, 1),
    (None,) * 6,
    (None, 0, None, 0),
]
NEIGHBOURS = [
    ((4, 5, 2), (5, 6, 2)),
    ((4, 5, 2), (3, 4, 2)),
    ((0, 0, 9), (1, 1, 10)),
    ((2, 6, 4), (2, 5, 5)),
    ((30, 30, 5), (31, 31, 6)),
]


def chance(mechanism, script, queries):
    """P(script | queries): for each value of the threshold's noise the chances of all reports multiply."""
    z = mechanism.centre + np.arange(math.ceil(60 * mechanism.threshold_scale) + 200)
    found = np.asarray(mechanism.threshold_noise.pmf(z), float)
    for query, gap in zip(queries, script, strict=True):
        noise = mechanism.query_noise
        found = found * (noise.cdf(z - query - 1) if gap is None else noise.pmf(z + gap - query))
    return float(found.sum())


def test_the_chances_are_those_of_the_mechanism():
    mechanism = SparseVector(1, 2, positives=2)
    outcomes = mechanism.outcomes([1, -2, 3])
    for script in [(None, None, None), (0, None, 2), (3, 1)]:
        assert chance(mechanism, script, [1, -2, 3][: len(script)]) == pytest.approx(outcomes[script])


def losses(mechanism):
    """The log-ratio of the probabilities of each transcript, for each pair of neighbours."""
    for script in SCRIPTS:
        for pair in NEIGHBOURS:
            (one, said, _), (other, also, _) = (compared(mechanism, script, answers) for answers in pair)
            assert said == also  # released numbers depend on what was released alone
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1
            p, q = (chance(mechanism, script, queries) for queries in (one, other))
            yield abs(math.log(p / q))


def test_no_transcript_costs_more_than_epsilon_and_one_costs_all_of_it():
    mechanism = SparseVector.calibrated(nz.Pure(1), positives=2)
    found = list(losses(mechanism))
    assert 1 - 1e-6 < max(found) <= 1 + 1e-9


TWINS = {
    "monotone": lambda m: SparseVector.calibrated(nz.Pure(1), positives=2, monotone=True),  # one of two moves down
    "a threshold without noise": lambda m: SparseVector(m.threshold_scale / 100, m.scale, positives=2),
    "half the sensitivity": lambda m: SparseVector(m.threshold_scale / 2, m.scale / 2, positives=2),
    "one update of two": lambda m: dataclasses.replace(SparseVector.calibrated(nz.Pure(1), positives=1), positives=2),
}


@pytest.mark.parametrize("twin", TWINS)
def test_twins_cost_more_than_epsilon(twin):
    mechanism = SparseVector.calibrated(nz.Pure(1), positives=2)
    assert max(losses(TWINS[twin](mechanism))) > 1.2


def test_the_public_answer_follows_from_what_was_released():
    mechanism = SparseVector.calibrated(nz.Pure(1), positives=2)
    _, released, state = compared(mechanism, (5, None, None, None, None), (7, 7, 1))
    assert released[0] == (2 + 2 + 5, 5, 1)  # the even distribution says 2 of 8; threshold 2, gap 5
    assert state.history == [[[0], [[[0, 0]]], 9]]
    assert released[1][0] >= 6  # of 8 rows the first cell has more now
    below = compared(mechanism, (None, 1), (0,))[1]
    assert below == [(2 - 2 - 1, 1, -1)]


@pytest.mark.parametrize("relation", Neighbours, ids=str)
@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")], ids=str)
@pytest.mark.parametrize("total", [None, 1000])
def test_a_stream_stays_within_the_promise(relation, spend, total):
    schema = opened(COUNTS, rows=3).schema
    offer = Oracle(["age", "ward"], updates=7, total=total).stream(schema, spend, relation)
    assert offer.guarantee <= spend
    assert not offer.guarantee <= spend.share("9/10", delta=1)
    assert offer.guarantee.neighbours is relation
    assert offer.sensitivity.linf == 3
    assert (offer.counting is None) == (total is not None)
    assert len(offer.parts) == 1 + (total is None)
    assert all(one.half_width > 0 for one in offer.expected()[0])


# Answers


@pytest.mark.slow
def test_it_answers_and_pays_only_where_the_public_distribution_is_wrong():
    oracle = opened(COUNTS).stream(Oracle(["age", "ward"], updates=8), spend=100)
    answers = [oracle.ask(query) for query in QUERIES * 3]
    paid = [answer for answer in answers if not answer.free]
    assert 0 < len(paid) <= 8
    assert answers[0].left == 8 - (not answers[0].free)
    assert len(oracle.updates) == len(paid)
    late = [(query, answer) for query, answer in zip(QUERIES, answers[-len(QUERIES) :], strict=True) if answer.free]
    assert late
    for query, answer in late:
        if answer.high < math.inf:
            assert answer.low <= truth(query) <= answer.high


@pytest.mark.slow
def test_bars_hold_as_often_as_they_say():
    """150 streams at a level of .8: bars of free answers, all at once, and those of first updates fail one in five.

    More than 59 of 150 fail with probability below 1e-9 for each of the two.
    """
    curator, free, paid, updates = opened(COUNTS, budget=10**6), 0, 0, 0
    for i in range(150):
        oracle = curator.stream(Oracle(["age", "ward"], updates=3, name=str(i)), spend=2)
        answers = [(query, oracle.ask(query, level=0.8)) for query in QUERIES[:12]]
        off = [(answer, not answer.low <= truth(query) <= answer.high) for query, answer in answers]
        free += any(wrong for answer, wrong in off if answer.free)
        first = [wrong for answer, wrong in off if not answer.free][:1]
        updates += len(first)
        paid += sum(first)
    assert updates > 100
    assert free <= 59
    assert paid <= 59


def test_when_updates_are_used_up_it_answers_without_reading_anything():
    curator = opened(COUNTS)
    oracle = curator.stream(Oracle("age", updates=1), spend=100)
    while oracle.left:
        oracle.ask({"age": [0, 1]})
    curator._source = None
    answer = oracle.ask({"age": [0, 7]})
    assert (answer.free, answer.left, answer.low, answer.high) == (True, 0, 0.0, math.inf)
    assert answer.value > 1000
    assert "used up" in answer.caveats[0]
    assert repr(oracle) == "<oracle about age: 0 of 1 updates left>"


@pytest.mark.slow
def test_the_number_of_rows_is_bought_once_with_its_own_noise(monkeypatch):
    drawn = []
    call = Geometric.__call__
    monkeypatch.setattr(Geometric, "__call__", lambda self, x, *rest: drawn.append(x) or call(self, x, *rest))
    oracle = opened(COUNTS).stream(Oracle("age"), spend=50)
    assert oracle._line.last.rows is None
    for _ in range(3):
        oracle.ask({})
    assert drawn == [COUNTS.sum()]
    assert abs(oracle._line.last.rows - COUNTS.sum()) < 100


# The line of states


def test_a_state_is_plain_json_and_goes_on():
    offer = Oracle(["age", "ward"], updates=5).stream(opened(COUNTS).schema, nz.Pure(50), ADD)
    machine, state = offer.machine, offer.machine.begin()
    for query in QUERIES[:3]:
        value = offer.counts(query).where, truth(query), int(COUNTS.sum())
        _, state = machine.step(state, value)
        stored = json.loads(json.dumps(dataclasses.asdict(state)))
        again = machine.read(stored)
        assert again == state
        assert isinstance(again, OracleState)
    one, other = (
        o.machine.hypothesis(state.rows, state.history).tables([(0, 1)])[0, 1]
        for o in (offer, dataclasses.replace(offer))
    )
    assert (one == other).all()
    assert "noise" not in repr(state)


def test_a_question_that_fails_ends_it_for_all():
    curator = opened(COUNTS)
    oracle = curator.stream(Oracle("age"), spend=5)
    source, curator._source = curator._source, None
    with pytest.raises(FailedError):
        oracle.ask({"age": 3})
    curator._source = source
    with pytest.raises(FailedError):
        oracle.ask({"age": 3})


@pytest.fixture
def project(tmp_path):
    pyarrow.parquet.write_table(tables(400)["visits"], tmp_path / "visits.parquet")
    (tmp_path / "rules.toml").write_text(RULES)
    return Project.create([tmp_path / "visits.parquet"], policy=tmp_path / "rules.toml")


KILLED = """
import os, signal, sys
from noisette.curator.project import Project
from noisette.questions.oracle import Oracle
curator = Project.read(sys.argv[1]).curator()
oracle = curator.stream(Oracle("age", updates=3), spend=20)
print(oracle.ask({"age": [0, 50]}).left, flush=True)
curator.ledger._step = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == "kept" else None
oracle.ask({"age": [0, 20]})
"""


@pytest.mark.slow
def test_a_kill_between_keep_and_answer_loses_the_answer_and_nothing_else(project):
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(project.folder)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    oracle = project.curator().stream(Oracle("age", updates=3), spend=20)
    state = oracle._line.last
    assert state.asked == 2
    assert oracle.left == 3 - len(state.history)
    assert oracle.left <= int(died.stdout)
    assert len(project.ledger().entries) == 1
    rows = state.rows
    assert oracle.ask({"age": [0, 50]}).left <= oracle.left + 1
    assert oracle._line.last.rows == rows  # bought once
    assert oracle._line.last.sparse.noise == state.sparse.noise  # one threshold for all


@pytest.mark.slow
def test_two_who_share_a_ledger_share_the_updates(project):
    first, second = (project.curator().stream(Oracle("age", updates=2), spend=20) for _ in range(2))
    queries = [{"age": [0, 50]}, {"age": [0, 20]}, {"age": [30, 60]}, {"age": [0, 5]}]
    answers = [stream.ask(query) for query in queries for stream in (first, second)]
    assert sum(not answer.free for answer in answers) <= 2
    assert first.left == second.left
    assert first.updates == second.updates


@pytest.mark.slow
def test_a_fork_and_a_copy_are_refused():
    oracle = opened(COUNTS).stream(Oracle("age"), spend=5)
    with pytest.raises(PrivacyError):
        pickle.dumps(oracle)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            oracle.ask({"age": 3})
        except PrivacyError:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 7) == b"refused"
    assert oracle.ask({"age": 3}).value >= 0  # nothing happened to the parent's


# Refusals


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Oracle([]), "columns"),
        (lambda: Oracle(["age", "age"]), "columns"),
        (lambda: Oracle("age", updates=0), "updates"),
        (lambda: Oracle("age", updates=10**6), "updates"),
        (lambda: Oracle("age", threshold=0), "threshold"),
        (lambda: Oracle("age", name=3), "name"),
    ],
)
def test_refusals(make, said):
    with pytest.raises(InputError, match=rf"^[^\n]*{said}[^\n]*\.$"):
        make()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("age", "A query says"),
        ({"cost": 3}, "not among"),
        ({"age": [5, 3]}, "lower end"),
        ({"ward": "z"}, "no declared key"),
        ({"ward": []}, "one value at least"),
    ],
)
def test_queries_that_cannot_be_asked_are_refused_before_anything_is_read(query, said):
    oracle = opened(COUNTS).stream(Oracle(["age", "ward"]), spend=5)
    with pytest.raises(InputError, match=said):
        oracle.ask(query)
    assert oracle._line.last.asked == 0


def test_columns_that_would_be_linked_beyond_all_bounds_are_refused(monkeypatch):
    monkeypatch.setattr("noisette.questions.oracle.MOST_CELLS", 16)
    oracle = opened(COUNTS).stream(Oracle(["age", "ward"], updates=2), spend=100)
    oracle.ask({"age": [0, 1]})
    with pytest.raises(InputError, match="fewer columns at a time"):
        oracle.ask({"age": [0, 1], "ward": "a"})
