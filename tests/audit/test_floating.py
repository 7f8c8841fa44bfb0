"""Naive floating-point noise is convicted, Noisette's is not (except with probability ALPHA)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA

from noisette.audit.floating import attainable_by_laplace, floating_point_epsilon, laplace_view, last_bits, porous_share
from noisette.mechanisms import Gaussian, KNorm, Laplace, Staircase
from noisette.privacy.convert import gaussian_delta

SURE = 1 - ALPHA
GENERATOR = np.random.default_rng()
NAIVE = {
    "laplace": lambda x, count: x + GENERATOR.laplace(size=count),
    "gaussian": lambda x, count: x + GENERATOR.normal(size=count),
}


def gaussian_epsilon(mu):
    """The epsilon of continuous Gaussian noise at delta = 0.01, to two digits."""
    return min(e / 100 for e in range(1000) if gaussian_delta(Fraction(mu), Fraction(e, 100)) <= 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.parametrize(("x", "x_prime"), [(0.0, 1.0), (0.3, 1.3), (0.0, 1 / 8)])
def test_naive_noise_leaks_in_its_last_bits(name, x, x_prime):
    bound = floating_point_epsilon(None, x, x_prime, delta=0.01, runs=20_000, confidence=SURE, batch=NAIVE[name])
    claimed = {"laplace": x_prime - x, "gaussian": gaussian_epsilon(x_prime - x)}[name]
    assert bound > 1.3 * claimed


@pytest.mark.parametrize("name", NAIVE)
def test_outputs_that_the_neighbour_cannot_have(name):
    assert porous_share(NAIVE[name](0.0, 1000), 1.0) > 0.2
    assert porous_share(NAIVE[name](1.0, 1000), 1.0) == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [Laplace(1), Gaussian(1), Staircase(1), Laplace("1/3"), Gaussian(100)], ids=repr)
def test_noise_on_a_grid_does_not(m):
    released = m(np.zeros(10_000))
    assert porous_share(released, 1.0) == 0
    bound = floating_point_epsilon(
        m, 0.0, 1.0, runs=20_000, delta=0.001, confidence=SURE, batch=lambda x, count: m(np.full(count, x))
    )
    assert bound <= m.guarantee(1).epsilon_at("0.001")


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.slow
def test_noise_of_a_norm_does_not(norm):
    m = KNorm(norm, 1, dimension=2)
    assert floating_point_epsilon(m, [0, 0], [1 / 8, 0], runs=1000, confidence=SURE) <= m.guarantee("1/8").epsilon


@pytest.mark.parametrize(("x", "x_prime"), [(5.0, 6.0), (0.0, 1.0), (4.25, 5.25)])
def test_most_floats_are_no_logarithm_of_a_53_bit_number(x, x_prime):
    y = NAIVE["laplace"](x, 5000)
    assert attainable_by_laplace(y, x, 1.0).all()
    assert attainable_by_laplace(y, x_prime, 1.0).mean() < 0.85


@pytest.mark.slow
def test_an_attacker_who_knows_the_sampler_convicts_within_a_binade():
    view = laplace_view(5.0, 6.0, 1.0)
    naive = floating_point_epsilon(None, 5.0, 6.0, view=view, runs=3000, confidence=SURE, batch=NAIVE["laplace"])
    assert naive > 1.5  # claims 1
    m = Laplace(1)
    honest = floating_point_epsilon(
        m, 5.0, 6.0, view=view, runs=3000, confidence=SURE, batch=lambda x, count: m(np.full(count, x))
    )
    assert honest <= m.guarantee(1).epsilon_at(0)


@pytest.mark.parametrize(
    ("y", "bits"),
    [(1.0, (0, 0)), (-6.0, (2, 1)), (5e-324, (-1074, -1074)), (math.inf, None), ([1.0, 0.0], ((0, 0), None))],
)
def test_last_bits(y, bits):
    assert last_bits(y) == bits
