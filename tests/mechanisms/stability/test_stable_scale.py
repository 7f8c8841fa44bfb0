"""The stable scale: changes against breadth-first search, every neighbour of small tables, its bins, broken twins."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from tests.mechanisms.stability.test_stability import ADD_REMOVE, REPLACE, edges, to_alter, world, worst_delta

from noisette.errors import InputError
from noisette.mechanisms.stability.stable_scale import StableScale, _edges
from noisette.privacy import Approx, sensitivity

INNER = [0, 1, 2, 4]
VALUES = [-90, *INNER, 90]
WORLDS = {ADD_REMOVE: world(VALUES, range(1, 7), ADD_REMOVE), REPLACE: world(VALUES, [5], REPLACE)}
LARGER = world([-90, 0, 3, 90], [8, 9], REPLACE)


def spread(t):
    """The interquartile range: with s = floor(n/4) + 1, the s-th largest minus the s-th smallest."""
    s = len(t) // 4 + 1
    return sorted(t, reverse=True)[s - 1] - sorted(t)[s - 1]


@lru_cache
def cell(size, base, part):
    """All whole numbers in the same bin, by logarithms to the base."""
    if size == 0:
        return (0, 0)

    def place(v):
        return math.floor(round(math.log(v, base), 9) - part / 2)

    same = [v for v in range(1, 40 * size + 3) if place(v) == place(size)]
    return same[0], same[-1]


@pytest.mark.parametrize("base", [2, 3, 1.5])
def test_bins_are_powers_of_the_base_and_half_powers(base):
    m = StableScale(1, "1/20", base=base)
    for size in (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 27, 81, 100):
        found = [bin_ for bin_, _ in m._both([0, size])]
        assert found == [cell(size, base, part) for part in (0, 1)]


def test_edges_of_half_powers_are_exact():
    for base in (Fraction(2), Fraction(9, 8), Fraction(10)):
        for odd in (0, 1):
            found = _edges(base, odd)
            assert found == sorted(set(found))
            squares, k = set(), 0
            while base ** (2 * k + odd) < Fraction(10) ** 30:
                square = base ** (2 * k + odd)
                root = math.isqrt(math.ceil(square))
                squares.add(root if root * root >= square else root + 1)
                k += 1
            assert {e for e in found if e < 10**14} == {e for e in squares | {1} if e < 10**14}


# Changes


@pytest.mark.slow
@pytest.mark.parametrize("base", [2, 3])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_changes_are_those_of_a_search(relation, base):
    near, m = WORLDS[relation], StableScale(1, "1/50", base=base, neighbours=relation)
    exact = 0
    for part in (0, 1):
        found = to_alter(near, lambda t, part=part: cell(spread(t), base, part))
        for t in near:
            bin_, changes = m._both(t)[part]
            assert bin_ == cell(spread(t), base, part)
            assert changes <= found[t]
            if set(t) <= set(INNER) and (len(t) <= 4 or relation is REPLACE):
                assert changes == found[t]
                exact += changes > 1
    assert exact > 0


def test_changes_of_larger_tables_are_those_of_a_search():
    m = StableScale(1, "1/50", neighbours=REPLACE)
    for part in (0, 1):
        found = to_alter(LARGER, lambda t, part=part: cell(spread(t), 2, part))
        for t in LARGER:
            changes = m._both(t)[part][1]
            assert changes <= found[t]
            if set(t) <= {0, 3}:
                assert changes == found[t]


def by_trying(t, bin_, relation, most):
    """The least changes that leave the bin, by trying all numbers of moves to either side on the sorted values."""
    n, best = len(t), most
    for added in range(most + 1):
        for removed in [added] if relation is REPLACE else range(most + 1 - added):
            size = n + added - removed
            total = added if relation is REPLACE else added + removed
            if size < 1 or removed > n or total >= best:
                continue
            for out in range(added + 1):
                wide = sorted([-(10**9)] * out + list(t) + [10**9] * (added - out))
                for cut in range(size // 2 + 1):
                    kept = wide[:cut] + wide[cut + removed :]
                    if len(kept) == size and not bin_[0] <= spread(kept) <= bin_[1]:
                        best = total
            for low in range(removed + 1):
                rest = list(t)[low : n - removed + low]
                middle = rest[len(rest) // 2] if rest else 0
                for point in {middle, *rest}:
                    if not bin_[0] <= spread(sorted(rest + [point] * added)) <= bin_[1]:
                        best = min(best, total)
    return best


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_changes_of_random_tables_are_those_of_trying(relation):
    rng, m = np.random.default_rng(), StableScale(2, "1/50", neighbours=relation)
    for _ in range(25):
        n = int(rng.integers(3, 22))
        t = sorted(rng.geometric(1 / rng.integers(2, 30), n).tolist())
        for bin_, changes in m._both(t):
            assert changes == min(by_trying(t, bin_, relation, m.certain), m.certain)


# Every neighbour


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("base", [2, "5/4"])
def test_every_neighbour_keeps_the_promise_and_some_attain_it(relation, base):
    m = StableScale(1, "1/20", base=base, neighbours=relation)
    promise = m.guarantee(1)
    found = worst_delta(m.outcomes, edges(WORLDS[relation]), float(promise.epsilon))
    assert found == pytest.approx(1 - 0.95**2, rel=1e-9)
    assert found == pytest.approx(float(promise.delta), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_the_other_relation_costs_what_is_stated(relation):
    m = StableScale(1, "1/100", neighbours=relation)
    for other in (ADD_REMOVE, REPLACE):
        promise = m.guarantee(sensitivity.histogram(neighbours=other))
        assert promise.epsilon == (2 if other is relation else 4)
        assert worst_delta(m.outcomes, edges(WORLDS[other]), float(promise.epsilon)) <= float(promise.delta) * (
            1 + 1e-9
        )


@pytest.mark.slow
def test_replacements_say_less_about_additions():
    """A value that is added moves both quartiles: replacements are no 1-Lipschitz distance there."""
    m, near = StableScale(1, "1/100", neighbours=REPLACE), world([-90, 0, 90], range(1, 9), ADD_REMOVE)
    moves = [abs(m._both(a)[0][1] - m._both(b)[0][1]) for a, b in edges(near) if m._both(a)[0][0] == m._both(b)[0][0]]
    assert max(moves) <= 2
    assert worst_delta(m.outcomes, edges(near), 4.0) <= float(m.guarantee(sensitivity.histogram()).delta) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_a_change_too_many_is_convicted(relation, monkeypatch):
    m = StableScale(1, "1/20", neighbours=relation)
    right = StableScale._both
    monkeypatch.setattr(StableScale, "_both", lambda self, x: [(bin_, c + 1) for bin_, c in right(self, x)])
    assert worst_delta(m.outcomes, edges(WORLDS[relation]), 2.0) > 1.3 * float(m.guarantee(1).delta)


# What it releases


def test_what_is_released_holds_the_interquartile_range():
    values = (1000 * np.random.default_rng().standard_cauchy(3000)).astype(int)
    m = StableScale.calibrated(Approx(1, "1e-6"))
    told = [bin_ for bin_ in m(values) if bin_]
    assert told
    assert all(low <= spread(values.tolist()) <= high <= 2 * low for low, high in told)


def test_a_scale_on_an_edge_of_one_partition_is_inside_the_other():
    values = list(range(-128, 129))  # 129 of 257 values lie between the quartiles
    assert spread(values) == 128
    m = StableScale(1, "1e-6")
    assert [m(values)[1] for _ in range(5)] == [(91, 181)] * 5
    assert m._both(values)[0][1] < 5


def test_constants_and_extreme_values():
    m = StableScale(1, "1e-6")
    assert m([7] * 200) == ((0, 0), (0, 0))
    wide = [-(2**60) + 1] * 200 + [2**60 - 1] * 200
    (low, high), _ = m(wide)
    assert low <= 2**61 - 2 <= high
    assert m([5]) in [(None, None), ((0, 0), None), (None, (0, 0)), ((0, 0), (0, 0))]


def test_a_million_values():
    m = StableScale("0.1", "1e-6")
    assert m(np.arange(10**6)) == ((2**18, 2**19 - 1), (math.isqrt(2**37) + 1, math.isqrt(2**39)))


@pytest.mark.parametrize("base", [1, "17/16", 17, 0, -2, math.nan, "x", True])
def test_bad_bases_are_refused(base):
    with pytest.raises(InputError):
        StableScale(1, "1e-6", base=base)
