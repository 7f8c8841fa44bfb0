"""What one row adds to a total, of a column as it is stored: CASE, comparisons and numbers that no value makes fail.

`stored.normalised` and `expressions.to_steps` say what is meant, for an engine of ours; here it is written for an
engine far away, where that gives the same to the last bit. Both ends of the bounds are reached exactly
(`stored.reaches_ends`), so a value beyond them has the steps of the nearer one. Within them:

| stored | steps |
|---|---|
| an integer, in steps of 1 | itself |
| another integer, FLOAT, DOUBLE | the nearest number of steps of its double: the same products and quotients |
| a DECIMAL whose last digit is a whole number of steps | its digits, times that number |
| another DECIMAL | as of the double that is nearest to it |

A value that is put on the grid first has the same steps: going to the grid and back is off by less than 1/10 of a step,
since `intervals.settled` keeps no finer grid. So has a decimal of fewer than 2^48 digits: the double nearest to it, in
steps, is off by less than 1/10, and it is at a half, below or above it just as the decimal is. Engines divide digits by
a power of ten, both exact, or read the decimal's text: either way it is the nearest double.
"""

import math
from fractions import Fraction

from sqlglot import exp

from noisette.engines.contract import FLOATS, INTEGERS, STORED, base_type
from noisette.engines.sql.stored import decimal_digits, reaches_ends, substitute_steps
from noisette.engines.sql.syntax import any_of, binary, choose, clamped, is_nan, is_null, number, scaled
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.measure import Measure

__all__ = ["counts", "present", "row_steps", "sums"]

_EXACT = 2**48  # digits of a decimal, or steps: a few rounding errors of doubles stay far below half of one
_MOST_PLACES = 15  # behind the point of a decimal: powers of ten that doubles hold


# Which columns


def counts(kind: Kind, stored: str) -> bool:
    """Whether a clean value is NULL just where the stored one is, or is no number.

    Text that is read as another type, or recoded, may become NULL; so may a moment without bounds, if it is infinite.
    """
    base = base_type(stored)
    if base not in STORED[kind.type] or kind.recode is not None:
        return False
    match kind.type:
        case "integer" | "real":
            return base in (*INTEGERS, *FLOATS, "DECIMAL")
        case "date" | "timestamp":
            return base == kind.type.upper() and kind.bounded
        case "text":
            return base == "VARCHAR"
        case "boolean":
            return base == "BOOLEAN"


def sums(kind: Kind, stored: str, m: Measure) -> bool:
    """Whether `row_steps` are those of a measure of a declared column."""
    base = base_type(stored)
    if not kind.number or not counts(kind, stored) or not kind.bounded:
        return False
    if step_bounds(kind, m.grid) != (m.low, m.high) or not reaches_ends(kind, m.grid):
        return False
    if kind.type == "integer" and base not in INTEGERS:  # rounded to a whole number first
        alike = kind.grid in (None, 1) and m.grid == 1
    else:
        alike = kind.grid in (None, m.grid) or (kind.type == "integer" and kind.grid == 1)
    return alike and (base != "DECIMAL" or _few_digits(kind, stored))


def _few_digits(kind: Kind, stored: str) -> bool:
    """Whether doubles tell the decimals within the bounds apart, and where each is between two steps."""
    _, places = decimal_digits(stored)
    return places <= _MOST_PLACES and max(map(abs, kind.ends)) * 10**places < _EXACT


# What a row adds


def present(own: exp.Column, stored: str) -> exp.Expr:
    """1 where there is a clean value, 0 where it is NULL."""
    return choose((_missing(own, stored), number(0)), otherwise=number(1))


