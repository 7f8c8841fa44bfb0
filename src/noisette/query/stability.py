"""What one unit can change: the columns of a relation, whose its rows are, and how many of them one unit can own.

Every row of a private relation is made of rows of one unit and of public rows. Then a unit that is added or removed
adds or removes its own rows and changes no other, whatever the plan does; how many they are is settled at the end, by
retaining at most a declared number of rows and groups of each unit (`bounding`). Each case below keeps that or refuses.

A join that multiplies rows is the exception: it retains rows of each private side first (`retention`). So one unit can
produce no more rows than the product of the limits, whatever it stores, and no more than `MOST_JOINED` after any step,
of at most `MOST_PAIRS`: what a unit adds to the cost of a question, too, is bounded by public numbers alone.

Where each row of one side meets one row of the other side at most, as along a foreign key, a join multiplies nothing:
it retains no rows first, and the limits of that side hold for the result.

Where rows of different units meet, a row of the result belongs to both of them. Such a join uses a declared number of
rows with each value (`multiplicity`), and what one unit can change of its result is `Moved`: no row has a unit of its
own then, and only questions in SQL about declared keys are answered.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal as OneOf
from typing import assert_never

from noisette.errors import InputError, LimitError
from noisette.names import closest
from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.multiplicity import PerValue, rows_per_value
from noisette.query.once import once
from noisette.query.operations import declared, kind_of
from noisette.query.periods import Periods, periods_of
from noisette.query.plan import Copies, Join, Named, PerUnit, Relation, Scan, Select, Where
from noisette.query.reads import tables_of
from noisette.query.schema import Limits, RowsPerPeriod, Schema, Table
from noisette.query.shape import ROW, Moved, Retained, RetainedPerPeriod, Shape
from noisette.query.unit_aggregates import unit_aggregate
from noisette.query.unit_keys import meet_in_unit, table_keys, unit_names
from noisette.query.variants import plain, variant_kind

__all__ = ["MOST_JOINED", "MOST_PAIRS", "Retention", "retention", "shape_of"]

MOST_JOINED = 1_000
"""The most rows that one unit can produce by a join: of more, this many are retained, and `explain` says so."""


MOST_PAIRS = 100_000
"""The most pairs of rows that a join may make of one unit's rows before some are retained; more are refused."""


@once
def shape_of(relation: Relation, schema: Schema) -> Shape:
    """What is known of a relation, or a sentence on why it cannot be asked."""
    match relation:
        case Scan():
            return _scan(relation, schema)
        case Where(source, condition):
            shape = shape_of(source, schema)
            if kind_of(condition, shape.columns).type != "boolean":
                raise InputError("WHERE needs a condition that is true or false, such as age >= 18.")
            return _within(shape, shape.periods and shape.periods.where(condition))
        case Select(source, columns):
            shape = shape_of(source, schema)
            return replace(shape, columns=_named(columns, shape), periods=shape.periods and shape.periods.of(columns))
        case Join():
            return _join(relation, schema)
        case PerUnit():
            return _per_unit(relation, schema)
        case Copies():
            return _copies(relation, schema)
        case _:
            assert_never(relation)


def _copies(relation: Copies, schema: Schema) -> Shape:
    """As many rows of a unit for each copy; what its owner allows to use of it stays the same."""
    shape = shape_of(relation.source, schema)
    if shape.unit == ROW:
        raise InputError(
            "Each row is a unit of its own here, and UNION ALL could count it twice: join the conditions with OR."
        )
    number = Kind("integer", Fraction(1), Fraction(relation.times), Fraction(1), nullable=False)
    rows = None if shape.rows is None else shape.rows * relation.times
    made = replace(shape, columns={**shape.columns, relation.number: number}, rows=rows)
    return _within(made, shape.periods and shape.periods.times(relation.times))


