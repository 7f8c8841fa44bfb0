"""Nominal wavelets in whole numbers: over a declared hierarchy of groups, each group against the mean of its siblings.

Vocabulary: `f` the number of children of a node · `h` levels, the total included · `u` sums of nodes · `g` how much the
sum of a node counts in the answer to a query, the mean of its children's g.

The published coefficient of a child is its sum minus the mean of its parent's children, with weight f/(2f - 2).
[Xiao-Wang-Gehrke 2010]. Times f it is a whole number. A row moves the coefficients of one group of siblings in each
level, its own by f - 1 and f - 1 others by 1: by 2 (f - 1) in all. Each group is scaled by about 1/(f - 1), so that
groups of any size move equally far and a level has one noise. With equal shares this is the published mechanism, of h
levels with epsilon/h each. The coefficients of a group add up to 0. Their noise does not, and taking its mean off is
least squares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.linear import placed

__all__ = ["Nominal"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_FINE = 1 << 20  # the largest common scale: beyond it scales are rounded
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Nominal:
    """The total of all cells, then level by level what sets each group apart from its siblings.

    `parents` declares the hierarchy from the cells upwards: the group of each cell, the group of each of these groups,
    and so on, all numbered from 0. The groups of the last level have the total as their parent.

    >>> regions = Nominal(((0, 0, 0, 1, 1),))       # five towns in two regions
    >>> [level.tolist() for level in regions.measure(np.array([1, 2, 3, 4, 5]))]
    [[15], [-3, 3], [-3, 0, 3, -2, 2]]
    >>> Nominal(((0, 0, 0, 0, 1),)).measure(np.array([1, 2, 3, 4, 5]))[2].tolist()      # a town alone is its region
    [-6, -2, 2, 6]
    """

    parents: tuple[tuple[int, ...], ...]
    equal: bool = False
    """Whether all levels get the same share, as published; else the shares are best for all groups and cells."""

    def __post_init__(self) -> None:
        counts = [len(level) for level in self.parents]
        if not counts or 0 in counts or any(set(level) != set(range(max(level) + 1)) for level in self.parents):
            raise InputError("parents must name a group for each cell, numbered from 0: ((0, 0, 1, 1, 1),).")
        if any(max(level) + 1 != above for level, above in zip(self.parents, counts[1:], strict=False)):
            raise InputError("parents must name a parent for each group of the level below, one level after the other.")

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.parents[0])

    @cached_property
    def levels(self) -> tuple["Siblings", ...]:
        """Groups of siblings, from the children of the total down to the cells."""
        top = (0,) * (max(self.parents[-1]) + 1)
        return tuple(Siblings(np.array(level)) for level in (top, *self.parents[::-1]))

    @cached_property
    def _divided(self) -> tuple["Siblings", ...]:
        """The levels that divide something: those that are measured."""
        return tuple(level for level in self.levels if level.measured.any())

    def measure(self, x: Counts) -> list[Counts]:
        """The total and the scaled coefficients, exactly; a child without siblings has none."""
        u, found = np.asarray(x, np.int64), []
        for level in self.levels[::-1]:
            above = level.sums(u)
            if level.measured.any():
                found.append((level.scales * (level.fans * u - above[level.of]))[level.measured])
            u = above
        return [u, *found[::-1]]

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> tuple[Sensitivity, ...]:
        """How far one unit can move each level: exact for one row, or rows that may all lie in one cell."""
        total = placed(part, self.cells, neighbours, alone=True)
        sizes = self._sizes()
        return (total, *(level.moved(part, neighbours, size) for level, size in zip(self._divided, sizes, strict=True)))

    def _sizes(self) -> list[int]:
        """How many cells a child of each divided level has, at most."""
        wide, found = np.ones(self.cells, np.int64), []
        for level in self.levels[::-1]:
            found += [int(wide.max())] if level.measured.any() else []
            wide = level.sums(wide)
        return found[::-1]

    def shares(self, *, gaussian: bool) -> tuple[float, ...]:
        """The shares of least error for the sums of all groups and all cells; or equal ones.

        With b = 1 + (sum of the children's b)/f^2, the queries for a node and all below it add v (1 - 1/f) b / f^2 to
        the total error, where v is the variance of its coefficient.
        """
        b, weights = np.ones(self.cells), []
        for level in self.levels[::-1]:
            if level.measured.any():
                share = ((1 - 1 / level.fans) * b / (level.fans * level.scales) ** 2)[level.measured].sum()
                weights.append(share * (float(level.squares.max()) if gaussian else level.lengths.max() ** 2))
            b = 1 + level.sums(b / level.fans**2)
        powers = np.array([b[0], *weights[::-1]], float) ** (0.0 if self.equal else 1 / 4 if gaussian else 1 / 3)
        return tuple((powers / (np.sqrt((powers**2).sum()) if gaussian else powers.sum())).tolist())

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """Down from the total: an equal part of the parent, and the coefficient without the mean of its siblings'."""
        u, rest = np.asarray(y[0], float), list(y[1:])
        for level in self.levels:
            apart = np.zeros(len(level.of))
            if level.measured.any():
                apart[level.measured] = rest.pop(0)
            apart -= (level.sums(apart) / level.children)[level.of]
            u = (u / level.children)[level.of] + apart / (level.fans * level.scales)
        return u

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The exact variance of the number in cells low .. high."""
        start, stop = np.broadcast_arrays(np.asarray(low, np.int64), np.asarray(high, np.int64))
        found, step, at = np.empty(start.size), max(1, _CHUNK // self.cells), np.arange(self.cells)
        for first in range(0, start.size, step):
            ends = start.ravel()[first : first + step, None], stop.ravel()[first : first + step, None]
            found[first : first + step] = self.query_variances((at >= ends[0]) & (at <= ends[1]), v)
        return found.reshape(start.shape)

    def query_variances(self, queries: Any, v: Sequence[float]) -> Floats:
        """The exact variance of any linear query of the cells, one query a row."""
        g, rest = np.asarray(queries, float).T, list(v)
        found = np.zeros(g.shape[1])
        for level in self.levels[::-1]:
            mean = level.sums(g) / level.children[:, None]
            if level.measured.any():
                apart = (g - mean[level.of]) / (level.fans * level.scales)[:, None]
                found += rest.pop() * (apart**2).sum(axis=0)
            g = mean
        return np.asarray(found + v[0] * g[0] ** 2)


@dataclass(frozen=True, eq=False)
class Siblings:
    """The children of all nodes of a level: the parent of each, and how its coefficient is scaled."""

    of: Counts

    @cached_property
    def children(self) -> Counts:
        """How many children each parent has."""
        return np.bincount(self.of)

    @cached_property
    def fans(self) -> Counts:
        """f for each child."""
        return np.asarray(self.children[self.of])

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """Which children have siblings."""
        return np.asarray(self.fans > 1)

    @cached_property
    def scales(self) -> Counts:
        """By what each coefficient is multiplied: a common multiple of all f - 1, or nearly, over f - 1."""
        common = math.lcm(*(int(f) - 1 for f in set(self.children.tolist()) if f > 1))
        return np.asarray(np.maximum(1, min(common, _FINE) // np.maximum(1, self.fans - 1)))

    @cached_property
    def lengths(self) -> Counts:
        """How far a row moves its group in l1."""
        return 2 * self.scales * (self.fans - 1)

    @cached_property
    def squares(self) -> Counts:
        """How far a row moves its group in l2, squared."""
        return self.scales**2 * self.fans * (self.fans - 1)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the children of each parent."""
        found = np.zeros((len(self.children), *values.shape[1:]), values.dtype)
        np.add.at(found, self.of, values)
        return found

    def moved(self, part: Contribution, neighbours: Neighbours, size: int) -> Sensitivity:
        """How far one unit moves the level, if its children have at most `size` cells.

        Of one group, |f d - sum d|^2 = f^2 |d|^2 - f (sum d)^2: rows of one unit are worst in one child, then in
        children of other groups. Under replace, old and new rows are worst in two children of one group (l2), or of
        two groups (l1).
        """
        most = min(part.total, part.rows * min(size, part.groups))
        full, rest = divmod(part.total, most)
        spread, scales, fans = full * most**2 + rest**2, self.scales[self.measured], self.fans[self.measured]
        added = neighbours is Neighbours.ADD_REMOVE
        l1 = part.total * (int(self.lengths.max()) if added else self._furthest)
        square = spread * (int(self.squares.max()) if added else 2 * int((scales * fans).max()) ** 2)
        single = np.maximum((fans - 1) * most, part.total) if added else (fans - 1) * most + part.total
        linf = min(int((scales * single).max()), math.isqrt(square))
        return Sensitivity(l1, square, linf, len(scales), neighbours=neighbours)

    @property
    def _furthest(self) -> int:
        """The largest l1 distance of two rows: in two children of one group, or in two groups."""
        one = 2 * int((self.scales * self.fans)[self.measured].max())
        groups = np.sort(np.unique(np.stack([self.of, self.lengths]), axis=1)[1])
        return max(one, int(groups[-2:].sum()))
