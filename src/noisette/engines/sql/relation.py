"""A relation as one SELECT for the engine: typed syntax trees with quoted names, never pasted text.

Every column comes under the name it has in the plan, already clean (`stored.normalised`), and only if it is needed. The
unit of a row travels along as the column "unit" (`stability.UNIT`), as it is stored: it is only compared with itself.
Some types do so as text: of an ENUM the engine hashes the number, which depends on the other values of the type, and
Arrow has no integers of 128 bits.

Equality is exact everywhere. Clean values of one type are equal where they are the same value; an integer and a real
where the real is that integer. The engine would compare both as doubles, where 2^60 and 2^60 + 1 are one.

What becomes of a row without a unit: where a table declares a unit, rows whose unit is NULL or NaN belong to nobody and
are left out of everything.

Where a join retains some rows of each unit (`stability.retention`), a column "order" travels along too: the columns of
the row's table that the question reads, behind a hash of them. The first rows of a unit in that order are retained, so
the choice depends on the unit's own rows alone; both sides of a self-join choose alike; and rows that tie are the same
to the question.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, assert_never

from sqlglot import exp

from noisette.engines.contract import FLOATS, INTEGERS, STORED, base_type
from noisette.engines.sql.expressions import normalised, to_engine, to_steps
from noisette.engines.sql.syntax import (
    binary,
    chain,
    choose,
    clamped,
    column,
    hash_of,
    is_nan,
    number,
    positive_zero,
    row_of,
    scaled,
    try_cast,
)
from noisette.engines.tie_break import join_seed
from noisette.errors import InputError
from noisette.query.expression import Expression, columns_of
from noisette.query.intervals import most_steps, sum_grid
from noisette.query.kind import Kind
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Aggregate, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Schema, Table
from noisette.query.stability import ROW, UNIT, Shape, columns_read, expressions_in, retention, shape_of

__all__ = ["Stored", "relation_sql", "selected", "unit_type"]

Stored: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each table its columns and the types they are stored as."""

AS_TEXT = frozenset(("ENUM", "HUGEINT", "UHUGEINT"))

ORDER = "order"
"""The column by which rows of a unit are retained; like `UNIT` no other column can have its name."""


@dataclass(frozen=True)
class _Reading:
    """What the SELECT of a relation depends on beside the relation.

    `read`: the columns of each table that the question reads · `ordered`: whether the column "order" is needed.
    """

    schema: Schema
    stored: Stored
    raw: frozenset[str]
    seed: int
    read: Mapping[str, tuple[str, ...]]
    ordered: bool = False


def relation_sql(
    relation: Relation,
    schema: Schema,
    stored: Stored,
    needed: Collection[str] | None = None,
    raw: Collection[str] = (),
    secret: bytes = b"",
) -> exp.Select:
    """The rows of a relation with the columns that are needed (by default all) and the unit, if it has one.

    Columns of a table that are `raw` are not cleaned: whoever asks for them does it later (`keys.postponed`). The
    `secret` keys the choice of the rows that a join retains.

    >>> from noisette.query.schema import Column
    >>> people = Table("people", (Column("age", Kind("integer", Fraction(0), Fraction(120))),), unit="id")
    >>> stored = {"people": {"age": "INTEGER", "id": "BIGINT"}}
    >>> relation_sql(Scan("people", "p"), {"people": people}, stored).sql("duckdb")
    'SELECT CASE WHEN ... END AS "p.age", "id" AS "unit" FROM "people" WHERE NOT "id" IS NULL'
    """
    names = shape_of(relation, schema).columns if needed is None else needed
    read: dict[str, tuple[str, ...]] = {}
    for table, name in columns_read(relation, schema, names):
        read[table] = (*read.get(table, ()), name)
    return _sql(relation, names, _Reading(schema, stored, frozenset(raw), join_seed(secret), read))


