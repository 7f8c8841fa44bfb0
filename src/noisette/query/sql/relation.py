"""What stands after FROM: tables, joins and sub-queries, as relations of a plan.

A sub-query selects columns of single rows, or groups by the unit. Tables and sub-queries give their columns the names
`alias.column`. WITH names a sub-query; each use of it is a copy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal as OneOf
from typing import TypeAlias

from sqlglot import exp

from noisette.errors import InputError
from noisette.names import closest
from noisette.query.expression import Call, Expression, Name
from noisette.query.plan import Join, Named, PerUnit, Relation, Scan, Select, Where, aggregate_text
from noisette.query.public_parts import Part
from noisette.query.reads import tables_of
from noisette.query.schema import Schema
from noisette.query.sql.expression import expression
from noisette.query.sql.groups import items_of, keys_of, names_of, without_stars
from noisette.query.sql.names import Reader, Scope, find, matches
from noisette.query.sql.refusals import refusal, shown
from noisette.query.sql.result import Groups, aggregate, has_aggregate, is_aggregate, position
from noisette.query.sql.semijoin import SemiJoin, semi_joins
from noisette.query.sql.slices import slices
from noisette.query.sql.text import read
from noisette.query.stability import shape_of
from noisette.query.unit_keys import unit_names

__all__ = ["Context", "joined", "per_unit", "rows_of", "rows_read", "scope_of", "with_names"]

Items: TypeAlias = tuple[tuple[str, exp.Expr], ...]
"""Columns by their names, as they are written."""

MOST_TABLES = 16
"""The most tables that a query reads, each counted as often as it is used."""

DEEPEST = 12
"""The most levels of sub-queries, and of uses of WITH, within each other."""


@dataclass(frozen=True)
class Context:
    """What names of tables mean, and how deep within sub-queries they stand."""

    schema: Schema
    named: Mapping[str, tuple[exp.Select | exp.Union, "Context"]] = field(default_factory=dict)
    level: int = 0

    def deeper(self) -> "Context":
        """One level further within sub-queries."""
        if self.level >= DEEPEST:
            raise InputError(f"Sub-queries are nested too deeply: write at most {DEEPEST} within each other.")
        return replace(self, level=self.level + 1)


def with_names(select: exp.Select, context: Context) -> Context:
    """The context within a statement, with the names that its WITH gives."""
    clause = select.args.get("with_")
    for cte in clause.expressions if clause else ():
        if not isinstance(cte.this, exp.Select | exp.Union):
            raise refusal(cte.this)
        name = _alias(cte, "").casefold()
        if name in context.named and context.named[name][1].level == context.level:
            raise InputError(f"WITH names {shown(name)} twice: give each sub-query a name of its own.")
        context = replace(context, named={**context.named, name: (cte.this, context)})
    return context


def scope_of(relation: Relation, schema: Schema, hidden: frozenset[str] = frozenset()) -> Scope:
    """The columns of a relation that an expression can use."""
    columns = shape_of(relation, schema).columns
    tables = tables_of(relation, schema)
    days = {table.today for table in tables} - {None}
    today = days.pop() if len(days) == 1 else None
    unusable = {name: cure for table in tables for name, cure in table.unusable.items()}
    return Scope(columns, hidden, unit_names(relation, schema), today=today, unusable=unusable)


# Tables and joins


def rows_of(select: exp.Select, context: Context) -> tuple[Relation, Scope]:
    """FROM and WHERE: the rows a statement is about, and the names of their columns."""
    start = select.args.get("from_")
    if start is None:
        raise InputError("The query reads no table: write SELECT ... FROM and the name of a table.")
    relation, hidden = _table(start.this, context), frozenset[str]()
    for join in select.args.get("joins") or ():
        right = _table(join.this, context)
        relation, hidden = _join(join, relation, right, hidden, context.schema)
    scope = scope_of(relation, context.schema, hidden)
    if where := select.args.get("where"):
        found, others = semi_joins(where.this)
        for each in found:
            relation, hidden = _semi_join(each, relation, hidden, context)
        scope = scope_of(relation, context.schema, hidden) if found else scope
        if others:
            relation = Where(relation, expression(where.this if not found else exp.and_(*others), scope))
        shape_of(relation, context.schema)
    return relation, scope


def _semi_join(
    of: SemiJoin, left: Relation, hidden: frozenset[str], context: Context
) -> tuple[Relation, frozenset[str]]:
    """The rows that meet a row of a public table in which each key stands once, or none; its columns stay hidden."""
    schema, named = context.schema, of.table.name.casefold() in context.named
    table = schema[_declared(of.table.this, schema)]
    right: Relation = Scan(table.name, _alias(of.table, of.table.name))
    before, after = scope_of(left, schema, hidden), scope_of(right, schema)
    on = [_sides(a, b, of.sure, before, after) for a, b in of.pairs]
    if named or not table.public or len(on) != 1 or table.repeats.get(on[0][1].partition(".")[2], 2) > 1:
        raise InputError(
            "IN (SELECT ...) and EXISTS take one column of a public table, in which no value repeats: "
            "write x IN (SELECT key FROM p), or JOIN p."
        )
    for part in of.conditions:
        right = Where(right, expression(part, after))
    taken = {full.partition(".")[0] for full in before.columns}
    name = next(f"among{n}" for n in count(1) if f"among{n}" not in taken)
    renamed = Select(right, tuple((f"{name}.{full.partition('.')[2]}", Name(full)) for full in after.columns))
    key = f"{name}.{on[0][1].partition('.')[2]}"
    hidden |= set(scope_of(renamed, schema).columns)
    if not of.negated:
        return joined(left, renamed, ((on[0][0], key),), "inner", schema), hidden
    listed = _listed(Name(on[0][1]), right, schema) if of.sure else True
    if not listed:
        return left, hidden
    met = joined(left, renamed, ((on[0][0], key),), "left", schema)
    none: Expression = Call("is_null", (Name(key),))
    there = Call("not", (Call("is_null", (Name(on[0][0]),)),))
    return Where(met, Call("and", (none, there)) if of.sure else none), hidden


def _listed(key: Name, public: Relation, schema: Schema) -> bool:
    """Whether a list of public keys holds any; refused if one of them is NULL, since NOT IN is never true then."""
    [table] = tables_of(public, schema)
    found = None if table.listing is None else table.listing(Part(public, ((key.name, key),)), (key,), schema)
    if found is None:
        raise InputError(
            f"Whether NOT IN can be true depends on NULLs among many rows of {shown(table.name)}: "
            "write NOT EXISTS (SELECT * FROM p WHERE p.key = x)."
        )
    if (None,) in found:
        raise InputError("NOT IN is never true where the list holds NULL: add WHERE key IS NOT NULL to the sub-query.")
    return bool(found)


def _sides(a: exp.Column, b: exp.Column, sure: bool, before: Scope, after: Scope) -> tuple[str, str]:
    """The column of the rows, and the one of the public table, to which a name within brackets belongs first."""
    if sure or (matches(b, after) and not matches(a, after)):
        return find(a, before), find(b, after)
    if matches(a, after) and not matches(b, after):
        return find(b, before), find(a, after)
    raise InputError(
        "EXISTS needs an equality with a column of its public table: write p.key = v.key, with both names."
    )


def rows_read(text: str, schema: Schema) -> tuple[Relation, frozenset[str]]:
    """The rows that a SELECT without aggregates stands for, and the columns that need their table's name.

    SELECT * keeps the tables and their names; other columns are those of a sub-query called `rows`.
    """
    select = read(text)
    context = with_names(select, Context(schema))
    stars = [item for item in select.expressions if isinstance(item, exp.Star)]
    others = [part for part in ("group", "having", "order", "limit", "distinct") if select.args.get(part)]
    if len(stars) != 1 or len(select.expressions) != 1 or others:
        return _subquery(select, "rows", context), frozenset()
    relation, scope = rows_of(select, context)
    return relation, scope.hidden


def _table(node: exp.Expr, context: Context) -> Relation:
    if isinstance(node, exp.Subquery):
        inner = node
        while isinstance(inner.this, exp.Subquery) and not inner.this.args.get("alias"):
            inner = inner.this
        if not isinstance(inner.this, exp.Select | exp.Union):
            raise InputError(
                "Brackets after FROM hold a sub-query: write (SELECT ...) AS name, and joins without them."
            )
        return _subquery(inner.this, _alias(node, "subquery"), context.deeper())
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise InputError("Rows come from tables alone: write the name of a table or (SELECT ...) AS name after FROM.")
    alias = _alias(node, node.name)
    if found := context.named.get(node.name.casefold()):
        select, outside = found
        return _subquery(select, alias, replace(outside, level=context.level).deeper())
    return Scan(_declared(node.this, context.schema), alias)


def _declared(identifier: exp.Identifier, schema: Schema) -> str:
    if identifier.name in schema:
        return identifier.name
    loose = [name for name in schema if name.casefold() == identifier.name.casefold()]
    if len(loose) == 1 and not identifier.args.get("quoted"):
        return loose[0]
    name = shown(identifier.name)
    raise InputError(f"There is no table {name}: {closest(name, sorted(map(shown, schema)), 'use one of')}")


def _alias(node: exp.Expr, default: str) -> str:
    alias = node.args.get("alias")
    name = str(alias.name) if alias is not None and alias.name else default
    if "." in name and alias is not None:
        raise InputError("A name of a table has no dot in it: write AS and a plain name.")
    return name.replace(".", "_")


def _join(
    node: exp.Join, left: Relation, right: Relation, hidden: frozenset[str], schema: Schema
) -> tuple[Relation, frozenset[str]]:
    how = _HOW.get((node.side, node.kind))
    if how is None:
        raise InputError("Only JOIN and LEFT JOIN are answered: swap the tables, or write JOIN b ON a.key = b.key.")
    before, after = scope_of(left, schema, hidden), scope_of(right, schema)
    if using := node.args.get("using"):
        columns = [exp.Column(this=identifier) for identifier in using]
        on = tuple((find(column, before), find(column, after)) for column in columns)
        hidden |= {b for _, b in on}
    elif node.args.get("on") is not None:
        condition = node.args["on"].unnest()
        parts = condition.flatten() if isinstance(condition, exp.And) else (condition,)
        on = tuple(_pair(part, before, after) for part in parts)
    else:
        raise InputError(
            "Tables meet on equal columns: write JOIN b ON a.key = b.key in place of a comma or CROSS JOIN."
        )
    return joined(left, right, on, how, schema), hidden


_HOW: dict[tuple[str, str], OneOf["inner", "left"]] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
}


def joined(
    left: Relation, right: Relation, on: tuple[tuple[str, str], ...], how: OneOf["inner", "left"], schema: Schema
) -> Relation:
    """Two relations with names of their own, joined; refused if their names or units do not go together."""
    tables = [{full.partition(".")[0].casefold() for full in shape_of(side, schema).columns} for side in (left, right)]
    if twice := tables[0] & tables[1]:
        raise InputError(f"Two tables are called {shown(min(twice))}: give one another name, JOIN b AS c.")
    relation = Join(left, right, on, how)
    if len(tables_of(relation, schema)) > MOST_TABLES:
        raise InputError(f"The query reads too many tables: join at most {MOST_TABLES}.")
    shape_of(relation, schema)
    return relation


def _pair(node: exp.Expr, before: Scope, after: Scope) -> tuple[str, str]:
    """The two columns of one condition after ON, that of the left side first."""
    node = node.unnest()
    if isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
        both = Scope({**before.columns, **after.columns}, before.hidden)
        a, b = find(node.left, both), find(node.right, both)
        if a in before.columns and b in after.columns:
            return a, b
        if b in before.columns and a in after.columns:
            return b, a
    raise InputError("ON takes equal columns of both tables: write a.key = b.key, and other conditions after WHERE.")


# Sub-queries


def _subquery(select: exp.Select | exp.Union, alias: str, context: Context) -> Relation:
    if isinstance(select, exp.Union):
        found = slices(select, alias, lambda node: _table(node, context), lambda rows: scope_of(rows, context.schema))
        shape_of(found, context.schema)
        return found
    for part, word in (("order", "ORDER BY"), ("limit", "LIMIT")):
        if select.args.get(part):
            raise InputError(f"{word} works on released results: move it to the end of the query.")
    context = with_names(select, context)
    source, scope = rows_of(select, context)
    items = without_stars(items_of(select), scope)
    having = select.args.get("having")
    nodes = [item.node for item in items]
    named = tuple(zip(names_of(items, scope), nodes, strict=True))
    if select.args.get("group") or select.args.get("distinct") or having or any(map(has_aggregate, nodes)):
        keys = keys_of(select, items, scope)
        return per_unit(source, scope, keys, named, alias, context.schema, having)
    relation = Select(source, _named(alias, named, scope))
    shape_of(relation, context.schema)
    return relation


def _named(alias: str, items: Items, scope: Scope) -> tuple[Named, ...]:
    return tuple((f"{alias}.{name}", expression(node, scope)) for name, node in items)


def per_unit(
    source: Relation,
    scope: Scope,
    keys: tuple[Expression, ...],
    items: Items,
    alias: str,
    schema: Schema,
    having: exp.Having | None = None,
) -> Relation:
    """Columns computed from keys and aggregates of each unit's rows; the unit is among the keys."""
    _demand_unit(keys, source, scope, schema)
    nodes = [node for _, node in items] + ([having.this] if having else [])
    tops = [node for top in nodes for node in top.walk(prune=is_aggregate) if is_aggregate(node)]
    aggregates = {aggregate_text(each): each for each in (aggregate(node, scope) for node in tops)}
    places = {text: f"{alias}.aggregate{n}" for n, text in enumerate(aggregates, 1)}
    named = tuple((f"{alias}.key{n}", key) for n, key in enumerate(keys, 1))
    relation: Relation = PerUnit(source, named, tuple((places[text], each) for text, each in aggregates.items()))
    above = replace(scope_of(relation, schema), special=_known(Groups(scope, keys), named, places))
    if having:
        relation = Where(relation, expression(having.this, above))
    relation = Select(relation, _named(alias, items, above))
    shape_of(relation, schema)
    return relation


def _demand_unit(keys: tuple[Expression, ...], source: Relation, scope: Scope, schema: Schema) -> None:
    unit = shape_of(source, schema).unit
    if not any(isinstance(key, Name) and key.name in scope.units for key in keys) and scope.units:
        raise InputError(f"Group by the unit in a sub-query, GROUP BY {unit}: its rows must stay those of one unit.")


def _known(groups: Groups, keys: tuple[Named, ...], aggregates: Mapping[str, str]) -> Reader:
    """Reads keys and aggregates as the columns they have become, and refuses what is neither."""

    def special(node: exp.Expr) -> Expression | None:
        if is_aggregate(node):
            return Name(aggregates[aggregate_text(aggregate(node, groups.scope))])
        if (place := position(node, groups)) is not None:
            return Name(keys[place][0])
        if isinstance(node, exp.Column):
            find(node, groups.scope)
            name = shown(node.name)
            raise InputError(f"{name} has many values in one unit: add it to GROUP BY, or write MAX({name}).")
        return None

    return special
