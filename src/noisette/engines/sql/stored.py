"""A stored column as the clean values that its kind promises.

| stored | becomes |
|---|---|
| NaN | NULL |
| ±inf, a number beyond the bounds | the nearer bound; without one a real stays, an integer is cut to 64 bits |
| -0.0 | 0.0 |
| a number beside the grid | the nearest multiple, halves away from 0 |
| an integer of any width, a DECIMAL | BIGINT for an integer (halves away from 0), DOUBLE for a real |
| a date or timestamp beyond the bounds | the nearer bound; an infinite one without bounds is NULL |
| a value beyond the bounds, in a key or a comparison | neither: the row is in no group, and no comparison holds |
| a date stored as such, or a timestamp, before year 1 or after 9999 | the first or last one that Python has |
| text in a column that is declared as another type | what it says (`texts`, `formats`), else NULL; then as above |
| text that is recoded (`query.recode`) | the value that it means |
| text that is none of the keys | the same text: whoever groups by it leaves it out |
| NULL | NULL; in a column declared without NULL, 0 (or the bound nearest to it), '', FALSE or 1970-01-01 |
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from noisette.engines.contract import CLEAN, FLOATS, INTEGERS, STORED, TEXTS, base_type
from noisette.engines.sql.syntax import (
    choose,
    clamped,
    constant,
    greatest,
    is_finite,
    is_nan,
    least,
    number,
    positive_zero,
    rounded,
    scaled,
    snapped,
    try_cast,
)
from noisette.engines.sql.texts import as_type, recoded
from noisette.errors import InputError
from noisette.query.intervals import half_away, step_bounds
from noisette.query.kind import Kind, Type, Value
from noisette.query.operations import declared
from noisette.query.requirements import moment
from noisette.query.variants import widened

__all__ = [
    "Stored", "decimal_digits", "is_inside", "normalised", "reaches_ends", "stays_apart", "stored_steps",
    "substitute_steps",
]  # fmt: skip

Stored: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each table its columns and the types they are stored as."""

MOST = 2**63 - 1

_AS_THEY_ARE: dict[Type, tuple[str, ...]] = {
    "integer": ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "text": ("VARCHAR",), "boolean": ("BOOLEAN",),
}  # fmt: skip

_MOST_DIGITS = {"integer": 18, "real": 15}  # of decimals that all fit 64 bits, or 53
_EXACT = 2**50

_EARLIEST: dict[Type, Value] = {"date": datetime.date.min, "timestamp": datetime.datetime.min}
_LATEST: dict[Type, Value] = {"date": datetime.date.max, "timestamp": datetime.datetime.max}


def normalised(column: exp.Expr, kind: Kind, stored: str) -> exp.Expr:
    """The clean value of a column that the engine stores as `stored` (`contract.STORED`).

    >>> pay = Kind("real", Fraction(0), Fraction(9))
    >>> normalised(exp.column("x", quoted=True), pay, "DOUBLE").sql("duckdb")
    'CASE WHEN "x" BETWEEN 0.0e0 AND 9.0e0 THEN ("x" + 0.0e0) WHEN "x" < 0.0e0 THEN 0.0e0 WHEN NOT ISNAN("x") THEN ...'
    """
    base = base_type(stored)
    if base not in STORED[kind.type]:
        raise InputError(f"A column stored as {base} cannot be declared as {kind.type}: declare the type it has.")
    return _clean(column, declared(kind), stored)


def is_inside(column: exp.Expr, kind: Kind, stored: str) -> exp.Expr:
    """Whether a stored value is not beyond the bounds of its column, once it is on the grid; NULL is not.

    >>> is_inside(exp.column("x", quoted=True), Kind("integer", Fraction(0), Fraction(9)), "INTEGER").sql("duckdb")
    'COALESCE("x" BETWEEN 0 AND 9, TRUE)'
    """
    kind, base = declared(kind), base_type(stored)
    real = base == "DOUBLE" and kind.type == "real" and kind.grid is None
    plain = (base in INTEGERS and kind.grid == 1) or (base == kind.type.upper() and not kind.number and kind.bounded)
    value = column.copy() if plain or real else exp.Paren(this=_clean(column, widened(kind), stored))
    low, high = (None if end is None else constant(_as_value(end, kind.type)) for end in (kind.low, kind.high))
    if low is not None and high is not None:
        there: exp.Expr = exp.Between(this=value, low=low, high=high)
    else:
        there = exp.LTE(this=value, expression=high) if low is None else exp.GTE(this=value, expression=low)
    there = exp.Or(this=there, expression=is_nan(column)) if real else there  # as NULL
    return exp.Coalesce(this=there, expressions=[exp.true()])


