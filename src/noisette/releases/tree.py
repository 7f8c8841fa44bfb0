"""Trees of blocks over the cells of a line: sums, least squares in linear time, and exact variances of ranges.

Vocabulary: `x` exact counts of cells · `y` noisy counts of nodes, level by level from the top · `v` their variances
(infinite where a node was not measured) · `z` the best estimate from a node and what lies below it, with variance `s` ·
`u` the best estimate from everything.

A level divides the line into blocks of one size; sizes are nested, the last level has single cells, and the last block
of a level may be shorter. Up: z is the inverse-variance mean of a node's own y and the sum of its children's z. Down:
the children of a node share what its u exceeds the sum of their z by, in proportion to their s. This is generalised
least squares.   [Hay-Rastogi-Miklau-Suciu 2010; Cormode et al. 2012]

Write the error of a child as r_c + (s_c/S) e_u, where e_u is its parent's error, S the sum of the siblings' s, and r_c
what is left of its z's error after its share of the siblings' sum is taken off. The r are uncorrelated with e_u, and
Var(sum a_c r_c) = sum a_c^2 s_c - (sum a_c s_c)^2 / S. Along the two ends of a range this gives its variance in as many
steps as there are levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.chains import level_shares
from noisette.releases.linear import placed

__all__ = ["Fit", "Rows", "Tree", "shares"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Values = TypeVar("Values", NDArray[np.int64], NDArray[np.float64])

MOST_CELLS = 1 << 26


@dataclass(frozen=True)
class Tree:
    """Nested blocks over `cells` cells; `sizes` are the levels' block sizes from the top, the last of which is 1.

    >>> tree = Tree(6, (4, 2, 1))
    >>> [level.tolist() for level in tree.sums(np.arange(6))]
    [[6, 9], [1, 5, 9], [0, 1, 2, 3, 4, 5]]
    """

    cells: int
    sizes: tuple[int, ...] = (1,)
    prefixes: bool = False
    """Whether levels get the shares that are best for prefixes, not for ranges."""

    def __post_init__(self) -> None:
        if whole(self.cells, "cells") > MOST_CELLS:
            raise InputError(f"A line has at most {MOST_CELLS:,} cells: merge some of them.")
        pairs = zip(self.sizes, self.sizes[1:], strict=False)
        if not self.sizes or self.sizes[-1] != 1 or any(a <= b or a % b for a, b in pairs):
            raise InputError("sizes must fall to 1, each a multiple of the next: (256, 16, 1).")

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.sizes)

    def nodes(self, level: int) -> int:
        """How many blocks a level has."""
        return -(-self.cells // self.sizes[level])

    def fan_out(self, level: int) -> int:
        """How many children a node of a level has, at most."""
        return self.sizes[level] // self.sizes[level + 1]

    def widths(self, level: int) -> Counts:
        """How many cells each block of a level has."""
        wide = np.full(self.nodes(level), self.sizes[level], np.int64)
        wide[-1] = self.cells - self.sizes[level] * (len(wide) - 1)
        return wide

    def children(self, level: int, values: Values) -> Values:
        """The values of the level below as a row for each node, zeros where a node has fewer children."""
        fan, parents = self.fan_out(level), self.nodes(level)
        rows = values if len(values) == fan * parents else np.pad(values, (0, fan * parents - len(values)))
        return rows.reshape(parents, fan)

    def sums(self, x: Counts) -> list[Counts]:
        """The exact count of every node, from the top."""
        if np.shape(x) != (self.cells,):
            raise InputError(f"There must be one count for each of the {self.cells:,} cells.")
        found = [np.asarray(x, np.int64)]
        for level in range(self.levels - 2, -1, -1):
            found.append(self.children(level, found[-1]).sum(axis=1))
        return found[::-1]

    def rows(self, level: int, parents: Counts, nodes: Counts) -> "Rows":
        """The `nodes` below some parents of a level, which are all their children in order, as rows."""
        fan, size = self.fan_out(level), self.sizes[level + 1]
        if not len(nodes) or (len(nodes) == fan * len(parents) and (nodes[-1] + 1) * size <= self.cells):
            return Rows((len(parents), fan), np.full((1, fan), float(size)))
        widths = np.zeros(len(parents) * fan)
        widths[: len(nodes)] = np.minimum(size, self.cells - nodes * size)
        return Rows((len(parents), fan), widths.reshape(-1, fan), slice(len(nodes)))

    # As a strategy

    measure = sums

    def blocks(self) -> tuple[tuple[int, int], ...]:
        """How many cells one number of each level counts as 1, and as -1, at most."""
        return tuple((min(size, self.cells), 0) for size in self.sizes)

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> tuple[Sensitivity, ...]:
        """How far one unit can move the counts of each level."""
        return tuple(placed(part, size, neighbours, alone=size == self.cells) for size, _ in self.blocks())

    def shares(self, *, gaussian: bool) -> tuple[float, ...]:
        """The shares of least error for all ranges, or all prefixes."""
        return level_shares(self.cells, self.sizes, gaussian=gaussian, prefixes=self.prefixes)

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """Least squares for one variance a level: `estimate`, with numbers where that has arrays of equal numbers."""
        if not all(0 < one < math.inf for one in v):
            return self.estimate(y, self._spread(tuple(v))).x
        known = _known_weights(self, tuple(v))
        z, inner = [np.asarray(y[-1], float)], []
        for level in range(self.levels - 2, -1, -1):
            own, part = np.asarray(y[level], float), known[level].part
            inner.append(self.children(level, z[-1]).sum(axis=1))
            z.append(part[0] * own + (1 - part[0]) * inner[-1])
            z[-1][-1] = part[1] * own[-1] + (1 - part[1]) * inner[-1][-1]
        u = z[-1]
        for level in range(self.levels - 1):
            more, rows = u - inner[-1 - level], self.children(level, z[-2 - level])
            found = rows + (more * known[level].full)[:, None]
            found[-1] = rows[-1] + more[-1] * known[level].last
            u = found.ravel()[: self.nodes(level + 1)]
        return u

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The variance of the error of each range, for one variance a level."""
        return _known_fit(self, tuple(v)).variances(low, high)

    def _spread(self, v: tuple[float, ...]) -> list[Floats]:
        return [np.full(self.nodes(level), one) for level, one in enumerate(v)]

    # Least squares

    def gathered(self, y: Sequence[Floats], v: Sequence[Floats]) -> tuple[list[Floats], list[Floats]]:
        """The best estimate z of each node from itself and what lies below it, and its variance s, from the top.

        What was not measured, and has nothing measured below it, has z = 0 and an infinite variance.
        """
        z, s = [np.where(np.isinf(v[-1]), 0.0, y[-1])], [np.asarray(v[-1], float)]
        for level in range(self.levels - 2, -1, -1):
            own, below = np.asarray(v[level], float), self.children(level, s[-1]).sum(axis=1)
            known = np.where(np.isinf(below), 0.0, self.children(level, z[-1]).sum(axis=1))
            measured, guessed = np.isfinite(own), np.isfinite(below)
            both = measured & guessed
            part = np.divide(below, own + below, out=measured.astype(float), where=both)
            z.append(part * np.where(measured, y[level], 0.0) + (1 - part) * known)
            s.append(np.where(measured, part * np.where(measured, own, 0.0), below))
        return z[::-1], s[::-1]

    def estimate(self, y: Sequence[Floats], v: Sequence[Floats]) -> "Fit":
        """Generalised least squares from noisy counts and their variances, whatever these are.

        >>> tree = Tree(4, (4, 1))
        >>> tree.estimate([np.array([8.0]), np.zeros(4)], [np.ones(1), np.ones(4)]).x.tolist()
        [1.6, 1.6, 1.6, 1.6]
        """
        z, s = self.gathered(y, v)
        u = z[0]
        for level in range(self.levels - 1):
            rows, room = self.children(level, z[level + 1]), self.children(level, s[level + 1])
            more = (u - rows.sum(axis=1))[:, None] * shares(room)
            u = (rows + more).ravel()[: self.nodes(level + 1)]
        return Fit(self, u, tuple(s))


