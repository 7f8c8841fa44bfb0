"""What the rules of operations share: their type, the results of a few keys, and constants as arguments."""

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from noisette.errors import InputError
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind, Type, Value, in_order
from noisette.query.requirements import bounded, called, not_null, operator

__all__ = ["MANY", "Rule", "mapped", "moments", "since_1970", "truth", "whole", "whole_constant", "written"]

Rule: TypeAlias = Callable[[Call, tuple[Kind, ...]], Kind]

MANY = 10_000
"""Of at most this many keys the results are listed."""


def mapped(kind: Kind, each: Callable[[Value], Value]) -> tuple[Value, ...] | None:
    """What a function makes of a few keys; None if they are many or unknown, or one of the results is."""
    if kind.keys is None or len(kind.keys) > MANY:
        return None
    results = [each(key) for key in kind.keys]
    return None if None in results else in_order(results)


def truth(nullable: bool) -> Kind:
    """A condition."""
    return Kind("boolean", nullable=nullable)


def since_1970(at: datetime.date) -> Fraction:
    """The bound that stands for a date (days) or a timestamp (microseconds)."""
    if isinstance(at, datetime.datetime):
        return Fraction((at - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    return Fraction((at - datetime.date(1970, 1, 1)).days)


# What operations ask of their arguments


def written(call: Call, place: int) -> Value:
    """The constant that an argument is, or None."""
    argument = call.arguments[place]
    return argument.value if isinstance(argument, Literal) else None


def whole_constant(call: Call, place: int, low: int, high: int, example: str) -> int:
    """A whole number that is written down."""
    value = written(call, place)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{operator(call)} takes a whole number from {low} to {high} here: write {example}.")
    return value


def whole(call: Call, kinds: tuple[Kind, ...], place: int) -> None:
    """An argument is an integer: a column, or with bounds."""
    not_null(call, kinds)
    if kinds[place].type != "integer":
        instead = f"FLOOR({called(call.arguments[place])})" if kinds[place].number else "a column of type integer"
        raise InputError(
            f"{operator(call)} needs integers, and {called(call.arguments[place])} is {kinds[place].type}: "
            f"write {instead}."
        )
    if not isinstance(call.arguments[place], Name):
        bounded(Call(call.operation, (call.arguments[place],)), (kinds[place],))


def moments(call: Call, kinds: tuple[Kind, ...], place: int = 0, *types: Type) -> None:
    """An argument is a date or a timestamp."""
    not_null(call, kinds)
    types = types or ("date", "timestamp")
    if kinds[place].type not in types:
        raise InputError(
            f"{operator(call)} needs a {' or '.join(types)}, and {called(call.arguments[place])} is "
            f"{kinds[place].type}: declare its type in the policy."
        )
