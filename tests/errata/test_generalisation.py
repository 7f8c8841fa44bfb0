"""Errata about generalisation: E23 of docs/errata.md. Informations are in nats."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln
from tests.errata.optimal import root

import noisette as nz
from noisette.audit.divergence import hockey_stick, largest_loss
from noisette.errors import InputError
from noisette.holdout import max_information as stated
from noisette.laws import DiscreteLaplace


def max_information(prior, rows, beta):
    """The largest ln (P(O) - beta)/Q(O), P the joint law and Q the product: the best O are ratios above a level."""
    joint = prior[:, None] * rows
    ratio = (rows / (prior @ rows)).ravel()
    order = np.argsort(-ratio)
    P = np.cumsum(joint.ravel()[order])
    Q = np.cumsum((prior[:, None] * (prior @ rows)).ravel()[order])
    enough = beta < P
    return float(np.log((P[enough] - beta) / Q[enough]).max())


def test_e23_the_bound_for_independent_samples_is_for_those_alone():
    n, epsilon, beta = 200, 0.1, 1e-6
    bound = epsilon**2 * n / 2 + epsilon * math.sqrt(n * math.log(2 / beta) / 2)
    assert bound == pytest.approx(4.81, abs=5e-3)
    sums = np.arange(n + 1)
    rows = DiscreteLaplace(1 / epsilon).pmf(np.arange(-150, n + 151) - sums[:, None])  # a noisy count, epsilon-DP
    independent = np.exp(gammaln(n + 1) - gammaln(sums + 1) - gammaln(n - sums + 1) - n * math.log(2))
    assert max_information(independent, rows, beta) <= bound
    alike = np.zeros(n + 1)
    alike[0], alike[n] = 1 - 4e-6, 4e-6  # all people answer 0, or all answer 1
    assert max_information(alike, rows, beta) == pytest.approx(12.1, abs=0.05)
    assert max_information(alike, rows, beta) <= epsilon * n  # the bound for every law holds


def test_e23_what_does_not_compose_is_refused():
    once = stated.iid_max_information("0.1", 200, "1e-6")
    assert float(once.bits) * math.log(2) == pytest.approx(4.81, abs=5e-3)
    with pytest.raises(InputError, match="does not hold after a first output"):
        stated.composed(once, once)
    general = stated.max_information("0.1", 200)
    assert stated.composed(once, general).bits == once.bits + general.bits


def test_e23_after_one_answer_samples_are_no_longer_independent():
    m = nz.RandomizedResponse(1)
    posterior = {x: m.pmf(0, (x[0] + x[1]) % 2) / 4 for x in itertools.product((0, 1), repeat=2)}  # its parity
    both = posterior[1, 1] / sum(posterior.values())
    first = (posterior[1, 0] + posterior[1, 1]) / sum(posterior.values())
    assert first == pytest.approx(1 / 2)
    assert both == pytest.approx(m.keep / 2)  # 0.37, where independence gives 0.25


def test_e23_the_second_bound_holds_from_5_958_on():
    def excess(u):
        return math.exp((1 / math.sqrt(2) - 3 / 2) * u) + math.exp(-u) - math.exp(-0.75 * u)

    assert root(excess, 1, 10) == pytest.approx(5.958, abs=5e-4)
    assert excess(5.9) > 0 > excess(10)
    assert all(excess(u) < 0 for u in np.arange(6, 100, 0.5))


def test_e23_clamped_means_move_by_six_over_ln_n():
    size = 14  # ln(10^6), rounded
    sensitivity = nz.sensitivity.mean((-3, 3), size, neighbours=nz.Neighbours.REPLACE).l1
    assert sensitivity == Fraction(6, size)
    printed = nz.Laplace(Fraction(3, size), grid=Fraction(1, 2**30))  # epsilon 1
    assert float(printed.guarantee(sensitivity).epsilon) == pytest.approx(2)
    unclamped = Fraction(10, size)  # a sample of 10 for one of 0: nothing bounds it
    assert float(printed.guarantee(unclamped).epsilon) == pytest.approx(10 / 3)
    assert (1 - math.erfc(3 / math.sqrt(2))) ** 10**6 < 1e-300  # among a million samples some lie beyond 3


@pytest.mark.parametrize(("L", "shift"), [(10, 1), (10, 3), (100, 3)])
def test_e23_uniform_noise_has_no_epsilon(L, shift):
    y = np.arange(-L, L + shift + 1)
    P, Q = ((np.abs(y - x) <= L) / (2 * L + 1) for x in (0, shift))
    assert largest_loss(P, Q) == math.inf
    for epsilon in (0.0, 1.0, 50.0):
        assert hockey_stick(P, Q, epsilon) == pytest.approx(shift / (2 * L + 1))
