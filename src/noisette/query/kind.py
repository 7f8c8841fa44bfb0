"""What is publicly known of a value: its type, its bounds, its grid, the values it can take, whether it can be NULL.

A `Kind` is declared for every column and derived for every expression. It never comes from the data.
Bounds and grid are exact; they are promises kept by clamping and rounding, or by leaving values out (`beyond`), which
the compiler writes into each query.
"""

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from noisette.query.recode import Recode

__all__ = ["LARGEST", "MOST_KEYS", "Kind", "Type", "Value", "in_order"]

Type: TypeAlias = Literal["integer", "real", "text", "boolean", "date", "timestamp"]

Value: TypeAlias = int | Fraction | str | bool | datetime.date | datetime.datetime | None
"""One value of a column, as Python sees it; a datetime is a date too, so match the narrower first."""

LARGEST = 2**52
"""Numbers in a query stay within this many grid steps of 0, so that doubles hold them exactly."""

_EPOCH = datetime.date(1970, 1, 1)

MOST_KEYS = 10_000_000
"""More keys than these are not listed one by one."""


@dataclass(frozen=True)
class Kind:
    """What is publicly known of a value; None stands for "unknown".

    Bounds of dates are days since 1970, those of timestamps microseconds.

    >>> Kind("integer", Fraction(0), Fraction(120), Fraction(1)).count
    121
    >>> Kind("date", Fraction(0), Fraction(1), nullable=False).values()
    (datetime.date(1970, 1, 1), datetime.date(1970, 1, 2))
    """

    type: Type
    low: Fraction | None = None
    high: Fraction | None = None
    grid: Fraction | None = None  # every value is a whole multiple of it
    keys: tuple[Value, ...] | None = None  # all values there can be, in order, without NULL
    nullable: bool = True
    recode: Recode | None = field(default=None, repr=False)  # of a stored column: what its texts mean
    format: str | None = field(default=None, repr=False)  # the same: how its texts write dates (`texts.formatted`)
    text: bool = field(default=False, repr=False)  # the same: whether it is read from texts, some of which may be none

    @property
    def number(self) -> bool:
        """Whether it can be calculated with."""
        return self.type in ("integer", "real")

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.low is not None and self.high is not None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both bounds of what is bounded."""
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high

    @property
    def bounds(self) -> tuple[str, str] | None:
        """Both bounds as people write them, dates as dates; None of what is not bounded.

        >>> Kind("date", Fraction(0), Fraction(1)).bounds, Kind("real", Fraction(0), Fraction(1, 2)).bounds
        (('1970-01-01', '1970-01-02'), ('0', '1/2'))
        """
        return (self._written(self.ends[0]), self._written(self.ends[1])) if self.bounded else None

    def _written(self, bound: Fraction) -> str:
        try:
            if self.type == "date":
                return str(_EPOCH + datetime.timedelta(math.floor(bound)))
            if self.type == "timestamp":
                since = datetime.timedelta(microseconds=math.floor(bound))
                return str(datetime.datetime.combine(_EPOCH, datetime.time()) + since)
        except OverflowError:  # of a date that is moved beyond the year 9999
            pass
        return str(bound)

    @property
    def magnitude(self) -> Fraction | None:
        """The largest absolute value, if bounded."""
        if self.low is None or self.high is None:
            return None
        return max(abs(self.low), abs(self.high))

    @property
    def count(self) -> int | None:
        """How many values other than NULL there can be, if they can be counted."""
        if self.keys is not None:
            return len(self.keys)
        if self.type == "boolean":
            return 2
        grid = Fraction(1) if self.type == "date" else self.grid
        if self.low is None or self.high is None or grid is None:
            return None
        return math.floor(self.high / grid) - math.ceil(self.low / grid) + 1

    def values(self) -> tuple[Value, ...] | None:
        """All values there can be, in order, then None if it can be NULL; None if they are unknown or too many."""
        found = self._known()
        if found is None:
            return None
        return (*found, None) if self.nullable else found

    def _known(self) -> tuple[Value, ...] | None:
        if self.keys is not None:
            return self.keys
        if self.type == "boolean":
            return (False, True)
        if self.count is None or self.count > MOST_KEYS:
            return None
        assert self.low is not None
        if self.type == "date":
            return tuple(_EPOCH + datetime.timedelta(math.ceil(self.low) + i) for i in range(self.count))
        assert self.grid is not None
        first = math.ceil(self.low / self.grid)
        if self.type == "integer" and self.grid.denominator == 1:
            grid = self.grid.numerator
            return tuple(range(first * grid, (first + self.count) * grid, grid))
        return tuple(step * self.grid for step in range(first, first + self.count))

    def maybe(self, nullable: bool = True) -> "Kind":
        """The same, but NULL is possible (or not)."""
        return replace(self, nullable=nullable)


def in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Distinct values in ascending order, NULL left out.

    >>> in_order(["b", None, "a", "b"])
    ('a', 'b')
    """
    return tuple(sorted({value for value in values if value is not None}))
