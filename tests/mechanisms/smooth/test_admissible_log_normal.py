"""Laplace noise of log-normal size: Rényi divergences and every step of their proof by quadrature, tails, draws."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.tapes import Script

from noisette.errors import InputError
from noisette.mechanisms.smooth.admissible import largest_share
from noisette.mechanisms.smooth.log_normal import log_normal_rho, log_normal_tail, rounded_log_normal, usual_sigma

STEP = 0.1
MOST = 60  # beyond that many deviations of Y nothing counts, up to orders of about 40
Y = np.arange(-20, MOST + 20, STEP)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
ORDERS = [1.001, 1.1, 1.5, 2, 3, 5, 10, 20, 40]


def added(logs, axis=-1):
    top = logs.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(logs - top).sum(axis=axis))


def log_density(z, sigma):
    """ln of the density of X e^(sigma Y), by a sum over Y."""
    base = -(Y**2) / 2 - sigma * Y + math.log(STEP / 2 / math.sqrt(2 * math.pi))
    return added(base - np.abs(z)[:, None] * np.exp(-sigma * Y))


class Pair:
    """The laws of Z and e^b Z + s min(1, e^b), on points with weights: between the kinks, and far to both sides."""

    def __init__(self, sigma, b, s):
        self.sigma, self.b, self.shift = sigma, b, s * min(1, math.exp(b))
        w = np.arange(-16, MOST * sigma + math.log(MOST / sigma), 0.08)
        between = self.shift * (1 + NODES) / 2
        self.z = np.concatenate([-np.exp(w), between, self.shift + np.exp(w)])
        self.log_weight = np.log(np.concatenate([0.08 * np.exp(w), self.shift * WEIGHTS / 2, 0.08 * np.exp(w)]))
        self.p = log_density(self.z, sigma)
        self.middle = log_density(self.z / math.exp(b), sigma) - b  # dilated, not yet shifted
        self.q = log_density((self.z - self.shift) / math.exp(b), sigma) - b

    def divergence(self, order):
        return added(order * self.p + (1 - order) * self.q + self.log_weight) / (order - 1)

    def mean_loss(self, order):
        """Of the shift, under the law proportional to P^a times the dilated law^(1 - a)."""
        tilted = order * self.p + (1 - order) * self.middle + self.log_weight
        return float(np.exp(tilted - added(tilted)) @ (self.middle - self.q))

    def largest_rho(self, orders=ORDERS):
        return max(self.divergence(a) / a for a in orders)


GRID = [
    (0.1, 0.1, 0.95), (0.1, 0.1, 0.1), (0.2, 0.05, 0.3), (0.3, 0.3, 0.8), (0.3, 0.1, 3), (0.5, 0.25, 0.1),
    (0.6, 0.5, 0.5), (0.05, 0.05, 1), (1, 0.7, 0.2),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "beta", "s"), GRID)
def test_divergences_of_all_orders_stay_below_rho(sigma, beta, s):
    rho = log_normal_rho(sigma, beta, s)
    assert added(Pair(sigma, beta, s).p + Pair(sigma, beta, s).log_weight) == pytest.approx(0, abs=1e-6)
    for part in (-1, -0.5, -0.01, 0, 0.5, 1):
        assert Pair(sigma, part * beta, s).largest_rho() <= rho * (1 + 1e-6)
    c = math.exp(1.5 * sigma**2) * s
    assert max(beta**2 / (1 + sigma**2) + c**2, (beta / sigma) ** 2) / 2 <= rho
    assert rho <= 1.002 * (beta / sigma + c) ** 2 / 2  # Bun and Steinke's


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("sigma", "beta", "s"), GRID)
def test_the_shift_is_worth_what_the_proof_says(sigma, beta, s):
    """The mean of its losses, under laws that are tilted by every order, and their size."""
    c = math.exp(1.5 * sigma**2) * s
    for b in (-beta, -beta / 3, 0, beta):
        pair, u = Pair(sigma, b, s), math.exp(b)
        falling = u * math.exp(-(sigma**2)) * c**2 / 2
        for order in (1.0, 1.5, 3, 10, 30):
            growing = c**2 / (2 * u) * (1 + (order - 1) * (1 - 1 / u))
            assert pair.mean_loss(order) <= (falling if b <= 0 else growing) * (1 + 1e-6) + 1e-7
        assert np.abs(pair.middle - pair.q).max() <= c * min(1, 1 / u) * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
@pytest.mark.parametrize("part", [0.02, 0.1])
def test_little_of_rho_is_lost_if_it_is_small(epsilon, part):
    beta = part * epsilon
    s = float(largest_share("log-normal", Fraction(epsilon), Fraction(0), Fraction(beta)))
    sigma = float(usual_sigma(Fraction(epsilon), Fraction(beta)))
    assert 0.85 < Pair(sigma, beta, s).largest_rho() / (epsilon**2 / 2) <= 1
    assert s >= 0.99 * epsilon * math.exp(-1.5 * sigma**2) / math.sqrt(1 + sigma**2)


@pytest.mark.slow
def test_broken_twins_are_convicted():
    """A smaller sigma fails at high orders, less noise at low ones, and both fail if sizes are forgotten."""
    epsilon, beta = 0.3, 0.06
    rho = epsilon**2 / 2
    share = float(largest_share("log-normal", Fraction(epsilon), Fraction(0), Fraction(beta)))
    sigma = beta / epsilon * 65 / 64
    high = (40, 80, 150)  # times epsilon, of deviations of Y
    assert Pair(sigma, -beta, share).largest_rho([*ORDERS, *high]) <= rho
    assert Pair(0.8 * sigma, -beta, share).largest_rho(high) > rho
    assert Pair(sigma, beta, 1.2 * share).largest_rho() > rho
    assert Pair(sigma, -2 * beta, share).largest_rho(high) > rho


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 4])
@pytest.mark.parametrize("part", [1e-6, 0.1, 0.5, 1])
def test_the_largest_share_keeps_rho_and_a_larger_one_does_not(epsilon, part):
    e, beta = Fraction(epsilon), Fraction(epsilon * part)
    s, sigma = largest_share("log-normal", e, Fraction(0), beta), usual_sigma(e, beta)
    assert log_normal_rho(float(sigma), float(beta), float(s)) <= epsilon**2 / 2
    assert log_normal_rho(float(sigma), float(beta), 1.001 * float(s)) > epsilon**2 / 2


def test_a_beta_that_costs_everything_is_refused():
    with pytest.raises(InputError, match="beta must be smaller"):
        largest_share("log-normal", Fraction(1), Fraction(0), Fraction(5))


@pytest.mark.slow
def test_no_other_sigma_errs_much_less():
    """The standard deviation is sqrt(2) e^(sigma^2)/s, in units of S."""
    for epsilon, part in itertools.product((0.1, 1), (0.05, 0.4)):
        beta = epsilon * part

        def deviation(sigma, epsilon=epsilon, beta=beta):
            kept = (
                s for s in epsilon * np.arange(1.1, 0.05, -0.01) if log_normal_rho(sigma, beta, s) <= epsilon**2 / 2
            )
            return math.exp(sigma**2) / next(kept, 1e-9)

        usual = deviation(float(usual_sigma(Fraction(epsilon), Fraction(beta))))
        assert usual <= 1.03 * min(deviation(part * times) for times in (0.9, 1.005, 1.1, 1.5))


# Tails


def by_summation(sigma, z):
    """P(Z > z), in 40 digits: E[e^(-z e^(-sigma Y))]/2."""
    with mpmath.workdps(40):
        terms = (
            mpmath.exp(-(mpmath.mpf(y) ** 2) / 2 - mpmath.mpf(z) * mpmath.exp(-mpmath.mpf(sigma) * mpmath.mpf(y)))
            for y in np.arange(-12, 28, 1 / 32)
        )
        return float(mpmath.fsum(terms) / 32 / mpmath.sqrt(8 * mpmath.pi))


@pytest.mark.parametrize("sigma", [0.01, 0.2, 1, 2])
@pytest.mark.parametrize("z", [0, 0.001, 1, 7, 50, 3000])
def test_tails_are_those_of_the_density(sigma, z):
    assert float(log_normal_tail(sigma, np.array([z]))[0]) == pytest.approx(
        by_summation(sigma, z), rel=1e-12, abs=1e-90
    )


def test_tails_end_at_infinity():
    assert log_normal_tail(0.3, np.array([0.0, math.inf])).tolist() == pytest.approx([0.5, 0])


# Draws


@pytest.mark.parametrize("w", [1, 5, 1000, 2**45])
@pytest.mark.parametrize("sign", [0, 1])
def test_draws_turn_where_the_law_says(w, sign):
    """U just below and above e^(-(w - 1/2)/(scale e^(sigma Y))), by 2^-100 of 1, decides between w and w - 1."""
    sigma, scale = Fraction(1, 3), Fraction(7 * w, 10)
    v = 3 << 61  # V = 3/8
    with mpmath.workdps(80):
        y = mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.mpf(3) / 8) * (1 - 2 * sign)
        size = mpmath.mpf(scale.numerator) / scale.denominator * mpmath.exp(y / 3)
        turn = mpmath.exp(-(mpmath.mpf(w) - mpmath.mpf(1) / 2) / size)
        turn = int(mpmath.floor(mpmath.ldexp(turn, 128)))
    for move, expected in ((-(1 << 28), w), (1 << 28, w - 1)):
        first, second = divmod(turn + move, 1 << 64)
        coins = Script(sign, first, v, second, 0, *[0] * 8)
        assert (
            rounded_log_normal(sigma, float(scale), lambda mp: mp.mpf(scale.numerator) / scale.denominator, coins)
            == expected
        )
