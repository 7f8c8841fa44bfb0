"""Rules for tables and columns: what their owner declares, read and checked place by place.

A place is written as TOML writes it, and every error names one."""

import datetime
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, get_args

from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.query.kind import Type, Value, in_order
from noisette.query.schema import Limits

__all__ = [
    "ColumnRules",
    "TableRules",
    "closest",
    "column_rules",
    "flag",
    "inside",
    "only",
    "policy_error",
    "section",
    "table_rules",
]


def policy_error(place: str, what: str) -> InputError:
    """An error that names its place.

    >>> raise policy_error("budget", "must be a section.")
    Traceback (most recent call last):
    noisette.errors.InputError: budget in the policy must be a section.
    """
    return InputError(f"{place} in the policy {what}")


def inside(place: str, name: object) -> str:
    """A place within another, written as TOML writes it.

    >>> inside("tables", "visits"), inside("tables", "my visits")
    ('tables.visits', 'tables."my visits"')
    """
    text = str(name) if re.fullmatch(r"[A-Za-z0-9_-]+", str(name)) else f'"{name}"'
    return f"{place}.{text}" if place else text


def section(given: Any, place: str) -> Mapping[str, Any]:
    """A part of the policy that holds others by name."""
    if not isinstance(given, Mapping):
        raise policy_error(place, f"must be a section: write [{place}] and what belongs to it below.")
    for name in given:
        if not isinstance(name, str) or not name:
            raise policy_error(place, "may hold names only: write each as a text.")
    return given


