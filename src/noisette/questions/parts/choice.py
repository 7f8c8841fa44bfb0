"""Choosing one or more of several candidates by their scores, with the mechanism that does it best.

Scores are computed by the engine: for each key of a column its number of rows, or for each query its number.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.mechanisms import Exponential, GumbelTop, JointTop, NoisyMaxGap, PermuteAndFlip
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical, canonical_text
from noisette.query.caveats import NOISE, caveats
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure, sensitivity
from noisette.query.plan import Aggregate, Query
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.parts.offers import declared, reading, units_of
from noisette.questions.parts.tables import columns_of

__all__ = ["Choice", "Contest", "Scores", "scores_of"]

Chooser: TypeAlias = PermuteAndFlip | Exponential | GumbelTop | JointTop | NoisyMaxGap

_LEVEL = 0.95  # at which mechanisms are compared, whatever is asked for: what is kept was drawn by one of them

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
    GumbelTop: "One round after the other: for this few, or with a delta, it errs less than with whole rankings.",
    JointTop: "Whole rankings at once: with a pure epsilon the error is smaller than with one round after the other.",
    NoisyMaxGap: "Report noisy max by one-sided noise, which chooses like permute and flip: its gap is free.",
}


# Scores


@dataclass(frozen=True)
class Scores:
    """Whole scores of candidates, in steps of `unit`; each query measures one or, if it has keys, all of them."""

    prepared: tuple[Prepared, ...]
    unit: Fraction

    def read(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        """The scores themselves: to be called once they are paid for."""
        found = [source.aggregate(one.request, schema, secret).measures[0] for one in self.prepared]
        steps = [int(_measure(one).grid / self.unit) for one in self.prepared]
        return np.concatenate([values * step for values, step in zip(found, steps, strict=True)])

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """How far one unit can move the scores."""
        parts = [self._moved(one, neighbours) for one in self.prepared]
        if len(parts) == 1:
            return parts[0]
        l1, squares = sum(p.l1 for p in parts), sum(p.l2_squared for p in parts)
        l0 = sum(p.l0 for p in parts)
        return Sensitivity(l1, squares, max(p.linf for p in parts), l0, neighbours=neighbours)

    def _moved(self, one: Prepared, neighbours: Neighbours) -> Sensitivity:
        moved, step = sensitivity(_measure(one), one.part, neighbours), _measure(one).grid / self.unit
        sizes = moved.l1 * step, moved.l2_squared * step**2, moved.linf * step
        return Sensitivity(*sizes, moved.l0, neighbours=neighbours)

    @property
    def monotone(self) -> bool:
        """Whether one more unit moves all scores up, or all down."""
        measures = [_measure(one) for one in self.prepared]
        up = all(m.what != "sum" or m.low >= 0 for m in measures)
        return up or all(m.what == "sum" and m.high <= 0 for m in measures)


def _measure(prepared: Prepared) -> Measure:
    return prepared.request.measures[0]


def scores_of(queries: Sequence[Query], schema: Schema) -> Scores:
    """The scores of candidates, each of them the one number that a query asks for."""
    prepared = tuple(_single(query, schema) for query in queries)
    return Scores(prepared, reduce(_common, [_measure(one).grid for one in prepared]))


def _single(query: Query, schema: Schema) -> Prepared:
    prepared = prepare(canonical(query), schema)
    plain = not query.keys and len(query.outputs) == 1 and isinstance(query.outputs[0][1], Aggregate)
    if not plain or query.having is not None or len(prepared.request.measures) != 1 or prepared.quantiles:
        raise InputError("The score of a candidate must be one COUNT or one SUM, without GROUP BY.")
    return prepared


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The largest grid that both lie on."""
    return Fraction(gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


# Choices


@dataclass(frozen=True)
class Contest:
    """Candidates with their scores: `kind` of question, `column` of the answer, and what scores are counted in."""

    kind: str
    column: str
    candidates: pyarrow.Array
    scores: Scores
    counted: str

    def one(self, spend: Promise, neighbours: Neighbours, level: float, *, lead: bool) -> Offer:
        """The offer of the best candidate, with its lead or without it."""
        if len(self.candidates) < 2:
            raise InputError("There is only one candidate, so there is nothing to choose: name at least two.")
        moved = self.scores.sensitivity(neighbours)
        if lead:  # by one-sided noise, which chooses like permute and flip
            return self._offer(NoisyMaxGap.calibrated(spend, moved, **self._options), moved, level)
        flipping = PermuteAndFlip.calibrated(spend, moved, **self._options)
        exponential = Exponential.calibrated(spend, moved, **self._options)
        better = flipping.interval(_LEVEL) <= exponential.interval(_LEVEL)
        return self._offer(flipping if better else exponential, moved, level)

    def several(self, k: int, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """The offer of the k best candidates in order."""
        moved = self.scores.sensitivity(neighbours)
        rounds = GumbelTop.calibrated(spend, moved, k=k, **self._options)
        joint = JointTop.calibrated(spend, moved, k=k, **self._options)
        better = rounds.interval(_LEVEL) <= joint.interval(_LEVEL)
        return self._offer(rounds if better else joint, moved, level)

    @property
    def _options(self) -> dict[str, Any]:
        return {"candidates": len(self.candidates), "monotone": self.scores.monotone}

    def _offer(self, mechanism: Chooser, moved: Sensitivity, level: float) -> Offer:
        lead = isinstance(mechanism, NoisyMaxGap)
        prepared = self.scores.prepared
        asked = {
            "question": f"{self.kind} with its lead" if lead else self.kind,
            "asked": [canonical_text(one.query) for one in prepared],
            "declared": declared(prepared, str(self.candidates.to_pylist())),
        }
        return Offer(
            json.dumps(asked),
            mechanism.guarantee(moved),
            units_of(prepared),
            _WHY[type(mechanism)],
            [recorded(mechanism, prepared[0].request.measures[0], moved)],
            [caveats(prepared, NOISE if lead else "")],
            Choice(self.column, self.candidates, self.scores, mechanism, moved, level, self.counted),
            reads=reading(prepared, (), NOISE if lead else ""),
        )


@dataclass(frozen=True)
class Choice:
    """One of the candidates, or several in order: the higher the score, the likelier.

    With a gap, the lead over all others is released, too: whole steps are drawn, and the error bar follows from them.
    """

    column: str
    candidates: pyarrow.Array
    scores: Scores
    mechanism: Chooser
    sensitivity: Sensitivity
    level: float
    counted: str

    @property
    def _lead(self) -> str:
        """What the lead is called, unless the candidates are called so."""
        return "gap" if self.column.startswith("lead") else "lead"

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """By how much the score of the answer lies below the best, at most; and half the width of the lead's bar."""
        m, unit = self.mechanism, float(self.scores.unit)
        gap = isinstance(m, NoisyMaxGap)  # it chooses like permute and flip
        like = PermuteAndFlip(m.scale, candidates=m.candidates, monotone=m.monotone) if gap else m
        chosen = Expected(
            self.column,
            f"{_NAMES[type(m)]} among {len(self.candidates):,}",
            f"{self.counted}: {float(self.sensitivity.linf) * unit:.6g}",
            like.interval(self.level) * unit,
            {},
            None,
            f"the error is by how many {self.counted} the answer lies behind the best",
        )
        if not isinstance(m, NoisyMaxGap):
            return [(chosen,)]
        low, high = m.lead(0, self.level)
        note = f"by how many {self.counted} it is ahead of all others; its bar is narrower where that is clear"
        return [(chosen, Expected(self._lead, "its gap", chosen.sensitivity, (high - low) / 2 * unit, {}, None, note))]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Compute the scores and choose; with a gap, the steps between the best and the second."""
        found = self.mechanism(self.scores.read(source, schema, secret), rng)
        if isinstance(self.mechanism, NoisyMaxGap):
            winner, gap = found  # type: ignore[misc]
            return self._table([winner]).append_column(self._lead, pyarrow.array([gap]))
        return self._table([found] if isinstance(found, int) else list(found))

    def _table(self, places: list[int]) -> pyarrow.Table:
        return pyarrow.table({self.column: self.candidates.take(pyarrow.array(places))})

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The candidates, and the lead with an error bar."""
        if not isinstance(self.mechanism, NoisyMaxGap):
            return [columns_of(drawn)]
        chosen, steps = columns_of(drawn)
        gap, unit = int(steps.values[0].as_py()), self.scores.unit
        low, high = (np.array([float(end * unit)]) for end in self.mechanism.lead(gap, self.level))
        return [(chosen, Column(self._lead, pyarrow.array([_number(gap * unit)]), low, high))]


def _number(value: Fraction) -> float:
    """A whole number as such, else a float."""
    return int(value) if value.denominator == 1 else float(value)
