"""One column of an answer."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Column"]


@dataclass(frozen=True)
class Column:
    """One column of an answer: keys have no error bars, numbers have."""

    name: str
    values: "pyarrow.Array"
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    @property
    def measured(self) -> bool:
        """Whether it is a number with error bars."""
        return self.low is not None

    def take(self, rows: NDArray[np.int64]) -> "Column":
        """Some of its rows, in that order."""
        import pyarrow

        ends = [None if end is None else end[rows] for end in (self.low, self.high)]
        return replace(self, values=self.values.take(pyarrow.array(rows)), low=ends[0], high=ends[1])
