import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisette.accuracy import chance_above, epsilon_for, largest_error, rho_for
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, KNorm, Laplace, Staircase, calibrate
from noisette.privacy import ZCDP, Approx, sensitivity

KINDS = [(Geometric, {}), (Laplace, {}), (Staircase, {}), (KNorm, {"norm": "inf"}), (KNorm, {"norm": 2})]


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize(("error", "answers"), [(10, 1), (0.7, 1), (200, 20), (3, 5)])
def test_epsilon_is_enough_and_no_less_is(kind, options, error, answers):
    moves = sensitivity.counts(answers)
    epsilon = epsilon_for(kind, error=error, answers=answers, sensitivity=moves, **options)
    if kind is KNorm:
        options = {"dimension": answers, **options}
    assert largest_error(calibrate(kind, epsilon, sensitivity=moves, **options), answers) <= error
    below = calibrate(kind, epsilon * (1 - 1e-7), sensitivity=moves, **options)
    assert chance_above(below, error, answers) > 0.05


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("grid", [None, 1])
@pytest.mark.parametrize(("error", "answers", "delta"), [(10, 1, "1e-6"), (60, 20, "1e-9"), (1.5, 1, "0.001")])
def test_gaussian(grid, error, answers, delta):
    moves = sensitivity.counts(answers)
    epsilon = epsilon_for(Gaussian, error=error, answers=answers, sensitivity=moves, delta=delta, grid=grid)
    m = calibrate(Gaussian, Approx(epsilon, delta), sensitivity=moves, grid=grid)
    assert largest_error(m, answers) <= error
    below = calibrate(Gaussian, Approx(epsilon * (1 - 1e-6), delta), sensitivity=moves, grid=grid)
    assert chance_above(below, error, answers) > 0.05


def test_rho():
    rho = rho_for(error=10)
    assert rho == pytest.approx((1.959963984540054 / 10) ** 2 / 2, rel=1e-8)
    assert largest_error(calibrate(Gaussian, ZCDP(rho))) <= 10
    assert chance_above(calibrate(Gaussian, ZCDP(rho * (1 - 1e-7))), 10) > 0.05


def test_closed_forms():
    assert epsilon_for(Laplace, error=10) == pytest.approx(math.log(20) / 10, rel=3e-9)
    a = math.exp(-epsilon_for(Geometric, error=10))
    assert 2 * a**11 / (1 + a) == pytest.approx(0.05, rel=1e-7)
    assert epsilon_for(Laplace, error=10, delta="1e-3") < epsilon_for(Laplace, error=10)  # delta is used


def test_a_whole_number_can_be_exact():
    """Below ±1 a count is released as it is with probability 95 %: tanh(epsilon/2) = 0.95."""
    assert epsilon_for(Geometric, error="1/2") == pytest.approx(2 * math.atanh(0.95), rel=1e-8)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.floats(0.01, 1000), st.floats(1.01, 10), st.floats(0.5, 0.999))
def test_less_error_costs_more(error, factor, level):
    assert epsilon_for(Laplace, error=error, level=level) > epsilon_for(Laplace, error=error * factor, level=level)
    assert epsilon_for(Laplace, error=error, level=level) <= epsilon_for(Laplace, error=error, level=(1 + level) / 2)


@pytest.mark.parametrize(
    ("kind", "ask", "message"),
    [
        (Laplace, {"error": 0}, "error must be above 0"),
        (Laplace, {"error": 1, "level": 1}, "level"),
        (Laplace, {"error": "1/100", "grid": "1/10"}, "half the grid"),
        (Staircase, {"error": "1e-12"}, "ask for a larger error"),
        (Laplace, {"error": "1e-9"}, "ask for a larger error"),
        (Gaussian, {"error": 1}, "keeps no pure guarantee"),
    ],
)
def test_refusals(kind, ask, message):
    with pytest.raises(InputError, match=message):
        epsilon_for(kind, **ask)


def test_a_huge_error_needs_hardly_any_budget():
    assert epsilon_for(Laplace, error=1e12) < 1e-8
