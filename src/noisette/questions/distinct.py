"""How many different values a column has, by what each unit can be credited with (`releases.sketches.distinct`).

All rows of a unit are read: which of its values it is credited with is not chosen in advance, only how many. So no
limit on rows is needed, and a unit moves the number by the chosen limit, whatever it holds. NULL is no value.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.query.beyond import rows_within
from noisette.query.canonical import canonical, canonical_text
from noisette.query.caveats import NOISE, Omission, beyond_bounds, retained, sentences
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.plan import Query, Relation, Select
from noisette.query.prepare import read_of
from noisette.query.schema import Schema
from noisette.query.shape import ROW, Shape
from noisette.query.stability import shape_of
from noisette.query.uses import changed_by_bounds, uses_of
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.rows import Rows, rows_of
from noisette.releases.sketches.distinct import DistinctCount, credited

__all__ = ["Distinct"]

_VALUE = "d.value"
_MOST = 64
_WHY = "Each {0} is credited with few of its values, so that it changes the number by few, however many it has."


@dataclass(frozen=True)
class Distinct(JsonQuestion):
    """How many different values a column (or an expression) has among the rows `of` a table or a frame.

    A unit counts for at most `limit` of its values, 1, 2, 4, ... up to `most`, which is chosen privately and released.
    The lower end of the error bar holds as stated for the number of all values; the upper end holds for those that can
    be credited within the limit.

    >>> Distinct("diagnosis")
    Distinct(column='diagnosis', of=None, most=64)
    """

    column: str
    of: Rows = None
    most: int = _MOST

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose a limit, and count what can be credited within it."""
        query = canonical(rows_of(self.of, self.column, schema).group_by(self.column).count().query)
        relation = Select(rows_within(query.source, schema, query.keys, query.keys), ((_VALUE, query.keys[0]),))
        shape = _private(shape_of(relation, schema))
        most = 1 if shape.unit == ROW else whole(self.most, "most")
        release = DistinctCount.calibrated(spend, most=most, neighbours=neighbours)
        read = read_of(query, schema)
        uses = uses_of(query.source, [("distinct", query.keys[0])], dict(read))
        unit = shape.whose
        return Offer(
            _text(query, most, [read, shape.columns, shape.retained, *changed_by_bounds(uses)]),
            release.guarantee(),
            unit,
            _WHY.format(unit),
            [recorded(mechanism, Measure("distinct"), moved) for mechanism, moved in release.parts],
            [sentences([*retained(shape), *beyond_bounds(uses, dict(read), shape), *_unseen(shape, most)], NOISE)],
            Credits(relation, release, level),
        )


def _private(shape: Shape) -> Shape:
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    if shape.unit == ROW and shape.rows != 1:
        raise InputError("Join on a column of the public table that has no repeats: each row here must stay one row.")
    return shape


def _unseen(shape: Shape, most: int) -> list[Omission]:
    """What the limit leaves out; nothing where each row is a unit, with one value."""
    if shape.unit == ROW:
        return []
    within = f"within the released limit of at most {most:,}"
    return [
        Omission(
            f"Values that cannot be credited to any {shape.whose} {within} are left out, so the lower end holds for "
            "all values and the upper end for those that are credited."
        )
    ]


def _text(query: Query, most: int, rests_on: list[Any]) -> str:
    """What is measured: the column, the rows, and the largest limit."""
    digest = hashlib.sha256(repr(rests_on).encode()).hexdigest()[:16]
    return json.dumps({"question": "distinct", "asked": canonical_text(query), "most": most, "declared": digest})


@dataclass(frozen=True)
class Credits:
    """The chosen limit and the noisy number of values that can be credited within it; another level is free."""

    relation: Relation
    release: DistinctCount
    level: float
    columns = ((_VALUE, "value"),)

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error at the smallest limit, and at the largest."""
        limits = self.release.limits
        widths = [self.release.half_width(limit, self.level) for limit in limits]
        kind = type(self.release.noise[0]).__name__.replace("Geometric", "Laplace")
        note = f"at the limit 1: at {limits[-1]:,} it is ± {widths[-1]:,.3g}" if len(limits) > 1 else ""
        moved = f"values: the limit, 1 to {limits[-1]:,}" if len(limits) > 1 else "values: 1"
        return [(Expected("distinct", f"{kind} noise after a choice of the limit", moved, widths[0], {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Read who holds which value, choose the limit and add noise."""
        rows = source.rows(self.relation, dict(self.columns), schema, secret)
        values = rows.column("value").combine_chunks()
        there = values.is_valid().to_numpy(zero_copy_only=False)
        held = values.dictionary_encode().indices.fill_null(0).to_numpy(zero_copy_only=False)[there]
        who = rows.column("unit").to_numpy()[there] if "unit" in rows.column_names else np.arange(held.size)
        limit, noisy = self.release(credited(who, held, self.release.limits), rng)
        return pyarrow.table({"distinct": [noisy], "limit": [limit]})

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The number with its error bar, which is never below 0, and the limit."""
        value, limit = (drawn.column(name).combine_chunks() for name in ("distinct", "limit"))
        half = self.release.half_width(limit[0].as_py(), self.level)
        middle = value.to_numpy().astype(float)
        bar = Column("distinct", value, middle - half, middle + half).within((0, np.inf))
        return [(bar, Column("limit", limit))]


examples = [
    Distinct("diagnosis"),
    Distinct("FLOOR(age / 10)", of="SELECT * FROM visits WHERE ward = 'emergency'", most=1),
    Distinct("cost", most=4),
]
