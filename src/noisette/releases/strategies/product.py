"""Products of strategies over a grid: each level of one axis times each level of the others.

Vocabulary: `axes` the strategies of the axes · `x` the counts of the grid, row by row · `a` the variances of an axis'
levels, whose products stand for the variances `v` of the grid's levels · `r_l` the weights of the numbers of level l
in the estimate of a range.

What is measured of a grid is measured axis by axis, A = A_1 (x) A_2; a column of A is a product of columns, and its
norm the product of their norms. If the variances are products of the axes' variances, least squares on the grid is
least squares on one axis after the other, and the variance of a rectangle is the product of its sides' variances.
[McKenna-Miklau-Hay-Machanavajjhala 2018]

Shares of the axes multiply to shares of the grid. Variances are not quite products then: whole noise is a little
narrower than real noise, and a unit with many rows may move one level further than another. So estimates use the
products that are nearest to the variances, and remain unbiased. The variance of a rectangle is the sum over levels of
v |r_1|^2 |r_2|^2, where |r_l|^2 is the derivative of an axis' own variance in a_l (r is where that variance is least).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Estimate, Strategy, placed, weights

__all__ = ["Product", "rectangles"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Product:
    """The product of strategies, one for each axis of a grid; cells are in row-major order.

    >>> from noisette.releases.tree import Tree
    >>> grid = Product((Tree(4, (2, 1)), Tree(3)))
    >>> [level.shape for level in grid.measure(np.arange(12))]
    [(6,), (12,)]
    >>> grid.rectangle_variances([[0, 0]], [[1, 1]], [1.0, 1.0]).round(4).tolist()    # two rows of a pair, two columns
    [1.3333]
    """

    axes: tuple[Strategy, ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise InputError("A product needs the strategy of at least one axis.")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many cells the grid has."""
        return math.prod(self.shape)

    # As a strategy

    def measure(self, x: Counts) -> list[Counts]:
        """The exact numbers of each level, axis by axis."""
        levels = [np.asarray(x, np.int64).reshape(self.shape)]
        for at, axis in enumerate(self.axes):
            parts = [_measured(axis, np.moveaxis(level, at, 0)) for level in levels]
            levels = [np.moveaxis(part, 0, at) for some in parts for part in some]
        return [level.ravel() for level in levels]

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> tuple[Sensitivity, ...]:
        """How far one unit can move each level: exact for blocks of cells, and for one row that comes or goes.

        A product of blocks is a block; a cell counts as 1 where it does in both axes, or as -1 in both. For other axes
        norms of one row multiply, and k rows move the numbers at most k times as far.
        """
        if all(isinstance(axis, Blocked) for axis in self.axes):
            levels = itertools.product(*(axis.blocks() for axis in self.axes if isinstance(axis, Blocked)))
            return tuple(self._blocks_moved(level, part, neighbours) for level in levels)
        rows = itertools.product(*(axis.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE) for axis in self.axes))
        k = part.total if neighbours is Neighbours.ADD_REMOVE else 2 * part.total
        return tuple(_multiplied(row, neighbours).times(k) for row in rows)

    def _blocks_moved(
        self, level: Sequence[tuple[int, int]], part: Contribution, neighbours: Neighbours
    ) -> Sensitivity:
        plus, minus, alone = 1, 0, True
        for (one, other), cells in zip(level, self.shape, strict=True):
            plus, minus = plus * one + minus * other, plus * other + minus * one
            alone = alone and one + other >= cells
        return placed(part, plus, neighbours, signed=minus > 0, alone=alone)

    def shares(self, *, gaussian: bool) -> tuple[float, ...]:
        """Products of the axes' shares."""
        return tuple(map(math.prod, itertools.product(*(axis.shares(gaussian=gaussian) for axis in self.axes))))

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """Least squares on one axis after the other."""
        keys = list(itertools.product(*map(range, self._levels)))
        grids = {
            key: np.asarray(level, float).reshape([sizes[at] for sizes, at in zip(self._sizes, key, strict=True)])
            for key, level in zip(keys, y, strict=True)
        }
        for at, (axis, a) in reversed(list(enumerate(zip(self.axes, self._factors(v), strict=True)))):
            merged = {}
            for key in itertools.product(*map(range, self._levels[:at])):
                levels = [np.moveaxis(grids[(*key, level)], at, 0) for level in range(self._levels[at])]
                merged[key] = np.moveaxis(_inferred(axis, levels, a), 0, at)
            grids = merged
        return np.asarray(grids[()].ravel())

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The variance of cells low .. high in row-major order, where these are a rectangle: a cell, rows, the grid."""
        return self.rectangle_variances(*self._corners(low, high), v)

    def weights(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The sum of squared weights of each level's numbers in the estimates of such cells."""
        found: Floats = np.ones((len(low), 1))
        for axis, start, stop, a in self._sides(*self._corners(low, high), v):
            found = np.einsum("rl,rk->rlk", found, weights(axis, start, stop, a.tolist())).reshape(len(low), -1)
        return found

    def rectangle_variances(self, low: Any, high: Any, v: Sequence[float]) -> Floats:
        """The variance of each rectangle, given by its first and last cell: a row of coordinates for each."""
        sides = self._sides(low, high, v)
        if np.allclose(reduce(np.multiply.outer, [a for *_, a in sides]).ravel(), v, rtol=1e-13, atol=0):
            return np.asarray(math.prod(axis.variances(start, stop, a.tolist()) for axis, start, stop, a in sides))
        found = np.broadcast_to(np.reshape(v, self._levels), (len(sides[0][1]), *self._levels))
        for axis, start, stop, a in sides:
            found = np.asarray(np.einsum("rl,rl...->r...", weights(axis, start, stop, a.tolist()), found))
        return found

    def _corners(self, low: Counts, high: Counts) -> tuple[Counts, Counts]:
        first, last = np.unravel_index(low, self.shape), np.unravel_index(high, self.shape)
        corners = np.stack(first, axis=-1), np.stack(last, axis=-1)
        if not np.array_equal(np.prod(corners[1] - corners[0] + 1, axis=-1), np.asarray(high) - low + 1):
            raise InputError("Cells low .. high of a grid are no rectangle: ask for rectangle_variances.")
        return corners

    def _sides(self, low: Any, high: Any, v: Sequence[float]) -> list[tuple[Strategy, Counts, Counts, Floats]]:
        """For each axis its strategy, the sides of the rectangles there, and the variances of its levels."""
        first, last = np.atleast_2d(np.asarray(low, np.int64)), np.atleast_2d(np.asarray(high, np.int64))
        return list(zip(self.axes, first.T, last.T, self._factors(v), strict=True))

    # Levels of the axes

    @property
    def _sizes(self) -> list[list[int]]:
        """How many numbers each level of each axis has."""
        return [[len(level) for level in axis.measure(np.zeros(axis.cells, np.int64))] for axis in self.axes]

    @property
    def _levels(self) -> tuple[int, ...]:
        return tuple(len(axis.shares(gaussian=True)) for axis in self.axes)

    def _factors(self, v: Sequence[float]) -> list[Floats]:
        """A variance for each level of each axis, whose products are nearest to v (in logarithms)."""
        logs = np.log(np.asarray(v, float)).reshape(self._levels)
        axes = range(logs.ndim)
        means = [logs.mean(axis=tuple(other for other in axes if other != at)) for at in axes]
        return [np.exp(mean - (logs.mean() if at else 0.0)) for at, mean in enumerate(means)]


