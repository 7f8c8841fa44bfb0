"""A quantile of a column by smooth or by inverse sensitivity.

SQL's MEDIAN and QUANTILE choose by ranks among a few thousand cells and draw error bars as well: start there. Here are
the two other mechanisms, for values on a fine grid (`by="inverse"`: all of the promise for one number) and for
comparison (`by="smooth"`). Both count records that come and go, of which `records` says how many one unit can change.
[Asi-Duchi 2020; Nissim-Raskhodnikova-Smith 2007]
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from noisette.engines.contract import Source
from noisette.exact.number import Number
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.order import Order
from noisette.privacy import Neighbours, Promise
from noisette.query.expected import SIZES, Expected
from noisette.query.frame import Frame
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.noised import USUAL, By, Noised, Noisy, bar_of, bell, but_for_the_bar, checked, smooth
from noisette.questions.records import changed, prepared_records, read_records
from noisette.questions.ruler import MOST, Ruler

__all__ = ["OrderStatistic"]

_FURTHEST = 2**20


@dataclass(frozen=True)
class OrderStatistic:
    """The value at rank q n of a column (or of an expression) with bounds; 1/2 is the median, 1 the maximum.

    >>> OrderStatistic("income", "9/10")
    OrderStatistic(column='income', q='9/10', by='inverse', of=None)
    """

    column: str
    q: Number = "1/2"
    by: By = "inverse"
    of: Frame | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> "OrderStatisticOffer":
        """Noise, or a choice, for the records that one unit can change."""
        by, prepared = checked(self.by), prepared_records(self.column, self.of, schema)
        ruler, reach = Ruler.of(prepared.keys[0], most=MOST), changed(prepared, neighbours)
        statistic, promise = Near(self.q, *ruler.bounds), spend.share(1)
        low, high = (float(end * ruler.grid) for end in ruler.bounds)
        ends = (low, high) if ruler.kind.number else None
        mechanism: Noisy
        if by == "smooth":
            most = promise if ends is None else but_for_the_bar(promise)
            mechanism = smooth(most, reach, statistic, bell(*ruler.bounds, USUAL))
        else:
            mechanism = InverseSensitivity.calibrated(promise, reach, statistic=statistic)
        worst = float(ruler.size) * mechanism.interval(level) if by == "smooth" else None
        bar = None if ends is None else bar_of(promise, reach, mechanism)
        told = "value", ruler.size, worst, ends, bar
        return OrderStatisticOffer(prepared, mechanism, reach, level, neighbours, *told, ruler)


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
class OrderStatisticOffer(Noised):
    """A value of the column's grid."""

    ruler: Ruler

    @property
    def _statistic(self) -> Order:
        assert isinstance(self.mechanism.statistic, Order)
        return self.mechanism.statistic

    @property
    def text(self) -> str:
        """What is measured, and how."""
        return self.said("order statistic", grid=self.ruler.grid, q=self._statistic.q, by=self.by)

    @property
    def why(self) -> str:
        """Why this mechanism."""
        if self.by == "smooth":
            return "Noise as wide as one row could move this table's quantile, or that of tables near it."
        return "A value is the likelier, the fewer rows would have to change for it to be the quantile."

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """By how many rows it is off, or by how much on the worst table and on a usual one."""
        step, bounds = float(self.ruler.size), self.ruler.bounds
        return self.expects_of_rows(
            sizes, lambda rows: self.mechanism.half_width(bell(*bounds, rows), self.level) * step
        )

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Read the values and draw."""
        records = read_records(self.prepared, self.ruler, source, schema, secret)
        steps, kind = self.mechanism(records, rng), self.ruler.kind.type
        found = int(steps * self.ruler.grid) if kind == "integer" else self.ruler.value(steps)
        return self.drawn(pyarrow.array([found], ARROW[kind]), records, rng)