def _sql(relation: Relation, needed: Collection[str], reading: _Reading) -> exp.Select:
    shape = shape_of(relation, reading.schema)
    _check_names(shape)
    names = [name for name in shape.columns if name in needed]
    match relation:
        case Scan():
            return _scan(relation, names, reading)
        case Where(source, condition):
            inner, scope = _below(source, (condition,), names, reading)
            return selected(inner, _same(names, shape, reading)).where(to_engine(condition, scope))
        case Select(source, columns):
            wanted = {name: e for name, e in columns if name in names}
            inner, scope = _below(source, wanted.values(), (), reading)
            return selected(inner, {n: to_engine(e, scope) for n, e in wanted.items()} | _same((), shape, reading))
        case Join():
            return _join(relation, names, reading)
        case PerUnit():
            return _per_unit(relation, names, reading)
        case _:
            assert_never(relation)


def selected(rows: exp.Select | exp.Union, columns: Mapping[str, exp.Expr]) -> exp.Select:
    """Named expressions over the rows of another SELECT; at least one column, as SQL wants it."""
    return exp.select(*_listed(columns), copy=False).from_(rows.subquery("rows", copy=False), copy=False)


def _listed(columns: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    return [exp.alias_(sql, name, quoted=True) for name, sql in (columns or {"nothing": exp.true()}).items()]


def _check_names(shape: Shape) -> None:
    """The engine takes names that differ only in case for one name, and then for the first."""
    names = [*(name.lower() for name in shape.columns), *([] if shape.unit in (None, ROW) else [UNIT, ORDER])]
    if len(set(names)) < len(names):
        raise InputError(
            f"Give each column a name of its own, not {UNIT} or {ORDER}: upper and lower case do not tell names apart."
        )


def _same(names: Iterable[str], shape: Shape, reading: _Reading) -> dict[str, exp.Expr]:
    """Columns as they are, and the unit and the order if they are there."""
    carried = [] if shape.unit in (None, ROW) else [UNIT, ORDER] if reading.ordered else [UNIT]
    return {name: column(name) for name in (*names, *carried)}


def _below(
    source: Relation, used: Iterable[Expression], names: Iterable[str], reading: _Reading
) -> tuple[exp.Select, Mapping[str, Kind]]:
    """The rows below a node with the columns that it computes with or passes on, and what is known of them."""
    needed = {*names, *(name for e in used for name in columns_of(e))}
    return _sql(source, needed, reading), shape_of(source, reading.schema).columns


# Rows that are retained


def _order(parts: Sequence[exp.Expr], reading: _Reading) -> exp.Expr:
    """What rows are ordered by: a hash of their parts, then the parts, since hashes may be equal."""
    return row_of(hash_of(number(reading.seed), *parts), *parts)


def _retained(rows: exp.Select, names: Iterable[str], limit: int) -> exp.Select:
    """The first rows of each unit in the order."""
    order = exp.Order(expressions=[exp.Ordered(this=column(ORDER), nulls_first=False)])
    rank = exp.Window(this=exp.RowNumber(), partition_by=[column(UNIT)], order=order)
    same = {name: column(name) for name in names}
    ranked = selected(rows, {**same, "rank": rank})
    return selected(ranked, same).where(exp.LTE(this=column("rank"), expression=number(limit)))


def _retained_of_few(rows: exp.Select, names: Iterable[str], limit: int) -> exp.Select:
    """The same, where few units have more rows than the limit: only theirs are ordered, which costs a tenth."""
    same = {name: column(name) for name in names}
    more = exp.GT(this=exp.Count(this=exp.Star()), expression=number(limit))
    crowded = selected(rows.copy(), {UNIT: column(UNIT)}).group_by(column(UNIT)).having(more)
    among = exp.In(this=column(UNIT), query=crowded.subquery())
    others = selected(rows.copy(), same).where(exp.Not(this=among.copy()))
    some = exp.select(exp.Star()).from_(rows.subquery("rows")).where(among)
    return selected(exp.union(others, _retained(some, same, limit), distinct=False), same)


# Tables


def _scan(relation: Scan, names: Iterable[str], reading: _Reading) -> exp.Select:
    table, stored = reading.schema[relation.table], reading.stored[relation.table]

    def clean(name: str) -> exp.Expr:
        return normalised(column(name), table.column(name).kind, _stored(name, table, stored))

    plain = {name: name.removeprefix(f"{relation.alias}.") for name in names}
    made = {name: column(own) if name in reading.raw else clean(own) for name, own in plain.items()}
    rows = exp.to_identifier(table.name, quoted=True)
    if table.public or table.unit is None:
        return exp.select(*_listed(made)).from_(rows)
    unit, base = column(table.unit), base_type(_unit_stored(table, stored))
    owner = positive_zero(unit) if base in FLOATS else exp.cast(unit, "VARCHAR") if base in AS_TEXT else unit
    owned: exp.Expr = exp.Not(this=exp.Is(this=unit.copy(), expression=exp.null()))
    if base in FLOATS:
        owned = exp.And(this=owned, expression=exp.Not(this=is_nan(unit)))
    made[UNIT] = owner
    if reading.ordered:
        made[ORDER] = _order([clean(name) for name in reading.read.get(table.name, ())], reading)
    return exp.select(*_listed(made)).from_(rows).where(owned)


def _stored(name: str, table: Table, stored: Mapping[str, str]) -> str:
    if name not in stored:
        raise InputError(f"Table {table.name} is declared with a column {name}, but the data has none of that name.")
    return stored[name]


def _unit_stored(table: Table, stored: Mapping[str, str]) -> str:
    assert table.unit is not None
    found = _stored(table.unit, table, stored)
    if not any(base_type(found) in types for types in STORED.values()):
        raise InputError(f"The unit of table {table.name} is stored as {base_type(found)}, which cannot be compared.")
    return found


def unit_type(relation: Relation, schema: Schema, stored: Stored) -> str:
    """The type that the units of a relation have, with its parameters."""
    match relation:
        case Scan(name):
            found = _unit_stored(schema[name], stored[name])
            return "VARCHAR" if base_type(found) == "ENUM" else found.upper()
        case Join(left, right):
            return unit_type(right if shape_of(left, schema).public else left, schema, stored)
        case Where(source) | Select(source) | PerUnit(source):
            return unit_type(source, schema, stored)
        case _:
            assert_never(relation)


# Joins


def _join(relation: Join, names: Collection[str], reading: _Reading) -> exp.Select:
    """Pairs of rows. Two private sides are joined on their units as stored, whatever else they are joined on."""
    left, right = (shape_of(side, reading.schema) for side in (relation.left, relation.right))
    if set(left.columns) & set(right.columns):
        raise InputError("Give the two sides of a join different names: a AS x JOIN a AS y.")
    limits = retention(relation, reading.schema)
    ordered = reading.ordered or limits.result is not None
    used = {*names, *(name for pair in relation.on for name in pair)}
    sides = {
        "l": _side(relation.left, used, limits.left, replace(reading, ordered=ordered)),
        "r": _side(relation.right, used, limits.right, replace(reading, ordered=ordered)),
    }
    conditions = [_equal(a, left.columns[a], b, right.columns[b]) for a, b in relation.on]
    if not left.public and not right.public:
        _check_units(relation, reading.schema, reading.stored)
        conditions.append(binary(exp.EQ, column(UNIT, "l"), column(UNIT, "r")))
    made: dict[str, exp.Expr] = {name: column(name, "l" if name in left.columns else "r") for name in names}
    if not {left.unit, right.unit} <= {None, ROW}:
        owner = "r" if left.public else "l"
        made[UNIT] = column(UNIT, owner)
        if ordered:
            parts = [*_parts("l", left, used), *_parts("r", right, used)]
            made[ORDER] = _order(parts, reading) if limits.multiplies else column(ORDER, owner)
    tables = [rows.subquery(side) for side, rows in sides.items()]
    met = chain(exp.And, conditions)
    rows = exp.select(*_listed(made)).from_(tables[0]).join(tables[1], on=met, join_type=relation.how)
    if limits.result is None:
        return rows
    return _retained(rows, [name for name in made if name != ORDER or reading.ordered], limits.result)


def _side(relation: Relation, used: Collection[str], limit: int | None, reading: _Reading) -> exp.Select:
    """One side of a join, with no more rows of a unit than it retains."""
    shape = shape_of(relation, reading.schema)
    if limit is None:
        return _sql(relation, used, reading)
    rows = _sql(relation, used, replace(reading, ordered=True))
    return _retained_of_few(rows, _same([name for name in shape.columns if name in used], shape, reading), limit)


def _parts(side: str, shape: Shape, used: Collection[str]) -> list[exp.Expr]:
    """What tells the rows of one side of a join apart: their order, or of a public side the columns that are used."""
    if not shape.public:
        return [column(ORDER, side)]
    return [column(name, side) for name in shape.columns if name in used]


def _equal(a: str, one: Kind, b: str, other: Kind) -> exp.Expr:
    return binary(exp.EQ, _exactly(column(a, "l"), one, other), _exactly(column(b, "r"), other, one))


def _exactly(sql: exp.Column, kind: Kind, other: Kind) -> exp.Expr:
    """A value as what can be compared with a value of another kind: of reals with integers, those that are whole.

    The map is one to one where it is not NULL, so that values that do not repeat do not repeat afterwards.
    """
    if kind.type == "integer":
        return try_cast(sql, "BIGINT")
    if (kind.type, other.type) != ("real", "integer"):
        return sql
    whole = exp.EQ(this=exp.Floor(this=sql.copy()), expression=sql.copy())
    return choose((whole, try_cast(sql, "BIGINT")), otherwise=exp.null())


def _check_units(relation: Join, schema: Schema, stored: Stored) -> None:
    """Units of different types could be equal only after a cast, and a cast can make two units one."""
    types = {unit_type(side, schema, stored) for side in (relation.left, relation.right)}
    if len(types) > 1 and not types <= set(INTEGERS):
        raise InputError("Store the units of both tables as the same type: joined units must be equal as they are.")


# One row for each unit


def _per_unit(relation: PerUnit, names: Collection[str], reading: _Reading) -> exp.Select:
    """Keys and arguments first, then the aggregates of each unit and its keys."""
    inner, scope = _below(relation.source, expressions_in(relation), (), replace(reading, ordered=False))
    keys = {name: to_engine(e, scope) for name, e in relation.keys}
    wanted = {name: _WithinUnit(aggregate, scope) for name, aggregate in relation.aggregates if name in names}
    arguments = {name: part.argument for name, part in wanted.items() if part.argument is not None}
    rows = selected(inner, {UNIT: column(UNIT), **keys, **arguments})
    made: dict[str, exp.Expr] = {name: column(name) for name in (UNIT, *keys) if name == UNIT or name in names}
    made |= {name: part.result(column(name)) for name, part in wanted.items()}
    if reading.ordered:
        made[ORDER] = _order([column(name) for name in keys], reading)
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
        grid = sum_grid(kind)
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


def _sum(steps: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    total, most = exp.Sum(this=steps), most_steps(kind, grid)
    within = clamped(total, number(-most), number(most), total)
    return try_cast(within, "BIGINT") if kind.type == "integer" else scaled(exp.cast(within, "DOUBLE"), grid)


def _mean(steps: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    total, count = exp.cast(exp.Sum(this=steps), "DOUBLE"), exp.cast(exp.Count(this=steps.copy()), "DOUBLE")
    mean = scaled(binary(exp.Div, total, count), grid)
    low, high = declared(replace(kind, type="real", grid=None, keys=None)).ends
    return clamped(mean, number(float(low)), number(float(high)), mean)
