"""Every law on the integers, against sums of its own weights."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, pmf_fit

from noisette.errors import InputError
from noisette.laws import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase
from noisette.laws.law import half_width

LAWS = [
    (DiscreteLaplace(1), 60),
    (DiscreteLaplace("1/5"), 12),
    (DiscreteLaplace(30), 1500),
    (DiscreteGaussian("1/4"), 12),
    (DiscreteGaussian(1), 20),
    (DiscreteGaussian(50), 150),
    (DiscreteGaussian(255**2), 5000),
    (DiscreteGaussian(257**2), 5000),  # from 256 on sums become corrected integrals
    (DiscreteStaircase(1, width=1, inner=1), 60),
    (DiscreteStaircase("1/2", width=7, inner=2), 700),
    (DiscreteStaircase(5, width=10, inner=10), 120),
]


@pytest.mark.parametrize(("law", "width"), LAWS)
def test_law_is_consistent_with_its_weights(law, width):
    z = np.arange(-width, width + 1)
    p = law.pmf(z)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert np.cumsum(p) == pytest.approx(law.cdf(z), abs=1e-11)
    assert law.variance() == pytest.approx(np.sum(p * z * z), rel=1e-9)
    assert law.mean_absolute() == pytest.approx(np.sum(p * abs(z)), rel=1e-9)
    for t in (0, 1, width // 4):
        assert law.tail(t) == pytest.approx(p[abs(z) > t].sum(), rel=1e-8, abs=1e-13)
    assert np.all(p == p[::-1]), "noise must be symmetric"


@pytest.mark.parametrize(("law", "width"), LAWS)
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999])
def test_quantiles_and_half_widths_are_the_smallest(law, width, level):
    z = law.quantile(level)
    assert law.cdf(z) >= level > law.cdf(z - 1)
    t = half_width(law, level)
    assert law.tail(t) <= 1 - level
    assert t == 0 or law.tail(t - 1) > 1 - level


@pytest.mark.parametrize(("law", "width"), LAWS)
def test_samples_follow_the_law(law, width):
    array = law.sample(200_000)
    assert pmf_fit(array, law.pmf, -width, width) > ALPHA
    assert pmf_fit([law.sample() for _ in range(3000)], law.pmf, -width, width) > ALPHA


@pytest.mark.parametrize("factor", ["0.8", "1.25"])
def test_a_staircase_of_another_width_does_not_pass(factor):
    law = DiscreteStaircase(1, width=20, inner=8)
    wrong = DiscreteStaircase(1, width=int(20 * float(factor)), inner=8)
    assert pmf_fit(wrong.sample(200_000), law.pmf, -900, 900) < ALPHA


def test_the_far_tail_keeps_its_digits():
    assert DiscreteGaussian(100).tail(200) == pytest.approx(2 * sum(math.exp(-z * z / 200) for z in range(201, 400))
                                                           / math.sqrt(200 * math.pi), rel=1e-9)  # fmt: skip
    assert DiscreteLaplace(1).tail(500) == pytest.approx(2 * math.exp(-501) / (1 + math.exp(-1)), rel=1e-12)


def test_large_scales_stay_finite():
    assert DiscreteLaplace(2**60).variance() == pytest.approx(2 * 4.0**60)
    assert DiscreteGaussian(2**120).variance() == pytest.approx(4.0**60)
    assert half_width(DiscreteLaplace(2**60), 0.95) / 2**60 == pytest.approx(-math.log(0.05), rel=1e-9)


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("bad", [0, -1, math.nan, True, "1e400", 2**200])
def test_bad_parameters_are_refused(law, bad):
    with pytest.raises(InputError):
        law(bad)


def test_the_staircase_is_the_geometric_law_when_a_step_is_one_wide():
    z = np.arange(-20, 21)
    assert DiscreteStaircase(2, width=1, inner=1).pmf(z) == pytest.approx(DiscreteLaplace(Fraction(1, 2)).pmf(z))
