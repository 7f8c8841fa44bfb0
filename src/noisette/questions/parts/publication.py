"""What a stream publishes: one step after the other, each of them once, with error bars."""

import datetime
from collections.abc import Iterable
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
import pyarrow

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import fraction, level_of, whole
from noisette.query.kind import Value
from noisette.query.measure import Measure
from noisette.query.schema import Schema
from noisette.questions.contract import Line, Shell
from noisette.questions.parts.so_far import Pushed
from noisette.questions.parts.steps import State
from noisette.releases.line import Interval
from noisette.releases.streams.bins import quantile_bins
from noisette.releases.streams.contract import Counter
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.windows import SlidingWindow

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["Publication", "normal"]

_BAR = ("", "_low", "_high")


class Timetable(Protocol):
    """When steps end, and by what they are grouped: `Stream`."""

    @property
    def by(self) -> str | None:
        """The column of the groups."""
        ...

    @property
    def every(self) -> str:
        """How long a step is, as it was written."""
        ...

    @property
    def steps(self) -> int:
        """How many steps there are."""
        ...

    @property
    def pushed(self) -> bool:
        """Whether rows are pushed instead of read."""
        ...

    def ends_at(self, step: int) -> tuple[datetime.datetime, datetime.datetime]:
        """When a step begins and ends."""
        ...


class Published(Protocol):
    """What is published: the offer of a `Stream`."""

    @property
    def asked(self) -> Timetable:
        """The question."""
        ...

    @property
    def counter(self) -> Counter | SlidingWindow | OpeningCounter:
        """How sums are released."""
        ...

    @property
    def keys(self) -> tuple[Value, ...] | None:
        """The groups."""
        ...

    @property
    def level(self) -> float:
        """How often error bars hold."""
        ...

    @property
    def column(self) -> str:
        """What the numbers are called."""
        ...

    @property
    def measure(self) -> Measure:
        """What is added up, and in which steps."""
        ...

    def exactly(self, schema: Schema, step: int) -> Any:
        """The rows so far after a step."""
        ...


