"""Every named strategy for maps: exact without noise, consistent, calibrated, and its error bars on a small map."""

import itertools

import numpy as np
import pytest
from tests.goodness import most

from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.releases.linear import variance_of
from noisette.releases.maps.grids import AdaptiveGrid, UniformGrid
from noisette.releases.maps.kd_tree import HybridTree, KdTree
from noisette.releases.maps.priv_tree import PrivTree
from noisette.releases.maps.quadtree import QuadTree
from noisette.releases.maps.stored import kept_map, map_table

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
KINDS = {
    "quadtree": QuadTree,
    "kd-tree": KdTree,
    "hybrid": HybridTree,
    "uniform grid": UniformGrid,
    "adaptive grid": AdaptiveGrid,
    "PrivTree": PrivTree,
}
SHAPES = [(8, 8), (5, 13), (1, 1), (9,), (3, 4, 5), (1, 6)]
named = pytest.mark.parametrize("name", KINDS)


def a_map(shape, seed=0):
    return np.random.default_rng(seed).poisson(40, shape) * (np.indices(shape).sum(axis=0) % 3 > 0)


def rectangles(shape, many=20, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.integers(0, shape, (many, len(shape)))
    return low.astype(float), (low + 1 + rng.integers(0, np.array(shape) - low)).astype(float)


def truth(x, low, high):
    return np.array([x[tuple(map(slice, a, b))].sum() for a, b in zip(low.astype(int), high.astype(int), strict=True)])


@named
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_released_numbers_are_read_alone_and_children_add_up(name, shape):
    made, x = KINDS[name].calibrated(1, shape=shape), a_map(shape)
    released = made.measure(x)
    fit, again = made.read(released), made.read(released)
    assert fit.x.shape == shape
    assert np.array_equal(fit.x, again.x)
    low, high = rectangles(shape)
    assert np.allclose(fit.counts(low, high), truth(fit.x, low, high))
    first, many = fit.boxes.family
    for box in np.flatnonzero(many):
        assert fit._u[first[box] : first[box] + many[box]].sum() == pytest.approx(fit._u[box], abs=1e-9)
    for ends in (fit.bars(low, high, 0.9), fit.guaranteed(low, high, 0.9)):
        assert (ends[0] >= 0).all()
        assert (ends[0] <= ends[1]).all()
    with pytest.raises(PrivacyError, match="incomplete"):
        made.read(released[:-1])


@named
@pytest.mark.parametrize("spend", ["1/3", "1,1e-6"])
def test_a_kept_map_says_how_it_is_read(name, spend):
    made, x = KINDS[name].calibrated(spend, shape=(9, 12), rows=2, neighbours=REPLACE), a_map((9, 12))
    strategy, released = kept_map(map_table(made, made.measure(x)))
    assert strategy == made
    assert strategy.read(released).x.shape == (9, 12)


@named
def test_without_noise_all_counts_are_exact(name, monkeypatch):
    for kind in (Geometric, Gaussian):
        monkeypatch.setattr(kind, "__call__", lambda self, x, rng=None: np.asarray(x))
    x = a_map((16, 16)) * 1000
    options = {"quad_levels": 4} if name == "kd-tree" else {}  # medians alone need not come down to single cells
    for spend in ("100", "100,1e-9") if name != "PrivTree" else ("100",):
        fit = (made := KINDS[name].calibrated(spend, shape=(16, 16), **options)).read(made.measure(x))
        assert np.allclose(fit.x, x)
        low, high = rectangles((16, 16))
        assert np.allclose(fit.counts(low, high), truth(x, low, high))


@named
@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=["add or remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_pure_promises_are_kept_and_used_up(name, neighbours, rows):
    made = KINDS[name].calibrated("1/3", shape=(16, 12), rows=rows, neighbours=neighbours)
    assert made.guarantee() <= Pure("1/3", neighbours=neighbours)
    assert made.guarantee().epsilon == Pure("1/3").epsilon
    assert made.moved.l1 == rows * (2 if neighbours is REPLACE else 1)
    assert all(moved.neighbours is neighbours for _, moved in made.parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KINDS if name != "PrivTree"])
@pytest.mark.parametrize("promise", [Approx(1, "1e-6"), ZCDP("1/10")], ids=["approx", "zcdp"])
def test_gaussian_noise_keeps_its_promise_and_little_less(name, promise):
    for neighbours in (ADD_REMOVE, REPLACE):
        made = KINDS[name].calibrated(promise, shape=(8, 8), rows=2, neighbours=neighbours, gaussian=True)
        assert any(isinstance(mechanism, Gaussian) for mechanism, _ in made.parts)
        assert made.guarantee() <= promise.restated(neighbours)
        free = KINDS[name].calibrated(promise, shape=(8, 8), rows=2, neighbours=neighbours)
        assert free.guarantee() <= promise.restated(neighbours)


@pytest.mark.parametrize("smooth", [False, True], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("shape", [(16,), (16, 16), (8, 8, 8)], ids=str)
def test_budgets_of_levels_are_the_best_for_rectangles(shape, smooth):
    """Moving a hundredth of one level's budget to another makes the sum of n_l v_l larger."""
    made = QuadTree.calibrated("1,1e-6" if smooth else 1, shape=shape, gaussian=smooth)
    axes = len(shape)
    budget = np.array([1 / float(one.sigma) ** 2 if smooth else 1 / float(one.scale) for one in made.noise])
    touched = np.array([2.0 ** ((axes - 1) * level) for level in range(len(budget))])

    def spread(b):
        return (touched / (b if smooth else b**2)).sum()

    for i, j in itertools.permutations(range(len(budget)), 2):
        moved = budget.copy()
        moved[i] += 0.01 * budget[j]
        moved[j] -= 0.01 * budget[j]
        assert spread(moved) > spread(budget) * (1 - 1e-9)


@named
def test_bad_input_is_refused_before_anything_is_drawn(name):
    with pytest.raises(InputError):
        KINDS[name].calibrated(1, shape=(0, 4))
    with pytest.raises(InputError):
        KINDS[name].calibrated(1, shape=())
    made = KINDS[name].calibrated(1, shape=(4, 4))
    for x in (np.zeros((4, 5), int), np.zeros((4, 4))):
        with pytest.raises(InputError, match="one whole number for each cell"):
            made.measure(x)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        (QuadTree, {"height": 5}, "height must be at most 4"),
        (QuadTree, {"patience": -1}, "at least 0"),
        (KdTree, {"kd_levels": 9}, "at most 8 splits"),
        (KdTree, {"medians": 1}, "between 0 and 1"),
        (UniformGrid, {"total": 1}, "between 0 and 1"),
        (AdaptiveGrid, {"alpha": 1}, "between 0 and 1"),
        (PrivTree, {"structure": 0}, "between 0 and 1"),
    ],
    ids=lambda one: str(one) if isinstance(one, str) else None,
)
def test_options_out_of_range_are_refused(kind, options, says):
    with pytest.raises(InputError, match=says):
        kind.calibrated(1, shape=(16, 16), **options)


