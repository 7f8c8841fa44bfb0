"""The adaptive tree: every branch of what it may measure, with the share that each row pays on it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from noisette.releases.adaptive import AdaptiveTree, projected
from noisette.releases.tree import Tree

TREES = [
    AdaptiveTree(Fraction(1), Tree(4, (4, 2, 1)), (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))),
    AdaptiveTree(Fraction(1, 2), Tree(3, (2, 1)), (Fraction(2, 5), Fraction(3, 5))),
    AdaptiveTree(Fraction(3), Tree(2, (1,)), (Fraction(1),)),
    AdaptiveTree(Fraction(2), Tree(5, (4, 2, 1)), (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))),
]


class Scripted:
    """Takes the place of the noise: releases large or small numbers by a script, and keeps what was asked of which."""

    def __init__(self, script):
        self.script, self.asked, self.released = list(script), [], []

    def __call__(self, counts, share, rng):
        values = [1e9 if self.script.pop(0) else -1e9 for _ in counts] if self.script is not None else []
        self.asked.append((np.array(counts), share))
        self.released.append(values)
        return np.array(values, float), 2 / float(share) ** 2


def transcript(made, x, script):
    noise = Scripted(script)
    object.__setattr__(made, "_noisy", noise)
    try:
        made.measure(np.array(x))
    finally:
        object.__delattr__(made, "_noisy")
    return noise


def loss(made, x, near, script):
    """The largest privacy loss of a transcript: geometric noise loses a share of epsilon for each step of a count."""
    one, other = transcript(made, x, script), transcript(made, near, script)
    assert one.released == other.released, "decisions read released numbers alone"
    assert [(len(a), b) for a, b in one.asked] == [(len(a), b) for a, b in other.asked]
    return sum(
        (int(np.abs(a - b).sum()) * share for (a, share), (b, _) in zip(one.asked, other.asked, strict=True)),
        Fraction(0),
    )


def scripts(made):
    return itertools.product(
        [False, True], repeat=min(10, 2 * sum(made.tree.nodes(i) for i in range(made.tree.levels)))
    )


def worst(made):
    cells = made.tree.cells
    x = np.arange(cells)
    return [
        loss(made, x, x + np.eye(cells, dtype=int)[i], [*script, *[True] * 40])
        for i in range(cells)
        for script in scripts(made)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("made", TREES, ids=lambda made: str(made.tree))
def test_a_row_pays_epsilon_on_every_branch(made):
    assert set(worst(made)) == {Fraction(1)}  # all of it, and never more


@pytest.mark.slow
def test_broken_twins_are_convicted(monkeypatch):
    made = TREES[0]
    right = AdaptiveTree._noisy

    def generous(self, level, nodes):  # goes on below nodes that stopped
        return np.concatenate([Right._children(self, level, nodes), np.arange(self.tree.nodes(level + 1))])

    Right = type("Right", (), {"_children": AdaptiveTree._children})
    monkeypatch.setattr(AdaptiveTree, "_children", generous)
    assert max(worst(made)) > 1
    monkeypatch.undo()

    def peeking(self, x, rng=None):
        return measure(self, np.where(x > 2, x * 2, x), rng)

    measure = AdaptiveTree.measure
    monkeypatch.setattr(AdaptiveTree, "measure", peeking)
    assert max(worst(made)) > 1
    monkeypatch.undo()
    assert AdaptiveTree._noisy is right


@pytest.mark.parametrize("made", TREES, ids=lambda made: str(made.tree))
def test_counts_are_non_negative_and_consistent(made):
    x = np.arange(made.tree.cells) * 1000
    for _ in range(20):
        measured = made.measure(x)
        found = made.infer(measured)
        assert found.shape == x.shape
        assert (found >= 0).all()
        z, _ = made.tree.gathered(measured.y, measured.v)
        assert found.sum() == pytest.approx(max(z[0].sum(), 0))


def test_without_noise_large_counts_are_exact():
    made = AdaptiveTree(Fraction(1000), Tree(70, (16, 4, 1)), (Fraction(1, 3),) * 3)
    x = np.arange(70) * 1000 + 500
    assert np.abs(made(x) - x).max() < 1  # fails with p < 1e-100: noise of scale 3/1000


def test_projections_are_the_nearest_points():
    rng = np.random.default_rng(7)
    rows, totals = rng.normal(size=(200, 5)) * 3, rng.uniform(0, 6, 200)
    found = projected(rows, totals)
    assert np.allclose(found.sum(axis=1), totals)
    assert (found >= 0).all()
    for row, total, point in zip(rows, totals, found, strict=True):  # the conditions of Karush, Kuhn and Tucker
        inside = point > 1e-12
        cut = (row - point)[inside]
        assert np.allclose(cut, cut[0])
        assert (row[~inside] <= cut[0] + 1e-9).all()
        assert total == pytest.approx(point.sum())
