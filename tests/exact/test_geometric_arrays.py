"""Geometric variables by digits: ties against a high-precision law, forced tails, tiny scales."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests import goodness
from tests.goodness import ALPHA
from tests.tapes import Forced, Script, exp
from tests.timing import within

from noisette.exact import geometric_arrays, samplers
from noisette.exact.geometric_arrays import GeometricTable
from noisette.exact.lookup_table import TAIL_BITS
from noisette.exact.random import SYSTEM

F = Fraction
ONES = 2**64 - 1


def top_below(scale, shift):
    """P(H < h) of the top digit H = z >> shift of a discrete Laplace variable."""
    q = exp(-1 / F(scale))
    tail = lambda h: exp(-abs(h) * F(1 << shift) / F(scale)) / (1 + q)  # noqa: E731
    return lambda h: 1 - tail(h) if h > 0 else q * tail(h)


@pytest.mark.parametrize("scale", ["1/3", "1", "40", "41", "1000", str(2**40)])
def test_ties_of_the_top_digit_are_resolved_by_the_law(scale):
    law = GeometricTable(F(scale), two_sided=True)
    below = top_below(scale, law.shift)
    for h in {-3, -1, 0, 1, 2} & set(range(law.top.first + 2, law.top.first + law.top.last - 1)):
        scaled = math.floor(below(h) * 2**128)
        word, more = scaled >> 64, scaled & ONES
        assert law.top.cuts[h - 1 - law.top.first] == word
        for shift, value in ((-1, h - 1), (1, h)):
            assert law.top.one(Script(word, more + shift)) == value


@pytest.mark.parametrize("scale", [41, 1000, 2**20, 2**60])
def test_the_middle_digit_has_its_law(scale):
    law = GeometricTable(F(scale), two_sided=False)
    base, rate = 1 << law.middle_bits, F(1 << law.low_bits, scale)
    whole = 1 - exp(-base * rate)
    walls = [math.floor((1 - exp(-rate * d)) / whole * 2**64) for d in range(1, base)]
    assert law.middle.cuts == [*walls, ONES]


@pytest.mark.slow
def test_low_places_have_their_law():
    """The rejection is made frequent: a law whose low places reach as far as its scale."""
    law = GeometricTable(F(2**20), two_sided=False)
    law.scale, law.low_bits, law.surely = F(100), 8, 0
    places = np.empty(20_000, np.int64)
    law._fill_low(places, SYSTEM)
    weights = np.exp(-np.arange(256) / 100)
    alone = [samplers.retry(law._attempt_low, SYSTEM) for _ in range(20_000)]
    for drawn in (places, alone):
        assert goodness.p_value(np.bincount(drawn, minlength=256), weights / weights.sum()) > ALPHA
        assert goodness.p_value(np.bincount(drawn, minlength=256), np.full(256, 1 / 256)) < ALPHA


@pytest.mark.parametrize("scale", [2**17, 10**9, 2**60])
def test_low_places_are_kept_at_once_only_if_that_is_sure(scale):
    law = GeometricTable(F(scale), two_sided=True)
    assert law.low_bits > 0
    assert 1 - F(1, 100) < F(law.surely, 2**32) <= exp(-F((1 << law.low_bits) - 1, scale))


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("scale", ["1/3", "1", "10", "40", "1000", str(2**60)])
def test_tables_end_where_little_is_left(scale, two_sided):
    top = GeometricTable(F(scale), two_sided=two_sided).top
    ends = [ONES - top.cuts[-2]] + [top.cuts[0]] * two_sided
    assert all(end <= 2 ** (64 - TAIL_BITS) for end in ends)
    assert (top.first == 0) != two_sided


@pytest.mark.slow
@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("scale", ["1/3", "10", "1000"])
def test_forced_tails_begin_anew(scale, two_sided):
    law = GeometricTable(F(scale), two_sided=two_sided)
    rate = F(1 << law.shift) / F(scale)
    below = goodness.geometric(1 / rate)
    edges = np.arange(1, math.ceil(12 / rate) + 2)
    for bit in (0, 1) if two_sided else (1,):
        out = np.zeros(10_000, np.int64)
        far = law.fill(out, Forced(bit))
        assert len(far) == 10_000
        top = np.array([far[i] >> law.shift for i in range(10_000)])
        beyond = top - (law.top.first + law.top.last) if bit else law.top.first - top
        assert goodness.fit(beyond, below, edges) > ALPHA
        assert goodness.fit(beyond + 1, below, edges) < ALPHA
        assert goodness.fit(np.zeros_like(beyond), below, edges) < ALPHA or rate >= 3  # a tail that is cut


def test_one_sided_law_has_nothing_below_zero():
    law = GeometricTable(F(10), two_sided=False)
    out = np.ones(100, np.int64)
    far = law.fill(out, Forced(0))
    assert {far.get(i, int(out[i])) for i in range(100)} == {0}


def test_draws_beyond_int64_keep_all_their_digits():
    law = GeometricTable(F(2**60), two_sided=True)
    out = np.zeros(50, np.int64)
    far = law.fill(out, Forced(1))
    assert len(far) == 50
    middle = (1 << law.middle_bits) - 1
    assert all(z >> law.low_bits & middle == middle for z in far.values())  # which was forced
    assert min(far.values()) >> law.shift >= law.top.last + law.top.first
    assert max(far.values()) > 2**63


@pytest.mark.slow
@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("scale", ["3/2", "1000", str(2**33)])
def test_one_by_one_is_the_same_law(scale, two_sided):
    law = GeometricTable(F(scale), two_sided=two_sided)
    below = (goodness.laplace if two_sided else goodness.geometric)(F(scale))
    draws = [law.one(SYSTEM) for _ in range(20_000)]
    edges = goodness.integers(9 * float(F(scale)))
    assert goodness.fit(draws, below, edges) > ALPHA
    assert goodness.fit(np.array(draws) // 2, below, edges) < ALPHA


@pytest.mark.parametrize("scale", ["1/50", "1/5000", "1e-9"])
def test_tiny_scales_are_quick(scale):
    """Their noise is zero except with a probability below 2^-64."""
    out = np.ones(1000, np.int64)
    with within(120):
        far = GeometricTable(F(scale), two_sided=True).fill(out, SYSTEM)
    assert set(out.tolist()) | set(far.values()) == {0}


def test_powers_are_as_close_as_they_say():
    for rate in (F(1, 2**50), F(1, 24), F(3)):
        for j, power in enumerate(geometric_arrays._powers(rate, 40, 112)):
            assert 0 <= exp(-rate * j) * 2**112 - power <= 2 * j + 2
