"""One sum over all rows, in which the total of each unit is clipped.

With s(u) the sum of x over the rows of unit u, the sum over u of max(-T, min(s(u), T)) moves by at most T if a unit
comes or goes, and by 2 T if one is replaced, T if no x is negative. To drop all but t rows, for the same noise at
T = t max|x|, leaves out at least as much wherever no x is negative: what the t rows add up to is at most
min(s(u), T). And T can lie below max|x|, where most values are small.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from noisette.exact.number import floor_log2
from noisette.query.canonical import canonical
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import LARGEST, Kind
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Key, Ordering, PerUnit, Query, Result, ResultCall, aggregates_in
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema, all_grouped
from noisette.query.stability import shape_of
from noisette.questions.parts.cells import first_of

__all__ = ["ClippedTotal", "one_sum"]

_BELOW = 2**8  # the least candidate is the largest value divided by this
_TOTAL = Name("u.s")


def one_sum(queries: Sequence[Query]) -> Aggregate | None:
    """The only aggregate of one query without keys, if that is a sum."""
    found = {aggregate for query in queries for aggregate in aggregates_in(query)}
    if len(queries) == 1 and not queries[0].keys and len(found) == 1 and next(iter(found)).function == "sum":
        return next(iter(found))
    return None


@dataclass(frozen=True)
class ClippedTotal:
    """A query of one sum, its rows by unit, and the candidates T."""

    query: Query
    total: Aggregate
    source: PerUnit
    unit: str
    limits: tuple[Fraction, ...]

    @staticmethod
    def of(query: Query, total: Aggregate, schema: Schema, most_rows: int) -> "ClippedTotal":
        """Candidates are powers of two times the grid, from below the largest value to `most_rows` of it."""
        shape = shape_of(query.source, schema)
        assert total.of is not None
        kind = kind_of(total.of, shape.columns)
        source = PerUnit(query.source, (), ((_TOTAL.name, total),))
        return ClippedTotal(query, total, source, shape.whose, _candidates(kind, most_rows))

    def prepared(self, schema: Schema) -> Prepared:
        """How many units have totals between two candidates."""
        size = Call("abs", (_present(_TOTAL),))
        arms = [(Call("at_most", (size, Literal(limit))), Literal(i)) for i, limit in enumerate(self.limits)]
        cell = first_of(arms, Literal(len(self.limits)))
        counted = Query(self.source, (cell,), (("cell", Key(0)), ("n", Aggregate("rows"))))
        return prepare(canonical(counted), all_grouped(schema))

    def clipped(self, limit: Fraction) -> Query:
        """The query with each unit's total clipped."""
        within = Call("least", (Call("greatest", (_present(_TOTAL), Literal(-limit))), Literal(limit)))
        new = Aggregate("sum", within)
        order = tuple(Ordering(_with(one.by, self.total, new), one.descending) for one in self.query.order)
        outputs = tuple((name, _with(result, self.total, new)) for name, result in self.query.outputs)
        having = None if self.query.having is None else _with(self.query.having, self.total, new)
        return canonical(replace(self.query, source=self.source, outputs=outputs, having=having, order=order))


def _candidates(kind: Kind, most_rows: int) -> tuple[Fraction, ...]:
    """Powers of two times the grid, from far below the largest value to `most_rows` of it.

    >>> _candidates(Kind("integer", Fraction(0), Fraction(1000), Fraction(1)), 2)[::4]
    (Fraction(2, 1), Fraction(32, 1), Fraction(512, 1))
    """
    largest = max(*map(abs, kind.ends), kind.grid or Fraction(0)) or Fraction(1)
    step = _multiple(kind.grid or Fraction(2) ** floor_log2(largest / _BELOW), largest / _BELOW)
    doubled = (step * 2**i for i in range(floor_log2(largest * most_rows / step) + 2))
    return tuple(limit for limit in doubled if limit <= LARGEST)


def _multiple(grid: Fraction, first: Fraction) -> Fraction:
    """The grid times the largest power of two that is not above `first`, or the grid."""
    return grid * (1 << max(floor_log2(first / grid), 0))


def _present(value: Expression) -> Expression:
    """0 where a unit has no value."""
    return Call("coalesce", (value, Literal(0)))


def _with(result: Result, old: Aggregate, new: Aggregate) -> Result:
    """A result that uses another aggregate."""
    if isinstance(result, ResultCall):
        return replace(result, arguments=tuple(_with(part, old, new) for part in result.arguments))
    return new if result == old else result
