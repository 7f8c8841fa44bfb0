"""Rules of the operations on dates and timestamps: what they ask for, and what is known of the result."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from noisette.errors import InputError
from noisette.query import moments as meaning
from noisette.query.expression import Call, Operation
from noisette.query.kind import Kind, Type, Value, in_order
from noisette.query.known import MANY, Rule, mapped, moments, since_1970, whole_constant, written
from noisette.query.requirements import moment

__all__ = ["DATE_RULES", "FARTHEST"]

FARTHEST = 10_000
"""No interval is longer than this many years."""


def _day(value: Value) -> datetime.date:
    assert isinstance(value, datetime.date)
    return value


def _year_of(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    moments(call, kinds)
    kind = kinds[0]
    low, high = (None if end is None else Fraction(_year(end, kind.type) or 0) for end in (kind.low, kind.high))
    return Kind("integer", low, high, Fraction(1), mapped(kind, lambda day: _day(day).year), kind.nullable)


def _part(unit: str, low: int, high: int, each: Callable[[datetime.date], int], *types: Type) -> Rule:
    """A part of a moment that is the same throughout a unit of time; between near bounds it takes few values."""

    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        moments(call, kinds, 0, *types)
        kind = kinds[0]
        whole = Kind("integer", Fraction(low), Fraction(high), Fraction(1), nullable=kind.nullable)
        keys = mapped(kind, lambda day: each(_day(day)))
        found = _between(unit, *kind.ends, kind.type, each) if kind.bounded and keys is None else None
        if found is None:
            return replace(whole, keys=keys)
        first, last = found[0], found[-1]
        few = found if len(found) < last - first + 1 else None
        return replace(whole, low=Fraction(first), high=Fraction(last), keys=few)

    return rule


@lru_cache(maxsize=256)
def _between(
    unit: str, low: Fraction, high: Fraction, type: Type, each: Callable[[datetime.date], int]
) -> tuple[int, ...] | None:
    """All values of a part between bounds; None where these are two years or many units of time apart."""
    first, last = moment(low, type), moment(high, type)
    if last.year > first.year + 1:
        return None
    firsts = meaning.firsts(unit, first, last, _FEW)
    return None if firsts is None else tuple(sorted(set(map(each, firsts))))


_FEW = 1_000


def _name(part: Operation) -> Rule:
    """The English name of a weekday or month: NULL where the date is, and in the order of the calendar."""

    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        numbers = DATE_RULES[part][1](call, kinds).values() or ()
        names = tuple(meaning.NAMES[part][n - 1] for n in numbers if isinstance(n, int))
        return Kind("text", keys=names, nullable=kinds[0].nullable)

    return rule


def _year(end: Fraction | None, type: Type) -> int | None:
    return None if end is None else moment(end, type).year


def _clock(name: str) -> Callable[[datetime.date], int]:
    return lambda at: int(getattr(at, name))


# Moments of moments


def _moved(kind: Kind, each: Callable[[datetime.date], datetime.date]) -> Kind:
    """What is known of a moment that another one never comes after: a later one makes a later one, or the same."""
    low, high = (None if end is None else since_1970(each(moment(end, kind.type))) for end in (kind.low, kind.high))
    return replace(kind, low=low, high=high, keys=mapped(kind, lambda at: each(_day(at))))


def _date_trunc(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    moments(call, kinds, 1)
    unit, kind = written(call, 0), kinds[1]
    units = meaning.UNITS if kind.type == "timestamp" else meaning.UNITS[:5]
    if unit not in units:
        raise InputError(f"A {kind.type} is truncated to {', '.join(units)}: write DATE_TRUNC('month', d).")
    assert isinstance(unit, str)
    found = _moved(kind, lambda at: meaning.truncated(unit, at))
    if found.keys is not None or not kind.bounded or (kind.type, unit) == ("date", "day"):
        return found
    low, high = (moment(end, kind.type) for end in kind.ends)
    keys = meaning.firsts(unit, low, high, MANY)
    return found if keys is None else replace(found, keys=tuple(keys))


def _later(each: Callable[[datetime.date, int], datetime.date], most: int, *types: Type) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        moments(call, kinds, 0, *types)
        by = whole_constant(call, 1, -most, most, "d + INTERVAL 3 MONTH")
        return _moved(kinds[0], lambda at: each(at, by))

    return rule


def _day_number(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    moments(call, kinds)
    kind = kinds[0]
    ends = (datetime.date.min, datetime.date.max)
    known = [end if at is None else moment(at, kind.type) for at, end in zip((kind.low, kind.high), ends, strict=True)]
    low, high = (Fraction(meaning.day_number(end)) for end in known)
    return Kind("integer", low, high, Fraction(1), nullable=kind.nullable)


def _as_date(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    moments(call, kinds)
    kind = kinds[0]
    days = {name: None if end is None else since_1970(_midnight(end, kind.type)) for name, end in _ends(kind)}
    keys = mapped(kind, lambda at: datetime.date(_day(at).year, _day(at).month, _day(at).day))
    return Kind("date", days["low"], days["high"], keys=keys, nullable=kind.nullable)


def _ends(kind: Kind) -> tuple[tuple[str, Fraction | None], ...]:
    return ("low", kind.low), ("high", kind.high)


def _midnight(end: Fraction, type: Type) -> datetime.date:
    at = moment(end, type)
    return datetime.date(at.year, at.month, at.day)


def _as_timestamp(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    moments(call, kinds)
    kind = kinds[0]
    if kind.type == "timestamp":
        return kind
    ends = {name: None if end is None else end * 86_400_000_000 for name, end in _ends(kind)}
    keys = mapped(kind, lambda day: datetime.datetime.combine(_day(day), datetime.time()))
    return Kind("timestamp", ends["low"], ends["high"], keys=keys, nullable=kind.nullable)


# Moments as text


def _strftime(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    moments(call, kinds)
    kind, form = kinds[0], written(call, 1)
    if not isinstance(form, str) or not meaning.FORMAT.fullmatch(form):
        raise InputError("STRFTIME takes a format of %Y, %m, %d, %H, %M and %S: write STRFTIME(d, '%Y-%m').")
    if kind.type == "date" and meaning.finest(form) in meaning.UNITS[5:]:
        raise InputError("A date has no hours: write %Y, %m and %d, or use a timestamp.")
    keys = mapped(kind, lambda at: meaning.formatted(_day(at), form)) if kind.keys is not None else _texts(kind, form)
    return Kind("text", keys=keys, nullable=kind.nullable)


def _texts(kind: Kind, form: str) -> tuple[Value, ...] | None:
    """All texts that a format makes between the bounds, or in a leap year if it writes no year; None if many."""
    unit = meaning.finest(form)
    if unit is None:
        return (form,)
    spans = [[moment(end, kind.type) for end in kind.ends]] if kind.bounded else []
    if "%Y" not in form:
        days = datetime.timedelta(days=366 if "%m" in form or "%d" in form else 1, microseconds=-1)
        spans.append([datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 1) + days])
    for low, high in spans:
        if (found := meaning.firsts(unit, low, high, MANY)) is not None:
            return in_order(meaning.formatted(at, form) for at in found)
    return None


ONE, TWO = range(1, 2), range(2, 3)
_DAYS = FARTHEST * 366

DATE_RULES: Mapping[Operation, tuple[range, Rule]] = {
    "year": (ONE, _year_of),
    "quarter": (ONE, _part("quarter", 1, 4, lambda day: (day.month + 2) // 3)),
    "month": (ONE, _part("month", 1, 12, lambda day: day.month)),
    "week": (ONE, _part("week", 1, 53, lambda day: day.isocalendar().week)),
    "day": (ONE, _part("day", 1, 31, lambda day: day.day)),
    "day_of_year": (ONE, _part("day", 1, 366, lambda day: day.timetuple().tm_yday)),
    "weekday": (ONE, _part("day", 1, 7, lambda day: day.isoweekday())),
    "hour": (ONE, _part("hour", 0, 23, _clock("hour"), "timestamp")),
    "minute": (ONE, _part("minute", 0, 59, _clock("minute"), "timestamp")),
    "second": (ONE, _part("second", 0, 59, _clock("second"), "timestamp")),
    "weekday_name": (ONE, _name("weekday")),
    "month_name": (ONE, _name("month")),
    "date_trunc": (TWO, _date_trunc),
    "add_months": (TWO, _later(meaning.months_later, FARTHEST * 12)),
    "add_days": (TWO, _later(meaning.days_later, _DAYS)),
    "add_seconds": (TWO, _later(meaning.seconds_later, _DAYS * 86_400, "timestamp")),
    "day_number": (ONE, _day_number),
    "as_date": (ONE, _as_date),
    "as_timestamp": (ONE, _as_timestamp),
    "strftime": (TWO, _strftime),
}
"""For each operation on dates: how many arguments it takes, and its rule."""
