"""What candidate limits would leave out: rows, groups or values, for all candidates in one release.

`per_unit` and `value_cells` say what is counted and how far one unit can move it; noise is added once, and all numbers
are weighted sums of the same noisy ones, so more candidates cost more error but nothing more in privacy.
"""

import datetime
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.answers.column import moved_ends
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.exact.random import Random
from noisette.mechanisms import Gaussian, Geometric, calibrate
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical_text
from noisette.query.caveats import NOISE, Omission
from noisette.query.design import recorded
from noisette.query.estimate import Estimate, Noise
from noisette.query.expected import Expected
from noisette.query.frame import Frame
from noisette.query.plan import Scan, Where
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import about, declared
from noisette.questions.parts.per_unit import UnitCells, groups_of_units, rows_of_units
from noisette.questions.parts.rows import Rows, rows_of, rows_text
from noisette.questions.parts.value_cells import ValueCells, values_between

__all__ = ["LeftOut"]

Cells: TypeAlias = UnitCells | ValueCells
Floats: TypeAlias = NDArray[np.float64]

_LARGEST, _MANY, _HUGE = 2**20, 64, 2.0**62
_UNSEEN = "What a unit has beyond the largest candidate is not seen: left_out and share are lower bounds."
_ASK = (
    'Name candidates of one sort: rows=[1, 2, 4, 8], groups=[1, 2, 4] with by="ward", or a column and bounds=[(0, 9)].'
)


@dataclass(frozen=True)
class LeftOut(JsonQuestion):
    """How much candidate limits would leave out: on `rows` of a unit, on `groups` `by` keys, or `bounds` of a `column`.

    Each candidate has a row of the answer, with error bars: the `units` that have more, how much of theirs would be
    `left_out`, and which `share` of all that is; of bounds, how many values lie `below` and `above` them. What units
    have beyond the largest candidate is unknown, so `left_out` is a lower bound then.

    >>> LeftOut(rows=[1, 2, 4, 8])
    LeftOut(column=None, rows=(1, 2, 4, 8), groups=None, by=(), bounds=None, of=None)
    """

    column: str | None = None
    rows: Sequence[int] | None = None
    groups: Sequence[int] | None = None
    by: str | Sequence[str] = ()
    bounds: Sequence[tuple[Any, Any]] | None = None
    of: Rows = None

    def __post_init__(self) -> None:
        by = (self.by,) if isinstance(self.by, str) else self.by
        if not isinstance(by, tuple | list) or not all(isinstance(key, str) and key for key in by):
            raise InputError('by must name the keys of the groups: by="ward", or by=["ward", "age"].')
        if self.column is not None and not (isinstance(self.column, str) and self.column):
            raise InputError('column must be the name of a column, such as "age".')
        given = {name: getattr(self, name) for name in ("rows", "groups", "bounds") if getattr(self, name) is not None}
        if len(given) != 1 or bool(by) != ("groups" in given) or (self.column is None) == ("bounds" in given):
            raise InputError(_ASK)
        [(name, candidates)] = given.items()
        object.__setattr__(self, name, _read(name, candidates))
        object.__setattr__(self, "by", tuple(by))
        object.__setattr__(self, "of", rows_text(self.of))

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Count what is between the candidates, with noise."""
        rows = rows_of(self.of, self.column or next(iter(self.by), ""), schema)
        cells = self._cells(rows, schema)
        moved = cells.sensitivity(neighbours)
        mechanism = _noise(spend, moved)
        prepared = cells.prepared
        return about(
            prepared,
            Between(prepared, mechanism, moved, level, cells),
            text=_text(prepared),
            why="All is counted once, between two of the candidates: every number is a sum of the same noisy counts.",
            guarantee=mechanism.guarantee(moved),
            parts=[recorded(mechanism, cells.measure, moved)],
            covers=NOISE,
            omitted=[Omission(_UNSEEN)] if isinstance(cells, UnitCells) else [],
        )

    def _cells(self, rows: Frame, schema: Schema) -> Cells:
        limit = schema[_one_table(rows)].per_period
        if limit is not None and (self.bounds is None or self.column == limit.of):
            raise InputError(
                f"The policy retains at most {limit} before any question, so that none sees what is left out of it: "
                "ask about bounds of another column."
            )
        if self.bounds is not None:
            return values_between(rows.relation, self.column or "", self.bounds, schema)
        if self.rows is not None:
            return UnitCells("rows", tuple(self.rows), rows_of_units(rows.relation, self.rows, schema))
        keys, limits = rows.group_by(*self.by).count().query.keys, tuple(self.groups or ())
        return UnitCells("groups", limits, groups_of_units(rows.relation, keys, limits, schema))


def _read(name: str, given: Any) -> tuple[Any, ...]:
    """Candidates, checked as far as no column is needed for it."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not 0 < len(given) <= _MANY:
        raise InputError(f"{name} must be a list of 1 to {_MANY} candidates.")
    if name == "bounds":
        if any(isinstance(each, str) or not isinstance(each, Sequence) or len(each) != 2 for each in given):
            raise InputError("Each of bounds must be two values, the lower one first: bounds=[(0, 100), (0, 1000)].")
        return tuple((_plain(low), _plain(high)) for low, high in given)
    limits = tuple(whole(limit, f"each of {name}") for limit in given)
    if any(a >= b for a, b in pairwise(limits)) or limits[-1] > _LARGEST:
        raise InputError(f"{name} must ascend, up to {_LARGEST:,} at most: {name}=[1, 2, 4, 8].")
    return limits


