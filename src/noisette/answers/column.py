"""One column of an answer."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Column"]

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Column:
    """One column of an answer: keys have no error bars, numbers have.

    `low` and `high` are the ends of the error bars, moved into `span`, which is what declarations allow. `drawn` are
    the ends before that, as they follow from the noise; None where they are the same.
    """

    name: str
    values: "pyarrow.Array"
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    span: tuple[float, float] = (-math.inf, math.inf)
    drawn: Ends | None = None
    shown: NDArray[np.float64] | None = None

    @property
    def measured(self) -> bool:
        """Whether it is a number with error bars."""
        return self.low is not None

    @property
    def half(self) -> NDArray[np.float64]:
        """What follows the ±: how far the number is from the further end of its bar, before that was moved."""
        if self.shown is not None:
            return self.shown
        low, high = self._ends
        values = np.asarray(self.values.to_numpy(zero_copy_only=False), dtype=float)
        return np.asarray(np.maximum(high - values, values - low))

    @property
    def unmoved(self) -> Ends:
        """The ends of the bars as they follow from the noise."""
        return self._ends if self.drawn is None else self.drawn

    def within(self, span: tuple[float, float]) -> "Column":
        """The same with the ends of its bars moved into a span in which the number without noise lies for certain.

        If it lay within its bar it still does, so the level holds. The number itself stays as it was drawn: a count may
        be negative, and then both ends lie to one side of it.

        >>> import pyarrow
        >>> moved = Column("n", pyarrow.array([3]), np.array([-7.0]), np.array([13.0])).within((0, math.inf))
        >>> moved.low.tolist(), moved.high.tolist(), moved.half.tolist()
        ([0.0], [13.0], [10.0])
        """
        low, high = (np.clip(end, *span) for end in self._ends)
        moved = replace(self, low=low, high=high, span=span, drawn=self.unmoved)
        return replace(moved, shown=np.where(np.isfinite(self.half), self.half, moved.half))

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
