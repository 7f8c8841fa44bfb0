"""Columns that may be filtered but not grouped: refused wherever their values would make groups.

The values of a column make groups if a key is computed from it, in the query or in a sub-query below, from an aggregate
of it over the rows of one unit, or from a column of a public table that is joined on it. A column that is joined on it
is equal to it.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from noisette.errors import InputError
from noisette.query.expression import Expression, columns_of
from noisette.query.plan import Copies, Join, PerUnit, Query, Relation, Scan, Select, Where
from noisette.query.schema import Schema
from noisette.query.stability import shape_of

__all__ = ["check_groups"]


def check_groups(query: Query, schema: Schema) -> None:
    """Refuse keys that are made of a column for which the policy says group = false.

    >>> from noisette.query.expression import Name
    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> schema = {"visits": Table("visits", (Column("ward", Kind("text"), group=False),))}
    >>> check_groups(Query(Scan("visits", "t1"), (Name("t1.ward"),), ()), schema)
    Traceback (most recent call last):
    noisette.errors.InputError: visits.ward may be filtered but not grouped, by the policy: take it out of the keys.
    """
    if all(column.group for table in schema.values() for column in table.columns):
        return
    for table, name in _stored(query.keys, query.source, schema):
        if not schema[table].column(name).group:
            raise InputError(f"{table}.{name} may be filtered but not grouped, by the policy: take it out of the keys.")


def _stored(expressions: Iterable[Expression], source: Relation, schema: Schema) -> Iterator[tuple[str, str]]:
    """The stored columns, each with its table, whose values some expressions over a relation depend on."""
    for name in dict.fromkeys(name for expression in expressions for name in columns_of(expression)):
        yield from _origin(name, source, schema)


def _origin(name: str, source: Relation, schema: Schema) -> Iterator[tuple[str, str]]:
    match source:
        case Scan(table, alias):
            short = name.removeprefix(f"{alias}.")
            if name != short and any(column.name == short for column in schema[table].columns):
                yield table, short
        case Where(inner) | Copies(inner):
            yield from _origin(name, inner, schema)
        case Join(left, right, on):
            yield from _origin(name, left, schema)
            yield from _origin(name, right, schema)
            for side, other, turned in ((left, right, False), (right, left, True)):
                for own, partner in (pair[::-1] if turned else pair for pair in on):
                    shape = shape_of(side, schema)
                    if name == own or (shape.public and name in shape.columns):
                        yield from _origin(partner, other, schema)
        case Select(inner, columns):
            yield from _stored([e for n, e in columns if n == name], inner, schema)
        case PerUnit(inner, keys, aggregates):
            of = [a.of for n, a in aggregates if n == name and a.of is not None]
            yield from _stored([*(e for n, e in keys if n == name), *of], inner, schema)
        case _:
            assert_never(source)
