"""What one unit can change: the columns of a relation, whose its rows are, and how many of them one unit can own.

Every row of a private relation is made of rows of one unit and of public rows. Then a unit that is added or removed
adds or removes its own rows and changes no other, whatever the plan does; how many they are is settled at the end, by
retaining at most a declared number of rows and groups of each unit (`bounding`). Each case below keeps that or refuses.

A join that multiplies rows is the exception: it retains rows of each private side first (`retention`). So one unit can
produce no more rows than the product of the limits, whatever it stores, and no more than `MOST_JOINED` after any step,
of at most `MOST_PAIRS`: what a unit adds to the cost of a question, too, is bounded by public numbers alone.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import assert_never

from noisette.errors import InputError
from noisette.query.expression import Expression, Name, columns_of
from noisette.query.kind import Kind
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Join, Named, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Limits, Schema, Table

__all__ = ["MOST_JOINED", "MOST_PAIRS", "ROW", "UNIT", "Retained", "Retention", "Shape", "retention", "shape_of"]

UNIT = "unit"
"""The name under which the unit of a row travels through every relation; no other column can have it (no dot)."""

ROW = "row"
"""Each row is a unit by itself: there is no column of units to travel."""


MOST_JOINED = 1_000
"""The most rows that one unit can produce by a join: of more, this many are retained, and `explain` says so."""


MOST_PAIRS = 100_000
"""The most pairs of rows that a join may make of one unit's rows before some are retained; more are refused."""


@dataclass(frozen=True)
class Retained:
    """How many rows of one unit a join retains: of one side of it (by its private tables), or after they are joined."""

    tables: tuple[str, ...]
    rows: int
    joined: bool = False


@dataclass(frozen=True)
class Shape:
    """What is known of a relation without looking at it.

    `columns` by name · `unit`: None if the relation is public, ROW, or the name of the declared unit column ·
    `rows`: the most rows one unit can own, None if unlimited · `limits`: what the owner allows a question to use ·
    `retained`: where joins within it retain rows.
    """

    columns: Mapping[str, Kind]
    unit: str | None
    rows: int | None
    limits: Limits = field(default_factory=Limits)
    retained: tuple[Retained, ...] = ()

    @property
    def public(self) -> bool:
        """Whether it protects nobody."""
        return self.unit is None


def shape_of(relation: Relation, schema: Schema) -> Shape:
    """What is known of a relation, or a sentence on why it cannot be asked."""
    match relation:
        case Scan():
            return _scan(relation, schema)
        case Where(source, condition):
            shape = shape_of(source, schema)
            if kind_of(condition, shape.columns).type != "boolean":
                raise InputError("WHERE needs a condition that is true or false, such as age >= 18.")
            return shape
        case Select(source, columns):
            shape = shape_of(source, schema)
            return replace(shape, columns=_named(columns, shape))
        case Join():
            return _join(relation, schema)
        case PerUnit():
            return _per_unit(relation, schema)
        case _:
            assert_never(relation)


def _scan(relation: Scan, schema: Schema) -> Shape:
    if relation.table not in schema:
        raise InputError(f"There is no table {relation.table}: there are {', '.join(sorted(schema))}.")
    table = schema[relation.table]
    columns = {f"{relation.alias}.{column.name}": column.kind for column in table.columns}
    if table.public:
        return Shape(columns, None, None)
    if table.unit is None:
        return Shape(columns, ROW, 1, table.limits)
    return Shape(columns, table.unit, None, table.limits)


def _named(columns: tuple[Named, ...], shape: Shape) -> dict[str, Kind]:
    return {name: kind_of(expression, shape.columns) for name, expression in columns}


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
    if not left.public and not right.public:
        _same_units(relation, left, right, schema)
    made = retention(relation, schema)
    own = replace(right if left.public else left, columns=columns, retained=left.retained + right.retained)
    if not made.multiplies:
        return own
    if made.rows is None:  # each row is a unit of its own, and may become several
        return replace(own, rows=None)
    sides = [(relation.left, made.left), (relation.right, made.right), (relation, made.result)]
    retained = [
        Retained(_private_tables(side, schema), rows, joined=side is relation)
        for side, rows in sides
        if rows is not None
    ]
    return replace(own, rows=made.rows, limits=Limits(rows=made.rows), retained=own.retained + tuple(retained))


