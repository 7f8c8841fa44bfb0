"""What an adaptive map released: counts of rectangles and regions, the usual error bars, and guaranteed ones.

Vocabulary: `u` released counts of nodes · `b` the scale of noise (its deviation over sqrt(2)) · an *end* is a node with
nothing measured below it, stopped or a single cell · a rectangle *cuts* a node if it holds some of it and not all.

**Usual bars.** The sum of the largest nodes inside, each with what was measured of it and below it, has an exact
variance; least squares on all numbers has at most that. How the count of an end is spread is not known: if a part f of
it is held, a deviation of (u + 2 b) sqrt(2 f (1 - f)) is added, and no bar beyond max(f, 1 - f) (u + 2 b). Ends along
one edge tend to be uneven alike, so the sum of their squares counts twice. Measured coverage stands in
`benchmarks/README.md`; it is not guaranteed.

**Guaranteed bars.** Take the *first* measurements of the largest measured nodes inside, and the last ones of the ends
that are cut. Which nodes these are is decided by the first measurements of nodes that are cut, which are not used. So
given those, all noises in both sums are independent with known laws, whatever the data. The number inside is at least
the first sum minus what `linear.sum_of` bounds its noise by. It is at most both sums plus the bound for both noises
together, because an end that is cut adds no more than its count. There is no union bound over the ends: hundreds of
them along an edge cost the root of their number.   (docs/proofs/maps.md)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from noisette.releases.consistent import Level, consistent, gathered
from noisette.releases.linear import Noise, sum_of, variance_of, widest
from noisette.releases.maps.contract import Ends, Floats
from noisette.releases.maps.splits import Splits
from noisette.releases.maps.tables import Runs, Touched, range_sums, summed_area, uneven_sums

__all__ = ["MapFit"]


@dataclass(frozen=True)
class MapFit:
    """Non-negative counts of all cells of a map, from `levels` of nodes that were measured.

    `first` is the noise of the first measurements of each level, `last` that of the last ones of its ends.

    >>> from noisette.releases.maps.adaptive import AdaptiveMap
    >>> made = AdaptiveMap.calibrated(1, shape=(16, 16))
    >>> fit = made.read(made.measure(np.full((16, 16), 100)))
    >>> low, high = np.array([[0.0, 0.5]]), np.array([[8.0, 16.0]])
    >>> below, above = fit.guaranteed(low, high, 0.95)
    >>> bool(below[0] <= fit.counts(low, high)[0] <= above[0])
    True
    """

    splits: Splits
    levels: tuple[Level, ...]
    first: tuple[Noise, ...]
    last: tuple[Noise, ...]

    @cached_property
    def _counts(self) -> list[Floats]:
        return consistent(self.splits, self.levels)

    @cached_property
    def x(self) -> Floats:
        """The released count of each cell: that of a node that stopped is spread evenly over its cells."""
        found = np.zeros((1, 1))
        for i, (level, u) in enumerate(zip(self.levels, self._counts, strict=True)):
            rows, columns = (np.diff(first) for first in self.splits.firsts(i - 1))
            found = np.repeat(np.repeat(found, rows, axis=0), columns, axis=1)
            ends = level.stopped if i < len(self.levels) - 1 else np.ones(len(level.nodes), bool)
            nodes = level.nodes[ends]
            found.ravel()[nodes] = u[ends] / self.splits.areas(i)[nodes]
        return found

    @cached_property
    def _table(self) -> Floats:
        return summed_area(self.x)

    def counts(self, low: Floats, high: Floats) -> Floats:
        """The number in each rectangle."""
        return uneven_sums(self._table, low, high)

    # What is known of nodes, as grids of their levels

    def _ends(self, level: int) -> NDArray[np.bool_]:
        """Which of a level's nodes have nothing below them."""
        known = self.levels[level]
        return known.stopped if level < len(self.levels) - 1 else np.ones(len(known.nodes), bool)

    def _grid(self, level: int, values: Floats | float, *, ends: bool = False) -> Floats:
        """Numbers of a level's measured nodes, or of its ends, as a grid of all its blocks."""
        nodes, found = self.levels[level].nodes, np.zeros(self.splits.blocks(level))
        found.ravel()[nodes[self._ends(level)] if ends else nodes] = values
        return found

    def _usual(self) -> Iterator[tuple[Floats, ...]]:
        """For each level, the variances of nodes with what lies below them, and squares of what ends may hide."""
        spread = gathered(self.splits, self.levels)[1]
        for i, noise in enumerate(self.last):
            hidden = self._counts[i][self._ends(i)] + math.sqrt(2 * variance_of(noise))
            yield self._grid(i, spread[i]), self._grid(i, hidden**2, ends=True)

    def _sure(self) -> Iterator[tuple[Floats, ...]]:
        """For each level, first measurements and where there are some, last measurements of ends and where they are."""
        for i, level in enumerate(self.levels[:-1]):
            first, last = self._grid(i, level.y), self._grid(i, level.again, ends=True)
            yield first, self._grid(i, 1.0), last, self._grid(i, 1.0, ends=True)
        cells = self._grid(-1, self.levels[-1].y), self._grid(-1, 1.0)
        yield *cells, *cells

    @cached_property
    def _usual_tables(self) -> list[list[Floats]]:
        return [list(map(summed_area, grids)) for grids in self._usual()]

    @cached_property
    def _sure_tables(self) -> list[list[Floats]]:
        found = []
        for grids in self._sure():
            first = [summed_area(grid) for grid in grids[:2]]
            found.append(first + (first if grids[2] is grids[0] else [summed_area(grid) for grid in grids[2:]]))
        return found

    # Rectangles

    def bars(self, low: Floats, high: Floats, level: float) -> Ends:
        """The ends of the usual error bars of rectangles: about the level, not guaranteed; no count is below 0."""
        wide, square = widest(self.first[0], level), np.zeros(len(low))
        for (variance, hidden), (touched, inside, above) in zip(
            self._usual_tables, self._touched(low, high), strict=True
        ):
            square += wide**2 * (range_sums(variance, inside) - range_sums(variance, above))
            for cut, part in _cut(touched):
                square += _unknown(part, wide) * range_sums(hidden, cut)
        value, half = self.counts(low, high), np.sqrt(np.maximum(square, 0.0))
        return np.maximum(value - half, 0.0), value + half

    def guaranteed(self, low: Floats, high: Floats, level: float) -> Ends:
        """The ends of error bars that hold with at least the level's probability, whatever the data."""
        sums, used = np.zeros((2, len(low))), np.zeros((len(low), 2 * len(self.levels)))
        for i, (tables, (touched, inside, above)) in enumerate(
            zip(self._sure_tables, self._touched(low, high), strict=True)
        ):
            first, measured = (range_sums(one, inside) - range_sums(one, above) for one in tables[:2])
            cut = Runs(touched[0].all, touched[1].all)
            last, ended = (range_sums(one, cut) - range_sums(one, inside) for one in tables[2:])
            sums += first, last
            used[:, i], used[:, len(self.levels) + i] = measured, ended
        return self._bounds(sums, used, level)

    def _bounds(self, sums: Floats, used: Floats, level: float) -> Ends:
        """Ends from the sums of measurements inside and of ends that are cut, and how many of each noise they hold."""
        used = np.maximum(np.rint(used), 0.0)
        below = sums[0] - sum_of(self.first, used[:, : len(self.first)], 1 - level)
        above = np.maximum(sums[0] + sums[1], 0.0) + sum_of((*self.first, *self.last), used, 1 - level)
        return np.maximum(below, 0.0), np.maximum(above, np.maximum(below, 0.0))

    def _touched(self, low: Floats, high: Floats) -> Iterator[tuple[tuple[Touched, Touched], Runs, Runs]]:
        """For each level: what rectangles touch, the nodes inside, and those whose parents are inside, too."""
        above = Runs.none(len(low))
        for i, (rows, columns) in enumerate(self.splits.edges):
            touched = Touched.of(rows, low[:, 0], high[:, 0]), Touched.of(columns, low[:, 1], high[:, 1])
            inside = Runs(touched[0].inside, touched[1].inside)
            yield touched, inside, above
            if i < len(self.levels) - 1:
                above = inside.below(*self.splits.firsts(i))

    # Regions

    def region(self, part: Floats, level: float, *, guaranteed: bool = False) -> tuple[float, float, float]:
        """The number in a region, which holds a `part` from 0 to 1 of each cell, with the ends of its error bar."""
        value = float((part * self.x).sum())
        if guaranteed:
            low, high = self._bounds(*self._used(part), level)
            return value, float(low[0]), float(high[0])
        wide, square = widest(self.first[0], level), 0.0
        for (variance, hidden), (largest, held) in zip(self._usual(), self._parts(part), strict=True):
            square += wide**2 * variance[largest].sum() + (hidden * _unknown(np.where(held < 1, held, 0.0), wide)).sum()
        return value, max(value - math.sqrt(square), 0.0), value + math.sqrt(square)

    def _used(self, part: Floats) -> tuple[Floats, Floats]:
        """The sums that a region's guaranteed bar rests on, and how many of each noise they hold."""
        sums, used = np.zeros((2, 1)), np.zeros((1, 2 * len(self.levels)))
        for i, (grids, (largest, held)) in enumerate(zip(self._sure(), self._parts(part), strict=True)):
            cut = (held > 0) & (held < 1)
            sums[0] += grids[0][largest].sum()
            sums[1] += grids[2][cut].sum()
            used[0, i], used[0, len(self.levels) + i] = grids[1][largest].sum(), grids[3][cut].sum()
        return sums, used

    def _parts(self, part: Floats) -> Iterator[tuple[NDArray[np.bool_], Floats]]:
        """For each level, the largest nodes that a region holds wholly, and the part of each node that it holds."""
        above = np.zeros((1, 1), bool)
        for i, held in enumerate(self._held(part)):
            rows, columns = (np.diff(first) for first in self.splits.firsts(i - 1))
            full = held >= 1
            yield full & ~np.repeat(np.repeat(above, rows, axis=0), columns, axis=1), held
            above = full

    def _held(self, part: Floats) -> list[Floats]:
        """The part of each node that a region holds, level by level; exactly 1 only if it holds all of it."""
        found, full = [part], [part >= 1]
        for i in range(len(self.levels) - 2, -1, -1):
            rows, columns = (first[:-1] for first in self.splits.firsts(i))
            found.append(np.add.reduceat(np.add.reduceat(found[-1], rows, axis=0), columns, axis=1))
            full.append(np.logical_and.reduceat(np.logical_and.reduceat(full[-1], rows, axis=0), columns, axis=1))
        levels = zip(range(len(self.levels)), found[::-1], full[::-1], strict=True)
        return [
            np.where(whole, 1.0, np.minimum(held / self.splits.areas(i).reshape(held.shape), 1 - 1e-12))
            for i, held, whole in levels
        ]


def _cut(touched: tuple[Touched, Touched]) -> Iterator[tuple[Runs, Floats]]:
    """The nodes that rectangles cut, as runs of rows and columns with the part of each node that is held."""
    for (i, (rows, one)), (j, (columns, two)) in product(*(enumerate(axis.pieces) for axis in touched)):
        part = one * two
        if (i, j) != (2, 2) and part.any():
            yield Runs(rows, columns), part


def _unknown(part: Floats, wide: float) -> Floats:
    """The square of what a part of an end may be off by, over what the end may hide; twice, for ends along an edge."""
    found: Floats = np.minimum(wide**2 * 2 * part * (1 - part), np.maximum(part, 1 - part) ** 2 * (part > 0))
    return 2 * found
