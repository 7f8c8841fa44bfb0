"""Keys that the conditions of a question exclude: no row can have them, so they are no groups.

A condition holds for every row below which it stands, so a key for which it is false, or NULL, has no row. Decided is
what compares a column, or the key itself, with constants; of all else it is taken that it may be true. So no key is
dropped whose rows could pass. Only the question and the policy are read.

    WHERE origin IN ('JFK', 'LGA') GROUP BY origin          EWR is no group, nor is NULL
    WHERE day >= DATE '2025-12-30' GROUP BY day             two days
    WHERE day >= DATE '2025-12-30' GROUP BY MONTH(day)      December
    WHERE origin = 'JFK' OR weight > 3 GROUP BY origin      all of them
    WHERE a = 'x' AND b = 'y' OR a = 'y' AND b = 'x' GROUP BY a, b      two combinations
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.query.expression import Call, Expression, Literal, Name, columns_of, replaced
from noisette.query.kind import Kind, Value
from noisette.query.known import MANY
from noisette.query.operations import kind_of
from noisette.query.plan import Copies, Join, PerUnit, Relation, Scan, Select, Where
from noisette.query.schema import Schema
from noisette.query.stability import shape_of

__all__ = ["narrowed", "possible_combinations", "possible_keys"]

Values: TypeAlias = tuple[Value, ...]
Names: TypeAlias = Mapping[str, Name]
Known: TypeAlias = Sequence[tuple[Expression, Value]]
"""Expressions with the value that each of them has in a row."""

_MOST = 200_000  # values times parts of conditions that are looked at; of more, no key is excluded
_SEVERAL = 2  # keys; what looks at one of them has narrowed its values
_UNKNOWN = object()  # it depends on more than the value


def possible_keys(key: Expression, values: Values, relation: Relation, schema: Schema) -> Values:
    """The values of a key that the conditions of a relation leave, in their order, NULL last.

    >>> from noisette.query.schema import Column, Table
    >>> schema = {"t": Table("t", (Column("o", Kind("text", keys=("EWR", "JFK"))),))}
    >>> rows = Where(Scan("t", "t"), Call("unequal", (Name("t.o"), Literal("EWR"))))
    >>> possible_keys(Name("t.o"), ("EWR", "JFK", None), rows, schema)
    ('JFK',)
    """
    if len(values) > MANY:
        return values
    scope = shape_of(relation, schema).columns
    names = list(dict.fromkeys(columns_of(key)))
    others = [] if isinstance(key, Name) else names
    left = {name: found for name in others if (found := _few(scope[name])) is not None}
    conditions = list(_conditions({name: Name(name) for name in names}, relation, schema))
    if max(map(len, (values, *left.values()))) * sum(_nodes(each) for _, each in conditions) > _MOST:
        return values
    for inner, condition in conditions:
        values = _passing(values, condition, replaced(key, inner))
        left = {name: _passing(found, condition, inner[name]) for name, found in left.items()}
    if () in left.values():
        return ()
    kinds = {name: narrowed(scope[name], found) for name, found in left.items() if found != (None,)}
    if all(kinds[name] == scope[name] for name in kinds):
        return values
    among = kind_of(key, {**scope, **kinds}).values()
    if among is None:
        return values
    known = frozenset(among)
    return tuple(value for value in values if value in known)


def possible_combinations(
    keys: Sequence[Expression], values: Sequence[Values], relation: Relation, schema: Schema
) -> NDArray[np.bool_]:
    """Which combinations of keys are left by the conditions that look at several of them: an axis for each key."""
    left = np.ones([len(each) for each in values], dtype=bool)
    names = {name: Name(name) for key in keys for name in columns_of(key)}
    for inner, condition in _conditions(names, relation, schema):
        subjects = [replaced(key, inner) for key in keys]
        used = [
            i for i, subject in enumerate(subjects) if not set(columns_of(condition)).isdisjoint(columns_of(subject))
        ]
        sizes = [len(values[i]) for i in used]
        if len(used) < _SEVERAL or math.prod(sizes) * _nodes(condition) > _MOST:
            continue
        rows = product(*(values[i] for i in used))
        passing = [_may_hold(condition, [(subjects[i], v) for i, v in zip(used, row, strict=True)]) for row in rows]
        left &= np.reshape(passing, [len(each) if i in used else 1 for i, each in enumerate(values)])
    return left


def narrowed(kind: Kind, values: Values | None) -> Kind:
    """A kind that has these values and no others."""
    if values is None or values == kind.values():
        return kind
    return replace(kind, keys=tuple(value for value in values if value is not None), nullable=None in values)


def _few(kind: Kind) -> Values | None:
    """All values of a column, if they are few."""
    return None if kind.count is None or kind.count > MANY else kind.values()


def _passing(values: Values, condition: Expression, subject: Expression) -> Values:
    return tuple(value for value in values if _may_hold(condition, [(subject, value)]))


def _may_hold(condition: Expression, known: Known) -> bool:
    return _truth(condition, known) not in (False, None)


def _conditions(names: Names, relation: Relation, schema: Schema) -> Iterator[tuple[Names, Expression]]:
    """What is true of every row, each with what columns of the relation are called there."""
    match relation:
        case Where(source, condition):
            own = {name.name for name in names.values()}
            yield from ((names, part) for part in _parts(condition) if own & set(columns_of(part)))
            yield from _conditions(names, source, schema)
        case Join(left, right, _, how):
            for side in (left, right) if how == "inner" else (left,):
                if {name.name for name in names.values()} <= set(shape_of(side, schema).columns):
                    yield from _conditions(names, side, schema)
        case Copies(source, _, number) if Name(number) not in names.values():
            yield from _conditions(names, source, schema)
        case Select(source, columns) | PerUnit(source, columns, _):
            inner = {name: dict(columns).get(own.name) for name, own in names.items()}
            plain = {name: own for name, own in inner.items() if isinstance(own, Name)}
            if len(plain) == len(names):
                yield from _conditions(plain, source, schema)
        case Scan() | Copies():
            return


def _nodes(e: Expression) -> int:
    return 1 + sum(map(_nodes, e.arguments)) if isinstance(e, Call) else 1


def _parts(condition: Expression) -> Iterator[Expression]:
    """Conditions that all hold where one does."""
    if isinstance(condition, Call) and condition.operation == "and":
        for part in condition.arguments:
            yield from _parts(part)
    else:
        yield condition


# Whether a condition can be true

_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "unequal": operator.ne,
    "less": operator.lt,
    "at_most": operator.le,
    "more": operator.gt,
    "at_least": operator.ge,
}


def _truth(e: Expression, known: Known) -> Any:
    """True, False or NULL, where what is known decides it; else unknown."""
    for subject, value in known:
        if e == subject:
            return value
    match e:
        case Literal(constant):
            return constant
        case Call("is_null", (of,)):
            found = _truth(of, known)
            return found if found is _UNKNOWN else found is None
        case Call("not", (of,)):
            found = _truth(of, known)
            return found if found is _UNKNOWN or found is None else not found
        case Call("and" | "or" as operation, parts):
            return _connected([_truth(part, known) for part in parts], decisive=operation == "or")
        case Call("in", (of, *constants)):
            return _connected([_compared(operator.eq, of, one, known) for one in constants], decisive=True)
        case Call(operation, (left, right)) if operation in _COMPARED:
            return _compared(_COMPARED[operation], left, right, known)
        case _:
            return _UNKNOWN


def _connected(parts: Sequence[Any], *, decisive: bool) -> Any:
    """AND and OR: one value decides; else it is unknown if one part is, or NULL."""
    if any(part is decisive for part in parts):
        return decisive
    return next((odd for odd in (_UNKNOWN, None) if any(part is odd for part in parts)), not decisive)


def _compared(holds: Callable[[Any, Any], bool], left: Expression, right: Expression, known: Known) -> Any:
    """Numbers are compared as engines do: whole ones exactly, others as doubles."""
    ends = [_truth(side, known) for side in (left, right)]
    if any(end is _UNKNOWN for end in ends):
        return _UNKNOWN
    if None in ends:
        return None
    if any(isinstance(end, Fraction) for end in ends):
        ends = [float(end) for end in ends]
    return holds(*ends)
