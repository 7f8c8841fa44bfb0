"""Counting queries asked one after the other, answered from a public distribution as long as that is near enough.

Private multiplicative weights: the sparse vector compares each query with what the public distribution answers. Where
both are near, that answer is given and costs nothing; where they differ, the gap is released, it corrects the
distribution, and one of the `updates` is used up.   [Hardt-Rothblum 2010]

For the query q with the public answer a, rounded to a whole number, two comparisons are made with one threshold t:

    q - a >= t?      if not:  a - q >= t?

Both move by at most k rows with a unit of k rows, in opposite directions, so that queries are not monotone: epsilon is
k/threshold_scale + 2 c k/scale for c updates, however many queries are asked. a depends on what was released before,
and so does the analyst's next query: the sparse vector's proof fixes the transcript, so both are covered. The gap is
part of its guarantee: a + t + gap, or a - t - gap, costs nothing more.   (docs/proofs/multiplicative-weights.md)

What is kept is the sparse vector's state, and what was released. Once all updates are used up, queries are answered
from the distribution without any comparison: that reads no data, and it has no error bar.

Vocabulary: `update` a released gap · `boxes` the cells that a query counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from noisette.answers.column import added_ends
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.exact.number import level_of, whole
from noisette.mechanisms import Geometric, SparseVector
from noisette.privacy import ZCDP, Guarantee, Neighbours, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import caveats
from noisette.query.design import recorded
from noisette.query.expected import SIZES, Expected
from noisette.query.measure import Measure
from noisette.query.schema import Schema
from noisette.questions.contract import Line, Shell
from noisette.questions.data import LARGEST_WHOLE, JsonQuestion
from noisette.questions.parts.cell_queries import candidates_of, read_columns, read_query
from noisette.questions.parts.line_cells import GridCells
from noisette.questions.parts.offers import text_of, units_of
from noisette.questions.parts.oracle_states import Correcting, Counted, OracleState
from noisette.questions.parts.rows import Rows, rows_text
from noisette.releases.linear import pure_part
from noisette.releases.multiplicative.candidates import MOST_CELLS

__all__ = ["Consulting", "Oracle", "OracleAnswer", "OracleSession"]

_UPDATES, _MOST_UPDATES = 20, 1_000
_COUNTING = 4  # updates more, each of whose shares is as large as that for the number of rows
_NEEDLESS = 100  # comparisons of answers that are right; one of them is an update


@dataclass(frozen=True)
class Oracle(JsonQuestion):
    """A stream of counting queries about some columns that goes on answering, free while it can.

    A query is {"age": [18, 65], "ward": "north"}, as in `Workload`. Up to `updates` answers are paid for; all others
    come from a public distribution that is within about `threshold` rows of the truth for that query. Two streams that
    differ only in their `name` are two streams.

    >>> Oracle(["age", "ward"], updates=50).updates
    50
    """

    columns: str | Sequence[str]
    updates: int = _UPDATES
    threshold: int | None = None
    total: int | None = None
    bins: int | None = None
    of: Rows = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", read_columns(self.columns))
        for name in ("updates", "threshold", "total", "bins"):
            if name == "updates" or getattr(self, name) is not None:
                object.__setattr__(self, name, whole(getattr(self, name), name, most=LARGEST_WHOLE))
        if self.updates > _MOST_UPDATES:
            raise InputError(f"updates must be at most {_MOST_UPDATES:,}: the noise grows with their number.")
        if not isinstance(self.name, str):
            raise InputError("name must be a text: two streams that differ only in their name are two streams.")
        object.__setattr__(self, "of", rows_text(self.of))

    def stream(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float = 0.95) -> "Consulting":
        """What such a stream would be for a promise."""
        cells = GridCells.of(list(self.columns), self.bins, self.of, schema)
        k, c = cells.prepared.part.total, self.updates + 1  # the updates, and the comparison that rises most
        moved = Sensitivity(c * k, c * k**2, k, c, neighbours=neighbours)
        share = Fraction(0 if self.total else 1, self.updates + _COUNTING)
        counting = Geometric(k / _epsilon(spend, share)) if share else None
        rest = Pure(_epsilon(spend, 1 - share), neighbours=neighbours)
        mechanism = SparseVector.calibrated(rest, moved, positives=self.updates)
        return Consulting(self, cells, schema, mechanism, counting, moved, level)


def _epsilon(spend: Promise, share: Fraction) -> Fraction:
    """The epsilon of a share of a promise; shares of a rho have squares that add up."""
    return pure_part(spend.share(share)) if isinstance(spend, ZCDP) else share * pure_part(spend)


@dataclass(frozen=True)
class OracleAnswer:
    """An answer: about `value` rows, between `low` and `high` at that level.

    `free` answers are those of the public distribution; the others used up one of the updates, and some are
    `left`. Free bars hold for all free answers at once. Once no update is left, nothing is known about the error.
    """

    value: float
    low: float
    high: float
    level: float
    free: bool
    left: int
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Consulting:
    """The offer: a mechanism for the whole stream, and the cells that queries are about."""

    oracle: Oracle
    cells: GridCells
    schema: Schema
    mechanism: SparseVector
    counting: Geometric | None
    sensitivity: Sensitivity
    level: float

    @property
    def text(self) -> str:
        """All that makes it this stream and no other."""
        asked = {
            "columns": self.oracle.columns,
            "updates": self.oracle.updates,
            "threshold": self.threshold,
            "total": self.oracle.total,
        }
        sizes = [axis.cells for axis in self.cells.axes]
        return text_of("oracle", self.cells.prepared, **asked, cells=sizes, name=self.oracle.name)

    @property
    def threshold(self) -> int:
        """From how many rows on a public answer is corrected; by default so that needless updates are rare."""
        least = math.ceil(float(self.mechanism.scale) * math.log(_NEEDLESS)) - self.mechanism.centre
        return self.oracle.threshold or max(1, least)

    @property
    def counted(self) -> Sensitivity:
        """How far one unit moves the number of rows."""
        k = self.sensitivity.linf
        return Sensitivity(k, k * k, k, 1, neighbours=self.sensitivity.neighbours)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole stream is worth, however long it is."""
        compared = self.mechanism.guarantee(self.sensitivity)
        return compared if self.counting is None else self.counting.guarantee(self.counted) + compared

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        return units_of([self.cells.prepared])

    @property
    def why(self) -> str:
        """Why this noise."""
        return (
            "Private multiplicative weights: answers of a public distribution that are near enough are free, and so is "
            "by how much it is corrected."
        )

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms with what they are applied to."""
        rows = Measure("rows")
        bought = [] if self.counting is None else [recorded(self.counting, rows, self.counted)]
        return [*bought, recorded(self.mechanism, rows, self.sensitivity)]

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What is left out before any noise."""
        return [caveats([self.cells.prepared])]

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """How far a free answer may be off, and one that is paid for."""
        how = f"private multiplicative weights, up to {self.oracle.updates:,} updates"
        moves = f"each answer: {float(self.sensitivity.linf):.6g}"
        low, high = self.mechanism.gap_ends(2**60, 1, self.level)
        free = "all free answers at once"
        return [
            (
                Expected("value", how, moves, float(self.free_end(self.level)), {}, None, free),
                Expected("update", "its gap", "", (high - low) / 2, {}, None, "half the width of the bar of an update"),
            )
        ]

    def free_end(self, level: float) -> int:
        """How far a free answer is off at most."""
        return max(1, self.threshold + self.mechanism.silent_end(level))

    growing = False

    @cached_property
    def machine(self) -> "Correcting":
        """The sparse vector and the distribution from state to state."""
        return Correcting(
            [axis.cells for axis in self.cells.axes],
            self.mechanism,
            threshold=self.threshold,
            total=self.oracle.total,
            counting=self.counting,
        )

    # Queries

    def session(self, line: Line[OracleState], shell: Shell) -> "OracleSession":
        """What an analyst asks."""
        return OracleSession(self, line, shell)

    def counts(self, query: Any) -> "Counted":
        """What a query asks for, or a sentence on why it cannot be asked here; nothing is read."""
        return Counted(self.cells, candidates_of(self.cells.axes, [read_query(query)]))


