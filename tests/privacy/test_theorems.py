"""Composition theorems: published and computed values, the order of the theorems, and rounding to the safe side."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisette.errors import InputError
from noisette.exact.rational import exp_down, precision
from noisette.privacy import theorems
from noisette.privacy.convert import powers_up
from noisette.privacy.pld.tight import optimal_delta

TINY = Fraction(math.exp(-32))


def above_and_near(found: float, truth: float, relative: float = 1e-12) -> None:
    assert truth * (1 - 1e-15) <= found <= truth * (1 + relative)


# Composition


def test_basic_adds_up():
    assert theorems.basic("1/3", "1/1024", 3) == (1.0, 3 / 1024)
    assert theorems.basic(1, "0.5", 7) == (7.0, 1.0)


@pytest.mark.parametrize(
    ("e0", "k", "slack", "epsilon"),
    [
        ("1/800", 10_000, TINY, 1.0156347696952823),
        ("1/801", 10_000, TINY, 1.0143473043148823),
        ("0.01", 1000, "1e-6", 1.7627598071107906),
        ("0.2", 50, "1e-5", 9.00016800601681),
    ],
)
def test_advanced(e0, k, slack, epsilon):
    above_and_near(theorems.advanced(e0, k, slack)[0], epsilon)


@pytest.mark.parametrize("theorem", [theorems.advanced, theorems.advanced_tanh])
def test_advanced_with_a_delta_each(theorem):
    epsilon, delta = theorem("0.01", 1000, "1e-6", "1e-9")
    assert epsilon == theorem("0.01", 1000, "1e-6")[0]
    above_and_near(delta, 2e-6)


@pytest.mark.parametrize(
    ("k", "e0", "d0", "delta", "epsilon"),
    [
        (2, "1", 0, "1e-6", 1.999998128904084),
        (10, "0.1", 0, "1e-6", 0.9993709057217587),
        (10, "1", 0, "1e-5", 9.999770634534942),
        (30, "0.1", 0, "1e-5", 2.1101544222423825),
        (100, "0.1", 0, "1e-6", 4.7745675881079865),
        (10, "0.1", "1e-8", "1e-6", 0.9994338329022889),
    ],
)
def test_optimal(k, e0, d0, delta, epsilon):
    above_and_near(theorems.optimal(e0, d0, k, delta), epsilon, 1e-8)


def test_optimal_has_no_epsilon_below_the_deltas():
    assert theorems.optimal(1, "1e-6", 10, "9e-6") == math.inf


@pytest.mark.parametrize(
    ("k", "e0", "delta", "epsilon"),
    [
        (1, "0.1", "1e-6", 0.4299414688369493),
        (1, "0.1", "1e-10", 0.6035361289798309),
        (20, "0.1", "1e-6", 2.1419389283854735),
        (20, "0.1", "1e-10", 2.8818280091742423),
        (100, "0.1", "1e-6", 5.221534444530169),
        (100, "0.1", "1e-10", 6.839329413120849),
        (2, "1", "1e-10", 10.03434358134763),
    ],
)
def test_concentrated(k, e0, delta, epsilon):
    above_and_near(theorems.concentrated(e0, k, delta), epsilon, 1e-7)


def test_nothing_costs_nothing():
    assert theorems.concentrated(0, 5, "1e-6") == theorems.optimal(0, 0, 5, "1e-6") == 0
    assert theorems.advanced(0, 5, "1e-6")[0] == theorems.renyi_response(2, 0) == theorems.renyi_laplace(2, 1, 0) == 0


@settings(max_examples=25)
@given(st.fractions("1/100", 2, max_denominator=100), st.integers(1, 300), st.integers(2, 12))
def test_what_is_proved_later_is_smaller(e0, k, exponent):
    slack = Fraction(1, 10**exponent)
    drv, kov = theorems.advanced(e0, k, slack)[0], theorems.advanced_tanh(e0, k, slack)[0]
    best = theorems.optimal(e0, 0, k, slack)
    assert best <= kov * (1 + 1e-9) <= drv * (1 + 1e-9)
    assert best <= theorems.basic(e0, 0, k)[0]
    assert best <= theorems.concentrated(e0, k, slack) * (1 + 1e-9)


# What each may spend


@pytest.mark.parametrize(
    ("theorem", "epsilon", "relative"),
    [
        ("basic", 1e-4, 1e-15),
        ("advanced", 1 / 812.3180298644015, 1e-12),
        ("advanced_tanh", 0.0012403840475736672, 1e-12),
        ("optimal", 1 / 715.511, 1e-6),
    ],
)
def test_each_of_ten_thousand(theorem, epsilon, relative):
    assert theorems.each(10_000, 1, TINY, theorem) == pytest.approx(epsilon, rel=relative)


def test_the_first_term_alone_would_promise_too_much():
    """1/sqrt(2k ln(1/delta)) is no theorem's answer; for larger epsilons it is not even true."""
    assert theorems.each(10_000, 1, TINY, "advanced") < 1 / 800 < theorems.each(10_000, 1, TINY, "optimal")
    first_term = 8.5 / math.sqrt(2 * 1000 * math.log(1e6))
    assert theorems.optimal(first_term, 0, 1000, "1e-6") > 8.5