def test_a_promise_that_is_too_small_for_decisions_is_refused():
    with pytest.raises(InputError, match="too small"):
        PrivTree.calibrated("1e-14", shape=(4096, 4096))


def test_pruned_boxes_are_spread_evenly():
    x = np.zeros((8, 8), int)
    x[:4, :4] = 100
    made = QuadTree.calibrated(4, shape=(8, 8), prune=200)
    found = made.read(made.measure(x)).x
    assert np.ptp(found[4:, 4:]) == pytest.approx(0)
    plain = QuadTree(made.shape, made.noise, made.moved, nonnegative=False)
    assert np.ptp(plain.read(plain.measure(x)).x[4:, 4:]) > 0


def test_grids_follow_the_released_total():
    made, eps, n = UniformGrid.calibrated(1, shape=(256, 256)), 0.98, np.array([1e3, 1e4, 1e5])
    assert made.sides(np.array([-5.0, 1e12])).tolist() == [1, 256]
    assert made.sides(n).tolist() == np.sqrt(n * eps / 10).astype(int).tolist()
    cube = UniformGrid.calibrated(1, shape=(256, 256, 256))
    assert cube.sides(n).tolist() == ((n * eps / 10) ** 0.4).astype(int).tolist()
    second = AdaptiveGrid.calibrated(1, shape=(256, 256))
    assert second.sides(np.array([10.0, 1e6])).tolist() == [10, int(np.sqrt(1e6 * eps / 10)) // 4]
    assert second.parts_of(np.array([-1.0, 10.0, 1000.0])).tolist() == [1, 1, 10]


# Error bars

RUNS = 120
FAILS = 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KINDS, "quadtree that stops"])
def test_guaranteed_bars_hold_on_sparse_and_full_maps(name):
    """Each of the 60 bounds fails with a probability below 1e-12 for sound bars."""
    shape, runs = (16, 16), RUNS if name not in ("kd-tree", "hybrid") else RUNS // 3
    options = {"patience": 3} if name == "quadtree that stops" else {}
    kind = KINDS.get(name, QuadTree)
    for x in (a_map(shape), np.diag(np.full(16, 200))):
        low, high = rectangles(shape, many=30)
        low[::3] += 0.5  # cells are cut, too
        exact = cut_truth(x, low, high)
        made, missed = kind.calibrated(1, shape=shape, **options), np.zeros(len(low), int)
        for _ in range(runs):
            below, above = made.read(made.measure(x)).guaranteed(low, high, 1 - FAILS)
            missed += (below > exact[1]) | (above < exact[0])
        assert missed.max() <= most(runs, FAILS)
        assert missed.sum() > 0  # they are not as wide as anything


