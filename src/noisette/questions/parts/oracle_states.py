"""The line of states of an oracle: the sparse vector's, and the public distribution that its gaps correct."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noisette.engines.contract import Source
from noisette.errors import BudgetError, FailedError
from noisette.mechanisms import Geometric, SparseVector
from noisette.mechanisms.sparse_vector.stream import State
from noisette.query.schema import Schema
from noisette.questions.parts.line_cells import GridCells
from noisette.releases.multiplicative.candidates import Candidates
from noisette.releases.multiplicative.product import Hypothesis, Measured

__all__ = ["Correcting", "Counted", "OracleState"]

_REPLAYS = 10


@dataclass(frozen=True)
class OracleState:
    """Where a stream is: `sparse` holds noise that nobody may know, the rest was released.

    `rows` is the number of rows, once it is bought · `history` the axes, boxes and noisy answer of each update
    """

    asked: int
    rows: int | None
    sparse: State = field(repr=False)
    history: list[Any]
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Counted:
    """The number of rows that meet a query, beside the number of all rows: never shown, only compared."""

    cells: GridCells
    asked: Candidates

    @property
    def where(self) -> list[Any]:
        """The axes and boxes of the query, as plain lists."""
        [group] = self.asked.queries
        return [list(group.axes), np.stack([group.low, group.high], axis=2).tolist()]

    def draw(self, source: Source, schema: Schema, secret: bytes) -> tuple[list[Any], int, int]:
        """The query, its exact answer and the exact number of rows."""
        places, counts = self.cells.read(source, schema, secret)
        [found] = self.asked.answers(self.asked.tables(places, counts))
        return self.where, int(found[0]), int(counts.sum())

    def public(self, hypothesis: Hypothesis) -> float:
        """What a public distribution answers."""
        [found] = self.asked.answers(hypothesis.tables(self.asked.axes))
        return float(found[0])


class Correcting:
    """The sparse vector and the public distribution from state to state."""

    def __init__(
        self,
        sizes: Sequence[int],
        mechanism: SparseVector,
        *,
        threshold: int,
        total: int | None,
        counting: Geometric | None,
    ) -> None:
        self._sizes, self._mechanism, self._threshold = tuple(sizes), mechanism, threshold
        self._total, self._counting = total, counting
        self._known: tuple[int, list[Any], Hypothesis] | None = None

    def begin(self) -> OracleState:
        """Draw the threshold's noise."""
        return OracleState(0, self._total, self._mechanism.begin(self._threshold).state(), [])

    def step(self, state: OracleState, value: tuple[list[Any], int, int]) -> tuple[Any, OracleState]:
        """The public answer and None, or the noisy one and its gap; the number of rows is bought by the first query."""
        (axes, boxes), exact, total = value
        rows = self._bought(total) if state.rows is None else state.rows
        public = round(self._answer(self.hypothesis(rows, state.history), axes, boxes))
        gap, sign, sparse = self._compared(state.sparse, exact - public)
        if gap is None:
            return (public, None, 0), OracleState(state.asked + 1, rows, sparse, state.history)
        noisy = public + sign * (self._threshold + gap)
        history = [*state.history, [axes, boxes, noisy]]
        return (noisy, gap, sign), OracleState(state.asked + 1, rows, sparse, history)

    def _bought(self, total: int) -> int:
        assert self._counting is not None
        return max(1, int(self._counting(total)))

    def _compared(self, sparse: State, difference: int) -> tuple[int | None, int, State]:
        """The gap of the difference or of its opposite, with its sign, and the state after that."""
        kept: list[State] = []
        stream = self._mechanism.resume(sparse, keep=kept.append)
        for sign in (1, -1):
            gap: Any = stream.ask(sign * difference)
            if gap is not None:
                return gap, sign, kept[-1]
        return None, 0, kept[-1]

    def hypothesis(self, rows: int, history: Sequence[Any]) -> Hypothesis:
        """The public distribution after some updates."""
        known, m = self._known, self._mechanism
        if known is None or known[0] != rows or list(history[: len(known[1])]) != known[1]:
            spread = math.hypot(float(m.scale), float(m.threshold_scale))
            known = rows, [], Hypothesis(self._sizes, rows=rows, spread=spread, replays=_REPLAYS)
        for axes, boxes, noisy in history[len(known[1]) :]:
            some = [tuple(slice(low, high + 1) for low, high in box) for box in boxes]
            known[2].add(Measured(len(known[1]), tuple(axes), some, np.array([float(noisy)])))
            known[1].append([axes, boxes, noisy])
        self._known = known
        return known[2]

    def _answer(self, hypothesis: Hypothesis, axes: Sequence[int], boxes: Any) -> float:
        table = hypothesis.tables([tuple(axes)])[tuple(axes)]
        return float(sum(table[tuple(slice(low, high + 1) for low, high in box)].sum() for box in boxes))

    def failed(self, state: OracleState) -> OracleState:
        """The last state."""
        return OracleState(state.asked + 1, state.rows, state.sparse, state.history, ended=True)

    def check(self, state: OracleState) -> None:
        """Raise if nothing may be compared any more."""
        if state.ended:
            raise FailedError
        if state.sparse.given >= self._mechanism.positives:
            raise BudgetError("All updates of this oracle are used up: begin one with another name, at the same price.")

    def read(self, stored: dict[str, Any]) -> OracleState:
        """A state as it was kept."""
        return OracleState(**{**stored, "sparse": State(**stored["sparse"])})