def only(given: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Refuse a name that means nothing."""
    for name in given:
        if name not in known:
            raise policy_error(inside(place, name), f"is unknown: {closest(name, known)}")


def closest(name: str, known: Iterable[str]) -> str:
    """What may have been meant.

    >>> closest("bound", ["keys", "bounds"]), closest("x", ["keys", "bounds"])
    ('did you mean bounds?', 'there may be keys, bounds.')
    """
    names = list(known)
    folded = {each.casefold(): each for each in names}
    found = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean {folded[found[0]]}?" if found else f"there may be {', '.join(names)}."


def flag(given: Any, place: str) -> bool:
    """A truth value."""
    if not isinstance(given, bool):
        raise policy_error(place, "must be true or false, without quotes.")
    return given


# What is declared


_LIMITS = ("rows", "groups", "rows_per_group")
_TABLE = ("unit", *_LIMITS, "public", "columns")
_COLUMN = ("type", "bounds", "grid", "keys", "nullable")
_PRIVATE = "private"


@dataclass(frozen=True)
class ColumnRules:
    """What is declared of a column; None where nothing is. Bounds of dates are dates.

    >>> column_rules({"bounds": [0, 120]}, "age").bounds
    (Fraction(0, 1), Fraction(120, 1))
    """

    type: Type | None = None
    bounds: tuple[Value, Value] | None = None
    grid: Fraction | None = None
    keys: tuple[Value, ...] | None = None
    nullable: bool = True
    private_bounds: bool = False
    private_keys: bool = False


@dataclass(frozen=True)
class TableRules:
    """What is declared of a table.

    >>> table_rules({"unit": "patient_id", "rows": 10}, "tables.visits").limits.rows
    10
    """

    unit: str | None = None
    limits: Limits = field(default_factory=Limits)
    public: bool = False
    columns: Mapping[str, ColumnRules] = field(default_factory=dict)
    private_rows: bool = False


def table_rules(given: Any, place: str) -> TableRules:
    """Read the rules of a table, or say what is wrong with them and where."""
    only(section(given, place), _TABLE, place)
    private_rows = given.get("rows") == _PRIVATE
    limited = [name for name in _LIMITS if name in given]
    numbers = {
        name: whole(given[name], f"{inside(place, name)} in the policy")
        for name in limited
        if not (name == "rows" and private_rows)
    }
    unit, public = given.get("unit"), flag(given.get("public", False), inside(place, "public"))
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise policy_error(inside(place, "unit"), "must be the name of a column.")
    if public and (unit or limited):
        raise policy_error(place, f"is public, so it protects nobody: leave {'unit' if unit else limited[0]} out.")
    if limited and not unit:
        raise policy_error(inside(place, limited[0]), 'limits nobody: add unit = "patient_id", or whose rows they are.')
    if private_rows and "rows_per_group" in numbers:
        raise policy_error(
            inside(place, "rows_per_group"), 'cannot stand beside rows = "private": declare rows, or leave it out.'
        )
    columns = inside(place, "columns")
    listed = section(given.get("columns", {}), columns)
    rules = {name: column_rules(part, inside(columns, name)) for name, part in listed.items()}
    return TableRules(unit, Limits(**numbers), public, rules, private_rows)


def column_rules(given: Any, place: str) -> ColumnRules:
    """Read the rules of a column, or say what is wrong with them and where."""
    only(section(given, place), _COLUMN, place)
    bounds, keys = given.get("bounds"), given.get("keys")
    private_bounds, private_keys = (isinstance(part, str) and part == _PRIVATE for part in (bounds, keys))
    return ColumnRules(
        _type(given.get("type"), inside(place, "type")),
        None if bounds is None or private_bounds else _bounds(bounds, inside(place, "bounds")),
        _grid(given.get("grid"), inside(place, "grid")),
        None if keys is None or private_keys else _keys(keys, inside(place, "keys")),
        flag(given.get("nullable", True), inside(place, "nullable")),
        private_bounds,
        private_keys,
    )


def _type(given: Any, place: str) -> Type | None:
    types: dict[str, Type] = {name: name for name in get_args(Type)}
    if given is not None and (not isinstance(given, str) or given not in types):
        raise policy_error(place, f"must be one of {', '.join(types)}.")
    return None if given is None else types[given]


def _grid(given: Any, place: str) -> Fraction | None:
    if given is None:
        return None
    grid = fraction(given, f"{place} in the policy")
    if grid <= 0:
        raise policy_error(place, "must be above 0: it is the step between two values, such as 0.01.")
    return grid


def _bounds(given: Any, place: str) -> tuple[Value, Value]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise policy_error(place, 'must be two values, [low, high], or "private".')
    low, high = (_bound(value, place) for value in given)
    if type(low) is not type(high):
        raise policy_error(place, "must be two values of one sort: two numbers, two dates or two times.")
    if not low < high:  # type: ignore[operator]
        raise policy_error(place, "must be two different values, the lower one first.")
    return low, high


def _bound(value: Any, place: str) -> Value:
    if isinstance(value, datetime.date):
        return _local(value, place)
    return fraction(value, f"each of {place} in the policy")


def _keys(given: Any, place: str) -> tuple[Value, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise policy_error(place, 'must be a list of values, such as ["north", "south"], or "private".')
    if len({type(key) for key in given}) > 1:
        raise policy_error(place, "must be all of one sort: texts, whole numbers, dates or truth values.")
    if not isinstance(given[0], str | int | datetime.date):
        raise policy_error(place, "must be texts, whole numbers, dates or truth values.")
    for key in given:
        _fit_to_store(key, place)
    if len(set(given)) < len(given):
        raise policy_error(place, "must not repeat: take the second one out.")
    return in_order(given)


def _fit_to_store(key: Value, place: str) -> None:
    if isinstance(key, datetime.date):
        _local(key, place)
    if isinstance(key, str) and any("\ud800" <= letter <= "\udfff" for letter in key):
        raise policy_error(place, "must be valid Unicode: one of them holds half a character.")
    if isinstance(key, int) and abs(key) >= 2**63:
        raise policy_error(place, "must be whole numbers of at most 64 bits.")


def _local(value: datetime.date, place: str) -> datetime.date:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise policy_error(place, "must be times without a time zone, as the column stores them.")
    return value