def _plain(bound: Any) -> int | Fraction | str:
    """A bound as JSON can carry it: an exact number, or a date as a text."""
    if isinstance(bound, datetime.date):
        return bound.isoformat()
    try:
        found = fraction(bound, "each of bounds")
    except InputError:
        if isinstance(bound, str):  # a date, if the column holds dates
            return bound
        raise
    return found.numerator if found.denominator == 1 else found


def _one_table(rows: Frame) -> str:
    """The table whose limits are asked about."""
    relation = rows.relation
    while isinstance(relation, Where):
        relation = relation.source
    if not isinstance(relation, Scan) or rows.keys is not None:
        raise InputError('Limits belong to one table: ask of=curator.table("visits"), or where(...) of it.')
    return relation.table


def _noise(spend: Promise, moved: Sensitivity) -> Geometric | Gaussian:
    """Laplace or Gaussian noise, whichever errs less."""
    laplace = calibrate(Geometric, spend, sensitivity=moved)
    if spend.is_pure:
        return laplace
    gaussian = calibrate(Gaussian, spend, sensitivity=moved)
    return gaussian if gaussian.variance() < laplace.variance() else laplace


def _text(prepared: Prepared) -> str:
    """What is measured; how candidates pair up is not."""
    asked = canonical_text(prepared.query)
    return json.dumps({"question": "left out", "asked": asked, "declared": declared([prepared])})