class OracleSession:
    """Takes counting queries one at a time; `curator.stream(Oracle(...), spend=...)` makes one.

    >>> from noisette.curator.demo import hospital
    >>> oracle = hospital().stream(Oracle(["ward", "age"], updates=5), spend=1)
    >>> answer = oracle.ask({"age": [0, 100]})
    >>> answer.free, answer.low <= answer.value <= answer.high
    (True, True)
    >>> oracle
    <oracle about ward, age: 5 of 5 updates left>
    """

    def __init__(self, offer: Consulting, line: Line[OracleState], shell: Shell) -> None:
        self._offer, self._line, self._shell = offer, line, shell

    @property
    def left(self) -> int:
        """How many updates may still come."""
        return max(0, self._offer.oracle.updates - self._line.last.sparse.given)

    @property
    def updates(self) -> list[tuple[Mapping[str, Any], int]]:
        """The noisy answers that were paid for, each with the runs of cells that it counts."""
        names = [axis.name for axis in self._offer.cells.axes]
        history = self._line.last.history
        return [({names[i]: [box[j] for box in boxes] for j, i in enumerate(axes)}, y) for axes, boxes, y in history]

    def ask(self, query: Mapping[str, Any], *, level: float = 0.95) -> OracleAnswer:
        """How many rows meet a query such as {"age": [18, 65], "ward": "north"}.

        To ask the same again is to ask one more query: it is compared anew.
        """
        level_of(level)
        self._shell.check()
        counts = self._offer.counts(query)
        self._check_room(counts)
        try:
            released, after = self._line.ask(lambda: self._shell.draw(counts, self._offer.schema))
        except BudgetError:
            return self._unchecked(counts, level)
        return self._answer(released, after, level)

    def _check_room(self, counts: Counted) -> None:
        state = self._line.last
        if state.rows is None:
            return
        public = self._offer.machine.hypothesis(state.rows, state.history)
        if public.joined_cells(counts.asked.axes[0]) > MOST_CELLS:
            raise InputError(
                f"With what was asked before, this links columns with more than {MOST_CELLS:,} combinations: ask about "
                "fewer columns at a time."
            )

    def _answer(self, released: tuple[int, int | None, int], after: OracleState, level: float) -> OracleAnswer:
        value, gap, sign = released
        if gap is None:
            end = self._offer.free_end(level)
            ends = (value - end, value + end)
        else:
            low, high = self._offer.mechanism.gap_ends(gap, after.sparse.asked, level)
            low = min(0, low)
            ends = (value + low, value + high) if sign > 0 else (value - high, value - low)
        left = self._offer.oracle.updates - after.sparse.given
        middle, below, above = np.array([[value], ends[:1], ends[1:]], float)
        lowest, highest = (float(end[0]) for end in added_ends(middle, (below, above)))
        [sentences] = self._offer.caveats
        return OracleAnswer(value, lowest, highest, float(level), gap is None, left, sentences)

    def _unchecked(self, counts: Counted, level: float) -> OracleAnswer:
        """What the public distribution answers after the last update: no data is read for it."""
        state = self._line.last
        assert state.rows is not None
        value = counts.public(self._offer.machine.hypothesis(state.rows, state.history))
        return OracleAnswer(value, 0.0, math.inf, float(level), True, 0, (_UNCHECKED,))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A stream cannot be copied: begin it again where it is needed, which is free with a ledger.")

    def __repr__(self) -> str:
        oracle = self._offer.oracle
        return f"<oracle about {', '.join(oracle.columns)}: {self.left} of {oracle.updates} updates left>"


_UNCHECKED = "All updates are used up: this follows from earlier answers, and nothing is known about its error."

examples = [
    Oracle(["ward", "age"], updates=10),
    Oracle("cost", threshold=2_000, bins=64, total=20_000, of="SELECT * FROM visits WHERE age >= 18", name="costs"),
]
