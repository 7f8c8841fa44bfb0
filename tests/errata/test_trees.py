"""Errata about trees, wavelets and multiplicative weights: E11, E12 and E17 of docs/errata.md."""

import itertools
import math

import numpy as np
import pytest

from noisette.audit.divergence import largest_loss
from noisette.privacy import sensitivity


def tree_variance(h, epsilons):
    """sum over levels i of 2^(h-i) / epsilon_i^2, the slide's objective; epsilons from the leaves up, total 1."""
    return sum(2 ** (h - i) / e**2 for i, e in enumerate(epsilons))


def best_split(h):
    weights = [2 ** ((h - i) / 3) for i in range(h + 1)]
    return [w / sum(weights) for w in weights]


def test_e11_the_variance_grows_as_two_to_the_h():
    def per_leaf(h):
        return tree_variance(h, best_split(h)) / 2**h

    assert per_leaf(8) == pytest.approx(76.3, abs=0.05)
    assert per_leaf(16) == pytest.approx(107, abs=0.5)
    limit = 2 / (2 ** (1 / 3) - 1) ** 3
    assert limit == pytest.approx(113.9, abs=0.05)
    assert per_leaf(60) == pytest.approx(limit, rel=1e-4)
    assert tree_variance(8, [1 / 9] * 9) / 2**8 == pytest.approx(161.7, abs=0.05)  # the same budget for each level
    printed = [tree_variance(h, best_split(h)) / 2 ** (h / 2) for h in (8, 16, 32)]
    assert printed[2] > 200 * printed[1] > 2000 * printed[0]  # no bound


def test_e11_the_split_itself_is_right():
    for h in (3, 8):
        best = best_split(h)
        assert tree_variance(h, best) == pytest.approx(sum(2 ** (j / 3) for j in range(h + 1)) ** 3)
        for i, j in itertools.permutations(range(h + 1), 2):
            moved = list(best)
            moved[i], moved[j] = moved[i] + 1e-4, moved[j] - 1e-4
            assert tree_variance(h, moved) > tree_variance(h, best)


def haar(m):
    """The total and all differences left - right of a binary tree over m cells."""
    rows = [np.ones(m)]
    for size in (m >> level for level in range(int(math.log2(m)))):
        for start in range(0, m, size):
            row = np.zeros(m)
            row[start : start + size // 2], row[start + size // 2 : start + size] = 1, -1
            rows.append(row)
    return np.array(rows)


def range_variances(strategy):
    """The variance of every range of cells: Laplace noise on W x, epsilon 1, then W^-1."""
    noise = 2 * np.abs(strategy).sum(axis=0).max() ** 2
    prefix = np.tril(np.ones(strategy.shape)) @ np.linalg.inv(strategy)
    V = np.pad(noise * prefix @ prefix.T, ((1, 0), (1, 0)))
    ends = np.diag(V)
    return (ends[:, None] + ends - 2 * V)[np.triu_indices(len(V), 1)]


@pytest.mark.slow
def test_e12_orthonormal_noise_is_worse_than_no_transform():
    m = 256
    weighted = haar(m)
    orthonormal = weighted / np.linalg.norm(weighted, axis=1)[:, None]
    assert orthonormal @ orthonormal.T == pytest.approx(np.eye(m))
    assert sensitivity.workload(orthonormal).l1 < 1 + math.sqrt(2)  # "each individual affects O(1)": true
    assert sensitivity.workload(weighted).l1 == 1 + math.log2(m)
    assert range_variances(orthonormal).max() == pytest.approx(2770, abs=0.5)
    assert range_variances(np.eye(m)).max() == pytest.approx(512)
    assert range_variances(weighted).max() == pytest.approx(373.5, abs=0.05)


@pytest.mark.slow
def test_e12_small_domains_favour_the_identity():
    assert range_variances(np.eye(256)).mean() == pytest.approx(172, abs=0.5)
    assert range_variances(haar(256)).mean() == pytest.approx(221, abs=0.5)
    assert range_variances(np.eye(64)).max() == pytest.approx(128)
    assert range_variances(haar(64)).max() == pytest.approx(182.5, abs=0.05)
    for m in (2, 4, 8, 16, 32, 64, 128):  # up to 256 against 266.6 at m = 128
        assert range_variances(np.eye(m)).max() < range_variances(haar(m)).max()
    assert range_variances(haar(128)).max() == pytest.approx(266.6, abs=0.05)
    assert range_variances(np.eye(512)).mean() > range_variances(haar(512)).mean()


# Multiplicative weights without noise: 8 cells, all prefixes

CELLS = 8
QUERIES = np.tril(np.ones((CELLS, CELLS)))[:-1]
DATA = np.array([70, 5, 5, 2, 2, 1, 5, 10])
SIZE = int(DATA.sum())


def weights_error(update, rounds=20):
    """The largest error over all queries at the start and after some rounds, each at the worst query."""
    A = np.full(CELLS, SIZE / CELLS)
    errors = []
    for _ in range(rounds + 1):
        missed = QUERIES @ DATA - QUERIES @ A
        errors.append(float(np.abs(missed).max()))
        j = int(np.abs(missed).argmax())
        A = A * np.exp(update(QUERIES[j], missed[j], QUERIES[j] @ DATA) / (2 * SIZE))
        A *= SIZE / A.sum()
    return errors


def test_e17_the_sign_of_the_update():
    right = weights_error(lambda q, missed, truth: q * missed)
    flipped = weights_error(lambda q, missed, truth: -q * missed)
    literal = weights_error(lambda q, missed, truth: -missed * truth)  # one factor for all cells, then normalised
    assert right[0] == flipped[0] == literal[0] == 57.5
    assert right[-1] == pytest.approx(5.4, abs=0.05)
    assert flipped[-1] == pytest.approx(70.0, abs=0.05)
    assert literal == pytest.approx([57.5] * 21)
    assert all(a > b for a, b in itertools.pairwise(right[:10]))
    assert all(a < b for a, b in itertools.pairwise(flipped[:10]))


def test_e17_selection_is_exponential_in_the_error():
    T, epsilon = 10, 1
    errors, neighbour = np.array([3.0, 0.0, 1.0]), np.array([2.0, 1.0, 1.0])

    def exponential(errors):
        weights = np.exp(epsilon / (4 * T) * errors)
        return weights / weights.sum()

    assert largest_loss(errors / errors.sum(), neighbour / neighbour.sum()) == math.inf  # as printed
    assert largest_loss(exponential(errors), exponential(neighbour)) <= epsilon / (2 * T)
