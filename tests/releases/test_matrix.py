"""Strategies that are matrices: against dense least squares and every placement of rows."""

import numpy as np
import pytest
from tests.strategies import RELATIONS, assert_least_squares, largest, worst_loss, worst_rho

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Linear
from noisette.releases.strategies.matrix import Matrix

PARTS = [ONE_ROW, Contribution(2, 1, 2), Contribution(2, 2, 3), Contribution(1, 3, 3)]
RNG = np.random.default_rng(5)
MATRICES = [Matrix(RNG.integers(low, 10, shape)) for low in (-9, 0) for shape in ((8, 5), (5, 5), (3, 5))]
MATRICES += [Matrix(np.eye(5, dtype=np.int64)), Matrix(np.tri(5, dtype=np.int64))]


@pytest.mark.parametrize("matrix", MATRICES)
def test_it_is_least_squares(matrix):
    assert_least_squares(matrix)
    assert matrix.biased == (len(matrix.rows) < 5)


def test_any_query_has_its_variance():
    matrix = MATRICES[0]
    low, high = np.triu_indices(5)
    queries = (np.arange(5) >= low[:, None]) & (np.arange(5) <= high[:, None])
    assert np.allclose(matrix.query_variances(queries, [3.0]), matrix.variances(low, high, [3.0]))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_no_placement_of_rows_moves_it_further(matrix, neighbours, part):
    (stated,), ((l1, l2_squared, linf, l0),) = matrix.sensitivities(part, neighbours), largest(matrix, part, neighbours)
    assert stated.linf == linf
    assert min(stated.l1 - l1, stated.l2_squared - l2_squared, stated.l0 - l0) >= 0
    if part.rows == part.total:
        assert (stated.l1, stated.l2_squared) == (l1, l2_squared)
    assert stated.l1 <= 2 * l1
    assert stated.l2_squared <= 2 * l2_squared


def test_root_k_is_too_little():
    total = Matrix(np.ones((1, 5), np.int64))
    ((_, squares, _, _),) = largest(total, Contribution(3, 1, 3), Neighbours.ADD_REMOVE)
    (one,) = total.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    assert 3 * one.l2_squared < squares


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_no_pair_of_neighbours_loses_more_than_promised(neighbours, part):
    for matrix in MATRICES[:3]:
        made = Linear.calibrated(1, matrix, part=part, neighbours=neighbours)
        assert worst_loss(made, part, neighbours) <= 1
        smooth = Linear.calibrated("1, 1e-6", matrix, part=part, neighbours=neighbours)
        assert worst_rho(smooth, part, neighbours) <= smooth.guarantee().rho
        twin = Linear(matrix, (type(made.noise[0])(made.noise[0].scale / 2),), made.moved)
        assert worst_loss(twin, part, neighbours) > 1


def test_large_counts_do_not_overflow():
    x = np.full(3, 2**60)
    assert Matrix(np.full((1, 3), 2**20)).measure(x)[0].tolist() == [3 * 2**80]


@pytest.mark.parametrize("rows", [np.zeros((2, 2), int), np.ones((2, 2)), np.ones(3, int), np.full((1, 1), 2**25)])
def test_what_is_no_public_matrix_of_whole_numbers_is_refused(rows):
    with pytest.raises(InputError, match="strategy"):
        Matrix(rows)
