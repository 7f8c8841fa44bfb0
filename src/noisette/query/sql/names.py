"""What the names in a query mean, with or without the table before them, and constants as they are written."""

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from noisette.errors import InputError
from noisette.names import closest
from noisette.query.expression import Expression, Literal
from noisette.query.kind import Kind
from noisette.query.operations import kind_of
from noisette.query.sql.refusals import shown

__all__ = ["Reader", "Scope", "alike", "date", "find", "matches", "number", "timestamp", "written"]

Reader: TypeAlias = Callable[[exp.Expr], Expression | None]


@dataclass(frozen=True)
class Scope:
    """What the names in an expression mean.

    `columns` by their full names, `table.column` · `hidden` ones need the table before them (the second key of USING) ·
    `units` hold the unit · `special` reads some nodes in another way, where they stand for a column already computed ·
    `today` is what CURRENT_DATE means, if the owner of the tables says so · `unusable` columns cannot be asked for.
    """

    columns: Mapping[str, Kind]
    hidden: frozenset[str] = frozenset()
    units: tuple[str, ...] = ()
    special: Reader | None = None
    today: datetime.date | None = None
    unusable: Mapping[str, str] = field(default_factory=dict, compare=False)


def written(full: str) -> exp.Column:
    """A column as it is written, by its full name."""
    table, _, name = full.partition(".")
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def find(column: exp.Column, scope: Scope) -> str:
    """The full name of a column; letter case matters only where the name is quoted or needed to tell two apart."""
    found = matches(column, scope)
    if len(found) == 1:
        return found[0]
    name = shown(column.name)
    if found:
        tables = " or ".join(f"{shown(full.partition('.')[0])}.{name}" for full in found[:3])
        raise InputError(f"{name} is in more than one table: write {tables}.")
    if column.name in scope.unusable:
        raise InputError(f"Column {name} cannot be asked for: {scope.unusable[column.name]}.")
    if column.table and any(full.partition(".")[2] == column.name for full in scope.columns):
        raise InputError(f"There is no column {shown(column.table)}.{name} here: write {name} alone.")
    raise InputError(f"There is no column {name} here: {closest(name, _visible(scope), 'use one of')}")


def matches(column: exp.Column, scope: Scope) -> list[str]:
    """The full names that a column can mean."""
    identifier, table = column.this, column.args.get("table")
    if not isinstance(identifier, exp.Identifier):
        raise InputError("* stands for no value: name a column, or write COUNT(*).")
    candidates = [full for full in scope.columns if full not in scope.hidden or table]
    if table:
        candidates = _named(table, candidates, 0)
    return _named(identifier, candidates, 2)


def _named(identifier: exp.Identifier, candidates: list[str], part: int) -> list[str]:
    exact = [full for full in candidates if full.partition(".")[part] == identifier.name]
    if exact or identifier.args.get("quoted"):
        return exact
    return [full for full in candidates if full.partition(".")[part].casefold() == identifier.name.casefold()]


def _visible(scope: Scope) -> list[str]:
    return [shown(full.partition(".")[2]) for full in scope.columns if full not in scope.hidden]


# Constants as they are written: exact numbers, dates and timestamps, read here so that no cast reaches the data


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
