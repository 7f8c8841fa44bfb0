"""Nested blocks of a map: each axis is divided level by level, and a node is a product of two divisions.

Vocabulary: `edges` of the divisions of an axis, 0 and its length included · a `node` is numbered row by row among all
blocks of its level · a `row` holds the children of one parent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.tree import Rows

__all__ = ["Splits", "even_edges"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Splits:
    """The edges of each level, from the top: `edges[level][axis]`. The last level has single cells.

    >>> splits = Splits.of((4, 6), [(2, 2)], alone=((), (5,)))
    >>> splits.sums(np.arange(24).reshape(4, 6))[0].tolist()
    [24, 26, 16, 96, 74, 40]
    >>> splits.children(0, np.array([4])).tolist()
    [15, 16, 21, 22]
    """

    edges: tuple[tuple[Counts, Counts], ...]

    @classmethod
    def of(
        cls, shape: tuple[int, int], blocks: Sequence[tuple[int, int]], alone: Sequence[Sequence[int]] = ((), ())
    ) -> "Splits":
        """Even divisions, as many along each axis as `blocks` says from the top, then single cells.

        Cells that stand `alone` on an axis are divisions by themselves on every level.
        """
        apart = [np.unique([[cell, cell + 1] for cell in cells]).astype(np.int64) for cells in alone]
        return cls(
            tuple(
                (np.union1d(even_edges(shape[0], a), apart[0]), np.union1d(even_edges(shape[1], b), apart[1]))
                for a, b in (*blocks, shape)
            )
        )

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.edges)

    @property
    def shape(self) -> tuple[int, int]:
        """How many cells each axis has."""
        return int(self.edges[-1][0][-1]), int(self.edges[-1][1][-1])

    def blocks(self, level: int) -> tuple[int, int]:
        """How many divisions each axis has."""
        first, second = self.edges[level]
        return len(first) - 1, len(second) - 1

    @cached_property
    def _firsts(self) -> list[tuple[Counts, Counts]]:
        """The first division below each edge of a level, counted from the root, which is one block."""
        root = (np.array([0, self.shape[0]]), np.array([0, self.shape[1]]))
        levels = [root, *self.edges]
        return [
            (np.searchsorted(below[0], above[0]), np.searchsorted(below[1], above[1]))
            for above, below in zip(levels, self.edges, strict=False)
        ]

    def firsts(self, level: int) -> tuple[Counts, Counts]:
        """For each edge of a level, how many divisions of the level below lie before it."""
        return self._firsts[level + 1]

    def widths(self, level: int) -> tuple[Counts, Counts]:
        """How many cells each division has."""
        first, second = self.edges[level]
        return np.diff(first), np.diff(second)

    def areas(self, level: int) -> Counts:
        """How many cells each node has."""
        first, second = self.widths(level)
        return np.multiply.outer(first, second).ravel()

    def sums(self, x: Counts) -> list[Counts]:
        """The exact count of every node, from the top."""
        found = [np.asarray(x, np.int64)]
        for level in range(self.levels - 2, -1, -1):
            found.append(self.summed(level, found[-1]))
        return [level.ravel() for level in found[::-1]]

    def summed(self, level: int, below: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of a level from those of the level below it."""
        rows, columns = self.firsts(level)
        return np.asarray(np.add.reduceat(np.add.reduceat(below, rows[:-1], axis=0), columns[:-1], axis=1))

    # Families

    def children(self, level: int, parents: Counts) -> Counts:
        """The nodes below some parents of a level (-1: the root), parent by parent and row by row."""
        found, held = self._family(level, parents)
        return found.ravel() if held is None else found[held]

    def rows(self, level: int, parents: Counts, nodes: Counts) -> Rows:
        """The `nodes` below some parents of a level, which are all their children in order, as rows."""
        found, held = self._family(level, parents)
        shape = (len(parents), found.shape[1])
        first, second = self.widths(level + 1)
        if held is None and len(np.unique(first)) == len(np.unique(second)) == 1:
            return Rows(shape, np.full((1, shape[1]), float(first[0] * second[0])))
        widths = np.zeros(shape)
        many = self.blocks(level + 1)[1]
        if held is None:
            return Rows(shape, (first[found // many] * second[found % many]).astype(float))
        widths[held] = first[nodes // many] * second[nodes % many]
        return Rows(shape, widths, np.flatnonzero(held))

    def _family(self, level: int, parents: Counts) -> tuple[Counts, NDArray[np.bool_] | None]:
        """The children of each parent as rows, and which of them are there, if not all."""
        across = self.blocks(level)[1] if level >= 0 else 1
        many = self.blocks(level + 1)[1]
        axes = []
        for first, place in zip(self.firsts(level), (parents // across, parents % across), strict=True):
            held = np.diff(first)
            steps = np.arange(held.max())
            axes.append((first[place][:, None] + steps, steps < held[place][:, None], held.min() == held.max()))
        (one, in_one, all_one), (two, in_two, all_two) = axes
        shape = (len(parents), one.shape[1] * two.shape[1])
        found = (one[:, :, None] * many + two[:, None, :]).reshape(shape)
        return found, None if all_one and all_two else (in_one[:, :, None] & in_two[:, None, :]).reshape(shape)


def even_edges(cells: int, many: int) -> Counts:
    """Edges of divisions of equal length, or of lengths that differ by one cell; of at most as many as there are cells.

    >>> even_edges(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    return np.unique(np.arange(many + 1) * cells // many)