def _scan(relation: Scan, schema: Schema) -> Shape:
    if relation.table not in schema:
        raise InputError(f"There is no table {relation.table}: {closest(relation.table, sorted(schema), 'there are')}")
    table = schema[relation.table]
    columns = {f"{relation.alias}.{column.name}": column.kind for column in table.columns}
    columns |= {name: variant_kind(name, columns[plain(name)]) for name in relation.also}
    if table.public:
        return Shape(columns, None, None)
    if table.unit is None:
        return Shape(columns, ROW, 1, table.limits)
    through = ((table.name, table.through),) if table.through else ()
    shape = Shape(columns, table.unit, None, table.limits, through=through)
    return shape if table.per_period is None else _per_period(shape, table, table.per_period, relation.alias)


def _per_period(shape: Shape, table: Table, limit: RowsPerPeriod, alias: str) -> Shape:
    """A table of which so many rows of a unit are retained in each period, and none without a date."""
    name, kind = f"{alias}.{limit.of}", table.column(limit.of).kind.maybe(False)
    retained = (RetainedPerPeriod(table.name, limit, declared(kind).bounds or ("", "")),)
    columns = {**shape.columns, name: kind}
    return _within(replace(shape, columns=columns, retained=retained), periods_of(kind, limit, name))


def _within(shape: Shape, periods: Periods | None) -> Shape:
    """The same with the rows that a unit can have in some periods."""
    if periods is None:
        return shape
    rows = periods.total if shape.rows is None else min(shape.rows, periods.total)
    return replace(shape, rows=rows, limits=Limits(rows=rows), periods=periods)


def _named(columns: tuple[Named, ...], shape: Shape) -> dict[str, Kind]:
    return {name: kind_of(expression, shape.columns) for name, expression in columns}


def _per_unit(relation: PerUnit, schema: Schema) -> Shape:
    shape = shape_of(relation.source, schema)
    if shape.public:
        raise InputError(
            "A sub-query with GROUP BY needs a private table: a public one can be grouped before it is opened."
        )
    if shape.moved is not None:
        raise InputError("Rows of this join belong to two units, so a sub-query cannot group by unit: group first.")
    if shape.unit == ROW:
        raise InputError(
            "Each row is a unit of its own here, so a sub-query cannot group by unit: leave the GROUP BY out."
        )
    columns = _named(relation.keys, shape)
    for name, aggregate in relation.aggregates:
        columns[name] = unit_aggregate(aggregate, shape)
    names = unit_names(relation.source, schema)
    others = [(name, e) for name, e in relation.keys if not (isinstance(e, Name) and e.name in names)]
    if not others:
        return replace(shape, columns=columns, rows=1, periods=None)
    return _within(replace(shape, columns=columns), shape.periods and shape.periods.per_unit(others))


# Joins


def _join(relation: Join, schema: Schema) -> Shape:
    left, right = shape_of(relation.left, schema), shape_of(relation.right, schema)
    _comparable(relation, left, right)
    outer = relation.how == "left"
    partners = {name: kind.maybe() if outer else kind for name, kind in right.columns.items()}
    columns = {**left.columns, **partners}
    if left.public and right.public:
        return Shape(columns, None, None)
    if left.public and outer:
        raise InputError("Put the private table on the left of a LEFT JOIN: rows without an owner cannot be counted.")
    if not left.public and not right.public and not _same_units(relation, left, right, schema):
        return _of_two_units(relation, left, right, columns, schema)
    made = retention(relation, schema)
    sides = [(relation.left, made.left), (relation.right, made.right), (relation, made.result)]
    retained = tuple(
        Retained(_private_tables(side, schema), rows, joined=side is relation)
        for side, rows in sides
        if rows is not None
    )
    through = tuple(dict.fromkeys(left.through + right.through))
    own = replace(right if left.public else left, columns=columns, through=through)
    own = replace(own, retained=left.retained + right.retained + retained)
    if made.child is not None:
        return _along(own, left, right, made.child, outer=outer)
    if not made.multiplies:
        return own
    if made.rows is None:  # each row is a unit of its own, and may become several
        return replace(own, rows=None, moved=None)
    return replace(own, rows=made.rows, limits=Limits(rows=made.rows), periods=None)


