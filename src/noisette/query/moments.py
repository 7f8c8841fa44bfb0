"""What is done to dates and timestamps, as plain functions: the meaning that every engine repeats.

Values lie in the years 1 to 9999, and so do results: what would lie beyond is the first or the last day (or
microsecond). No function fails for any date.
"""

import calendar
import datetime
import re
from collections.abc import Iterator

__all__ = [
    "FORMAT", "NAMES", "PARTS", "UNITS", "day_number", "days_later", "finest", "firsts", "formatted", "months_later",
    "seconds_later", "truncated",
]  # fmt: skip

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""What a date is truncated to, and differences are counted in; weeks begin on Monday."""

PARTS = {"%Y": "year", "%m": "month", "%d": "day", "%H": "hour", "%M": "minute", "%S": "second"}
"""What a format may write, and the unit that it depends on."""

FORMAT = re.compile(r"([ -$&-~]|%[YmdHMS]){1,40}")
"""Formats that all engines write alike: these parts, and printable characters between them."""


def truncated(unit: str, at: datetime.date) -> datetime.date:
    """The first moment of the year, quarter, month, week, day, hour, minute or second that a moment lies in.

    >>> truncated("quarter", datetime.date(2020, 6, 30)), truncated("week", datetime.date(2020, 6, 30))
    (datetime.date(2020, 4, 1), datetime.date(2020, 6, 29))
    """
    day = datetime.date(at.year, at.month, at.day)
    match unit:
        case "year":
            day = day.replace(month=1, day=1)
        case "quarter":
            day = day.replace(month=(at.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            day = day.replace(day=1)
        case "week":
            day -= datetime.timedelta(days=day.weekday())
    if not isinstance(at, datetime.datetime):
        return day
    shown = UNITS.index(unit) - UNITS.index("day")
    hour, minute, second = (x if place < shown else 0 for place, x in enumerate((at.hour, at.minute, at.second)))
    return datetime.datetime(day.year, day.month, day.day, hour, minute, second)


def firsts(unit: str, low: datetime.date, high: datetime.date, most: int) -> list[datetime.date] | None:
    """All moments that truncation makes of those between two ends; None if there are more than `most`.

    >>> [day.month for day in firsts("quarter", datetime.date(2020, 3, 1), datetime.date(2020, 8, 1), 9)]
    [1, 4, 7]
    """
    found, at = [], truncated(unit, low)
    while at <= high:
        found.append(at)
        if len(found) > most:
            return None
        following = _next(unit, at)
        if following <= at:  # the last one that there is
            break
        at = following
    return found


def _next(unit: str, at: datetime.date) -> datetime.date:
    months = {"year": 12, "quarter": 3, "month": 1}
    seconds = {"hour": 3600, "minute": 60, "second": 1}
    if unit in months:
        later = months_later(at, months[unit])
    elif unit in seconds:
        later = seconds_later(at, seconds[unit])
    else:
        later = days_later(at, 7 if unit == "week" else 1)
    return truncated(unit, later)


# Names

NAMES = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
        *("November", "December"),
    ),
}
"""The English names of weekdays and months, in their order."""


# Sums


def months_later(at: datetime.date, months: int) -> datetime.date:
    """The same day some months later, or the last day of that month if it is shorter.

    >>> months_later(datetime.date(2020, 1, 31), 1), months_later(datetime.date(9999, 12, 1), 1)
    (datetime.date(2020, 2, 29), datetime.date(9999, 12, 31))
    """
    month = at.year * 12 + at.month - 1 + months
    if not 12 <= month < 120_000:
        return _end(at, months)
    year, month = divmod(month, 12)
    return at.replace(year=year, month=month + 1, day=min(at.day, calendar.monthrange(year, month + 1)[1]))


def days_later(at: datetime.date, days: int) -> datetime.date:
    """Some days later."""
    return _later(at, datetime.timedelta(days=days))


def seconds_later(at: datetime.date, seconds: int) -> datetime.date:
    """Some seconds later."""
    return _later(at, datetime.timedelta(seconds=seconds))


def _later(at: datetime.date, by: datetime.timedelta) -> datetime.date:
    try:
        return at + by
    except OverflowError:
        return _end(at, by.days)


def _end(at: datetime.date, by: int) -> datetime.date:
    return type(at).min if by < 0 else type(at).max


def day_number(at: datetime.date) -> int:
    """The days since the Monday 0001-01-01."""
    return at.toordinal() - 1


# Texts


def formatted(at: datetime.date, form: str) -> str:
    """A moment as text.

    >>> formatted(datetime.date(20, 3, 1), "%Y-%m")
    '0020-03'
    """
    return re.sub("%.", lambda part: _part(at, PARTS[part[0]]), form)


def _part(at: datetime.date, name: str) -> str:
    return f"{getattr(at, name):0{4 if name == 'year' else 2}}"


def finest(form: str) -> str | None:
    """The smallest unit that a format depends on; None if it depends on none."""
    units = [PARTS[part] for part in _parts(form)]
    return max(units, key=UNITS.index, default=None)


def _parts(form: str) -> Iterator[str]:
    return (part for part in re.findall("%.", form))
