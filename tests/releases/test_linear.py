"""The program of linear releases: how far one unit moves counts of blocks, over all placements of its rows."""

import numpy as np
import pytest
from tests.strategies import (
    RELATIONS,
    all_ranges,
    assert_attained,
    assert_least_squares,
    largest,
    levels,
    worst_loss,
    worst_rho,
)

from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import Linear, peak, placed, weights, widest
from noisette.releases.tree import Tree

PARTS = [Contribution(1, 1, 1), Contribution(2, 1, 2), Contribution(2, 2, 3), Contribution(1, 3, 3)]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("sizes", [(1,), (2, 1), (6, 3, 1)])
def test_no_placement_of_rows_moves_a_level_further(sizes, neighbours, part):
    assert_attained(Tree(6, sizes), part, neighbours)


def test_root_k_at_upper_levels_is_too_little():
    part, tree = Contribution(3, 1, 3), Tree(6, (3, 1))
    upper, lower = largest(tree, part, Neighbours.ADD_REMOVE)
    assert (upper[1], lower[1]) == (9, 3)
    twin = placed(part, 1, Neighbours.ADD_REMOVE)  # as if all levels were single cells
    assert twin.l2_squared < upper[1]


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("part", PARTS)
def test_no_pair_of_neighbours_loses_more_than_promised(part, neighbours):
    made = Linear.calibrated(1, Tree(6, (3, 1)), part=part, neighbours=neighbours)
    assert worst_loss(made, part, neighbours) == 1
    smooth = Linear.calibrated("1, 1e-6", Tree(6, (3, 1)), part=part, neighbours=neighbours)
    assert worst_rho(smooth, part, neighbours) <= smooth.guarantee().rho
    half = Linear(made.strategy, tuple(type(noise)(noise.scale * 4 / 5) for noise in made.noise), made.moved)
    assert worst_loss(half, part, neighbours) > 1


def test_trees_are_least_squares():
    assert_least_squares(Tree(13, (6, 3, 1)))
    assert np.allclose(Tree(4).variances(np.array([0]), np.array([3]), (2.0,)), 8)


@pytest.mark.parametrize("epsilon", [1, 6])
@pytest.mark.parametrize("sizes", [(8, 1), (16, 4, 1), (8, 4, 2, 1)])
def test_bars_are_proved_for_the_weights_that_estimates_have(sizes, epsilon):
    """Whole noise is within Laplace noise of scale `peak`; what counts is the deviation of the estimate under it."""
    made = Linear.calibrated(epsilon, Tree(16, sizes), shares=range(1, len(sizes) + 1))
    counts = [len(level) for level in levels(made.strategy)]
    inverse = np.array(
        [made.strategy.infer(np.split(one, np.cumsum(counts)[:-1]), made.variance) for one in np.eye(sum(counts))]
    ).T
    low, high, queries = all_ranges(16)
    wider = np.repeat([2 * peak(noise) ** 2 for noise in made.noise], counts)
    truth = ((queries @ inverse) ** 2 * wider).sum(axis=1)
    half = made(np.zeros(16, np.int64)).half_widths(low, high, 0.95)
    assert np.allclose(half, widest(made.noise[0], 0.95) * np.sqrt(truth), rtol=2e-6)
    assert (half >= widest(made.noise[0], 0.95) * np.sqrt(truth)).all()
    twin = made.strategy.variances(low, high, [2 * peak(noise) ** 2 for noise in made.noise])
    assert (twin < truth * (1 - 1e-4)).any(), "least squares for the wider noise has other weights"


def test_bars_of_many_cells_are_wider_at_most():
    made = Linear.calibrated(1, Tree(1 << 17, (256, 1)))
    ends = np.array([5, 700]), np.array([9, 70_000])
    found = made.infer([np.zeros(512), np.zeros(1 << 17)])
    exact = weights(made.strategy, *ends, made.variance) @ [2 * peak(noise) ** 2 for noise in made.noise]
    half = found.half_widths(*ends, 0.95) / widest(made.noise[0], 0.95)
    assert (half >= np.sqrt(exact)).all()
    assert (half <= 1.1 * np.sqrt(exact)).all()
