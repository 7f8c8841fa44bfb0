"""How many rows with one value of a column a join may use, where rows of different units meet.

The policy declares it column by column (`rows_per_value`), and joins see to it: of more rows the first ones in a keyed
order are used. `docs/proofs/joins.md` says what one unit can then change.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from noisette.query.expression import Name
from noisette.query.plan import Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Schema

__all__ = ["PerValue", "rows_per_value"]


@dataclass(frozen=True)
class PerValue:
    """At most `rows` rows with equal values in the `columns`, none of them NULL."""

    columns: tuple[str, ...]
    rows: int


def rows_per_value(names: Iterable[str], relation: Relation, schema: Schema) -> PerValue | None:
    """The least multiplicity that is declared of columns of a relation, of the rows that agree in all that have one.

    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> visits = Table("visits", (Column("ward", Kind("text"), rows_per_value=3), Column("day", Kind("date"))))
    >>> rows_per_value(["v.ward", "v.day"], Scan("visits", "v"), {"visits": visits})
    PerValue(columns=('v.ward',), rows=3)
    """
    found = {name: rows for name in names for rows in _declared(name, relation, schema)}
    return PerValue(tuple(sorted(found)), min(found.values())) if found else None


def _declared(name: str, relation: Relation, schema: Schema) -> Iterator[int]:
    """What is declared of the stored column that a column of a relation is, if it is one as it is."""
    match relation:
        case Scan(table, alias):
            plain = name.removeprefix(f"{alias}.")
            columns = schema[table].columns if plain != name else ()
            yield from (c.rows_per_value for c in columns if c.name == plain and c.rows_per_value is not None)
        case Where(source):
            yield from _declared(name, source, schema)
        case Select(source, columns) | PerUnit(source, columns, _):
            of = dict(columns).get(name)
            yield from _declared(of.name, source, schema) if isinstance(of, Name) else ()
        case Join(left, right):
            yield from _declared(name, left, schema)
            yield from _declared(name, right, schema)
        case Copies():  # nothing is declared of slices that stand one below the other
            return
        case _:
            assert_never(relation)
