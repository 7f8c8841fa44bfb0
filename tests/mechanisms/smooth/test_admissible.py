"""Noise whose size follows the data: losses by search over all pairs of sizes and shifts, tails by quadrature."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisette.errors import InputError
from noisette.mechanisms.smooth.admissible import (
    FREEDOM,
    exact_tail,
    laplace_delta,
    largest_share,
    near_tail,
    student_epsilon,
    tail,
)

NOISES = ["cauchy", "student", "laplace"]
PARTS = np.linspace(-1, 1, 9)


def log_density(freedom, z, centre, scale):
    return -np.log(scale) - (freedom + 1) / 2 * np.log1p(((z - centre) / scale) ** 2 / freedom)


def searched(freedom, beta, s, parts=PARTS, shifts=(0, 0.5, 1)):
    """The largest loss over a grid of outputs, for sizes within e^beta and shifts up to s times the smaller one."""
    z = np.concatenate([-np.logspace(-4, 5, 40_001), np.logspace(-4, 5, 40_001)])
    return max(
        np.abs(log_density(freedom, z, 0, 1) - log_density(freedom, z, shift * s * min(1, r), r)).max()
        for r, shift in itertools.product(np.exp(beta * parts), shifts)
    )


@pytest.mark.parametrize("freedom", [1, 3])
@pytest.mark.parametrize(("beta", "s"), [(0.3, 0.7), (0.1, 0.1), (0.02, 2), (1, 0.3), (0.5, 4), (1e-4, 1e-3)])
def test_student_noise_costs_what_a_search_finds(freedom, beta, s):
    stated = float(student_epsilon(freedom, Fraction(beta), Fraction(s)))
    assert searched(freedom, beta, s) == pytest.approx(stated, rel=1e-4)
    assert stated <= freedom * beta + s * (freedom + 1) / (2 * math.sqrt(freedom))  # what is usually stated


@pytest.mark.slow
def test_forgotten_sizes_and_forgotten_shifts_are_convicted():
    for freedom, (beta, s) in itertools.product((1, 3), [(0.3, 0.4), (0.5, 0.2)]):
        true = searched(freedom, beta, s)
        assert true > float(student_epsilon(freedom, Fraction(0), Fraction(s))) * 1.01
        assert true > float(student_epsilon(freedom, Fraction(beta), Fraction(0))) * 1.01


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_cauchy_noise_takes_a_beta_for_nothing(epsilon):
    s, beta = 2 * math.sinh(epsilon / 2), math.log(2 * math.cosh(epsilon) - 1)
    for part in (0, 0.5, 1):
        assert float(student_epsilon(1, Fraction(part * beta), Fraction(s))) == pytest.approx(epsilon, rel=1e-9)
        assert searched(1, part * beta, s) == pytest.approx(epsilon, rel=1e-4)
    assert float(student_epsilon(1, Fraction(1.01 * beta), Fraction(s))) > epsilon * (1 + 1e-5)


def divergence(epsilon, r, shift):
    """delta at an epsilon of Lap(0, 1) from Lap(shift, r), by quadrature between all kinks."""

    def gap(z):
        return math.exp(-abs(z)) / 2 - math.exp(epsilon - abs(z - shift) / r) / (2 * r)

    z = np.linspace(-60, 60, 600_001)
    gaps = np.exp(-np.abs(z)) / 2 - np.exp(epsilon - np.abs(z - shift) / r) / (2 * r)
    assert gap(1.0) == pytest.approx(float(np.interp(1.0, z, gaps)), abs=1e-6)
    above = np.maximum(gaps, 0)
    return float((above[1:] + above[:-1]).sum() * (z[1] - z[0]) / 2)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "beta", "s"), [(1, 0.1, 0.5), (1, 0.0345, 0.5), (0.3, 0.02, 0.2), (3, 0.5, 2)])
def test_laplace_noise_costs_what_quadrature_finds(epsilon, beta, s):
    stated = float(laplace_delta(*map(Fraction, (epsilon, beta, s))))
    worst = divergence(epsilon, math.exp(-beta), s * math.exp(-beta))
    assert worst == pytest.approx(stated, rel=1e-3)
    for r, shift in itertools.product(np.exp(beta * PARTS), (0, 0.5, 1)):
        assert divergence(epsilon, r, shift * s * min(1, r)) <= stated * 1.001 + 1e-12


def test_the_first_papers_constants_waste_most_of_delta():
    beta = Fraction(1 / (2 * math.log(2e6)))
    assert float(laplace_delta(Fraction(1), beta, Fraction(1, 2))) == pytest.approx(4.06e-9, rel=0.01)
    assert float(largest_share("laplace", Fraction(1), Fraction(1, 10**6), beta)) == pytest.approx(0.693, abs=1e-3)


def test_where_nothing_is_known_laplace_noise_is_refused():
    assert laplace_delta(Fraction(1), Fraction(1, 10), Fraction(2)) == 1
    assert laplace_delta(Fraction(1), Fraction(1, 2), Fraction(99, 100)) == 1
    for noise, delta in (("student", 0), ("laplace", Fraction(1, 10**6))):
        with pytest.raises(InputError, match="beta must be smaller"):
            largest_share(noise, Fraction(1), Fraction(delta), Fraction(2))


@given(st.sampled_from(NOISES), st.floats(0.001, 50), st.floats(0.01, 0.3))
def test_the_largest_share_is_kept_and_a_larger_one_is_not(noise, epsilon, part):
    if noise == "laplace":
        part = min(part, 0.15 / epsilon)
    e, beta, delta = Fraction(epsilon), Fraction(epsilon * part), Fraction(noise == "laplace", 100)
    s = largest_share(noise, e, delta, beta)

    def kept(share):
        if noise == "laplace":
            return laplace_delta(e, beta, share) <= delta
        return student_epsilon(FREEDOM[noise], beta, share) <= e

    assert kept(s)
    assert not kept(s * Fraction(1001, 1000))


# Tails


def by_quadrature(noise, z):
    with mpmath.workdps(50):
        if noise == "laplace":
            return mpmath.exp(-mpmath.mpf(z)) / 2
        d = FREEDOM[noise]
        scale = mpmath.gamma(mpmath.mpf(d + 1) / 2) / mpmath.sqrt(d * mpmath.pi) / mpmath.gamma(mpmath.mpf(d) / 2)
        v = mpmath.mpf(1) / (1 + mpmath.mpf(z))  # t = 1/v - 1 maps [z, oo) to (0, v]
        return scale * mpmath.quad(lambda w: (1 + (1 / w - 1) ** 2 / d) ** (-mpmath.mpf(d + 1) / 2) / w**2, [0, v])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("z", [0, 0.001, 0.5, 1, 6.9, 7, 50, 300])
def test_tails_are_those_of_the_density(noise, z):
    true = by_quadrature(noise, z)
    assert near_tail(noise, float(z)) == pytest.approx(float(true), rel=1e-12)
    assert tail(noise, np.array([z, z], float)).tolist() == [near_tail(noise, float(z))] * 2
    lo, hi = exact_tail(noise, lambda mp: mp.mpf(z), 100)
    with mpmath.workdps(50):
        assert mpmath.mpf(lo.numerator) / lo.denominator <= true <= mpmath.mpf(hi.numerator) / hi.denominator
    assert hi - lo < Fraction(1, 1 << 100)


@pytest.mark.parametrize("noise", NOISES)
def test_far_tails_do_not_cancel(noise):
    z = 1e7
    expected = {"cauchy": 1 / math.pi / z, "student": 2 / math.pi * math.sqrt(3) / z**3, "laplace": 0.0}[noise]
    assert near_tail(noise, z) == pytest.approx(expected, rel=1e-6)
