"""The square root of prefix sums: against dense least squares, every placement of rows, and known figures."""

import numpy as np
import pytest
from tests.strategies import RELATIONS, assert_least_squares, largest, levels, worst_rho

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Linear
from noisette.releases.strategies.toeplitz import SquareRoot, _inverse, _spreads

PARTS = [ONE_ROW, Contribution(2, 1, 2), Contribution(2, 2, 3), Contribution(1, 3, 3)]


@pytest.mark.parametrize("cells", [1, 2, 3, 8, 13])
def test_it_is_least_squares(cells):
    assert_least_squares(SquareRoot(cells))


def test_the_square_is_the_matrix_of_prefix_sums():
    (root,) = levels(SquareRoot(20))
    assert np.allclose(root @ root / 2.0**40, np.tri(20), atol=1e-5)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("cells", [4, 6])
def test_no_placement_of_rows_moves_it_further(cells, part):
    for neighbours in RELATIONS:
        (stated,), ((l1, l2_squared, linf, _),) = (
            SquareRoot(cells).sensitivities(part, neighbours),
            largest(SquareRoot(cells), part, neighbours),
        )
        assert stated.linf == linf
        if neighbours is Neighbours.ADD_REMOVE:
            assert (stated.l1, stated.l2_squared) == (l1, l2_squared)
        else:
            assert l1 <= stated.l1 <= 2 * l1
            assert l2_squared <= stated.l2_squared <= 2 * l2_squared
            assert part.rows < part.total or stated.l2_squared == l2_squared


def test_root_k_for_rows_in_neighbouring_cells_is_too_little():
    three, one = (Contribution(k, 1, k) for k in (3, 1))
    ((_, squares, _, _),) = largest(SquareRoot(6), three, Neighbours.ADD_REMOVE)
    (single,) = SquareRoot(6).sensitivities(one, Neighbours.ADD_REMOVE)
    assert 3 * single.l2_squared < squares


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("part", PARTS)
def test_no_pair_of_neighbours_costs_more_than_promised(part, neighbours):
    made = Linear.calibrated("1, 1e-6", SquareRoot(5), part=part, neighbours=neighbours)
    worst, stated = worst_rho(made, part, neighbours), made.guarantee().rho
    assert stated / 2 < worst <= stated
    if part.rows == part.total:
        assert worst > stated * 0.999
        twin = Linear(made.strategy, (type(made.noise[0])(made.noise[0].sigma * 4 / 5),), made.moved)
        assert worst_rho(twin, part, neighbours) > stated


@pytest.mark.parametrize(
    ("cells", "most", "mean"), [(64, 2.3888, 2.2297), (1024, 3.2726, 3.1098), (4096, 3.7139, 3.5513)]
)
def test_known_figures(cells, most, mean):
    root, ends = SquareRoot(cells), np.arange(cells)
    (moved,) = root.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    found = np.sqrt(root.variances(np.zeros_like(ends), ends, [float(moved.l2_squared)]))
    assert found.max() == pytest.approx(most, abs=1e-4)
    assert np.sqrt((found**2).mean()) == pytest.approx(mean, abs=1e-4)


def test_the_series_for_variances_is_that_of_the_inverse():
    b, squares = _spreads(5000)
    exact = np.cumsum(_inverse(5000))
    assert np.allclose(b, exact, rtol=1e-7)
    assert np.allclose(squares[1:], np.cumsum(exact**2), rtol=1e-11)


def test_zero_noise_gives_the_counts_back():
    x = np.random.default_rng(3).integers(0, 2**30, 3000)
    root = SquareRoot(3000)
    assert np.array_equal(np.round(root.infer([root.measure(x)[0].astype(float)], [1.0])), x)


def test_too_many_cells_are_refused():
    with pytest.raises(InputError, match="merge some"):
        SquareRoot(2**22 + 1)
