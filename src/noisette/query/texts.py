"""What is done to texts, as plain functions: the meaning that every engine repeats, counted in code points."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from noisette.query.pattern import found

__all__ = [
    "DATE", "FALSE", "INTEGER", "LONGEST", "READERS", "REAL", "TIMESTAMP", "TRUE", "as_text", "joined",
    "letter_by_letter", "part", "read_date", "read_integer", "read_real", "read_timestamp", "read_truth", "replaced",
    "right", "substring",
]  # fmt: skip

INTEGER = "^[-+]?[0-9]{1,15}$"
REAL = "^[-+]?[0-9]{1,15}(?:\\.[0-9]{1,15})?$"
DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIMESTAMP = DATE[:-1] + "(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?)?$"
"""The forms of texts that are read as numbers and moments (patterns of `pattern`)."""

TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
"""The texts that are read as truth values, in lower case."""

LONGEST = 1_000
"""What is joined or replaced is read, and given, up to this many characters: no text can fill the memory."""


def substring(text: str, start: int, length: int) -> str:
    """Some characters from a place on; the first place is 1.

    >>> substring("noisette", 4, 3)
    'set'
    """
    return text[start - 1 : start - 1 + length]


def right(text: str, length: int) -> str:
    """The last characters."""
    return text[max(len(text) - length, 0) :]


def joined(*texts: str) -> str:
    """One text after the other."""
    return "".join(text[:LONGEST] for text in texts)[:LONGEST]


def replaced(text: str, old: str, new: str) -> str:
    """A text with another one in place of each `old`, from left to right."""
    return text[:LONGEST].replace(old, new)[:LONGEST]


def part(text: str, mark: str, place: int) -> str:
    """What stands between two marks, the first part being 1; empty where there is none.

    >>> part("a-b", "-", 2), part("a-b", "-", 3)
    ('b', '')
    """
    return (text.split(mark, place) + [""] * place)[place - 1]


def as_text(value: Any) -> str:
    """A whole number, a truth value or a date as text.

    >>> as_text(True), as_text(-3), as_text(datetime.date(20, 1, 1))
    ('true', '-3', '0020-01-01')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime.date) else str(int(value))


def letter_by_letter(change: Callable[[str], str]) -> Callable[[str], str]:
    """Each letter by itself, as Unicode maps single letters to single letters; one without such a letter stays.

    >>> letter_by_letter(str.upper)("straße ŉ"), letter_by_letter(str.lower)("İΣ")
    ('STRAẞE ŉ', 'iσ')
    """
    return lambda text: "".join(new if len(new := change(letter)) == 1 else _single(letter) for letter in text)


def _single(letter: str) -> str:
    """The one letter for a letter whose other case has two in Python."""
    new = {"ß": "ẞ", "İ": "i"}.get(letter, letter.title())
    return new if len(new) == 1 else letter


def read_integer(text: str) -> int | None:
    """The whole number that a text says, or None.

    >>> read_integer(" -07 "), read_integer("7.0"), read_integer("")
    (-7, None, None)
    """
    return int(text) if found(text.strip(" "), INTEGER) else None


def read_real(text: str) -> float | None:
    """The number that a text says, or None."""
    return float(text) + 0.0 if found(text.strip(" "), REAL) else None


def read_date(text: str) -> datetime.date | None:
    """The date that a text says, year, month and day, or None."""
    try:
        return datetime.date.fromisoformat(text.strip(" ")) if found(text.strip(" "), DATE) else None
    except ValueError:
        return None


def read_timestamp(text: str) -> datetime.datetime | None:
    """The moment that a text says, a date with or without hours, minutes and seconds, or None.

    >>> read_timestamp("2020-01-31"), read_timestamp("2020-01-31T24:00:00")
    (datetime.datetime(2020, 1, 31, 0, 0), None)
    """
    plain = text.strip(" ")
    if not found(plain, TIMESTAMP):
        return None
    whole, _, fraction = plain.partition(".")
    try:
        return datetime.datetime.fromisoformat(whole).replace(microsecond=int(fraction.ljust(6, "0") or 0))
    except ValueError:
        return None


def read_truth(text: str) -> bool | None:
    """The truth value that a text says, or None.

    >>> read_truth(" Yes"), read_truth("0"), read_truth("maybe")
    (True, False, None)
    """
    word = letter_by_letter(str.lower)(text.strip(" "))
    return True if word in TRUE else False if word in FALSE else None


READERS: Mapping[str, Callable[[str], Any]] = {
    "integer": read_integer,
    "real": read_real,
    "boolean": read_truth,
    "date": read_date,
    "timestamp": read_timestamp,
}
"""What a text says as each type."""
