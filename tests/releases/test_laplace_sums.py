"""Error bars of sums of Laplace variables: against closed forms, exact mixtures, and draws."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.goodness import fewest, most

from noisette.releases.laplace_sums import half_width


def tail_of_equal(count, h):
    """P(|X| > h) for 1 to 3 Laplace variables of scale 1."""
    polynomial = {1: 1, 2: 1 + h / 2, 3: 1 + 5 * h / 8 + h * h / 8}[count]
    return polynomial * math.exp(-h)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999, 1 - 1e-6])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_equal_scales_have_a_closed_form(count, level):
    exact = brentq(lambda h: tail_of_equal(count, h) - (1 - level), 0, 100, xtol=1e-12)
    assert exact <= half_width(np.ones(1), np.array([float(count)]), level) <= exact * 1.003


def test_two_scales_have_a_closed_form():
    """P(|aL + bM| > h) = (a^2 e^(-h/a) - b^2 e^(-h/b)) / (a^2 - b^2); rounding up the smaller scale costs 1 % of it."""
    a, b = 1.0, 0.3
    exact = brentq(lambda h: (a**2 * math.exp(-h / a) - b**2 * math.exp(-h / b)) / (a**2 - b**2) - 0.05, 0, 100)
    assert exact <= half_width(np.array([a, b]), np.ones(2), 0.95) <= exact * 1.005


def test_many_small_ones_are_normal():
    found = half_width(np.full(1, 0.01), np.full(1, 1e6), 0.95) / (0.01 * math.sqrt(2e6))
    assert 1.95996 <= found <= 1.95996 * 1.003


def test_units_do_not_matter_and_nothing_has_no_bar():
    scales, times = np.array([3.0, 1.0, 0.2]), np.array([1.0, 4.0, 50.0])
    assert half_width(7 * scales, times, 0.9) == pytest.approx(7 * half_width(scales, times, 0.9), rel=1e-9)
    assert half_width(np.array([]), np.array([]), 0.95) == 0


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_bars_hold_as_often_as_they_say_and_hardly_more_often(level):
    """Fails with p < 1e-11: twelve counts of 200,000 draws, each at ALPHA."""
    rng, draws = np.random.default_rng(5), 200_000
    for scales in ([1.0], [1.0, 0.5, 0.5, 0.1], [1.0] + [0.2] * 30, [0.3] * 12):
        drawn = np.sum([rng.laplace(0, scale, draws) for scale in scales], axis=0)
        half = half_width(np.array(scales), np.ones(len(scales)), level)
        assert (np.abs(drawn) > half).sum() <= most(draws, 1 - level)
        assert (np.abs(drawn) > half / 1.03).sum() >= fewest(draws, 1 - level)