@runtime_checkable
class Blocked(Protocol):
    """A strategy whose numbers count disjoint blocks of cells, each cell as 1 or -1."""

    def blocks(self) -> tuple[tuple[int, int], ...]:
        """How many cells one number of each level counts as 1, and as -1, at most."""
        ...


def rectangles(estimate: Estimate, low: Any, high: Any) -> Floats:
    """The estimated number in each rectangle of a grid, given by its first and last cell.

    >>> from noisette.releases.tree import Tree
    >>> estimate = Estimate(Product((Tree(2), Tree(3))), np.arange(6.0), ())
    >>> rectangles(estimate, [[0, 1]], [[1, 2]]).tolist()
    [12.0]
    """
    if not isinstance(estimate.strategy, Product):
        raise InputError("Rectangles need counts of a grid, measured by a product of strategies.")
    table = np.pad(estimate.x.reshape(estimate.strategy.shape), [(1, 0)] * len(estimate.strategy.shape))
    for at in range(table.ndim):
        table = np.cumsum(table, axis=at)
    ends = np.atleast_2d(np.asarray(low, np.int64)), np.atleast_2d(np.asarray(high, np.int64)) + 1
    found = np.zeros(len(ends[0]))
    for corner in itertools.product((0, 1), repeat=table.ndim):
        index = tuple(ends[which][:, at] for at, which in enumerate(corner))
        found += (-1) ** (table.ndim - sum(corner)) * table[index]
    return found


def _measured(axis: Strategy, x: Counts) -> list[Counts]:
    """What an axis measures of each line along the first dimension."""
    lines = np.ascontiguousarray(x.reshape(len(x), -1).T)
    levels = zip(*(axis.measure(line) for line in lines), strict=True)
    return [np.stack(level, axis=1).reshape(-1, *x.shape[1:]) for level in levels]


def _inferred(axis: Strategy, y: Sequence[Floats], a: Floats) -> Floats:
    """What an axis infers for each line along the first dimension."""
    lines = zip(*(np.ascontiguousarray(level.reshape(len(level), -1).T) for level in y), strict=True)
    found = np.stack([axis.infer(line, tuple(a)) for line in lines], axis=1)
    return found.reshape(-1, *y[0].shape[1:])


def _multiplied(rows: Sequence[Sensitivity], neighbours: Neighbours) -> Sensitivity:
    """The norms of a product of columns."""
    l1, l2_squared, linf = (
        math.prod(norms) for norms in zip(*((r.l1, r.l2_squared, r.linf) for r in rows), strict=True)
    )
    return Sensitivity(l1, l2_squared, linf, math.prod(row.l0 for row in rows), neighbours=neighbours)
