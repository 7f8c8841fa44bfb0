"""Offers that choose one or more of several candidates by their scores, and the mechanism that does it best."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Exponential, GumbelTop, JointTop, NoisyMaxGap, PermuteAndFlip
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.canonical import canonical_text
from noisette.query.caveats import NOISE, caveats
from noisette.query.design import recorded
from noisette.query.expected import SIZES, Expected
from noisette.query.schema import Schema
from noisette.questions.contract import declared
from noisette.questions.scored import Scores
from noisette.questions.told import Told

__all__ = ["Choice", "Contest", "Lead", "best_of_several"]

Chooser: TypeAlias = PermuteAndFlip | Exponential | GumbelTop | JointTop | NoisyMaxGap

_USUAL = (
    0.95  # the level at which mechanisms are compared, whatever is asked for: what is kept was drawn by one of them
)

_NAMES: dict[type, str] = {
    PermuteAndFlip: "permute and flip",
    Exponential: "exponential mechanism",
    GumbelTop: "exponential mechanism, one round after the other,",
    JointTop: "exponential mechanism on whole rankings",
    NoisyMaxGap: "permute and flip",
}
_WHY: dict[type, str] = {
    PermuteAndFlip: "Permute and flip: never worse than the exponential mechanism for one choice.",
    Exponential: "The exponential mechanism: losses of a bounded range cost an eighth of epsilon squared in zCDP.",
    GumbelTop: "One round after the other: for so few, or with a delta, that errs less than to choose whole rankings.",
    JointTop: "Whole rankings at once: with a pure epsilon that errs less than one round after the other.",
    NoisyMaxGap: "Report noisy max by one-sided noise, which chooses like permute and flip: its gap is free.",
}


@dataclass(frozen=True)
class Choice(Told):
    """One of the candidates, or several in order: the likelier, the higher the score."""

    kind: str
    column: str
    candidates: pyarrow.Array
    scores: Scores
    mechanism: Chooser
    neighbours: Neighbours
    level: float
    of: str

    @property
    def text(self) -> str:
        """The kind of question and what it measures, in a form that does not depend on how it was written."""
        asked = [canonical_text(one.query) for one in self.scores.prepared]
        labels = str(self.candidates.to_pylist())
        return json.dumps({"question": self.kind, "asked": asked, "declared": declared(self.scores.prepared, labels)})

    @property
    def guarantee(self) -> Guarantee:
        """What the choice is worth."""
        return self.mechanism.guarantee(self._reach)

    @property
    def unit(self) -> str:
        """The declared unit column, or "row"."""
        return " and ".join(sorted({str(one.shape.unit) for one in self.scores.prepared}))

    @property
    def why(self) -> str:
        """Why this mechanism."""
        return _WHY[type(self.mechanism)]

    @property
    def covers(self) -> str:
        """What ± covers; nothing where there are no error bars."""
        return ""

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What the scores leave out."""
        return [caveats(self.scores.prepared, self.covers)]

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism with what it is applied to."""
        return [recorded(self.mechanism, self.scores.prepared[0].request.measures[0], self._reach)]

    @property
    def _reach(self) -> Any:
        return self.scores.reach(self.neighbours)

    @property
    def _loss(self) -> float:
        return self.mechanism.interval(self.level)

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """By how much the score of what is told lies below the best, at most."""
        unit = float(self.scores.unit)
        name = _NAMES[type(self.mechanism)]
        one = Expected(
            self.column,
            f"{name} among {len(self.candidates):,}",
            f"{self.of}: {float(self._reach.linf) * unit:.6g}",
            self._loss * unit,
            {},
            None,
            f"the error is by how many {self.of} what is told lies behind the best",
        )
        return [(one,)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Compute the scores and choose."""
        chosen = self.mechanism(self.scores.read(source, schema, secret), rng)
        return self._told([chosen] if isinstance(chosen, int) else list(chosen))

    def _told(self, places: list[int]) -> pyarrow.Table:
        return pyarrow.table({self.column: self.candidates.take(pyarrow.array(places))})