def _along(own: Shape, left: Shape, right: Shape, child: OneOf["left", "right"], *, outer: bool) -> Shape:
    """A join in which each row of the child meets one row at most: as many rows as the child has, with its limits.

    If it is a LEFT JOIN from the other side, rows without a child come on top, and the larger limits hold.
    """
    if child == "left" or not outer:
        shape = left if child == "left" else right
        return replace(own, rows=shape.rows, limits=shape.limits, periods=shape.periods)
    rows = None if left.rows is None or right.rows is None else left.rows + right.rows
    most = [math.inf if shape.limits == Limits() else _joined_rows(shape) for shape in (left, right)]
    return replace(own, rows=rows, limits=left.limits if most[0] > most[1] else right.limits, periods=None)


@dataclass(frozen=True)
class Retention:
    """How many rows of one unit a join retains of each side and of its result; None where nothing has to be left out.

    `rows` is what one unit has afterwards, at most; None where each row is a unit. `multiplies`: one row may become
    several. `child`: the private side whose rows each meet one row of the other private side at most. `by_value`: how
    many rows of each side with one value meet others, where these may be of another unit.
    """

    multiplies: bool
    left: int | None = None
    right: int | None = None
    result: int | None = None
    rows: int | None = None
    child: OneOf["left", "right"] | None = None
    by_value: tuple[PerValue, PerValue] | None = None


@once
def retention(relation: Join, schema: Schema) -> Retention:
    """What a join retains: of each private side as many rows of a unit as its owner allows, and `MOST_JOINED` in all.

    With at most l rows of a unit on the left and r on the right, the unit has at most l r pairs of them; a public side
    in which no value of the joined column stands in more than m rows makes m rows of one at most.
    """
    left, right = shape_of(relation.left, schema), shape_of(relation.right, schema)
    if left.public and right.public:
        return Retention(False)
    if not left.public and not right.public and not _same_units(relation, left, right, schema):
        return _by_value(relation, left, right, schema)
    counts = [_repeats(relation, relation.left, schema), _repeats(relation, relation.right, schema)]
    if (right.public and counts[1] <= 1) or (left.public and counts[0] <= 1):
        return Retention(False)
    if (child := _child(relation, left, right, schema)) is not None:
        return Retention(False, child=child)
    if ROW in (left.unit, right.unit):
        return Retention(True)
    if not left.public and not right.public and (child := _other_than_single(left, right)) is not None:
        single = [1 if shape.rows is None and _allowed_rows(shape) == 1 else None for shape in (left, right)]
        return Retention(False, left=single[0], right=single[1], child=child)
    cut = [None if shape.public or shape.rows is not None else _joined_rows(shape) for shape in (left, right)]
    most = [shape.rows or rows or count for shape, rows, count in zip((left, right), cut, counts, strict=True)]
    product = most[0] * most[1]
    if product > MOST_PAIRS:
        whose = (right if left.public else left).whose
        raise InputError(
            f"One {whose} could make more than {MOST_PAIRS:,} rows by this join: join on a column "
            "of the public table, as it is stored, whose values repeat less, or lower the limits in the policy."
        )
    result = MOST_JOINED if product > MOST_JOINED else None
    return Retention(True, left=cut[0], right=cut[1], result=result, rows=int(min(product, MOST_JOINED)))


def _other_than_single(left: Shape, right: Shape) -> OneOf["left", "right"] | None:
    """The side whose rows meet one row at most, since a unit has one row on the other side alone."""
    single = [(shape.rows or _allowed_rows(shape)) == 1 for shape in (left, right)]
    return None if single[0] == single[1] else "left" if single[1] else "right"