def _now() -> datetime.datetime:
    """The time in UTC; analysts cannot set it."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


class Publication:
    """What is published: one step after the other, each of them once; `curator.stream` makes one.

    >>> from noisette.curator.demo import hospital
    >>> from noisette.questions import Stream
    >>> week = Stream("day", since="2024-01-01", until="2024-01-08", events=3)
    >>> published = hospital().stream(week, spend=1)
    >>> published.step().column_names, published
    (['until', 'n', 'n_low', 'n_high'], <stream by 1 day: 1 of 7 steps released>)
    """

    def __init__(self, offer: Published, line: Line[State], shell: Shell) -> None:
        self._offer, self._line, self._shell = offer, line, shell

    @property
    def steps(self) -> int:
        """How many steps are released."""
        return len(self._line.last.released)

    @property
    def left(self) -> int:
        """How many steps may still come."""
        return self._offer.asked.steps - self.steps

    def over(self) -> bool:
        """Whether the next step is over, by the clock, and can be released."""
        return self._offer.asked.ends_at(self._line.last.asked + 1)[1] <= _now()

    def step(self) -> pyarrow.Table:
        """Release the next step: its end must be over. To release a step that is released is free."""
        number = self._next()
        if self._offer.asked.pushed:
            raise InputError("The rows of this stream are pushed: call push with those of the next step.")
        schema = self._shell.schema
        exactly = self._offer.exactly(schema, number)
        self._line.ask(lambda: self._shell.draw(exactly, schema), number - 1)
        return self._table(number - 1)

    def push(self, rows: Any) -> pyarrow.Table:
        """Release the next step with the rows that came in it, an Arrow table; they are forgotten then."""
        number = self._next()
        if not self._offer.asked.pushed:
            raise InputError("This stream reads its table: call step, or begin one with pushed=True.")
        schema = self._shell.schema
        batch = Pushed(rows, self._offer.exactly(schema, number))
        opened = self._shell.draw(batch, schema)  # other columns are refused before the step
        if self._line.ask(lambda: self._shell.draw(opened, schema), number - 1)[0] is None:
            raise InputError("Somebody else pushed this step at the same time: push these rows with the next one.")
        return self._table(number - 1)

    def _next(self) -> int:
        """The number of the next step, which must be over."""
        number = self._line.last.asked + 1
        if number <= self._offer.asked.steps and not self.over():
            end = self._offer.asked.ends_at(number)[1]
            raise InputError(f"Step {number:,} ends at {end:%Y-%m-%d %H:%M} UTC: release it after that.")
        return number

    # What was released

    def to_arrow(self) -> pyarrow.Table:
        """All steps so far: when each one ended, its groups, their sums with error bars."""
        return self._table(0)

    def _table(self, first: int) -> pyarrow.Table:
        """The steps from number `first` on, counted from 0."""
        asked, keys, released = self._offer.asked, self._keys, self._line.last.released
        rows = [(step, key, n) for step in range(first, len(released)) for key, n in _named(keys, released[step])]
        steps, n = np.array([step for step, _, _ in rows], np.int64), np.array([n for _, _, n in rows], float)
        half = self._wide() * self._offer.counter.deviations(steps + 1) if rows else n
        ends = pyarrow.array([asked.ends_at(step + 1)[1] for step, _, _ in rows], pyarrow.timestamp("us"))
        named = {} if asked.by is None else {asked.by: [key for _, key, _ in rows]}
        bars = {self._offer.column + end: n + side * half for end, side in zip(_BAR, (0, -1, 1), strict=True)}
        return pyarrow.table({"until": ends, **named, **bars})

    @property
    def _keys(self) -> tuple[Value, ...]:
        """The groups, in the order of the numbers of each step; those that opened, where none are declared."""
        if self._offer.asked.by is None:
            return (None,)
        return tuple(self._line.last.opened) if self._offer.keys is None else self._offer.keys

    def difference(self, first: int, last: int, key: Any = None, *, level: float | None = None) -> Interval:
        """How much larger the sum was after step `last` than after step `first`: their noise mostly cancels out."""
        released, keys = self._line.last.released, self._keys
        if not 1 <= whole(first, "first") < whole(last, "last") <= len(released):
            raise InputError(f"Steps go from an earlier one to a later one, between 1 and {len(released):,}.")
        if key not in keys or keys.index(key) >= len(released[first - 1]):
            raise InputError("Name a key that both steps have where the stream has groups, and none where it has not.")
        if isinstance(self._offer.counter, SlidingWindow):
            raise InputError("Windows have no difference with an error bar: begin a stream without window.")
        place = keys.index(key)
        value = released[last - 1][place] - released[first - 1][place]
        half = self._wide(level) * float(self._offer.counter.between([first], [last])[0])
        return Interval(value, value - half, value + half)

    def top(self, k: int, step: int | None = None, *, level: float | None = None) -> pyarrow.Table:
        """The k keys with the largest sums after a step, by default the last; error bars hold for all keys at once."""
        at, keys, numbers = self._at(step)
        if self._offer.asked.by is None:
            raise InputError("Only streams with groups have a largest one: begin one with by=.")
        share = (1 - (self._offer.level if level is None else float(level_of(level)))) / max(1, len(keys))
        half = self._wide(1 - share) * float(self._offer.counter.deviations([at])[0])
        best = sorted(zip(numbers, keys, strict=True), key=lambda pair: -pair[0])[: whole(k, "k")]
        n = np.array([number for number, _ in best], float)
        bars = {self._offer.column + end: n + side * half for end, side in zip(_BAR, (0, -1, 1), strict=True)}
        return pyarrow.table({self._offer.asked.by: [key for _, key in best], **bars})

    def quantile(self, q: float, step: int | None = None, *, level: float | None = None) -> Interval:
        """A quantile of the number that the stream is grouped by, after a step, as the value of its group.

        Group by coarse values, such as FLOOR(age / 10) * 10: the error grows with the number of groups.
        """
        at, keys, numbers = self._at(step)
        bins = sorted((key, n) for key, n in zip(keys, numbers, strict=True) if isinstance(key, int | Fraction))
        named = self._offer.keys is not None and self._offer.column == "n" and len(bins) >= len(keys) - 1
        if not named or isinstance(keys[0], bool):
            raise InputError('Quantiles need rows that are counted by a number with bounds: by="FLOOR(age / 10) * 10".')
        if not 0 <= float(fraction(q, "q")) <= 1:
            raise InputError("q must be between 0 and 1: 0.5 is the median.")
        deviation = float(self._offer.counter.deviations([at])[0])
        sure = self._offer.level if level is None else float(level_of(level))
        found = quantile_bins([n for _, n in bins], deviation, float(q), sure)
        return Interval(*(float(bins[place][0]) for place in found))

    def _at(self, step: int | None) -> tuple[int, tuple[Value, ...], list[float]]:
        """A step that is released, its keys and their numbers."""
        released = self._line.last.released
        at = len(released) if step is None else whole(step, "step")
        if not 1 <= at <= len(released):
            raise InputError(f"Name a step that is released: there are {len(released):,} so far.")
        return at, self._keys[: len(released[at - 1])], released[at - 1]

    def chart(self, *, note: str = "") -> "Chart":
        """The sums over time with their error bars."""
        from noisette.charts.answers import answer

        found = self.to_arrow().to_pydict()
        names = ["until", *([self._offer.asked.by] if self._offer.asked.by else [])]
        n = self._offer.column
        return answer({name: found[name] for name in names}, {n: tuple(found[n + end] for end in _BAR)}, note=note)

    def _wide(self, level: float | None = None) -> float:
        """How wide an error bar is for a deviation of one step of the grid."""
        return normal(self._offer.level if level is None else float(level_of(level))) * float(self._offer.measure.grid)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A stream cannot be copied: begin it again where it is needed, which is free with a ledger.")

    def __repr__(self) -> str:
        return f"<stream by {self._offer.asked.every}: {self.steps:,} of {self._offer.asked.steps:,} steps released>"


def _named(keys: tuple[Value, ...], numbers: list[float]) -> Iterable[tuple[Value, float]]:
    """The numbers of a step with their keys; later keys opened after it."""
    return zip(keys, numbers, strict=False)


def normal(level: float) -> float:
    """How many deviations a normal number stays within, at a level."""
    return NormalDist().inv_cdf((1 + level) / 2)
