"""The sampled bound convicts liars and stays below the truth: here with a false-conviction probability of ALPHA."""

import math

import numpy as np
import pytest
from tests.goodness import ALPHA, most

from noisette.audit.sampled import epsilon_lower_bound
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, KNorm, Laplace, RandomizedResponse, Staircase

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
