"""The discrete Gaussian by blocks: walls, forced tails, and coins that are too close to call."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import goodness
from tests.goodness import ALPHA
from tests.tapes import Forced, Script, exp
from tests.timing import within

from noisette.exact import gaussian_arrays
from noisette.exact.gaussian_arrays import GaussianTable, coins_exp
from noisette.exact.random import SYSTEM

F = Fraction
ONES = 2**64 - 1


def near(block, width):
    return block * width if block >= 0 else (block + 1) * width - 1


@pytest.mark.parametrize("s2", ["1/10", "1", "100"])
def test_walls_of_the_table(s2):
    table = GaussianTable(F(s2)).table
    reach = range(-math.isqrt(int(400 * F(s2))) - 20, math.isqrt(int(400 * F(s2))) + 21)
    weight = {z: exp(-z * z / (2 * F(s2))) for z in reach}
    total = sum(weight.values())
    running = sum(weight[z] for z in reach if z < table.first)
    for i in range(table.last):
        running += weight[table.first + i]
        assert table.cuts[i] == math.floor(running / total * 2**64)


@pytest.mark.parametrize("s2", [1025**2, 4097**2, 2**80, 2**120])
def test_wide_laws_have_few_blocks_that_are_almost_always_kept(s2):
    law = GaussianTable(F(s2))
    assert 256 <= math.isqrt(s2) >> law.shift < 1024
    assert law.surely / 2**32 > 1 - 6 / 256 - 2**-20 - law.table.last / 2 * 4**law.shift / s2


@pytest.mark.slow
@pytest.mark.parametrize("s2", ["9", "100", str(4097**2)])
def test_forced_tails_follow_the_rest_of_the_law(s2):
    law = GaussianTable(F(s2))
    width = 1 << law.shift
    for bit in (0, 1):
        far = law.table.fill(np.zeros(5000, np.int64), Forced(bit))
        assert len(far) == 5000
        edge = law.table.first + (law.table.last if bit else 0)
        steps = np.array([abs(c - edge) for c in far.values()])
        outward = 1 if bit else -1
        exponents = [(near(edge, width) ** 2 - near(edge + outward * w, width) ** 2) / (2 * F(s2)) for w in range(4000)]
        weights = np.exp(np.array([float(e) for e in exponents]))
        chances = weights / weights.sum()
        counts = np.bincount(steps, minlength=4000)
        assert goodness.p_value(counts, chances) > ALPHA
        assert goodness.p_value(np.roll(counts, 1), chances) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("s2", ["1/2", "100", str(1025**2), str(2**80)])
def test_one_by_one_is_the_same_law(s2):
    law = GaussianTable(F(s2))
    draws = np.array([law.one(SYSTEM) for _ in range(10_000)])
    edges = goodness.integers(5 * float(F(s2)) ** 0.5)
    assert goodness.fit(draws, goodness.gaussian(F(s2)), edges) > ALPHA
    assert goodness.fit(draws, goodness.gaussian(F(s2) * F(25, 16)), edges) < ALPHA


def test_place_within_a_block_is_kept_with_the_ratio_of_weights():
    """A block far out is steep enough for its two ends to differ."""
    law = GaussianTable(F(1025**2))
    assert law.shift == 2
    assert [law._exponent(4 * 900 + place, place) for place in range(4)] == [
        F((3600 + place) ** 2 - 3600**2, 2 * 1025**2) for place in range(4)
    ]
    assert law._exponent(-3603, 2) == F(3603**2 - 3601**2, 2 * 1025**2)


def reached(block, place, coin):
    """Fill one entry with a chosen block, place and coin; None if it was not kept."""
    law = GaussianTable(F(2**40))
    out = np.array([block])
    dropped = law._fill_places(out, Script(place << (64 - law.shift), coin))
    return None if dropped.size else int(out[0])


@pytest.mark.parametrize("block", [0, 1, 900, -1, -2, -900])
def test_fill_decides_like_exact_arithmetic(block):
    law = GaussianTable(F(2**40))
    width = 1 << law.shift
    for place in (0, 1, width // 2, width - 1):
        y = block * width + place
        ratio = exp(F(near(block, width) ** 2 - y * y, 2 * 2**40))
        wall = math.floor(ratio * 2**32)
        assert reached(block, place, max(wall - 1, 0)) == y
        if wall + 1 < 2**32:
            assert reached(block, place, wall + 1) is None


RATES = st.builds(F, st.integers(1, 40 * 10**6), st.just(10**6)) | st.builds(F, st.integers(1, 1000), st.just(10**12))


@given(RATES)
def test_coins_are_exact_around_their_wall(g):
    scaled = math.floor(exp(-g) * 2**96)
    wall, more = scaled >> 64, scaled & ONES

    def kept(coin, *numbers):
        return bool(coins_exp(np.array([coin], np.uint32), np.array([float(g)]), lambda i: g, Script(*numbers))[0])

    for coin in range(max(0, wall - 3), min(wall + 4, 2**32)):
        if coin != wall:
            assert kept(coin, 1) == (coin < wall)
    if 0 < more < ONES:
        assert kept(wall, more - 1)
        assert not kept(wall, more + 1)


@pytest.mark.parametrize("sigma2", ["1/1000", "1e-9"])
def test_tiny_sigmas_are_quick(sigma2):
    with within(120):
        law = GaussianTable(F(sigma2))
        assert {law.one(SYSTEM) for _ in range(100)} == {0}


def test_weights_are_as_close_as_they_say():
    for offset in (0, 1):
        for j, weight in enumerate(gaussian_arrays._gaussian_weights(F(50), 1, offset, 112)):
            assert abs(exp(-F((j + offset) ** 2, 100)) * 2**112 - weight) <= 4 * (j + 1) ** 2
