"""Products of strategies over a grid: against dense least squares, every placement of rows, and any variances."""

import itertools

import numpy as np
import pytest
from tests.strategies import RELATIONS, largest, least_squares, levels, noisy, worst_loss, worst_rho

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Estimate, Linear, placed, weights
from noisette.releases.strategies.haar import Haar
from noisette.releases.strategies.nominal import Nominal
from noisette.releases.strategies.product import Product, rectangles
from noisette.releases.strategies.toeplitz import SquareRoot
from noisette.releases.tree import Tree

GRIDS = [
    Product((Tree(4, (2, 1)), Tree(3))),
    Product((Haar(4), Haar(3))),
    Product((Tree(3), Haar(5))),
    Product((Haar(2), Tree(2), Haar(3))),
    Product((Nominal(((0, 0, 1),)), Tree(3, (3, 1)))),
    Product((SquareRoot(3), Tree(2))),
    Product((Tree(5, (4, 2, 1)),)),
]
PARTS = [ONE_ROW, Contribution(2, 1, 2), Contribution(1, 2, 2)]


def all_rectangles(shape):
    """The first and the last cells of all rectangles, and the rectangles as rows of 0 and 1."""
    sides = [list(zip(*np.triu_indices(n), strict=True)) for n in shape]
    corners = np.array(list(itertools.product(*sides)))
    at = np.indices(shape).reshape(len(shape), -1).T
    low, high = corners[..., 0], corners[..., 1]
    return low, high, ((at >= low[:, None]) & (at <= high[:, None])).all(axis=2).astype(float)


def products(grid, seed=1):
    rng = np.random.default_rng(seed)
    axes = [rng.uniform(0.5, 3, len(axis.shares(gaussian=True))) for axis in grid.axes]
    return [float(np.prod(some)) for some in itertools.product(*axes)]


@pytest.mark.parametrize("grid", GRIDS)
def test_it_is_least_squares_if_variances_are_products(grid):
    v = products(grid)
    y, _ = noisy(grid, 1)
    x, covariance = least_squares(grid, y, v)
    assert np.allclose(grid.infer(y, v), x, rtol=0, atol=1e-8 * np.abs(x).max())
    low, high, queries = all_rectangles(grid.shape)
    truth = np.einsum("ij,jk,ik->i", queries, covariance, queries)
    assert np.allclose(grid.rectangle_variances(low, high, v), truth, rtol=1e-8, atol=0)
    assert not np.allclose(grid.rectangle_variances(low, high, [1.2 * v[0], *v[1:]]), truth, rtol=1e-8, atol=0)
    found = rectangles(Estimate(grid, x, ()), low, high)
    assert np.allclose(found, queries @ x, rtol=0, atol=1e-8 * np.abs(x).max())


@pytest.mark.parametrize("grid", GRIDS)
def test_estimates_are_unbiased_and_variances_exact_for_any_variances(grid):
    y, v = noisy(grid, 2)
    cuts = np.cumsum([len(level) for level in y])[:-1]
    inverse = np.array([grid.infer(np.split(unit, cuts), v) for unit in np.eye(sum(map(len, y)))]).T
    assert np.allclose(inverse @ np.vstack(levels(grid)), np.eye(grid.cells), atol=1e-6)
    spread = np.concatenate([np.full(len(level), one) for level, one in zip(y, v, strict=True)])
    low, high, queries = all_rectangles(grid.shape)
    truth = ((queries @ inverse) ** 2 * spread).sum(axis=1)
    assert np.allclose(grid.rectangle_variances(low, high, v), truth, rtol=1e-7, atol=0)
    by_level = np.stack([(part**2).sum(axis=1) for part in np.split(inverse, cuts, axis=1)], axis=1)
    cells = np.arange(grid.cells)
    assert np.allclose(weights(grid, cells, cells, v), by_level, rtol=1e-6, atol=1e-9 * by_level.max())


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(
    "grid", [Product((Tree(4, (2, 1)), Tree(2))), Product((Haar(4), Haar(2))), Product((Tree(2), Haar(4)))]
)
def test_no_placement_of_rows_moves_a_level_of_blocks_further(grid, neighbours, part):
    stated = grid.sensitivities(part, neighbours)
    for one, (l1, l2_squared, linf, l0) in zip(stated, largest(grid, part, neighbours), strict=True):
        assert (one.l1, one.l2_squared, one.linf) == (l1, l2_squared, linf)
        assert one.l0 >= l0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("grid", GRIDS[4:6])
def test_norms_of_other_axes_are_bounds(grid, neighbours, part):
    stated = grid.sensitivities(part, neighbours)
    for one, (l1, l2_squared, linf, l0) in zip(stated, largest(grid, part, neighbours), strict=True):
        assert min(one.l1 - l1, one.l2_squared - l2_squared, one.linf - linf, one.l0 - l0) >= 0
        if neighbours is Neighbours.ADD_REMOVE and part.rows == part.total:
            assert (one.l1, one.l2_squared, one.linf) == (l1, l2_squared, linf)


def test_root_k_at_upper_levels_is_too_little():
    grid, part = Product((Tree(2, (2, 1)), Tree(2, (2, 1)))), Contribution(3, 1, 3)
    upper = largest(grid, part, Neighbours.ADD_REMOVE)[0]
    assert placed(part, 1, Neighbours.ADD_REMOVE).l2_squared < upper[1] == 9


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("grid", [Product((Haar(2), Tree(3, (3, 1)))), GRIDS[5]])
def test_no_pair_of_neighbours_loses_more_than_promised(grid, neighbours):
    part = Contribution(2, 1, 2)
    made = Linear.calibrated(1, grid, part=part, neighbours=neighbours)
    assert 0.5 < worst_loss(made, part, neighbours) <= 1
    twin = Linear(grid, tuple(type(noise)(noise.scale / 2) for noise in made.noise), made.moved)
    assert worst_loss(twin, part, neighbours) > 1
    smooth = Linear.calibrated("1, 1e-6", grid, part=part, neighbours=neighbours)
    assert worst_rho(smooth, part, neighbours) <= smooth.guarantee().rho


def test_ranges_of_cells_are_answered_where_they_are_rectangles():
    grid, v = GRIDS[0], products(GRIDS[0])
    low, high = np.array([0, 3, 0, 5]), np.array([11, 5, 8, 5])
    corners = [[0, 0], [1, 0], [0, 0], [1, 2]], [[3, 2], [1, 2], [2, 2], [1, 2]]
    assert np.array_equal(grid.variances(low, high, v), grid.rectangle_variances(*corners, v))
    with pytest.raises(InputError, match="rectangle_variances"):
        grid.variances(np.array([1]), np.array([3]), v)


def test_what_is_no_grid_is_refused():
    with pytest.raises(InputError, match="at least one axis"):
        Product(())
    with pytest.raises(InputError, match="counts of a grid"):
        rectangles(Estimate(Tree(4), np.zeros(4), ()), [[0, 0]], [[1, 1]])