def _child(join: Join, left: Shape, right: Shape, schema: Schema) -> OneOf["left", "right"] | None:
    """The side of a join of private relations whose rows meet one row at most; of both, the left one."""
    if left.public or right.public:
        return None
    if _unique([plain(b) for _, b in join.on], join.right, schema):
        return "left"
    return "right" if _unique([plain(a) for a, _ in join.on], join.left, schema) else None


def _unique(names: Collection[str], relation: Relation, schema: Schema) -> bool:
    """Whether no two rows of one unit can have equal values, none of them NULL, in these columns."""
    match relation:
        case Scan(table, alias):
            own = {name.removeprefix(f"{alias}.") for name in names if name.startswith(f"{alias}.")}
            return any(key <= own for key in table_keys(schema[table], schema))
        case Where(source):
            return _unique(names, source, schema)
        case Copies(source, _, number):
            return number in names and _unique(names, source, schema)
        case Select(source, columns):
            inner = [dict(columns).get(name) for name in names]
            return _unique([e.name for e in inner if isinstance(e, Name)], source, schema)
        case PerUnit(source, keys, _):
            units = unit_names(source, schema)
            return {name for name, e in keys if not (isinstance(e, Name) and e.name in units)} <= set(names)
        case Join(left, right):
            sides = ((side, set(names) & set(shape_of(side, schema).columns)) for side in (left, right))
            return any(_unique(own, side, schema) and _meets_one(relation, side, schema) for side, own in sides)
        case _:
            assert_never(relation)


def _meets_one(join: Join, side: Relation, schema: Schema) -> bool:
    """Whether each row of one side of a join meets one row of the other side at most."""
    other, cut = (join.right, "right") if side is join.left else (join.left, "left")
    shape = shape_of(other, schema)
    if shape.public:
        return _repeats(join, other, schema) <= 1
    names = [plain(b if cut == "right" else a) for a, b in join.on]
    return _unique(names, other, schema) or 1 in (shape.rows, getattr(retention(join, schema), cut))


def _joined_rows(shape: Shape) -> int:
    """How many rows of one unit go into a join, by what its owner allows."""
    rows = _allowed_rows(shape)
    if rows is None:
        raise LimitError(
            f"Say in the policy how many rows of one {shape.whose} may be joined with others: rows = 10, or "
            'rows = "each question" for a limit that each question chooses (streams need a number). Where it says '
            'rows = "private", buy the limit once, with rows(table, spend=...) or `noisette buy rows`.'
        )
    return rows


def _allowed_rows(shape: Shape) -> int | None:
    """How many rows of one unit its owner allows, in all; None where nothing is declared."""
    limits = shape.limits
    in_groups = None if limits.rows_per_group is None else limits.rows_per_group * (limits.groups or 1)
    return min((most for most in (limits.rows, in_groups) if most is not None), default=None)


def _repeats(join: Join, side: Relation, schema: Schema) -> float:
    """How many rows of a public side one row of the other side can meet; infinite where that is not known."""
    names = [plain(b if side is join.right else a) for a, b in join.on]
    return min((_repeated(name, side, schema) for name in names), default=math.inf)


def _repeated(name: str, relation: Relation, schema: Schema) -> float:
    """In how many rows of a public relation one value of a column stands, at most."""
    match relation:
        case Scan(table, alias):
            return schema[table].repeats.get(name.removeprefix(f"{alias}."), math.inf)
        case Where(source):
            return _repeated(name, source, schema)
        case Select(source, columns):
            inner = dict(columns).get(name)
            return _repeated(inner.name, source, schema) if isinstance(inner, Name) else math.inf
        case Join(left, right):
            own, other = (left, right) if name in shape_of(left, schema).columns else (right, left)
            return max(_repeated(name, own, schema), 1) * max(_repeats(relation, other, schema), 1)
        case _:
            return math.inf


def _private_tables(relation: Relation, schema: Schema) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table.name for table in tables_of(relation, schema) if not table.public))


