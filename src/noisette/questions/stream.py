"""A count that is published again after every step: the rows so far, or of the last few steps, charged once for all.

    curator.stream(Stream("day", since="2026-01-01", until="2027-01-01", by="ward"), spend=…).step()

What is counted after step t are the rows with a time from `since` to the end of the step, as the table is then; of each
unit at most `events` in each group. What came in the step is by how much that number exceeds the largest one so far.
So rows that arrive late count in the step in which they are first seen, a step without rows is a zero like any other,
and rows that are altered or deleted later never make a step fail.

**What one unit can do.** Its rows raise the count of a group by at most `events` at any time, and, where rows are only
added, the largest count so far by the same number in the end, one event after the other and never back: with and
without the unit, the largest counts differ by a number that only grows (docs/proofs/streams.md). So it has at most
`events` events in each group. That rests on rows that stay: relations from which a row may vanish because another one
came are refused. Who has a row deleted and entered anew has one more event.
"""

import datetime
import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.canonical import canonical_text
from noisette.query.caveats import NOISE, Omission, sentences
from noisette.query.design import recorded
from noisette.query.expected import SIZES, Expected
from noisette.query.frame import Frame
from noisette.query.kind import Kind, Value
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.reads import tables_of
from noisette.query.schema import Schema
from noisette.query.shape import ROW
from noisette.questions.contract import Line, Shell
from noisette.questions.data import LARGEST_WHOLE, JsonQuestion
from noisette.questions.parts.offers import declared
from noisette.questions.parts.publication import Publication, normal
from noisette.questions.parts.rows import Rows, rows_of
from noisette.questions.parts.so_far import (
    RowsSoFar,
    left_out,
    participation,
    prepared,
    signed,
    time_kind,
    under_way,
    written,
)
from noisette.questions.parts.steps import OpeningSteps, State, Steps
from noisette.releases.linear import variance_of
from noisette.releases.streams.binary_tree import binary_tree, levels
from noisette.releases.streams.buffered import BufferedCounter
from noisette.releases.streams.contract import Counter
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.participation import Participation
from noisette.releases.streams.tree_counter import TreeCounter
from noisette.releases.streams.windows import SlidingWindow

__all__ = ["Publication", "Stream"]

_LENGTHS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_EVERY = re.compile(r"([0-9]{1,6}) (minute|hour|day|week)s?")
_MOST_STEPS = 1 << 20
_MOST_KEYS = 1 << 16


