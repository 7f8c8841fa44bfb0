"""Errata about the sparse vector technique: E16, E21 and E22 of docs/errata.md.

Vocabulary: ⊥ below the threshold, ⊤ above · losses are ln P(D)/P(D') of one output; every query has sensitivity 1.
"""

import itertools
import math

import pytest
from mpmath import mp
from tests.errata.optimal import log_delta, root
from tests.errata.quadrature import below_then_above

from noisette.holdout import Thresholdout


def loss(below, above, threshold, b):
    """ln P(D)/P(D') of all ⊥, then all ⊤; each query is given as (its value on D, its value on D')."""
    D, D_prime = (([q[i] for q in below], [q[i] for q in above]) for i in (0, 1))
    return math.log(below_then_above(*D, threshold, b) / below_then_above(*D_prime, threshold, b))


RISES, FALLS, STAYS = (0, 1), (1, 0), (0, 0)


@pytest.mark.parametrize(("m", "leak"), [(10, 4.5), (50, 24.5)])
def test_e16_releasing_the_compared_value_is_not_private(m, leak):
    """T = 0, noises Lap(2): ⊥ m times, then the value 0, which puts the threshold z below 0."""

    def likelihood(q_below, q_last):
        def given(z):
            return mp.exp(-abs(z) / 2) / 4 * (mp.exp((z - q_below) / 2) / 2) ** m  # P(0 + noise < z), z < 0

        return mp.quad(given, [-mp.inf, -10, 0]) * mp.exp(-abs(mp.mpf(q_last)) / 2) / 4

    assert float(mp.log(likelihood(0, 1) / likelihood(1, 0))) == pytest.approx(leak) == (m - 1) / 2


@pytest.mark.slow
def test_e16_indicators_alone_cost_one_and_a_half_epsilon():
    assert loss([RISES] * 400, [FALLS], 2, 2) == pytest.approx(1.5000, abs=1e-9)  # the slide's Lap(2cS/epsilon)
    assert loss([RISES] * 400, [FALLS], 2, 4) == pytest.approx(1.0000, abs=1e-9)  # Lap(4cS/epsilon)
    assert loss([RISES] * 400, [STAYS], 2, 2) == pytest.approx(1.0000, abs=1e-9)  # monotone queries: no FALLS
    for m, below, above in itertools.product((1, 10, 100), (RISES, STAYS), (RISES, STAYS)):
        assert abs(loss([below] * m, [above], 2, 2)) <= 1 + 1e-9


def test_e16_it_must_stop_after_c_answers():
    leaks = [loss([RISES] * k, [FALLS] * k, 2, 4) for k in (1, 10, 40)]  # noise for c = 1, k answers
    assert leaks == pytest.approx([0.396, 4.322, 18.12], abs=5e-3)


def sparse(noisy, threshold, stop):
    """Run the loop of Sparse on noisy answers and return the indicators."""
    output, count = [], 0
    for answer in noisy:
        output.append(answer >= threshold)
        count += output[-1]
        if stop(count):
            break
    return output


def test_e21_more_than_c_is_c_plus_one():
    c, noisy = 3, [1, 9, 9, 0, 9, 9, 9]
    assert sum(sparse(noisy, 5, lambda count: count > c)) == 4
    assert sum(sparse(noisy, 5, lambda count: count >= c)) == 3


def test_e21_the_extra_answer_costs_epsilon_over_c():
    c, epsilon = 2, 1
    one_run = loss([RISES] * 400, [FALLS], 2 * c / epsilon, 4 * c / epsilon)
    assert c * one_run == pytest.approx(1.0, abs=1e-9)  # the threshold is refreshed, so the runs' losses add up
    assert (c + 1) * one_run == pytest.approx(1.5, abs=1e-9)


@pytest.mark.parametrize(("delta", "first_failure"), [(0.1, 5.2), (1e-2, 6.3), (1e-6, 8.5)])
def test_e21_the_slides_sigma_fails_at_large_epsilon(delta, first_failure):
    """sigma = 2 sqrt(2 c ln(1/delta))/epsilon makes each run (2/sigma)-DP; the published sigma is twice that."""
    c = 1000

    def excess(epsilon, factor=1):
        sigma = factor * 2 * math.sqrt(2 * c * math.log(1 / delta)) / epsilon
        return log_delta(c, 2 / sigma, epsilon) - math.log(delta)

    assert 2 * 2 * math.sqrt(2) == pytest.approx(math.sqrt(32))
    assert all(excess(0.1 * step) <= 0 for step in range(1, round(10 * first_failure)))
    assert excess(first_failure) > 0
    assert all(excess(0.5 * step, factor=2) <= 0 for step in range(1, 21))


@pytest.mark.parametrize(("m", "leak"), [(1, 0.25), (10, 2.5), (100, 25)])
def test_e22_a_threshold_without_noise_leaks(m, leak):
    assert loss([RISES] * m, [], 0, 4) == pytest.approx(leak)
    assert loss([RISES] * m, [], 2, 4) <= 0.5 + 1e-12
    assert loss([RISES] * m, [FALLS], 2, 4) <= 1 + 1e-12


def test_e22_the_price_of_a_hundred_answers():
    B, noise, delta = 100, 100, 1e-6  # noise is sigma n
    slide = 2 * math.sqrt(2 * B * math.log(2 / delta)) / noise
    published = math.sqrt(32 * B * math.log(2 / delta)) / noise
    pure = 2 * B / noise
    optimal = root(lambda epsilon: log_delta(2 * B, 1 / noise, epsilon) - math.log(delta), 0.1, 1.9)
    assert pure == 2.0
    assert slide == pytest.approx(1.077, abs=5e-4)
    assert published == pytest.approx(2.155, abs=5e-4)
    assert optimal == pytest.approx(0.5715, abs=5e-5)


def test_e22_thresholdout_states_the_exact_price():
    m = Thresholdout.published("0.01", budget=100, records=10_000, threshold="0.04")
    assert m.guarantee.epsilon == 2
    assert m.guarantee.epsilon_at("1e-6") == pytest.approx(0.5715, abs=5e-5)