def _comparable(relation: Join, left: Shape, right: Shape) -> None:
    if not relation.on:
        raise InputError("Join on equal columns: ON a.key = b.key.")
    for a, b in relation.on:
        one, other = kind_of(Name(a), left.columns), kind_of(Name(b), right.columns)
        if one.type != other.type and not (one.number and other.number):
            raise InputError(f"{a} and {b} cannot be equal: one is {one.type}, the other {other.type}.")


def _same_units(relation: Join, left: Shape, right: Shape, schema: Schema) -> bool:
    """Whether rows of two private relations meet only where both belong to the same unit."""
    if left.moved or right.moved:
        raise InputError("Join private tables on other columns than their units last, and only two of them so.")
    if ROW in (left.unit, right.unit):
        raise InputError("Two private tables can be joined only if both declare the same unit column in the policy.")
    if not meet_in_unit(relation, schema):
        return False
    types = {table.unit_type for table in tables_of(relation, schema) if not table.public and table.unit_type}
    if len(types) > 1:  # equal only after a cast, and a cast can make two units one
        raise InputError("Store the units of both tables as the same type: joined units must be equal as they are.")
    return True


# Joins of rows of different units


def _of_two_units(relation: Join, left: Shape, right: Shape, columns: dict[str, Kind], schema: Schema) -> Shape:
    """Rows that belong to units of both sides.

    With at most a and b rows of a unit on the sides, and m and n rows with each value, whoever leaves takes at most
    a n + b m rows along. Rows that were left out take the place of theirs, so that at most as many come.
    """
    made = retention(relation, schema)
    assert made.by_value is not None
    most = [shape.rows or cut or 1 for shape, cut in ((left, made.left), (right, made.right))]
    rows = most[0] * made.by_value[1].rows + most[1] * made.by_value[0].rows
    retained = left.retained + right.retained
    for side, cut, by in zip((relation.left, relation.right), (made.left, made.right), made.by_value, strict=True):
        tables = _private_tables(side, schema)
        retained += (Retained(tables, cut),) if cut is not None else ()
        retained += (Retained(tables, by.rows, by=tuple(name.partition(".")[2] for name in by.columns)),)
    through = tuple(dict.fromkeys(left.through + right.through))
    whose = left.whose if left.unit == right.unit else f"{left.whose} or {right.whose}"
    return Shape(columns, ROW, None, retained=retained, through=through, moved=Moved(whose, rows))


def _by_value(relation: Join, left: Shape, right: Shape, schema: Schema) -> Retention:
    """What such a join retains: of each side the declared rows of a unit, then those with each value."""
    sides = zip((relation.left, relation.right), zip(*relation.on, strict=True), strict=True)
    found = [rows_per_value(names, side, schema) for side, names in sides]
    if relation.how == "left" or found[0] is None or found[1] is None:
        raise _refused(relation, left, right, schema)
    if found[0].rows * found[1].rows > MOST_PAIRS:
        raise InputError(f"One value could make more than {MOST_PAIRS:,} rows by this join: lower rows_per_value.")
    cut = [_joined_rows(shape) if shape.rows is None else None for shape in (left, right)]
    return Retention(True, cut[0], cut[1], by_value=(found[0], found[1]))


def _refused(relation: Join, left: Shape, right: Shape, schema: Schema) -> InputError:
    start = (
        f"Join private tables on their units, ON a.{left.unit} = b.{right.unit}, or along the foreign keys that "
        "the policy declares"
    )
    if relation.how == "left":
        return InputError(f"{start}: on other columns write JOIN in place of LEFT JOIN.")
    names = [_private_tables(side, schema) for side in (relation.left, relation.right)]
    also = ", or count the pairs with the question SelfJoin(column)" if names[0] == names[1] else ""
    return InputError(
        f"{start}, so that each row still belongs to one of them; or let the owner declare rows_per_value = 3 for "
        f"the joined columns of both{also}."
    )
