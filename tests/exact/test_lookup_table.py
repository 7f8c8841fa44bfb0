"""A table draws the atom whose cell holds the uniform, decided to the last digit."""

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value, pmf_fit
from tests.tapes import Forced, Script

from noisette.exact import lookup_table as module
from noisette.exact.lookup_table import CELLS, LookupTable
from noisette.exact.random import SYSTEM

F = Fraction
ONES = 2**64 - 1


def distribution(weights):
    return [F(w, sum(weights)) for w in accumulate(weights)]


def cumulative(points):
    """Enclose all but the last point; points with finitely many binary places are given exactly."""
    error = int(any(point.denominator & (point.denominator - 1) for point in points))
    return lambda bits: ([math.floor(point * 2**bits) for point in points[:-1]], error)


def table_of(weights, first=0, tail=None):
    return LookupTable(cumulative(distribution(weights)), first, tail)


def drawn(table, word, *more):
    """Draw one value from the bits of a 64-bit word (and of more), in each of the three ways."""
    values = {table.one(Script(word, *more))}
    for few, coins in ((2, (word,)), (0, (word >> 48, word << 16 & ONES))):
        out = np.empty(1, np.int64)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_FEW", few)
            far = table.fill(out, Script(*coins, *more))
        values.add(far.get(0, int(out[0])))
    assert len(values) == 1
    return values.pop()


# An odd sum makes every point an infinite binary fraction, a power of two makes every point a finite one.
ODD = st.lists(st.integers(1, 10**6) | st.integers(1, 3), min_size=2, max_size=40).map(
    lambda w: [*w, 1] if sum(w) % 2 == 0 else w
)
DYADIC = st.lists(st.integers(1, 50), min_size=1, max_size=20).map(lambda w: [*w, (1 << sum(w).bit_length()) - sum(w)])


@pytest.mark.slow
@settings(max_examples=40)
@given(ODD | DYADIC, st.integers(-9, 9), st.integers(0, ONES))
def test_every_wall_parts_its_two_atoms(weights, first, more):
    points = distribution(weights)
    table = table_of(weights, first)
    assert table.cuts == [*(math.floor(point * 2**64) for point in points[:-1]), ONES]
    for wall in {0, ONES, *table.cuts, *(cut >> 48 << 48 for cut in table.cuts)}:
        for word in {max(wall - 1, 0), wall, min(wall + 1, ONES)}:
            u = F(word << 64 | more, 2**128)
            assert drawn(table, word, more, ONES) == first + min(bisect_right(points, u), len(points) - 1)


@pytest.mark.parametrize("weights", [(1, 2), (1, 1, 1), (3, 10**12, 4), (1, 10**25, 1, 1)])
def test_ties_are_resolved_by_further_digits(weights):
    points = distribution(weights)
    table = table_of(weights)
    for i, point in enumerate(points[:-1]):
        scaled = math.floor(point * 2**192)
        first, second, third = scaled >> 128, scaled >> 64 & ONES, scaled & ONES
        later = bisect_right(points, F(scaled + 2, 2**192))
        assert drawn(table, first, second, third - 1, 0) == min(i, bisect_right(points, F(scaled - 1, 2**192)))
        assert drawn(table, first, second, third + 1, 0) == later
        assert later > i


def test_the_very_last_uniform_is_the_last_atom():
    assert drawn(table_of([1, 2, 4]), ONES) == 2
    assert drawn(table_of([1, 2, 4]), 0) == 0


def test_atoms_thinner_than_the_64_bit_grid_are_reached_only_through_ties():
    table = table_of([2**64, 1, 1, 2**64 - 1])  # an odd sum; two atoms between equal cuts
    points = distribution([2**64, 1, 1, 2**64 - 1])
    inner = math.floor((points[0] + points[1]) / 2 * 2**128)
    assert drawn(table, inner >> 64, inner & ONES, 0) == 1
    inner = math.floor((points[1] + points[2]) / 2 * 2**128)
    assert drawn(table, inner >> 64, inner & ONES, 0) == 2


def test_end_atoms_ask_the_tail_and_inner_atoms_do_not():
    weights = [1, 2**40, 2**41, 2]
    table = table_of(weights, -2, lambda upper, rng: 1000 if upper else -1000)
    assert [drawn(table, word) for word in (0, 2**62, 2**63, ONES)] == [-1000, -1, 0, 1000]


@pytest.mark.parametrize("few", [0, 5])
@pytest.mark.parametrize(("bit", "value"), [(0, -77), (1, 77)])
def test_draws_from_beyond_the_ends_are_left_apart(bit, value, few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    table = table_of([1, 2**40, 1], -1, lambda upper, rng: 77 if upper else -77)
    out = np.full(5, 9)
    assert table.fill(out, Forced(bit)) == dict.fromkeys(range(5), value)
    assert out.tolist() == [0] * 5


@pytest.mark.parametrize("first", [0, -5, 40_000, -(2**15), 2**15 - 4])
def test_draws_follow_the_weights_wherever_they_begin(first):
    weights = [5, 1, 0, 10, 3]
    table = table_of(weights, first)
    out = np.empty(100_000, np.int64)
    assert table.fill(out, SYSTEM) == {}
    assert p_value(np.bincount(out - first, minlength=5), np.array(weights) / 19) > ALPHA
    assert table.fill(out[:2000], SYSTEM) == {}
    assert p_value(np.bincount(out[:2000] - first, minlength=5), np.array(weights) / 19) > ALPHA
    ones = [table.one(SYSTEM) - first for _ in range(10_000)]
    assert p_value(np.bincount(ones, minlength=5), np.array(weights) / 19) > ALPHA


def test_a_crowded_cell_holds_many_atoms():
    weights = [10**12, *range(1, 1001), 10**12]
    table = table_of(weights)
    _, value, crowded = table._cells
    assert (value == crowded).sum() < 5
    for u in range(0, 1001, 37):
        middle = F(10**12 + sum(range(u + 1)), sum(weights)) + F(1, 4 * sum(weights))
        assert drawn(table, math.floor(middle * 2**64)) == u + 1


def test_a_table_whose_tail_is_cut_does_not_fit():
    def half(z):
        return 0.5 ** (z + 1)

    out = np.empty(100_000, np.int64)
    table_of([2**i for i in reversed(range(12))]).fill(out, SYSTEM)
    assert pmf_fit(out, lambda z: half(z) * 4096 / 4095, 0, 11) > ALPHA
    table_of([2**i for i in reversed(range(8))]).fill(out, SYSTEM)
    assert pmf_fit(out, half, 0, 40) < ALPHA


def test_cells_that_hold_no_wall_are_decided_at_once():
    _, value, crowded = table_of([1, 2])._cells
    assert (value == crowded).sum() == 2  # the cell of the wall, and the last
    assert (value[: CELLS // 3] == 0).all()
    assert (value[CELLS // 3 + 1 : -1] == 1).all()
