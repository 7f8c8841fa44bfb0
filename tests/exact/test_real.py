"""Lazily refined reals: their laws, their enclosures and exact comparisons."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gumbel_r, kstest
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

from noisette.exact.real import Gumbel, Uniform, less

F = Fraction
LARGER_BY_ONE = 1 / (1 + np.exp(-1 / 2))  # P(X + 1 > Y) at scale 2: a difference of Gumbel variables is logistic


@pytest.mark.slow
def test_the_larger_score_wins_as_in_the_exponential_mechanism():
    wins = sum(less(Gumbel(F(0), F(2)), Gumbel(F(1), F(2))) for _ in range(4000))
    counts = np.array([4000 - wins, wins])
    assert p_value(counts, [1 - LARGER_BY_ONE, LARGER_BY_ONE]) > ALPHA
    assert p_value(counts, [1 / 2, 1 / 2]) < ALPHA


@pytest.mark.slow
def test_marginals():
    draws = [float(sum(Gumbel(F(3), F(2)).bounds(64))) / 2 for _ in range(4000)]
    assert kstest(draws, gumbel_r(3, 2).cdf).pvalue > ALPHA
    assert kstest(draws, gumbel_r(3, 4).cdf).pvalue < ALPHA


@given(st.integers(1, 2**64 - 2), st.integers(-5, 5), st.sampled_from([F(1), F(7, 3)]))
def test_bounds_hold_the_variable_and_shrink(word, shift, scale):
    variable = Gumbel(F(shift), scale, Uniform(Script(word, *[12345] * 8)))
    lo, hi = variable.bounds(64)
    finer_lo, finer_hi = variable.bounds(256)
    assert lo <= finer_lo <= finer_hi <= hi
    assert finer_hi - finer_lo < F(1, 2**100)
    u = word / 2**64
    if 1e-9 < u < 1 - 1e-9:
        assert float(finer_lo) == pytest.approx(shift - float(scale) * np.log(-np.log(u)), abs=1e-5)


@pytest.mark.parametrize("word", [1, 12345 << 40, 2**63, 2**64 - 1])
def test_forced_ties_are_refined(word):
    """Equal first words tie; the second words decide, in either order."""

    def variable(second):
        return Gumbel(F(0), F(1), Uniform(Script(word, second, *[7] * 20)))

    for first, second in permutations([2**60, 2**62, 2**63 + 2**62], 2):
        values = [sum(variable(s).bounds(400)) for s in (first, second)]
        assert values[0] != values[1]
        assert less(variable(first), variable(second)) == (values[0] < values[1])


def test_extreme_words_do_not_stop_the_draw():
    zeros, ones, half = [0, 0, 5, *[9] * 20], [2**64 - 1] * 2 + [7] * 20, [2**63, 0, 0, 5, *[9] * 20]
    for script in (zeros, ones, half):
        lo, hi = Gumbel(F(0), F(1), Uniform(Script(*script))).bounds(64)
        assert lo < hi < lo + 1


def test_a_clear_comparison_takes_one_word_each():
    small, large = Gumbel(F(0), F(1), Uniform(Script(2**63))), Gumbel(F(99), F(1), Uniform(Script(2**63)))
    assert less(small, large)
    assert not less(large, small)
    assert small.uniform.known == large.uniform.known == 64