@dataclass(frozen=True)
class Stream(JsonQuestion):
    """How many rows there are so far (or in the last `window` steps), by the keys of a column, after every step.

    `time` is the column that says when a row came: a date or a timestamp. Each unit has at most `events` rows in each
    group, over all steps; where each row is a unit by itself, that is one. With `sum`, a column or an expression with
    bounds, its values are added up: those of one unit in one group count up to `events` times the largest. With `ends`,
    a column that says when a row is over, rows count while they are under way: who is there now. With `half_life`, what
    came that many steps ago counts half. With `pushed`, the rows of each step are pushed and forgotten. Streams that
    differ only in their `name` are two streams.

    >>> Stream("day", since="2026-01-01", until="2026-01-08").steps
    7
    """

    time: str
    since: str
    until: str
    every: str = "1 day"
    by: str | None = None
    of: Rows = None
    events: int | None = None
    window: int | None = None
    name: str | None = None
    sum: str | None = None
    ends: str | None = None
    half_life: int | None = None
    pushed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ends is not None and (self.sum, self.window, self.half_life) != (None, None, None):
            raise InputError("Rows under way have no sum, window or half-life: leave those out, or ends.")
        if self.window is not None and self.half_life is not None:
            raise InputError("A window ends at once and a half-life fades: leave one of them out.")
        if self.steps < 1:
            raise InputError("until must come after since: a stream has at least one step.")
        if self.steps > _MOST_STEPS:
            raise InputError(
                f"A stream has at most {_MOST_STEPS:,} steps: make each one longer, such as every='1 day'."
            )
        try:
            self.ends_at(self.steps)
        except OverflowError:
            raise InputError("A stream ends before the year 10000: make its steps shorter.") from None
        for number, what in ((self.events, "events"), (self.window, "window"), (self.half_life, "half_life")):
            if number is not None:
                whole(number, what, most=LARGEST_WHOLE)

    @property
    def length(self) -> datetime.timedelta:
        """How long a step is."""
        found = _EVERY.fullmatch(self.every)
        if not found or not int(found[1]):
            raise InputError(
                'every must be a number of minutes, hours, days or weeks, such as "1 day", and below a million of them.'
            )
        return datetime.timedelta(seconds=int(found[1]) * _LENGTHS[found[2]])

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return -(-(_moment(self.until, "until") - _moment(self.since, "since")) // self.length)

    def ends_at(self, step: int) -> tuple[datetime.datetime, datetime.datetime]:
        """When a step begins and ends; steps are counted from 1."""
        start = _moment(self.since, "since") + (step - 1) * self.length
        return start, start + self.length

    def stream(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float = 0.95) -> "Publishing":
        """What such a stream would be for a promise."""
        first = self.prepared(schema, 1)
        if self.pushed:
            _pushable(self, first, schema)
        single = first.shape.unit == ROW
        keys = first.keys[0].values() if self.by is not None else None
        many = 1 if keys is None else len(keys)
        if self.by is not None and (many > _MOST_KEYS or (keys is None and not self._opens(first))):
            raise InputError(f"{self.by} needs declared keys, at most {_MOST_KEYS:,}: declare them in the policy.")
        who = participation(first, 1 if single else many)
        opens = self.by is not None and keys is None
        return Publishing(self, _counter(self, spend, neighbours, who, 0 if opens else many), who, first, keys, level)

    def _opens(self, first: Prepared) -> bool:
        """Whether keys can open as they come: texts or whole numbers, of rows that are units by themselves."""
        return (
            first.shape.unit == ROW
            and first.keys[0].type in ("text", "integer")
            and (self.window, self.half_life) == (None, None)
        )

    def prepared(self, schema: Schema, step: int) -> Prepared:
        """The query of what there is after a step: of each unit at most `events` in each group."""
        rows, end = rows_of(self.of, self.time, schema), self.ends_at(step)[1]
        kind = self._time(rows)
        low, high = (written(moment, kind.type) for moment in (self.ends_at(1)[0], end))
        time = rows.text(self.time)
        rows = rows.where(f"{time} >= {low} AND {time} < {high}")
        values = signed(rows, self.sum) if self.sum is not None else ()
        if self.ends is not None:
            values = under_way(rows, self.ends, end)
        return prepared(rows, self.by, values, self.events)

    def _time(self, rows: Frame) -> Kind:
        kind = time_kind(rows, self.time)
        midnight = _moment(self.since, "since").time() == datetime.time()
        dates = [kind] if self.ends is None else [kind, time_kind(rows, self.ends)]
        if "date" in [one.type for one in dates] and (self.length % datetime.timedelta(days=1) or not midnight):
            raise InputError("A column of dates needs steps of whole days that begin at midnight.")
        return kind


def _pushable(asked: Stream, first: Prepared, schema: Schema) -> None:
    """Refuse what batches that are forgotten cannot hold to."""
    if first.shape.unit != ROW:
        raise InputError(
            "Pushed rows are forgotten, so that those of one person cannot be limited over all steps: each row must be "
            "a unit by itself, or be read from a table."
        )
    if asked.ends is not None or len(tables_of(first.request.source, schema)) > 1:
        raise InputError("Pushed rows are of one table and count once: leave ends and joins out.")


def _counter(
    asked: Stream, spend: Promise, neighbours: Neighbours, who: Participation, many: int
) -> Counter | SlidingWindow | OpeningCounter:
    """The counter that a promise allows: a tree where it is pure, else buffers; without declared keys they open."""
    if not many:
        return OpeningCounter.calibrated(spend, horizon=asked.steps, who=who, neighbours=neighbours)
    horizon = asked.steps if asked.window is None else min(asked.window, asked.steps)
    made: Counter
    if asked.half_life is not None and spend.is_pure:
        raise InputError('Sums that fade need Gaussian noise: spend such as Approx(1, "1e-9"), or use a window.')
    if spend.is_pure:
        made = TreeCounter.calibrated(spend, horizon=horizon, who=who, neighbours=neighbours)
    else:
        made = BufferedCounter.calibrated(
            spend, horizon=horizon, who=who, neighbours=neighbours, many=many, half_life=asked.half_life
        )
    found = made if asked.window is None else SlidingWindow(made, -(-asked.steps // horizon))
    if not found.guarantee() <= spend.restated(neighbours):
        raise InputError("This promise is too small for a stream that long: spend more, or use fewer steps or keys.")
    return found


@dataclass(frozen=True)
class Publishing:
    """The offer: a counter for all steps, and what is counted."""

    asked: Stream
    counter: Counter | SlidingWindow | OpeningCounter
    who: Participation
    prepared: Prepared
    keys: tuple[Value, ...] | None
    level: float

    growing = True
    """The table grows from step to step, and it is the same stream."""

    @property
    def text(self) -> str:
        """All that makes it this stream and no other."""
        fields = {name: value for name, value in self.asked.to_data()["stream"].items() if name != "of"}
        asked = {"question": "stream", **fields, "asked": canonical_text(self.prepared.query)}
        return json.dumps({**asked, "declared": declared([self.prepared])}, sort_keys=True)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole stream is worth, to its last step."""
        return self.counter.guarantee()

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        return self.prepared.shape.whose

    @property
    def sensitivity(self) -> Any:
        """How far one unit moves what is measured."""
        return self.counter.parts[0][1]

    @property
    def why(self) -> str:
        """Why this noise."""
        return "Sums of one stream share most of their noise: all steps together cost little more than one of them."

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms with their sensitivity, for the record."""
        return [recorded(mechanism, self.measure, moved) for mechanism, moved in self.counter.parts]

    @property
    def measure(self) -> Measure:
        """What is added up, and in which steps."""
        return self.prepared.request.measures[0]

    @property
    def column(self) -> str:
        """What the numbers are called."""
        return "n" if self.asked.sum is None else "sum"

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What is left out before any noise."""
        found = left_out(self.prepared, rows=self.asked.sum is None)
        if isinstance(self.counter, OpeningCounter):
            least = float(self.counter.threshold * self.measure.grid)
            text = (
                f"Groups whose noisy number stays below {least:,.6g} are left out, because their keys are not declared."
            )
            found = [*found, Omission(text, "declare the keys")]
        return [sentences(found, NOISE)]

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """The largest error of all steps, beside that of fresh noise after every step."""
        steps, wide = self.asked.steps, normal(self.level) * float(self.measure.grid)
        at = np.unique(np.linspace(1, steps, min(steps, 1000)).astype(np.int64))
        largest = float(self.counter.deviations(at).max())
        note = f"the largest of all {steps:,} steps; {self._naive(wide)}"
        most = float(max(self.who.events, self.who.taken) * self.measure.grid)
        moved = f"{'rows' if self.asked.sum is None else 'the sum'}: {most:,.6g}{' in each group' if self.keys else ''}"
        return [(Expected(self.column, _NAMES[type(self._one)], moved, wide * largest, {}, None, note),)]

    def _naive(self, wide: float) -> str:
        """What the naive ways err by, for the same promise."""
        steps, pure, one = self.asked.steps, isinstance(self._one, TreeCounter), wide * self._fresh
        fresh = one * (steps if pure else math.sqrt(steps))
        said = f"with fresh noise after every step each would err by ± {fresh:,.3g}"
        if (self.asked.window, self.asked.half_life) != (None, None):
            return said
        ones = [steps, max(1, (1 << steps.bit_length() - 1) - 1)]  # one of them has the most ones among its digits
        tree = float(binary_tree(ones, steps).max()) * (math.sqrt(levels(steps)) if pure else 1)
        return f"{said}, with a binary tree by ± {one * tree:,.3g}"

    @property
    def _one(self) -> Counter:
        """The counter of one block, or of all steps."""
        return self.counter.counter if isinstance(self.counter, SlidingWindow | OpeningCounter) else self.counter

    @property
    def _fresh(self) -> float:
        """The deviation of a number that gets all of the promise by itself."""
        noise, moved = self._one.parts[0]
        deviation, most = math.sqrt(variance_of(noise)), max(self.who.events, self.who.taken)
        if isinstance(self._one, TreeCounter):
            return deviation / float(moved.l1) * most * self.who.groups
        return deviation / math.sqrt(float(moved.l2_squared)) * most * math.sqrt(self.who.groups)

    @property
    def machine(self) -> "Steps | OpeningSteps":
        """From step to step."""
        many = 1 if self.keys is None else len(self.keys)
        plain = self._one if isinstance(self.counter, OpeningCounter) else self.counter
        taken, pushed = self.who.taken > 0, self.asked.pushed
        steps = Steps(plain, self.asked.steps, many, self.measure.grid, taken, pushed)
        return OpeningSteps(self.counter, steps) if isinstance(self.counter, OpeningCounter) else steps

    def session(self, line: Line[State], shell: Shell) -> "Publication":
        """What an analyst has."""
        return Publication(self, line, shell)

    def exactly(self, schema: Schema, step: int) -> "RowsSoFar":
        """The rows so far after a step: they are never shown, only counted on."""
        return RowsSoFar(self.asked.prepared(schema, step))


_NAMES: dict[type, str] = {
    BufferedCounter: "Gaussian noise on weighted sums, kept in buffers",
    TreeCounter: "Laplace noise on a tree of steps",
}


def _moment(text: Any, name: str) -> datetime.datetime:
    """A date or a time without a zone."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is not None:
        raise InputError(f'{name} must be a date such as "2026-01-01", or a time such as "2026-01-01 06:00", in UTC.')
    return found


examples = [
    Stream("day", since="2024-01-01", until="2025-01-01", events=3),
    Stream("day", since="2024-01-01", until="2024-07-01", every="1 week", by="ward", events=2, window=4, name="weekly"),
    Stream("day", since="2024-01-01", until="2025-01-01", sum="cost", by="ward", events=2),
]
