"""Constants as they are written: exact numbers, dates and timestamps, read here so that no cast reaches the data."""

import datetime
import re
from collections.abc import Mapping
from fractions import Fraction

from noisette.errors import InputError
from noisette.query.expression import Expression, Literal
from noisette.query.kind import Kind
from noisette.query.operations import kind_of

__all__ = ["alike", "date", "number", "timestamp"]


def number(text: str) -> int | Fraction:
    """A number exactly as written.

    >>> number("0.1"), number("1e3")
    (Fraction(1, 10), 1000)
    """
    if not re.fullmatch(r"[0-9]{0,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?", text) or not text[:2].strip("."):
        raise InputError("A number cannot be read: write at most 40 digits, such as 1000, 0.25 or 1e3.")
    value = Fraction(text)
    return value.numerator if value.denominator == 1 else value


def date(text: str) -> datetime.date:
    """A date: year, month and day."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        try:
            return datetime.date.fromisoformat(text)
        except ValueError:
            pass
    raise InputError("A date cannot be read: write year, month and day as in DATE '2020-01-31'.")


def timestamp(text: str) -> datetime.datetime:
    """A timestamp without a time zone; a date alone is its midnight."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?", text):
        try:
            return datetime.datetime.fromisoformat(text)
        except ValueError:
            pass
    raise InputError("A timestamp cannot be read: write it as in TIMESTAMP '2020-01-31 12:30:00'.")


def alike(values: tuple[Expression, ...], columns: Mapping[str, Kind]) -> tuple[Expression, ...]:
    """The same values, where texts beside a date are dates and dates beside a timestamp are timestamps."""
    if not any(isinstance(value, Literal) and isinstance(value.value, str | datetime.date) for value in values):
        return values
    types = {kind_of(value, columns).type for value in values if value != Literal(None)}
    wanted = "timestamp" if "timestamp" in types else "date" if "date" in types else None
    return tuple(_as(wanted, value) for value in values)


def _as(wanted: str | None, value: Expression) -> Expression:
    match wanted, value:
        case "date", Literal(str(text)):
            return Literal(date(text))
        case "timestamp", Literal(str(text)):
            return Literal(timestamp(text))
        case "timestamp", Literal(datetime.date() as day) if not isinstance(day, datetime.datetime):
            return Literal(datetime.datetime.combine(day, datetime.time()))
        case _:
            return value
