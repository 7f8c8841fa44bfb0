"""How widely the values of a column are spread, without bounds: the interquartile range to within a bin, or nothing.

`StableScale` counts how many records must come or go until the interquartile range leaves its bin; `records` says how
many of them one unit can change. Both bins are told exactly, or not at all.   [Dwork-Lei 2009]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow

from noisette.engines.contract import Source
from noisette.exact.number import Number
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.stability.stable_scale import StableScale
from noisette.privacy import Neighbours, Promise
from noisette.query.caveats import Omission
from noisette.query.expected import SIZES, Expected
from noisette.query.frame import Frame
from noisette.query.schema import Schema
from noisette.questions.records import OfRecords, changed, prepared_records, read_records
from noisette.questions.ruler import Ruler
from noisette.questions.stable_bins import BIN, NOTHING, TOLD, spread_told, stable_expected, told_bin

__all__ = ["Spread"]


@dataclass(frozen=True)
class Spread:
    """The interquartile range of a column (or of an expression), to within a factor of `base`; it needs a delta.

    No bounds are needed. If few rows could change it the answer is NULL, which is an answer and is paid for. Numbers
    without a grid in the policy are rounded to `grid`. It is told in days of dates, and in seconds of timestamps.

    >>> Spread("income")
    Spread(column='income', of=None, base=2, grid=None)
    """

    column: str
    of: Frame | None = None
    base: Number = 2
    grid: Number | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> "SpreadOffer":
        """Test how stable the bins of the scale are."""
        prepared = prepared_records(self.column, self.of, schema)
        reach, ruler = changed(prepared, neighbours), Ruler.of(prepared.keys[0], self.grid)
        mechanism = StableScale.calibrated(spend.share(1), int(reach.l1), base=self.base)
        return SpreadOffer(prepared, mechanism, reach, level, neighbours, ruler)


@dataclass(frozen=True)
class SpreadOffer(OfRecords):
    """A bin of the interquartile range, or nothing."""

    mechanism: StableScale
    ruler: Ruler

    @property
    def text(self) -> str:
        """What is measured."""
        return self.said("spread", grid=self.ruler.grid, base=self.mechanism.base)

    @property
    def covers(self) -> str:
        """The bar is a bin."""
        return BIN

    @property
    def omitted(self) -> Sequence[Omission]:
        """Values that are too far away for the grid."""
        return self.ruler.omitted

    @property
    def why(self) -> str:
        """Why bins."""
        return "Nobody need know bounds: the spread is told to within a bin, where few rows could not have changed it."

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """How many changes it may take to leave the bin without its being told."""
        return [(stable_expected("spread", self, self.mechanism),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Read the values and test."""
        found = told_bin(self.mechanism, read_records(self.prepared, self.ruler, source, schema, secret), rng)
        return pyarrow.table({**spread_told(found, self.ruler), "note": [NOTHING if found is None else TOLD]})
