"""How many values of a column lie between candidate bounds.

Each row that counts and has a value is in one cell, so a unit moves the counts together by as many rows as may count.
Values are read as they are stored, not clamped to the bounds that are declared now: what one unit can change does not
depend on values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.expression import Call, Expression, Literal, Name, columns_of
from noisette.query.kind import Kind, Value
from noisette.query.measure import Exact, Measure, sensitivity
from noisette.query.plan import Aggregate, Query, Relation, Scan, Where
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.query.sql.names import date, timestamp
from noisette.query.stability import shape_of
from noisette.questions.parts.cells import first_of

__all__ = ["ValueCells", "values_between"]


def values_between(rows: Relation, column: str, bounds: Sequence[tuple[Any, Any]], schema: Schema) -> "ValueCells":
    """The cells between all ends of the candidate bounds."""
    table = _table(rows, column)
    shape_of(rows, schema)  # which refuses tables that are not there
    kind = schema[table.table].column(column).kind
    read = tuple((_value(low, kind, column), _value(high, kind, column)) for low, high in bounds)
    if not all(low < high for low, high in read):  # type: ignore[operator]
        raise InputError("Each of bounds must be two different values, the lower one first.")
    ends = tuple(sorted({*((low, False) for low, _ in read), *((high, True) for _, high in read)}))
    counted = (("cells", Aggregate("quantile", _cell(Name(f"{table.alias}.{column}"), ends), Fraction(0))),)
    prepared = prepare(canonical(Query(rows, (), counted)), _unclamped(schema, table.table, column))
    return ValueCells(table.table, column, read, ends, prepared)


def _table(rows: Relation, column: str) -> Scan:
    """The table; a condition on the column itself would see it within its bounds, and this question sees all of it."""
    while isinstance(rows, Where):
        if any(name.partition(".")[2] == column for name in columns_of(rows.condition)):
            raise InputError(
                f"A condition reads {column} itself, which is compared within its bounds alone: ask without it."
            )
        rows = rows.source
    assert isinstance(rows, Scan)
    return rows


def _value(given: Any, kind: Kind, column: str) -> Value:
    """A bound as the column has its values."""
    if kind.number:
        return fraction(given, "each of bounds")
    if kind.type not in ("date", "timestamp") or not isinstance(given, str):
        raise InputError(f"{column} holds {kind.type}: bounds are numbers, or dates, of the column's own type.")
    return date(given) if kind.type == "date" else timestamp(given)


def _cell(value: Expression, ends: Sequence[tuple[Value, bool]]) -> Expression:
    """The cell of a value; NULL has none."""
    arms = [(Call("at_most" if on else "less", (value, Literal(end))), Literal(i)) for i, (end, on) in enumerate(ends)]
    return Call("case", (Call("is_null", (value,)), Literal(None), first_of(arms, Literal(len(ends)))))


def _unclamped(schema: Schema, table: str, column: str) -> Schema:
    """The schema without what is declared of a column's values, except for its type and grid."""
    old = schema[table].column(column)
    new = replace(old, kind=Kind(old.kind.type, grid=old.kind.grid))
    columns = tuple(new if each.name == column else each for each in schema[table].columns)
    return {**schema, table: replace(schema[table], columns=columns)}


@dataclass(frozen=True)
class ValueCells:
    """How many values there are in each cell; `ends` of cells, and whether a value that equals one is below it."""

    table: str
    column: str
    bounds: tuple[tuple[Value, Value], ...]
    ends: tuple[tuple[Value, bool], ...]
    prepared: Prepared

    @property
    def measure(self) -> Measure:
        """What gets noise."""
        return self.prepared.request.measures[0]

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        """As many rows as may count, each in a cell: at most as many cells move as rows, and as there are."""
        rows = sensitivity(self.measure, self.prepared.part, neighbours)
        cells = min(int(rows.l1), self.measure.cells)
        return Sensitivity(rows.l1, rows.l2_squared, rows.linf, cells, neighbours=neighbours)

    def read_as(self, schema: Schema) -> Schema:
        """The tables with the column as it is stored."""
        return _unclamped(schema, self.table, self.column)

    def numbers(self, exact: Exact) -> NDArray[np.int64]:
        """The counts of the cells."""
        return np.asarray(exact.measures[0][0], dtype=np.int64)

    @property
    def labels(self) -> dict[str, list[Any]]:
        """The candidates."""
        return {"low": [_plain(low) for low, _ in self.bounds], "high": [_plain(high) for _, high in self.bounds]}

    @property
    def weights(self) -> dict[str, NDArray[np.float64]]:
        """Which cells lie below, above and within each of the candidates."""
        cell, place = np.arange(len(self.ends) + 1), {end: i for i, end in enumerate(self.ends)}
        below = np.array([cell <= place[low, False] for low, _ in self.bounds], dtype=float)
        above = np.array([cell > place[high, True] for _, high in self.bounds], dtype=float)
        return {"below": below, "above": above, "retained": 1 - below - above}

    lost = ("below", "above")

    @property
    def notes(self) -> tuple[str, ...]:
        """What is counted."""
        bounded = self.prepared.request.limits is not None
        rows = f"at most {self.prepared.part.total:,} rows of one {self.prepared.shape.whose} are counted"
        return (*([rows] if bounded else []), "values are counted as they are stored, not clamped")


def _plain(value: Value) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value
