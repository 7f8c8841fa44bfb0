"""Error bars of an adaptive tree: the usual ones, about 95 %, and guaranteed ones.

Vocabulary: `u` released counts of nodes · `b` the scale of the noise (its deviation over sqrt(2)) · a range *cuts* a
node if it holds some of its cells and not all.

**Usual bars.** The linear estimate before shrinking has an exact variance. Below a node that stopped, nothing is known
of how its count is spread: a part f of it gets a deviation of (u + 2 b) sqrt(2 f (1 - f)) on top, and no bar that
exceeds max(f, 1 - f) (u + 2 b). Shrinking makes the error smaller than the linear one.
Measured coverage stands in `benchmarks/README.md`; it is not guaranteed, and single ranges may miss nearly always.

**Guaranteed bars.** Take the largest measured nodes inside the range, with their *first* measurement. Whether such a
node was measured is decided by its ancestors, which the range cuts; the noise of those is not used. So given the noise
of all cut nodes, the noise of the sum is that of a known number of independent draws of each level, whatever the data,
and `linear.sum_of` bounds it. A stopped node that the range cuts adds anything from 0 to an upper bound of its count,
which rests on its second measurement, drawn after the decision to stop. Each of the parts may fail with a part of
1 - level (Bonferroni).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.adaptive import AdaptiveTree
from noisette.releases.consistent import Level, cells_of, consistent, gathered
from noisette.releases.linear import sum_of, variance_of, widest
from noisette.releases.tree import Fit, Tree

__all__ = ["AdaptiveFit"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Ends: TypeAlias = tuple[Floats, Floats]

_CUT = 0.1  # of what may fail, for each stopped node that a range cuts
_EVEN = 1e-3  # of a stopped node's variance below it: so little that a part f of it has f^2 of the variance


@dataclass(frozen=True)
class AdaptiveFit:
    """What an adaptive tree released: non-negative counts of all cells, ranges of them, and error bars.

    >>> made = AdaptiveTree.calibrated(1, cells=64)
    >>> fit = AdaptiveFit.of(made, made.measure(np.repeat([0, 500], 32)))
    >>> low, high = fit.bars([32], [63], 0.95)
    >>> bool(low[0] <= fit.ranges([32], [63])[0] <= high[0])
    True
    """

    made: AdaptiveTree
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, made: AdaptiveTree, released: Floats) -> "AdaptiveFit":
        """The fit to the numbers that were released."""
        return cls(made, made.read(released))

    @cached_property
    def _counts(self) -> list[Floats]:
        return consistent(self.made.tree, self.levels)

    @cached_property
    def x(self) -> Floats:
        """The released count of each cell."""
        return cells_of(self.made.tree, self.levels, self._counts)

    @cached_property
    def _fit(self) -> Fit:
        return Fit(self.made.tree, self.x, tuple(self._spread()))

    def ranges(self, low: Any, high: Any) -> Floats:
        """The released number in the cells low .. high, both included."""
        return self._fit.ranges(np.asarray(low), np.asarray(high))

    # Usual bars

    def bars(self, low: Any, high: Any, level: float) -> Ends:
        """The ends of the usual error bars of ranges: about the level, not guaranteed; no count is below 0."""
        value, half = self.ranges(low, high), self.half_widths(low, high, level)
        return np.maximum(value - half, 0.0), value + half

    def half_widths(self, low: Any, high: Any, level: float) -> Floats:
        """Half the widths of the usual error bars."""
        first, last = _cells(low), _cells(high)
        wide = widest(self.made.noise, level)
        square = wide**2 * self._fit.variances(first, last)
        for i, ends in enumerate(self._ends(first, last)):
            if not self.levels[i].stopped.any():
                continue
            hidden = self._counts[i] + math.sqrt(2 * variance_of(self.made.last(i)))
            most = np.where(self.levels[i].stopped, hidden, 0.0)
            for node, part in ((ends.left, ends.left_part), (ends.right, ends.right_part)):
                share = np.minimum(wide * np.sqrt(2 * part * (1 - part)), np.maximum(part, 1 - part) * (part > 0))
                square += (share * self.levels[i].value(node, most)) ** 2
        return np.asarray(np.sqrt(square))

    def _spread(self) -> list[Floats]:
        """The variance of every node from itself and what lies below it; below a stopped node hardly any."""
        tree, full = self.made.tree, self.made.tree.nodes(0) * self.made.tree.sizes[0]
        found = [np.zeros(full // size) for size in tree.sizes]
        for i, (level, variance) in enumerate(zip(self.levels, gathered(tree, self.levels)[1], strict=True)):
            found[i][level.nodes] = variance
            for j in range(i + 1, tree.levels):
                parts = tree.sizes[i] // tree.sizes[j]
                inside = _EVEN * variance[level.stopped] / parts
                found[j].reshape(-1, parts)[level.nodes[level.stopped]] = inside[:, None]
        return [spread[: tree.nodes(i)] for i, spread in enumerate(found)]

    # Nodes at the ends of ranges

    def _ends(self, first: Counts, last: Counts) -> Iterator["RangeEnds"]:
        """For each level from the top, the nodes inside ranges whose parents are not, and those that ranges cut."""
        tree, above = self.made.tree, (first + 1, first)  # nothing is inside yet
        for i, size in enumerate(tree.sizes):
            stop = np.where(last == tree.cells - 1, tree.nodes(i), (last + 1) // size)
            inside = -(-first // size), np.maximum(stop, -(-first // size))
            yield RangeEnds.of(tree, i, first, last, inside, above)
            fan = tree.fan_out(i) if i + 1 < tree.levels else 1
            above = inside[0] * fan, inside[1] * fan

    # Guaranteed bars

    def guaranteed(self, low: Any, high: Any, level: float) -> Ends:
        """The ends of error bars that hold with at least the level's probability, whatever the data."""
        first, last, fails = _cells(low), _cells(high), 1 - level
        value, hidden = np.zeros(first.shape), np.zeros(first.shape)
        used = np.zeros((len(first), len(self.levels)))
        for i, (nodes, ends) in enumerate(zip(self.levels, self._ends(first, last), strict=True)):
            for start, stop in ends.runs:
                value += nodes.sums(start, stop)
                used[:, i] += nodes.many(start, stop)
            if nodes.stopped.any():
                most = np.zeros(len(nodes.nodes))
                least = self.made.last(i).interval(1 - 2 * _CUT * fails)  # one-sided
                most[nodes.stopped] = np.maximum(nodes.again + least, 0.0)
                hidden += nodes.value(ends.left, most) * (ends.left_part > 0)
                hidden += nodes.value(ends.right, most) * (ends.right_part > 0)
        half = sum_of([self.made.at(share) for share in self.made.shares], used, (1 - 2 * _CUT) * fails)
        return np.maximum(value - half, 0.0), np.maximum(value, 0.0) + half + hidden