def _clean(column: exp.Expr, kind: Kind, stored: str) -> exp.Expr:
    """The clean value of a kind whose bounds and grid are those that values get."""
    base = base_type(stored)
    if base in TEXTS and kind.type != "text":
        return _clean(as_type(column, kind.type, kind.format), kind, CLEAN[kind.type])
    match kind.type:
        case "integer":
            clean = _integer(column, kind, stored)
        case "real" if _on_grid(kind, stored):
            return _within(column, exp.cast(column, "DOUBLE"), kind)
        case "real":
            clean = _real(column, kind, base)
        case "date" | "timestamp" if base == kind.type.upper() and kind.bounded:  # infinite ones are beyond the bounds
            return _within(column, column, kind)
        case "date" | "timestamp":
            clean = _moment(column, kind, base)
        case "text" | "boolean":
            clean = column.copy() if base in ("VARCHAR", "BOOLEAN") else exp.cast(column, "VARCHAR")
            clean = clean if kind.recode is None else recoded(clean, kind.recode)
    if kind.nullable or kind.type == "integer" or _in_cases(kind, base):
        return clean
    if kind.type == "text":  # '' is the least text. DuckDB computes this by dictionary, but COALESCE row by row
        return greatest(clean, constant(""))
    return exp.Coalesce(this=clean, expressions=[constant(_substitute(kind))])


def stays_apart(kind: Kind, stored: str) -> bool:
    """Whether values that are different as they are stored are different when they are clean, text once it is valid.

    >>> stays_apart(Kind("integer"), "BIGINT"), stays_apart(Kind("integer", high=Fraction(9)), "BIGINT")
    (True, False)
    """
    kind = declared(kind)
    free = kind.nullable and kind.recode is None and kind.grid in (None, 1) and kind.low is None and kind.high is None
    return free and base_type(stored) in _AS_THEY_ARE.get(kind.type, ())


def _real(column: exp.Expr, kind: Kind, base: str) -> exp.Expr:
    double = column if base == "DOUBLE" else exp.cast(column, "DOUBLE")
    inside = positive_zero(double) if kind.grid is None else snapped(double, kind.grid)
    low, high = _bound(kind.low, float), _bound(kind.high, float)
    nan = is_nan(double)
    if base not in FLOATS:
        return clamped(double, low, high, inside)
    if not _in_cases(kind, base) or low is None or high is None:
        return clamped(double, low, high, inside, (nan, exp.null()))
    between = exp.Between(
        this=double.copy(), low=low, high=high
    )  # first: most values are, and NaN is above all numbers
    below = exp.LT(this=double.copy(), expression=low.copy()), low.copy()
    nothing = exp.null() if kind.nullable else constant(_substitute(kind))
    return choose((between, inside), below, (exp.Not(this=nan), high.copy()), otherwise=nothing)


def _in_cases(kind: Kind, base: str) -> bool:
    """Whether one CASE cleans a value, NULL and NaN included, which is faster than to ask for NULL afterwards."""
    return kind.type == "real" and base in FLOATS and kind.bounded


def stored_steps(column: exp.Expr, kind: Kind, grid: Fraction) -> exp.Expr:
    """The whole number of grid steps of a stored double: what `normalised` and then `to_steps` make of it, at once.

    The steps must reach the ends of the bounds (`reaches_ends`), or some could be beyond them.

    >>> pay = Kind("real", Fraction(0), Fraction(9))
    >>> stored_steps(exp.column("x", quoted=True), pay, Fraction(1, 4)).sql("duckdb")
    'CASE WHEN "x" BETWEEN 0.0e0 AND 9.0e0 THEN TRY_CAST(ROUND(("x" * 4.0e0)) AS BIGINT) WHEN "x" < 0.0e0 THEN 0 ...'
    """
    steps = try_cast(rounded(scaled(column, 1 / grid)), "BIGINT")
    least, most = step_bounds(kind, grid)
    low, high = (number(float(end)) for end in kind.ends)
    between = exp.Between(this=column.copy(), low=low, high=high)
    below = exp.LT(this=column.copy(), expression=low.copy()), number(least)
    above = exp.Not(this=is_nan(column)), number(most)
    nothing = exp.null() if kind.nullable else number(substitute_steps(kind, grid))
    return choose((between, steps), below, above, otherwise=nothing)


def reaches_ends(kind: Kind, grid: Fraction) -> bool:
    """Whether doubles give the steps of both bounds; then no value within the bounds has steps beyond those.

    Multiplying by a number above 0, dividing by one and rounding keep the order, so the ends have the most steps. The
    double below 0.15 is less than one and a half steps of 1/10, but its product is one and a half, and rounds to 2.

    >>> reaches_ends(Kind("real", Fraction(0), Fraction(0.15)), Fraction(1, 10))
    False
    """
    by = 1 / grid
    reached = (float(end) * float(by.numerator) / float(by.denominator) for end in kind.ends)
    return tuple(half_away(Fraction(steps)) for steps in reached) == step_bounds(kind, grid)


def substitute_steps(kind: Kind, grid: Fraction) -> int:
    """The grid steps of what stands for NULL in a number that is declared to have none."""
    return step_bounds(replace(kind, low=_zero(kind), high=_zero(kind)), grid)[0]


