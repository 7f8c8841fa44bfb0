"""The program of linear releases: how far one unit moves counts of blocks, over all placements of its rows."""

import numpy as np
import pytest
from tests.strategies import RELATIONS, assert_attained, assert_least_squares, largest, worst_loss, worst_rho

from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import Linear, placed
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
