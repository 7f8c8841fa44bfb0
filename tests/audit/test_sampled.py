"""The sampled bound convicts liars and stays below the truth: here with a false-conviction probability of ALPHA.

Naive floating-point noise is convicted, Noisette's is not (except with probability ALPHA)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, most

from noisette.audit.sampled import (
    attainable_by_laplace,
    epsilon_lower_bound,
    floating_point_epsilon,
    laplace_view,
    last_bits,
    porous_share,
)
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, KNorm, Laplace, RandomizedResponse, Staircase
from noisette.privacy.convert import gaussian_delta

SURE = 1 - ALPHA


def in_arrays(m):
    return lambda x, count: m(np.full(count, x))


@pytest.mark.parametrize(
    ("m", "x", "epsilon"),
    [(Geometric(1), 1, 1), (Laplace(1), 1.0, 1), (Staircase(2), 1.0, 2), (RandomizedResponse(1), 1, 1)],
    ids=repr,
)
def test_honest_mechanisms_stay_below_their_epsilon_and_near_it(m, x, epsilon):
    bound = epsilon_lower_bound(m, 0 * x, x, runs=200_000, confidence=SURE, batch=in_arrays(m))
    assert 0.7 * epsilon < bound <= epsilon * (1 + 1e-6)


@pytest.mark.slow
def test_half_the_noise_is_convicted():
    generator = np.random.default_rng()
    bound = epsilon_lower_bound(
        lambda x: x + generator.laplace(scale=0.5), 0.0, 1.0, runs=100_000, confidence=SURE
    )  # claims epsilon 1
    assert 1.5 < bound <= 2 * (1 + 1e-6)


@pytest.mark.slow
def test_gaussian_noise_needs_delta():
    m = Gaussian(2)
    bound = epsilon_lower_bound(m, 0.0, 2.0, runs=400_000, delta=0.01, confidence=SURE, batch=in_arrays(m))
    assert 0.5 < bound <= m.epsilon_at("0.01", 2)
    small = Gaussian("1/4")
    bound = epsilon_lower_bound(small, 0.0, 2.0, runs=400_000, delta=0.01, confidence=SURE, batch=in_arrays(small))
    assert bound > m.epsilon_at("0.01", 2)


@pytest.mark.parametrize("release", [lambda y: f"about {y}", lambda y: (y, "x"), lambda y: np.array([y, 0])])
def test_outputs_may_be_anything_that_can_be_hashed(release):
    m = RandomizedResponse(2)

    def batch(x, count):
        return [release(y) for y in m(np.full(count, x))]

    bound = epsilon_lower_bound(None, 0, 1, runs=4000, confidence=SURE, batch=batch)
    assert 1 < bound <= 2


@pytest.mark.slow
def test_vectors():
    m = KNorm(math.inf, 1, dimension=2, grid=1)
    assert 0.3 < epsilon_lower_bound(m, [0, 0], [8, 8], runs=4000, confidence=SURE) <= 8


def test_events_need_not_be_thresholds():
    generator = np.random.default_rng()

    def parity(x):
        return 2 * int(generator.integers(1000)) + (x if generator.random() < 0.9 else 1 - x)

    def parity_of_few(x):
        return parity(x) % 16

    assert epsilon_lower_bound(parity_of_few, 0, 1, confidence=SURE) > 1.5


def test_constants_and_certain_giveaways():
    assert epsilon_lower_bound(lambda x: 7, 0, 1, runs=1000) == 0
    assert epsilon_lower_bound(lambda x: x, 0, 1, runs=1000) > 4
    assert epsilon_lower_bound(lambda x: math.nan, 0, 1, runs=1000) == 0


@pytest.mark.slow
def test_false_convictions_are_as_rare_as_stated():
    wrong = sum(
        epsilon_lower_bound(None, 0, 1, runs=400, confidence=0.9, batch=in_arrays(RandomizedResponse("1/2"))) > 0.5
        for _ in range(400)
    )
    assert wrong <= most(400, 0.1)  # fails with p < 1e-12


@pytest.mark.parametrize("options", [{"confidence": 1}, {"delta": 1}, {"delta": -0.1}, {"runs": 2}])
def test_bad_parameters(options):
    with pytest.raises(InputError):
        epsilon_lower_bound(lambda x: x, 0, 1, **options)


# Floats


GENERATOR = np.random.default_rng()
NAIVE = {
    "laplace": lambda x, count: x + GENERATOR.laplace(size=count),
    "gaussian": lambda x, count: x + GENERATOR.normal(size=count),
}


def gaussian_epsilon(mu):
    """The epsilon of continuous Gaussian noise at delta = 0.01, to two digits."""
    return min(e / 100 for e in range(1000) if gaussian_delta(Fraction(mu), Fraction(e, 100)) <= 0.01)


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
