"""Non-negative counts that add up, from nodes of a tree that were measured as deep as they are large.

Vocabulary: `z` what was measured of a node, with variance `v` · `s` the variance of the best estimate from a node and
what lies below it · `u` the estimate that is released · a `row` holds the children of one parent.

Up, inverse-variance means as in `tree`. Down, the children of each parent are shrunk towards an even spread of its
total as far as noise explains their differences, and projected on the non-negative numbers that add up to that total.
[Hay-Rastogi-Miklau-Suciu 2010; James-Stein 1961, the positive part; Held-Wolfe-Crowder 1974]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.tree import Rows, Tree

__all__ = ["Level", "Nested", "cells_of", "consistent", "gathered", "projected", "towards"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """The nodes of one level that were measured, in order.

    `y` noisy counts · `again` the second measurement of those that `stopped` · `z` what both say together, with its
    variance `v`. Below a node that stopped nothing is measured; all children of the others are nodes of the next level.
    """

    nodes: Counts
    stopped: NDArray[np.bool_]
    y: Floats
    again: Floats
    z: Floats
    v: Floats

    @cached_property
    def _before(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.y)])

    def many(self, start: Counts, stop: Counts) -> Counts:
        """How many nodes from `start` to below `stop` were measured."""
        found: Counts = np.searchsorted(self.nodes, stop) - np.searchsorted(self.nodes, start)
        return found

    def sums(self, start: Counts, stop: Counts) -> Floats:
        """The sum of the first measurements of the nodes from `start` to below `stop`."""
        before = self._before
        found: Floats = before[np.searchsorted(self.nodes, stop)] - before[np.searchsorted(self.nodes, start)]
        return found

    def value(self, nodes: Counts, values: Floats) -> Floats:
        """The values of some nodes, 0 where a node was not measured."""
        place = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[place] == nodes, values[place], 0.0) if len(self.nodes) else np.zeros(nodes.shape)


class Nested(Protocol):
    """Nodes in levels: blocks of a line (`Tree`), or of a map."""

    def rows(self, level: int, parents: Counts, nodes: Counts) -> Rows:
        """The `nodes` below some parents of a level, which are all their children in order, as rows."""
        ...


def consistent(tree: Nested, levels: Sequence[Level]) -> list[Floats]:
    """The released count of each measured node, level by level: non-negative, and children add up to their parent."""
    rows = _all_rows(tree, levels)
    z, s = _gathered(rows, levels)
    counts = [projected(z[0][None, :], np.maximum(z[0].sum(keepdims=True), 0.0))[0]]
    for i, level in enumerate(levels[:-1]):
        u, row = counts[-1][~level.stopped], rows[i]
        counts.append(row.flat(_shrunk(u, row.of(z[i + 1]), row.of(s[i + 1]), row.widths)))
    return counts


def cells_of(tree: Tree, levels: Sequence[Level], counts: Sequence[Floats]) -> Floats:
    """The count of each cell: that of a node that stopped is spread evenly over its cells."""
    cells = np.zeros(tree.nodes(0) * tree.sizes[0])
    for size, level, u in zip(tree.sizes, levels, counts, strict=True):
        if size == 1:
            cells[level.nodes] = u
        elif level.stopped.any():
            ends = level.nodes[level.stopped]
            cells.reshape(-1, size)[ends] = (u[level.stopped] / np.minimum(size, tree.cells - ends * size))[:, None]
    return cells[: tree.cells]


def gathered(tree: Nested, levels: Sequence[Level]) -> tuple[list[Floats], list[Floats]]:
    """The best estimate of each node from itself and what lies below it, and its variance, from the top."""
    return _gathered(_all_rows(tree, levels), levels)


def _all_rows(tree: Nested, levels: Sequence[Level]) -> list[Rows]:
    """For each level above the last one, the children of its nodes that did not stop."""
    return [tree.rows(i, level.nodes[~level.stopped], levels[i + 1].nodes) for i, level in enumerate(levels[:-1])]


def _gathered(rows: Sequence[Rows], levels: Sequence[Level]) -> tuple[list[Floats], list[Floats]]:
    z, s = [levels[-1].z], [levels[-1].v]
    for i in range(len(levels) - 2, -1, -1):
        own, room, parents = levels[i].z.copy(), levels[i].v.copy(), ~levels[i].stopped
        below, known = rows[i].of(s[-1]).sum(axis=1), rows[i].of(z[-1]).sum(axis=1)
        part = below / (below + room[parents])
        own[parents] = part * own[parents] + (1 - part) * known
        room[parents] *= part
        z.append(own)
        s.append(room)
    return z[::-1], s[::-1]


def _shrunk(u: Floats, z: Floats, s: Floats, widths: Floats) -> Floats:
    """Children of totals u: least squares, shrunk towards an even spread as far as noise explains it, projected."""
    room, many = s.sum(axis=1), (widths > 0).sum(axis=1)
    even = u[:, None] * (widths / widths.sum(axis=1, keepdims=True))
    apart = z + s * ((u - z.sum(axis=1)) / room)[:, None] - even
    found = towards(even, apart, room, many)
    if len(widths) > 1:
        found[widths == 0] = -np.inf
    return projected(found, u)


def towards(even: Floats, apart: Floats, room: Floats, many: Counts) -> Floats:
    """Rows `even` + `apart`, shrunk towards `even`: the positive part of James and Stein's estimate.

    A row has `many` numbers whose variances add up to `room`, and whose sum is fixed.
    """
    square = np.einsum("ij,ij->i", apart, apart)
    noise = np.maximum(many - 3, 0) * room / many
    kept = np.clip(1 - np.divide(noise, square, out=np.zeros_like(square), where=square > 0), 0.0, 1.0)
    apart *= kept[:, None]
    apart += even
    return apart


def projected(rows: Floats, totals: Floats) -> Floats:
    """The non-negative numbers nearest to each row that add up to its total.   [Held-Wolfe-Crowder 1974]

    >>> projected(np.array([[3.0, 1.0, -2.0]]), np.array([2.0])).tolist()
    [[2.0, 0.0, 0.0]]
    """
    with np.errstate(invalid="ignore"):  # a child that is not there is -inf
        even: Floats = rows + ((totals - rows.sum(axis=1)) / rows.shape[1])[:, None]
    some = np.flatnonzero(~(even.min(axis=1, initial=np.inf) >= 0))  # the others are at their nearest point already
    if len(some):
        falling = -np.sort(-rows[some], axis=1)
        beyond = np.cumsum(falling, axis=1) - totals[some, None]
        count = np.maximum((falling > beyond / np.arange(1, rows.shape[1] + 1)).sum(axis=1), 1)
        cut = beyond[np.arange(len(some)), count - 1] / count
        even[some] = np.maximum(rows[some] - cut[:, None], 0.0)
    return even
