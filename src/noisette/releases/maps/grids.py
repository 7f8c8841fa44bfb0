"""Grids: one of equal boxes (UG), and one of large boxes that are each divided as their counts suggest (AG).

How fine a grid is follows from the number N of rows: fine boxes have more noise together, coarse ones hide more of
where rows lie. N is bought with a small share of the budget; the true number is never used. With m boxes per side of d
axes, the noise of a rectangle grows like m^(d/2)/eps, and what its border hides falls like N/m. The sum is least for m
proportional to (N eps)^(2/(d+2)), in two dimensions sqrt(N eps/c); c = 10, and 5 for the second grid of AG.
[Qardaji-Yang-Li 2013]

**Privacy.** N, the counts of the first grid and those of the second are three levels of disjoint boxes, each a part of
one above. Where the boxes lie depends on released numbers alone, so a row pays for each level once.

Counts are unbiased, as published, unless `nonnegative`, which errs less where most boxes are empty.

When: UG where rows lie about evenly, and as the plainest map; AG for most maps of two dimensions.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_up
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import one_node
from noisette.releases.linear import Noise, fitting, noise_of_levels, rational_shares, variance_of
from noisette.releases.maps.box_fit import BoxFit
from noisette.releases.maps.boxes import Boxes, Layer, halved
from noisette.releases.maps.contract import Floats
from noisette.releases.maps.levels import axes_of, by_level, counted, grid_shape, kinds_of, size_of
from noisette.releases.maps.transcript import Ask, Sums, drawn, repeated

__all__ = ["AdaptiveGrid", "UniformGrid"]

Ints: TypeAlias = NDArray[np.int64]
Sides: TypeAlias = Callable[[Floats], Ints]

_TOTAL = Fraction(1, 50)  # the share that buys N
_COARSE, _FINE = Fraction(10), Fraction(5)
_LEAST = 10  # boxes per side of the first grid of AG


@dataclass(frozen=True)
class UniformGrid:
    """Counts of the boxes of a grid that is as fine as N suggests; `noise` of N and of the boxes.

    >>> made = UniformGrid.calibrated(1, shape=(64, 64))
    >>> made.guarantee(), made.sides(np.array([4000.0])).tolist()                  # sqrt(4000 * .98/10)
    (Pure('1', neighbours=ADD_REMOVE), [19])
    >>> made.read(made.measure(np.ones((64, 64), int))).x.shape
    (64, 64)
    """

    shape: tuple[int, ...]
    noise: tuple[Noise, ...]
    moved: Sensitivity
    nonnegative: bool = False

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        shape: tuple[int, ...],
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
        total: Number = _TOTAL,
        nonnegative: bool = False,
    ) -> "UniformGrid":
        """The grid that keeps a promise for a unit of `rows` rows; `total` is the share of the budget that buys N."""
        noise, moved = _calibrated(spend, [fraction(total, "total")], rows, neighbours, gaussian)
        return cls(grid_shape(shape), noise, moved, nonnegative)

    def sides(self, n: Floats) -> Ints:
        """How many boxes a grid for n rows has per side, for each n."""
        rising = _rising(size_of(self.noise[1]), _COARSE, axes_of(self.shape), max(self.shape))
        return np.maximum(np.searchsorted(rising, n, side="right"), 1)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The noise of N and of each grid, with how far one unit moves counts."""
        return [(one, self.moved) for one in self.noise]

    def guarantee(self) -> Guarantee:
        """What holds for one unit: N and one box of each grid for each of its rows."""
        return by_level(self.noise, self.moved)

    def measure(self, x: NDArray[np.int64], rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        return drawn(self._walk, Sums.of(x, self.shape), rng)

    def read(self, released: Floats) -> BoxFit:
        """The counts of all cells from the released numbers alone."""
        return BoxFit(self._walk(repeated(released)), self.shape, True, self.nonnegative)

    def _walk(self, ask: Ask) -> Boxes:
        return _grown(ask, self.shape, self.noise, self._sides)

    @property
    def _sides(self) -> list[Sides]:
        return [self.sides]


@dataclass(frozen=True)
class AdaptiveGrid(UniformGrid):
    """Counts of a coarse grid, each box of which is divided once more, as finely as its noisy count suggests.

    `noise` of N, of the first grid and of the second.

    >>> made = AdaptiveGrid.calibrated(1, shape=(64, 64))
    >>> made.guarantee(), made.parts_of(np.array([-3.0, 100.0])).tolist()
    (Pure('1', neighbours=ADD_REMOVE), [1, 4])
    >>> made.read(made.measure(np.ones((64, 64), int))).x.shape
    (64, 64)
    """

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        shape: tuple[int, ...],
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
        total: Number = _TOTAL,
        alpha: Number = Fraction(1, 2),
        nonnegative: bool = False,
    ) -> "AdaptiveGrid":
        """The grid that keeps a promise; N has the share `total` of the budget, the first grid `alpha` of the rest."""
        first, part = fraction(total, "total"), fraction(alpha, "alpha")
        noise, moved = _calibrated(spend, [first, (1 - first) * part], rows, neighbours, gaussian)
        return cls(grid_shape(shape), noise, moved, nonnegative)

    def sides(self, n: Floats) -> Ints:
        """How many boxes the first grid has per side for n rows: a quarter of a uniform grid's, at least 10."""
        both = 1 / (1 / size_of(self.noise[1]) + 1 / size_of(self.noise[2]))
        rising = _rising(both, _COARSE, axes_of(self.shape), 4 * max(self.shape))
        return np.maximum(np.searchsorted(rising, n, side="right") // 4, _LEAST)

    def parts_of(self, y: Floats) -> Ints:
        """Into how many parts per side each box of the first grid is divided, given the noisy counts."""
        rising = _rising(size_of(self.noise[2]), _FINE, axes_of(self.shape), max(self.shape))
        return np.searchsorted(rising, y, side="left") + 1

    @property
    def _sides(self) -> list[Sides]:
        return [self.sides, self.parts_of]


def _calibrated(
    spend: Spend, first: list[Fraction], rows: int, neighbours: Neighbours, gaussian: bool | None
) -> tuple[tuple[Noise, ...], Sensitivity]:
    """The noise of levels with given shares, the last of which has the rest, and how far one unit moves a level."""
    shares, promise, moved = [*first, 1 - sum(first)], as_promise(spend), one_node(rows, neighbours)
    if min(shares) <= 0:
        raise InputError("Shares of the budget must lie between 0 and 1: a usual one of the total is 0.05.")

    def made(smooth: bool) -> tuple[Noise, ...]:
        given = [math.sqrt(share) if smooth else share for share in shares]
        return noise_of_levels(promise, [moved] * len(shares), rational_shares(given, squared=smooth), gaussian=smooth)

    return min(fitting(made, kinds_of(promise, gaussian)), key=lambda noise: variance_of(noise[-1])), moved


def _all(ask: Ask, shape: tuple[int, ...], noise: tuple[Noise, ...]) -> Layer:
    """The box of all cells, measured."""
    top = Layer.whole(shape)
    return counted(ask, Layer(top.low, top.high, top.parent, np.zeros(1, np.int64), top.y), noise)


@lru_cache(maxsize=64)
def _rising(size: Fraction, c: Fraction, axes: int, most: int) -> Floats:
    """The numbers of rows from which on 1, 2, ... parts per side are best: c size m^((axes + 2)/2).

    Roots are rounded up in exact numbers, so that every machine finds the same grid from the same released counts.

    >>> _rising(Fraction(2), Fraction(10), 2, 3).tolist()
    [20.0, 80.0, 180.0]
    """
    return np.array([float(sqrt_up((c * size) ** 2 * m ** (axes + 2))) for m in range(1, most + 1)])


def _grown(ask: Ask, shape: tuple[int, ...], noise: tuple[Noise, ...], sides: Sequence[Sides]) -> Boxes:
    """Measure grid after grid: `sides` says into how many parts per side a box is divided, given its noisy count.

    Parts are equal ones of whole cells, except the last. Between a box and its parts are boxes of several parts that
    are not measured, each half of the one above: with them, few boxes need to be looked at for a rectangle.
    """
    layers, stage = [_all(ask, shape, noise)], np.zeros(1, np.int64)
    width = np.ones((1, len(shape)), np.int64)
    while True:
        layer = layers[-1]
        for grid, parts in enumerate(sides):
            one = layer.kind == grid
            side = parts(layer.y[one])[:, None]
            stage[one], width[one] = grid + 1, np.maximum((2 * (layer.high - layer.low)[one] + side) // (2 * side), 1)
        going = np.flatnonzero(layer.kind < len(sides))
        if not len(going):
            return Boxes(tuple(layers), noise)
        low, high, part = _parted(layer.low[going], layer.high[going], width[going])
        stage, width = stage[going][part], width[going][part]
        kind = np.where((high - low <= width).all(axis=1), stage, -1)
        layers.append(counted(ask, Layer(low, high, going[part], kind, np.zeros(len(low))), noise))


def _parted(low: Ints, high: Ints, width: Ints) -> tuple[Ints, Ints, Ints]:
    """Halve boxes along every axis, at a multiple of a width."""
    parent = np.arange(len(low))
    for axis in range(low.shape[1]):
        wide = width[parent, axis]
        many = -(-(high[:, axis] - low[:, axis]) // wide)
        low, high, of = halved(low, high, np.full(len(low), axis), low[:, axis] + wide * (many // 2))
        parent = parent[of]
    return low, high, parent
