"""What is publicly known of an expression's value.

`kind_of` reads the kinds of the columns and never a row. What it says holds for every row the engine can see: each
operation has one rule (`rules`, `intervals` for numbers), and engines write it so that it keeps what its rule says.

Bounds of dates count days since 1970-01-01, bounds of timestamps count microseconds since then.
"""

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from noisette.errors import InputError
from noisette.names import closest
from noisette.query import intervals
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Kind, Value
from noisette.query.known import since_1970
from noisette.query.requirements import moment, near_zero, only_null, operator
from noisette.query.rules import RULES
from noisette.query.written_size import check_size

__all__ = ["DEEPEST", "declared", "kind_of", "kind_of_call", "kind_of_leaf", "near_zero_in"]

DEEPEST = 24
"""Operations within operations: more would be too deep for the engine."""


def kind_of(expression: Expression, scope: Mapping[str, Kind]) -> Kind:
    """What is publicly known of an expression's value, or a sentence on what to write instead.

    >>> decade = Call("multiply", (Call("floor", (Call("divide", (Name("age"), Literal(10))),)), Literal(10)))
    >>> kind_of(decade, {"age": Kind("integer", Fraction(0), Fraction(120), nullable=False)}).values()
    (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120)
    """
    kind = _kind(expression, scope, DEEPEST)
    check_size(expression)
    if only_null(kind):
        raise InputError("NULL alone has no type: write it within CASE or COALESCE, beside a value.")
    return kind


def _kind(expression: Expression, scope: Mapping[str, Kind], depth: int) -> Kind:
    if not isinstance(expression, Call):
        return kind_of_leaf(expression, scope)
    if depth == 0:
        raise InputError(f"Nest at most {DEEPEST} operations: compute a part of it in a sub-query.")
    kinds = tuple(_kind(argument, scope, depth - 1) for argument in expression.arguments)
    return kind_of_call(expression, kinds)


def kind_of_call(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    """What is known of an operation's result from what is known of its arguments."""
    arity, rule = RULES[call.operation]
    if len(kinds) not in arity:
        takes = f"{arity.start} or more values" if len(arity) > 1 else f"{arity.start} value" + "s" * (arity.start > 1)
        raise InputError(f"{operator(call)} takes {takes}.")
    return rule(call, kinds)


def near_zero_in(expression: Expression, scope: Mapping[str, Kind]) -> str | None:
    """What to write in place of the first part of an expression that has no bounds because of what is near 0."""
    if not isinstance(expression, Call):
        return None
    if (sentence := near_zero(expression)) and not _kind(expression, scope, DEEPEST).bounded:
        return sentence
    return next(filter(None, (near_zero_in(part, scope) for part in expression.arguments)), None)


# Leaves


def kind_of_leaf(leaf: Name | Literal, scope: Mapping[str, Kind]) -> Kind:
    """What is known of a column, as declared, or of a constant."""
    if isinstance(leaf, Literal):
        return _constant(leaf.value)
    if leaf.name not in scope:
        raise InputError(f"There is no column {leaf.name}: {closest(leaf.name, _short(scope), 'there are')}")
    return declared(scope[leaf.name])


def _short(scope: Mapping[str, Kind]) -> list[str]:
    """The names of the columns, without the table where one name is enough."""
    ends = [name.partition(".")[2] for name in scope]
    return [end if ends.count(end) == 1 else name for name, end in zip(scope, ends, strict=True)]


def declared(kind: Kind) -> Kind:
    """The kind of a column with the bounds and the grid that its values get (`engines.sql.stored`).

    >>> declared(Kind("real", Fraction(0), Fraction(1), Fraction(3, 10))).high
    Fraction(9, 10)
    """
    if kind.number:
        return intervals.settled(kind)
    if kind.type not in ("date", "timestamp"):
        return kind
    low = None if kind.low is None else Fraction(math.ceil(kind.low))
    high = None if kind.high is None else Fraction(math.floor(kind.high))
    if low is not None and high is not None and low > high:
        raise InputError("There is no day between these bounds: declare low at most high.")
    for end in filter(None, (low, high)):
        moment(end, kind.type)
    return replace(kind, low=low, high=high, grid=None)


def _constant(value: Value) -> Kind:
    match value:
        case None:
            return Kind("boolean", keys=())
        case bool():
            return Kind("boolean", keys=(value,), nullable=False)
        case int() | Fraction():
            return intervals.constant(value)
        case str():
            if any("\ud800" <= character <= "\udfff" for character in value):
                raise InputError("A text of the query is not valid Unicode: write the character itself.")
            return Kind("text", keys=(value,), nullable=False)
        case datetime.datetime():
            if value.tzinfo is not None:
                raise InputError("Write the timestamp without a time zone.")
            at = since_1970(value)
            return Kind("timestamp", at, at, keys=(value,), nullable=False)
        case datetime.date():
            day = since_1970(value)
            return Kind("date", day, day, keys=(value,), nullable=False)
