"""The mean of a column without its least and largest values: where outliers and loose bounds would drown a mean.

It gets noise of its smooth sensitivity. How many values there are is private, and how many are left out is public; of
records that come and go `records` says how many one unit can change.
[Nissim-Raskhodnikova-Smith 2007; Bun-Steinke 2019 for trimmed means]
"""

from dataclasses import dataclass

import numpy as np
import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.smooth.trimmed import TrimmedAverage as Trimmed
from noisette.privacy import Neighbours, Promise
from noisette.query.expected import SIZES, Expected
from noisette.query.frame import Frame
from noisette.query.schema import Schema
from noisette.questions.noised import USUAL, Noised, bar_of, bell, but_for_the_bar, smooth
from noisette.questions.records import changed, prepared_records, read_records
from noisette.questions.ruler import Ruler

__all__ = ["TrimmedMean"]

_STEPS = 2**30  # from one bound to the other: then a sum of 2^29 values stays below 2^60


@dataclass(frozen=True)
class TrimmedMean:
    """The mean of a column (or of an expression) without its `trim` least and its `trim` largest values.

    The column needs bounds, which may be loose. If no value is left over, the lower bound stands for the mean.

    >>> TrimmedMean("income", trim=50)
    TrimmedMean(column='income', trim=50, of=None)
    """

    column: str
    trim: int
    of: Frame | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> "TrimmedMeanOffer":
        """Noise for the records that one unit can change."""
        trim, prepared = whole(self.trim, "trim", least=0), prepared_records(self.column, self.of, schema)
        if not prepared.keys[0].number:
            raise InputError("A trimmed mean needs numbers: ask for the Centre, or an OrderStatistic, of dates.")
        ruler = Ruler.of(prepared.keys[0], most=_STEPS)
        low, high = ruler.bounds
        statistic = Trimmed(0, high - low, trim=trim, parts=max(1, _STEPS // (high - low)))
        reach = changed(prepared, neighbours)
        mechanism = smooth(but_for_the_bar(spend.share(1)), reach, statistic, bell(0, high - low, USUAL))
        step, bar = ruler.grid / statistic.parts, bar_of(spend.share(1), reach, mechanism)
        worst, ends = float(step) * mechanism.interval(level), (float(low * ruler.grid), float(high * ruler.grid))
        told = "trimmed_mean", step, worst, ends, bar
        return TrimmedMeanOffer(prepared, mechanism, reach, level, neighbours, *told, ruler)


@dataclass(frozen=True)
class TrimmedMeanOffer(Noised):
    """A trimmed mean with noise, in steps above the lower bound."""

    ruler: Ruler

    @property
    def _statistic(self) -> Trimmed:
        assert isinstance(self.mechanism.statistic, Trimmed)
        return self.mechanism.statistic

    @property
    def text(self) -> str:
        """What is measured."""
        return self.said("trimmed mean", grid=self.ruler.grid, trim=self._statistic.trim)

    @property
    def why(self) -> str:
        """Why this noise."""
        return "Noise as wide as one row could move this table's trimmed mean, or that of tables near it."

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """The error on the worst table, and on a usual one."""
        most, step = self._statistic.high, float(self.step)
        return self.expects_of_rows(
            sizes, lambda rows: self.mechanism.half_width(bell(0, most, rows), self.level) * step
        )

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Read the values and draw."""
        low, high = self.ruler.bounds
        steps = np.clip(read_records(self.prepared, self.ruler, source, schema, secret), low, high) - low
        mean = float(low * self.ruler.grid + self.mechanism(steps, rng) * self.step)
        return self.drawn(pyarrow.array([mean]), steps, rng)