@dataclass(frozen=True)
class Between:
    """Noisy numbers of cells: what each candidate leaves out is a sum of them, and another level is free."""

    prepared: Prepared
    mechanism: Geometric | Gaussian
    sensitivity: Sensitivity
    level: float
    cells: Cells

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The widest error bar of each column, which is that of the first candidate."""
        weights = self.cells.weights
        shown = [name for name in weights if name != "retained"]
        kind = "Gaussian" if isinstance(self.mechanism, Gaussian) else "Laplace"
        noise = f"{kind} noise on {weights['retained'].shape[1]} numbers"
        steps = float(self.sensitivity.l1 * self.cells.measure.grid)
        what = "values" if isinstance(self.cells, ValueCells) else "units"
        widths = {name: self._estimate(weights[name], 0.0).half_width(self._noises(self.level)) for name in shown}
        return [
            tuple(
                Expected(
                    name, noise, f"{what}: {steps:.6g}", float(widths[name].max()), {}, None, self._notes(widths[name])
                )
                for name in shown
            )
        ]

    def _notes(self, widths: Floats) -> str:
        several = isinstance(self.cells, UnitCells) and len(widths) > 1
        least = f"its error bar is narrowest, ± {widths[-1]:,.3g}, at the last candidate"
        return "; ".join([*([least] if several else []), *self.cells.notes])

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and add noise."""
        exact = source.aggregate(self.prepared.request, self.cells.read_as(schema), secret)
        noisy = np.asarray(self.mechanism(self.cells.numbers(exact), rng))
        return pyarrow.table({"noisy": pyarrow.array(noisy.astype(float))})

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each candidate; nothing can be below 0, and a share not above 1 or of nothing."""
        noisy, weights = drawn.column("noisy").to_numpy(), self.cells.weights
        labels = [Column(name, pyarrow.array(values)) for name, values in self.cells.labels.items()]
        shown = [self._column(name, weight, noisy) for name, weight in weights.items() if name != "retained"]
        lost = np.sum([weights[name] for name in self.cells.lost], axis=0)
        return [(*labels, *shown, self._share(lost, weights["retained"], noisy))]

    def _column(self, name: str, weight: Floats, noisy: Floats) -> Column:
        value, low, high = self._ends(weight, noisy, self.level)
        whole = np.minimum(np.rint(value), _HUGE)
        return Column(name, pyarrow.array(whole.astype(np.int64)), np.minimum(low, whole), np.maximum(high, whole))

    def _share(self, lost: Floats, retained: Floats, noisy: Floats) -> Column:
        """lost / (lost + retained), between its values at the ends of both, each of which misses half as often.

        Where all of these may be 0, and the units (or values) beyond the first candidate, too, it may be a share of
        nothing: then there is no number.
        """
        surer, beyond = (1 + self.level) / 2, next(iter(self.cells.weights.values()))[:1]
        a, b, seen = (self._ends(weight, noisy, surer) for weight in (lost, retained, beyond))
        none = a[1] + b[1] + seen[1] <= 0
        value, low, high = (_part(x, y) for x, y in ((a[0], b[0]), (a[1], b[2]), (a[2], b[1])))
        ends = np.where(none, 0.0, low), np.where(none, 1.0, high)
        return Column("share", pyarrow.array(value, mask=none), *ends, span=(0.0, 1.0))

    def _ends(self, weight: Floats, noisy: Floats, level: float) -> tuple[Floats, Floats, Floats]:
        """Weighted sums with the ends of their error bars, none below 0."""
        estimate = self._estimate(weight, weight @ noisy)
        ends = moved_ends(estimate.value, estimate.interval(self._noises(level)), (0.0, np.inf))
        return np.maximum(estimate.value, 0), *ends

    def _estimate(self, weight: Floats, value: Any) -> Estimate:
        slopes = {i: weight[:, i] for i in range(weight.shape[1]) if weight[:, i].any()}
        return Estimate(np.zeros(len(weight)) + value, slopes)

    def _noises(self, level: float) -> dict[int, Noise]:
        spread, half = math.sqrt(self.mechanism.variance()), self.mechanism.interval(level)
        one = Noise(
            spread, float(half), NormalDist().inv_cdf((1 + level) / 2), whole=isinstance(self.mechanism, Geometric)
        )
        return dict.fromkeys(range(self.cells.weights["retained"].shape[1]), one)


def _part(lost: Floats, retained: Floats) -> Floats:
    """lost / (lost + retained), in between where both are 0.

    >>> _part(np.array([1.0, 0.0]), np.array([3.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    whole = lost + retained
    return np.asarray(np.divide(lost, whole, out=np.zeros_like(whole), where=whole > 0))


examples = [
    LeftOut(rows=[1, 2, 4, 8]),
    LeftOut(groups=[1, 2], by=["ward", "diagnosis"], of="SELECT * FROM visits WHERE age >= 18"),
    LeftOut("cost", bounds=[(0, 1000), (0, 2000)]),
]
