"""Trimmed sums, whose number of records is public, and trimmed means, whose number of records is not."""

from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Whole, frozen, set_fields
from noisette.exact.integers import Int64Array
from noisette.exact.number import whole
from noisette.mechanisms.smooth.order import MOST, Ranked
from noisette.mechanisms.smooth.statistic import Fall, Pairs, largest
from noisette.privacy import Neighbours

__all__ = ["Trimmed", "TrimmedAverage"]


@frozen
class Trimmed(Ranked):
    """The sum of `rows` values without the `trim` least and largest; divided by rows - 2 trim, the trimmed mean.

    The number of rows is public, so records are replaced.

    >>> t = Trimmed(5, 0, 10, trim=1)
    >>> table = t.read([7, 3, 0, 10, 4])
    >>> t.value(table), t.smooth(table, Fraction(1, 2))
    (14, Fall(gap=7, changes=0))
    """

    neighbours = Neighbours.REPLACE  # the number of rows is public
    rows: Whole
    trim: Annotated[int, partial(whole, least=0)]

    def __init__(self, rows: int, low: int, high: int, *, trim: int = 0) -> None:
        set_fields(self, rows=rows, trim=trim)
        super().__init__(low, high)

    def __post_init__(self) -> None:
        if 2 * self.trim >= self.rows:
            raise InputError("trim must leave values over: choose one below half of the rows.")
        if self.rows * max(abs(self.low), abs(self.high)) >= MOST:
            raise InputError("The sum must stay below 2^60: use a coarser unit.")

    @property
    def span(self) -> tuple[int, int]:
        """So many times the bounds."""
        kept = self.rows - 2 * self.trim
        return kept * self.low, kept * self.high

    def ranks(self, n: int) -> tuple[int, int]:
        """All but those that are trimmed."""
        return self.trim + 1, n - self.trim

    def read(self, x: Any) -> Int64Array:
        """The sorted values between their bounds."""
        table = self.padded(x)
        if len(table) - 2 != self.rows:
            raise InputError(f"The table must have {self.rows:,} records.")
        return table

    def reaches(self, table: Int64Array) -> tuple[Int64Array, Int64Array]:
        """t changes replace the t least values by the upper bound: exact, if nothing is trimmed."""
        if self.trim:
            raise InputError("Distances to other trimmed sums are not known here: choose trim=0, or smooth noise.")
        values = table[1:-1]
        return np.cumsum(values[::-1] - self.low), np.cumsum(self.high - values)

    def pairs(self, beta: Fraction) -> Pairs:
        """One record moves from the lower to the upper bound."""

        def at(top: int) -> list[int]:
            return [self.low] * (self.rows - top) + [self.high] * top

        return [(at(self.trim), at(self.trim + 1), 1), (at(self.rows), at(self.rows - 1), 1)]


@frozen
class TrimmedAverage(Ranked):
    """The mean without the `trim` least and largest values, in `parts` of a unit, rounded down; records come and go.

    It is `low` if no value is left over. Of m values that are left, a record that comes moves the mean by the distance
    of the next value outside from it, divided by m + 1. After k changes that value is k ranks further out at most, and
    the mean is that of values k ranks further down at least. So

        A_k = max(x_(n-trim+1+k) - mean of x_(trim+1-k) .. x_(n-trim-k), the same upside down) / (m - 1 - k),

    and from k = m - 1 on all that there is.   [proof note: docs/proofs/smooth-sensitivity.md]

    >>> mean = TrimmedAverage(0, 100, trim=1, parts=10)
    >>> table = mean.read([3, 0, 4, 90, 4, 5, 5, 4])
    >>> mean.value(table), mean.smooth(table, Fraction(1, 2))
    (41, Fall(gap=172, changes=0))
    """

    neighbours = Neighbours.ADD_REMOVE  # a record is added or removed
    _: KW_ONLY
    trim: Annotated[int, partial(whole, least=0)] = 0
    parts: Whole = 1

    def __post_init__(self) -> None:
        if self.parts * max(abs(self.low), abs(self.high)) >= MOST:
            raise InputError("parts must be fewer, so that parts times the bounds stay below 2^60.")

    @property
    def span(self) -> tuple[int, int]:
        """The bounds, in parts."""
        return self.parts * self.low, self.parts * self.high

    @property
    def furthest(self) -> int:
        """From one bound to the other, in parts."""
        return self.parts * (self.high - self.low)

    def ranks(self, n: int) -> tuple[int, int]:
        """The first and last rank that are kept; the last is before the first if none is."""
        return self.trim + 1, n - self.trim

    def read(self, x: Any) -> Int64Array:
        """The sorted values between their bounds."""
        table = self.padded(x)
        if len(table) * self.parts * max(abs(self.low), abs(self.high)) >= MOST:
            raise InputError("The table must be shorter or the parts fewer: the sum must stay below 2^60.")
        return table

    def value(self, table: Int64Array) -> int:
        """The mean, in parts."""
        first, last = self.ranks(len(table) - 2)
        if last < first:
            return self.parts * self.low
        return self.parts * int(table[first : last + 1].sum()) // (last - first + 1)

    def smooth(self, table: Int64Array, beta: Fraction) -> Fall:
        """The largest of all A_k e^(-beta k)."""
        gaps = np.append(self._gaps(table), self.furthest)
        changes = np.arange(len(gaps))
        at = largest(gaps, changes, beta)
        return Fall(int(gaps[at]), int(changes[at]))

    def _gaps(self, table: Int64Array) -> Int64Array:
        """A_k for k < m - 1, rounded up."""
        first, last = self.ranks(len(table) - 2)
        m = last - first + 1
        k = np.arange(max(0, m - 1))
        pad = np.zeros(max(0, m), np.int64)  # k ranks beyond the bounds are as the bounds
        x = np.concatenate([pad, table - self.low, pad + (self.high - self.low)])
        before, at = np.concatenate([[0], np.cumsum(x)]), len(pad) + np.array([first, last])
        below = before[at[1] - k + 1] - before[at[0] - k]
        above = before[at[1] + k + 1] - before[at[0] + k]
        moves = np.maximum(m * x[at[1] + 1 + k] - below, above - m * x[at[0] - 1 - k])
        return np.asarray(-(-self.parts * moves // (m * (m - 1 - k))))

    def reaches(self, table: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Refused: how many records must come or go for a mean is another matter."""
        raise InputError("Distances to other trimmed means are not known here: use Smooth.")

    def pairs(self, beta: Fraction) -> Pairs:
        """The one value that was left goes; and a value comes to many."""
        alone = [self.high] * (2 * self.trim + 1)
        many = [self.low] * (self.trim + 8) + [self.high] * self.trim
        return [(alone, alone[1:], 1), (many, [*many, self.high], 1), ([*many, self.low], many, 1)]
