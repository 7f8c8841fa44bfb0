"""Rules of functions of numbers: remainders, rounding, roots and logarithms.

Roots are rounded correctly by every engine. Logarithms are computed by `logarithm`, in steps that every engine takes
alike, and rounded to a public grid. Of numbers that have none they are NULL, as a quotient by 0 is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from noisette.errors import InputError
from noisette.query import intervals
from noisette.query.expression import Call, Operation
from noisette.query.kind import Kind
from noisette.query.known import Rule, whole, whole_constant
from noisette.query.logarithm import GRID, logarithm
from noisette.query.requirements import bounded, called, operator

__all__ = ["NUMBER_RULES", "partial", "steps_to"]

DIGITS = 12
"""Numbers are rounded to at most this many digits, before or after the point."""


def _modulo(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    """The remainder with the sign of the dividend; NULL where the divisor is 0."""
    for place in (0, 1):
        whole(call, kinds, place)
    bounded(Call(call.operation, call.arguments[1:]), kinds[1:])
    x, n = kinds
    low, high = n.ends
    most = max(abs(low), abs(high), Fraction(1)) - 1
    down = -most if x.low is None else max(-most, min(x.low, Fraction(0)))
    up = most if x.high is None else min(most, max(x.high, Fraction(0)))
    return Kind("integer", down, up, Fraction(1), nullable=x.nullable or n.nullable or low <= 0 <= high)


def _round(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    bounded(Call(call.operation, call.arguments[:1]), kinds[:1])
    digits = whole_constant(call, 1, -DIGITS, DIGITS, "ROUND(x, 1)")
    kind, grid = kinds[0], Fraction(10) ** -digits
    if kind.grid is not None and (kind.grid / grid).denominator == 1:
        return replace(kind, keys=None)
    exact = steps_to(kind, grid) is not None
    low, high = (_nearest(end / grid if exact else _scaled(end, grid)) * grid for end in kind.ends)
    type = "integer" if digits <= 0 else kind.type
    found = intervals.settled(Kind(type, low, high, grid, nullable=kind.nullable))
    if found.grid != grid:
        raise InputError("ROUND has more digits here than doubles can hold: write fewer digits, or narrower bounds.")
    return found


def _scaled(end: Fraction, grid: Fraction) -> Fraction:
    """The steps of a bound as engines compute them, in doubles: 0.15 is 1.5 tenths there, and rounded up."""
    by = 1 / grid
    return Fraction(float(end) * float(by.numerator) / float(by.denominator))


def _nearest(steps: Fraction) -> int:
    size = math.floor(abs(steps) + Fraction(1, 2))
    return size if steps >= 0 else -size


def steps_to(kind: Kind, grid: Fraction) -> tuple[Fraction, int] | None:
    """A step that all values of a kind are multiples of, and how many of them make one step of a coarser grid."""
    if kind.grid is None:
        return None
    fine = Fraction(1, kind.grid.denominator)
    return (fine, (grid / fine).numerator) if (grid / fine).denominator == 1 else None


def partial(operation: Operation, kinds: Sequence[Kind]) -> bool:
    """Whether an operation may be NULL of bounded numbers that are not, since some of them have no quotient or root.

    >>> partial("sqrt", [Kind("integer", Fraction(-1), Fraction(9))]), partial("sqrt", [intervals.constant(0)])
    (True, False)
    """
    match operation:
        case "divide":
            return intervals.may_be_zero(kinds[1])
        case "sqrt":
            return float(kinds[0].ends[0]) < 0
        case "ln" | "log2" | "log10":
            return float(kinds[0].ends[0]) <= 0
        case _:
            return False


def _some(call: Call, kinds: tuple[Kind, ...], *, zero: bool) -> tuple[Fraction, bool]:
    """The upper end of a number of which some value is above 0, or 0 itself if that counts, and whether all are."""
    bounded(call, kinds)
    high = kinds[0].ends[1]
    if float(high) < 0 or (float(high) == 0 and not zero):
        x = f"{called(call.arguments[0])} is always {'negative' if zero else '0 or less'}"
        raise InputError(f"{operator(call)} has no value here, since {x}: write a number above 0.")
    return high, not partial(call.operation, kinds)


def _sqrt(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    """NULL of negative numbers."""
    high, always = _some(call, kinds, zero=True)
    low = max(kinds[0].ends[0], Fraction(0))
    low, high = (Fraction(math.sqrt(float(end))) for end in (low, high))
    return intervals.settled(Kind("real", low, high, nullable=kinds[0].nullable or not always))


def _log(base: str) -> Rule:
    """NULL of 0 and of negative numbers. The least number above 0 is a step of the grid; without one, none is."""

    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        high, always = _some(call, kinds, zero=False)
        low = kinds[0].ends[0] if always else kinds[0].grid
        most = Fraction(logarithm(float(high), base)) + GRID
        if low is None or float(low) == 0:
            return Kind("real", None, Fraction(float(most)))
        least = Fraction(logarithm(float(low), base)) - GRID
        return intervals.settled(Kind("real", least, most, GRID, nullable=kinds[0].nullable or not always))

    return rule


ONE, TWO = range(1, 2), range(2, 3)

NUMBER_RULES: Mapping[Operation, tuple[range, Rule]] = {
    "modulo": (TWO, _modulo),
    "round": (TWO, _round),
    "sqrt": (ONE, _sqrt),
    "ln": (ONE, _log("ln")),
    "log2": (ONE, _log("log2")),
    "log10": (ONE, _log("log10")),
}
"""For each function of numbers: how many arguments it takes, and its rule."""
