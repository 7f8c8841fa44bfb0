"""Misra-Gries: what one row moves, for all short streams, merged or not; the whole release, exactly; error bars."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.releases.sketches.misra_gries import HeavyHitterRelease, MisraGries, moved_shared, moved_steps

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
SIZES = [(1, 3, 6), (2, 4, 6), (3, 5, 5)]  # memory, letters, longest stream


def by_hand(stream, k):
    counters = {}
    for x in stream:
        if x in counters:
            counters[x] += 1
        elif len(counters) < k:
            counters[x] = 1
        else:
            counters = {y: c - 1 for y, c in counters.items() if c > 1}
    return counters


@cache
def states(k, letters, longest):
    """(sketch, sketch of one row less) of all short streams; the row that goes stands anywhere."""
    found = {}
    for n in range(1, longest + 1):
        for stream in product(range(letters), repeat=n):
            for at in range(n):
                less = stream[:at] + stream[at + 1 :]
                found[*(tuple(sorted(by_hand(s, k).items())) for s in (stream, less)), n] = None
    return [(MisraGries(k, dict(a), n), MisraGries(k, dict(b), n - 1)) for a, b, n in found]


def norms(a, b):
    change = np.array([a.get(x, 0) - b.get(x, 0) for x in {*a, *b}] or [0])
    return np.array([(change != 0).sum(), np.abs(change).sum(), (change**2).sum(), np.abs(change).max()])


def stated(moved):
    return np.array([moved.l0, moved.l1, moved.l2_squared, moved.linf], float)


def test_streams_are_counted_as_by_hand():
    for k, letters, longest in SIZES:
        for stream in product(range(letters), repeat=longest):
            sketch = MisraGries.of(stream, memory=k)
            assert dict(sketch.counters) == by_hand(stream, k)
            again = MisraGries.of(stream[:2], memory=k).add(stream[2:])
            assert dict(again.counters) == dict(sketch.counters)


def test_runs_of_rows_are_rows_one_by_one():
    rng = np.random.default_rng(1)
    for _ in range(300):
        values, counts = rng.integers(0, 6, 8).tolist(), rng.integers(0, 5, 8).tolist()
        k = int(rng.integers(1, 5))
        one_by_one = [value for value, n in zip(values, counts, strict=True) for _ in range(n)]
        assert dict(MisraGries.of(values, counts, memory=k).counters) == by_hand(one_by_one, k)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_one_row_moves_a_counter_up_or_all_counters_down(size):
    for a, b in states(*size):
        change = {x: a.counters.get(x, 0) - b.counters.get(x, 0) for x in {*a.counters, *b.counters}}
        up = sorted(change.values())
        one_up = up[-1:] == [1] and not any(up[:-1])
        all_down = set(up) == {-1} and len(b.counters) == size[0] == len(up)
        assert one_up or all_down


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_one_row_moves_reduced_counters_by_what_is_stated_and_no_less(size):
    found = np.max([norms(a.steps, b.steps) for a, b in states(*size)], axis=0)
    assert found.tolist() == stated(moved_steps(size[0], 1, ADD_REMOVE)).tolist()
    plain = np.max([norms(a.counters, b.counters) for a, b in states(*size)], axis=0)
    assert plain[1] == size[0]  # without reducing, k in rows
    shared = moved_shared(size[0], 1, ADD_REMOVE).l1
    assert max(abs(a.taken - b.taken) for a, b in states(*size)) <= shared
    assert max(abs(a.missing - b.missing) for a, b in states(*size)) == shared


@pytest.mark.parametrize("k", [2, 3])
def test_counters_that_are_not_reduced_are_noticed(k):
    def twin(sketch):
        return {x: (k + 1) * c for x, c in sketch.counters.items()}

    found = np.max([norms(twin(a), twin(b)) for a, b in states(*SIZES[k - 1])], axis=0)
    assert (found > stated(moved_steps(k, 1, ADD_REMOVE)))[1:].all()


@pytest.mark.parametrize("rows", [2, 3])
def test_several_rows_of_one_unit_move_by_what_is_stated(rows):
    k, letters = 2, 4
    for relation in (ADD_REMOVE, REPLACE):
        worst, bound = np.zeros(4), stated(moved_steps(k, rows, relation))
        rng = np.random.default_rng(rows)
        for _ in range(4000):
            base = rng.integers(0, letters, rng.integers(0, 9)).tolist()
            mine = [inserted(base, rng.integers(0, letters, rows).tolist(), rng) for _ in range(2)]
            other = base if relation is ADD_REMOVE else mine[1]
            one, two = (MisraGries.of(stream, memory=k) for stream in (mine[0], other))
            worst = np.maximum(worst, norms(one.steps, two.steps))
            shared = moved_shared(k, rows, relation).l1
            assert abs(one.taken - two.taken) <= shared
            assert abs(one.missing - two.missing) <= shared
        assert (worst <= bound).all()
        assert worst[1] > stated(moved_steps(k, 1, relation))[1]


def inserted(stream, mine, rng):
    made = list(stream)
    for x in mine:
        made.insert(int(rng.integers(0, len(made) + 1)), x)
    return made


# Merging


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_one_row_moves_merged_counters_by_what_is_stated_and_no_less(size):
    k = size[0]
    pairs = states(k, size[1], size[2] - 1)
    others = {tuple(sorted(a.counters.items())): a for a, _ in pairs}.values()
    worst, missing = np.zeros(4), 0
    for a, b in pairs:
        for other in others:
            one, two = a.merge(other), b.merge(other)
            worst = np.maximum(worst, norms(one.steps, two.steps))
            missing = max(missing, abs(one.missing - two.missing))
            assert one.taken == 0
    bound = stated(moved_steps(k, 1, ADD_REMOVE, merged=True))
    assert worst.tolist() == bound.tolist()
    assert missing <= moved_shared(k, 1, ADD_REMOVE, merged=True).l1
    if k > 1:  # the sensitivity of one sketch is not that of merged ones
        assert worst[1] > stated(moved_steps(k, 1, ADD_REMOVE))[1]


def test_merged_counters_keep_the_bound():
    rng = np.random.default_rng(4)
    for _ in range(200):
        streams = [(rng.zipf(1.5, 60) % 12).tolist() for _ in range(3)]
        first, *rest = (MisraGries.of(stream, memory=4) for stream in streams)
        merged, true = first.merge(*rest), Counter(x for stream in streams for x in stream)
        assert all(
            merged.counters.get(x, 0) * 5 <= 5 * n <= merged.counters.get(x, 0) * 5 + merged.missing
            for x, n in true.items()
        )
        assert len(merged.counters) <= 4


def test_merging_twice_is_refused():
    one = MisraGries.of("abc", memory=2)
    with pytest.raises(InputError, match="all at once"):
        one.merge(one).merge(one)
    with pytest.raises(InputError, match="no more rows"):
        one.merge(one).add("a")
    with pytest.raises(InputError, match="same memory"):
        one.merge(MisraGries(3))


# The whole release


def delta(threshold, a, b, epsilon):
    """The delta of two tables of counters at epsilon, by all outcomes: for each key hidden, or a number."""
    first, second = np.ones(1), np.ones(1)
    for key in {*a, *b}:
        x, y = a.get(key, 0), b.get(key, 0)
        at = np.arange(0, max(x, y) + 2 * threshold.threshold)
        one, two = (threshold.pmf(at, n) for n in (x, y))
        first, second = np.multiply.outer(first, one).ravel(), np.multiply.outer(second, two).ravel()
    return np.maximum(first - np.exp(float(epsilon)) * second, 0).sum()


def worst_delta(made, k, letters, longest):
    epsilon = made.threshold.guarantee(moved_steps(k, 1, ADD_REMOVE)).epsilon
    seen = {(tuple(a.steps.items()), tuple(b.steps.items())) for a, b in states(k, letters, longest)}
    pairs = [(dict(a), dict(b)) for a, b in seen if a != b]
    return max(delta(made.threshold, *pair, epsilon) for a, b in pairs for pair in ((a, b), (b, a)))


@pytest.mark.parametrize("k", [1, 2])
def test_the_release_keeps_its_promise_on_all_short_streams(k):
    made = HeavyHitterRelease.calibrated(nz.Approx(3, "1/100"), memory=k)
    assert made.guarantee() <= nz.Approx(3, "1/100", neighbours=ADD_REMOVE)
    found = worst_delta(made, k, k + 2, 6)
    assert found <= 0.01
    assert found > 0.0005  # the threshold is not far too high


@pytest.mark.parametrize(("rows", "relation"), [(2, ADD_REMOVE), (1, REPLACE)], ids=str)
def test_the_release_keeps_its_promise_for_several_rows_and_for_replaced_ones(rows, relation):
    """The hockey-stick divergence of the counters, exactly, for 150 random pairs of streams, both ways."""
    made = HeavyHitterRelease.calibrated(nz.Approx(6, "1/10"), memory=2, rows=rows, neighbours=relation)
    epsilon = made.threshold.guarantee(moved_steps(2, rows, relation)).epsilon
    rng = np.random.default_rng(8)
    for _ in range(150):
        base = rng.integers(0, 3, rng.integers(0, 6)).tolist()
        mine = [inserted(base, rng.integers(0, 3, rows).tolist(), rng) for _ in range(2)]
        streams = mine[0], base if relation is ADD_REMOVE else mine[1]
        a, b = (MisraGries.of(stream, memory=2).steps for stream in streams)
        assert max(delta(made.threshold, a, b, epsilon), delta(made.threshold, b, a, epsilon)) <= 0.1


def test_a_threshold_or_noise_that_is_too_small_is_noticed():
    from noisette.mechanisms import Threshold

    made = HeavyHitterRelease.calibrated(nz.Approx(3, "1/100"), memory=2)
    low = replace(made, threshold=Threshold(made.threshold.scale, made.threshold.threshold // 2, groups=2, weight=2))
    assert worst_delta(low, 2, 4, 6) > 0.01
    epsilon = made.threshold.guarantee(moved_steps(2, 1, ADD_REMOVE)).epsilon
    thin = Threshold(made.threshold.scale * 4 / 5, made.threshold.threshold, groups=2, weight=2, noise="truncated")
    assert delta(thin, {0: 30, 1: 40}, {0: 32, 1: 39}, epsilon) > 0.01


def test_bars_hold_for_released_and_hidden_values():
    """200 releases of a long stream; coins are fixed, so the outcome is no chance."""
    rng = np.random.default_rng(6)
    stream = (rng.zipf(1.4, 20_000) % 500).tolist()
    true, sketch = Counter(stream), MisraGries.of(stream, memory=30)
    made = HeavyHitterRelease.calibrated(nz.Approx(1, "1e-6"), memory=30)
    asked, missed, forgot = list(range(40)), 0, 0
    for _ in range(200):
        found = made(sketch)
        assert {1, 2} <= set(found.keys)
        rows = found.estimate(asked, level=0.9).to_pylist()
        missed += sum(not row["count_low"] <= true[row["key"]] <= row["count_high"] for row in rows)
        twin = replace(found, taken=-(10**9), missing=-(10**9)).estimate(found.keys, level=0.9).to_pylist()
        forgot += sum(not row["count_low"] <= true[row["key"]] <= row["count_high"] for row in twin)
    assert missed <= 0.1 * 200 * len(asked)
    assert forgot > 200  # bars of the counters' noise alone miss what was taken from them


def test_a_release_is_for_the_sketch_it_was_calibrated_for():
    made = HeavyHitterRelease.calibrated(nz.Approx(1, "1e-6"), memory=3)
    one = MisraGries.of("aab", memory=3)
    for wrong in (MisraGries.of("aab", memory=4), one.merge(one)):
        with pytest.raises(InputError, match="calibrated for"):
            made(wrong)
    with pytest.raises(InputError, match="delta"):
        HeavyHitterRelease.calibrated(nz.Pure(1), memory=3)
    with pytest.raises(InputError, match="memory"):
        MisraGries.of("a", memory=2**21)
    assert made(MisraGries(3)).keys == ()


def test_many_values_take_little_time():
    rng = np.random.default_rng(7)
    sketch = MisraGries.of(range(200_000), rng.integers(1, 50, 200_000).tolist(), memory=1000)
    assert len(sketch.counters) <= 1000
    assert sketch.total - sum(sketch.counters.values()) >= 0


def test_pictures_and_tables():
    found = HeavyHitterRelease.calibrated(nz.Approx(1, "1e-6"), memory=3)(MisraGries.of("a" * 500 + "b", memory=3))
    assert found.to_arrow().column_names == ["key", "count", "count_low", "count_high"]
    assert found.chart(note="ε = 1").title.startswith("Frequent values")
    assert "500" not in repr(MisraGries.of("a" * 500, memory=3))
