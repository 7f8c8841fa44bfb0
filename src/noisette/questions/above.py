"""Which of many questions, asked one after the other, are above a threshold: at the price of those that are.

The answer to a question is a whole number q, in steps of `unit`. What is released is None, or the gap
g = q + N - (threshold + centre + Z) if that is at least 0 (`SparseVector`); then q is about threshold + g. Its error
bar is that of `SparseVector.gap_ends`.

Vocabulary: `steps` numbers in units of `unit` · `counts` what one more unit of the data can only raise.
"""

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NoReturn, get_args

from noisette.engines.contract import Source
from noisette.errors import BudgetError, FailedError, InputError, PrivacyError
from noisette.exact.number import Number, fraction, level_of, positive, whole
from noisette.mechanisms import SparseVector
from noisette.mechanisms.sparse_vector.stream import State
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.caveats import caveats
from noisette.query.design import recorded
from noisette.query.expected import SIZES, Expected
from noisette.query.measure import Measure, sensitivity
from noisette.query.plan import Aggregate, Query
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.query.units import ROW, in_words
from noisette.questions.contract import Line, Shell
from noisette.questions.data import LARGEST_WHOLE, JsonQuestion

__all__ = ["Above", "Alert", "Exactly", "Watch", "Watching"]

Of = Literal["counts", "numbers"]

_MOST = 2**60  # steps; what is larger is put there
_QUERIES = 1000  # are right together in what is expected
_ONE = frozenset({"rows", "count", "units", "distinct", "sum"})


@dataclass(frozen=True)
class Above(JsonQuestion):
    """A stream of questions, each of which is above a threshold or not; it ends after `positives` that are.

    Each question has one COUNT or one SUM, of which one unit of the data moves at most `sensitivity`. `of="counts"` are
    COUNTs, and SUMs of what is never below 0; for `of="numbers"`, which may fall when somebody comes, there is more
    noise. Answers are rounded to multiples of `unit`. Two streams that differ only in their `name` are two streams.

    >>> Above(1000, positives=3).positives
    3
    """

    threshold: Fraction
    positives: int
    of: Of
    sensitivity: Fraction
    unit: Fraction
    name: str

    def __init__(
        self,
        threshold: Number,
        *,
        positives: int = 1,
        of: Of = "counts",
        sensitivity: Number = 1,
        unit: Number = 1,
        name: str = "",
    ) -> None:
        if of not in get_args(Of):
            raise InputError(
                'of must be "counts", for what one more person can only raise, or "numbers", for any sums.'
            )
        if not isinstance(name, str):
            raise InputError("name must be a text: two streams that differ only in their name are two streams.")
        object.__setattr__(self, "unit", positive(unit, "unit"))
        object.__setattr__(self, "threshold", fraction(threshold, "threshold"))
        object.__setattr__(self, "positives", whole(positives, "positives", most=LARGEST_WHOLE))
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "name", name)
        self.steps(self.threshold)
        if (self.sensitivity / self.unit).denominator != 1:
            raise InputError("sensitivity must be a multiple of unit, which answers are rounded to.")

    def steps(self, threshold: Number) -> int:
        """A threshold in units."""
        steps = fraction(threshold, "threshold") / self.unit
        if steps.denominator != 1:
            raise InputError("threshold must be a multiple of unit, which answers are rounded to.")
        if abs(steps) > _MOST:
            raise InputError("threshold must lie within 2^60 units: use a larger unit.")
        return int(steps)

    def stream(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float = 0.95) -> "Watching":
        """What such a stream would be for a promise."""
        d = self.sensitivity / self.unit
        k = self.positives + 1  # the positives, and the one that rises most: no others count in the proof
        moved = Sensitivity(k * d, k * d**2, d, k, neighbours=neighbours)
        mechanism = SparseVector.calibrated(spend, moved, positives=self.positives, monotone=self.of == "counts")
        units = sorted({in_words(table.unit or ROW) for table in schema.values() if not table.public})
        return Watching(self, mechanism, moved, " and ".join(units), neighbours, level)


