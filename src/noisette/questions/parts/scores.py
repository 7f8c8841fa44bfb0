"""Scores that an engine computes: for each key of a column its number of rows, or for each query its number.

`sensitivity` how far one unit can move them · `monotone` whether all move in one direction when a unit comes or goes
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
from noisette.query.measure import Measure, sensitivity
from noisette.query.plan import Aggregate, Query
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema

__all__ = ["Scores", "scores_of"]


@dataclass(frozen=True)
class Scores:
    """Whole scores of candidates; each prepared query measures one or, if it has keys, all of them."""

    prepared: tuple[Prepared, ...]
    unit: Fraction

    def read(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        """The scores themselves: to be called once they are paid for."""
        found = [source.compute(one.request, schema, secret).measures[0] for one in self.prepared]
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
