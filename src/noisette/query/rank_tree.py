"""Several quantiles of the same values: a tree of noisy counts, from which all of them are read with error bars.

The cells are the leaves of a tree whose nodes have b children; every node but the root has a noisy count of its rows.
Least squares makes counts and sums of children agree: upwards each node's count z is the best mean of its own and of
the sum of its children's, of variance v; downwards the children share what their sum lacks.   [Hay et al. 2010]

How many rows lie below a place is then a sum of independent parts: f times the count of the root, and on each level of
the path to that place the children's z with weights w - f, where w is 1 for those before the path, the share of the
next node for the one on the path and 0 after it, and f is their mean. So its variance is known in closed form, and that
of F - q n, in which f of the root is f - q.

A cell can be the quantile if no more than q n rows lie below it and no fewer up to its end. The bar goes from the first
to the last cell of which the noisy counts do not exclude that: the true cell is excluded with a probability of at most
1 - level, half of it on either side, whatever the values and however few. How far that is in ranks hardly depends on
how many quantiles are asked, while draws of their own would share the promise. Hence: three and more.

Vocabulary: `b` children of a node · `h` levels · `f` the share of a node's cells that lie below a place.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import ZCDP, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Measure

__all__ = ["Ends", "RankTree", "bars", "rank_tree"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[Floats, Floats, Floats]
"""A quantile of each group, and the ends of its error bar."""

_CHILDREN = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


@dataclass(frozen=True)
class RankTree:
    """Noise for the counts of a tree over the cells of a histogram, and the quantiles that are read off it."""

    noise: Geometric | Gaussian
    at: tuple[Fraction, ...]
    cells: int
    children: int
    level: float

    @property
    def mechanisms(self) -> tuple[Geometric | Gaussian, ...]:
        """What is drawn from."""
        return (self.noise,)

    @property
    def depth(self) -> int:
        """How many counts a row is in."""
        return _depth(self.cells, self.children)

    @property
    def description(self) -> str:
        """The mechanism in words."""
        return f"{type(self.noise).__name__} noise on a tree of counts, {len(self.at)} quantiles together"

    def moved(self, change: Sensitivity) -> Sensitivity:
        """How far one unit moves the counts of all levels, from how far it moves the cells."""
        return _of_levels(change, self.depth)

    def rank_error(self, level: float) -> float:
        """By how many ranks a quantile is off at most, at that level and whatever the values: for all cells at once."""
        return float(_room(1 - (1 - level) / self.cells, max(float(self._deviations(q).max()) for q in self.at)))

    def draw(self, counts: NDArray[np.int64], measure: Measure, rng: Random) -> Ends:
        """Of each quantile the cell and the ends of its error bar, in natural units: quantiles first, then groups."""
        if not len(counts):
            return (np.zeros((len(self.at), 0)),) * 3
        upto = self._ranks([np.asarray(self.noise(level, rng), float) for level in self._levels(counts)])
        value, low, high = np.moveaxis(np.array([self._read(upto, q) for q in self.at]), 1, 0)
        return bars(value, low, high, measure)

    # The tree

    def _levels(self, counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The counts of all nodes, from the children of the root to the cells."""
        full = np.zeros((len(counts), self.children**self.depth), np.int64)
        full[:, : counts.shape[1]] = counts
        sizes = [self.children**i for i in range(1, self.depth + 1)]
        return [full.reshape(len(counts), size, -1).sum(axis=2) for size in sizes]

    def _ranks(self, noisy: Sequence[Floats]) -> Floats:
        """How many rows lie below each place between cells, by least squares, and at the end all of the tree's."""
        b, best = self.children, [noisy[-1]]
        for own, v in zip(noisy[-2::-1], self._variances[1:], strict=True):
            summed = best[-1].reshape(*own.shape, b).sum(axis=2)
            best.append(own + (summed - own) * (1 - v / self._variance))
        whole = best[-1].sum(axis=1, keepdims=True)
        for z in best[::-1]:
            children = z.reshape(*whole.shape, b)
            whole = (children + ((whole - children.sum(axis=2)) / b)[..., None]).reshape(len(z), -1)
        return np.concatenate([np.zeros((len(whole), 1)), np.cumsum(whole, axis=1)], axis=1)

    @cached_property
    def _variance(self) -> float:
        return float(self.noise.variance())

    @cached_property
    def _variances(self) -> tuple[float, ...]:
        """The variance v of the best count of a node, from the cells upwards."""
        return _best_variances(self._variance, self.children, self.depth)

    def _deviations(self, q: Fraction) -> Floats:
        """The standard deviation of F - q n at each place between cells, from the first to the last."""
        return np.sqrt(self._variance * _unit_variances(self.cells, self.children, float(q)))

    # Quantiles

    def _read(self, upto: Floats, q: Fraction) -> Floats:
        """The cell of a quantile and the first and the last one that can be it, for each group."""
        above = (upto - float(q) * upto[:, -1:])[:, : self.cells + 1]
        room = _room(self.level, self._deviations(q))
        can_end, can_begin = above[:, 1:] >= -room[1:], above[:, :-1] <= room[:-1]
        low = np.where(can_end.any(axis=1), can_end.argmax(axis=1), self.cells - 1)
        high = np.where(can_begin.any(axis=1), self.cells - 1 - can_begin[:, ::-1].argmax(axis=1), 0)
        reached, short = above[:, 1:] >= 0, above[:, :-1] < 0
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), self.cells - 1)
        last = np.where(short.any(axis=1), self.cells - 1 - short[:, ::-1].argmax(axis=1), 0)
        low, high = np.minimum(low, high), np.maximum(low, high)
        return np.array([np.clip(np.rint((first + last) / 2), low, high), low, high], float)