def row_steps(own: exp.Column, kind: Kind, stored: str, m: Measure) -> exp.Expr:
    """The steps of a stored value as `stored.normalised` and `expressions.to_steps` make them; of NULL, 0."""
    base = base_type(stored)
    missing = _missing(own, stored), number(0 if kind.nullable else substitute_steps(kind, m.grid))
    if base in INTEGERS and kind.type == "integer" and m.grid == kind.grid == 1:
        return clamped(own, number(m.low), number(m.high), exp.cast(own, "BIGINT"), missing)
    if base == "DECIMAL":
        return _decimal_steps(own, kind, stored, m, missing)
    double = own if base == "DOUBLE" else exp.cast(own, "DOUBLE")
    low, high = (_double(float(end)) for end in kind.ends)
    return _within(double, low, high, m, missing, _nearest(double, m.grid))


def _decimal_steps(
    own: exp.Column, kind: Kind, stored: str, m: Measure, missing: tuple[exp.Expr, exp.Expr]
) -> exp.Expr:
    """Those of a decimal, which is compared with decimals: the first and the last one within the bounds."""
    _, places = decimal_digits(stored)
    ends = math.ceil(kind.ends[0] * 10**places), math.floor(kind.ends[1] * 10**places)
    one = 1 / m.grid  # in steps; where it is few and the last digit is whole steps, nothing has to be rounded
    if (one / 10**places).denominator == 1 and max(abs(m.low), abs(m.high)) < _EXACT > one:
        digits = own if one == 1 else binary(exp.Mul, own, number(int(one)))
        inside: exp.Expr = exp.cast(digits, "BIGINT")
    else:
        inside = _nearest(exp.cast(own, "DOUBLE"), m.grid)
    return _within(own, _decimal(ends[0], places), _decimal(ends[1], places), m, missing, inside)


def _within(
    own: exp.Expr, low: exp.Expr, high: exp.Expr, m: Measure, missing: tuple[exp.Expr, exp.Expr], inside: exp.Expr
) -> exp.Expr:
    below = exp.LT(this=own.copy(), expression=low), number(m.low)
    above = exp.GT(this=own.copy(), expression=high), number(m.high)
    return choose(missing, below, above, otherwise=inside)


def _missing(own: exp.Column, stored: str) -> exp.Expr:
    """Whether a clean value is NULL: NaN is no value, which some engines store as a decimal, above all others."""
    base = base_type(stored)
    if base in FLOATS:
        return any_of([is_null(own), is_nan(own)])
    if base == "DECIMAL":
        width, places = decimal_digits(stored)
        return any_of([is_null(own), exp.GT(this=own.copy(), expression=_decimal(10**width - 1, places))])
    return is_null(own)


def _nearest(double: exp.Expr, grid: Fraction) -> exp.Expr:
    """The nearest number of steps of a double, halves away from 0.

    Near 0 nothing is multiplied, which could be too small a number for some engines. Half a step or more away, adding a
    half is exact or rounds to no whole number that was not reached.
    """
    half, little = _double(0.5), float(grid / 4)
    steps = scaled(double.copy(), 1 / grid)

    def whole(size: exp.Expr) -> exp.Expr:
        up = exp.cast(exp.Floor(this=exp.Add(this=size.copy(), expression=half.copy())), "BIGINT")
        return choose((exp.LT(this=size.copy(), expression=half.copy()), number(0)), otherwise=up)

    above = exp.GT(this=double.copy(), expression=_double(little)), whole(steps)
    negative = exp.Neg(this=whole(exp.Paren(this=exp.Neg(this=exp.Paren(this=steps.copy())))))
    below = exp.LT(this=double.copy(), expression=_double(-little)), negative
    return choose(above, below, otherwise=number(0))


def _double(value: float) -> exp.Expr:
    return exp.cast(number(value), "DOUBLE")


def _decimal(digits: int, places: int) -> exp.Expr:
    """A decimal by its digits, with as many behind the point.

    >>> _decimal(-5, 2).sql()
    '(-0.05)'
    """
    whole, rest = divmod(abs(digits), 10**places)
    literal = exp.Literal.number(f"{whole}.{rest:0{places}}" if places else str(whole))
    return exp.Paren(this=exp.Neg(this=literal)) if digits < 0 else literal
