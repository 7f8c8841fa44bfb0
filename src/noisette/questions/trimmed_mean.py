"""The mean of a column without its least and largest values: where outliers and loose bounds would drown a mean.

It gets noise of its smooth sensitivity. How many values there are is private, and how many are left out is public; of
records that come and go `records` says how many one unit can change.
[Nissim-Raskhodnikova-Smith 2007; Bun-Steinke 2019 for trimmed means]
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.mechanisms.smooth.trimmed import TrimmedAverage as Trimmed
from noisette.privacy import Neighbours, Promise
from noisette.query.expected import Expected
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.noisy_number import USUAL, NoisyNumber, bar_of, bell, smooth, without_bar
from noisette.questions.parts.offers import text_of
from noisette.questions.parts.records import changed, prepared_records, read_records
from noisette.questions.parts.rows import Rows
from noisette.questions.parts.ruler import Ruler

__all__ = ["TrimmedMean"]

_STEPS = 2**30  # from one bound to the other: then a sum of 2^29 values stays below 2^60
_WHY = "Noise as wide as one row could move this table's trimmed mean, or that of tables near it."


@dataclass(frozen=True)
class TrimmedMean(JsonQuestion):
    """The mean of a column (or of an expression) without its `trim` least and its `trim` largest values.

    The column needs bounds, which may be loose. If no value is left over, the lower bound stands for the mean.

    >>> TrimmedMean("income", trim=50)
    TrimmedMean(column='income', trim=50, of=None)
    """

    column: str
    trim: int
    of: Rows = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Noise for the records that one unit can change."""
        trim, prepared = whole(self.trim, "trim", least=0), prepared_records(self.column, self.of, schema)
        if not prepared.keys[0].number:
            raise InputError("A trimmed mean needs numbers: ask for the Centre, or an OrderStatistic, of dates.")
        ruler = Ruler.of(prepared.keys[0], most=_STEPS)
        low, high = ruler.bounds
        statistic = Trimmed(0, high - low, trim=trim, parts=max(1, _STEPS // (high - low)))
        moved, promise = changed(prepared, neighbours), spend.share(1)
        mechanism = smooth(without_bar(promise), moved, statistic, bell(0, high - low, USUAL))
        step = ruler.grid / statistic.parts
        worst, ends = float(step) * mechanism.interval(level), (float(low * ruler.grid), float(high * ruler.grid))
        shown = "trimmed_mean", step, worst, ends, bar_of(promise, moved, mechanism)
        number = NoisyNumber(prepared, mechanism, moved, level, *shown, Means(ruler))
        return number.offer(
            neighbours, text=text_of("trimmed mean", prepared, grid=ruler.grid, trim=statistic.trim), why=_WHY
        )


@dataclass(frozen=True)
class Means:
    """Trimmed means in steps above the lower bound."""

    ruler: Ruler

    def records(self, prepared: Prepared, source: Source, schema: Schema, secret: bytes) -> Any:
        """The values in steps above the lower bound."""
        low, high = self.ruler.bounds
        return np.clip(read_records(prepared, self.ruler, source, schema, secret), low, high) - low

    def shown(self, drawn: Any, step: Fraction) -> pyarrow.Array:
        """The mean."""
        low, _ = self.ruler.bounds
        return pyarrow.array([float(low * self.ruler.grid + drawn * step)])

    def expected(self, number: NoisyNumber, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error on the worst table, and on a usual one."""
        low, high = self.ruler.bounds
        return number.expects_of_rows(
            sizes,
            lambda rows: number.mechanism.half_width(bell(0, high - low, rows), number.level) * float(number.step),
        )


examples = [TrimmedMean("age", trim=100), TrimmedMean("cost", 50, of="SELECT * FROM visits WHERE ward = 'emergency'")]
