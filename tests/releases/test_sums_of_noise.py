"""Bars of linear releases: for sums of Laplace noise of any weights, whole or real, no data needed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import fewest

from noisette.mechanisms import Gaussian, Geometric
from noisette.releases.linear import Linear, peak, sum_of, widest
from noisette.releases.tree import Tree


@pytest.mark.slow
def test_estimates_are_unbiased_and_as_wide_as_they_say():
    made, x = Linear.calibrated(1, Tree(50, (16, 4, 1))), np.arange(50) * 3
    low, high = np.array([0, 5, 17, 30]), np.array([49, 5, 30, 44])
    errors = np.array([made(x).ranges(low, high) for _ in range(3000)]) - [
        x[a : b + 1].sum() for a, b in zip(low, high, strict=True)
    ]
    variances = made(x).variances(low, high)
    assert (np.abs(errors.mean(axis=0)) < 7.5 * np.sqrt(variances / 3000)).all()
    assert np.allclose(errors.var(axis=0), variances, rtol=0.35)  # 7.5 deviations of a variance of Laplace sums
    half = made(x).half_widths(low, high, 0.95)
    assert ((np.abs(errors) <= half).sum(axis=0) >= fewest(3000, 0.95)).all()


def outside(weights, t):
    """P(|sum| > t) of Laplace variables with these weights and total variance 1, by their characteristic functions."""
    scale = np.array(weights) / math.sqrt(2 * np.square(weights).sum())
    angle = np.linspace(0, 1000, 500_001)[1:]
    phi = (
        np.exp(-np.log1p(np.square(np.outer(angle, scale))).sum(axis=1))
        if len(scale) < 4
        else np.exp(-sum(np.log1p(np.square(angle * one)) for one in scale))
    )
    inside = (
        2 / np.pi * ((np.sin(angle * t) / angle * phi).sum() * (angle[1] - angle[0]) + t * (angle[1] - angle[0]) / 2)
    )
    return 1 - inside


@pytest.mark.slow
@pytest.mark.parametrize("weights", [[1, 1], [3, 1], [1] * 5, [5, 1, 1, 1, 1], [2, 2, 1], [1] * 30])
def test_no_mixture_of_laplace_noises_is_wider_than_the_bound(weights):
    for level in (0.8, 0.9, 0.95, 0.99):
        found = outside(weights, widest(Geometric(1000), level))
        assert found <= (1 - level) * (1 + 1e-3)
        assert found > (1 - level) * 0.1  # and it is not far too wide


def test_the_bound_is_at_most_six_per_cent_above_what_one_or_many_need():
    for level in (0.8, 0.9, 0.95, 0.99, 1 - 1e-6):
        alone = -math.log(1 - level) / math.sqrt(2)
        needed = max(alone, widest(Gaussian(1), level))
        assert needed <= widest(Geometric(1000), level) < 1.06 * needed


def tail(scales, counts, t):
    """P(|sum| > t) of two-sided geometric variables, by convolution."""
    pmf = np.ones(1)
    for scale, count in zip(scales, counts, strict=True):
        reach = int(45 * scale) + 5
        law = Geometric(Fraction(scale)).pmf(np.arange(-reach, reach + 1), 0)
        for _ in range(count):
            pmf = np.convolve(pmf, law)
    middle = len(pmf) // 2
    inside = math.floor(t + 1e-9)
    return pmf[: middle - inside].sum() + pmf[middle + inside + 1 :].sum()


@pytest.mark.parametrize(
    ("scales", "counts"), [((1,), (1,)), ((0.3,), (4,)), ((2, 5), (3, 1)), ((0.5, 3), (6, 2)), ((4,), (12,))]
)
def test_sums_of_whole_noise_stay_within_their_bound(scales, counts):
    noises = [Geometric(Fraction(scale)) for scale in scales]
    for fails in (0.2, 0.05, 0.01):
        t = sum_of(noises, np.array([counts], float), fails)[0]
        assert tail(scales, counts, t) <= fails
        assert max(scales) < 2 or tail(scales, counts, 0.5 * t) > fails  # half of it would not do


def test_whole_noise_with_a_uniform_part_is_more_peaked_than_its_laplace_variable():
    for scale in (0.2, 0.5, 1.0, 3.0, 20.0):
        a, b = math.exp(-1 / scale), peak(Geometric(Fraction(scale)))
        t = np.linspace(0, 30 * scale + 5, 5000)
        k = np.floor(t + 0.5)
        at, after = (2 * a**j / (1 + a) for j in (k, k + 1))
        at = np.where(k == 0, 1.0, at)
        start = np.where(k == 0, 0.0, k - 0.5)
        beyond = at + (after - at) * (t - start) / np.where(k == 0, 0.5, 1.0)
        assert (beyond <= np.exp(-t / b) + 1e-12).all()
