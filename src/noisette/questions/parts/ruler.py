"""Values of a column as whole steps of a public grid, and back.

What a value becomes depends on that value alone, so the number of records that differ between two tables stays as it
is. NULL and NaN are no values; what lies beyond 2^59 steps is put there, and dates stay within the years 1 to 9999.
"""

import datetime
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers.figures import bound
from noisette.errors import InputError
from noisette.exact.number import Number, floor_log2, positive
from noisette.query.caveats import Omission
from noisette.query.kind import Kind
from noisette.query.requirements import moment

__all__ = ["MOST", "Ruler", "Steps"]

Steps = NDArray[np.int64]

MOST = 2**59
"""Steps are put between minus that and that."""

_BITS = 30  # of a bounded value without a grid
_FINE = Fraction(1, 2**20)  # the grid of a real number of which nothing is known
_COARSEST = Fraction(2**60)
_FINEST = Fraction(2**900)  # doubles hold what is divided by it
_DAYS = datetime.date.min.toordinal() - 719163, datetime.date.max.toordinal() - 719163  # from 1970 on
_LAST = {"date": _DAYS, "timestamp": tuple(86_400_000_000 * day for day in _DAYS)}


@dataclass(frozen=True)
class Ruler:
    """Values of a kind in whole steps of a grid, and back; days and microseconds since 1970 are numbers here.

    >>> half = Ruler(Kind("real"), Fraction(1, 2))
    >>> half.steps(pyarrow.array([1.0, None, -0.3, float("inf")]))[1].tolist() == [2, -1, MOST]
    True
    >>> half.value(3), Ruler(Kind("date"), Fraction(1)).value(1)
    (1.5, datetime.date(1970, 1, 2))
    """

    kind: Kind
    grid: Fraction

    @staticmethod
    def of(kind: Kind, grid: Number | None = None, most: int = MOST) -> "Ruler":
        """The one with this grid, or with the kind's own, doubled until there are at most `most` steps."""
        if grid is not None:
            if not kind.number:
                raise InputError("grid is for numbers: dates are counted in days, timestamps in microseconds.")
            if not 1 / _COARSEST <= positive(grid, "grid") <= _COARSEST:
                raise InputError("grid must lie between 2^-60 and 2^60: it is what values are rounded to.")
            return Ruler(kind, positive(grid, "grid"))
        own = _grid(kind)
        if not 1 / _FINEST <= own <= _FINEST:
            raise InputError("The bounds or the grid are too small or too large for doubles: use another unit.")
        excess = Fraction(0) if not kind.bounded else _width(kind) / own / most
        return Ruler(kind, own if excess <= 1 else own * 2 ** (floor_log2(excess) + 1))

    @property
    def size(self) -> Fraction:
        """A step as a difference: of dates in days, of timestamps in seconds."""
        return {"date": Fraction(1), "timestamp": Fraction(1, 10**6)}.get(self.kind.type, self.grid)

    @property
    def slack(self) -> Fraction:
        """By how much a difference of two values may be off that were both rounded to steps."""
        on_grid = self.grid == self.kind.grid or (self.kind.type != "real" and self.grid == 1)
        return Fraction(0) if on_grid else self.size

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest number of steps; a sentence on what to write where there are no bounds."""
        if self.kind.low is None or self.kind.high is None:
            raise InputError(
                "This needs bounds: declare them in the policy, buy them with bounds(column, spend=...), or write "
                "LEAST(GREATEST(x, low), high); Spread and Centre need none."
            )
        low, high = (round(end / self.grid) for end in (self.kind.low, self.kind.high))
        if low >= high:
            raise InputError("The bounds leave one value, so there is nothing to tell.")
        return low, high

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What is said of values that are put at the ends of all steps; nothing if bounds leave none of them."""
        low, high = _LAST.get(self.kind.type, (-MOST, MOST))
        least, most = self.kind.low, self.kind.high
        if least is not None and most is not None and low * self.grid <= least and most <= high * self.grid:
            return ()
        ends = f"[{bound(self.value(low))}, {bound(self.value(high))}]"
        cure = "declare a coarser grid" if self.kind.number else ""
        return (Omission(f"Values beyond {ends} count as the nearer bound.", cure),)

    def steps(self, column: pyarrow.Array) -> tuple[NDArray[np.bool_], Steps]:
        """Where there are values, and these in steps; what is infinite is far away."""
        there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
        if self.kind.type == "real" or self.grid != 1:
            numbers = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            there &= ~np.isnan(numbers)
            with np.errstate(over="ignore"):
                steps = np.clip(numbers[there] * float(1 / self.grid), -float(MOST), float(MOST))
            return there, np.rint(steps).astype(np.int64)
        days = pyarrow.types.is_date32(column.type)
        whole = (column.cast(pyarrow.int32()) if days else column).cast(pyarrow.int64())
        low, high = _LAST.get(self.kind.type, (-MOST, MOST))
        return there, np.clip(whole.drop_null().to_numpy(), low, high)

    def value(self, steps: int | Fraction) -> float | datetime.date:
        """A number of steps as a value of the column."""
        if self.kind.number:
            return float(steps * self.grid)
        low, high = _LAST[self.kind.type]
        at = min(max(round(steps), low), high)
        return moment(Fraction(at), self.kind.type)


def _grid(kind: Kind) -> Fraction:
    if kind.type != "real":
        return kind.grid or Fraction(1)
    if kind.grid is not None or not kind.bounded:
        return kind.grid or _FINE
    return Fraction(2) ** (floor_log2(_width(kind)) - _BITS) if _width(kind) else Fraction(1)


def _width(kind: Kind) -> Fraction:
    assert kind.low is not None
    assert kind.high is not None
    return max(kind.high - kind.low, abs(kind.low), abs(kind.high))
