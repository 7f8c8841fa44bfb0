"""One column of an answer."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Column", "added_ends", "moved_ends"]

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Column:
    """One column of an answer: keys have no error bars, numbers have.

    `low` and `high` are the ends of the error bars, moved into `span`, which is what declarations allow. `drawn` are
    the ends before that, as they follow from the noise; None where they are the same. `adds` says that people add these
    numbers up (counts, sums): they stay as they were drawn, so that totals are right in the mean. A number lies within
    its bar, or there is none: NULL, with all that is possible as its bar. `endless` says why a bar may have no end,
    and what helps.
    """

    name: str
    values: "pyarrow.Array"
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    span: tuple[float, float] = (-math.inf, math.inf)
    drawn: Ends | None = None
    shown: NDArray[np.float64] | None = None
    adds: bool = False
    endless: str = ""

    @property
    def measured(self) -> bool:
        """Whether it is a number with error bars."""
        return self.low is not None

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Which numbers are not shown, nor a bar; where nothing is known of one, its bar is all that is possible."""
        return np.isnan(self._ends[0])

    @property
    def half(self) -> NDArray[np.float64]:
        """What follows the ±: how far the number is from the further end of its bar, before that was moved."""
        if self.shown is not None:
            return self.shown
        low, high = self._ends
        return np.asarray(np.maximum(high - self._numbers, self._numbers - low))

    @property
    def unmoved(self) -> Ends:
        """The ends of the bars as they follow from the noise."""
        return self._ends if self.drawn is None else self.drawn

    def within(self, span: tuple[float, float]) -> "Column":
        """The same with the ends of its bars moved into a span in which the number without noise lies for certain.

        If that lay within its bar it still does, so the level holds. Where the number was drawn outside of the span,
        the bar reaches as far from the span's nearer end as it did from the number: it is never cut to a point. A
        number moves to that end, except one that `adds`, to which its bar reaches instead.

        >>> import pyarrow
        >>> drawn = Column("n", pyarrow.array([3, -4]), np.array([-7.0, -14.0]), np.array([13.0, 6.0]))
        >>> moved = drawn.within((0, math.inf))
        >>> moved.values.to_pylist(), moved.low.tolist(), moved.high.tolist(), moved.half.tolist()
        ([3, 0], [0.0, 0.0], [13.0, 10.0], [10.0, 10.0])
        >>> counts = replace(drawn, adds=True).within((0, math.inf))
        >>> counts.values.to_pylist(), counts.low.tolist(), counts.high.tolist()
        ([3, -4], [0.0, -4.0], [13.0, 10.0])
        """
        values, reach = self._numbers, added_ends if self.adds else moved_ends
        made = self.values if self.adds else _moved(self.values, np.clip(values, *span))
        low, high = reach(values, self._ends, span)
        moved = replace(self, values=made, low=low, high=high, span=span, drawn=self.unmoved)
        return replace(moved, shown=np.where(np.isfinite(self.half), self.half, moved.half))

    @property
    def _numbers(self) -> NDArray[np.float64]:
        """The numbers, NaN where there is none."""
        return np.asarray(self.values.to_numpy(zero_copy_only=False), dtype=float)

    @property
    def _ends(self) -> Ends:
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high

    def take(self, rows: NDArray[np.int64]) -> "Column":
        """Some of its rows, in that order."""
        import pyarrow

        def some(part: Any) -> Any:
            return None if part is None else part[rows]

        drawn = None if self.drawn is None else (self.drawn[0][rows], self.drawn[1][rows])
        values = self.values.take(pyarrow.array(rows))
        return replace(
            self, values=values, low=some(self.low), high=some(self.high), drawn=drawn, shown=some(self.shown)
        )


def moved_ends(values: NDArray[np.float64], ends: Ends, span: tuple[float, float]) -> Ends:
    """The ends of bars within a span, reaching as far from the numbers moved into it as from the numbers themselves."""
    inside = np.clip(values, *span)
    away = (inside != values) & ~np.isnan(values)
    low, high = (np.clip(np.where(away, inside - (values - end), end), *span) for end in ends)
    return low, high


def added_ends(values: NDArray[np.float64], ends: Ends, span: tuple[float, float] = (0.0, math.inf)) -> Ends:
    """The same for numbers that people add up, which stay as they were drawn: their bars reach to them.

    >>> added_ends(np.array([-4.0, 9.0]), (np.array([-6.0, 2.0]), np.array([-2.0, 8.0])))
    (array([-4.,  2.]), array([2., 9.]))
    """
    low, high = moved_ends(values, ends, span)
    return np.fmin(low, values), np.fmax(high, values)


def _moved(values: "pyarrow.Array", inside: NDArray[np.float64]) -> "pyarrow.Array":
    """Numbers of the same type, moved; one that is not there stays away."""
    import pyarrow

    missing = np.isnan(inside)
    whole = pyarrow.types.is_integer(values.type)
    return pyarrow.array(np.where(missing, 0, inside).astype(np.int64) if whole else inside, values.type, mask=missing)
