"""Types of columns, and parameters as they stand in a statement."""

import datetime
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow

from noisette.errors import InputError

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "filled",
    "type_of",
]

_DIGITS, _BEYOND = 40, 10**40  # as in a statement

STRING, BINARY, NUMBER, DATETIME, ROWID = "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID"

Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes
DateFromTicks, TimestampFromTicks = datetime.date.fromtimestamp, datetime.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 (the name is PEP 249's)
    """The local time of day of a moment."""
    return datetime.datetime.fromtimestamp(ticks).time()


def type_of(kind: pyarrow.DataType) -> str:
    """What a description says of a column.

    >>> type_of(pyarrow.int64()), type_of(pyarrow.date32()), type_of(pyarrow.string())
    ('NUMBER', 'DATETIME', 'STRING')
    """
    types = pyarrow.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind):
        return NUMBER
    return DATETIME if types.is_temporal(kind) else STRING


def filled(statement: str, parameters: Sequence[Any]) -> str:
    """A statement with a constant in the place of each `?`; one within quotes or a comment stays as it is.

    >>> filled("SELECT count(*) FROM t WHERE a = ? AND b <> '?'", ["O'Hara"])
    "SELECT count(*) FROM t WHERE a = 'O''Hara' AND b <> '?'"
    """
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise InputError("Give the parameters as a list, one for each ? of the statement.")
    places = _places(statement)
    if len(places) != len(parameters):
        raise InputError(f"The statement has {len(places)} ?, and {len(parameters)} parameters were given.")
    parts, begin = [], 0
    for place, value in zip(places, parameters, strict=True):
        parts += [statement[begin:place], _constant(value)]
        begin = place + 1
    return "".join([*parts, statement[begin:]])


def _places(statement: str) -> list[int]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = DuckDB().tokenize(statement)
    except SqlglotError:
        return []  # the reader of statements says what is wrong
    return [token.start for token in tokens if token.token_type is TokenType.PLACEHOLDER]


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case numbers.Integral() if abs(int(value)) < _BEYOND:
            return str(int(value))
        case Decimal() if value.is_finite() and abs(value.adjusted()) < _DIGITS:
            return f"{value:f}"
        case float() if abs(value) < _BEYOND:  # numpy's too, whose repr is no number
            return f"{Decimal(repr(float(value))):f}"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime() if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE '{value.isoformat()}'"
    raise InputError(
        f"A parameter is a number of at most {_DIGITS} digits, a text, a truth value, a date, a time without zone, or "
        "None."
    )