def cut_truth(x, low, high):
    """The least and the most that a rectangle may hold: rows of a cut cell lie anywhere in it."""
    inside = truth(x, np.ceil(low), np.maximum(np.ceil(low), np.floor(high)))
    return inside, truth(x, np.floor(low), np.ceil(high))


@pytest.mark.slow
def test_bars_of_a_quarter_of_the_noise_are_found_out():
    shape, missed = (16, 16), 0
    made = QuadTree.calibrated(1, shape=shape)
    twin = QuadTree(shape, tuple(Geometric(one.scale / 4) for one in made.noise), made.moved)
    low, high = np.array([[1.0, 1.0]]), np.array([[14.0, 15.0]])
    x = a_map(shape)
    exact = truth(x, low, high)
    for _ in range(RUNS):
        below, above = twin.read(made.measure(x)).guaranteed(low, high, 1 - FAILS)
        missed += int((below > exact)[0] or (above < exact)[0])
    assert missed > most(RUNS, FAILS)


@pytest.mark.slow
def test_the_unbiased_quadtree_has_the_stated_mean_and_variance():
    """Means within 7 deviations; variances within 7 of theirs, for 10 rectangles: below 1e-9 together."""
    shape, runs = (4, 4), 800
    made = QuadTree.calibrated(1, shape=shape, nonnegative=False)
    x, (low, high) = a_map(shape), rectangles(shape, many=10)
    found = np.array([made.read(made.measure(x)).counts(low, high) for _ in range(runs)])
    variance = exact_variance(made, low, high)
    assert (np.abs(found.mean(axis=0) - truth(x, low, high)) < 7 * np.sqrt(variance / runs)).all()
    ratio = found.var(axis=0) / variance
    assert (np.abs(ratio - 1) < 7 * np.sqrt(5 / runs)).all()  # the kurtosis of Laplace noise is at most 6
    assert not (np.abs(0.64 * ratio - 1) < 0.2).all()  # noise of 0.8 would be seen


def exact_variance(made, low, high):
    """Of rectangles of whole cells, by dense least squares."""
    tree = made.read(made.measure(np.zeros(made.shape, int))).boxes
    cells = np.indices(made.shape).reshape(2, -1).T
    a = ((cells >= tree.low[:, None]) & (cells < tree.high[:, None])).all(axis=2).astype(float)
    covariance = np.linalg.inv(a.T @ (a / tree.v[:, None]))
    q = ((cells >= low[:, None]) & (cells < high[:, None])).all(axis=2).astype(float)
    assert set(tree.v) == {variance_of(one) for one in made.noise}
    return np.einsum("ij,jk,ik->i", q, covariance, q)
