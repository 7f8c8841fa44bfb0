"""One rule for each operation: what it asks of its arguments, and what is then known of its result.

Of NULL every operation makes NULL, LEAST and GREATEST too; `case`, `coalesce`, `is_null`, `and` and `or` look further.
A rule reads kinds and the expressions that the analyst wrote, never a row. Those of texts, dates and functions of
numbers stand in files of their own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from noisette.errors import InputError
from noisette.query import intervals
from noisette.query.date_rules import DATE_RULES
from noisette.query.expression import Call, Operation
from noisette.query.kind import Kind, Value, in_order
from noisette.query.known import MANY, Rule, mapped, truth
from noisette.query.number_rules import NUMBER_RULES
from noisette.query.requirements import (
    alike,
    all_of,
    bounded,
    constants,
    not_null,
    numbers,
    only_null,
    operator,
)
from noisette.query.text_rules import TEXT_RULES

__all__ = ["RULES", "Rule", "case_parts"]

T = TypeVar("T")

# Numbers


def _calculated(function: Callable[[Kind, Kind], Kind]) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        bounded(call, kinds)
        return function(*kinds)

    return rule


def _divided(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    """NULL where the divisor is 0."""
    bounded(call, kinds)
    if all(float(end) == 0 for end in kinds[1].ends):
        raise InputError("The divisor is always 0, and nothing is divided by it: write another one.")
    return intervals.quotient(*kinds)


def _changed(function: Callable[[Kind], Kind], each: Callable[[int | Fraction], int | Fraction]) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        numbers(call, kinds)
        return replace(function(kinds[0]), keys=mapped(kinds[0], lambda key: each(_number(key))))

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


# Truth


def _compared(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    not_null(call, kinds)
    alike(call, kinds)
    return truth(any(kind.nullable for kind in kinds))


def _connected(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    all_of("boolean", call, kinds)
    return truth(any(kind.nullable for kind in kinds))


def _is_null(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    not_null(call, kinds)
    return truth(False)


def _in(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    constants(call, call.arguments[1:])
    return _compared(call, kinds)


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
    "case": (range(3, ANY), _case),
    "coalesce": (SOME, _coalesce),
    **NUMBER_RULES,
    **TEXT_RULES,
    **DATE_RULES,
}
"""For each operation: how many arguments it takes, and its rule."""
