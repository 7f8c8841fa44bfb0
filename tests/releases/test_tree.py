"""Trees of blocks: least squares and variances against dense linear algebra; chains against known figures."""

import numpy as np
import pytest

from noisette.errors import InputError
from noisette.releases.chains import best_chain, energies, typical
from noisette.releases.tree import Tree

SHAPES = [
    (6, (4, 2, 1)),
    (16, (8, 4, 1)),
    (13, (6, 3, 1)),
    (7, (1,)),
    (20, (20, 5, 1)),
    (33, (16, 4, 2, 1)),
    (1, (4, 1)),
]


def matrix(tree):
    """The strategy as a matrix, a row for each node."""
    rows = []
    for level, size in enumerate(tree.sizes):
        for i in range(tree.nodes(level)):
            row = np.zeros(tree.cells)
            row[i * size : (i + 1) * size] = 1
            rows.append(row)
    return np.array(rows)


def noisy(tree, rng):
    y = [3 * rng.normal(size=tree.nodes(level)) for level in range(tree.levels)]
    v = [rng.uniform(0.5, 3, tree.nodes(level)) for level in range(tree.levels)]
    return y, v


def dense(tree, y, v):
    """Generalised least squares and its covariance; what was not measured is left out."""
    a, values, spread = matrix(tree), np.concatenate(y), np.concatenate(v)
    known = np.isfinite(spread)
    a, weight = a[known], 1 / spread[known]
    covariance = np.linalg.inv(a.T @ (a * weight[:, None]))
    return covariance @ (a.T @ (values[known] * weight)), covariance


@pytest.mark.parametrize(("cells", "sizes"), SHAPES)
def test_estimates_and_variances_are_those_of_least_squares(cells, sizes):
    tree = Tree(cells, sizes)
    y, v = noisy(tree, np.random.default_rng(cells))
    x, covariance = dense(tree, y, v)
    found = tree.estimate(y, v)
    assert np.allclose(found.x, x)
    low, high = np.triu_indices(cells)
    queries = (np.arange(cells) >= low[:, None]) & (np.arange(cells) <= high[:, None])
    assert np.allclose(found.ranges(low, high), queries @ x)
    truth = np.einsum("ij,jk,ik->i", queries, covariance, queries)
    assert np.allclose(found.variances(low, high), truth)
    twin = tree.estimate(y, [2 * v[0], *v[1:]])  # which believes the top to be worse than it is
    assert tree.levels == 1 or not np.allclose(twin.variances(low, high), truth)


@pytest.mark.parametrize(("cells", "sizes"), [*SHAPES, (4097, (1024, 128, 16, 1)), (2048, (256, 16, 1))])
def test_one_variance_for_each_level_gives_the_same_numbers(cells, sizes):
    tree, rng = Tree(cells, sizes), np.random.default_rng(cells)
    y, _ = noisy(tree, rng)
    for v in (rng.uniform(0.5, 3, tree.levels).tolist(), [np.inf] * (tree.levels - 1) + [1.0]):
        spread = [np.full(tree.nodes(level), one) for level, one in enumerate(v)]
        assert np.array_equal(tree.infer(y, v), tree.estimate(y, spread).x)
    equal = [1.0] * tree.levels
    assert tree.levels == 1 or cells == 1 or not np.allclose(tree.infer(y, [2.0, *equal[1:]]), tree.infer(y, equal))


@pytest.mark.parametrize(("cells", "sizes"), SHAPES)
def test_nodes_may_be_left_out(cells, sizes):
    tree, rng = Tree(cells, sizes), np.random.default_rng(cells)
    y, v = noisy(tree, rng)
    for level in v[:-1]:
        level[rng.random(len(level)) < 0.4] = np.inf
    assert np.allclose(tree.estimate(y, v).x, dense(tree, y, v)[0])


@pytest.mark.parametrize(("cells", "sizes"), SHAPES)
def test_sums_are_exact(cells, sizes):
    x = np.random.default_rng(cells).integers(-(2**50), 2**50, cells)
    sums = np.concatenate(Tree(cells, sizes).sums(x))
    assert sums.tolist() == [int(x[row > 0].astype(object).sum()) for row in matrix(Tree(cells, sizes))]


@pytest.mark.parametrize("sizes", [(), (2,), (4, 3, 1), (1, 1), (2, 4, 1), (4, 2)])
def test_what_is_not_nested_is_refused(sizes):
    with pytest.raises(InputError, match="fall to 1"):
        Tree(8, sizes)


@pytest.mark.parametrize("x", [[], [1, 2, 3], [[1, 2, 3, 4]], 4])
def test_other_numbers_of_counts_are_refused(x):
    with pytest.raises(InputError, match="one count for each of the 4 cells"):
        Tree(4, (2, 1)).sums(x)


# Chains


def test_the_error_of_a_chain_is_that_of_its_least_squares():
    cells = 64
    low, high = np.triu_indices(cells)
    for gaussian in (False, True):
        chain = best_chain(energies(low, high, cells), gaussian=gaussian)
        tree = Tree(cells, chain.sizes)
        v = [np.full(tree.nodes(i), (1 if gaussian else 2) / share**2) for i, share in enumerate(chain.shares)]
        zero = [np.zeros(tree.nodes(i)) for i in range(tree.levels)]
        variances = tree.estimate(zero, v).variances(low, high)
        assert np.sqrt(variances.mean()) == pytest.approx(chain.error, rel=1e-6)
        cost = sum(share**2 if gaussian else share for share in chain.shares)
        assert cost == pytest.approx(1)


@pytest.mark.parametrize(("cells", "error"), [(32, 4.761), (64, 6.047), (256, 8.885), (512, 10.730)])
def test_a_tree_beats_noise_on_every_cell_from_forty_cells_on(cells, error):
    low, high = np.triu_indices(cells)
    chain = best_chain(energies(low, high, cells))
    assert chain.error == pytest.approx(error, rel=2e-3)
    assert (len(chain.sizes) == 1) == (cells < 40)


def test_the_best_chains_of_4096_cells():
    prefixes, gaussian = typical(4096, prefixes=True), best_chain(typical(4096, prefixes=True), gaussian=True)
    assert best_chain(prefixes).error / 64.0078 == pytest.approx(0.2172, abs=1e-4)
    assert gaussian.error < 4.179, "the binary chain with optimised levels"
    assert gaussian.error > 3.3499, "the bound of singular values"
