"""A quantile of a column by smooth or by inverse sensitivity.

SQL's MEDIAN and QUANTILE choose by ranks among a few thousand cells and draw error bars as well: start there. Here are
the two other mechanisms, for values on a fine grid (`by="inverse"`: all of the promise for one number) and for
comparison (`by="smooth"`). Both count records that come and go, of which `records` says how many one unit can change.
[Asi-Duchi 2020; Nissim-Raskhodnikova-Smith 2007]
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.engines.contract import Source
from noisette.exact.number import Number
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.order import Order
from noisette.privacy import Neighbours, Promise
from noisette.query.expected import Expected
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.noisy_number import USUAL, By, Noisy, NoisyNumber, bar_of, bell, smooth, without_bar
from noisette.questions.parts.offers import text_of
from noisette.questions.parts.records import changed, prepared_records, read_records
from noisette.questions.parts.rows import Rows
from noisette.questions.parts.ruler import MOST, Ruler

__all__ = ["OrderStatistic"]

_FURTHEST = 2**20
_WHY = {
    "smooth": "Noise as wide as one row could move this table's quantile, or that of tables near it.",
    "inverse": "The fewer rows would have to change for a value to be the quantile, the likelier it is.",
}


@dataclass(frozen=True)
class OrderStatistic(JsonQuestion):
    """The value at rank q n of a column (or of an expression) with bounds; 1/2 is the median, 1 the maximum.

    >>> OrderStatistic("income", "9/10")
    OrderStatistic(column='income', q=Fraction(9, 10), by='inverse', of=None)
    """

    column: str
    q: Number = Fraction(1, 2)
    by: By = "inverse"
    of: Rows = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Noise, or a choice, for the records that one unit can change."""
        prepared = prepared_records(self.column, self.of, schema)
        ruler, moved = Ruler.of(prepared.keys[0], most=MOST), changed(prepared, neighbours)
        statistic, promise = Near(self.q, *ruler.bounds), spend.share(1)
        low, high = (float(end * ruler.grid) for end in ruler.bounds)
        ends = (low, high) if ruler.kind.number else None
        mechanism: Noisy
        if self.by == "smooth":
            most = promise if ends is None else without_bar(promise)
            mechanism = smooth(most, moved, statistic, bell(*ruler.bounds, USUAL))
        else:
            mechanism = InverseSensitivity.calibrated(promise, moved, statistic=statistic)
        worst = float(ruler.size) * mechanism.interval(level) if self.by == "smooth" else None
        bar = None if ends is None else bar_of(promise, moved, mechanism)
        shown = "value", ruler.size, worst, ends, bar
        number = NoisyNumber(prepared, mechanism, moved, level, *shown, Values(ruler))
        text = text_of("order statistic", prepared, grid=ruler.grid, q=statistic.q, by=number.by)
        return number.offer(neighbours, text=text, why=_WHY[self.by])


class Near(Order):
    """An order statistic whose distances stop at 2^20 changes, however many records there are.

    A distance moves by at most 1 between neighbours, and so does the smaller one of it and a constant.
    """

    def reaches(self, table: Any) -> Any:
        """How far changes bring it, the last of them to the bounds."""
        value = self.value(table)
        rooms = value - self.low, self.high - value
        return tuple(_stopped(reach, room) for reach, room in zip(super().reaches(table), rooms, strict=True))


def _stopped(reach: Any, room: int) -> Any:
    return reach if len(reach) <= _FURTHEST else np.append(reach[: _FURTHEST - 1], room)


@dataclass(frozen=True)
class Values:
    """Values of the column's grid."""

    ruler: Ruler

    def records(self, prepared: Prepared, source: Source, schema: Schema, secret: bytes) -> Any:
        """The values in steps."""
        return read_records(prepared, self.ruler, source, schema, secret)

    def shown(self, drawn: Any, step: Fraction) -> pyarrow.Array:
        """The value, as the column has it."""
        kind = self.ruler.kind.type
        found = int(drawn * self.ruler.grid) if kind == "integer" else self.ruler.value(drawn)
        return pyarrow.array([found], ARROW[kind])

    def expected(self, number: NoisyNumber, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """By how many rows it is off, or by how much on the worst table and on a usual one."""
        step, bounds = float(self.ruler.size), self.ruler.bounds
        return number.expects_of_rows(
            sizes, lambda rows: number.mechanism.half_width(bell(*bounds, rows), number.level) * step
        )


examples = [OrderStatistic("age"), OrderStatistic("age", "9/10", by="smooth"), OrderStatistic("FLOOR(cost / 100)", 1)]
