"""Margins by least squares: as any solver has them, consistent, with the variances that are stated."""

import itertools
import math

import numpy as np
import pytest

from noisette.releases.lattice import consistent, rolled_up, variances

SHAPE = (2, 3, 2)
ALL = (0, 1, 2)
SETS = {
    "rollup": [(0, 1, 2), (0, 1), (0,), ()],
    "cube": [axes for size in range(4) for axes in itertools.combinations(ALL, size)],
    "finest alone": [(0, 1, 2)],
    "without the finest": [(0, 1), (1, 2), ()],
}


def matrix(axes):
    """The sums of a margin, as rows over the cells of the whole table."""
    cells = np.eye(math.prod(SHAPE)).reshape(*SHAPE, -1)
    return cells.sum(axis=tuple(k for k in ALL if k not in axes)).reshape(-1, math.prod(SHAPE))


def solved(sets, variance):
    """Estimates of all cells, as a matrix to multiply with what was measured (of least norm where it is not known)."""
    weights = np.concatenate([np.full(len(matrix(s)), variance[s] ** -0.5) for s in sets])
    stacked = np.concatenate([matrix(s) for s in sets])
    return np.linalg.pinv(stacked * weights[:, None]) * weights


@pytest.mark.parametrize("name", SETS)
def test_as_least_squares(name):
    sets, chance = SETS[name], np.random.default_rng(7)
    variance = {axes: float(chance.uniform(0.5, 4)) for axes in sets}
    noisy = {axes: chance.normal(50, 9, [SHAPE[k] for k in axes]) for axes in sets}
    solution = solved(sets, variance)
    cells = solution @ np.concatenate([noisy[axes].reshape(-1) for axes in sets])
    covariance = (solution * np.concatenate([np.full(noisy[s].size, variance[s]) for s in sets])) @ solution.T
    for t in SETS["cube"]:
        if any(set(t) <= set(s) for s in sets):
            assert consistent(SHAPE, noisy, variance, t).reshape(-1) == pytest.approx(matrix(t) @ cells)
            stated = np.diag(matrix(t) @ covariance @ matrix(t).T)
            assert stated == pytest.approx(np.full(len(stated), variances(SHAPE, variance, t)))


def test_totals_are_the_sums_of_their_parts():
    chance = np.random.default_rng(8)
    noisy = {axes: chance.normal(0, 9, [SHAPE[k] for k in axes]) for axes in SETS["cube"]}
    variance = dict.fromkeys(noisy, 1.0)
    finest = consistent(SHAPE, noisy, variance, ALL)
    for t in SETS["cube"]:
        added = finest.sum(axis=tuple(k for k in ALL if k not in t))
        assert consistent(SHAPE, noisy, variance, t) == pytest.approx(added)


def test_a_weight_of_another_set_is_noticed():
    """With the variances of two sets swapped, estimates are no longer those of least squares."""
    noisy, right = {(0,): np.array([1.0, 5.0]), (): np.array(9.0)}, {(0,): 1.0, (): 4.0}
    wrong = {(0,): 4.0, (): 1.0}
    assert consistent((2,), noisy, right, ()) != pytest.approx(consistent((2,), noisy, wrong, ()))
    assert variances((2,), right, ()) == pytest.approx(1 / (1 / 2 + 1 / 4))


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)])
def test_exact_sums_are_exact_and_cut(axes):
    """Like Python's own integers, cut at the ends; what follows the cells stays."""
    chance = np.random.default_rng(9)
    most = 2**62
    for top in (3, 2**31, 2**53, most):
        table = chance.integers(-top, top, (2, 3, 4), endpoint=True)
        table[0, 0], table[1, 2] = top, -top
        found = rolled_up(table.reshape(6, 4), (2, 3), axes)
        others = tuple(k for k in (0, 1) if k not in axes)
        right = np.clip(table.astype(object).sum(axis=others), -most, most)
        assert found.reshape(-1).tolist() == np.asarray(right).reshape(-1).tolist()
