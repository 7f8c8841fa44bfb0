"""The stored columns that a question reads, by table: an engine that fetches columns fetches these and no others."""

from collections.abc import Iterable

from noisette.engines.tie_break import tie_breakers
from noisette.query.expression import columns_of
from noisette.query.measure import Request
from noisette.query.plan import Relation
from noisette.query.reads import columns_read, tables_of, tables_read
from noisette.query.schema import Schema, Table

__all__ = ["identifying_columns", "needed_columns", "needed_of_request"]

Needed = dict[str, frozenset[str]]


def needed_of_request(request: Request, schema: Schema) -> Needed:
    """The columns that a request reads: its measures, keys and tie-breaking columns, and what leads to the unit."""
    asked = {name for m in request.measures if m.of is not None for name in columns_of(m.of)}
    ties = () if request.limits is None else tie_breakers(request, asked, schema)
    used = {*asked, *ties, *(n for key in request.keys for n in columns_of(key))}
    return needed_columns(request.source, used, schema)


def needed_columns(relation: Relation, used: Iterable[str], schema: Schema) -> Needed:
    """The columns that are named, the unit, and the keys that lead to it; all by which rows of a period are chosen."""
    tables = tables_read(relation, schema)
    found: dict[str, set[str]] = {table.name: set() for table in tables}
    identifying = (pair for table in tables for pair in identifying_columns(table))
    chosen_by = ((t.name, c.name) for t in tables_of(relation, schema) if t.per_period for c in t.columns)
    for name, column in (*identifying, *chosen_by, *columns_read(relation, schema, used)):
        found[name].add(column)
    return {name: frozenset(columns) for name, columns in found.items()}


def identifying_columns(table: Table) -> list[tuple[str, str]]:
    """The columns that say whose a row is, with their tables: the unit, or the keys that lead to it."""
    if table.through:
        link = table.through[0]
        return [*((table.name, c) for c in link.here), *((link.table, c) for c in link.there)]
    return [] if table.public or table.unit is None else [(table.name, table.unit)]
