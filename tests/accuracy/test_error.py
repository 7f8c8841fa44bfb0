import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.goodness import ALPHA

from noisette import accuracy
from noisette.accuracy.error import Coordinate
from noisette.errors import InputError
from noisette.laws import DiscreteLaplace, NormBall
from noisette.mechanisms import Gaussian, Geometric, KNorm, Laplace, RandomizedResponse, Staircase, TruncatedGeometric
from noisette.mechanisms.additive import gaussian, geometric, knorm, laplace, staircase, truncated_geometric

SINGLE = [*geometric.examples, *laplace.examples, *gaussian.examples, *staircase.examples]
LEVELS = [0.5, 0.9, 0.95, 0.999]


# Closed forms and published values


def test_laplace_at_95_percent():
    assert Laplace(1).interval(0.95) == pytest.approx(math.log(20), abs=2e-9)
    assert accuracy.largest_error(Laplace(1)) == Laplace(1).interval(0.95)


@pytest.mark.parametrize(("epsilon", "value"), [(1, 0.959517), (2, 0.425459), (4, 0.137860)])
def test_staircase_mean(epsilon, value):
    assert accuracy.expected_error(Staircase(epsilon)) == pytest.approx(value, abs=5e-7)
    closed = math.exp(epsilon / 2) / math.expm1(epsilon)
    assert accuracy.expected_error(Staircase(epsilon)) == pytest.approx(closed, rel=1e-7)


def test_means():
    assert accuracy.expected_error(Geometric(1)) == pytest.approx(0.8509181)
    assert accuracy.expected_error(Laplace("7/2")) == pytest.approx(3.5, rel=1e-8)
    assert accuracy.expected_error(Gaussian(3)) == pytest.approx(3 * math.sqrt(2 / math.pi), rel=1e-8)


def test_clamping_bias():
    assert accuracy.clamping_bias(Geometric(1 / math.log(3))) == pytest.approx(0.375)
    assert accuracy.clamping_bias(Geometric(10)) == pytest.approx(4.9917, abs=5e-5)
    assert accuracy.clamping_bias(Laplace(10)) == pytest.approx(5, rel=1e-8)


@pytest.mark.parametrize("high", [1, 2, 7, 200])
def test_clamping_bias_of_a_truncated_count_is_its_mean_at_the_end(high):
    m = TruncatedGeometric(3, high=high)
    y = np.arange(high + 1)
    assert accuracy.clamping_bias(m) == pytest.approx(float(np.sum(y * m.pmf(y, 0))), rel=1e-12)


# Every law against the mechanism's own pmf


@pytest.mark.parametrize("m", SINGLE, ids=repr)
def test_mean_is_the_worst_over_answers(m):
    """Half a grid off a lattice point is the worst place for a real answer."""
    whole = getattr(m, "grid", 1) == 1
    x = 0 if whole else m.grid / 2
    y = m.support(0)
    mean = float(np.sum(m.pmf(y, x) * np.abs(y - float(x))))
    assert accuracy.expected_error(m) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("m", SINGLE, ids=repr)
@pytest.mark.parametrize("level", LEVELS)
def test_half_width_is_the_mechanisms_own(m, level):
    assert accuracy.error_law(m).half_width(level) == m.interval(level)
    assert accuracy.largest_error(m, 1, level=level) == m.interval(level)


@pytest.mark.parametrize("m", SINGLE, ids=repr)
@pytest.mark.parametrize("answers", [1, 7, 1000])
def test_largest_error_is_the_least_that_holds(m, answers):
    t = accuracy.largest_error(m, answers, level=0.9)
    step = float(accuracy.error_law(m, answers=answers).step)
    assert accuracy.chance_above(m, t, answers) <= 0.1 * (1 + 1e-12)
    assert t < step or accuracy.chance_above(m, t - step, answers) > 0.1


@pytest.mark.parametrize("m", truncated_geometric.examples, ids=repr)
def test_truncated_count_at_its_worst(m):
    values = np.arange(m.low, m.high + 1)
    errors = np.abs(values[:, None] - values)
    chances = np.array([m.pmf(values, x) for x in values])
    law = accuracy.error_law(m)
    assert law.mean() == pytest.approx((errors * chances).sum(axis=1).max(), rel=1e-12)
    for t in range(m.high - m.low + 1):
        assert law.tail(t) == pytest.approx((chances * (errors > t)).sum(axis=1).max(), rel=1e-9, abs=1e-15)


def test_cdf_of_arrays():
    law = accuracy.error_law(Geometric(2))
    t = np.array([-1, 0, 0.5, 1, 7])
    assert law.cdf(t) == pytest.approx([0, *(1 - DiscreteLaplace(2).tail(np.array([0, 0, 1, 7])))])
    assert np.all(np.diff(accuracy.error_law(Gaussian(2)).cdf(np.linspace(0, 9, 50))) > 0)


