"""What is known of a number made of other numbers: bounds and grid, exactly.

The engine calculates in doubles, so these rules answer for doubles. A *settled* kind keeps one of two promises:

- with a grid g, each value is the double nearest to k·g for a whole number k, and k·g lies within the bounds: the
  engine rounds the result of an operation back to its grid wherever a grid is not a binary fraction;
- without one, the bounds are doubles and the value lies within them: rounding to nearest is monotone, so the rounded
  result of an operation lies between the rounded ends of its interval.

Bounds beyond `LARGEST` are refused; a grid too fine for doubles is forgotten, and integers then keep the grid 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.query.kind import LARGEST, Kind, Type

__all__ = [
    "all_or_none", "constant", "difference", "exact", "half_away", "hull", "largest", "magnitude", "may_be_zero",
    "most_steps", "negative", "product", "quotient", "rounded_down", "rounded_up", "settled", "smallest", "step_bounds",
    "sum_grid", "total",
]  # fmt: skip

Span: TypeAlias = tuple[Fraction, Fraction]

ROUNDED = 2**48
"""On a grid that is no binary fraction, a few rounding errors on this many steps stay far below half a step."""


_BITS = 50  # of a real number without a grid, where it is added up within a unit
_HUGE = 2**120  # sums of integers have 128 bits


# Settled kinds


def settled(kind: Kind) -> Kind:
    """The same number with the bounds and the grid that doubles can keep.

    >>> settled(Kind("real", Fraction(0), Fraction(1), Fraction(3, 10))).high
    Fraction(9, 10)
    >>> settled(Kind("integer", Fraction(1, 2), None)).low
    Fraction(1, 1)
    """
    low, high, grid = _settled(Kind(kind.type, kind.low, kind.high, kind.grid))
    return replace(kind, low=low, high=high, grid=grid)


@lru_cache(maxsize=1024)
def _settled(kind: Kind) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """Its bounds and its grid. A question asks for those of each column again and again."""
    ends = [end for end in (kind.low, kind.high) if end is not None]
    if any(abs(end) > LARGEST for end in ends):
        raise InputError("Numbers stay within ±2^52: declare narrower bounds, or use LEAST and GREATEST.")
    grid = _kept(kind, _grid(kind))
    if grid is None:
        low, high = _double(kind.low), _double(kind.high)
    else:
        low = None if kind.low is None else math.ceil(kind.low / grid) * grid
        high = None if kind.high is None else math.floor(kind.high / grid) * grid
    if low is not None and high is not None and low > high:
        raise InputError(
            "There is no value between these bounds: declare low at most high, with a multiple of the grid."
        )
    return low, high, grid


def exact(kind: Kind) -> bool:
    """Whether doubles hold each of the values without rounding: the grid is a binary fraction."""
    return kind.grid is not None and kind.grid.denominator & (kind.grid.denominator - 1) == 0


def constant(value: int | Fraction) -> Kind:
    """A number that is written down.

    >>> constant(5)
    Kind(type='integer', low=Fraction(5, 1), high=Fraction(5, 1), grid=Fraction(5, 1), keys=(5,), nullable=False)
    """
    if not -(2**63) < value < 2**63:
        raise InputError("A number in a query stays below 2^63.")
    at = Fraction(value)
    type: Type = "integer" if isinstance(value, int) else "real"
    kind = Kind(type, at, at, abs(at) or Fraction(1), (value,), False)
    if type == "integer" or _kept(kind, kind.grid):
        return kind
    return replace(kind, low=_double(at), high=_double(at), grid=None)


def _grid(kind: Kind) -> Fraction | None:
    """The declared grid, as far as the engine rounds to it: only between two bounds; an integer is a multiple of 1."""
    if kind.type == "integer":
        return Fraction(kind.grid.numerator) if kind.grid is not None and kind.bounded else Fraction(1)
    return kind.grid if kind.bounded else None


def _kept(kind: Kind, grid: Fraction | None) -> Fraction | None:
    """The grid, if doubles hold this many of its steps."""
    if kind.type == "integer" and kind.magnitude is None:
        return grid
    if grid is not None and kind.magnitude is not None:
        most = LARGEST if exact(replace(kind, grid=grid)) else ROUNDED
        if kind.magnitude * grid.denominator <= most and grid.numerator <= most:
            return grid
    return Fraction(1) if kind.type == "integer" else None


def _double(end: Fraction | None) -> Fraction | None:
    """The nearest double."""
    return None if end is None else Fraction(float(end))


def step_bounds(kind: Kind, grid: Fraction) -> tuple[int, int]:
    """The least and the greatest number of grid steps of a bounded value, halves rounded away from 0.

    >>> step_bounds(Kind("real", Fraction(-1, 2), Fraction(12, 10)), Fraction(1))
    (-1, 1)
    """
    if kind.low is None or kind.high is None:
        raise InputError("What is counted in steps needs bounds: write LEAST(GREATEST(x, low), high).")
    low, high = half_away(kind.low / grid), half_away(kind.high / grid)
    if max(abs(low), abs(high)) > LARGEST:
        raise InputError("These bounds are more than 2^52 steps away from 0: use a coarser grid or narrower bounds.")
    return low, high


def half_away(value: Fraction) -> int:
    """The nearest whole number, halves away from 0."""
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


def sum_grid(kind: Kind) -> Fraction:
    """The steps in which the values of one unit are added up: the kind's own grid, or 2^-50 of its size."""
    if kind.type == "integer":
        return Fraction(1)
    if kind.grid is not None or not kind.magnitude:
        return kind.grid or Fraction(1)
    return Fraction(2) ** (floor_log2(kind.magnitude) - _BITS)


