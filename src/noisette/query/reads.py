"""What a relation reads: its tables, those that say whose rows theirs are, and the stored columns."""

from collections.abc import Iterable, Iterator

from noisette.query.expression import Expression, columns_of
from noisette.query.kind import Kind
from noisette.query.plan import Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Schema, Table
from noisette.query.variants import plain

__all__ = ["columns_read", "expressions_in", "kinds_read", "limited_in", "nodes_of", "tables_of", "tables_read"]


def expressions_in(relation: Relation) -> tuple[Expression, ...]:
    """The expressions a relation's own node evaluates on its source."""
    match relation:
        case Where(_, condition):
            return (condition,)
        case Select(_, columns):
            return tuple(e for _, e in columns)
        case PerUnit(_, keys, aggregates):
            return (*(e for _, e in keys), *(a.of for _, a in aggregates if a.of is not None))
        case _:
            return ()


def tables_of(relation: Relation, schema: Schema) -> tuple[Table, ...]:
    """The tables a relation is about."""
    return tuple(schema[node.table] for node in nodes_of(relation) if isinstance(node, Scan))


def tables_read(relation: Relation, schema: Schema) -> tuple[Table, ...]:
    """The tables a relation is about and those that say whose rows theirs are, each once."""
    found = tables_of(relation, schema)
    return tuple(dict.fromkeys([*found, *(schema[link.table] for table in found for link in table.through)]))


def kinds_read(relation: Relation, schema: Schema, used: Iterable[str]) -> tuple[tuple[str, Kind], ...]:
    """The declared kinds of the stored columns that a relation reads, or that are used of it.

    Where they change, so may the answer.
    """
    read = columns_read(relation, schema, used)
    return tuple((f"{table}.{name}", schema[table].column(name).kind) for table, name in read)


def columns_read(relation: Relation, schema: Schema, used: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The stored columns that a relation reads, or that are used of it, each with its table."""
    nodes = tuple(nodes_of(relation))
    names = {*used, *(name for node in nodes for e in expressions_in(node) for name in columns_of(e))}
    names |= {name for node in nodes if isinstance(node, Join) for pair in node.on for name in pair}
    names = {plain(name) for name in names}
    stored = {
        (table, c.name)
        for table, alias in {(node.table, node.alias) for node in nodes if isinstance(node, Scan)}
        for c in schema[table].columns
        if f"{alias}.{c.name}" in names
    }
    return tuple(sorted(stored, key=".".join))


def limited_in(relation: Relation) -> dict[str, tuple[str, ...]]:
    """For each table of a relation the columns that are read within their bounds, by any of its scans."""
    found: dict[str, set[str]] = {}
    for node in nodes_of(relation):
        if isinstance(node, Scan):
            found.setdefault(node.table, set()).update(plain(name).partition(".")[2] for name in node.also)
    return {table: tuple(sorted(names)) for table, names in found.items()}


def nodes_of(relation: Relation) -> Iterator[Relation]:
    """A relation, and all those that it is made of."""
    yield relation
    match relation:
        case Join(left, right):
            yield from nodes_of(left)
            yield from nodes_of(right)
        case Where(source) | Select(source) | PerUnit(source) | Copies(source):
            yield from nodes_of(source)
