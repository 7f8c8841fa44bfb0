"""Concentration, and theorems about outputs of pure DP: numbers of the papers, and exact laws that stay below."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from noisette.errors import InputError
from noisette.holdout import bounds


def test_the_numbers_of_the_slides():
    n, tau = 10_000, "0.05"
    assert bounds.hoeffding(n, tau) == pytest.approx(3.8574996959278356e-22, rel=1e-12)
    assert bounds.statistical_query_epsilon(n, tau) == pytest.approx(
        math.sqrt(0.0025 - math.log(2) / 20_000), rel=1e-12
    )
    assert bounds.statistical_query(n, tau, "0.0496") == pytest.approx(5.89e-11, rel=1e-3)
    assert bounds.bad_output_epsilon(n, "1e-6") == pytest.approx(math.sqrt(math.log(1e6) / 20_000), rel=1e-12)
    assert bounds.bad_output(n, "1e-6", "0.02") == pytest.approx(0.003)


def test_the_three_directions_agree():
    for n, beta in itertools.product((10, 738, 10**6), ("0.5", "0.05", "1e-9")):
        tau = bounds.hoeffding_deviation(n, beta)
        if tau < 1:
            assert bounds.hoeffding(n, tau) <= float(beta) * (1 + 1e-9)
            assert bounds.hoeffding_size(tau, beta) in (n, n - 1)  # tau is rounded up
        c = 3 / n
        assert bounds.mcdiarmid(n, bounds.mcdiarmid_deviation(n, beta, c), c) <= float(beta) * (1 + 1e-9)
    assert bounds.hoeffding(737, "0.05") > 0.05 >= bounds.hoeffding(738, "0.05")
    assert bounds.mcdiarmid_size("0.1", "0.05", 2) == bounds.hoeffding_size("0.05", "0.05")


@pytest.mark.parametrize(("n", "tau"), [(20, 0.3), (100, 0.1), (1000, 0.05)])
def test_hoeffding_is_above_the_binomial_tail(n, tau):
    k = np.arange(n + 1)
    for p in (0.1, 0.5, 0.7):
        far = np.abs(k / n - p) >= tau - 1e-12
        assert binom.pmf(k, n, p)[far].sum() <= bounds.hoeffding(n, tau)


def agreeing(n, epsilon, k):
    """Each row answers by randomized response; R(y) are the samples that agree with y in k places or more.

    Returns the chance of R(y) for a fresh sample of fair coins, and for the sample that was used, exactly.
    """
    return binom.sf(k - 1, n, 0.5), binom.sf(k - 1, n, math.exp(epsilon) / (1 + math.exp(epsilon)))


CASES = [(100, 0.1, 70), (400, 0.1, 240), (400, 0.05, 250), (2000, 0.05, 1120), (50, 0.5, 45)]


@pytest.mark.parametrize(("n", "epsilon", "k"), CASES)
def test_randomized_response_stays_below(n, epsilon, k):
    fresh, reached = agreeing(n, epsilon, k)
    assert fresh < reached <= bounds.bad_event(n, fresh, epsilon)
    if epsilon <= bounds.bad_output_epsilon(n, fresh):
        assert bounds.bad_event(n, fresh, epsilon) <= bounds.bad_output(n, fresh, epsilon)


@pytest.mark.parametrize(("n", "epsilon", "k"), CASES)
def test_half_the_epsilon_would_not_do(n, epsilon, k):
    fresh, reached = agreeing(n, epsilon, k)
    assert reached > bounds.bad_event(n, fresh, epsilon / 2)
    assert reached > 1.5 * fresh  # nor would a chosen question do as a fixed one


def test_ours_is_a_third_at_the_published_epsilon():
    for n, beta in itertools.product((100, 10**5), ("0.01", "1e-9")):
        epsilon = bounds.bad_output_epsilon(n, beta)
        assert bounds.bad_event(n, beta, epsilon) == pytest.approx(math.sqrt(float(beta)), rel=1e-9)
    epsilon = bounds.statistical_query_epsilon(10_000, "0.05")
    ours, published = (f(10_000, "0.05", epsilon) for f in (bounds.chosen_query, bounds.statistical_query))
    assert 3 * ours == pytest.approx(published, rel=1e-9)
    assert bounds.chosen_query(10_000, "0.05", 0) == pytest.approx(bounds.hoeffding(10_000, "0.05"), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: bounds.hoeffding(0, "0.05"), "n must be a whole number, at least 1."),
        (lambda: bounds.hoeffding(10, 0), "tau must lie strictly between 0 and 1."),
        (lambda: bounds.mcdiarmid(10, 1, 0), "c must be above 0."),
        (lambda: bounds.hoeffding_size("0.05", 1), "beta must lie strictly between 0 and 1."),
        (lambda: bounds.bad_output(10_000, "1e-6", 1), "at most 0.02628 here: use bad_event for a larger one."),
        (
            lambda: bounds.statistical_query(10_000, "0.05", 1),
            "at most 0.04965 here: use chosen_query for a larger one.",
        ),
        (lambda: bounds.bad_event(10, "0.1", -1), "epsilon"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(InputError) as caught:
        call()
    assert sentence in str(caught.value)
    assert str(caught.value).count(". ") == 0