def bars(value: Floats, low: Floats, high: Floats, measure: Measure) -> Ends:
    """From cells to values: a cell stands for all that are rounded to it, and the bar spans them."""
    cell = 0.0 if measure.grid == 1 else 0.5
    parts = (np.clip(end, 0, measure.cells - 1) for end in (value, low - cell, high + cell))
    found, lowest, highest = ((part.astype(float) + measure.low) * float(measure.grid) for part in parts)
    return found, lowest, highest


def rank_tree(measure: Measure, at: Sequence[Fraction], share: Promise, change: Sensitivity, level: float) -> RankTree:
    """The tree whose ranks err least, and noise that keeps a promise."""
    cells = max(2, measure.cells)
    gaussian = isinstance(share, ZCDP)

    def spread(b: int) -> float:
        h = _depth(cells, b)
        return (h if gaussian else h**2) * float(_unit_variances(cells, b, 0.5).mean())

    b = min((b for b in _CHILDREN if b < 2 * cells), key=spread)
    kind: type[Gaussian] | type[Geometric] = Gaussian if gaussian else Geometric
    noise = kind.calibrated(share, _of_levels(change, _depth(cells, b)))
    return RankTree(noise, tuple(at), cells, b, level)


def _of_levels(change: Sensitivity, h: int) -> Sensitivity:
    """Counts of coarser cells move by no more than those of the finest: a unit's rows may be in one cell anyway."""
    numbers = math.ceil(h * change.l1)
    return Sensitivity(h * change.l1, h * change.l2_squared, change.linf, numbers, neighbours=change.neighbours)


def _depth(cells: int, b: int) -> int:
    h = 1
    while b**h < cells:
        h += 1
    return h


def _room(level: float, deviations: Any) -> Any:
    """How far a sum of whole noises is off at most, at a level: one row more than reals of the same deviation would be.

    Where noise is mostly 0 its deviation is far below 1, and the few sums that are not 0 are further off than any
    number of deviations: 10.6 % of them at epsilon = 10 and a level of 95 %.
    """
    return _width(level) * deviations + 1


def _width(level: float) -> float:
    """How many deviations hold a sum of such noises at a level: no fewer than one of them needs, or a normal one."""
    return max(NormalDist().inv_cdf((1 + level) / 2), -math.log(1 - level) / math.sqrt(2))


def _best_variances(own: float, b: int, h: int) -> tuple[float, ...]:
    found = [own]
    for _ in range(h - 1):
        found.append(1 / (1 / own + 1 / (b * found[-1])))
    return tuple(found)


@lru_cache(maxsize=256)
def _unit_variances(cells: int, b: int, q: float) -> Floats:
    """The variance of F - q n at each place, with noise of variance 1."""
    h = _depth(cells, b)
    best, place = _best_variances(1.0, b, h), np.arange(cells + 1)
    f = place / b**h
    found = (f - q) ** 2 * b * best[-1]
    for i in range(h):  # from the children of the root downwards
        size = b ** (h - 1 - i)
        node = np.minimum(place // size, b ** (i + 1) - 1)
        before, inside = node % b, (place - node * size) / size
        mean = (before + inside) / b
        squares = before + inside**2 - b * mean**2
        found = found + best[h - 1 - i] * squares
    return np.asarray(found)
