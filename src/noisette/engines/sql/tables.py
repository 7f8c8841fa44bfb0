"""The rows of a table as a SELECT: clean columns under the names of the plan, and the unit that each row belongs to.

The unit travels along as the column "unit" (`shape.UNIT`), as it is stored: it is only compared with itself. Some
types do so as text: of an ENUM the engine hashes the number, which depends on the other values of the type, and Arrow
has no integers of 128 bits.

What becomes of a row without a unit: where a table declares a unit, rows whose unit is NULL or NaN belong to nobody and
are left out of everything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from sqlglot import exp

from noisette.engines.contract import FLOATS, STORED, base_type
from noisette.engines.sql.expressions import normalised, to_engine
from noisette.engines.sql.retention import CHOSEN_BY, ORDER, PERIOD, order_of, per_period
from noisette.engines.sql.stored import Stored, is_inside
from noisette.engines.sql.syntax import binary, chain, choose, column, is_nan, listed, positive_zero, selected
from noisette.errors import InputError
from noisette.query.expression import Call, Literal, Name
from noisette.query.operations import declared
from noisette.query.plan import Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.requirements import moment
from noisette.query.schema import RowsPerPeriod, Schema, Table
from noisette.query.shape import UNIT
from noisette.query.stability import shape_of
from noisette.query.variants import inside, plain, telling_apart, within

__all__ = ["Reading", "as_compared", "scan_sql", "unit_type"]

AS_TEXT = frozenset(("ENUM", "HUGEINT", "UHUGEINT"))
_DATE = "date"


@dataclass(frozen=True)
class Reading:
    """What the SELECT of a relation depends on beside the relation.

    `read`: the columns of each table that the question reads · `limited`: those that it reads within their bounds ·
    `ordered`: whether the column "order" is needed · `owned`: whether the column "unit" is.
    """

    schema: Schema
    stored: Stored
    raw: frozenset[str]
    salt: int
    read: Mapping[str, tuple[str, ...]]
    limited: Mapping[str, tuple[str, ...]]
    ordered: bool = False
    owned: bool = True


def scan_sql(relation: Scan, names: Iterable[str], reading: Reading) -> exp.Select:
    """Some columns of a table, and the unit and the order if they are needed."""
    table, stored = reading.schema[relation.table], reading.stored[relation.table]
    own = "child" if table.through and (reading.owned or table.per_period) else None

    def clean(name: str) -> exp.Expr:
        return normalised(column(name, own), table.column(name).kind, _stored(name, table, stored))

    def variant(name: str) -> exp.Expr:
        stem = plain(name).partition(".")[2]
        there = is_inside(column(stem, own), table.column(stem).kind, _stored(stem, table, stored))
        return there if name == inside(plain(name)) else choose((there, clean(stem)), otherwise=exp.null())

    def made_of(name: str) -> exp.Expr:
        stem = name.removeprefix(f"{relation.alias}.")
        return variant(name) if name in relation.also else column(stem, own) if name in reading.raw else clean(stem)

    made = {name: made_of(name) for name in names}
    private = not table.public and table.unit is not None
    if private and reading.ordered:
        read = [clean(name) for name in reading.read.get(table.name, ())]
        limited = [variant(within(f"{relation.alias}.{name}")) for name in reading.limited.get(table.name, ())]
        made[ORDER] = order_of([*read, *limited], reading.salt)
    if private and table.per_period is not None:
        every = [
            clean(name.removeprefix(f"{relation.alias}.")) if name == plain(name) else variant(name)
            for name in telling_apart(table, relation.alias)
        ]
        return _in_periods(table, table.per_period, made, order_of(every, reading.salt), reading)
    if private and reading.owned:
        return _owned(table, made, reading)
    return exp.select(*listed(made), copy=False).from_(exp.to_identifier(table.name, quoted=True), copy=False)


def _in_periods(
    table: Table,
    limit: RowsPerPeriod,
    made: Mapping[str, exp.Expr],
    order: exp.Expr,
    reading: Reading,
) -> exp.Select:
    """Of the rows of each unit the first ones in each period, in an order by all columns; none without a date."""
    own, kind = "child" if table.through else None, declared(table.column(limit.of).kind)
    any_date = replace(kind, low=None, high=None, keys=None, nullable=True)
    at = normalised(column(limit.of, own), any_date, _stored(limit.of, table, reading.stored[table.name]))
    rows = _owned(table, {**made, _DATE: at, CHOSEN_BY: order}, reading)
    date, scope = Name(_DATE), {_DATE: any_date}
    low, high = (Literal(moment(end, kind.type)) for end in kind.ends)
    names = {name: column(name) for name in (*made, UNIT, CHOSEN_BY)}
    period = to_engine(Call("date_trunc", (Literal(limit.per), date)), scope)
    inside = Call("and", (Call("at_least", (date, low)), Call("at_most", (date, high))))
    dated = selected(rows, {**names, PERIOD: period}).where(to_engine(inside, scope), copy=False)
    return per_period(dated, (*made, UNIT), limit.most)


def _owned(table: Table, made: dict[str, exp.Expr], reading: Reading) -> exp.Select:
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
        every = listed(made | {UNIT: column(UNIT, "parent")})
        parent = above.subquery("parent", copy=False)
        return (
            exp.select(*every, copy=False).from_(child, copy=False).join(parent, on=met, join_type="inner", copy=False)
        )
    unit, base = column(table.unit or ""), base_type(_unit_stored(table, stored))
    owner = positive_zero(unit) if base in FLOATS else exp.cast(unit, "VARCHAR") if base in AS_TEXT else unit
    owned: exp.Expr = exp.Not(this=exp.Is(this=unit.copy(), expression=exp.null()))
    if base in FLOATS:
        owned = exp.And(this=owned, expression=exp.Not(this=is_nan(unit)))
    return exp.select(*listed(made | {UNIT: owner}), copy=False).from_(rows, copy=False).where(owned, copy=False)


def _compared(key: exp.Column, table: Table, reading: Reading) -> exp.Expr:
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