def most_steps(kind: Kind, grid: Fraction) -> int:
    """The most steps that the sum of one unit's values may have, a multiple of the kind's own grid."""
    if kind.grid is None:
        return min(math.floor(LARGEST / grid), _HUGE)
    return math.floor(LARGEST / max(kind.grid, Fraction(1))) * int(kind.grid / grid)


# Two bounded numbers


def total(a: Kind, b: Kind) -> Kind:
    """a + b.

    >>> total(Kind("integer", Fraction(0), Fraction(6), Fraction(6)), constant(4))
    Kind(type='integer', low=Fraction(4, 1), high=Fraction(10, 1), grid=Fraction(2, 1), keys=None, nullable=True)
    """
    size = max(
        a.magnitude or Fraction(0), b.magnitude or Fraction(0)
    )  # small differences keep the rounding errors of large numbers
    return _combined(_type(a, b), lambda x, y: (x[0] + y[0], x[1] + y[1]), _common([a, b]), a, b, size=size)


def difference(a: Kind, b: Kind) -> Kind:
    """a - b."""
    return total(a, negative(b))


def product(a: Kind, b: Kind) -> Kind:
    """a · b: the ends are among the products of the ends, whatever their signs."""
    grid = a.grid * b.grid if a.grid is not None and b.grid is not None else None
    return _combined(_type(a, b), _products, grid, a, b)


def quotient(a: Kind, b: Kind) -> Kind:
    """a / b, NULL where b is 0. The divisor nearest to 0 bounds it: one step of a grid; without one, nothing does.

    >>> quotient(Kind("integer", Fraction(0), Fraction(9)), Kind("real", Fraction(0), Fraction(5), Fraction(1, 4))).ends
    (Fraction(0, 1), Fraction(36, 1))
    """
    if not may_be_zero(b):
        return _quotient(a, b)
    step = b.grid if b.grid is not None and float(b.grid) > 0 else None
    if step is None or a.magnitude is None or a.magnitude / step > LARGEST:
        return _signed(a, b)
    low, high = b.ends
    below = [replace(b, high=-step)] if low <= -step else []
    above = [replace(b, low=step)] if high >= step else []
    return hull([_quotient(a, side) for side in below + above]).maybe()


def may_be_zero(kind: Kind) -> bool:
    """Whether the doubles of a bounded number include 0."""
    low, high = _rough(kind)
    return low <= 0 <= high


def _signed(a: Kind, b: Kind) -> Kind:
    """A quotient of which no more than its sign can be known."""
    (a_low, a_high), (b_low, b_high) = a.ends, b.ends
    alike = (a_low >= 0 and b_low >= 0) or (a_high <= 0 and b_high <= 0)
    opposite = (a_low >= 0 and b_high <= 0) or (a_high <= 0 and b_low >= 0)
    return Kind("real", Fraction(0) if alike else None, Fraction(0) if opposite else None)


def _quotient(a: Kind, b: Kind) -> Kind:
    """a / b, for a divisor that is never 0; only a constant keeps the grid."""
    steady = b.low is not None and b.low == b.high and b.grid is not None
    grid = a.grid / abs(b.low) if steady and b.low is not None and a.grid is not None else None
    return _combined("real", lambda x, y: _products(x, (1 / y[1], 1 / y[0])), grid, a, b)


