"""Lazily refined reals: exact comparisons, right laws, ties never decided by position."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import expon, gumbel_r, kstest, laplace
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

from noisette.errors import InputError
from noisette.exact import real
from noisette.exact.real import Exponential, Gumbel, Laplace, Uniform

F = Fraction
KINDS = [Exponential, Gumbel, Laplace]
EXPONENTIAL_MECHANISM = [0.1863237232258476, 0.3071958857184984, 0.506480391055654]
PERMUTE_AND_FLIP = [0.14675136056098287, 0.2660769698315784, 0.5871716696074387]


def winners(kind, scale, count):
    draws = [real.argmax([kind(F(score), F(scale)) for score in (0, 1, 2)]) for _ in range(count)]
    return np.bincount(draws, minlength=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "law", "count"), [(Gumbel, EXPONENTIAL_MECHANISM, 4000), (Exponential, PERMUTE_AND_FLIP, 8000)]
)
def test_the_noisy_maximum_follows_its_mechanism(kind, law, count):
    counts = winners(kind, 2, count)
    assert p_value(counts, law) > ALPHA
    assert p_value(counts, [1 / 3] * 3) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "law"), [(Exponential, expon), (Gumbel, gumbel_r), (Laplace, laplace)])
def test_marginals(kind, law):
    draws = [float(sum(kind(F(3), F(2)).bounds(64))) / 2 for _ in range(4000)]
    assert kstest(draws, law(3, 2).cdf).pvalue > ALPHA
    assert kstest(draws, law(3, 4).cdf).pvalue < ALPHA


def quantile(kind, u):
    """The standard variable's value at a uniform u, in floats."""
    if kind is Laplace:
        return np.log(2 * u) if u < 0.5 else -np.log(2 * u - 1)
    return -np.log(u) if kind is Exponential else -np.log(-np.log(u))


@given(st.sampled_from(KINDS), st.integers(1, 2**64 - 2), st.integers(-5, 5), st.sampled_from([F(1), F(7, 3)]))
def test_bounds_hold_the_variable_and_shrink(kind, word, shift, scale):
    variable = kind(F(shift), scale, Uniform(Script(word, *[12345] * 8)))
    lo, hi = variable.bounds(64)
    finer_lo, finer_hi = variable.bounds(256)
    assert lo <= finer_lo <= finer_hi <= hi
    assert finer_hi - finer_lo < F(1, 2**100)
    u = word / 2**64
    if 1e-9 < u < 1 - 1e-9 and abs(u - 0.5) > 1e-9:
        assert float(finer_lo) == pytest.approx(shift + float(scale) * quantile(kind, u), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", [1, 12345 << 40, 2**63, 2**64 - 1])
def test_forced_ties_are_refined(kind, word):
    """Equal first words tie; the second words decide, wherever the candidates stand."""
    for seconds in permutations([2**60, 2**62, 2**63 + 2**62]):
        candidates = [kind(F(0), F(1), Uniform(Script(word, second, *[7] * 20))) for second in seconds]
        values = [sum(kind(F(0), F(1), Uniform(Script(word, s, *[7] * 20))).bounds(400)) for s in seconds]
        assert len(set(values)) == 3
        assert real.argmax(candidates) == values.index(max(values))


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_words_do_not_stop_the_draw(kind):
    zeros, ones, half = [0, 0, 5, *[9] * 20], [2**64 - 1] * 2 + [7] * 20, [2**63, 0, 0, 5, *[9] * 20]
    for script in (zeros, ones, half):
        lo, hi = kind(F(0), F(1), Uniform(Script(*script))).bounds(64)
        assert lo < hi < lo + 1


def test_losers_are_not_refined():
    loser = Exponential(F(0), F(1), Uniform(Script(2**63)))
    assert real.argmax([loser, *(Exponential(F(99), F(1), Uniform(Script(5, w, *[3] * 8))) for w in (4, 8))]) == 1
    assert loser.uniform.known == 64


def test_less_agrees_with_argmax():
    small, large = (Exponential(F(shift), F(1)) for shift in (0, 1000))
    assert real.less(small, large)
    assert not real.less(large, small)


def test_one_candidate_wins_and_none_is_refused():
    assert real.argmax([Gumbel(F(0), F(1))]) == 0
    with pytest.raises(InputError, match="non-empty"):
        real.argmax([])