@dataclass(frozen=True)
class Rows:
    """Children as rows, one for each parent, filled up with zeros where a parent has fewer.

    `widths` are how many cells each child has, 0 where there is none; one row stands for all where they are alike.
    `place` says where each child stands in the rows, one after the other, if not all places are taken.
    """

    shape: tuple[int, int]
    widths: Floats
    place: Counts | slice | None = None

    def of(self, values: Floats) -> Floats:
        """The children's values as rows."""
        if self.place is None:
            return values.reshape(self.shape)
        found = np.zeros(self.shape[0] * self.shape[1])
        found[self.place] = values
        return found.reshape(self.shape)

    def row_of(self, children: Counts) -> Counts:
        """In which row each of some children stands."""
        return (
            children if self.place is None else np.arange(self.shape[0] * self.shape[1])[self.place][children]
        ) // self.shape[1]

    def flat(self, rows: Floats) -> Floats:
        """The children's values in order."""
        return rows.ravel() if self.place is None else rows.ravel()[self.place]


@lru_cache(maxsize=8)
def _known_fit(tree: Tree, v: tuple[float, ...]) -> "Fit":
    """A fit to nothing: its variances are those of every fit with the same variances of the levels."""
    spread = tree._spread(v)
    return tree.estimate([np.zeros(len(level)) for level in spread], spread)


