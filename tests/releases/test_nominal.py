"""Nominal wavelets: against dense least squares, every placement of rows, and the published weights."""

import numpy as np
import pytest
from tests.strategies import RELATIONS, assert_least_squares, largest, worst_loss, worst_rho

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Linear
from noisette.releases.strategies.nominal import Nominal

PARTS = [ONE_ROW, Contribution(2, 1, 2), Contribution(2, 2, 3), Contribution(1, 3, 3)]
HIERARCHIES = [
    ((0, 0, 0, 1, 1),),
    ((0, 0, 0, 0, 1),),
    ((0, 1, 0, 1, 0, 2),),
    ((0, 0, 1, 1, 2, 2), (0, 0, 1)),
    ((0, 0, 0),),
    ((0, 0, 1, 1, 1, 2), (0, 1, 2)),
]


@pytest.mark.parametrize("parents", HIERARCHIES)
def test_it_is_least_squares(parents):
    made = Nominal(parents)
    assert_least_squares(made)
    x = np.arange(made.cells) ** 3
    exact = [np.asarray(level, float) for level in made.measure(x)]
    assert np.allclose(made.infer(exact, [1.0] * len(exact)), x)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("parents", HIERARCHIES)
def test_no_placement_of_rows_moves_a_level_further(parents, neighbours, part):
    made = Nominal(parents)
    stated = made.sensitivities(part, neighbours)
    for one, (l1, l2_squared, linf, l0) in zip(stated, largest(made, part, neighbours), strict=True):
        assert min(one.l1 - l1, one.l2_squared - l2_squared, one.linf - linf, one.l0 - l0) >= 0
        if part.rows == part.total:
            assert (one.l1, one.l2_squared, one.linf) == (l1, l2_squared, linf)
        assert one.l2_squared <= 2 * l2_squared


def test_root_k_at_upper_levels_is_too_little():
    made, part = Nominal(((0, 0, 0, 1, 1, 1),)), Contribution(3, 1, 3)
    upper = largest(made, part, Neighbours.ADD_REMOVE)[1]
    one = made.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)[1]
    assert 3 * one.l2_squared < upper[1] == made.sensitivities(part, Neighbours.ADD_REMOVE)[1].l2_squared


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_no_pair_of_neighbours_loses_more_than_promised(neighbours, part):
    made = Linear.calibrated(1, Nominal(HIERARCHIES[3]), part=part, neighbours=neighbours)
    worst = worst_loss(made, part, neighbours)
    attained = part.rows == part.total and neighbours is Neighbours.ADD_REMOVE
    assert worst == 1 if attained else worst < 1
    twin = Linear(made.strategy, tuple(type(noise)(noise.scale / 2) for noise in made.noise), made.moved)
    assert worst_loss(twin, part, neighbours) > 1
    smooth = Linear.calibrated("1, 1e-6", made.strategy, part=part, neighbours=neighbours)
    assert worst_rho(smooth, part, neighbours) <= smooth.guarantee().rho


def test_equal_shares_are_the_published_mechanism():
    """Noise of scale h/(epsilon W), W = f/(2f - 2), on the sum of a child minus the mean of its siblings."""
    made = Nominal(((0, 0, 0, 1, 1, 1, 1),), equal=True)
    release = Linear.calibrated(1, made)
    for noise, level in zip(release.noise[1:], made.levels, strict=True):
        published = 3 * (2 * level.fans - 2) / level.fans
        assert np.allclose(float(noise.scale) / (level.fans * level.scales), published)


@pytest.mark.parametrize("gaussian", [False, True])
def test_no_other_shares_are_better_for_all_groups_and_cells(gaussian):
    made, rng = Nominal(((0, 0, 0, 1, 1, 2, 2, 2, 2), (0, 0, 1))), np.random.default_rng(1)
    cells = np.eye(9)
    regions = np.array([[0, 0, 0, 1, 1, 2, 2, 2, 2]]) == np.arange(3)[:, None]
    queries = np.vstack([np.ones(9), regions[:2].sum(axis=0), regions[2], regions, cells])
    moved = made.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    size = np.array([float(one.l2 if gaussian else one.l1) for one in moved])

    def error(shares):
        shares = np.array(shares) / (np.sqrt(np.sum(np.square(shares))) if gaussian else np.sum(shares))
        return made.query_variances(queries, (size / shares) ** 2).sum()

    best = made.shares(gaussian=gaussian)
    assert all(error(best) <= error(best * rng.uniform(0.8, 1.25, len(best))) for _ in range(40))
    assert error(best) < error(np.ones(len(best)))


@pytest.mark.parametrize("parents", [(), ((),), ((0, 2),), ((1, 1),), ((0, 0, 1), (0, 0, 0)), ((-1, 0),)])
def test_what_is_no_hierarchy_is_refused(parents):
    with pytest.raises(InputError, match="parents must name"):
        Nominal(parents)
