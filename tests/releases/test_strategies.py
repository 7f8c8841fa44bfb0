"""All strategies: what is released has the stated law, and what one row changes has the stated probability."""

from fractions import Fraction

import numpy as np
import pytest

from noisette.privacy import Neighbours
from noisette.releases.linear import Linear
from noisette.releases.strategies.fourier import fourier
from noisette.releases.strategies.haar import Haar
from noisette.releases.strategies.nominal import Nominal
from noisette.releases.strategies.p_identity import optimised
from noisette.releases.strategies.product import Product
from noisette.releases.strategies.toeplitz import SquareRoot
from noisette.releases.tree import Tree

STRATEGIES = [
    Tree(16, (8, 2, 1)),
    Haar(16),
    Haar(13),
    SquareRoot(16),
    fourier(16, 7),
    optimised(np.tri(16)),
    Nominal(((0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3), (0, 0, 1, 1))),
    Product((Haar(4), Tree(4, (2, 1)))),
]
RUNS = 4000


def mean_square(linear, runs):
    """The mean of (error of cells 4 .. 11)^2 over runs, as a share of the stated variance; `infer` is linear."""
    shapes = [len(level) for level in linear.strategy.measure(np.zeros(linear.strategy.cells, np.int64))]
    cuts, units = np.cumsum(shapes)[:-1], np.eye(sum(shapes))
    weights = np.array([linear.strategy.infer(np.split(one, cuts), linear.variance)[4:12].sum() for one in units])
    drawn = [noise(np.zeros((runs, size), np.int64)) for noise, size in zip(linear.noise, shapes, strict=True)]
    found = np.concatenate(drawn, axis=1).astype(float) @ weights
    return np.mean(found**2) / linear.strategy.variances(np.array([4]), np.array([11]), linear.variance)[0]


@pytest.mark.parametrize("spend", [1, "1, 1e-6"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_errors_have_the_stated_variance(strategy, spend):
    """A squared standardised error has a variance of at most 5, so that 0.27 are 7.5 deviations of the mean."""
    made = Linear.calibrated(spend, strategy)
    assert abs(mean_square(made, RUNS) - 1) < 0.27  # fails with p < 1e-9
    less = tuple(type(one)(Fraction(4, 5) * (one.scale if spend == 1 else one.sigma)) for one in made.noise)
    twin = mean_square(Linear(strategy, less, made.moved), RUNS)
    shrunk = max(small.variance() / one.variance() for small, one in zip(less, made.noise, strict=True))
    assert twin * shrunk < 0.82  # fails with p < 1e-9: of the stated variance, noise x 0.8 has 0.64


@pytest.mark.parametrize("strategy", [Tree(2, (2, 1)), Haar(2), Nominal(((0, 0),)), optimised(np.tri(2))])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_no_output_is_more_than_e_to_the_epsilon_times_as_likely_for_a_neighbour(strategy, neighbours):
    """Numbers are independent, so the largest ratios of their probabilities multiply; each is attained beyond both."""
    made = Linear.calibrated(2, strategy, neighbours=neighbours)
    rows = [(2, 1), (4, 1), (3, 0), (3, 2)] + [(2, 2), (4, 0)] * (neighbours is Neighbours.REPLACE)
    before = strategy.measure(np.array((3, 1)))
    losses = []
    for row in rows:
        after, loss = strategy.measure(np.array(row)), 0.0
        for noise, one, other in zip(made.noise, before, after, strict=True):
            outputs = np.stack([np.minimum(one, other) - 1, one, other, np.maximum(one, other) + 1])
            ratios = np.log(noise.pmf(outputs, one) / noise.pmf(outputs, other))
            loss += float(np.abs(ratios).max(axis=0).sum())
        losses.append(loss)
    assert max(losses) <= 2 * (1 + 1e-9)
    assert neighbours is Neighbours.REPLACE or max(losses) > 2 * (1 - 1e-4), "and with less noise it would be more"