@dataclass(frozen=True)
class Retention:
    """How many rows of one unit a join retains of each side and of its result; None where nothing has to be left out.

    `rows` is what one unit has afterwards, at most; None where each row is a unit. `multiplies`: one row may become
    several.
    """

    multiplies: bool
    left: int | None = None
    right: int | None = None
    result: int | None = None
    rows: int | None = None


def retention(relation: Join, schema: Schema) -> Retention:
    """What a join retains: of each private side as many rows of a unit as its owner allows, and `MOST_JOINED` in all.

    With at most l rows of a unit on the left and r on the right, the unit has at most l r pairs of them; a public side
    in which no value of the joined column stands in more than m rows makes m rows of one at most.
    """
    left, right = shape_of(relation.left, schema), shape_of(relation.right, schema)
    counts = [_repeats(relation, relation.left, schema), _repeats(relation, relation.right, schema)]
    if (right.public and counts[1] <= 1) or (left.public and counts[0] <= 1):
        return Retention(False)
    if ROW in (left.unit, right.unit):
        return Retention(True)
    cut = [None if shape.public or shape.rows is not None else _joined_rows(shape) for shape in (left, right)]
    most = [shape.rows or rows or count for shape, rows, count in zip((left, right), cut, counts, strict=True)]
    product = most[0] * most[1]
    if product > MOST_PAIRS:
        raise InputError(
            f"One {left.unit or right.unit} could make more than {MOST_PAIRS:,} rows by this join: join on a column "
            "of the public table, as it is stored, whose values repeat less, or lower the limits in the policy."
        )
    result = MOST_JOINED if product > MOST_JOINED else None
    return Retention(True, left=cut[0], right=cut[1], result=result, rows=int(min(product, MOST_JOINED)))


def _joined_rows(shape: Shape) -> int:
    """How many rows of one unit go into a join, by what its owner allows."""
    limits = shape.limits
    in_groups = None if limits.rows_per_group is None else limits.rows_per_group * (limits.groups or 1)
    rows = min((most for most in (limits.rows, in_groups) if most is not None), default=None)
    if rows is None:
        raise InputError(
            f"Say in the policy how many rows of one {shape.unit} may be joined with others: rows = 10. Where it says "
            'rows = "private", buy the limit once, with rows(table, spend=...) or `noisette buy rows`.'
        )
    return rows


def _repeats(join: Join, side: Relation, schema: Schema) -> float:
    """How many rows of a public side one row of the other side can meet; infinite where that is not known."""
    names = [b if side is join.right else a for a, b in join.on]
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


def _same_units(relation: Join, left: Shape, right: Shape, schema: Schema) -> None:
    """Two private relations may meet only where both rows belong to the same unit."""
    if ROW in (left.unit, right.unit):
        raise InputError("Two private tables can be joined only if both declare the same unit column in the policy.")
    units = set(unit_names(relation.left, schema)), set(unit_names(relation.right, schema))
    if not any(a in units[0] and b in units[1] for a, b in relation.on):
        raise InputError(
            f"Join private tables on their units, ON a.{left.unit} = b.{right.unit}, "
            "so that each row still belongs to one of them."
        )
    types = {table.unit_type for table in tables_of(relation, schema) if not table.public and table.unit_type}
    if len(types) > 1:  # equal only after a cast, and a cast can make two units one
        raise InputError("Store the units of both tables as the same type: joined units must be equal as they are.")


# Units


def unit_names(relation: Relation, schema: Schema) -> tuple[str, ...]:
    """The columns of a relation that hold the unit itself."""
    match relation:
        case Scan(table, alias):
            unit = schema[table].unit
            return () if unit is None or schema[table].public else (f"{alias}.{unit}",)
        case Where(source, _):
            return unit_names(source, schema)
        case Select(source, columns) | PerUnit(source, columns, _):
            inner = unit_names(source, schema)
            return tuple(name for name, e in columns if isinstance(e, Name) and e.name in inner)
        case Join(left, right, _, how):
            return unit_names(left, schema) + (unit_names(right, schema) if how == "inner" else ())
        case _:
            assert_never(relation)


