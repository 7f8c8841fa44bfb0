"""Streams: they end after c positives, whatever threads, crashes, copies and old states try; the noise stays secret."""

import copy
import dataclasses
import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.tapes import Script

from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.exact.random import SystemRandom
from noisette.mechanisms.sparse_vector.sparse import NumericSparse, Sparse
from noisette.mechanisms.sparse_vector.sparse_vector import SparseVector
from noisette.mechanisms.sparse_vector.stream import State

TINY = "1/60"  # a scale at which noise is other than 0 once in e^60
QUIET = SparseVector(TINY, TINY, positives=3)
KINDS = [QUIET, Sparse(TINY, positives=3), NumericSparse(TINY, value_scale=TINY, positives=3)]


class Store:
    """What a ledger does: keep each (stream, asked) once, as text, and find the last."""

    def __init__(self):
        self.kept = {}

    def keep(self, state):
        key = state.stream, state.asked
        if key in self.kept:
            raise PrivacyError("This stream has gone on already: resume its last state.")
        self.kept[key] = json.dumps(dataclasses.asdict(state))

    def states(self):
        return [State(**json.loads(text)) for text in self.kept.values()]


def positives(answers):
    return sum(answer is not None for answer in answers)


# The end


@pytest.mark.parametrize("m", KINDS, ids=repr)
def test_it_ends_after_the_last_positive(m):
    stream = m.begin(10)
    answers = [stream.ask(q) for q in (3, 12, 9, 12, -5, 12)]
    assert [answer is not None for answer in answers] == [False, True, False, True, False, True]
    assert stream.left == 0
    for _ in range(3):
        with pytest.raises(BudgetError, match="begin a new one"):
            stream.ask(3)


def test_silence_costs_nothing():
    stream = QUIET.begin()
    assert positives(stream.ask(-1) for _ in range(500)) == 0
    assert stream.left == 3


@pytest.mark.parametrize("m", [SparseVector(1, 2, positives=5), Sparse(1, positives=5)], ids=repr)
def test_threads_share_the_positives(m):
    stream = m.begin()

    def hammer(_):
        told = 0
        try:
            while True:
                told += stream.ask(0) is not None
        except BudgetError:
            return told

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(hammer, range(8))) == 5


class Gate:
    """A keep that lets other threads run in the middle of an answer."""

    def __init__(self):
        self.asked = []

    def __call__(self, state):
        os.sched_yield()
        self.asked.append(state.asked)


def test_threads_keep_one_line_of_states():
    gate = Gate()
    stream = SparseVector(1, 1, positives=10**6).begin(keep=gate)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(stream.ask, [0] * 200))
    assert gate.asked == list(range(201))


# Restarts


@pytest.mark.parametrize("m", KINDS, ids=repr)
def test_a_restart_goes_on_where_it_was(m):
    store = Store()
    stream = m.begin(10, keep=store.keep)
    assert [stream.ask(q) is None for q in (12, 3, 12)] == [False, True, False]
    del stream  # a crash
    again = m.resume(store.states()[-1], keep=store.keep)
    assert again.left == 1
    assert again.ask(11) is not None
    with pytest.raises(BudgetError):
        again.ask(11)
    with pytest.raises(BudgetError):
        m.resume(store.states()[-1], keep=store.keep).ask(0)


def test_the_noisy_threshold_is_the_same_after_a_restart():
    m = SparseVector(10**6, TINY, positives=2)
    store = Store()
    stream = m.begin(keep=store.keep)
    stream.ask(0)
    first, last = store.states()
    assert first.noise == last.noise
    stream = m.resume(last, keep=store.keep)
    assert (stream.ask(last.noise - 1), stream.ask(last.noise + 5)) == (None, 5)


def test_a_fresh_threshold_is_kept_before_its_positive_is_told():
    m, store = Sparse(1000, positives=3), Store()
    stream = m.begin(keep=store.keep)
    stream.ask(10**6)
    before, after = store.states()
    assert before.noise != after.noise
    assert (before.given, after.given) == (0, 1)


def all_ways_to_cheat(m, store_class):
    """Answers above of an analyst who crashes the curator after each, and resumes every state ever stored."""
    store = store_class()
    told = positives([m.begin(keep=store.keep).ask(1)])
    for _ in range(6):
        for state in store.states():
            stream = m.resume(state, keep=store.keep)
            try:
                told += stream.ask(1) is not None
            except PrivacyError:
                continue
    return told


@pytest.mark.parametrize("m", KINDS, ids=repr)
def test_old_states_and_states_resumed_twice_are_stopped(m):
    assert all_ways_to_cheat(m, Store) == 3


