"""Points of a grid in rings around a place: how many lie within a distance, and which is the u-th of a ring.

Coordinates are whole and distances squared, so that all counts are exact. A circle of squared radius s reaches
isqrt(s - v^2) columns to either side in the row v steps from the place; what lies outside of the rectangle is cut off.
Counting takes the time of the rows, however wide the rectangle.

Vocabulary: `square` squared distance from the place · `half` how far a circle reaches in a row, -1 where it does not
· `ring` the points of squares in after < square <= upto.
"""

import math
import numbers
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import frozen
from noisette.exact.integers import Int64Array
from noisette.mechanisms.selection.interval_choice import ENUMERATED

__all__ = ["Point", "Rectangle", "Weighted"]

Point = tuple[int, int]

_WIDEST = 1 << 20  # squares stay below 2^42, where floats tell the roots of squares from all others
_FARTHEST = 1 << 40
_CHUNK = 1 << 20


def _pair(value: Any, name: str) -> Point:
    """Read two whole numbers."""
    given = tuple(value) if isinstance(value, tuple | list) else ()
    if len(given) != 2 or any(isinstance(v, bool) or not isinstance(v, numbers.Integral) for v in given):
        raise InputError(f"{name} must be a pair of whole numbers such as (0, 99).")
    x, y = (int(v) for v in given)
    if max(abs(x), abs(y)) > _FARTHEST:
        raise InputError(f"{name} must lie between -2^40 and 2^40: choose a nearer origin.")
    return x, y


Pair: TypeAlias = Annotated[Point, _pair]


@frozen
class Rectangle:
    """The points (x, y) with x in `columns` and y in `rows`, ends included, seen from a place among them.

    >>> import numpy as np
    >>> r = Rectangle((0, 4), (0, 4), (1, 2))
    >>> r.count, r.farthest, r.upto(np.array([-1, 0, 1, 2, 13])).tolist()
    (25, 13, [0, 1, 5, 9, 25])
    >>> [r.point(1, 2, u) for u in range(4)]
    [(0, 1), (2, 1), (0, 3), (2, 3)]
    """

    columns: Pair
    rows: Pair
    place: Pair

    def __post_init__(self) -> None:
        for name, (low, high) in (("columns", self.columns), ("rows", self.rows)):
            if low > high:
                raise InputError(f"{name} must be a pair (low, high) with low at most high: check their order.")
            if high - low >= _WIDEST:
                raise InputError(f"{name} must be at most {_WIDEST:,}: choose a coarser grid.")
        if self.count == 1:
            raise InputError("The rectangle must have at least two points: a single one says nothing.")
        if any(not low <= at <= high for at, (low, high) in zip(self.place, (self.columns, self.rows), strict=True)):
            raise InputError("The place must lie in the rectangle of columns and rows.")

    @property
    def count(self) -> int:
        """How many points it has."""
        return (self.columns[1] - self.columns[0] + 1) * (self.rows[1] - self.rows[0] + 1)

    least = 1
    """The weight of the lightest point."""

    @property
    def farthest(self) -> int:
        """The square of the farthest corner."""
        return sum(
            max(at - low, high - at) ** 2 for at, (low, high) in zip(self.place, (self.columns, self.rows), strict=True)
        )

    def squares(self, points: NDArray[Any]) -> Int64Array:
        """Squared distances from the place; a point outside counts as the nearest one inside."""
        x = np.clip(points[:, 0], *self.columns).astype(np.int64) - self.place[0]
        y = np.clip(points[:, 1], *self.rows).astype(np.int64) - self.place[1]
        return np.asarray(x * x + y * y)

    @cached_property
    def all(self) -> Int64Array:
        """Every point, row by row."""
        if self.count > ENUMERATED:
            raise InputError(f"Points are written out if they are at most {ENUMERATED:,}: choose a coarser grid.")
        x, y = np.meshgrid(np.arange(self.columns[0], self.columns[1] + 1), np.arange(self.rows[0], self.rows[1] + 1))
        return np.column_stack([x.ravel(), y.ravel()])

    def upto(self, squares: Int64Array) -> Int64Array:
        """How many points lie within each squared distance."""
        v = self._steps[abs(self._steps) <= math.isqrt(max(0, int(squares.max())))]
        some = max(1, _CHUNK // len(v))
        parts = [squares[i : i + some] for i in range(0, len(squares), some)]
        return np.concatenate([self._in_rows(_halves(part, v)).sum(axis=1) for part in parts])

    def point(self, after: int, upto: int, u: int) -> Point:
        """Return the u-th point of a ring, in order of the rows."""
        inner, outer = _halves(np.array([after, upto]), self._steps)
        ends = np.cumsum(self._in_rows(outer) - self._in_rows(inner))
        row = int(np.searchsorted(ends, u, side="right"))
        u -= int(ends[row - 1]) if row else 0
        gap, reach = int(inner[row]), int(outer[row])
        to_the_left = max(0, min(reach, self._left) - max(gap, 0))
        step = -max(gap, 0) - 1 - u if u < to_the_left else gap + 1 + u - to_the_left
        return self.place[0] + step, self.rows[0] + row

    @property
    def _left(self) -> int:
        return self.place[0] - self.columns[0]

    @property
    def _steps(self) -> Int64Array:
        """How far each row is from the place."""
        return np.arange(self.rows[0] - self.place[1], self.rows[1] - self.place[1] + 1)

    def _in_rows(self, halves: Int64Array) -> Int64Array:
        sides = np.minimum(halves, self._left) + np.minimum(halves, self.columns[1] - self.place[0])
        return np.asarray(np.maximum(sides + 1, 0))


def _halves(squares: Int64Array, steps: Int64Array) -> Int64Array:
    """One line for each square, one number for each row."""
    rest = squares[:, None] - steps * steps
    return np.where(rest < 0, -1, np.sqrt(np.maximum(rest, 0)).astype(np.int64))


class Weighted:
    """The same with a public weight for each point, for rectangles whose points can be sorted.

    >>> w = Weighted(Rectangle((0, 1), (0, 1), (0, 0)), np.array([5, 1, 2, 7]))
    >>> w.count, w.least, w.upto(np.array([-1, 0, 1, 2])).tolist(), [w.point(0, 1, u) for u in range(3)]
    (15, 1, [0, 5, 8, 15], [(1, 0), (0, 1), (0, 1)])
    """

    def __init__(self, rectangle: Rectangle, weights: Int64Array) -> None:
        squares = rectangle.squares(rectangle.all)
        order = np.argsort(squares, kind="stable")
        self._points, self._squares = rectangle.all[order], squares[order]
        self._upto = np.concatenate([[0], np.cumsum(weights[order])])
        self.count, self.least = int(weights.sum()), int(weights.min())

    def upto(self, squares: Int64Array) -> Int64Array:
        """What the points within each squared distance weigh."""
        return np.asarray(self._upto[np.searchsorted(self._squares, squares, side="right")])

    def point(self, after: int, upto: int, u: int) -> Point:
        """Return the point of a ring at which its weights add up to more than u."""
        start = int(self.upto(np.array([after]))[0])
        x, y = self._points[np.searchsorted(self._upto, start + u, side="right") - 1]
        return int(x), int(y)
