"""Offers that choose one or more of several candidates by their scores, and the mechanism that does it best."""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Exponential, JointTop, PermuteAndFlip, Top
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.canonical import canonical_text
from noisette.query.design import recorded
from noisette.query.expected import SIZES, Expected
from noisette.query.question import declared
from noisette.query.schema import Schema
from noisette.query.sources.source import Source
from noisette.questions.scored import Scores
from noisette.questions.told import Told

__all__ = ["Choice", "best", "best_of_several"]

Chooser: TypeAlias = PermuteAndFlip | Exponential | Top | JointTop

_NAMES: dict[type, str] = {
    PermuteAndFlip: "permute and flip",
    Exponential: "exponential mechanism",
    Top: "exponential mechanism, one round after the other,",
    JointTop: "exponential mechanism on whole rankings",
}
_WHY: dict[type, str] = {
    PermuteAndFlip: "Permute and flip: never worse than the exponential mechanism for one choice.",
    Exponential: "The exponential mechanism: losses of a bounded range cost an eighth of epsilon squared in zCDP.",
    Top: "One round after the other: for so few, or with a delta, that errs less than to choose whole rankings.",
    JointTop: "Whole rankings at once: with a pure epsilon that errs less than one round after the other.",
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
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism with what it is applied to."""
        return [recorded(self.mechanism, self.scores.prepared[0].request.measures[0], self._reach)]

    @property
    def _reach(self) -> Any:
        return self.scores.reach(self.neighbours)

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """By how much the score of what is told lies below the best, at most."""
        unit = float(self.scores.unit)
        name = _NAMES[type(self.mechanism)]
        one = Expected(
            self.column,
            f"{name} among {len(self.candidates):,}",
            f"{self.of}: {float(self._reach.linf) * unit:.6g}",
            self.mechanism.interval(self.level) * unit,
            {},
            None,
            f"the error is by how many {self.of} what is told lies behind the best",
        )
        return [(one,)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Compute the scores and choose."""
        chosen = self.mechanism(self.scores.read(source, schema, secret), rng)
        places = [chosen] if isinstance(chosen, int) else list(chosen)
        return pyarrow.table({self.column: self.candidates.take(pyarrow.array(places))})


def best_of_several(
    spend: Promise, scores: Scores, count: int, k: int, neighbours: Neighbours, level: float
) -> Top | JointTop:
    """The mechanism for k candidates in order that keeps a promise with the least loss of score."""
    reach, monotone = scores.reach(neighbours), scores.monotone
    rounds = Top.calibrated(spend, reach, candidates=count, k=k, monotone=monotone)
    joint = JointTop.calibrated(spend, reach, candidates=count, k=k, monotone=monotone)
    return rounds if rounds.interval(level) <= joint.interval(level) else joint


def best(
    spend: Promise, scores: Scores, count: int, neighbours: Neighbours, level: float
) -> PermuteAndFlip | Exponential:
    """The mechanism that keeps a promise with the least loss of score."""
    if count < 2:
        raise InputError("There is only one candidate, so there is nothing to choose: name at least two.")
    reach, monotone = scores.reach(neighbours), scores.monotone
    flipping = PermuteAndFlip.calibrated(spend, reach, candidates=count, monotone=monotone)
    exponential = Exponential.calibrated(spend, reach, candidates=count, monotone=monotone)
    return flipping if flipping.interval(level) <= exponential.interval(level) else exponential
