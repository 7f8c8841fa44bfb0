"""The further columns that a table has for each column with bounds, as requests to engines name them (`beyond`).

within   the value, NULL where the stored one lies beyond the bounds
inside   whether it does not: TRUE for NULL, too

No other column has such a name: a blank stands before the dot, and analysts are never shown one.
"""

import datetime
import math
from dataclasses import replace
from fractions import Fraction

from noisette.query.kind import Kind
from noisette.query.known import since_1970
from noisette.query.schema import Table

__all__ = ["inside", "limited", "plain", "telling_apart", "variant_kind", "widened", "within"]

_WITHIN, _INSIDE = " within", " inside"

_DAYS = since_1970(datetime.date.min), since_1970(datetime.date.max)
_MOMENTS = since_1970(datetime.datetime.min), since_1970(datetime.datetime.max)


def within(name: str) -> str:
    """The name of a column that is NULL beyond its bounds.

    >>> within("t1.age"), plain(within("t1.age"))
    ('t1 within.age', 't1.age')
    """
    alias, dot, column = name.partition(".")
    return f"{alias}{_WITHIN}{dot}{column}"


def inside(name: str) -> str:
    """The name of the condition that a column is not beyond its bounds."""
    alias, dot, column = name.partition(".")
    return f"{alias}{_INSIDE}{dot}{column}"


def plain(name: str) -> str:
    """The column whose further column this is; of others, the same."""
    alias, dot, column = name.partition(".")
    return f"{alias.removesuffix(_WITHIN).removesuffix(_INSIDE)}{dot}{column}"


def limited(kind: Kind) -> bool:
    """Whether a stored value may be beyond the bounds of its column."""
    return kind.low is not None or kind.high is not None


def telling_apart(table: Table, alias: str) -> tuple[str, ...]:
    """What tells the rows of a table apart, whatever is asked of them: rows that agree in it are alike to any question.

    Two values beyond a bound are clean as the bound itself, but no comparison holds for them.

    >>> from noisette.query.schema import Column
    >>> ages = Table("t", (Column("u", Kind("text")), Column("age", Kind("integer", Fraction(0), Fraction(99)))))
    >>> telling_apart(ages, "t1")
    ('t1.u', 't1.age', 't1 inside.age')
    """
    names = [f"{alias}.{column.name}" for column in table.columns]
    return *names, *(inside(f"{alias}.{column.name}") for column in table.columns if limited(column.kind))


def variant_kind(name: str, kind: Kind) -> Kind:
    """What is known of a further column, by that of its own."""
    return Kind("boolean", nullable=False) if name == inside(plain(name)) else replace(kind, nullable=True)


def widened(kind: Kind) -> Kind:
    """A kind with the bounds and the grid that values get (`operations.declared`), one step wider on both sides.

    Of what is cleaned as this kind, just the values beyond the bounds are beyond those of the first one. Dates stay
    within the years 1 to 9999: there is nothing beyond these.

    >>> widened(Kind("integer", Fraction(0), Fraction(99), Fraction(1), nullable=False)).ends
    (Fraction(-1, 1), Fraction(100, 1))
    """
    low, high = kind.low, kind.high
    if kind.number and kind.grid is None:
        low = None if low is None else Fraction(math.nextafter(float(low), -math.inf))
        high = None if high is None else Fraction(math.nextafter(float(high), math.inf))
        return replace(kind, low=low, high=high, nullable=True)
    step = kind.grid or Fraction(1)
    low, high = None if low is None else low - step, None if high is None else high + step
    if not kind.number:
        first, last = _DAYS if kind.type == "date" else _MOMENTS
        low, high = None if low is None else max(low, first), None if high is None else min(high, last)
    return replace(kind, low=low, high=high, nullable=True)
