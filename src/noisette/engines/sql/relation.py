"""A relation as one SELECT for the engine: typed syntax trees with quoted names, never pasted text.

Every column comes under the name it has in the plan, already clean (`stored.normalised`), and only if it is needed. The
unit of a row travels along (`tables`), and what orders a unit's rows where a join retains some of them (`retention`).

Equality is exact everywhere. Clean values of one type are equal where they are the same value; an integer and a real
where the real is that integer. The engine would compare both as doubles, where 2^60 and 2^60 + 1 are one.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from noisette.engines.contract import INTEGERS, base_type
from noisette.engines.sql.expressions import normalised, to_engine
from noisette.engines.sql.retention import ORDER, order_of, per_value, retained, retained_of_few
from noisette.engines.sql.stored import Stored
from noisette.engines.sql.syntax import binary, chain, choose, column, listed, number, selected, try_cast
from noisette.engines.sql.tables import Reading, scan_sql, unit_type
from noisette.engines.sql.within_unit import WithinUnit
from noisette.engines.tie_break import join_seed
from noisette.errors import InputError
from noisette.query.expression import Expression, columns_of
from noisette.query.kind import Kind
from noisette.query.plan import Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.reads import columns_read, expressions_in, limited_in
from noisette.query.schema import Schema
from noisette.query.shape import ROW, UNIT, Shape
from noisette.query.stability import Retention, retention, shape_of

__all__ = ["relation_sql"]


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

    >>> from fractions import Fraction
    >>> from noisette.query.schema import Column, Table
    >>> people = Table("people", (Column("age", Kind("integer", Fraction(0), Fraction(120))),), unit="id")
    >>> stored = {"people": {"age": "INTEGER", "id": "BIGINT"}}
    >>> relation_sql(Scan("people", "p"), {"people": people}, stored).sql("duckdb")
    'SELECT CASE WHEN ... END AS "p.age", "id" AS "unit" FROM "people" WHERE NOT "id" IS NULL'
    """
    names = shape_of(relation, schema).columns if needed is None else needed
    read: dict[str, tuple[str, ...]] = {}
    for table, name in columns_read(relation, schema, names):
        read[table] = (*read.get(table, ()), name)
    return _sql(relation, names, Reading(schema, stored, frozenset(raw), join_seed(secret), read, limited_in(relation)))


def _sql(relation: Relation, needed: Collection[str], reading: Reading) -> exp.Select:
    shape = shape_of(relation, reading.schema)
    _check_names(shape)
    names = [name for name in shape.columns if name in needed]
    match relation:
        case Scan():
            return scan_sql(relation, names, reading)
        case Where(source, condition):
            inner, scope = _below(source, (condition,), names, reading)
            return selected(inner, _same(names, shape, reading)).where(to_engine(condition, scope), copy=False)
        case Select(source, columns):
            wanted = {name: e for name, e in columns if name in names}
            inner, scope = _below(source, wanted.values(), (), reading)
            return selected(inner, {n: to_engine(e, scope) for n, e in wanted.items()} | _same((), shape, reading))
        case Join():
            return _join(relation, names, reading)
        case PerUnit():
            return _per_unit(relation, names, reading)
        case Copies():
            return _copies(relation, names, reading)
        case _:
            assert_never(relation)


def _check_names(shape: Shape) -> None:
    """The engine takes names that differ only in case for one name, and then for the first."""
    names = [*(name.lower() for name in shape.columns), *([] if shape.unit in (None, ROW) else [UNIT, ORDER])]
    if len(set(names)) < len(names):
        raise InputError(
            f"Give each column a name of its own, not {UNIT} or {ORDER}: upper and lower case do not tell names apart."
        )


def _same(names: Iterable[str], shape: Shape, reading: Reading) -> dict[str, exp.Expr]:
    """Columns as they are, and the unit and the order if they are there."""
    carried = [UNIT] * reading.owned + [ORDER] * reading.ordered
    carried = [] if shape.unit in (None, ROW) else carried
    return {name: column(name) for name in (*names, *carried)}