@dataclass(frozen=True)
class Weights:
    """What least squares does at the nodes of a level: those that have all their children, and the last one.

    `part` of a node's own count in its z, of a full node and of the last one · the share of what is left over that each
    child of a `full` node gets, and those that the children of the `last` one get.
    """

    part: tuple[float, float]
    full: float
    last: Floats


@lru_cache(maxsize=8)
def _known_weights(tree: Tree, v: tuple[float, ...]) -> tuple[Weights, ...]:
    """The weights of each level above the cells, for one variance a level."""
    found, full, last = [], v[-1], v[-1]
    for level in range(tree.levels - 2, -1, -1):
        room, held = np.full((2, tree.fan_out(level)), full), (tree.nodes(level + 1) - 1) % tree.fan_out(level)
        room[1, held], room[1, held + 1 :] = last, 0.0
        below = room.sum(axis=1)
        part, share = below / (v[level] + below), shares(room)
        full, last = (part * v[level]).tolist()
        found.append(Weights((float(part[0]), float(part[1])), float(share[0, 0]), share[1]))
    return tuple(found[::-1])


def shares(room: Floats) -> Floats:
    """In proportion to variances, row by row; where some are infinite, these share all evenly."""
    unknown = np.isinf(room)
    some = unknown.any(axis=1, keepdims=True)
    weight = np.where(some, unknown.astype(float), np.where(unknown, 0.0, room))
    total = weight.sum(axis=1, keepdims=True)
    found: Floats = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    return found


@dataclass(frozen=True)
class Fit:
    """Unbiased estimates of all cells, with the variance of every range of them."""

    tree: Tree
    x: Floats
    spread: tuple[Floats, ...]
    """The variance of each node from itself and what lies below it, level by level from the top."""

    @cached_property
    def _prefix(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.x)])

    def ranges(self, low: Counts, high: Counts) -> Floats:
        """The estimated number in the cells low .. high, both included."""
        return self._prefix[np.asarray(high) + 1] - self._prefix[np.asarray(low)]

    @cached_property
    def _cumulative(self) -> list[Floats]:
        """Sums of the variances before each node, level by level."""
        return [np.concatenate([[0.0], np.cumsum(level)]) for level in self.spread]

    def variances(self, low: Counts, high: Counts) -> Floats:
        """The variance of the error of each range low .. high, both included; all nodes must have been measured.

        >>> tree = Tree(4, (2, 1))
        >>> made = tree.estimate([np.zeros(2), np.zeros(4)], [np.ones(2), np.ones(4)])
        >>> made.variances(np.array([0, 0, 0]), np.array([0, 1, 3])).round(4).tolist()
        [0.6667, 0.6667, 1.3333]
        """
        first, last = np.asarray(low, np.int64), np.asarray(high, np.int64)
        left = right = End(np.ones(first.shape), np.zeros(first.shape))
        for level in range(self.tree.levels - 2, -1, -1):
            fan, met = self.tree.fan_out(level), first == last
            parent, other = first // fan, last // fan
            same = parent == other
            stop = np.where(met, first + 1, np.where(same, last, np.minimum((parent + 1) * fan, len(self.x))))
            stop = np.minimum(stop, self.tree.nodes(level + 1))
            joined = right.where(same & ~met)
            left = self._fold(level, parent, [(first, left), (last, joined)], (first + 1, stop))
            right = self._fold(level, other, [(last, right)], (other * fan, last))
            first, last = parent, other
        between = self._sum(0, np.minimum(first + 1, last), last)
        far = right.weight**2 * self.spread[0][last] + right.rest + between
        found: Floats = left.weight**2 * self.spread[0][first] + left.rest + np.where(first == last, 0.0, far)
        return found

    def _sum(self, level: int, start: Counts, stop: Counts) -> Floats:
        found: Floats = self._cumulative[level][stop] - self._cumulative[level][start]
        return found

    def _fold(self, level: int, parent: Counts, ends: list[tuple[Counts, "End"]], full: tuple[Counts, Counts]) -> "End":
        """What the children of a node, some in part and those of `full` wholly, are as a part of that node."""
        fan, below = self.tree.fan_out(level), self.spread[level + 1]
        whole_node = self._sum(level + 1, parent * fan, np.minimum((parent + 1) * fan, len(below)))
        linear = self._sum(level + 1, *full)
        square, rest = linear.copy(), np.zeros_like(linear)
        for node, end in ends:
            linear += end.weight * below[node]
            square += end.weight**2 * below[node]
            rest += end.rest
        return End(linear / whole_node, np.maximum(square - linear**2 / whole_node, 0.0) + rest)


@dataclass(frozen=True)
class End:
    """A part of a node: the weight of the node's error in it, and the variance of what is uncorrelated with that."""

    weight: Floats
    rest: Floats

    def where(self, condition: NDArray[np.bool_]) -> "End":
        """Itself, or nothing."""
        return End(np.where(condition, self.weight, 0.0), np.where(condition, self.rest, 0.0))
