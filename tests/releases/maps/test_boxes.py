"""Trees of boxes: least squares against dense algebra, bars against exact variances, counts against plain sums."""

import itertools

import numpy as np
import pytest

from noisette.mechanisms import Gaussian, Geometric
from noisette.releases.linear import peak
from noisette.releases.maps import boxes
from noisette.releases.maps.box_fit import BoxFit
from noisette.releases.maps.boxes import Boxes, Layer, halved

NOISES = (Geometric(2), Geometric("7/2"), Geometric(9))
SHAPES = [(8,), (5, 7), (6, 6), (3, 4, 2)]


def random_tree(shape, rng, noises=NOISES):
    """Random splits; some boxes are measured twice, some inner ones not at all."""
    top = Layer.whole(shape)
    layers = [Layer(top.low, top.high, top.parent, np.zeros(1, int), rng.normal(size=1))]
    for _ in range(5):
        above = layers[-1]
        ends = rng.random(len(above.low)) < 0.2
        ends &= above.kind >= 0  # a box that was not measured has children
        going = np.flatnonzero(~ends)
        axis = rng.integers(0, len(shape), len(going))
        rows = np.arange(len(going))
        at = rng.integers(above.low[going][rows, axis], above.high[going][rows, axis] + 1)
        low, high, part = halved(above.low[going], above.high[going], axis, at)
        kind = rng.integers(-1, len(noises), len(low)) if len(layers) < 5 else rng.integers(0, len(noises), len(low))
        layers.append(Layer(low, high, going[part], kind, np.where(kind < 0, 0.0, 5 * rng.normal(size=len(low)))))
    return Boxes(tuple(layers), noises)


def matrix(tree, shape):
    """A row for each box, a column for each leaf: what a box holds."""
    cells = np.indices(shape).reshape(len(shape), -1).T
    held = ((cells >= tree.low[:, None]) & (cells < tree.high[:, None])).all(axis=2).astype(float)
    leaf = np.flatnonzero(tree.leaf)
    first = [np.flatnonzero(held[box])[0] for box in leaf]
    return held[:, first]


def dense(tree, shape):
    """Generalised least squares of the leaves, and its covariance."""
    a = matrix(tree, shape)
    known = np.isfinite(tree.v)
    weight = 1 / tree.v[known]
    covariance = np.linalg.inv(a[known].T @ (a[known] * weight[:, None]))
    return a @ covariance @ (a[known].T @ (tree.y[known] * weight)), a @ covariance @ a.T


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_two_passes_are_generalised_least_squares(shape, seed, monkeypatch):
    tree = random_tree(shape, np.random.default_rng(seed))
    exact, _ = dense(tree, shape)
    found = tree.estimated()
    assert np.abs(found - exact).max() < 1e-10 * max(1, np.abs(exact).max())
    monkeypatch.setattr(boxes, "_weight", lambda v, room: np.where(np.isinf(v), 0.0, 0.5))  # a plain mean
    assert np.abs(Boxes(tree.layers, tree.noises).estimated() - exact).max() > 1e-3


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_children_add_up_and_are_not_negative_if_asked(shape):
    for seed, (nonnegative, prune) in enumerate(itertools.product((False, True), (-np.inf, 1.0))):
        tree = random_tree(shape, np.random.default_rng(seed))
        u = tree.estimated(nonnegative=nonnegative, prune=prune)
        first, many = tree.family
        for box in np.flatnonzero(many):
            assert u[first[box] : first[box] + many[box]].sum() == pytest.approx(u[box], abs=1e-9)
        assert not nonnegative or u.min() >= 0
        assert nonnegative or np.isfinite(prune) or u.min() < 0


