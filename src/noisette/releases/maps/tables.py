"""Sums over rectangles of a grid, from summed-area tables: four look-ups for each.   [Crow 1984]

Vocabulary: a `table` holds at (i, j) the sum of all numbers before row i and column j · a rectangle touches divisions
of an axis: one that it may cut at each end, and those *inside*.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Run", "Runs", "Touched", "range_sums", "summed_area", "uneven_sums"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Run: TypeAlias = tuple[Counts, Counts]


def summed_area(grid: Floats) -> Floats:
    """The table of a grid.

    >>> summed_area(np.ones((1, 2))).tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]]
    """
    table = np.zeros((grid.shape[0] + 1, grid.shape[1] + 1))
    np.cumsum(grid, axis=0, out=table[1:, 1:])
    np.cumsum(table[1:, 1:], axis=1, out=table[1:, 1:])
    return table


@dataclass(frozen=True)
class Runs:
    """Rows and columns of a grid from the first to below the second number, for each rectangle."""

    rows: Run
    columns: Run

    @classmethod
    def none(cls, many: int) -> "Runs":
        """Nothing, for each of many rectangles."""
        zero = np.zeros(many, np.int64)
        return cls((zero, zero), (zero, zero))

    def below(self, rows: Counts, columns: Counts) -> "Runs":
        """Their children, given how many divisions of the next level lie before each edge of this one."""
        (a, b), (c, d) = self.rows, self.columns
        return Runs((rows[a], rows[b]), (columns[c], columns[d]))


def range_sums(table: Floats, runs: Runs) -> Floats:
    """The sum of the numbers in each rectangle of whole divisions."""
    many, flat = table.shape[1], table.ravel()
    (a, b), (c, d) = runs.rows, runs.columns
    top, bottom = a * many, b * many
    found: Floats = flat[bottom + d] - flat[top + d] - flat[bottom + c] + flat[top + c]
    return found


def uneven_sums(table: Floats, low: Floats, high: Floats) -> Floats:
    """The sum over each rectangle with edges anywhere, where the number of a cell is spread evenly over it.

    >>> uneven_sums(summed_area(np.ones((2, 2))), np.array([[0.5, 0]]), np.array([[1.5, 0.25]])).tolist()
    [0.25]
    """
    rows, columns = [low[:, 0], high[:, 0]], [low[:, 1], high[:, 1]]
    corner = [[_before(table, row, column) for column in columns] for row in rows]
    return corner[1][1] - corner[0][1] - corner[1][0] + corner[0][0]


def _before(table: Floats, row: Floats, column: Floats) -> Floats:
    """The sum of all numbers before a point, which is bilinear within each cell."""
    i, j = (np.minimum(at.astype(np.int64), many - 2) for at, many in zip((row, column), table.shape, strict=True))
    down, right = row - i, column - j
    many, flat = table.shape[1], table.ravel()
    at = i * many + j
    above = flat[at] * (1 - right) + flat[at + 1] * right
    below = flat[at + many] * (1 - right) + flat[at + many + 1] * right
    return np.asarray(above * (1 - down) + below * down)


@dataclass(frozen=True)
class Touched:
    """Which divisions of an axis rectangles touch: `start` to below `stop` are inside, one at each end may be cut.

    `left_part` is the part of the division `left` that a rectangle holds, 0 where it cuts none; the same at the right.
    """

    left: Counts
    left_part: Floats
    start: Counts
    stop: Counts
    right: Counts
    right_part: Floats

    @classmethod
    def of(cls, edges: Counts, low: Floats, high: Floats) -> "Touched":
        """Those of an axis with the given edges."""
        start, stop = np.searchsorted(edges, low), np.searchsorted(edges, high, side="right") - 1
        left, right = np.searchsorted(edges, low, side="right") - 1, np.searchsorted(edges, high) - 1
        left, right = np.clip(left, 0, len(edges) - 2), np.clip(right, 0, len(edges) - 2)
        some, widths = high > low, np.diff(edges)
        cut_left = some & (start > left)
        cut_right = some & (stop <= right) & ~(cut_left & (left == right))
        held = np.minimum(high, edges[left + 1]) - low
        other = high - np.maximum(low, edges[right])
        return cls(
            left,
            np.where(cut_left, held / widths[left], 0.0),
            start,
            np.where(some, np.maximum(stop, start), start),
            right,
            np.where(cut_right, other / widths[right], 0.0),
        )

    @property
    def inside(self) -> Run:
        """The divisions inside."""
        return self.start, self.stop

    @property
    def all(self) -> Run:
        """The divisions that are touched."""
        first = np.where(self.left_part > 0, self.left, np.where(self.stop > self.start, self.start, self.right))
        last = np.where(self.right_part > 0, self.right + 1, np.where(self.stop > self.start, self.stop, self.left + 1))
        none = (self.left_part == 0) & (self.right_part == 0) & (self.stop <= self.start)
        return first, np.where(none, first, last)

    @property
    def pieces(self) -> tuple[tuple[Run, Floats], ...]:
        """Runs of divisions with the part of each that is held: the cut one at each end, and those inside."""
        ends = ((self.left, self.left_part), (self.right, self.right_part))
        cut = tuple(((one, one + (part > 0)), part) for one, part in ends)
        return (*cut, (self.inside, np.ones(len(self.start))))
