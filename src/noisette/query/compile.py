"""A relation as one SELECT for the engine: typed syntax trees with quoted names, never pasted text.

Every column comes under the name it has in the plan, already clean (`stored.normalised`), and only if it is needed. The
unit of a row travels along as the column "unit" (`stability.UNIT`), as it is stored: it is only compared with itself.

What becomes of a row without a unit: where a table declares a unit, rows whose unit is NULL or NaN belong to nobody and
are left out of everything.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias, assert_never

from sqlglot import exp

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.query.engine import normalised, to_engine, to_steps
from noisette.query.expression import Expression, columns_of
from noisette.query.kind import LARGEST, Kind
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Aggregate, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Schema, Table
from noisette.query.stability import ROW, UNIT, Shape, expressions_in, shape_of
from noisette.query.syntax import binary, chain, clamped, column, number, positive_zero, scaled, try_cast

__all__ = ["DIALECT", "INTEGERS", "Stored", "base_type", "relation_sql", "selected", "text_of", "unit_type"]

DIALECT = "duckdb"
"""How trees become text; PostgreSQL and Spark will need a writer of expressions too (`engine`)."""

Stored: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each table its columns and the types they are stored as."""

INTEGERS = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"))
"""Types whose values all fit 64 bits with a sign."""

FLOATS = frozenset(("FLOAT", "DOUBLE"))
_BITS = 50  # of a real number without a grid, where it is added up within a unit
_HUGE = 2**120  # sums of integers have 128 bits


def relation_sql(
    relation: Relation,
    schema: Schema,
    stored: Stored,
    needed: Collection[str] | None = None,
    raw: Collection[str] = (),
) -> exp.Select:
    """The rows of a relation with the columns that are needed (all, unless told) and the unit, if it has one.

    Columns of a table that are `raw` are not cleaned: whoever asks for them does it later (`grouping.postponed`).

    >>> from noisette.query.schema import Column
    >>> people = Table("people", (Column("age", Kind("integer", Fraction(0), Fraction(120))),), unit="id")
    >>> text_of(relation_sql(Scan("people", "p"), {"people": people}, {"people": {"age": "INTEGER", "id": "BIGINT"}}))
    'SELECT CASE WHEN ... END AS "p.age", "id" AS "unit" FROM "people" WHERE NOT "id" IS NULL'
    """
    shape = shape_of(relation, schema)
    _check_names(shape)
    names = [name for name in shape.columns if needed is None or name in needed]
    match relation:
        case Scan():
            return _scan(relation, names, schema[relation.table], stored[relation.table], raw)
        case Where(source, condition):
            inner, scope = _below(source, (condition,), names, schema, stored, raw)
            return selected(inner, _same(names, shape)).where(to_engine(condition, scope))
        case Select(source, columns):
            wanted = {name: e for name, e in columns if name in names}
            inner, scope = _below(source, wanted.values(), (), schema, stored)
            return selected(inner, {name: to_engine(e, scope) for name, e in wanted.items()} | _same((), shape))
        case Join():
            return _join(relation, names, schema, stored)
        case PerUnit():
            return _per_unit(relation, names, schema, stored)
        case _:
            assert_never(relation)


def text_of(tree: exp.Expr) -> str:
    """The text the engine reads."""
    return tree.sql(dialect=DIALECT, comments=False)


def selected(rows: exp.Select, columns: Mapping[str, exp.Expr]) -> exp.Select:
    """Named expressions over the rows of another SELECT; at least one column, as SQL wants it."""
    made = [exp.alias_(sql, name, quoted=True) for name, sql in columns.items()]
    made = made or [exp.alias_(exp.true(), "nothing", quoted=True)]
    return exp.select(*made, copy=False).from_(rows.subquery("rows", copy=False), copy=False)


def _check_names(shape: Shape) -> None:
    """The engine takes names that differ only in case for one name, and then for the first."""
    names = [*(name.lower() for name in shape.columns), *([] if shape.unit in (None, ROW) else [UNIT])]
    if len(set(names)) < len(names):
        raise InputError(
            f"Give each column a name of its own, not {UNIT}: upper and lower case do not tell names apart."
        )


