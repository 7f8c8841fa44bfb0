"""The cells of a column: one for each declared value, or bins of equal width between its declared bounds.

In which cell a value lies depends on that value and on declarations alone. NULL, NaN, values beyond the bounds and
texts that are no declared key lie in no cell: engines leave out rows whose keys are beyond their bounds (`beyond`).
"""

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.query.expression import Call, Expression, Literal
from noisette.query.kind import Kind, Value
from noisette.query.requirements import moment
from noisette.query.types import ARROW

__all__ = ["MOST_CELLS", "Axis"]

MOST_CELLS = 1 << 24
_USUAL = 4096  # bins of a column whose values are too many for a cell each
_LISTED = 1 << 20  # values that get a cell each unless bins are asked for
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Axis:
    """The cells of a column called `name`: `keys`, or `cells` bins of `width` from `first` on.

    Dates are days since 1970 here, timestamps microseconds.

    >>> axis = Axis.of("age", Kind("integer", Fraction(0), Fraction(110), Fraction(1)), bins=40)
    >>> axis.cells, axis.width, axis.find(64), axis.label(axis.find(64))
    (37, Fraction(3, 1), 21, 63)
    """

    name: str
    kind: Kind
    cells: int
    first: Fraction = Fraction(0)
    width: Fraction = Fraction(1)
    keys: tuple[Value, ...] | None = None

    @classmethod
    def of(cls, name: str, kind: Kind, bins: int | None = None) -> "Axis":
        """A cell for each declared value, or at most that many bins; without bins, 4 096 of them for real numbers."""
        if bins is not None and whole(bins, "bins") > MOST_CELLS:
            raise InputError(f"bins must be at most {MOST_CELLS:,}.")
        if kind.keys is not None or kind.type == "boolean":
            found = kind.keys if kind.keys is not None else (False, True)
            if bins is not None:
                raise InputError(f"{name} has declared keys, each with a cell of its own: leave bins out.")
            return cls(name, kind, len(found), keys=found)
        if kind.low is None or kind.high is None:
            raise InputError(
                f"{name} needs a declared domain: declare keys or bounds in the policy, or buy bounds with "
                "bounds(column, spend=...)."
            )
        return cls._binned(name, kind, kind.low, kind.high, bins)

    @classmethod
    def _binned(cls, name: str, kind: Kind, low: Fraction, high: Fraction, bins: int | None) -> "Axis":
        step = Fraction(1) if kind.type in ("date", "timestamp") else kind.grid
        many = None if step is None else math.floor(high / step) - math.ceil(low / step) + 1
        if kind.type == "timestamp" and bins is None:
            step, many = Fraction(_DAY), math.floor(high / _DAY) - math.floor(low / _DAY) + 1
            low = Fraction(math.floor(low / _DAY) * _DAY)
        if step is None or many is None or (bins is None and many > _LISTED):
            cells = bins or _USUAL
            return cls(name, kind, cells, low, max(high - low, Fraction(1, 2**60)) / cells)
        each = 1 if bins is None else -(-many // bins)
        return cls(name, kind, -(-many // each), math.ceil(low / step) * step, each * step)

    @property
    def binned(self) -> bool:
        """Whether the engine computes the number of the cell: it can, of numbers."""
        return self.keys is None and self.kind.number

    def cell(self, value: Expression) -> Expression:
        """The number of the cell as an expression for the engine; the last one may be one too high."""
        return Call("floor", (Call("divide", (Call("subtract", (value, Literal(self.first))), Literal(self.width))),))

    def holds(self, value: Expression) -> Expression:
        """Whether a number lies between the bounds, as an expression for the engine."""
        low, high = self.kind.ends
        return Call("and", (Call("at_least", (value, Literal(low))), Call("at_most", (value, Literal(high)))))

    def places(self, column: pyarrow.Array) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which of the values that the engine found lie in a cell, and in which."""
        if self.keys is not None:
            found = pyarrow.compute.index_in(column, pyarrow.array(self.keys, ARROW[self.kind.type]), skip_nulls=True)
            there = found.is_valid().to_numpy(zero_copy_only=False)
            return there, found.drop_null().to_numpy().astype(np.int64)
        there = column.is_valid().to_numpy(zero_copy_only=False)
        numbers = self._numbers(column.drop_null())
        return there, np.clip(numbers, 0, self.cells - 1)

    def _numbers(self, column: pyarrow.Array) -> NDArray[np.int64]:
        if self.binned:
            cells = column.cast(pyarrow.float64(), safe=False).to_numpy()
            return np.asarray(np.nan_to_num(np.clip(cells, 0, self.cells - 1)), np.int64)
        days = self.kind.type == "date"
        steps = (column.cast(pyarrow.int32()) if days else column).cast(pyarrow.int64()).to_numpy()
        return np.asarray((steps - int(self.first)) // int(self.width), np.int64)

    # For people

    def find(self, value: Any) -> int:
        """The number of the cell in which a value lies; values beyond the bounds lie in none."""
        if self.keys is None:
            return self.span(value, value)[0]
        if value not in self.keys:
            raise InputError(f"This is no declared key of {self.name}: name one of them.")
        return self.keys.index(value)

    def span(self, low: Any, high: Any) -> tuple[int, int]:
        """The first and the last cell of a range, both ends included; None stands for the end of the bounds."""
        place = self._place if self.keys is None else self.find
        first, last = 0 if low is None else place(low), self.cells - 1 if high is None else place(high)
        if first >= self.cells or last < 0:
            ends = f"{self.label(0)} to {self._last()}"
            raise InputError(f"No row is there: values of {self.name} beyond its bounds, {ends}, are in no cell.")
        return max(first, 0), min(last, self.cells - 1)

    def _place(self, value: Any) -> int:
        """The number of a cell, which may be before the first or after the last one; the upper bound is in the last."""
        step = self._step(value)
        at = math.floor((step - self.first) / self.width)
        return self.cells - 1 if at >= self.cells and self.kind.high is not None and step <= self.kind.high else at

    def _last(self) -> Any:
        """The upper bound, as people write it."""
        high = self.first + self.cells * self.width if self.kind.high is None else self.kind.high
        if not self.kind.number:
            return moment(high, self.kind.type)
        return int(high) if high.denominator == 1 else float(high)

    def _step(self, value: Any) -> Fraction:
        if self.kind.number:
            return fraction(value, self.name)
        if isinstance(value, str):
            try:
                value = datetime.datetime.fromisoformat(value)
            except ValueError:
                value = None
        if not isinstance(value, datetime.date):
            raise InputError(f'{self.name} holds dates: write one as "2024-02-01".')
        at = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
        since = at.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return (
            Fraction(since.days) if self.kind.type == "date" else Fraction(since // datetime.timedelta(microseconds=1))
        )

    def label(self, cell: int) -> Any:
        """The first value of a cell, as people write it."""
        if self.keys is not None:
            return self.keys[cell]
        start = self.first + cell * self.width
        if not self.kind.number:
            return moment(start, self.kind.type)
        return int(start) if self.kind.type == "integer" and start.denominator == 1 else float(start)

    def labels(self) -> pyarrow.Array:
        """The first value of each cell as a column."""
        kind = "real" if self.kind.type == "integer" and self.width.denominator > 1 else self.kind.type
        if self.keys is not None or not self.kind.number:
            return pyarrow.array([self.label(cell) for cell in range(self.cells)], ARROW[kind])
        if kind == "integer":
            return pyarrow.array(int(self.first) + int(self.width) * np.arange(self.cells))
        return pyarrow.array(float(self.first) + float(self.width) * np.arange(self.cells))
