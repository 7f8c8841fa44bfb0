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
to the question. Where rows of different units meet, those with each value are then retained in the same way, by the
columns that are used.
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
    own,
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
from noisette.query.multiplicity import PerValue
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Aggregate, Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.reads import columns_read, expressions_in
from noisette.query.schema import Schema, Table
from noisette.query.shape import ROW, UNIT, Shape
from noisette.query.stability import Retention, retention, shape_of

__all__ = ["Stored", "as_compared", "relation_sql", "selected", "unit_type"]

Stored: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each table its columns and the types they are stored as."""

AS_TEXT = frozenset(("ENUM", "HUGEINT", "UHUGEINT"))

ORDER = "order"
"""The column by which rows of a unit are retained; like `UNIT` no other column can have its name."""


@dataclass(frozen=True)
class _Reading:
    """What the SELECT of a relation depends on beside the relation.

    `read`: the columns of each table that the question reads · `ordered`: whether the column "order" is needed ·
    `owned`: whether the column "unit" is.
    """

    schema: Schema
    stored: Stored
    raw: frozenset[str]
    seed: int
    read: Mapping[str, tuple[str, ...]]
    ordered: bool = False
    owned: bool = True


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


def selected(rows: exp.Select | exp.Union, columns: Mapping[str, exp.Expr]) -> exp.Select:
    """Named expressions over the rows of another SELECT; at least one column, as SQL wants it."""
    return exp.select(*_listed(columns), copy=False).from_(rows.subquery("rows", copy=False), copy=False)


def _listed(columns: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    named = (columns or {"nothing": exp.true()}).items()
    return [exp.Alias(this=own(sql), alias=exp.to_identifier(name, quoted=True)) for name, sql in named]


def _check_names(shape: Shape) -> None:
    """The engine takes names that differ only in case for one name, and then for the first."""
    names = [*(name.lower() for name in shape.columns), *([] if shape.unit in (None, ROW) else [UNIT, ORDER])]
    if len(set(names)) < len(names):
        raise InputError(
            f"Give each column a name of its own, not {UNIT} or {ORDER}: upper and lower case do not tell names apart."
        )


def _same(names: Iterable[str], shape: Shape, reading: _Reading) -> dict[str, exp.Expr]:
    """Columns as they are, and the unit and the order if they are there."""
    carried = [UNIT] * reading.owned + [ORDER] * reading.ordered
    carried = [] if shape.unit in (None, ROW) else carried
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
    return _first(rows, names, limit, [UNIT], column(ORDER))


def _per_value(rows: exp.Select, names: Sequence[str], limit: PerValue, reading: _Reading) -> exp.Select:
    """The first rows with each value, by all columns that the question uses: rows that tie are the same to it."""
    known = chain(exp.And, [exp.Not(this=exp.Is(this=column(name), expression=exp.null())) for name in limit.columns])
    order = _order([column(name) for name in names], reading)
    return _first(selected(rows, {n: column(n) for n in names}).where(known), names, limit.rows, limit.columns, order)


def _first(rows: exp.Select, names: Iterable[str], limit: int, by: Sequence[str], order_by: exp.Expr) -> exp.Select:
    """The first rows in an order among those that agree in some columns."""
    order = exp.Order(expressions=[exp.Ordered(this=order_by, nulls_first=False)])
    rank = exp.Window(this=exp.RowNumber(), partition_by=[column(name) for name in by], order=order)
    same = {name: column(name) for name in names}
    ranked = selected(rows, {**same, "rank": rank})
    return selected(ranked, same).where(exp.LTE(this=column("rank"), expression=number(limit)), copy=False)


def _retained_of_few(rows: exp.Select, names: Iterable[str], limit: int) -> exp.Select:
    """The same, where few units have more rows than the limit: only theirs are ordered, which costs a tenth."""
    same = {name: column(name) for name in names}
    more = exp.GT(this=exp.Count(this=exp.Star()), expression=number(limit))
    crowded = selected(rows.copy(), {UNIT: column(UNIT)}).group_by(column(UNIT), copy=False).having(more, copy=False)
    among = exp.In(this=column(UNIT), query=crowded.subquery(copy=False))
    others = selected(rows.copy(), same).where(exp.Not(this=among.copy()), copy=False)
    some = exp.select(exp.Star()).from_(rows.subquery("rows", copy=False), copy=False).where(among, copy=False)
    return selected(exp.union(others, _retained(some, same, limit), distinct=False, copy=False), same)


# Tables


def _scan(relation: Scan, names: Iterable[str], reading: _Reading) -> exp.Select:
    table, stored = reading.schema[relation.table], reading.stored[relation.table]
    own = "child" if table.through and reading.owned else None

    def clean(name: str) -> exp.Expr:
        return normalised(column(name, own), table.column(name).kind, _stored(name, table, stored))

    plain = {name: name.removeprefix(f"{relation.alias}.") for name in names}
    made = {name: column(stem, own) if name in reading.raw else clean(stem) for name, stem in plain.items()}
    private = not table.public and table.unit is not None
    if private and reading.ordered:
        made[ORDER] = _order([clean(name) for name in reading.read.get(table.name, ())], reading)
    if private and reading.owned:
        return _owned(table, made, reading)
    return exp.select(*_listed(made), copy=False).from_(exp.to_identifier(table.name, quoted=True), copy=False)


def _owned(table: Table, made: dict[str, exp.Expr], reading: _Reading) -> exp.Select:
    """Columns of the rows of a table that belong to somebody, and their unit.

    Along a foreign key it is the unit of the row that is referred to: keys are compared as they are stored. A table
    that refers to another is called "child" here, and those that it refers to have no other columns than keys.
    """
    stored = reading.stored[table.name]
    rows = exp.to_identifier(table.name, quoted=True)
    if table.through:
        link = table.through[0]
        far = reading.schema[link.table]
        deeper = "child" if far.through else None
        keys = [_compared(column(there, deeper), far, reading) for there in link.there]
        above = _owned(far, {f"key{i}": key for i, key in enumerate(keys)}, reading)
        pairs = [(_compared(column(here, "child"), table, reading), f"key{i}") for i, here in enumerate(link.here)]
        met = chain(exp.And, [binary(exp.EQ, key, column(name, "parent")) for key, name in pairs])
        child = exp.Table(this=rows, alias=exp.TableAlias(this=exp.to_identifier("child")))
        listed = _listed(made | {UNIT: column(UNIT, "parent")})
        parent = above.subquery("parent", copy=False)
        return (
            exp.select(*listed, copy=False).from_(child, copy=False).join(parent, on=met, join_type="inner", copy=False)
        )
    unit, base = column(table.unit or ""), base_type(_unit_stored(table, stored))
    owner = positive_zero(unit) if base in FLOATS else exp.cast(unit, "VARCHAR") if base in AS_TEXT else unit
    owned: exp.Expr = exp.Not(this=exp.Is(this=unit.copy(), expression=exp.null()))
    if base in FLOATS:
        owned = exp.And(this=owned, expression=exp.Not(this=is_nan(unit)))
    return exp.select(*_listed(made | {UNIT: owner}), copy=False).from_(rows, copy=False).where(owned, copy=False)


def _compared(key: exp.Column, table: Table, reading: _Reading) -> exp.Expr:
    """A column of a foreign key, as what is equal where the stored values are."""
    return as_compared(key, _stored(key.name, table, reading.stored[table.name]))


def as_compared(key: exp.Column, stored: str) -> exp.Expr:
    """A stored column as what can be compared with that of another table: an ENUM is the text that it stands for."""
    return exp.cast(key, "VARCHAR") if base_type(stored) == "ENUM" else key


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
            owner = schema[schema[name].owner]
            found = _unit_stored(owner, stored[owner.name])
            return "VARCHAR" if base_type(found) == "ENUM" else found.upper()
        case Join(left, right):
            return unit_type(right if shape_of(left, schema).public else left, schema, stored)
        case Where(source) | Select(source) | PerUnit(source) | Copies(source):
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
            made[ORDER] = _order(parts, reading) if both else column(ORDER, owner)
    tables = [rows.subquery(side, copy=False) for side, rows in sides.items()]
    met = chain(exp.And, conditions)
    rows = exp.select(*_listed(made), copy=False).from_(tables[0], copy=False)
    rows = rows.join(tables[1], on=met, join_type=relation.how, copy=False)
    if limits.result is None:
        return rows
    return _retained(rows, [name for name in made if name != ORDER or reading.ordered], limits.result)


def _join_by_value(relation: Join, names: Collection[str], limits: Retention, reading: _Reading) -> exp.Select:
    """Pairs of rows of any units: of each side those that are retained of a unit, then those with each value."""
    assert limits.by_value is not None
    used = {*names, *(name for pair in relation.on for name in pair)}
    shapes = [shape_of(side, reading.schema) for side in (relation.left, relation.right)]
    below = replace(reading, ordered=False, owned=True)
    sides = zip((relation.left, relation.right), shapes, (limits.left, limits.right), limits.by_value, strict=True)
    left, right = (
        _per_value(_side(side, used, most, below), [n for n in shape.columns if n in used], by, reading)
        for side, shape, most, by in sides
    )
    met = chain(exp.And, [_equal(a, shapes[0].columns[a], b, shapes[1].columns[b]) for a, b in relation.on])
    made = {name: column(name, "l" if name in shapes[0].columns else "r") for name in names}
    rows = exp.select(*_listed(made), copy=False).from_(left.subquery("l", copy=False), copy=False)
    return rows.join(right.subquery("r", copy=False), on=met, join_type="inner", copy=False)


def _with_the_unit_of_the_other(relation: Join, limits: Retention, reading: _Reading) -> str | None:
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


def _as_stored(table: str, name: str, reading: _Reading) -> bool:
    """Whether clean values of a column are equal exactly where the stored ones are."""
    stored, key = reading.stored[table][name], column(name)
    clean = normalised(key, reading.schema[table].column(name).kind, stored)
    return clean == key or (base_type(stored) in INTEGERS and clean == exp.cast(key, "BIGINT"))


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


# Copies


def _copies(relation: Copies, names: Collection[str], reading: _Reading) -> exp.Select:
    """The rows once for each copy, with its number; the order of a row in a join depends on the copy, too."""
    shape = shape_of(relation, reading.schema)
    same = _same([name for name in names if name != relation.number], shape, reading)
    rows = _sql(relation.source, [name for name in names if name != relation.number], reading)
    made = []
    for i in range(1, relation.times + 1):
        copy = exp.cast(number(i), "BIGINT")
        columns = same | ({relation.number: copy} if relation.number in names else {})
        if ORDER in same:
            columns[ORDER] = _order([column(ORDER), copy], reading)
        made.append(selected(rows.copy(), columns))
    return selected(
        exp.union(*made, distinct=False), {name: column(name) for name in (*names, *_same((), shape, reading))}
    )


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