def _below(
    source: Relation, used: Iterable[Expression], names: Iterable[str], reading: Reading
) -> tuple[exp.Select, Mapping[str, Kind]]:
    """The rows below a node with the columns that it computes with or passes on, and what is known of them."""
    needed = {*names, *(name for e in used for name in columns_of(e))}
    return _sql(source, needed, reading), shape_of(source, reading.schema).columns


# Joins


def _join(relation: Join, names: Collection[str], reading: Reading) -> exp.Select:
    """Pairs of rows. Two private sides are joined on their units as stored, whatever else they are joined on."""
    left, right = (shape_of(side, reading.schema) for side in (relation.left, relation.right))
    if set(left.columns) & set(right.columns):
        raise InputError("Give the two sides of a join different names: a AS x JOIN a AS y.")
    limits = retention(relation, reading.schema)
    if limits.by_value is not None:
        return _join_by_value(relation, names, limits, reading)
    ordered = reading.ordered or limits.result is not None
    used = {*names, *(name for pair in relation.on for name in pair)}
    unowned = _with_the_unit_of_the_other(relation, limits, reading)
    sides = {
        "l": _side(relation.left, used, limits.left, replace(reading, ordered=ordered, owned=unowned != "left")),
        "r": _side(relation.right, used, limits.right, replace(reading, ordered=ordered, owned=unowned != "right")),
    }
    conditions = [_equal(a, left.columns[a], b, right.columns[b]) for a, b in relation.on]
    if not left.public and not right.public and unowned is None:
        _check_units(relation, reading.schema, reading.stored)
        conditions.append(binary(exp.EQ, column(UNIT, "l"), column(UNIT, "r")))
    made: dict[str, exp.Expr] = {name: column(name, "l" if name in left.columns else "r") for name in names}
    if not {left.unit, right.unit} <= {None, ROW}:
        owner = "r" if left.public or unowned == "left" else "l"
        made[UNIT] = column(UNIT, owner)
        if ordered:
            parts = [*_parts("l", left, used), *_parts("r", right, used)]
            both = limits.multiplies or limits.child is not None
            made[ORDER] = order_of(parts, reading.salt) if both else column(ORDER, owner)
    tables = [rows.subquery(side, copy=False) for side, rows in sides.items()]
    met = chain(exp.And, conditions)
    rows = exp.select(*listed(made), copy=False).from_(tables[0], copy=False)
    rows = rows.join(tables[1], on=met, join_type=relation.how, copy=False)
    if limits.result is None:
        return rows
    return retained(rows, [name for name in made if name != ORDER or reading.ordered], limits.result)


def _join_by_value(relation: Join, names: Collection[str], limits: Retention, reading: Reading) -> exp.Select:
    """Pairs of rows of any units: of each side those that are retained of a unit, then those with each value."""
    assert limits.by_value is not None
    used = {*names, *(name for pair in relation.on for name in pair)}
    shapes = [shape_of(side, reading.schema) for side in (relation.left, relation.right)]
    below = replace(reading, ordered=False, owned=True)
    sides = zip((relation.left, relation.right), shapes, (limits.left, limits.right), limits.by_value, strict=True)
    left, right = (
        per_value(_side(side, used, most, below), [n for n in shape.columns if n in used], by, reading.salt)
        for side, shape, most, by in sides
    )
    met = chain(exp.And, [_equal(a, shapes[0].columns[a], b, shapes[1].columns[b]) for a, b in relation.on])
    made = {name: column(name, "l" if name in shapes[0].columns else "r") for name in names}
    rows = exp.select(*listed(made), copy=False).from_(left.subquery("l", copy=False), copy=False)
    return rows.join(right.subquery("r", copy=False), on=met, join_type="inner", copy=False)