# K-norm noise


@pytest.mark.parametrize("m", knorm.examples, ids=repr)
@pytest.mark.parametrize("level", LEVELS)
def test_knorm_agrees_with_itself(m, level):
    assert accuracy.largest_error(m, level=level) == m.largest_error(level)
    assert accuracy.error_law(m).half_width(level) == m.interval(level)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("dimension", [1, 2, 20])
def test_fine_lattices_agree_with_coarse_ones(norm, dimension):
    fine, coarse = (Coordinate(NormBall(norm, 2**bits, dimension=dimension)) for bits in (21, 12))
    for share in (0.3, 0.05, 1e-4):
        assert fine.width(share) / 2**21 == pytest.approx(coarse.width(share) / 2**12, abs=2**-11)
        assert fine.largest_width(share) / 2**21 == pytest.approx(coarse.largest_width(share) / 2**12, abs=2**-11)


@pytest.mark.parametrize(
    ("norm", "scale"), [(1, 2), (2, "1/3"), (2, 2), (math.inf, "1/3"), (math.inf, 2), (math.inf, 30)]
)
@pytest.mark.slow
def test_knorm_mean_is_the_sum_of_tails(norm, scale):
    ball = NormBall(norm, scale, dimension=3)
    summed = math.fsum(np.atleast_1d(ball.tail(np.arange(math.ceil(ball.scale * 45), dtype=float))))
    assert Coordinate(ball).mean_absolute() == pytest.approx(summed, rel=1e-8)


@pytest.mark.slow
def test_knorm_mean_is_near_that_of_fine_lattices():
    fine, coarse = (Coordinate(NormBall(2, scale, dimension=4)).mean_absolute() / scale for scale in (2**20, 50))
    assert coarse == pytest.approx(fine, rel=1e-3)


def test_knorm_mean_on_fine_lattices():
    for norm, value in [(1, 2), (2, 2 * 1.5), (math.inf, 4)]:  # d = 3, scale 2: E|Z_1| = E||z||_2 / 2 = 3
        assert accuracy.expected_error(KNorm(norm, 2, dimension=3)) == pytest.approx(value, rel=1e-6)


def test_linf_noise_saves_the_logarithm():
    """The largest of k errors is Gamma(k): near k, where Laplace noise has k ln(k/beta)."""
    linf = accuracy.largest_error(KNorm("inf", 1, dimension=1000))
    laplace = accuracy.largest_error(Laplace(1000), 1000)
    assert linf == pytest.approx(1052.5767, rel=1e-6)  # the 95 % quantile of Gamma(1000)
    assert laplace == pytest.approx(-1000 * math.log(-math.expm1(math.log(0.95) / 1000)), rel=1e-8)


# The real mechanisms keep what is promised. False alarms: ALPHA each.


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "m",
    [Geometric(5), Laplace(3), Laplace(3, grid="1/2"), Gaussian(4), Gaussian(2, grid=1), Staircase(1, grid="1/8")],
    ids=repr,
)
@pytest.mark.parametrize("answers", [1, 50])
def test_coverage(m, answers):
    runs, level = 4000 // (1 if answers == 1 else 4), 0.9
    t = accuracy.largest_error(m, answers, level=level)
    shift = 0 if isinstance(m, Geometric) or m.grid == 1 else 0.3
    x = np.zeros(answers, dtype=int) if not shift else np.full(answers, shift)
    inside = sum(bool(np.abs(m(x) - x).max() <= t) for _ in range(runs))
    assert binom.cdf(inside, runs, level) > ALPHA


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.slow
def test_coverage_of_knorm(norm):
    m = KNorm(norm, 2, dimension=12)
    t, runs = accuracy.largest_error(m, level=0.8), 1500
    inside = sum(bool(np.abs(m(np.zeros(12))).max() <= t) for _ in range(runs))
    assert binom.cdf(inside, runs, 0.8) > ALPHA
    if norm != 2:  # exact, so it must not hold much more often either
        assert binom.sf(inside - 1, runs, 0.8) > ALPHA


# Refusals


def test_refusals():
    with pytest.raises(InputError, match="level"):
        accuracy.largest_error(Laplace(1), level=1)
    with pytest.raises(InputError, match="answers"):
        accuracy.largest_error(Laplace(1), 0)
    with pytest.raises(InputError, match="3 answers"):
        accuracy.largest_error(KNorm(1, 1, dimension=3), 4)
    with pytest.raises(InputError, match="interval"):
        accuracy.expected_error(RandomizedResponse(1))
