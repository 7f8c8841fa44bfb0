"""Columns that may be filtered but not grouped: refused wherever their values would make groups.

The values of a column make groups if a key is computed from it, in the query or in a sub-query below. They also do if a
condition on it decides which rows carry which value of a key. What is filtered is alike for all groups:

    WHERE dx = 'hiv' GROUP BY ward                          filtered
    WHERE dx = p.code GROUP BY p.code                       a condition on a key and dx: groups of dx
    SELECT 'hiv' ... WHERE dx = 'hiv' UNION ALL ...         the same, on dx and the number of the slice
    LEFT JOIN (... WHERE dx = 'hiv') AS f ... f.x IS NULL   where no partner is found, dx is another one
    (SELECT u, count(*) ... WHERE dx = 'hiv' GROUP BY u)    the number of a unit's rows, by dx

So each column of a relation is traced to `Node`s: stored columns, rows of public tables (of which one column tells the
others), numbers of copies and the like. A condition links all nodes that it reads; whatever is linked to a key makes
groups.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, assert_never

from noisette.errors import InputError
from noisette.query.expression import Call, Expression, Name, columns_of
from noisette.query.plan import Copies, Join, PerUnit, Query, Relation, Scan, Select, Where
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.query.unit_keys import unit_names, unit_pairs

__all__ = ["check_groups"]

Node: TypeAlias = tuple[int, str, str]
"""Which table of the query (0 for private ones, however often they are read), its name, and a column of it.

Without names: a row of a public table, the number of a copy, an aggregate of a unit, whether a partner is found.
"""

Nodes: TypeAlias = frozenset[Node]


def check_groups(query: Query, schema: Schema) -> None:
    """Refuse keys that are made of a column for which the policy says group = false.

    >>> from noisette.query.expression import Name
    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> schema = {"visits": Table("visits", (Column("ward", Kind("text"), group=False),))}
    >>> check_groups(Query(Scan("visits", "t1"), (Name("t1.ward"),), ()), schema)
    Traceback (most recent call last):
    noisette.errors.InputError: visits.ward may be filtered but not grouped, by the policy: take it out of the keys, ...
    """
    if all(column.group for table in schema.values() for column in table.columns):
        return
    rows = _traced(query.source, schema, count(1))
    for _, table, name in sorted(_linked(rows.nodes(query.keys), rows.links)):
        if name and not schema[table].column(name).group:
            raise InputError(
                f"{table}.{name} may be filtered but not grouped, by the policy: take it out of the keys, and of "
                "conditions that decide which group a row is in."
            )


def _linked(found: Nodes, links: Iterable[Nodes]) -> Nodes:
    """Nodes, and all others that conditions link with them."""
    left = list(links)
    while met := [link for link in left if link & found]:
        found, left = found.union(*met), [link for link in left if not link & found]
    return found


@dataclass(frozen=True)
class _Traced:
    """What the columns of a relation are made of, what its conditions link, and what decides which rows there are."""

    columns: Mapping[str, Nodes]
    links: tuple[Nodes, ...] = ()
    deciding: Nodes = frozenset()

    def nodes(self, expressions: Iterable[Expression]) -> Nodes:
        """What expressions over the relation are made of."""
        names = {name for expression in expressions for name in columns_of(expression)}
        return frozenset[Node]().union(*(self.columns[name] for name in names))

    def under(self, conditions: Iterable[Expression]) -> "_Traced":
        """The rows that meet some conditions."""
        links = tuple(self.nodes([condition]) for condition in conditions)
        return _Traced(self.columns, self.links + links, self.deciding.union(*links))


def _traced(relation: Relation, schema: Schema, places: Iterator[int]) -> _Traced:
    match relation:
        case Scan():
            return _Traced(_stored(relation, schema, next(places)))
        case Where(inner, condition):
            return _traced(inner, schema, places).under(_conditions(condition))
        case Copies(inner, _, number):
            rows = _traced(inner, schema, places)
            return _Traced({**rows.columns, number: _new(places)}, rows.links, rows.deciding)
        case Select(inner, columns):
            rows = _traced(inner, schema, places)
            return _Traced({name: rows.nodes([e]) for name, e in columns}, rows.links, rows.deciding)
        case PerUnit():
            return _per_unit(relation, schema, places)
        case Join():
            return _join(relation, schema, places)
        case _:
            assert_never(relation)


def _new(places: Iterator[int]) -> Nodes:
    return frozenset([(next(places), "", "")])


def _stored(scan: Scan, schema: Schema, place: int) -> dict[str, Nodes]:
    """Columns of a private table are the same wherever it is read: rows of one unit meet, and may be one row."""
    table = schema[scan.table]
    place = place if table.public else 0
    row: Nodes = frozenset([(place, "", "")] if table.public else [])
    return {f"{scan.alias}.{c.name}": row | {(place, table.name, c.name)} for c in table.columns}


def _per_unit(relation: PerUnit, schema: Schema, places: Iterator[int]) -> _Traced:
    """Conditions on the rows of a unit, and other keys beside it, decide which rows an aggregate is about."""
    rows = _traced(relation.source, schema, places)
    units = {Name(name) for name in unit_names(relation.source, schema)}
    deciding = rows.deciding | rows.nodes(e for _, e in relation.keys if e not in units)
    of = {name: rows.nodes([a.of] if a.of is not None else []) for name, a in relation.aggregates}
    aggregates = {name: nodes | deciding | _new(places) for name, nodes in of.items()}
    keys = {name: rows.nodes([e]) for name, e in relation.keys}
    return _Traced({**keys, **aggregates}, rows.links, deciding)


def _join(join: Join, schema: Schema, places: Iterator[int]) -> _Traced:
    """Columns that are joined on are equal; whatever decides whether a partner is found decides where NULL stands.

    That rows of one and the same unit meet tells nothing of the columns that say whose they are.
    """
    left, right = (_traced(side, schema, places) for side in (join.left, join.right))
    private = not any(shape_of(side, schema).public for side in (join.left, join.right))
    own = unit_pairs(join, schema) if private else set()
    links = tuple(left.columns[a] | right.columns[b] for a, b in join.on)
    met = frozenset[Node]().union(*(link for pair, link in zip(join.on, links, strict=True) if pair not in own))
    columns = right.columns
    if join.how == "left":
        there = right.deciding | met | _new(places)
        columns = {name: nodes | there for name, nodes in columns.items()}
    return _Traced({**left.columns, **columns}, left.links + right.links + links, left.deciding | right.deciding | met)


def _conditions(condition: Expression) -> Iterator[Expression]:
    """Conditions that all hold where one does; what each part of an OR demands is demanded of all rows.

    >>> a, b, c = Name("a"), Name("b"), Name("c")
    >>> list(_conditions(Call("or", (Call("and", (a, c)), Call("and", (b, c))))))
    [Name(name='c'), Call(operation='or', arguments=(Name(name='a'), Name(name='b')))]
    """
    match condition:
        case Call("and", parts):
            for part in parts:
                yield from _conditions(part)
        case Call("or", parts):
            sides = [tuple(_conditions(part)) for part in parts]
            common = [each for each in sides[0] if all(each in side for side in sides)]
            yield from common
            rest = [tuple(each for each in side if each not in common) for side in sides]
            if all(rest):
                yield Call("or", tuple(each[0] if len(each) == 1 else Call("and", each) for each in rest))
        case _:
            yield condition
