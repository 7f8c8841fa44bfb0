"""Public parts of a relation: public relations of which one row stands behind every row of the whole.

A join of visits with a public table of wards has one such part. What is computed from the columns of a part takes no
other values than those of the part's rows, whatever the private rows are: so its values are public, too.

    visits JOIN wards ON visits.ward = wards.ward        the rows of wards; visits.ward is wards.ward
    visits LEFT JOIN wards ON ...                        the rows of wards, and one of NULLs alone (`outer`)
    ... JOIN regions ON wards.region = regions.region    the rows of wards JOIN regions
    ... WHERE wards.beds > 10                            those of its rows that meet the condition
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from noisette.query.expression import Call, Expression, Name, columns_of, replaced
from noisette.query.plan import Copies, Join, Named, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Schema
from noisette.query.stability import shape_of

__all__ = ["Part", "parts_of"]


@dataclass(frozen=True)
class Part:
    """A public relation, and columns of the whole as expressions over it.

    Every row of the whole has the columns of one row of `relation` for which the `conditions` are true; if `outer`, it
    may be a row of NULLs instead, for which the conditions are true as well.
    """

    relation: Relation
    columns: tuple[Named, ...]
    outer: bool = False
    conditions: tuple[Expression, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The columns of the whole that it knows."""
        return frozenset(name for name, _ in self.columns)

    def knows(self, expression: Expression) -> bool:
        """Whether an expression over the whole is one over this part alone."""
        used = set(columns_of(expression))
        return bool(used) and used <= self.names

    def own(self, expression: Expression) -> Expression:
        """An expression over the whole that the part knows, written over the part's own columns."""
        return replaced(expression, dict(self.columns))


def parts_of(relation: Relation, schema: Schema) -> tuple[Part, ...]:
    """The public parts of a relation; no column belongs to two of them.

    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> ward = (Column("ward", Kind("text")),)
    >>> schema = {"visits": Table("visits", ward), "wards": Table("wards", ward, public=True, repeats={"ward": 1})}
    >>> visits, wards = Scan("visits", "v"), Scan("wards", "w")
    >>> [sorted(part.names) for part in parts_of(Join(visits, wards, (("v.ward", "w.ward"),)), schema)]
    [['v.ward', 'w.ward']]
    """
    shape = shape_of(relation, schema)
    if shape.public:
        return (Part(relation, tuple((name, Name(name)) for name in shape.columns)),)
    match relation:
        case Scan():
            return ()
        case Where(source, condition):
            return tuple(_where(part, condition) for part in parts_of(source, schema))
        case Copies(source):
            return parts_of(source, schema)
        case Select(source, columns) | PerUnit(source, columns, _):
            return tuple(_selected(part, columns) for part in parts_of(source, schema))
        case Join():
            return _joined(relation, schema)
        case _:
            assert_never(relation)


def _where(part: Part, condition: Expression) -> Part:
    both = isinstance(condition, Call) and condition.operation == "and"
    parts = condition.arguments if isinstance(condition, Call) and both else (condition,)
    return replace(part, conditions=(*part.conditions, *(part.own(each) for each in parts if part.knows(each))))


def _selected(part: Part, columns: Iterable[Named]) -> Part:
    return replace(part, columns=tuple((name, part.own(each)) for name, each in columns if part.knows(each)))


# Joins


def _joined(join: Join, schema: Schema) -> tuple[Part, ...]:
    if shape_of(join.left, schema).public:  # then it is an inner join, and the sides can be swapped
        return _joined(Join(join.right, join.left, tuple((b, a) for a, b in join.on)), schema)
    left, right = parts_of(join.left, schema), parts_of(join.right, schema)
    if shape_of(join.right, schema).public:
        for part in left:
            if (met := _met(part, join, right[0])) is not None:
                return tuple(met if each is part else each for each in left)
    right = tuple(_there(part, [b for _, b in join.on]) for part in right)
    if join.how == "left":
        return left + tuple(map(_or_none, right))
    left = tuple(_there(part, [a for a, _ in join.on]) for part in left)
    pairs = [pair for pair in join.on if _same_type(pair, join, schema)]
    return _also(left, pairs, right) + _also(right, [(b, a) for a, b in pairs], left)


def _there(part: Part, names: Iterable[str]) -> Part:
    """A part whose joined columns are not NULL: NULL meets nothing."""
    missing = [Call("is_null", (part.own(Name(name)),)) for name in names if name in part.names]
    return replace(part, conditions=(*part.conditions, *(Call("not", (each,)) for each in missing)))


def _met(part: Part, join: Join, public: Part) -> Part | None:
    """A part joined with a public table on its own columns: one public relation. None if it is joined on others."""
    known = dict(part.columns)
    on = tuple((found.name, b) for a, b in join.on if isinstance(found := known.get(a), Name))
    used = {name for _, e in part.columns for name in columns_of(e)}
    if len(on) < len(join.on) or used & public.names:
        return None
    relation = Join(part.relation, public.relation, on, join.how)
    return replace(
        part, relation=relation, columns=part.columns + public.columns, outer=part.outer and join.how == "left"
    )


def _or_none(part: Part) -> Part:
    """A part whose columns may all be NULL instead."""
    inside = part.relation
    for condition in part.conditions:
        inside = Where(inside, condition)
    plain = tuple((name, e) for name, e in part.columns if isinstance(e, Name))
    if len(plain) == len(part.columns) or part.outer:  # what is computed may be something else than NULL without a row
        return Part(inside, plain, True)
    return Part(Select(inside, part.columns), tuple((name, Name(name)) for name, _ in part.columns), True)


def _same_type(pair: tuple[str, str], join: Join, schema: Schema) -> bool:
    kinds = (shape_of(side, schema).columns[name] for side, name in zip((join.left, join.right), pair, strict=True))
    return len({kind.type for kind in kinds}) == 1


def _also(parts: tuple[Part, ...], equal: Iterable[tuple[str, str]], others: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts that also know the columns of the other side which equal theirs, where no part of that side does."""
    taken = {name for part in others for name in part.names}
    found = []
    for part in parts:
        known = dict(part.columns)
        more = {other: known[own] for own, other in equal if own in known and other not in taken}
        taken |= set(more)
        found.append(replace(part, columns=(*part.columns, *more.items())))
    return tuple(found)
