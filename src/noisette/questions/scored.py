"""Scores that an engine computes: for each key of a column how many rows it has, or for each query its number.

`reach` how far one unit can move them · `monotone` whether all move in one direction when a unit comes or goes
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import gcd

import numpy as np
from numpy.typing import NDArray

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.frame import Frame, frame
from noisette.query.measure import Measure, sensitivity
from noisette.query.plan import Aggregate, Query
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema

__all__ = ["Scores", "counted", "rows_of", "scores_of"]


def rows_of(of: Frame | None, column: str, schema: Schema) -> Frame:
    """The rows that a question is about: those of a frame, or of the one private table (that has the column)."""
    if isinstance(of, Frame):
        return of
    if of is not None:
        raise InputError('of must be rows that were made with a table\'s methods: of=curator.table("visits").')
    private = [table for table in schema.values() if not table.public]
    having = [table for table in private if any(known.name == column for known in table.columns)]
    tables = having if len(private) > 1 else private
    if len(tables) != 1:
        raise InputError('Say which rows are meant: of=curator.table("visits"), or where(...) of it.')
    return frame(schema, tables[0].name)


def counted(column: str, of: Frame | None, schema: Schema) -> Prepared:
    """How many rows each value of a column (or of an expression) has."""
    query = rows_of(of, column, schema).group_by(column).count().query
    return prepare(canonical(query), schema)


@dataclass(frozen=True)
class Scores:
    """Whole scores of candidates; each prepared query measures one or, if it has keys, all of them."""

    prepared: tuple[Prepared, ...]
    unit: Fraction

    def read(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        """The scores themselves: to be called once they are paid for."""
        found = [source.aggregate(one.request, schema, secret).measures[0] for one in self.prepared]
        steps = [int(_measure(one).grid / self.unit) for one in self.prepared]
        return np.concatenate([values * step for values, step in zip(found, steps, strict=True)])

    def reach(self, neighbours: Neighbours) -> Sensitivity:
        """How far one unit can move the scores."""
        parts = [self._reach(one, neighbours) for one in self.prepared]
        if len(parts) == 1:
            return parts[0]
        l1, squares = sum(p.l1 for p in parts), sum(p.l2_squared for p in parts)
        l0 = sum(p.l0 for p in parts)
        return Sensitivity(l1, squares, max(p.linf for p in parts), l0, neighbours=neighbours)

    def _reach(self, one: Prepared, neighbours: Neighbours) -> Sensitivity:
        reach, step = sensitivity(_measure(one), one.part, neighbours), _measure(one).grid / self.unit
        sizes = reach.l1 * step, reach.l2_squared * step**2, reach.linf * step
        return Sensitivity(*sizes, reach.l0, neighbours=neighbours)

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