def _with_the_unit_of_the_other(relation: Join, limits: Retention, reading: Reading) -> str | None:
    """The side of a join along its foreign key whose unit need not be looked up: it is that of the row it meets."""
    if limits.child is None or (limits.child, relation.how) == ("left", "left"):  # there a row may meet none
        return None
    swapped = limits.child == "right"
    child, parent = (relation.right, relation.left) if swapped else (relation.left, relation.right)
    pairs = {(b, a) if swapped else (a, b) for a, b in relation.on}
    while isinstance(child, Where):
        child = child.source
    if not isinstance(child, Scan) or not reading.schema[child.table].through:
        return None
    if reading.schema[child.table].per_period is not None:  # by their unit, rows are retained in each period
        return None
    link = reading.schema[child.table].through[0]
    for far in (scan for scan in _scans(parent) if scan.table == link.table):
        keys = [(child, here) for here in link.here] + [(far, there) for there in link.there]
        met = {(f"{child.alias}.{here}", f"{far.alias}.{there}") for here, there in link.on}
        if met <= pairs and all(_as_stored(scan.table, name, reading) for scan, name in keys):
            return limits.child
    return None


def _scans(relation: Relation) -> list[Scan]:
    """The tables whose columns a relation has as they are."""
    match relation:
        case Scan():
            return [relation]
        case Where(source):
            return _scans(source)
        case Join(left, right):
            return _scans(left) + _scans(right)
        case _:
            return []


def _as_stored(table: str, name: str, reading: Reading) -> bool:
    """Whether clean values of a column are equal exactly where the stored ones are."""
    stored, key = reading.stored[table][name], column(name)
    clean = normalised(key, reading.schema[table].column(name).kind, stored)
    return clean == key or (base_type(stored) in INTEGERS and clean == exp.cast(key, "BIGINT"))


def _side(relation: Relation, used: Collection[str], limit: int | None, reading: Reading) -> exp.Select:
    """One side of a join, with no more rows of a unit than it retains."""
    shape = shape_of(relation, reading.schema)
    if limit is None:
        return _sql(relation, used, reading)
    rows = _sql(relation, used, replace(reading, ordered=True))
    return retained_of_few(rows, _same([name for name in shape.columns if name in used], shape, reading), limit)


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


# Copies


def _copies(relation: Copies, names: Collection[str], reading: Reading) -> exp.Select:
    """The rows once for each copy, with its number; the order of a row in a join depends on the copy, too."""
    shape = shape_of(relation, reading.schema)
    same = _same([name for name in names if name != relation.number], shape, reading)
    rows = _sql(relation.source, [name for name in names if name != relation.number], reading)
    made = []
    for i in range(1, relation.times + 1):
        copy = exp.cast(number(i), "BIGINT")
        columns = same | ({relation.number: copy} if relation.number in names else {})
        if ORDER in same:
            columns[ORDER] = order_of([column(ORDER), copy], reading.salt)
        made.append(selected(rows.copy(), columns))
    return selected(
        exp.union(*made, distinct=False), {name: column(name) for name in (*names, *_same((), shape, reading))}
    )


# One row for each unit


def _per_unit(relation: PerUnit, names: Collection[str], reading: Reading) -> exp.Select:
    """Keys and arguments first, then the aggregates of each unit and its keys."""
    inner, scope = _below(relation.source, expressions_in(relation), (), replace(reading, ordered=False))
    keys = {name: to_engine(e, scope) for name, e in relation.keys}
    wanted = {name: WithinUnit(aggregate, scope) for name, aggregate in relation.aggregates if name in names}
    arguments = {name: part.argument for name, part in wanted.items() if part.argument is not None}
    rows = selected(inner, {UNIT: column(UNIT), **keys, **arguments})
    made: dict[str, exp.Expr] = {name: column(name) for name in (UNIT, *keys) if name == UNIT or name in names}
    made |= {name: part.result(column(name)) for name, part in wanted.items()}
    if reading.ordered:
        made[ORDER] = order_of([column(name) for name in keys], reading.salt)
    return selected(rows, made).group_by(*(column(name) for name in (UNIT, *keys)))