@dataclass(frozen=True)
class RangeEnds:
    """What ranges do to one level: `runs` of nodes inside them whose parents are not, and the nodes that they cut.

    `left_part` is the part of the node `left` that a range holds, 0 where it does not cut it; the same at the right.
    """

    runs: tuple[tuple[Counts, Counts], tuple[Counts, Counts]]
    left: Counts
    left_part: Floats
    right: Counts
    right_part: Floats

    @classmethod
    def of(
        cls,
        tree: Tree,
        level: int,
        first: Counts,
        last: Counts,
        inside: tuple[Counts, Counts],
        above: tuple[Counts, Counts],
    ) -> "RangeEnds":
        """Those of a level, given the nodes inside the ranges and the children of those inside one level above."""
        size, (start, stop), none = tree.sizes[level], inside, above[0] >= above[1]
        runs = (
            (start, np.where(none, stop, np.clip(above[0], start, stop))),
            (np.where(none, stop, np.clip(above[1], start, stop)), stop),
        )
        left, right = first // size, last // size
        held = np.minimum(last + 1, (left + 1) * size) - first
        other = last + 1 - np.maximum(first, right * size)
        return cls(
            runs,
            left,
            _part(tree, size, left, held),
            right,
            np.where(right == left, 0.0, _part(tree, size, right, other)),
        )


def _part(tree: Tree, size: int, node: Counts, held: Counts) -> Floats:
    """The part of a node that its cells held by a range are, 0 if all of them are."""
    wide = np.minimum(size, tree.cells - node * size)
    return np.where(held < wide, held / wide, 0.0)


def _cells(ends: Any) -> Counts:
    return np.atleast_1d(np.asarray(ends, np.int64))