@settings(max_examples=15)
@given(
    st.sampled_from(["basic", "advanced", "advanced_tanh", "optimal", "concentrated"]),
    st.integers(1, 1000),
    st.fractions("1/50", 20, max_denominator=50),
    st.sampled_from(["1/3", "1e-3", "1e-9"]),
)
def test_each_is_the_most_that_keeps_the_promise(theorem, k, epsilon, delta):
    def total(e0):
        match theorem:
            case "optimal":
                return theorems.optimal(e0, 0, k, delta)
            case "concentrated":
                return theorems.concentrated(e0, k, delta)
            case "basic":
                return theorems.basic(e0, 0, k)[0]
        return getattr(theorems, theorem)(e0, k, delta)[0]

    most = theorems.each(k, epsilon, delta, theorem)
    exactly = Fraction(most)
    assert total(exactly) <= float(epsilon) * (1 + (1e-9 if theorem == "optimal" else 1e-15))
    assert total(exactly * Fraction("1.000001")) > float(epsilon)


# Rényi divergences


@pytest.mark.parametrize(
    ("found", "truth"),
    [
        (theorems.renyi_laplace(2, 1), 0.6191236299985928),
        (theorems.renyi_laplace(5, 2), 0.35526531840491027),
        (theorems.renyi_laplace(32, 10), 0.0782057585889131),
        (theorems.renyi_laplace(32, 20, 2), 0.0782057585889131),
        (theorems.renyi_response(3, keep="3/4"), 0.9568246434185459),
        (theorems.renyi_response(3, keep="1/4"), 0.9568246434185459),
        (theorems.renyi_response(3, Fraction(math.log(3))), 0.9568246434185459),
        (theorems.renyi_response(1, 1), 0.46211715726000974),
        (theorems.renyi_gaussian(5, 2, 3), 5.625),
        (theorems.renyi_to_epsilon(10, 1, "1e-6"), 2.1738534248944212),
        (theorems.renyi_to_epsilon(32, "0.3", "1e-6"), 0.6021150002391148),
        (theorems.renyi_to_epsilon_mironov(10, 1, "1e-6"), 2.5350567286626973),
        (theorems.renyi_to_epsilon_mironov(32, "0.3", "1e-6"), 0.7456616309020734),
    ],
)
def test_renyi(found, truth):
    above_and_near(found, truth)


@settings(max_examples=20)
@given(st.fractions("1001/1000", 50, max_denominator=1000), st.fractions("1/50", 3, max_denominator=50))
def test_renyi_grows_with_the_order_up_to_the_largest_loss(alpha, epsilon):
    for divergence in (theorems.renyi_response, lambda a, e: theorems.renyi_laplace(a, 1 / e)):
        values = [divergence(a, epsilon) for a in (1, alpha, alpha + 1)]
        assert values == sorted(values)
        assert values[-1] <= min(epsilon, (alpha + 1) * epsilon**2 / 2) * (1 + Fraction(1, 10**12))
    assert theorems.renyi_laplace(alpha, 1 / epsilon) <= theorems.renyi_response(alpha, epsilon)


def test_tiny_divergences_keep_their_digits():
    above_and_near(theorems.renyi_response(2, "1e-100"), 1e-200, 1e-12)
    above_and_near(theorems.renyi_response(Fraction(1) + Fraction("1e-90"), 1), 0.46211715726000974)


def test_rounded_up():
    mp = precision(300)
    truth = mp.sqrt(2 * 7 * mp.log(1000)) / 3 + mp.mpf(7) / 3 * mp.expm1(mp.mpf(1) / 3)
    found = theorems.advanced("1/3", 7, "1/1000")[0]
    assert mp.mpf(math.nextafter(math.nextafter(found, 0), 0)) < truth <= mp.mpf(found)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: theorems.advanced(1, 2, 0), "slack"),
        (lambda: theorems.advanced(-1, 2, "1e-6"), "epsilon"),
        (lambda: theorems.basic(1, 0, 0), "k must be a whole number"),
        (lambda: theorems.each(2, 1, "1e-6", "leading"), "choose one of basic, advanced"),
        (lambda: theorems.each(2, 0, "1e-6"), "epsilon must be above 0"),
        (lambda: theorems.renyi_response(2), "either epsilon or keep"),
        (lambda: theorems.renyi_response(2, 1, keep="1/2"), "either epsilon or keep"),
        (lambda: theorems.renyi_response(2, keep=1), "keep must lie"),
        (lambda: theorems.renyi_laplace("1/2", 1), "alpha"),
        (lambda: theorems.renyi_gaussian(2, 1, -1), "distance"),
        (lambda: theorems.renyi_to_epsilon(1, 1, "1e-6"), "alpha must be above 1"),
    ],
)
def test_what_cannot_be_is_refused(call, match):
    with pytest.raises(InputError, match=match):
        call()


@pytest.mark.parametrize("k", [65, 1000])
@pytest.mark.parametrize("e0", [Fraction(1, 10**9), Fraction(1, 100), Fraction(2)])
def test_many_powers_are_summed_in_closed_form_and_rounded_up(k, e0):
    found, terms = powers_up(e0, k), sum((exp_down(j * e0) for j in range(k)), Fraction(0))
    assert terms <= found <= terms * (1 + Fraction(1, 10**9))


def test_powers_that_leave_no_delta_are_refused():
    with pytest.raises(InputError, match="lower its limits"):
        powers_up(Fraction(1), 10**12)


def test_optimal_composition_leaves_out_nothing_that_floats_hold():
    """A million releases: the sum over all outcomes, where it has mass and where it has none."""
    from scipy.stats import binom

    k, step, e = 10**6, 1e-3, 1.5
    j = np.arange(k + 1)
    losses = (2 * j - k) * step
    exactly = float((binom.pmf(j, k, 1 / (1 + math.exp(-step))) * -np.expm1(np.minimum(0.0, e - losses))).sum())
    assert optimal_delta(Fraction(1, 1000), Fraction(0), k, Fraction(3, 2)) == pytest.approx(exactly, rel=1e-6)