def _products(x: Span, y: Span) -> Span:
    ends = [p * q for p in x for q in y]
    return min(ends), max(ends)


def _combined(
    type: Type,
    interval: Callable[[Span, Span], Span],
    grid: Fraction | None,
    a: Kind,
    b: Kind,
    *,
    size: Fraction = Fraction(0),
) -> Kind:
    """Exact ends if the grid is kept; otherwise those of what doubles make of the two numbers."""
    low, high = interval(a.ends, b.ends)
    most = LARGEST if exact(a) and exact(b) else ROUNDED
    if grid is None or max(abs(low), abs(high), size) * grid.denominator > most:
        grid = None
        low, high = interval(_rough(a), _rough(b))
    return settled(Kind(type, low, high, grid, nullable=a.nullable or b.nullable))


def _rough(kind: Kind) -> Span:
    """The ends as doubles."""
    low, high = kind.ends
    return Fraction(float(low)), Fraction(float(high))


# One number, perhaps without bounds


def negative(kind: Kind) -> Kind:
    """-x."""
    low = None if kind.high is None else -kind.high
    high = None if kind.low is None else -kind.low
    return settled(replace(kind, low=low, high=high, keys=None))


def magnitude(kind: Kind) -> Kind:
    """|x|."""
    if kind.low is not None and kind.low >= 0:
        return replace(kind, keys=None)
    if kind.high is not None and kind.high <= 0:
        return negative(kind)
    return settled(replace(kind, low=Fraction(0), high=kind.magnitude, keys=None))


def rounded_down(kind: Kind) -> Kind:
    """The largest integer that is at most x."""
    return _whole(kind, math.floor)


def rounded_up(kind: Kind) -> Kind:
    """The smallest integer that is at least x."""
    return _whole(kind, math.ceil)


def _whole(kind: Kind, rounding: Callable[[Fraction], int]) -> Kind:
    low = None if kind.low is None else Fraction(rounding(kind.low))
    high = None if kind.high is None else Fraction(rounding(kind.high))
    grid = kind.grid if kind.grid is not None and kind.grid.denominator == 1 else Fraction(1)
    return settled(Kind("integer", low, high, grid, nullable=kind.nullable))


# Several numbers, perhaps without bounds; the result is one of them


def hull(kinds: Sequence[Kind]) -> Kind:
    """Any of these."""
    lows, highs = [kind.low for kind in kinds], [kind.high for kind in kinds]
    return _one_of(kinds, all_or_none(min, lows), all_or_none(max, highs))


def smallest(kinds: Sequence[Kind]) -> Kind:
    """The least of these: one upper bound is enough."""
    return _one_of(
        kinds, all_or_none(min, [kind.low for kind in kinds]), _any_known(min, [kind.high for kind in kinds])
    )


def largest(kinds: Sequence[Kind]) -> Kind:
    """The greatest of these: one lower bound is enough."""
    return _one_of(
        kinds, _any_known(max, [kind.low for kind in kinds]), all_or_none(max, [kind.high for kind in kinds])
    )


def _one_of(kinds: Sequence[Kind], low: Fraction | None, high: Fraction | None) -> Kind:
    nullable = any(kind.nullable for kind in kinds)
    return settled(Kind(_type(*kinds), low, high, _common(kinds), nullable=nullable))


def _any_known(pick: Callable[[list[Fraction]], Fraction], ends: Sequence[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return pick(known) if known else None


def all_or_none(pick: Callable[[list[Fraction]], Fraction], ends: Sequence[Fraction | None]) -> Fraction | None:
    """The smallest or largest of some ends, if all are known."""
    known = [end for end in ends if end is not None]
    return pick(known) if len(known) == len(ends) else None


def _type(*kinds: Kind) -> Type:
    return "integer" if all(kind.type == "integer" for kind in kinds) else "real"


def _common(kinds: Sequence[Kind]) -> Fraction | None:
    """The coarsest grid that all of them are on; 0 is on every grid."""
    grids = [kind.grid for kind in kinds if not kind.low == kind.high == 0] or [Fraction(1)]
    found = Fraction(0)
    for grid in grids:
        if grid is None:
            return None
        p, q = found, grid
        found = Fraction(
            math.gcd(p.numerator * q.denominator, q.numerator * p.denominator), p.denominator * q.denominator
        )
    return found
