"""The transfer theorem: exact laws stay below its bounds, some reach them, and broken twins do not hold."""

import itertools
import math

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.holdout import transfer as t
from noisette.laws import DiscreteGaussian, DiscreteLaplace
from noisette.privacy import ZCDP, Approx, Neighbours, Pure


def gaps(prior, rows, phi):
    """For each output its chance, and how far the mean of phi given it is from the mean; the sample is one row."""
    out = prior @ rows
    return out, np.abs((prior * phi) @ rows / out - prior @ phi)


def delta_of(rows, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in itertools.product(rows, repeat=2))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_reaches_the_gap_of_pure_dp(epsilon):
    m, gap = nz.RandomizedResponse(epsilon), t.gap_at(epsilon, 0, "0.01")
    rows = np.array([[m.pmf(y, x) for y in (0, 1)] for x in (0, 1)], dtype=float)
    one = (1 - math.tanh(epsilon / 4)) / 2  # how many people have a 1
    _, off = gaps(np.array([1 - one, one]), rows, np.array([0, 1]))
    assert off.max() == pytest.approx(gap, rel=1e-9)
    assert off.max() > t.gap_at(0.8 * epsilon, 0, "0.01")  # noise x 0.8


@pytest.mark.slow
def test_small_programs_stay_below():
    """One row with three values, four outputs: every event of outputs whose gap is above what a chance allows."""
    rng = np.random.default_rng(18)
    nearest = 0.0
    for _ in range(80):
        base = rng.dirichlet(np.ones(4))
        rows = np.array(
            [base * np.exp(rng.choice([0, 0.5, 3], 4, p=[0.45, 0.45, 0.1]) * rng.random(4)) for _ in range(3)]
        )
        rows /= rows.sum(1, keepdims=True)
        prior, phi = rng.dirichlet(np.ones(3)), rng.integers(0, 2, 3)
        out, off = gaps(prior, rows, phi)
        for far in np.unique(off):
            chance = min(out[off >= far].sum(), 1 - 1e-12)
            for epsilon in (0.0, 0.2, 0.5, 1.0):
                bound = t.gap_at(epsilon, min(1.0, delta_of(rows, epsilon) + 1e-15), chance)
                assert far <= bound + 1e-12
                nearest = max(nearest, far / bound)
    assert nearest > 0.6  # the check is not empty


def test_two_rows_and_two_answers():
    """Two noisy counts of two coins: given both answers, the mean is no further off than their guarantee allows."""
    epsilon, y = 0.5, np.arange(-60, 63)
    count = {sum(s): 0.0 for s in itertools.product((0, 1), repeat=2)}
    for s in itertools.product((0, 1), repeat=2):
        count[sum(s)] += 0.25
    law = {k: DiscreteLaplace(1 / epsilon).pmf(y - k) for k in count}
    joint = {k: count[k] * np.outer(law[k], law[k]) for k in count}
    total = sum(joint.values())
    off = np.abs(sum(k / 2 * joint[k] for k in joint)[total > 1e-30] / total[total > 1e-30] - 0.5)
    assert off.max() <= t.gap_at(2 * epsilon, 0, "0.5")
    assert off.max() > t.gap_at(0.8 * epsilon, 0, "0.5")


def test_guarantees_are_read_under_replace():
    one = Pure("0.1", neighbours=Neighbours.ADD_REMOVE)
    assert t.posterior_gap(one, "0.05") == pytest.approx(t.posterior_gap(Pure("0.2"), "0.05"))
    assert t.posterior_gap(Pure("0.2"), "0.05") == pytest.approx(math.tanh(0.05), rel=1e-6)


@pytest.mark.slow
def test_a_profile_is_searched():
    rho, beta = "0.0005", 0.05
    best = min(t.gap_at(e, ZCDP(rho).delta_at(float(e)), beta) for e in np.linspace(0, 0.3, 301))
    assert t.posterior_gap(ZCDP(rho), beta) == pytest.approx(best, rel=1e-3)
    assert t.posterior_gap(Approx("0.1", "0.2"), beta) == 1.0
    assert t.expected_gap(Approx("0.1", "1e-6")) < math.expm1(0.1) + 1e-6
    assert t.expected_gap(ZCDP("0.02")) <= math.sqrt(0.02 / 2) + 1e-12  # Pinsker


@pytest.mark.slow
def test_the_expected_gap_holds_for_small_programs():
    rng = np.random.default_rng(19)
    for _ in range(200):
        rows = rng.dirichlet(np.ones(3) * rng.choice([0.3, 3, 30]), 2) + 1e-9
        rows /= rows.sum(1, keepdims=True)
        one = rng.random()
        out, off = gaps(np.array([1 - one, one]), rows, np.array([0, 1]))
        for epsilon in (0.0, 0.3, 1.0):
            assert out @ off <= t._average_gap(epsilon, min(1.0, delta_of(rows, epsilon) + 1e-15)) + 1e-12


@pytest.mark.parametrize("scale", [0.3, 1, 5.5, 80])
def test_the_hinge_of_whole_laplace_noise_is_below_that_of_continuous_noise(scale):
    z = np.arange(-6000, 6001)
    p = DiscreteLaplace(scale).pmf(z)
    for a in np.linspace(0, 5 * scale, 41):
        assert (p * np.maximum(np.abs(z) - a, 0)).sum() <= scale * math.exp(-a / scale) * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.4, 1, 7.3])
def test_whole_gaussian_noise_is_sub_gaussian(sigma):
    z = np.arange(-90, 91)
    p = DiscreteGaussian(sigma**2).pmf(z)
    for s in np.linspace(0, 3 / sigma, 13):
        assert (p * np.exp(s * z)).sum() <= math.exp(s * s * sigma * sigma / 2) * (1 + 1e-9)


def test_the_noise_given_the_answers_stays_below():
    """One noisy count of n coins: E(Z | answer) exceeds the bound less often than stated, and a quarter of it more."""
    n, sigma, beta = 40, 6.0, 0.05
    k, y = np.arange(n + 1), np.arange(-60, n + 61)
    prior = np.array([math.comb(n, int(j)) for j in k]) / 2.0**n
    joint = prior[:, None] * DiscreteGaussian(sigma**2).pmf(y - k[:, None])
    noise = np.abs(((y - k[:, None]) * joint).sum(0) / joint.sum(0))
    assert joint.sum(0)[noise > t.gaussian_error(sigma, 1, beta)].sum() <= beta
    assert joint.sum(0)[noise > t.gaussian_error(sigma, 1, beta) / 4].sum() > beta


@pytest.mark.slow
def test_the_transfer_theorem_adds_both_parts():
    alone = t.posterior_gap(Pure("0.04"), "0.05")
    both = t.transfer(Pure("0.04"), "0.02", "1e-6", "0.05")
    assert 0.02 + alone < both < 0.02 + alone + 1e-4
    published = 0.02 + math.expm1(0.04) + 1e-6 / 0.05  # Jung et al. 2020 with delta = 0
    assert both < published
    with pytest.raises(InputError, match="sampled must be below beta"):
        t.transfer(Pure("0.04"), "0.02", "0.05", "0.05")