@dataclass(frozen=True)
class Alert:
    """A question was above its threshold: its answer is about `value`, and between `low` and `high` at that level.

    `caveats` are sentences about what the question left out before any noise.
    """

    value: float
    low: float
    high: float
    level: float
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watching:
    """The offer: a mechanism for the whole stream, and what may be asked of it."""

    above: Above
    mechanism: SparseVector
    sensitivity: Sensitivity
    unit: str
    neighbours: Neighbours
    level: float

    @property
    def text(self) -> str:
        """All that makes it this stream and no other."""
        fields = {name: value if isinstance(value, int) else str(value) for name, value in vars(self.above).items()}
        return json.dumps({"question": "above", **fields}, sort_keys=True)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole stream is worth, however long it is."""
        return self.mechanism.guarantee(self.sensitivity)

    @property
    def why(self) -> str:
        """Why this noise."""
        return (
            "The sparse vector technique: what is below its threshold is free, and so is by how much others are above."
        )

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism with what it is applied to."""
        measure = Measure("rows" if self.above.of == "counts" else "sum", grid=self.above.unit)
        return [recorded(self.mechanism, measure, self.sensitivity)]

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """Each question of the stream has its own; an `Alert` says them."""
        return [()]

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """How far from its threshold a question is answered right, and how far off a value may be."""
        m, unit = self.mechanism, float(self.above.unit)
        how = f"sparse vector technique, up to {m.positives:,} above"
        moves = f"each answer: {float(self.above.sensitivity):.6g}"
        right = f"of {_QUERIES:,} questions all are right, except those this near to their threshold"
        clear = "half the width of an error bar, if the answer is well above its threshold"
        low, high = self._ends(_MOST, 1, self.level)
        return [
            (
                Expected("above", how, moves, m.interval(self.level, queries=_QUERIES) * unit, {}, None, right),
                Expected("value", "its gap", "", (high - low) / 2 * unit, {}, None, clear),
            )
        ]

    growing = False

    @property
    def machine(self) -> "Comparing":
        """The sparse vector from state to state."""
        return Comparing(self.mechanism, self.above.steps(self.above.threshold))

    # Questions of the stream

    def session(self, line: Line[State], shell: Shell) -> "Watch":
        """What an analyst asks."""
        return Watch(self, line, shell)

    def exactly(self, query: Query, schema: Schema) -> "Exactly":
        """What a question asks for, or a sentence on why it cannot be asked here; nothing is read."""
        prepared = _single(query, schema)
        measure = prepared.request.measures[0]
        if self.above.of == "counts" and measure.what == "sum" and measure.low < 0:
            raise InputError('One more person can lower this sum: begin a stream with of="numbers" for it.')
        moves = sensitivity(measure, prepared.part, self.neighbours).linf * measure.grid
        if moves > self.above.sensitivity:
            raise InputError(
                f"One {prepared.shape.whose} can move this by {moves}, and {self.above.sensitivity} is what this "
                f"stream was begun for: ask for less, or begin one with sensitivity={moves}."
            )
        return Exactly(prepared, measure.grid / self.above.unit)

    def alert(self, gap: int, number: int, threshold: int, rounded: bool, level: float) -> Alert:
        """What the gap of the question with that number tells about its answer."""
        low, high = self._ends(gap, number, level)
        slack = Fraction(rounded, 2)
        off = (Fraction(0), low - slack, high + slack)
        value, least, most = (_number((threshold + gap + by) * self.above.unit) for by in off)
        return Alert(value, least, most, float(level))

    def _ends(self, gap: int, number: int, level: float) -> tuple[int, int]:
        """From where to where threshold + gap may be off, in steps."""
        low, high = self.mechanism.gap_ends(gap, number, level)
        return min(0, low), high


