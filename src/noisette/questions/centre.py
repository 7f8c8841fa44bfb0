"""Where the values of a column lie, without bounds: the median to within a bin, or nothing.

With a known `width` of bins that is one `StableLocation`. Without one, half of the promise goes to the spread
(`StableScale`), and the released spread is the width: the second mechanism is chosen by what the first one released,
and its promise is the same for every width, so the costs add up. If the spread is not released, nor is the centre.
[Dwork-Lei 2009]
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import Number, positive
from noisette.exact.random import Random
from noisette.mechanisms.stability.stability import Bin
from noisette.mechanisms.stability.stable_location import StableLocation
from noisette.mechanisms.stability.stable_scale import StableScale
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.expected import Expected
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import text_of
from noisette.questions.parts.records import about_records, changed, prepared_records, read_records
from noisette.questions.parts.rows import Rows
from noisette.questions.parts.ruler import MOST, Ruler
from noisette.questions.parts.stable_bins import BIN, NOTHING, STABLE, bin_of, spread_columns, stable_expected

__all__ = ["Centre"]

_HALF = Fraction(1, 2)
_LEAST = 2  # steps of a bin
_NOTE = "the width is the spread that is told, at least 2"  # as records have it


@dataclass(frozen=True)
class Centre(JsonQuestion):
    """The median of a column (or of an expression), to within a bin of that `width`; it needs a delta.

    No bounds are needed, and no width either: then the spread is released as well, and is the width. If few rows could
    change it the answer is NULL, which is an answer and is paid for. `width` is in units of the column, days for dates
    and seconds for timestamps. Numbers without a grid in the policy are rounded to `grid`.

    >>> Centre("income", width=1000)
    Centre(column='income', of=None, width=1000, grid=None)
    """

    column: str
    of: Rows = None
    width: Number | None = None
    grid: Number | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Test how stable the bins of the median are."""
        prepared = prepared_records(self.column, self.of, schema)
        moved, ruler = changed(prepared, neighbours), Ruler.of(prepared.keys[0], self.grid)
        known = self.width is not None
        steps = _LEAST if self.width is None else _steps(positive(self.width, "width"), ruler)
        share = spend.share(Fraction(1) if known else _HALF)
        place = StableLocation.calibrated(share, int(moved.l1), width=steps)
        scale = None if known else StableScale.calibrated(share, int(moved.l1))
        made = about_records(
            prepared,
            Location(prepared, place, moved, level, ruler, scale),
            neighbours,
            [(place, moved)] if scale is None else [(scale, moved), (place, moved)],
            text=text_of("centre", prepared, grid=ruler.grid, width=steps if known else "spread"),
            why="No bounds are needed: the median is released to within a bin, if few rows could not have changed it.",
            covers=BIN if ruler.kind.number or not known else "",  # the ends of a bin of dates are columns of their own
            omitted=ruler.omitted,
        )
        return made if known else replace(made, parts=[made.parts[0], {**made.parts[1], "note": _NOTE}])


@dataclass(frozen=True)
class Location(Procedure):
    """A bin of the median, or nothing; with a `scale` the width of the bin is the spread that it releases."""

    prepared: Prepared
    mechanism: StableLocation
    sensitivity: Sensitivity
    level: float
    ruler: Ruler
    scale: StableScale | None

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """How many changes it may take to leave a bin that is not released."""
        names = {"centre": self.mechanism, "spread": self.scale}
        tests = [(name, test) for name, test in names.items() if test is not None]
        return [tuple(stable_expected(name, test, self.sensitivity, self.level) for name, test in tests)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Read the values and test, with bins as wide as the spread if there is no other width."""
        steps = read_records(self.prepared, self.ruler, source, schema, secret)
        if self.scale is None:
            return self._table(bin_of(self.mechanism, steps, rng), {})
        spread = bin_of(self.scale, steps, rng)
        found = None if spread is None else bin_of(self._as_wide_as(spread), steps, rng)
        return self._table(found, spread_columns(spread, self.ruler))

    def _as_wide_as(self, spread: Bin) -> StableLocation:
        m = self.mechanism
        return StableLocation(m.epsilon, m.delta, width=max(_LEAST, spread[1]), neighbours=m.neighbours)

    def _table(self, found: Bin | None, others: dict[str, pyarrow.Array]) -> pyarrow.Table:
        middle, low, high = self._ends(found)
        numbers = self.ruler.kind.number
        names = ("centre", "centre_low", "centre_high") if numbers else ("centre", "earliest", "latest")
        type = pyarrow.float64() if numbers else ARROW[self.ruler.kind.type]
        ends = {n: pyarrow.array([e], type) for n, e in zip(names, (middle, low, high), strict=True)}
        return pyarrow.table({**ends, **others, "note": [NOTHING if found is None else STABLE]})

    def _ends(self, found: Bin | None) -> tuple[Any, Any, Any]:
        """The middle of a bin, and its ends; values may have been rounded by half a step."""
        if found is None:
            return (None, -math.inf, math.inf) if self.ruler.kind.number else (None, None, None)
        low, high = found
        half = self.ruler.slack / self.ruler.size / 2
        middle, start, end = map(self.ruler.value, (Fraction(low + high, 2), low - half, high + half))
        if self.ruler.kind.number:  # what lies further out was put at the end
            start, end = -math.inf if low <= -MOST else start, math.inf if high >= MOST else end
        return middle, start, end


def _steps(width: Fraction, ruler: Ruler) -> int:
    """The width of a bin in steps, rounded up."""
    steps = math.ceil(width / ruler.size)
    if not _LEAST <= steps <= MOST:
        raise InputError("width must be at least two steps of the grid, and at most 2^59: choose another one.")
    return steps


examples = [Centre("age", width=5), Centre("age"), Centre("cost", of="SELECT * FROM visits WHERE age < 30", grid="1/2")]