def _same(names: Iterable[str], shape: Shape) -> dict[str, exp.Expr]:
    """Columns as they are, and the unit if there is one."""
    carried = [] if shape.unit in (None, ROW) else [UNIT]
    return {name: column(name) for name in (*names, *carried)}


def _below(
    source: Relation,
    used: Iterable[Expression],
    names: Iterable[str],
    schema: Schema,
    stored: Stored,
    raw: Collection[str] = (),
) -> tuple[exp.Select, Mapping[str, Kind]]:
    """The rows below a node with the columns that it computes with or passes on, and what is known of them."""
    needed = {*names, *(name for e in used for name in columns_of(e))}
    return relation_sql(source, schema, stored, needed, raw), shape_of(source, schema).columns


# Tables


def _scan(
    relation: Scan, names: Iterable[str], table: Table, stored: Mapping[str, str], raw: Collection[str]
) -> exp.Select:
    made = []
    for name in names:
        plain = name.removeprefix(f"{relation.alias}.")
        clean = normalised(column(plain), table.column(plain).kind, _stored(plain, table, stored))
        made.append(exp.alias_(column(plain) if name in raw else clean, name, quoted=True))
    if table.public or table.unit is None:
        made = made or [exp.alias_(exp.true(), "nothing", quoted=True)]
        return exp.select(*made).from_(exp.to_identifier(table.name, quoted=True))
    unit, base = column(table.unit), base_type(_stored(table.unit, table, stored))
    owner = positive_zero(unit) if base in FLOATS else unit
    owned: exp.Expr = exp.Not(this=exp.Is(this=unit.copy(), expression=exp.null()))
    if base in FLOATS:
        owned = exp.And(this=owned, expression=exp.Not(this=exp.IsNan(this=unit.copy())))
    made.append(exp.alias_(owner, UNIT, quoted=True))
    return exp.select(*made).from_(exp.to_identifier(table.name, quoted=True)).where(owned)


def _stored(name: str, table: Table, stored: Mapping[str, str]) -> str:
    if name not in stored:
        raise InputError(f"Table {table.name} is declared with a column {name}, but the data has none of that name.")
    return stored[name]


def base_type(stored: str) -> str:
    """The name of a stored type without its parameters.

    >>> base_type("DECIMAL(10,2)")
    'DECIMAL'
    """
    return stored.upper().partition("(")[0].strip()


def unit_type(relation: Relation, schema: Schema, stored: Stored) -> str:
    """The type that the units of a relation are stored as."""
    match relation:
        case Scan(name):
            table = schema[name]
            assert table.unit is not None
            return base_type(_stored(table.unit, table, stored[name]))
        case Join(left, right):
            return unit_type(right if shape_of(left, schema).public else left, schema, stored)
        case Where(source) | Select(source) | PerUnit(source):
            return unit_type(source, schema, stored)
        case _:
            assert_never(relation)


# Joins


def _join(relation: Join, names: Collection[str], schema: Schema, stored: Stored) -> exp.Select:
    """Pairs of rows. Two private sides are joined on their units as stored, whatever else they are joined on."""
    left, right = shape_of(relation.left, schema), shape_of(relation.right, schema)
    if set(left.columns) & set(right.columns):
        raise InputError("Give the two sides of a join different names: a AS x JOIN a AS y.")
    used = {*names, *(name for pair in relation.on for name in pair)}
    conditions: list[exp.Expr] = [binary(exp.EQ, _of("l", a), _of("r", b)) for a, b in relation.on]
    if not left.public and not right.public:
        _check_units(relation, schema, stored)
        conditions.append(binary(exp.EQ, _of("l", UNIT), _of("r", UNIT)))
    made = [exp.alias_(_of("l" if name in left.columns else "r", name), name, quoted=True) for name in names]
    if not {left.unit, right.unit} <= {None, ROW}:
        made.append(exp.alias_(_of("r" if left.public else "l", UNIT), UNIT, quoted=True))
    made = made or [exp.alias_(exp.true(), "nothing", quoted=True)]
    sides = [
        relation_sql(side, schema, stored, used).subquery(a)
        for side, a in ((relation.left, "l"), (relation.right, "r"))
    ]
    return exp.select(*made).from_(sides[0]).join(sides[1], on=chain(exp.And, conditions), join_type=relation.how)