@dataclass(frozen=True)
class Exactly:
    """The number that a question asks for, in steps: it is never shown, only compared."""

    prepared: Prepared
    step: Fraction

    @property
    def rounded(self) -> bool:
        """Whether the number need not be a whole one of steps."""
        return self.step.denominator != 1

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is left out before any noise."""
        return caveats([self.prepared])

    def draw(self, source: Source, schema: Schema, secret: bytes) -> int:
        """Compute it; halves are rounded up, so that numbers that are d whole steps apart stay so."""
        [[measured]] = source.aggregate(self.prepared.request, schema, secret).measures
        return max(-_MOST, min(_MOST, math.floor(int(measured) * self.step + Fraction(1, 2))))


# Asking


class Watch:
    """Takes questions one at a time and ends after a given number that are above; `curator.stream` makes one.

    >>> from noisette.curator.demo import hospital
    >>> many = hospital().stream(Above(1000, positives=3), spend=1)
    >>> many.ask("SELECT count(DISTINCT patient_id) FROM visits WHERE age > 90") is None
    True
    >>> many
    <stream above 1,000: 3 of 3 left>
    """

    def __init__(self, offer: Watching, line: Line[State], shell: Shell) -> None:
        self._offer, self._line, self._shell = offer, line, shell

    @property
    def left(self) -> int:
        """How many positives may still come."""
        return max(0, self._offer.above.positives - self._line.last.given)

    def ask(self, question: Any, *, threshold: Number | None = None, level: float = 0.95) -> Alert | None:
        """Release about how much a COUNT or SUM is, if it is above the stream's threshold or one of its own: else None.

        To ask the same again is to ask one more question: it is compared anew.
        """
        level_of(level)
        above = self._offer.above
        t = above.steps(above.threshold if threshold is None else threshold)
        query, schema = self._shell.parsed(question)
        exactly = self._offer.exactly(query, schema)
        gap, after = self._line.ask(lambda: (self._shell.draw(exactly, schema), t))
        if gap is None:
            return None
        return replace(self._offer.alert(gap, after.asked, t, exactly.rounded, level), caveats=exactly.caveats)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A stream cannot be copied: begin it again where it is needed, which is free with a ledger.")

    def __repr__(self) -> str:
        above = self._offer.above
        return f"<stream above {float(above.threshold):,.12g}: {self.left} of {above.positives} left>"


class Comparing:
    """The sparse vector from state to state; more positives than there can be stand for a failure."""

    def __init__(self, mechanism: SparseVector, threshold: int) -> None:
        self._mechanism, self._threshold = mechanism, threshold

    def begin(self) -> State:
        """Draw the threshold's noise."""
        return self._mechanism.begin(self._threshold).state()

    def step(self, state: State, value: tuple[int, int]) -> tuple[Any, State]:
        """The gap of a query over its threshold, or None."""
        kept: list[State] = []
        gap = self._mechanism.resume(state, keep=kept.append).ask(*value)
        return gap, kept[-1]

    def failed(self, state: State) -> State:
        """The last state."""
        return replace(state, asked=state.asked + 1, given=self._mechanism.positives + 1)

    def check(self, state: State) -> None:
        """Raise if the stream has ended."""
        if state.given > self._mechanism.positives:
            raise FailedError
        if state.given == self._mechanism.positives:
            raise BudgetError(
                f"This stream has ended with positive number {state.given}: begin one with another name, at the same "
                "price."
            )

    def read(self, stored: dict[str, Any]) -> State:
        """A state as it was kept."""
        return State(**stored)


def _single(query: Query, schema: Schema) -> Prepared:
    results = [result for _, result in query.outputs]
    plain = len(results) == 1 and isinstance(results[0], Aggregate) and results[0].function in _ONE
    if not plain or query.keys or query.having is not None or query.limit is not None:
        raise InputError("A stream is asked for one COUNT or one SUM, without GROUP BY and without arithmetic on it.")
    return prepare(canonical(query), schema)


def _number(value: Fraction) -> float:
    """A whole number as such, else a float."""
    return int(value) if value.denominator == 1 else float(value)


examples = [Above(1000, positives=3), Above("500.5", of="numbers", sensitivity=100, unit="1/2", name="costs")]
