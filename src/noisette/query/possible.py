"""Between which numbers an output can lie by declarations alone, whatever the data: ends of error bars move there.

What is meant is the number without noise, of bounded rows and clamped values, which is what an error bar holds. A bar
[a, b] that holds it with some probability does so as well within any interval in which it lies for certain: the
coverage stays. Nothing here knows the data.

    counts                 from 0 on; different values at most as many as there can be
    sums                   from 0 on, or up to 0, if no value has the other sign
    means, variances       within the bounds, and within what these allow
    shares of a total      from 0 to 1, if nothing that is added up is negative
    count(x) / count(*)    from 0 to 1, and quotients of a sum within the bounds of what is added up
    arithmetic             by intervals; nothing is known of a quotient by what may be negative or 0
"""

import math
from fractions import Fraction
from typing import assert_never

from noisette.query.aggregate import ANYTHING, Span, measures_of, of_kind, possible_values
from noisette.query.plan import Aggregate, Key, Result, ResultCall, ResultLiteral
from noisette.query.prepare import Prepared

__all__ = ["possible"]


def possible(result: Result, prepared: Prepared) -> Span:
    """The ends between which an output lies in every group."""
    match result:
        case Aggregate():
            if result.of is None:
                return 0.0, math.inf
            return possible_values(result, prepared.shape.columns)
        case ResultLiteral(value):
            number = isinstance(value, int | Fraction) and not isinstance(value, bool)
            return (float(value), float(value)) if number else ANYTHING  # type: ignore[arg-type]
        case Key(position):
            return of_kind(prepared.keys[position])
        case ResultCall():
            return _call(result, prepared)
        case _:
            assert_never(result)


# Arithmetic


def _call(call: ResultCall, prepared: Prepared) -> Span:
    if call.operation == "total":
        low, high = possible(call.arguments[0], prepared)
        return 0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf
    if call.operation == "divide" and (share := _share(call, prepared)) is not None:
        return share
    spans = [possible(argument, prepared) for argument in call.arguments]
    (a, b), rest = spans[0], spans[1:]
    match call.operation:
        case "add":
            return a + rest[0][0], b + rest[0][1]
        case "subtract":
            return a - rest[0][1], b - rest[0][0]
        case "negate":
            return -b, -a
        case "multiply":
            return _product((a, b), rest[0])
        case "divide":
            return _quotient((a, b), rest[0])
        case "abs":
            return (0.0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
        case "round" | "floor" | "ceil":
            return _rounded((a, b))
        case _:  # comparisons have no bars
            return ANYTHING


def _product(x: Span, y: Span) -> Span:
    ends = [0.0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(ends), max(ends)


def _quotient(x: Span, y: Span) -> Span:
    """Counts are what one divides by, and what is near 0 counts as 1 (`Estimate.over`): then the sign is known."""
    if y[0] > 0:
        ends = [0.0 if math.isinf(b) else a / b for a in x for b in y]
        return min(ends), max(ends)
    if y[0] == 0:
        return 0.0 if x[0] >= 0 else -math.inf, 0.0 if x[1] <= 0 else math.inf
    return ANYTHING


_PARTS = frozenset((("count", "rows"), ("distinct", "rows"), ("units", "rows"), ("rows", "rows")))
_PARTS_OF_VALUES = frozenset((("count", "count"), ("distinct", "count")))


def _rounded(x: Span) -> Span:
    """Up or down to a whole number at most: there are no negative digits."""
    low, high = x
    return low if math.isinf(low) else float(math.floor(low)), high if math.isinf(high) else float(math.ceil(high))


def _share(call: ResultCall, prepared: Prepared) -> Span | None:
    """A part of the rows, or a sum over them, divided by their number; None if it is something else."""
    factor, above = _multiple(call.arguments[0])
    below = call.arguments[1]
    if above is not None and isinstance(below, ResultCall) and below.operation == "total":
        one_sign = below.arguments[0] == above and possible(above, prepared)[0] >= 0
        return _product((0.0, 1.0), (factor, factor)) if one_sign else None
    if above is None or not isinstance(below, Aggregate):
        return None
    both, same = (above.function, below.function), above.of == below.of
    if both in _PARTS or (both in _PARTS_OF_VALUES and same):
        return _product((0.0, 1.0), (factor, factor))
    if both == ("sum", "rows") or (both == ("sum", "count") and same):
        (m,) = measures_of(above, prepared.shape, prepared.part)
        low, high = (float(end * m.grid) for end in (m.low, m.high))
        return _product((min(low, 0.0), max(high, 0.0)), (factor, factor))  # NULL adds 0
    return None


def _multiple(result: Result) -> tuple[float, Aggregate | None]:
    """An aggregate, or one times a constant."""
    if isinstance(result, Aggregate):
        return 1.0, result
    if isinstance(result, ResultCall) and result.operation == "multiply":
        for one, other in (result.arguments, result.arguments[::-1]):
            if (
                isinstance(one, ResultLiteral)
                and isinstance(one.value, int | Fraction)
                and isinstance(other, Aggregate)
            ):
                return float(one.value), other
    return 1.0, None
