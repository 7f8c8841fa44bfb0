"""How widely the values of a column are spread, without bounds: the interquartile range to within a bin, or nothing.

`StableScale` counts how many records must come or go until the interquartile range leaves its bin; `records` says how
many of them one unit can change. Both bins are released exactly, or not at all.   [Dwork-Lei 2009]
"""

from dataclasses import dataclass

import pyarrow

from noisette.engines.contract import Source
from noisette.exact.number import Number
from noisette.exact.random import Random
from noisette.mechanisms.stability.stable_scale import StableScale
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.expected import Expected
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import text_of
from noisette.questions.parts.records import about_records, changed, prepared_records, read_records
from noisette.questions.parts.rows import Rows
from noisette.questions.parts.ruler import Ruler
from noisette.questions.parts.stable_bins import BIN, NOTHING, STABLE, bin_of, spread_columns, stable_expected

__all__ = ["Spread"]


@dataclass(frozen=True)
class Spread(JsonQuestion):
    """The interquartile range of a column (or of an expression), to within a factor of `base`; it needs a delta.

    No bounds are needed. If few rows could change it the answer is NULL, which is an answer and is paid for. Numbers
    without a grid in the policy are rounded to `grid`. The spread of dates is in days, that of timestamps in seconds.

    >>> Spread("income")
    Spread(column='income', of=None, base=2, grid=None)
    """

    column: str
    of: Rows = None
    base: Number = 2
    grid: Number | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Test how stable the bins of the scale are."""
        prepared = prepared_records(self.column, self.of, schema)
        moved, ruler = changed(prepared, neighbours), Ruler.of(prepared.keys[0], self.grid)
        mechanism = StableScale.calibrated(spend.share(1), int(moved.l1), base=self.base)
        return about_records(
            prepared,
            Scale(prepared, mechanism, moved, level, ruler),
            neighbours,
            [(mechanism, moved)],
            text=text_of("spread", prepared, grid=ruler.grid, base=mechanism.base),
            why="No bounds are needed: the spread is released to within a bin, if few rows could not have changed it.",
            covers=BIN,
            omitted=ruler.omitted,
        )


@dataclass(frozen=True)
class Scale(Procedure):
    """A bin of the interquartile range, or nothing."""

    prepared: Prepared
    mechanism: StableScale
    sensitivity: Sensitivity
    level: float
    ruler: Ruler

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """How many changes it may take to leave a bin that is not released."""
        return [(stable_expected("spread", self.mechanism, self.sensitivity, self.level),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Read the values and test."""
        found = bin_of(self.mechanism, read_records(self.prepared, self.ruler, source, schema, secret), rng)
        return pyarrow.table({**spread_columns(found, self.ruler), "note": [NOTHING if found is None else STABLE]})


examples = [Spread("age"), Spread("cost", of="SELECT * FROM visits WHERE ward = 'emergency'", base="3/2", grid=1)]