class Forgetful(Store):
    """A broken twin that takes the same (stream, asked) again."""

    def keep(self, state):
        self.kept[len(self.kept)] = json.dumps(dataclasses.asdict(state))


class Lenient(Store):
    """A broken twin that takes a state again if it is equal: two lines may look alike."""

    def keep(self, state):
        text = json.dumps(dataclasses.asdict(state))
        if self.kept.setdefault((state.stream, state.asked), text) != text:
            raise PrivacyError("This stream has gone on already.")


@pytest.mark.parametrize("twin", [Forgetful, Lenient])
def test_a_store_that_does_not_refuse_gives_too_much_away(twin):
    assert all_ways_to_cheat(QUIET, twin) > 3


def test_two_that_go_on_together_share_the_positives():
    store = Store()
    QUIET.begin(keep=store.keep)
    pair = [QUIET.resume(store.states()[0], keep=store.keep) for _ in range(2)]
    assert pair[0].ask(1) == 1
    with pytest.raises(PrivacyError, match="gone on"):
        pair[1].ask(1)
    with pytest.raises(PrivacyError, match="resume it"):
        pair[1].ask(1)


@pytest.mark.parametrize("query", [-5, 5])
def test_nothing_is_told_if_it_cannot_be_kept(query):
    """Whatever the answer would have been, so a full disk says nothing about the data."""
    calls = []

    def keep(state):
        calls.append(state.asked)
        if state.asked:
            raise OSError("disk full")

    stream = QUIET.begin(keep=keep)
    with pytest.raises(OSError, match="disk full"):
        stream.ask(query)
    assert calls == [0, 1]
    with pytest.raises(PrivacyError):
        stream.ask(query)


def test_a_stream_that_cannot_be_kept_does_not_begin():
    def keep(state):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        QUIET.begin(keep=keep)


def test_handing_over_ends_it_here():
    stream = QUIET.begin(10)
    stream.ask(12)
    state = stream.state()
    with pytest.raises(PrivacyError, match="handed over"):
        stream.ask(12)
    assert (state.asked, state.given, state.threshold) == (1, 1, 10)
    assert QUIET.resume(state, keep=lambda _: None).left == 2


def test_every_stream_has_a_name_of_its_own():
    assert len({QUIET.begin().state().stream for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "other", [SparseVector(TINY, TINY, positives=4), SparseVector(TINY, "1/59", positives=3), KINDS[1]]
)
def test_a_state_belongs_to_its_mechanism(other):
    with pytest.raises(PrivacyError, match="another mechanism"):
        other.resume(QUIET.begin().state(), keep=lambda _: None)


# Secrets and copies


def test_the_noise_is_shown_nowhere():
    state = dataclasses.replace(QUIET.begin(7).state(), noise=987654321)
    stream = QUIET.resume(state, keep=lambda _: None)
    assert "987654321" not in f"{state} {state!r} {stream} {stream!r} {vars(stream)}"
    assert "threshold 7: 3 of 3 positives left" in repr(stream)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_streams_cannot_be_copied(way):
    with pytest.raises(PrivacyError, match="cannot be copied"):
        way(QUIET.begin())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_go_on():
    stream = QUIET.begin()
    child = os.fork()
    if not child:
        refused = 0
        for attempt in (lambda: stream.ask(1), stream.state):
            try:
                attempt()
            except PrivacyError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert stream.ask(1) == 1


# Refusals

BAD = [None, float("nan"), 1.5, "3", True, [3], 2**62, 1j]


class Unused(SystemRandom):
    """The system's coins until it is told to stop."""

    def __init__(self):
        self.stopped = False

    def bits(self, count):
        assert not self.stopped
        return super().bits(count)

    def words(self, count, dtype):
        assert not self.stopped
        return super().words(count, dtype)


@pytest.mark.parametrize("threshold", [False, True])
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_queries_and_thresholds_are_refused_before_any_coin_is_drawn(bad, threshold):
    coins, kept = Unused(), []
    stream = QUIET.begin(rng=coins, keep=kept.append)
    coins.stopped = True
    if threshold and bad is None:
        bad = "None"  # None itself stands for the stream's own threshold
    with pytest.raises(InputError) as error:
        stream.ask(1, threshold=bad) if threshold else stream.ask(bad)
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)
    assert len(kept) == 1


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_thresholds_begin_nothing(bad):
    with pytest.raises(InputError):
        QUIET.begin(bad, Script())


@pytest.mark.parametrize(("state", "keep"), [(None, print), ({}, print), (QUIET.begin().state(), None)])
def test_bad_states_are_refused(state, keep):
    with pytest.raises(InputError, match="resumed from a State"):
        QUIET.resume(state, keep=keep)
    with pytest.raises(InputError):
        QUIET.begin(keep="yes")