def test_projection_is_the_nearest_point():
    rng = np.random.default_rng(3)
    for _ in range(50):
        z, s, total = rng.normal(size=5), rng.uniform(0.1, 2, 5), np.array([rng.uniform(0, 2)])
        found = boxes._projected(z, s, total, np.zeros(5, int))
        assert found.sum() == pytest.approx(total[0])
        pull = (z - found) / s  # the same for all that are above 0, and no larger for those at 0
        assert np.ptp(pull[found > 0]) < 1e-9
        assert (pull[found == 0] <= pull[found > 0].max() + 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_largest_boxes_inside_bound_the_variance(shape):
    rng = np.random.default_rng(11)
    tree = random_tree(shape, rng)
    fit, (_, covariance) = BoxFit(tree, shape), dense(tree, shape)
    s = tree.gathered[1]
    low = rng.integers(0, shape, (40, len(shape))).astype(float)
    high = np.minimum(low + rng.integers(1, 5, low.shape), shape)
    bound = np.zeros(len(low))
    parts = np.zeros((len(low), len(s)))
    for query, box, f in fit._met(len(low), fit._part(low, high), tree.leaf):
        np.add.at(bound, query, f**2 * s[box])
        np.add.at(parts, (query, box), f)
    exact = np.einsum("ij,jk,ik->i", parts, covariance, parts)
    assert (exact <= bound * (1 + 1e-9)).all()
    assert (exact > bound / 2).any()
    assert np.allclose(parts @ fit._u, fit.counts(low, high))


def test_what_bars_rest_on_follows_from_the_weights():
    shape = (6, 6)
    tree = random_tree(shape, np.random.default_rng(5))
    z, s, own = tree.gathered
    assert np.allclose(tree.upward(own, tree.v, power=2), s)
    weights = np.zeros((len(z), len(z)))
    for box in range(len(z)):  # z is linear in y: its weights, one count at a time
        moved = [Layer(one.low, one.high, one.parent, one.kind, np.zeros(len(one.y))) for one in tree.layers]
        place = 0
        for layer in moved:
            if place <= box < place + len(layer.y):
                layer.y[box - place] = 1.0
            place += len(layer.y)
        weights[:, box] = Boxes(tuple(moved), tree.noises).gathered[0]
    measured = np.isfinite(tree.v)
    wider = np.array([2 * peak(tree.noises[kind]) ** 2 for kind in tree._kind[measured]])
    value, variance, square = tree.sureness(decided=False)
    assert np.allclose(value, z)
    assert np.allclose(variance, weights[:, measured] ** 2 @ wider)
    assert np.allclose(square, (weights[:, measured] ** 2).sum(axis=1))
    value, variance, square = tree.sureness(decided=True)
    assert np.array_equal(value[measured], tree.y[measured])
    assert np.allclose(variance[measured], wider)
    assert (square[measured] == 1).all()
    first, many = tree.family
    for box in np.flatnonzero(~measured):
        assert square[box] == square[first[box] : first[box] + many[box]].sum()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_counts_of_any_rectangle_are_sums_of_parts_of_cells(shape):
    rng = np.random.default_rng(2)
    fit = BoxFit(random_tree(shape, rng), shape)
    low = rng.uniform(-1, np.array(shape), (30, len(shape)))
    high = low + rng.uniform(0, 4, low.shape)
    for one, other, found in zip(low, high, fit.counts(low, high), strict=True):
        part = np.ones(())
        for axis, size in enumerate(shape):
            cells = np.arange(size)
            held = np.clip(np.minimum(cells + 1, other[axis]) - np.maximum(cells, one[axis]), 0, 1)
            part = np.multiply.outer(part, held)
        assert found == pytest.approx((part * fit.x).sum(), abs=1e-9)
        assert fit.region(part, 0.9)[0] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("noises", [NOISES, (Gaussian(2), Gaussian(5), Gaussian(9))], ids=["laplace", "gaussian"])
def test_a_region_of_whole_cells_has_the_bars_of_the_rectangle(noises):
    rng, shape = np.random.default_rng(7), (6, 6)
    for decided in (False, True):
        fit = BoxFit(random_tree(shape, rng, noises), shape, decided)
        low, high = np.array([[1.0, 2.0]]), np.array([[5.0, 6.0]])
        part = np.zeros(shape)
        part[1:5, 2:6] = 1.0
        for guaranteed in (False, True):
            ends = fit.guaranteed(low, high, 0.9) if guaranteed else fit.bars(low, high, 0.9)
            _, *found = fit.region(part, 0.9, guaranteed=guaranteed)
            assert np.allclose(np.ravel(ends), found)