@dataclass(frozen=True)
class Lead(Choice):
    """One of the candidates, and by how much it leads: whole steps are drawn, the error bar comes with the answer."""

    mechanism: NoisyMaxGap

    @property
    def covers(self) -> str:
        """The lead has an error bar."""
        return NOISE

    @property
    def _name(self) -> str:
        """What the lead is called, unless the candidates are called so."""
        return "gap" if self.column.startswith("lead") else "lead"

    @property
    def _loss(self) -> float:
        m = self.mechanism
        return PermuteAndFlip(m.scale, candidates=m.candidates, monotone=m.monotone).interval(self.level)

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """What to expect of the choice, and half the width of the lead's error bar."""
        [(chosen,)], (low, high) = super().expected(sizes), self.mechanism.lead(0, self.level)
        note = f"by how many {self.of} it is ahead of all others; its bar is narrower where that is clear"
        width = (high - low) / 2 * float(self.scores.unit)
        return [(chosen, Expected(self._name, "its gap", chosen.sensitivity, width, {}, None, note))]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Compute the scores, choose, and tell the gap to the runner-up."""
        winner, gap = self.mechanism(self.scores.read(source, schema, secret), rng)
        return self._told([winner]).append_column(self._name, pyarrow.array([gap]))

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The candidate, and its lead with an error bar."""
        [(chosen, steps)] = super().answers(drawn)
        gap, unit = int(steps.values[0].as_py()), self.scores.unit
        low, high = (np.array([float(end * unit)]) for end in self.mechanism.lead(gap, self.level))
        return [(chosen, Column(self._name, pyarrow.array([_number(gap * unit)]), low, high))]


def _number(value: Fraction) -> float:
    """A whole number as such, else a float."""
    return int(value) if value.denominator == 1 else float(value)


def best_of_several(spend: Promise, scores: Scores, count: int, k: int, neighbours: Neighbours) -> GumbelTop | JointTop:
    """The mechanism for k candidates in order that keeps a promise with the least loss of score."""
    reach, monotone = scores.reach(neighbours), scores.monotone
    rounds = GumbelTop.calibrated(spend, reach, candidates=count, k=k, monotone=monotone)
    joint = JointTop.calibrated(spend, reach, candidates=count, k=k, monotone=monotone)
    return rounds if rounds.interval(_USUAL) <= joint.interval(_USUAL) else joint


@dataclass(frozen=True)
class Contest:
    """Candidates with their scores, of which one is to be told: in a column, by a kind of question, `of` what."""

    kind: str
    column: str
    candidates: pyarrow.Array
    scores: Scores
    of: str

    def offer(self, spend: Promise, neighbours: Neighbours, level: float, *, lead: bool) -> Choice:
        """What keeps a promise with the least loss of score, with the lead of the best or without it."""
        if len(self.candidates) < 2:
            raise InputError("There is only one candidate, so there is nothing to choose: name at least two.")
        if not isinstance(lead, bool):
            raise InputError("lead must be True, to be told by how much the best is ahead, or False.")
        if lead:  # by one-sided noise, which chooses like permute and flip
            gap = NoisyMaxGap.calibrated(spend, self.scores.reach(neighbours), **self._options)
            told = f"{self.kind} with its lead", self.column, self.candidates, self.scores
            return Lead(*told, gap, neighbours, level, self.of)
        mechanism = self._best(spend, neighbours)
        return Choice(self.kind, self.column, self.candidates, self.scores, mechanism, neighbours, level, self.of)

    @property
    def _options(self) -> dict[str, Any]:
        return {"candidates": len(self.candidates), "monotone": self.scores.monotone}

    def _best(self, spend: Promise, neighbours: Neighbours) -> PermuteAndFlip | Exponential:
        reach = self.scores.reach(neighbours)
        flipping = PermuteAndFlip.calibrated(spend, reach, **self._options)
        exponential = Exponential.calibrated(spend, reach, **self._options)
        return flipping if flipping.interval(_USUAL) <= exponential.interval(_USUAL) else exponential
