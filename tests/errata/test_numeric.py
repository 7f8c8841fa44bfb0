"""Errata about noise on numbers: E1, E7, E8, E9 and E18 of docs/errata.md."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from tests.errata.optimal import log_delta

import noisette as nz
from noisette.accuracy import people_bound
from noisette.accuracy.people import _target, closed_form
from noisette.audit.divergence import largest_loss, laws_of
from noisette.laws import DiscreteLaplace
from noisette.privacy.convert import gaussian_delta

REPLACE = nz.Neighbours.REPLACE


def slide_sigma(epsilon, delta):
    return 2 * math.sqrt(math.log(1 / delta)) / epsilon


def classic_sigma(epsilon, delta):
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@pytest.mark.parametrize(
    ("sigma", "delta", "first_failure"),
    [
        (slide_sigma, 1e-5, 36.1),
        (slide_sigma, 1e-2, 18.5),
        (classic_sigma, 1e-5, 8.45),
        (classic_sigma, 1e-6, 8.8),
        (classic_sigma, 0.1, 5.75),
    ],
)
def test_e1_gaussian_formulas_fail_at_large_epsilon(sigma, delta, first_failure):
    def holds(epsilon):
        return gaussian_delta(Fraction(1 / sigma(epsilon, delta)), Fraction(epsilon)) <= delta

    steps = np.arange(1, round(first_failure / 0.05))  # in steps of 0.05, `first_failure` is the first that fails
    assert all(holds(0.05 * step) for step in steps)
    assert not holds(first_failure)


def test_e1_three_sigmas_for_one_guarantee():
    assert slide_sigma(1, 1e-5) == pytest.approx(6.786, abs=5e-4)
    assert classic_sigma(1, 1e-5) == pytest.approx(4.845, abs=5e-4)
    ours = nz.calibrate(nz.Gaussian, nz.Approx(1, "1e-5"), sensitivity=1)
    assert float(ours.sigma) == pytest.approx(3.7306, abs=5e-5)
    assert ours.delta_at(1) <= 1e-5 < nz.Gaussian(ours.sigma * Fraction("0.9999")).delta_at(1)


@pytest.mark.parametrize("d", [4, 25, 100])
def test_e1_laplace_noise_with_l2_sensitivity_loses_sqrt_d_epsilon(d):
    counts = nz.sensitivity.counts(d)
    as_printed = nz.Geometric(counts.l2)  # Lap(GS_2 / epsilon) on each count, epsilon 1
    assert as_printed.guarantee(counts) == nz.Pure(math.isqrt(d), neighbours=counts.neighbours)
    one = laws_of(as_printed, 0, 1)  # each count moves by 1, so d losses of 1/sqrt(d) add up: it is attained
    assert d * largest_loss(*one) == pytest.approx(math.sqrt(d))
    assert math.exp(log_delta(d, 1 / math.sqrt(d), 1)) > 0.09  # and delta(1) is no small delta
    assert nz.Geometric(counts.l1).guarantee(counts).epsilon == 1


def test_e7_only_the_mean_answer_has_the_mean_expectation():
    m = nz.RandomizedResponse(math.log(3))
    assert m.keep == pytest.approx(3 / 4)
    truth = np.array([1, 0, 0])
    answers = m.pmf(1, truth)  # E[Y_i]
    assert answers == pytest.approx(truth / 2 + 1 / 4)
    assert answers[0] != pytest.approx(truth.mean() / 2 + 1 / 4)  # 3/4, where the notes have 5/12
    assert answers.mean() == pytest.approx(truth.mean() / 2 + 1 / 4)


def test_e7_randomized_response_needs_one_person_and_secret_coins():
    m = nz.RandomizedResponse(math.log(3))
    P, Q = laws_of(m, 0, 1)
    assert largest_loss(P, Q) == pytest.approx(math.log(3))
    together = [np.array([math.prod(p) for p in itertools.product(law, repeat=3)]) for law in (P, Q)]
    assert largest_loss(*together) == pytest.approx(3 * math.log(3))  # three people's data is not one user's
    even_address = np.array([[1.0, 0.0], [0.0, 1.0]])  # whoever knows the address reads the truth
    assert largest_loss(*even_address) == math.inf


def test_e7_the_factor_two_doubles_the_laplace_noise():
    def law(rate):
        """The exponential mechanism on the integers -300 .. 300 with score -|y - x| and weight e^(rate score)."""
        weights = [np.exp(-rate * np.abs(np.arange(-300, 301) - x)) for x in (0, 1)]
        return [w / w.sum() for w in weights]

    at_0, at_1 = law(1 / 2)  # epsilon / (2 sigma), epsilon = sigma = 1
    assert at_0 == pytest.approx(nz.Geometric(2).pmf(np.arange(-300, 301), 0))
    assert largest_loss(at_0, at_1) == pytest.approx(0.5)  # half of the epsilon that was paid for
    at_0, at_1 = law(1)  # the normaliser is the same for all x, so the factor 2 buys nothing
    assert at_0 == pytest.approx(nz.Geometric(1).pmf(np.arange(-300, 301), 0))
    assert largest_loss(at_0, at_1) == pytest.approx(1)
    assert nz.Laplace(2).interval(0.95) == pytest.approx(2 * nz.Laplace(1).interval(0.95))


def test_e7_sensitivity_of_heights():
    assert nz.sensitivity.maximum((1, 300), neighbours=REPLACE).l1 == 299
    assert nz.sensitivity.mean((1, 300), 12, neighbours=REPLACE).l1 == Fraction(299, 12)  # 24.92: the notes' 25
    assert nz.sensitivity.mean((1, 300), 1000, neighbours=REPLACE).l1 == Fraction(299, 1000)
    for n in (2, 3):  # heights 1 .. 5: all tables, all replacements
        tables = list(itertools.product(range(1, 6), repeat=n))
        pairs = [(x, (v, *x[1:])) for x in tables for v in range(1, 6)]
        assert max(abs(max(x) - max(y)) for x, y in pairs) == 4
        assert max(abs(Fraction(sum(x) - sum(y), n)) for x, y in pairs) == Fraction(4, n)


def test_e8_alpha_is_e_to_the_minus_epsilon():
    def centre(alpha):
        return (1 - alpha) / (1 + alpha)  # the p that the slide finds from p + 2 sum alpha^i p = 1

    assert centre(math.e) == pytest.approx(-0.462, abs=5e-4)  # no probability; the series has no sum either
    assert centre(1 / math.e) == pytest.approx(0.462, abs=5e-4)
    assert centre(1 / math.e) == pytest.approx(DiscreteLaplace(1).pmf(0))
    response = nz.RandomizedResponse(1, categories=3)
    for m, n, i in itertools.product((nz.Geometric(1), response), (2,), (1, 2)):
        assert m.pmf(n - i, n) >= math.exp(-i) * m.pmf(n - i, n - i) * (1 - 1e-12)  # at least: what privacy says
    assert response.pmf(0, 2) > 2 * math.exp(-2) * response.pmf(0, 0)  # so "at most" is false


def test_e8_the_mean_magnitude_is_the_scale():
    for scale in (0.5, 1, 4):
        mean = mp.quad(lambda x, b=scale: x * mp.exp(-x / b) / b, [0, 5 * scale, mp.inf])
        assert float(mean) == pytest.approx(scale, rel=1e-12)
    assert DiscreteLaplace(1).mean_absolute() == pytest.approx(0.8509, abs=5e-5)  # whole numbers: 1/sinh(epsilon)


def test_e9_the_printed_formula_is_no_law():
    distance = np.abs(np.arange(-50, 51))

    def printed(alpha):
        return alpha ** -distance.astype(float)  # (1 - alpha)/(1 - alpha) is 1

    assert printed(1 / math.e).max() > 1e20
    assert printed(math.e).sum() == pytest.approx(2.164, abs=5e-4)  # read the other way it sums to this
    alpha = 1 / math.e
    right = alpha**distance * (1 - alpha) / (1 + alpha)
    assert right.sum() == pytest.approx(1)
    assert right == pytest.approx(nz.Geometric(1).pmf(np.arange(-50, 51), 0))


def test_e18_the_laplace_density_and_its_tail():
    epsilon, sensitivity, t = mp.mpf(1) / 3, mp.mpf(2), mp.mpf(5)
    with mp.workdps(30):
        one = 2 * mp.quad(lambda z: mp.exp(-epsilon * z / sensitivity), [0, 20, mp.inf])
        above = 2 * mp.quad(lambda z: epsilon / (2 * sensitivity) * mp.exp(-epsilon * z / sensitivity), [t, mp.inf])
    assert float(one / (2 * sensitivity)) == pytest.approx(3)  # 1/epsilon for each dimension, where 1 is due
    assert float(one * epsilon / (2 * sensitivity)) == pytest.approx(1)
    assert float(above) == pytest.approx(math.exp(-5 / 6))
    assert nz.Laplace(6).interval(1 - math.exp(-5 / 6)) == pytest.approx(5)


def test_e18_splitting_people_beats_splitting_epsilon():
    ask = {"queries": 20, "epsilon": 1, "error": "0.05"}
    budget = closed_form("response, budget split", _target(20, 1, "0.05", "0.95", None, None))
    assert budget == pytest.approx(2 * 20**2 * math.log(2 * 20 / 0.05) / 0.05**2, rel=1e-3)  # the slide's form
    assert budget == pytest.approx(2_139_967.09, abs=0.01)
    assert people_bound("response, budget split", **ask) == 2_139_968
    assert people_bound("response, people split", **ask) == 125_208
    assert people_bound("laplace", **ask) == 2_397