def _integer(column: exp.Expr, kind: Kind, stored: str) -> exp.Expr:
    base = base_type(stored)
    whole = _cut(column, stored) if base not in INTEGERS else column if base == "BIGINT" else exp.cast(column, "BIGINT")
    if not kind.nullable:
        whole = exp.Coalesce(this=whole, expressions=[constant(_substitute(kind))])
    if kind.grid is not None and kind.grid > 1:
        inside = try_cast(snapped(exp.cast(whole, "DOUBLE"), kind.grid), "BIGINT")
        return clamped(whole, _bound(kind.low, int), _bound(kind.high, int), inside)
    return _between(whole, kind)


def _between(whole: exp.Expr, kind: Kind) -> exp.Expr:
    """An integer within its bounds, by LEAST and GREATEST: the engine is slower at CASE. NULL would become a bound."""
    found = whole
    if kind.low is not None:
        found = greatest(found, number(int(kind.low)))
    if kind.high is not None:
        found = least(found, number(int(kind.high)))
    if kind.nullable and (kind.low is not None or kind.high is not None):
        return choose((exp.Is(this=whole.copy(), expression=exp.null()), exp.null()), otherwise=found)
    return found


def _cut(column: exp.Expr, stored: str) -> exp.Expr:
    """The nearest integer of 64 bits."""
    base, (width, _) = base_type(stored), decimal_digits(stored)
    if base == "DECIMAL" and width <= _MOST_DIGITS["integer"]:
        return try_cast(column, "BIGINT")
    whole = rounded(column) if base in FLOATS else column
    nan = [(is_nan(column), exp.null())] if base in FLOATS else []
    up = exp.GT(this=column.copy(), expression=number(0)), number(MOST)
    down = exp.LT(this=column.copy(), expression=number(0)), number(-MOST)
    return exp.Coalesce(this=try_cast(whole, "BIGINT"), expressions=[choose(*nan, up, down, otherwise=exp.null())])


def _within(column: exp.Expr, value: exp.Expr, kind: Kind) -> exp.Expr:
    """A value within both bounds of its kind, by LEAST and GREATEST; there is no NaN."""
    low, high = (constant(_as_value(end, kind.type)) for end in kind.ends)
    if not kind.nullable:
        return least(greatest(exp.Coalesce(this=value.copy(), expressions=[constant(_substitute(kind))]), low), high)
    missing = exp.Is(this=column.copy(), expression=exp.null())
    return choose((missing, exp.null()), otherwise=least(greatest(value, low), high))


def _as_value(end: Fraction, type_: Type) -> Value:
    return end if type_ == "real" else int(end) if type_ == "integer" else moment(end, type_)


def _on_grid(kind: Kind, stored: str) -> bool:
    """Whether every decimal within the bounds is the double of a multiple of the grid already: rounding changes none.

    The engine divides the digits, below 2^53, by a power of ten: the double nearest to the quotient, and never -0.0.
    """
    width, scale = decimal_digits(stored)
    if base_type(stored) != "DECIMAL" or not kind.bounded or width > _MOST_DIGITS["real"]:
        return False
    grid = kind.grid or Fraction(1, 10**scale)
    most = max(abs(end) for end in kind.ends) / grid
    return (Fraction(1, 10**scale) / grid).denominator == 1 and most < _EXACT


def decimal_digits(stored: str) -> tuple[int, int]:
    """The digits of a DECIMAL, and how many of them are behind the point.

    >>> decimal_digits("DECIMAL(15,2)")
    (15, 2)
    """
    found = re.search(r"\((\d+),\s*(\d+)\)", stored)
    return (int(found[1]), int(found[2])) if found else (38, 0)


def _moment(column: exp.Expr, kind: Kind, base: str) -> exp.Expr:
    same = base == kind.type.upper()
    clean = column if same else try_cast(column, kind.type.upper())
    low = None if kind.low is None else constant(moment(kind.low, kind.type))
    high = None if kind.high is None else constant(moment(kind.high, kind.type))
    infinite = exp.Not(this=is_finite(clean))
    first, last = constant(_EARLIEST[kind.type]), constant(_LATEST[kind.type])
    inside = clamped(clean, first, last, clean) if same else clean  # of a cast, the engine might compare what was cast
    return clamped(clean, low, high, choose((infinite, exp.null()), otherwise=inside))


def _bound(end: Fraction | None, to: type[int] | type[float]) -> exp.Expr | None:
    return None if end is None else number(to(end))


def _zero(kind: Kind) -> Fraction:
    """0, or the bound that is nearest to it."""
    nearest = max([Fraction(0)] if kind.low is None else [Fraction(0), kind.low])
    return nearest if kind.high is None else min(nearest, kind.high)


def _substitute(kind: Kind) -> Value:
    """What stands for NULL in a column that is declared to have none: no stored value, and a public one."""
    match kind.type:
        case "text":
            return ""
        case "boolean":
            return False
        case _:
            nearest = _zero(kind)
    if kind.type in ("date", "timestamp"):
        return moment(nearest, kind.type)
    return int(nearest) if kind.type == "integer" else nearest
