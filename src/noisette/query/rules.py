"""One rule for each operation: what it asks of its arguments, and what is then known of its result.

Of NULL every operation makes NULL, LEAST and GREATEST too; `case`, `coalesce`, `is_null`, `and` and `or` look further.
A rule reads kinds and the expressions that the analyst wrote, never a row.
"""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias, TypeVar

from noisette.errors import InputError
from noisette.query import intervals
from noisette.query.expression import Call, Name, Operation
from noisette.query.kind import Kind, Type, Value, in_order
from noisette.query.requirements import (
    alike,
    all_of,
    bounded,
    called,
    constants,
    moment,
    not_null,
    numbers,
    only_null,
    operator,
)

__all__ = ["RULES", "Rule", "case_parts"]

T = TypeVar("T")

Rule: TypeAlias = Callable[[Call, tuple[Kind, ...]], Kind]

MANY = 10_000
"""Of at most this many keys the results are listed."""

# Numbers


def _calculated(function: Callable[[Kind, Kind], Kind]) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        bounded(call, kinds)
        return function(*kinds)

    return rule


def _divided(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    bounded(call, kinds)
    low, high = kinds[1].ends
    if float(low) <= 0 <= float(high):
        x = called(call.arguments[1]) if isinstance(call.arguments[1], Name) else "x"
        raise InputError(f"The divisor could be 0: write GREATEST({x}, 1), or declare a lower bound above 0.")
    return intervals.quotient(*kinds)


def _changed(function: Callable[[Kind], Kind], each: Callable[[int | Fraction], int | Fraction]) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        numbers(call, kinds)
        return replace(function(kinds[0]), keys=_mapped(kinds[0], lambda key: each(_number(key))))

    return rule


def _picked(function: Callable[[Sequence[Kind]], Kind]) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        numbers(call, kinds)
        return function(kinds)

    return rule


def _number(key: Value) -> int | Fraction:
    assert isinstance(key, int | Fraction)
    return key


def _double(key: int | Fraction) -> int | Fraction:
    """A number as the engine sees it."""
    return key if isinstance(key, int) else Fraction(float(key))


def _mapped(kind: Kind, each: Callable[[Value], Value]) -> tuple[Value, ...] | None:
    """What a function makes of a few keys; None if they are many or unknown, or one of the results is."""
    if kind.keys is None or len(kind.keys) > MANY:
        return None
    results = [each(key) for key in kind.keys]
    return None if None in results else in_order(results)


# Truth


def _truth(nullable: bool) -> Kind:
    return Kind("boolean", nullable=nullable)


def _compared(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    not_null(call, kinds)
    alike(call, kinds)
    return _truth(any(kind.nullable for kind in kinds))


def _connected(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    all_of("boolean", call, kinds)
    return _truth(any(kind.nullable for kind in kinds))


def _is_null(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    not_null(call, kinds)
    return _truth(False)


def _in(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    constants(call, call.arguments[1:])
    return _compared(call, kinds)


def _like(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    constants(call, call.arguments[1:])
    all_of("text", call, kinds)
    return _truth(kinds[0].nullable)


# Choice


def case_parts(arguments: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """The conditions of a case, and its values; the last value is what holds otherwise."""
    return arguments[:-1:2], (*arguments[1:-1:2], arguments[-1])


def _case(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    conditions, values = case_parts(kinds)
    if len(conditions) + 1 != len(values):
        raise InputError("CASE needs a value for each condition and one for ELSE: write ELSE NULL if there is none.")
    all_of("boolean", call, conditions, case_parts(call.arguments)[0])
    return _one_of(call, values).maybe(any(kind.nullable for kind in values))


def _coalesce(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    sure = next((position for position, kind in enumerate(kinds, 1) if not kind.nullable), len(kinds))
    alike(call, [kind for kind in kinds if not only_null(kind)])
    return _one_of(call, kinds[:sure]).maybe(all(kind.nullable for kind in kinds))


def _one_of(call: Call, kinds: Sequence[Kind]) -> Kind:
    kinds = [kind for kind in kinds if not only_null(kind)]
    if not kinds:
        raise InputError(f"{operator(call)} has no value but NULL: write at least one.")
    alike(call, kinds)
    if kinds[0].number:
        hull = intervals.hull(kinds)
    else:
        lows, highs = [kind.low for kind in kinds], [kind.high for kind in kinds]
        hull = Kind(kinds[0].type, intervals.all_or_none(min, lows), intervals.all_or_none(max, highs))
    keys = _union([_listed(kind) for kind in kinds])
    return replace(hull, keys=keys) if keys is not None and (hull.count is None or len(keys) < hull.count) else hull


def _listed(kind: Kind) -> tuple[Value, ...] | None:
    """All values, if they are few."""
    if kind.count is None or kind.count > MANY:
        return None
    return kind.maybe(False).values()


def _union(lists: Sequence[tuple[Value, ...] | None]) -> tuple[Value, ...] | None:
    found: set[Value] = set()
    for each in lists:
        if each is None:
            return None
        found.update(each)
    return in_order(found) if len(found) <= MANY else None


# Text


def _text(each: Callable[[str], str | None]) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        all_of("text", call, kinds)
        return replace(kinds[0], keys=_mapped(kinds[0], lambda key: each(str(key))))

    return rule


def _letter_by_letter(each: Callable[[str], str]) -> Callable[[str], str | None]:
    """The engine changes the case of each letter by itself; None where a letter would become two (ß)."""

    def change(text: str) -> str | None:
        letters = [each(letter) for letter in text]
        return "".join(letters) if all(len(letter) == 1 for letter in letters) else None

    return change


# Dates


def _part(low: int | None, high: int | None, each: Callable[[datetime.date], int], *types: Type) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        not_null(call, kinds)
        kind = kinds[0]
        if kind.type not in types:
            raise InputError(
                f"{operator(call)} needs a {' or '.join(types)}, and {called(call.arguments[0])} is {kind.type}: "
                "declare its type in the policy."
            )
        ends = (low, high) if low is not None else tuple(_year(end, kind.type) for end in (kind.low, kind.high))
        first, last = (None if end is None else Fraction(end) for end in ends)
        return Kind("integer", first, last, Fraction(1), _mapped(kind, lambda day: _of_day(day, each)), kind.nullable)

    return rule


def _year(end: Fraction | None, type: Type) -> int | None:
    return None if end is None else moment(end, type).year


def _of_day(day: Value, each: Callable[[datetime.date], int]) -> int:
    assert isinstance(day, datetime.date)
    return each(day)


def _hour(day: datetime.date) -> int:
    assert isinstance(day, datetime.datetime)
    return day.hour


# The table

ANY = 2**31
ONE, TWO, SOME = range(1, 2), range(2, 3), range(1, ANY)

RULES: Mapping[Operation, tuple[range, Rule]] = {
    "add": (TWO, _calculated(intervals.total)),
    "subtract": (TWO, _calculated(intervals.difference)),
    "multiply": (TWO, _calculated(intervals.product)),
    "divide": (TWO, _divided),
    "negate": (ONE, _changed(intervals.negative, lambda key: -key)),
    "abs": (ONE, _changed(intervals.magnitude, lambda key: max(key, -key))),
    "floor": (ONE, _changed(intervals.rounded_down, lambda key: math.floor(_double(key)))),
    "ceil": (ONE, _changed(intervals.rounded_up, lambda key: math.ceil(_double(key)))),
    "least": (SOME, _picked(intervals.smallest)),
    "greatest": (SOME, _picked(intervals.largest)),
    "equal": (TWO, _compared),
    "unequal": (TWO, _compared),
    "less": (TWO, _compared),
    "at_most": (TWO, _compared),
    "more": (TWO, _compared),
    "at_least": (TWO, _compared),
    "and": (SOME, _connected),
    "or": (SOME, _connected),
    "not": (ONE, _connected),
    "is_null": (ONE, _is_null),
    "in": (range(2, ANY), _in),
    "like": (TWO, _like),
    "case": (range(3, ANY), _case),
    "coalesce": (SOME, _coalesce),
    "lower": (ONE, _text(_letter_by_letter(str.lower))),
    "upper": (ONE, _text(_letter_by_letter(str.upper))),
    "trim": (ONE, _text(lambda text: text.strip(" "))),
    "year": (ONE, _part(None, None, lambda day: day.year, "date", "timestamp")),
    "quarter": (ONE, _part(1, 4, lambda day: (day.month + 2) // 3, "date", "timestamp")),
    "month": (ONE, _part(1, 12, lambda day: day.month, "date", "timestamp")),
    "day": (ONE, _part(1, 31, lambda day: day.day, "date", "timestamp")),
    "weekday": (ONE, _part(1, 7, lambda day: day.isoweekday(), "date", "timestamp")),
    "hour": (ONE, _part(0, 23, _hour, "timestamp")),
}
"""For each operation: how many arguments it takes, and its rule."""
