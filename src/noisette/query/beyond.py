"""Values beyond the declared bounds: the nearer bound where a number is made of them, and in no key and no comparison.

    SUM(x), AVG(x), MEDIAN(x), COUNT(x), MAX(x)   the nearer bound, so one row moves a sum by no more than bounds say
    GROUP BY x, SELECT DISTINCT x, ON x = y       the row is in no group, and meets no partner
    COUNT(DISTINCT x)                             no value, as it makes no group
    x >= 10, x IN (1, 2)                          neither true nor false, as with NULL
    x IS NULL                                     false: the value is there

The nearer bound is right for the first line alone: in keys and comparisons all values beyond the bounds would pile up
in the first and the last group. So a table has two more columns for each with bounds (`variants`), `within` and
`inside`, and `within_bounds` writes a request with them, the same for every engine. What is known of the request before
any row is read, its kinds, its groups and its price, stays as it is.

Rows are left out by their own values, so one unit moves no more than before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from noisette.errors import InputError
from noisette.query.canonical import conditions_first, normal
from noisette.query.expression import Call, Expression, Literal, Name, Operation, columns_of
from noisette.query.measure import Measure, Request
from noisette.query.once import once
from noisette.query.operations import kind_of
from noisette.query.plan import Copies, Join, Named, PerUnit, Relation, Scan, Select, Where
from noisette.query.rules import case_parts
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.query.variants import inside, limited, plain, variant_kind, within

__all__ = ["COMPARISONS", "listed_within", "rows_within", "within_bounds"]

COMPARISONS: tuple[Operation, ...] = (
    "equal", "unequal", "less", "at_most", "more", "at_least", "in", "like", "matches",
)  # fmt: skip
"""What is neither true nor false of a value beyond its bounds."""

_TRUE = Literal(True)

Moved: TypeAlias = Mapping[str, Expression]


def within_bounds(request: Request, schema: Schema) -> Request:
    """The same request, as engines read it; once that is done, it stays as it is.

    >>> from fractions import Fraction
    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> visits = Table("visits", (Column("age", Kind("integer", Fraction(0), Fraction(99))),))
    >>> asked = Request(Scan("visits", "t1"), (Name("t1.age"),), (None,), (Measure("rows"),), None)
    >>> within_bounds(asked, {"visits": visits}).source
    Where(source=Scan(table='visits', alias='t1', also=('t1 inside.age',)), condition=Name(name='t1 inside.age'))
    """
    moved = _moved(request.source, schema)
    measures = tuple(_measured(measure, moved) for measure in request.measures)
    keys = () if request.nearest else request.keys
    used = [measure.of for measure in measures if measure.of is not None]
    made = replace(request, source=rows_within(request.source, schema, keys, used), measures=measures)
    return request if made == request else made


def _measured(measure: Measure, moved: Moved) -> Measure:
    """Different values are counted as groups are; all else is a number."""
    if measure.of is None:
        return measure
    read = _compared if measure.what == "distinct" else _read
    return replace(measure, of=read(measure.of, moved))


def rows_within(
    relation: Relation, schema: Schema, keys: Iterable[Expression] = (), used: Iterable[Expression] = ()
) -> Relation:
    """The rows of a relation as engines read them, those alone whose `keys` lie within the bounds; `used` are read."""
    parts = _decided(keys, relation, schema)
    rows = _rows(relation, {name for e in (*used, *parts) for name in columns_of(e)}, schema)
    return conditions_first(Where(rows, _all(parts))) if parts else rows


def listed_within(
    relation: Relation, conditions: Sequence[Expression], keys: Sequence[Expression], schema: Schema
) -> tuple[Relation, tuple[Expression, ...]]:
    """A relation with the rows whose `keys` lie within the bounds, and the conditions on them as they are read."""
    moved = _moved(relation, schema)
    read = tuple(_read(condition, moved) for condition in conditions)
    return rows_within(relation, schema, keys, read), read


# Which columns


@once
def _moved(relation: Relation, schema: Schema) -> Mapping[str, Expression]:
    """The columns that are made of values with bounds, each with the condition that none of these is beyond them.

    What is computed of the rows of one unit lies within the bounds, and so do the keys within it.
    """
    match relation:
        case Scan(table, alias):
            names = (f"{alias}.{column.name}" for column in schema[table].columns if limited(column.kind))
            return {name: Name(inside(name)) for name in names}
        case Where(source) | Copies(source):
            return _moved(source, schema)
        case Join(left, right, _, how):
            partners = _moved(right, schema)
            if how == "left":  # nothing is beyond the bounds where there is no partner
                partners = {name: Call("coalesce", (Name(inside(name)), _TRUE)) for name in partners}
            return {**_moved(left, schema), **partners}
        case Select(source, columns):
            below = _moved(source, schema)
            return {name: Name(inside(name)) for name, e in columns if not below.keys().isdisjoint(columns_of(e))}
        case PerUnit():
            return {}
        case _:
            assert_never(relation)


# Expressions


def _read(e: Expression, moved: Moved) -> Expression:
    """An expression as it is read: comparisons within it see NULL in place of values beyond their bounds."""
    match e:
        case Call(operation, arguments):
            read = _compared if operation in COMPARISONS else _read
            return Call(operation, tuple(read(argument, moved) for argument in arguments))
        case _:
            return e


def _compared(e: Expression, moved: Moved) -> Expression:
    """What is compared: NULL where it is made of a value beyond its bounds."""
    match e:
        case Name(name):
            return Name(within(name)) if name in moved else e
        case Call("is_null"):
            return _read(e, moved)
        case Call(operation, arguments):
            return Call(operation, tuple(_compared(argument, moved) for argument in arguments))
        case _:
            return e


def _inside(e: Expression, moved: Moved) -> list[Expression]:
    """Conditions that hold together where no value beyond its bounds decides what an expression is."""
    match e:
        case Name(name):
            return [moved[name]] if name in moved else []
        case Call("is_null", (Name(),)):
            return []
        case Call("case", arguments):
            return _inside_case(arguments, moved)
        case Call("coalesce", (first, *others)) if others:
            later = _inside(Call("coalesce", tuple(others)), moved)
            there = Call("not", (Call("is_null", (_read(first, moved),)),))
            return _different([*_inside(first, moved), *([Call("or", (there, _all(later)))] if later else [])])
        case Call(_, arguments):
            return _different(part for argument in arguments for part in _inside(argument, moved))
        case _:
            return []


def _inside_case(arguments: Sequence[Expression], moved: Moved) -> list[Expression]:
    """Those of all conditions, and those of the value that is chosen."""
    conditions, values = case_parts(arguments)
    parts = _different(part for condition in conditions for part in _inside(condition, moved))
    chosen = [[part for part in _inside(value, moved) if part not in parts] for value in values]
    if not any(chosen):
        return parts
    arms = zip((_read(condition, moved) for condition in conditions), map(_all, chosen), strict=False)
    return [*parts, Call("case", (*(x for arm in arms for x in arm), _all(chosen[-1])))]


def _different(parts: Iterable[Expression]) -> list[Expression]:
    return list(dict.fromkeys(parts))


def _all(parts: Sequence[Expression]) -> Expression:
    return normal(Call("and", tuple(parts))) if parts else _TRUE


def _decided(keys: Iterable[Expression], relation: Relation, schema: Schema) -> list[Expression]:
    """The conditions that no value beyond its bounds decides what some expressions over a relation are.

    Where these would be nested more deeply than can be computed, no column that is read may be beyond its bounds.
    """
    keys, moved = tuple(keys), _moved(relation, schema)
    parts = _different(part for key in keys for part in _inside(key, moved))
    columns = shape_of(relation, schema).columns
    scope = {**columns, **{new(n): variant_kind(new(n), columns[n]) for n in moved for new in (within, inside)}}
    try:
        kind_of(_all(parts), scope)
    except InputError:
        return _different(moved[name] for key in keys for name in columns_of(key) if name in moved)
    return parts


# Relations


def _rows(relation: Relation, used: Collection[str], schema: Schema) -> Relation:
    """The rows of a relation as they are read, with those of the further columns that are used."""
    match relation:
        case Scan(also=also):
            mine = {name for name in used if name != plain(name) and plain(name) in _moved(relation, schema)}
            return replace(relation, also=tuple(sorted({*also, *mine})))
        case Where(source, condition):
            read = _read(condition, _moved(source, schema))
            return Where(_rows(source, {*used, *columns_of(read)}, schema), read)
        case Select(source):
            columns = _selected(relation, used, schema)
            return Select(_rows(source, {name for _, e in columns for name in columns_of(e)}, schema), columns)
        case Join():
            return _joined(relation, used, schema)
        case PerUnit(source, keys, aggregates):
            moved = _moved(source, schema)
            made = tuple((n, a if a.of is None else replace(a, of=_read(a.of, moved))) for n, a in aggregates)
            numbers = [aggregate.of for _, aggregate in made if aggregate.of is not None]
            return PerUnit(rows_within(source, schema, [e for _, e in keys], numbers), keys, made)
        case Copies(source):
            return replace(relation, source=_rows(source, used, schema))
        case _:
            assert_never(relation)


def _selected(relation: Select, used: Collection[str], schema: Schema) -> tuple[Named, ...]:
    """The columns of a selection, and those of the further ones that are used."""
    moved, own = _moved(relation.source, schema), dict(relation.columns)
    made = {name: _read(e, moved) for name, e in relation.columns}
    for name in sorted(name for name in used if name not in own and plain(name) in _moved(relation, schema)):
        e = own[plain(name)]
        made[name] = (
            _compared(e, moved) if name == within(plain(name)) else _all(_decided([e], relation.source, schema))
        )
    return tuple(made.items())


def _joined(join: Join, used: Collection[str], schema: Schema) -> Join:
    """A join in which values beyond their bounds meet nothing; on the left of a LEFT JOIN their rows stay."""
    moved, stays = _moved(join.left, schema), join.how == "left"
    on = tuple((within(a) if stays and a in moved else a, b) for a, b in join.on)
    used = {*used, *(a for a, _ in on)}
    left = _side(join.left, () if stays else [Name(a) for a, _ in join.on], used, schema)
    return replace(join, left=left, right=_side(join.right, [Name(b) for _, b in join.on], used, schema), on=on)


def _side(relation: Relation, keys: Iterable[Expression], used: Iterable[str], schema: Schema) -> Relation:
    return rows_within(relation, schema, keys, map(Name, used))
