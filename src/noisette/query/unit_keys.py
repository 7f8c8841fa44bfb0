"""Which columns of a relation tell whose a row is: the unit itself, and foreign keys that lead to it."""

from collections.abc import Iterator
from itertools import product as combinations
from typing import TypeAlias, assert_never

from noisette.query.expression import Name
from noisette.query.once import once
from noisette.query.plan import Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.reads import tables_of
from noisette.query.schema import Schema, Table
from noisette.query.shape import UNIT
from noisette.query.variants import plain

__all__ = ["meet_in_unit", "table_keys", "unit_names", "unit_pairs"]

_Leading: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""A key that tells whose a row is, the unit or the columns of a table, and the columns of a relation that hold it."""


def unit_names(relation: Relation, schema: Schema) -> tuple[str, ...]:
    """The columns of a relation that hold the unit itself."""
    return tuple(names[0] for key, names in _leading(relation, schema) if key == (UNIT,))


@once
def _leading(relation: Relation, schema: Schema) -> tuple[_Leading, ...]:
    """All columns of a relation that lead to its units: rows that are equal in one and the same key have one unit."""
    match relation:
        case Scan(table, alias):
            return tuple((key, tuple(f"{alias}.{c}" for c in columns)) for key, columns in _led(schema[table], schema))
        case Where(source, _) | Copies(source, _, _):
            return _leading(source, schema)
        case Select(source, columns) | PerUnit(source, columns, _):
            found = _leading(source, schema)
            names = {name: [n for n, e in columns if e == Name(name)] for _, inner in found for name in inner}
            return tuple((key, new) for key, inner in found for new in combinations(*(names[name] for name in inner)))
        case Join(left, right, _, how):
            if _private(left, schema) and _private(right, schema) and not meet_in_unit(relation, schema):
                return ()
            return _leading(left, schema) + (_leading(right, schema) if how == "inner" else ())
        case _:
            assert_never(relation)


def meet_in_unit(join: Join, schema: Schema) -> bool:
    """Whether rows of both sides meet only where both belong to the same unit: a key that tells it is joined on."""
    return bool(unit_pairs(join, schema))


def unit_pairs(join: Join, schema: Schema) -> set[tuple[str, str]]:
    """The pairs of columns that are joined on and tell whose the rows of both sides are."""
    before, after = (_leading(side, schema) for side in (join.left, join.right))
    keys = [set(zip(x, y, strict=True)) for a, x in before for b, y in after if a == b]
    met = {(plain(a), plain(b)) for a, b in join.on}
    return {pair for key in keys if key <= met for pair in key}


def _private(relation: Relation, schema: Schema) -> bool:
    return any(not table.public for table in tables_of(relation, schema))


def _led(table: Table, schema: Schema) -> Iterator[_Leading]:
    """The same of the columns of a table: its unit, the first foreign key to it, and those that other tables have."""
    if table.public or table.unit is None:
        return
    if table.unit_column is not None:
        yield (UNIT,), (table.unit_column,)
    if table.through:
        pairs = sorted(table.through[0].on, key=lambda pair: pair[1])
        yield (table.through[0].table, *(there for _, there in pairs)), tuple(here for here, _ in pairs)
    for key in sorted(map(sorted, table_keys(table, schema))):
        yield (table.name, *key), tuple(key)


def table_keys(table: Table, schema: Schema) -> set[frozenset[str]]:
    """The keys of a table: columns that foreign keys refer to; no two rows have equal values there."""
    links = (link for other in schema.values() for link in other.through)
    return {frozenset(link.there) for link in links if link.table == table.name}
