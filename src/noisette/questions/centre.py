"""Where the values of a column lie, without bounds: the median to within a bin, or nothing.

With a known `width` of bins that is one `StableLocation`. Without one, half of the promise goes to the spread
(`StableScale`), and what is told of that is the width: the second mechanism is chosen by what the first one told, and
its promise is the same for every width, so the costs add up. If the spread is not told, nor is the centre.
[Dwork-Lei 2009]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import Number, positive
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.stability.stability import Bin
from noisette.mechanisms.stability.stable_location import StableLocation
from noisette.mechanisms.stability.stable_scale import StableScale
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.caveats import Omission
from noisette.query.expected import SIZES, Expected
from noisette.query.frame import Frame
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.records import OfRecords, changed, prepared_records, read_records
from noisette.questions.records import recorded_for_records as recorded
from noisette.questions.ruler import MOST, Ruler
from noisette.questions.stable_bins import BIN, NOTHING, TOLD, spread_told, stable_expected, told_bin

__all__ = ["Centre"]

_HALF = Fraction(1, 2)
_LEAST = 2  # steps of a bin


@dataclass(frozen=True)
class Centre:
    """The median of a column (or of an expression), to within a bin of that `width`; it needs a delta.

    No bounds are needed, and no width either: then the spread is told as well, and is the width. If few rows could
    change it the answer is NULL, which is an answer and is paid for. `width` is in units of the column, days for dates
    and seconds for timestamps. Numbers without a grid in the policy are rounded to `grid`.

    >>> Centre("income", width=1000)
    Centre(column='income', of=None, width=1000, grid=None)
    """

    column: str
    of: Frame | None = None
    width: Number | None = None
    grid: Number | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> "CentreOffer":
        """Test how stable the bins of the median are."""
        prepared = prepared_records(self.column, self.of, schema)
        reach, ruler = changed(prepared, neighbours), Ruler.of(prepared.keys[0], self.grid)
        known = self.width is not None
        steps = _LEAST if self.width is None else _steps(positive(self.width, "width"), ruler)
        share = spend.share(Fraction(1) if known else _HALF)
        place = StableLocation.calibrated(share, int(reach.l1), width=steps)
        scale = None if known else StableScale.calibrated(share, int(reach.l1))
        return CentreOffer(prepared, place, reach, level, neighbours, ruler, scale)


@dataclass(frozen=True)
class CentreOffer(OfRecords):
    """A bin of the median, or nothing; with a `scale` the width of the bin is what that tells."""

    mechanism: StableLocation
    ruler: Ruler
    scale: StableScale | None

    @property
    def text(self) -> str:
        """What is measured."""
        return self.said("centre", grid=self.ruler.grid, width="spread" if self.scale else self.mechanism.width)

    @property
    def guarantee(self) -> Guarantee:
        """What both promise together."""
        place = self.mechanism.guarantee(self.reach)
        both = place if self.scale is None else self.scale.guarantee(self.reach) + place
        return both.restated(self.neighbours)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms with what they are applied to."""
        place = recorded(self.mechanism, self.reach)
        if self.scale is None:
            return [place]
        return [recorded(self.scale, self.reach), {**place, "note": "the width is the spread that is told, at least 2"}]

    @property
    def covers(self) -> str:
        """The bar is a bin; the ends of a bin of dates are columns of their own."""
        return BIN if self.ruler.kind.number or self.scale is not None else ""

    @property
    def omitted(self) -> Sequence[Omission]:
        """Values that are too far away for the grid."""
        return self.ruler.omitted

    @property
    def why(self) -> str:
        """Why bins."""
        return "Nobody need know bounds: the median is told to within a bin, where few rows could not have changed it."

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """How many changes it may take to leave the bin without its being told."""
        scale = [] if self.scale is None else [stable_expected("spread", self, self.scale)]
        return [(stable_expected("centre", self, self.mechanism), *scale)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Read the values and test, with bins as wide as the spread if there is no other width."""
        steps = read_records(self.prepared, self.ruler, source, schema, secret)
        if self.scale is None:
            return self._told(told_bin(self.mechanism, steps, rng), {})
        spread = told_bin(self.scale, steps, rng)
        found = None if spread is None else told_bin(self._as_wide_as(spread), steps, rng)
        return self._told(found, spread_told(spread, self.ruler))

    def _as_wide_as(self, spread: Bin) -> StableLocation:
        m = self.mechanism
        return StableLocation(m.epsilon, m.delta, width=max(_LEAST, spread[1]), neighbours=m.neighbours)

    def _told(self, found: Bin | None, others: dict[str, pyarrow.Array]) -> pyarrow.Table:
        middle, low, high = self._ends(found)
        numbers = self.ruler.kind.number
        names = ("centre", "centre_low", "centre_high") if numbers else ("centre", "earliest", "latest")
        type = pyarrow.float64() if numbers else ARROW[self.ruler.kind.type]
        ends = {n: pyarrow.array([e], type) for n, e in zip(names, (middle, low, high), strict=True)}
        return pyarrow.table({**ends, **others, "note": [NOTHING if found is None else TOLD]})

    def _ends(self, found: Bin | None) -> tuple[Any, Any, Any]:
        """The middle of a bin, and its ends; values may have been rounded by half a step."""
        if found is None:
            return None, None, None
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