def _of(side: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=side)


def _check_units(relation: Join, schema: Schema, stored: Stored) -> None:
    """Units of different types could be equal only after a cast, and a cast can make two units one."""
    types = {unit_type(side, schema, stored) for side in (relation.left, relation.right)}
    if len(types) > 1 and not types <= INTEGERS:
        raise InputError("Store the units of both tables as the same type: joined units must be equal as they are.")


# One row for each unit


def _per_unit(relation: PerUnit, names: Collection[str], schema: Schema, stored: Stored) -> exp.Select:
    """Keys and arguments first, then the aggregates of each unit and its keys."""
    inner, scope = _below(relation.source, expressions_in(relation), (), schema, stored)
    keys = {name: to_engine(e, scope) for name, e in relation.keys}
    wanted = {name: _WithinUnit(aggregate, scope) for name, aggregate in relation.aggregates if name in names}
    arguments = {name: part.argument for name, part in wanted.items() if part.argument is not None}
    rows = selected(inner, {UNIT: column(UNIT), **keys, **arguments})
    made: dict[str, exp.Expr] = {name: column(name) for name in (UNIT, *keys) if name == UNIT or name in names}
    made |= {name: part.result(column(name)) for name, part in wanted.items()}
    return selected(rows, made).group_by(*(column(name) for name in (UNIT, *keys)))


class _WithinUnit:
    """An aggregate of one unit's rows: what is computed of each row, and the number made of them.

    A sum is one of whole grid steps, which no order of the rows can change; it stays within 2^52 and within 2^52 steps.
    """

    argument: exp.Expr | None
    result: Callable[[exp.Expr], exp.Expr]

    def __init__(self, aggregate: Aggregate, scope: Mapping[str, Kind]) -> None:
        self.argument = None
        if aggregate.function == "rows" or aggregate.of is None:
            self.result = lambda _: exp.Count(this=exp.Star())
            return
        kind = kind_of(aggregate.of, scope)
        grid = _grid(kind)
        match aggregate.function:
            case "count":
                self.result = lambda x: exp.Count(this=x)
            case "quantile":
                self.result = (lambda x: exp.Max(this=x)) if aggregate.at else (lambda x: exp.Min(this=x))
            case "sum":
                self.result = lambda x: _sum(x, kind, grid)
            case _:
                self.result = lambda x: _mean(x, kind, grid)
        summed = aggregate.function in ("sum", "mean")
        self.argument = to_steps(aggregate.of, kind, grid, scope) if summed else to_engine(aggregate.of, scope)


def _grid(kind: Kind) -> Fraction:
    """The steps in which a value is added up."""
    if kind.type == "integer":
        return Fraction(1)
    if kind.grid is not None or not kind.magnitude:
        return kind.grid or Fraction(1)
    return Fraction(2) ** (floor_log2(kind.magnitude) - _BITS)


def _sum(steps: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    total, most = exp.Sum(this=steps), _most(kind, grid)
    within = clamped(total, number(-most), number(most), total)
    return try_cast(within, "BIGINT") if kind.type == "integer" else scaled(exp.cast(within, "DOUBLE"), grid)


def _most(kind: Kind, grid: Fraction) -> int:
    """The most steps that a sum may have, a multiple of the kind's own grid."""
    if kind.grid is None:
        return min(math.floor(LARGEST / grid), _HUGE)
    return math.floor(LARGEST / max(kind.grid, Fraction(1))) * int(kind.grid / grid)


def _mean(steps: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    total, count = exp.cast(exp.Sum(this=steps), "DOUBLE"), exp.cast(exp.Count(this=steps.copy()), "DOUBLE")
    mean = scaled(binary(exp.Div, total, count), grid)
    known = declared(replace(kind, type="real", grid=None, keys=None))
    assert known.low is not None
    assert known.high is not None
    return clamped(mean, number(float(known.low)), number(float(known.high)), mean)