def _per_unit(relation: PerUnit, schema: Schema) -> Shape:
    shape = shape_of(relation.source, schema)
    if shape.public:
        raise InputError(
            "A sub-query with GROUP BY needs a private table: a public one can be grouped before it is opened."
        )
    if shape.unit == ROW:
        raise InputError(
            "Each row is a unit of its own here, so a sub-query cannot group by unit: leave the GROUP BY out."
        )
    columns = _named(relation.keys, shape)
    for name, aggregate in relation.aggregates:
        columns[name] = _of_one_unit(aggregate, shape)
    names = unit_names(relation.source, schema)
    single = all(isinstance(e, Name) and e.name in names for _, e in relation.keys)
    return replace(shape, columns=columns, rows=1 if single else shape.rows)


def _of_one_unit(aggregate: Aggregate, shape: Shape) -> Kind:
    """What is known of an aggregate over the rows of one unit, however many they are."""
    counted = Kind("integer", Fraction(0), None, Fraction(1), nullable=False)
    if aggregate.function == "rows":
        return counted
    if aggregate.of is None:
        raise InputError("A sub-query per unit can count rows, or take COUNT, SUM, AVG, MIN or MAX of a column.")
    kind = kind_of(aggregate.of, shape.columns)
    match aggregate.function, aggregate.at:
        case "count", _:
            return counted
        case "quantile", 0 | 1:
            return replace(kind, nullable=True)
        case "sum", _:
            return _summed(_bounded_number(kind))
        case "mean", _:
            return replace(_bounded_number(kind), type="real", grid=None, keys=None, nullable=True)
        case _:
            raise InputError("Within a sub-query per unit use COUNT, SUM, AVG, MIN or MAX.")


def _bounded_number(kind: Kind) -> Kind:
    if not kind.number:
        raise InputError("Only numbers can be added up.")
    if not kind.bounded:
        raise InputError("Declare bounds for what is added up, or write LEAST(GREATEST(x, low), high).")
    return kind


def _summed(kind: Kind) -> Kind:
    """The sum of any number of rows: at least 0 if none is negative, with no upper bound unless none is positive."""
    least, most = kind.ends
    low, high = Fraction(0) if least >= 0 else None, Fraction(0) if most <= 0 else None
    return Kind(kind.type, low, high, kind.grid, nullable=True)


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
    """The tables a relation reads."""
    return tuple(schema[node.table] for node in _nodes(relation) if isinstance(node, Scan))


def kinds_read(relation: Relation, schema: Schema, used: Iterable[str]) -> tuple[tuple[str, Kind], ...]:
    """The declared kinds of the stored columns that a relation reads, or that are used of it.

    Where they change, so may the answer.
    """
    read = columns_read(relation, schema, used)
    return tuple((f"{table}.{name}", schema[table].column(name).kind) for table, name in read)


def columns_read(relation: Relation, schema: Schema, used: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The stored columns that a relation reads, or that are used of it, each with its table."""
    nodes = tuple(_nodes(relation))
    names = {*used, *(name for node in nodes for e in expressions_in(node) for name in columns_of(e))}
    names |= {name for node in nodes if isinstance(node, Join) for pair in node.on for name in pair}
    stored = {
        (table, c.name)
        for table, alias in {(node.table, node.alias) for node in nodes if isinstance(node, Scan)}
        for c in schema[table].columns
        if f"{alias}.{c.name}" in names
    }
    return tuple(sorted(stored, key=".".join))


def _nodes(relation: Relation) -> Iterator[Relation]:
    yield relation
    match relation:
        case Join(left, right):
            yield from _nodes(left)
            yield from _nodes(right)
        case Where(source) | Select(source) | PerUnit(source):
            yield from _nodes(source)
