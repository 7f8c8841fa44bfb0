"""Counts along a column, released once: ranges, differences, ratios and quantiles of them at no further cost.

Vocabulary: `fit` what was released, with bars for ranges of cells · `axis` which values the cells hold · an `Interval`
is a number with the ends of its error bar.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.answers.column import added_ends
from noisette.errors import InputError
from noisette.exact.number import fraction, level_of
from noisette.releases.axis import Axis

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["Counted", "Interval", "Line"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[Floats, Floats]

_DRAWN = 200  # bars of a chart


class Counted(Protocol):
    """Released counts of cells: `Estimate` (unbiased) or `AdaptiveFit`."""

    @property
    def x(self) -> Floats:
        """The count of each cell."""
        ...

    def ranges(self, low: Any, high: Any) -> Floats:
        """The number in the cells low .. high, both included."""
        ...

    def bars(self, low: Any, high: Any, level: float) -> Ends:
        """The ends of the usual error bars of ranges."""
        ...

    def guaranteed(self, low: Any, high: Any, level: float) -> Ends:
        """The ends of error bars that hold with at least the level's probability, whatever the data."""
        ...


@dataclass(frozen=True)
class Interval:
    """A number between the ends of its error bar.

    >>> Interval(1234.4, 1200.2, 1270.0)
    1,234 (1,200 to 1,270)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        digits = 0 if max(abs(self.low), abs(self.high)) >= 100 else 3
        return f"{self.value:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


@dataclass(frozen=True, repr=False)
class Line:
    """Counts of the cells of a column. Every range of them is answered from the same release, with an error bar.

    `count(low, high)` counts whole cells, from the one that holds `low` to the one that holds `high`; an end that is
    left out is open. Bars hold whatever the data, for each answer alone; with `among=m` for m answers at once. Those of
    `guaranteed=False` are shorter and may fail where counts are uneven inside what was not divided.
    """

    axis: Axis
    fit: Counted
    level: float

    @property
    def x(self) -> Floats:
        """The released count of each cell."""
        return self.fit.x

    def count(
        self, low: Any = None, high: Any = None, *, level: float | None = None, guaranteed: bool = True, among: int = 1
    ) -> Interval:
        """How many rows have values from low to high."""
        cells = self._cells(low, high)
        [found] = self.counts([cells[0]], [cells[1]], level=level, guaranteed=guaranteed, among=among)
        return found

    def counts(
        self,
        low: Iterable[int],
        high: Iterable[int],
        *,
        level: float | None = None,
        guaranteed: bool = True,
        among: int = 1,
    ) -> list[Interval]:
        """The same for many ranges of cells, by their numbers, both ends included."""
        first, last = np.asarray(list(low), np.int64), np.asarray(list(high), np.int64)
        if len(first) != len(last) or (first > last).any() or (first < 0).any() or (last >= self.axis.cells).any():
            raise InputError(f"Ranges go from a cell to a later one or itself, between 0 and {self.axis.cells - 1:,}.")
        value, (below, above) = self._found(first, last, level, guaranteed=guaranteed, among=among)
        return [Interval(*one) for one in zip(value.tolist(), below.tolist(), above.tolist(), strict=True)]

    def _found(
        self, first: Any, last: Any, level: float | None = None, *, guaranteed: bool = True, among: int = 1
    ) -> tuple[Floats, Ends]:
        """The numbers in ranges of cells, and the ends of error bars that reach to them."""
        known = self.level if level is None else level_of(level)
        value, each = self.fit.ranges(first, last), 1 - (1 - known) / among
        below, above = (self.fit.guaranteed if guaranteed else self.fit.bars)(first, last, each)
        return value, added_ends(value, (below, above))

    def _cells(self, low: Any, high: Any) -> tuple[int, int]:
        first, last = self.axis.span(low, high)
        if first > last:
            raise InputError("A range goes from its lower end to its upper end: count(18, 65).")
        return first, last

    # Of two ranges

    def difference(self, one: tuple[Any, Any], other: tuple[Any, Any], *, level: float | None = None) -> Interval:
        """How many more rows one range has than another; each end misses half as often as the level allows."""
        a, b = self._both(one, other, level)
        return Interval(a.value - b.value, a.low - b.high, a.high - b.low)

    def ratio(self, one: tuple[Any, Any], other: tuple[Any, Any], *, level: float | None = None) -> Interval:
        """The number of rows in one range over that in another; without an upper end where the other may be 0."""
        a, b = self._both(one, other, level)
        high = a.high / b.low if b.low > 0 else np.inf
        return Interval(a.value / b.value if b.value > 0 else np.nan, max(a.low, 0.0) / max(b.high, 1.0), high)

    def _both(self, one: tuple[Any, Any], other: tuple[Any, Any], level: float | None) -> tuple[Interval, Interval]:
        return self.count(*one, level=level, among=2), self.count(*other, level=level, among=2)

    # All of it

    @property
    def total(self) -> Interval:
        """How many rows there are, except those without a value."""
        return self.count()

    def quantile(self, q: Any) -> Any:
        """The first value of the cell in which a share q of all rows is reached; no error bar."""
        share = fraction(q, "q")
        if not 0 <= share <= 1:
            raise InputError("q must lie between 0 and 1: 0.5 is the median.")
        rising = np.cumsum(np.maximum(self.x, 0.0))
        return self.axis.label(min(int(np.searchsorted(rising, float(share) * rising[-1])), self.axis.cells - 1))

    def columns(self) -> tuple[Column, ...]:
        """The cells with their counts and error bars, as columns of an answer."""
        cells = np.arange(self.axis.cells)
        ends = added_ends(self.x, self._found(cells, cells)[1])
        return Column(self.axis.name, self.axis.labels()), Column("n", pyarrow.array(self.x), *ends)

    def to_arrow(self) -> pyarrow.Table:
        """The cells with their counts and error bars."""
        key, n = self.columns()
        return pyarrow.table({key.name: key.values, "n": n.values, "n_low": n.low, "n_high": n.high})

    def chart(self, *, note: str = "") -> "Chart":
        """The counts with their error bars; of very many cells, runs of them together, which is exact and free."""
        from noisette.charts.answers import answer

        run = -(-self.axis.cells // _DRAWN) if self.axis.keys is None else 1
        first = np.arange(0, self.axis.cells, run)
        last = np.minimum(first + run, self.axis.cells) - 1
        n, (low, high) = self._found(first, last)
        keys = [self.axis.label(cell) for cell in first.tolist()]
        return answer({self.axis.name: keys}, {"n": (n.tolist(), low.tolist(), high.tolist())}, note=note)

    def __repr__(self) -> str:
        return f"{self.axis.cells:,} cells of {self.axis.name}, {self.total} rows in all"
