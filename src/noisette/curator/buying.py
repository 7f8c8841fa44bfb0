"""Bounds and keys that are bought instead of declared: what to ask for them, and the table with what was found.

Bounds are powers of two: each value is put into the cell between two of them, and the cells of the smallest and the
largest values are found as quantiles 0 and 1, a few ranks within. About 10/epsilon rows on either side may lie beyond.
Keys are those that enough units share, told by the optimal rule for (epsilon, delta).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from noisette.errors import InputError, NoisetteError
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Value, in_order
from noisette.query.plan import Aggregate, Key, Query, Scan
from noisette.query.schema import Column, Schema, Table

__all__ = ["bounds_query", "keys_query", "offered", "with_bounds", "with_keys"]

_FINEST, _LARGEST = -20, 48  # exponents of the edges


def offered(schema: Schema, name: str, what: str) -> tuple[Table, Column]:
    """The column `table.column` (or `column`, if there is one table) whose bounds or keys the owner lets be bought."""
    table_name, _, column_name = name.rpartition(".")
    if not table_name and len(schema) == 1:
        table_name = next(iter(schema))
    if table_name not in schema:
        raise InputError(f"Name the column with its table, one of {', '.join(sorted(schema))}: visits.age.")
    table = schema[table_name]
    column = table.column(column_name)
    if not (column.private_bounds if what == "bounds" else column.private_keys):
        raise InputError(f'The {what} of {column.name} are not for sale: its owner can write {what} = "private".')
    return table, column


def _edges(column: Column) -> list[Fraction]:
    powers = [Fraction(2) ** k for k in range(0 if column.kind.type == "integer" else _FINEST, _LARGEST + 1)]
    return [*(-power for power in reversed(powers)), Fraction(0), *powers]


def bounds_query(table: Table, column: Column) -> Query:
    """The cells in which the smallest and the largest values lie."""
    if not column.kind.number:
        raise InputError(f"{column.name} is no number, so it has no bounds to buy.")
    source = Scan(table.name, "t1")
    value = Name(f"t1.{column.name}")
    arms: list[Expression] = [Call("is_null", (value,)), Literal(None)]
    for i, edge in enumerate(_edges(column)):
        arms += [Call("less", (value, Literal(edge))), Literal(i)]
    cell = Call("case", (*arms, Literal(len(_edges(column)))))
    ends = tuple((name, Aggregate("quantile", cell, Fraction(at))) for name, at in (("low", 0), ("high", 1)))
    return Query(source, (), ends)


def with_bounds(
    schema: Schema, table: Table, column: Column, low: int, high: int
) -> tuple[Schema, tuple[Fraction, Fraction]]:
    """The schema with bounds around the cells that were found."""
    edges = _edges(column)
    below, above = edges[max(0, min(low, high) - 1)], edges[min(len(edges) - 1, max(low, high))]
    found = replace(column, kind=replace(column.kind, low=below, high=above), private_bounds=False)
    return _with(schema, table, found), (below, above)


def keys_query(table: Table, column: Column) -> Query:
    """Which values enough units share."""
    return Query(Scan(table.name, "t1"), (Name(f"t1.{column.name}"),), ((column.name, Key(0)),))


def with_keys(schema: Schema, table: Table, column: Column, keys: Sequence[Value]) -> Schema:
    """The schema with the keys that were found; rows with others, or with NULL if that was not found, are left out."""
    if not in_order(keys):
        raise NoisetteError(
            "No key is shared by enough people to be told, which is an answer and was charged: spend more, or let the "
            "owner declare the keys."
        )
    kind = replace(column.kind, keys=in_order(keys))
    return _with(schema, table, replace(column, kind=kind, private_keys=False))


def _with(schema: Schema, table: Table, column: Column) -> Schema:
    columns = tuple(column if old.name == column.name else old for old in table.columns)
    return {**schema, table.name: replace(table, columns=columns)}
