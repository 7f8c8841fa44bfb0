"""What one unit can change: the columns of a relation, whose its rows are, and how many of them one unit can own.

Every row of a private relation is made of rows of one unit and of public rows. Then a unit that is added or removed
adds or removes its own rows and changes no other, whatever the plan does; how many they are is settled once, at the
end, by keeping at most so many rows and groups of each unit (`bounding`). Each case below keeps that or refuses.
"""

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

__all__ = ["ROW", "UNIT", "Shape", "shape_of"]

UNIT = "unit"
"""The name under which the unit of a row travels through every relation; no other column can have it (no dot)."""

ROW = "row"
"""Each row is a unit by itself: there is no column of units to travel."""


@dataclass(frozen=True)
class Shape:
    """What is known of a relation without looking at it.

    `columns` by name · `unit`: None if the relation is public, ROW, or the name of the declared unit column ·
    `rows`: the most rows one unit can own, None if unlimited · `limits`: what the owner allows a question to use.
    """

    columns: Mapping[str, Kind]
    unit: str | None
    rows: int | None
    limits: Limits = field(default_factory=Limits)

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
    if right.public:
        once = any(_unrepeated(b, relation.right, schema) for _, b in relation.on)
        return replace(left, columns=columns, rows=left.rows if once else None)
    if left.public:
        if outer:
            raise InputError(
                "Put the private table on the left of a LEFT JOIN: rows without an owner cannot be counted."
            )
        once = any(_unrepeated(a, relation.left, schema) for a, _ in relation.on)
        return replace(right, columns=columns, rows=right.rows if once else None)
    _same_units(relation, left, right, schema)
    return Shape(columns, left.unit, None, _tighter(left.limits, right.limits))


def _unrepeated(name: str, relation: Relation, schema: Schema) -> bool:
    """Whether no two rows of a public relation share a value of that column."""
    match relation:
        case Scan(table, alias):
            return name.removeprefix(f"{alias}.") in schema[table].unique
        case Where(source):
            return _unrepeated(name, source, schema)
        case Select(source, columns):
            inner = dict(columns).get(name)
            return isinstance(inner, Name) and _unrepeated(inner.name, source, schema)
        case _:
            return False


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


def _tighter(a: Limits, b: Limits) -> Limits:
    """The smaller of two limits of each sort."""

    def least(x: int | None, y: int | None) -> int | None:
        return min((z for z in (x, y) if z is not None), default=None)

    return Limits(least(a.rows, b.rows), least(a.groups, b.groups), least(a.rows_per_group, b.rows_per_group))


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
    return Shape(columns, shape.unit, 1 if single else None, shape.limits)


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
    assert kind.low is not None
    assert kind.high is not None
    low = Fraction(0) if kind.low >= 0 else None
    high = Fraction(0) if kind.high <= 0 else None
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
    match relation:
        case Scan(table, _):
            return (schema[table],)
        case Join(left, right):
            return tables_of(left, schema) + tables_of(right, schema)
        case Where(source) | Select(source) | PerUnit(source):
            return tables_of(source, schema)
        case _:
            assert_never(relation)


def kinds_read(relation: Relation, schema: Schema, used: Iterable[str]) -> tuple[tuple[str, Kind], ...]:
    """The declared kinds of the stored columns that a relation reads, or that are used of it.

    Where they change, so may the answer.
    """
    nodes = tuple(_nodes(relation))
    names = {*used, *(name for node in nodes for e in expressions_in(node) for name in columns_of(e))}
    names |= {name for node in nodes if isinstance(node, Join) for pair in node.on for name in pair}
    stored = [
        (f"{table}.{c.name}", c.kind)
        for table, alias in {(node.table, node.alias) for node in nodes if isinstance(node, Scan)}
        for c in schema[table].columns
        if f"{alias}.{c.name}" in names
    ]
    return tuple(sorted(set(stored), key=lambda one: one[0]))


def _nodes(relation: Relation) -> Iterator[Relation]:
    yield relation
    match relation:
        case Join(left, right):
            yield from _nodes(left)
            yield from _nodes(right)
        case Where(source) | Select(source) | PerUnit(source):
            yield from _nodes(source)
