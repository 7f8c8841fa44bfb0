"""Which limits a question has to choose, where the policy says rows = "each question".

The rows of a unit in the question itself are counted, after its conditions. Where a join retains rows of each side, the
rows of each table. In groups, Laplace noise grows with all rows of a unit, so one limit is for these; Gaussian noise
grows with the root of the number of groups, so one limit is for the groups of a unit and one for its rows in each.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from noisette.errors import InputError
from noisette.privacy import ZCDP, Promise
from noisette.query.plan import Query, Relation, Scan, aggregates_in
from noisette.query.prepare import Prepared, prepare
from noisette.query.reads import tables_of
from noisette.query.schema import Schema, all_grouped, with_limits
from noisette.query.stability import shape_of
from noisette.questions.parts.limit_choice import Words
from noisette.questions.parts.per_unit import groups_of_units, powers, rows_in_a_group, rows_of_units

__all__ = [
    "ToChoose",
    "counts_units",
    "largest",
    "limits_needed",
    "limits_of_queries",
    "limits_to_choose",
    "tables_to_settle",
    "unlimited",
]

_FEW = 2**10  # with unknown keys: the threshold grows with the limit, and so does the time to find it
_JOINED = {1: 2**10, 2: 2**5}  # by the number of tables: a join retains 1,000 rows of a unit in all
_MANY, _MANY_RHO = 64, 16  # groups, from which on two limits err less: by simulation


class ToChoose(NamedTuple):
    """A limit of some tables, by its name there: its words, the candidates, and the units between them."""

    tables: tuple[str, ...]
    name: str
    words: Words
    limits: tuple[int, ...]
    prepared: Prepared


def tables_to_settle(queries: Sequence[Query], schema: Schema) -> tuple[str, ...]:
    """The tables whose limits questions choose, as far as these queries read them."""
    read = {table.name for query in queries for table in tables_of(query.source, schema)}
    return tuple(sorted(name for name in read if schema[name].chosen_rows is not None and not schema[name].public))


def limits_needed(queries: Sequence[Query], schema: Schema, tables: Sequence[str]) -> bool:
    """Whether a limit changes anything: one row per unit, or how many units there are, needs none."""
    most = largest(schema, tables)
    return any(_limits(query, schema, tables, 1) != _limits(query, schema, tables, most) for query in queries)


def _limits(query: Query, schema: Schema, tables: Sequence[str], rows: int) -> Any:
    if counts_units(query):
        return None
    settled = _settled(schema, tables, rows)
    if rows > 1 and not _allowed(query.source, settled):  # a join of that many rows is refused, so the limit matters
        return rows
    prepared = prepare(query, settled, of_two_units=True, narrow=True)
    return prepared.request.limits, prepared.shape.retained


def counts_units(query: Query) -> bool:
    """Whether a query asks for nothing but the number of units, for which one row of each is enough."""
    return not query.keys and all(aggregate.function == "units" for aggregate in aggregates_in(query))


def limits_of_queries(
    queries: Sequence[Query], schema: Schema, tables: tuple[str, ...], spend: Promise
) -> tuple[ToChoose, ...]:
    """The limits of queries: one for their rows, or one for each table, or two for the groups of a query."""

    def prepared(settled: Schema) -> list[Prepared]:
        return [prepare(query, settled, of_two_units=True, narrow=True) for query in queries]

    [first, *others] = prepared(_settled(schema, tables, 1))
    unbound = not others and unlimited(first.query.source, schema) and schema[tables[0]].limits.groups is None
    joined = unbound and shape_of(first.query.source, schema).retained  # by measurement, on TPC-H's Q9 alone
    if unbound and not joined and _spread(first, spend):
        return _in_groups(first, schema, tables)
    return limits_to_choose(prepared, schema, tables)


def limits_to_choose(
    prepared: Callable[[Schema], Sequence[Prepared]], schema: Schema, tables: tuple[str, ...]
) -> tuple[ToChoose, ...]:
    """One limit for the rows of the question, or one for each table that a join retains rows of.

    `prepared` gives its queries within the limits of a schema.
    """
    settled = prepared(_settled(schema, tables, 1))
    most = _most(settled, schema, tables)
    [source, *others] = dict.fromkeys(one.query.source for one in settled)
    if others or not unlimited(source, schema):
        return _of_tables([source, *others], schema, tables, most)
    limits = tuple(t for t in powers(most) if _holds(prepared, _settled(schema, tables, t), t)) or powers(most)
    words = Words(settled[0].shape.whose)
    return (ToChoose(tables, "rows", words, limits, rows_of_units(source, limits, all_grouped(schema))),)


def _most(settled: Sequence[Prepared], schema: Schema, tables: Sequence[str]) -> int:
    """The largest limit."""
    return min(largest(schema, tables), _FEW) if any(one.opens for one in settled) else largest(schema, tables)


def _holds(prepared: Callable[[Schema], Sequence[Prepared]], settled: Schema, rows: int) -> bool:
    """Whether there is a plan that uses no more rows of a unit than a candidate says: another table may allow more."""
    try:
        found = [one.request.limits for one in prepared(settled)]
    except InputError:
        return False
    return all(limits is None or limits.rows == rows for limits in found)


def _of_tables(sources: Sequence[Relation], schema: Schema, tables: tuple[str, ...], most: int) -> tuple[ToChoose, ...]:
    if len(tables) not in _JOINED:
        raise InputError(
            'Ask about at most two tables whose policy says rows = "each question", or let the owner declare rows.'
        )
    most = min(most, _JOINED[len(tables)])
    while most > 2 and not all(_allowed(source, _settled(schema, tables, most)) for source in sources):
        most //= 2
    limits, found = powers(most), []
    for name in tables:
        prepared = rows_of_units(Scan(name, "t1"), limits, all_grouped(schema))
        found.append(ToChoose((name,), "rows", Words(prepared.shape.whose, name), limits, prepared))
    return tuple(found)


def _in_groups(settled: Prepared, schema: Schema, tables: tuple[str, ...]) -> tuple[ToChoose, ...]:
    unit, source, keys = settled.shape.whose, settled.query.source, settled.query.keys
    most = _most([settled], schema, tables)
    groups, rows = _quadrupled(min(_groups(settled), most)), _quadrupled(most)
    free = all_grouped(schema)
    in_groups, in_each = Words(unit, noun="group"), Words(unit, per=" per group")
    return (
        ToChoose(tables, "groups", in_groups, groups, groups_of_units(source, keys, groups, free)),
        ToChoose(tables, "rows_per_group", in_each, rows, rows_in_a_group(source, keys, rows, free)),
    )


def _quadrupled(most: int) -> tuple[int, ...]:
    """Every second power of two: each pair of two limits is a plan.

    >>> _quadrupled(20), _quadrupled(10**6)
    ((1, 4, 16, 20), (1, 4, 16, 64, 256, 1024))
    """
    return (*(4**i for i in range(6) if 4**i < most), *([most] if most <= _FEW else []))


def _spread(settled: Prepared, spend: Promise) -> bool:
    """Whether a unit may be in so many groups that Gaussian noise, where it is allowed, needs two limits."""
    least = math.inf if spend.is_pure else _MANY_RHO if isinstance(spend, ZCDP) else _MANY
    return bool(settled.query.keys) and _groups(settled) >= least


def _groups(settled: Prepared) -> int:
    """How many groups there can be."""
    sizes = [_FEW if domain is None else len(domain) for domain in settled.request.domains]
    return math.prod(sizes)


def _settled(schema: Schema, tables: Sequence[str], rows: int) -> Schema:
    return with_limits(schema, {name: {"rows": rows} for name in tables})


def _allowed(source: Relation, schema: Schema) -> bool:
    """Whether all joins can be made with these limits."""
    try:
        return bool(shape_of(source, schema))
    except InputError:
        return False


def largest(schema: Schema, tables: Sequence[str]) -> int:
    """The largest limit that all owners allow."""
    return min(schema[name].chosen_rows or 1 for name in tables)


def unlimited(source: Relation, schema: Schema) -> bool:
    """Whether limits that are to be chosen apply to the rows of a relation as they are: no join within needs them.

    Joins may retain rows by limits that are declared. What a unit has after them depends on its own rows alone.
    """
    try:
        shape = shape_of(source, schema)
    except InputError:
        return False
    return not shape.retained or (shape.rows is None and shape.moved is None)
