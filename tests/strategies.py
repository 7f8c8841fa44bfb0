"""Strategies against dense linear algebra and against every placement of a unit's rows."""

import itertools

import numpy as np

from noisette.privacy import Neighbours

RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)


def levels(strategy):
    """The matrix of each level: what is measured of a single row in each cell."""
    columns = [strategy.measure(unit) for unit in np.eye(strategy.cells, dtype=np.int64)]
    return [np.array(level).T for level in zip(*columns, strict=True)]


def placements(cells, part):
    """All counts of cells that one unit can have."""
    for some in itertools.product(range(part.rows + 1), repeat=cells):
        if sum(some) <= part.total and sum(count > 0 for count in some) <= part.groups:
            yield some


def moves(cells, part, neighbours):
    """All changes of the counts when one unit comes, or another comes for it."""
    one = np.array(list(placements(cells, part)))
    if neighbours is Neighbours.ADD_REMOVE:
        return one
    return np.unique((one[:, None, :] - one[None, :, :]).reshape(-1, cells), axis=0)


def largest(strategy, part, neighbours):
    """The largest l1, l2 squared, linf and l0 of each level over all moves, by trying them all."""
    change, found = moves(strategy.cells, part, neighbours), []
    for matrix in levels(strategy):
        moved = np.abs(change @ matrix.T).astype(object)
        norms = moved.sum(axis=1), (moved**2).sum(axis=1), moved.max(axis=1), (moved > 0).sum(axis=1)
        found.append(tuple(int(norm.max()) for norm in norms))
    return found


def assert_attained(strategy, part, neighbours):
    """Stated norms are attained by some placement and exceeded by none; l0 is not exceeded."""
    stated = strategy.sensitivities(part, neighbours)
    for one, (l1, l2_squared, linf, l0) in zip(stated, largest(strategy, part, neighbours), strict=True):
        assert (one.l1, one.l2_squared, one.linf) == (l1, l2_squared, linf)
        assert one.l0 >= l0


def worst_loss(linear, part, neighbours):
    """The largest sum over all measured numbers of |change| / scale: what geometric noise loses, exactly."""
    change, total = moves(linear.strategy.cells, part, neighbours), 0
    for matrix, noise in zip(levels(linear.strategy), linear.noise, strict=True):
        total = total + np.abs(change @ matrix.T).sum(axis=1).astype(object) / noise.scale
    return max(total)


def worst_rho(linear, part, neighbours):
    """The largest sum over all measured numbers of (change / sigma)^2 / 2: what Gaussian noise costs, as zCDP."""
    change, total = moves(linear.strategy.cells, part, neighbours), 0
    for matrix, noise in zip(levels(linear.strategy), linear.noise, strict=True):
        total = total + ((change @ matrix.T).astype(object) ** 2).sum(axis=1) / (2 * noise.sigma**2)
    return max(total)


def least_squares(strategy, y, v):
    """Generalised least squares of least norm, and its covariance, by dense linear algebra."""
    a = np.vstack(levels(strategy)).astype(float)
    weight = np.concatenate([np.full(len(level), 1 / np.sqrt(one)) for level, one in zip(y, v, strict=True)])
    inverse = np.linalg.pinv(a * weight[:, None], rcond=1e-12)
    return inverse @ (np.concatenate(y) * weight), inverse @ inverse.T


def noisy(strategy, seed):
    """Made-up noisy numbers and variances of levels."""
    rng = np.random.default_rng(seed)
    shapes = [len(level) for level in levels(strategy)]
    return [3 * rng.normal(size=size) for size in shapes], tuple(rng.uniform(0.5, 3, len(shapes)))


def all_ranges(cells):
    """Low and high ends of all ranges, and the ranges as rows of 0 and 1."""
    low, high = np.triu_indices(cells)
    at = np.arange(cells)
    return low, high, ((at >= low[:, None]) & (at <= high[:, None])).astype(float)


def assert_least_squares(strategy, seed=1):
    """`infer` and `variances` are those of dense least squares; a twin with a wrong variance is found out."""
    y, v = noisy(strategy, seed)
    x, covariance = least_squares(strategy, y, v)
    assert np.allclose(strategy.infer(y, v), x, rtol=0, atol=1e-8 * np.abs(x).max())
    low, high, queries = all_ranges(strategy.cells)
    truth = np.einsum("ij,jk,ik->i", queries, covariance, queries)
    assert np.allclose(strategy.variances(low, high, v), truth, rtol=1e-7, atol=0)
    twin = strategy.variances(low, high, (1.2 * v[0], *v[1:]))
    assert not np.allclose(twin, truth, rtol=1e-7, atol=0)
