"""Rules for tables and columns: what their owner declares, read and checked place by place.

A place is written as TOML writes it, and every error names one."""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, get_args

from noisette.engines.csv_form import DELIMITERS, ENCODINGS, PLAIN, Form
from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.names import closest
from noisette.query.formats import fault
from noisette.query.kind import Type, Value, in_order
from noisette.query.periods import PERIODS
from noisette.query.recode import Recode
from noisette.query.schema import Limits, Link, RowsPerPeriod

__all__ = [
    "LARGEST_ROWS",
    "PLACEHOLDER",
    "ColumnRules",
    "TableRules",
    "column_rules",
    "flag",
    "inside",
    "only",
    "policy_error",
    "section",
    "table_rules",
    "toml_text",
]


_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


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
    text = str(name) if re.fullmatch(r"[A-Za-z0-9_-]+", str(name)) else toml_text(str(name))
    return f"{place}.{text}" if place else text


def toml_text(text: str) -> str:
    r"""A TOML string.

    >>> print(toml_text('a "b" \x07'))
    "a \"b\" \u0007"
    """
    control = {letter: f"\\u{letter:04x}" for letter in (*range(32), 127)}
    return f'"{text.translate({**control, **_ESCAPED})}"'


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


def flag(given: Any, place: str) -> bool:
    """A truth value."""
    if not isinstance(given, bool):
        raise policy_error(place, "must be true or false, without quotes.")
    return given


PLACEHOLDER = "…"
"""What stands in a template where a value is to be written; nothing is read while one is left."""


def _check_filled(given: Mapping[str, Any], place: str) -> None:
    """Refuse what a template leaves open: a placeholder alone, or among the values of a list."""
    for name, value in given.items():
        if PLACEHOLDER in (value if isinstance(value, list | tuple) else [value]):
            raise policy_error(
                inside(place, name), f'still holds "{PLACEHOLDER}": write what is true in its place, or take it out.'
            )


# What is declared


_LIMITS = ("rows", "groups", "rows_per_group")
_PER_PERIOD = ("most", "per", "of")
_FORM = ("encoding", "delimiter", "line_breaks")
_TABLE = ("unit", *_LIMITS, "most_rows", "public", "columns", "today", *_FORM)
_RECODING = ("trim", "fold", "map", "other")
_COLUMN = ("type", "format", "bounds", "grid", "keys", "nullable", "group", "rows_per_value", *_RECODING)
_PRIVATE, _EACH = "private", "each question"
_EXAMPLE = '{ most = 8, per = "year", of = "admitted" }'
_MOST_ROWS, LARGEST_ROWS, _MOST_TEXTS = 2**20, 2**40, 10_000


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
    group: bool = True
    recode: Recode | None = None
    rows_per_value: int | None = None
    format: str | None = None  # in which texts write dates


@dataclass(frozen=True)
class TableRules:
    """What is declared of a table; `unit` is a column, or the foreign key that leads to the table that names one.

    >>> table_rules({"unit": "patient_id", "rows": 10}, "tables.visits").limits.rows
    10
    """

    unit: str | Link | None = None
    limits: Limits = field(default_factory=Limits)
    public: bool = False
    columns: Mapping[str, ColumnRules] = field(default_factory=dict)
    private_rows: bool = False
    chosen_rows: int | None = None
    today: datetime.date | None = None  # what CURRENT_DATE means
    per_period: RowsPerPeriod | None = None
    form: Form = PLAIN  # how CSV files are written

    @property
    def limited(self) -> bool:
        """Whether a limit is declared, of any sort."""
        return self.limits != Limits() or self.private_rows or bool(self.chosen_rows) or self.per_period is not None


def table_rules(given: Any, place: str) -> TableRules:
    """Read the rules of a table, or say what is wrong with them and where."""
    only(section(given, place), _TABLE, place)
    _check_filled(given, place)
    private_rows, chosen_rows = given.get("rows") == _PRIVATE, _chosen_rows(given, place)
    per_period = _per_period(given, place)
    limited = [name for name in _LIMITS if name in given]
    if isinstance(given.get("rows"), str) and not (private_rows or chosen_rows):
        raise policy_error(inside(place, "rows"), f'must be a whole number, "{_PRIVATE}" or "{_EACH}", or {_EXAMPLE}.')
    numbers = {
        name: whole(given[name], f"{inside(place, name)} in the policy")
        for name in limited
        if not (name == "rows" and (private_rows or chosen_rows or per_period))
    }
    unit, public = given.get("unit"), flag(given.get("public", False), inside(place, "public"))
    if isinstance(unit, Mapping):
        unit = _link(unit, inside(place, "unit"))
    elif unit is not None and (not isinstance(unit, str) or not unit):
        raise policy_error(inside(place, "unit"), "must be the name of a column.")
    if public and (unit or limited):
        raise policy_error(place, f"is public, so it protects nobody: leave {'unit' if unit else limited[0]} out.")
    if limited and not unit:
        raise policy_error(inside(place, limited[0]), 'limits nobody: add unit = "patient_id", or whose rows they are.')
    if (private_rows or chosen_rows) and "rows_per_group" in numbers:
        raise policy_error(
            inside(place, "rows_per_group"),
            f'cannot stand beside rows = "{given["rows"]}": declare rows, or leave it out.',
        )
    columns = inside(place, "columns")
    listed = section(given.get("columns", {}), columns)
    rules = {name: column_rules(part, inside(columns, name)) for name, part in listed.items()}
    for name in (name for name, part in rules.items() if public and part.rows_per_value is not None):
        raise policy_error(place, f"is public, so it protects nobody: leave {name}.rows_per_value out.")
    today, form = _today(given.get("today"), place), _form(given, place)
    return TableRules(unit, Limits(**numbers), public, rules, private_rows, chosen_rows, today, per_period, form)


def _per_period(given: Mapping[str, Any], place: str) -> RowsPerPeriod | None:
    """Rows in each calendar period: { most = 8, per = "year", of = "admitted" }.

    >>> _per_period({"rows": {"most": 8, "per": "year", "of": "admitted"}}, "tables.visits")
    RowsPerPeriod(most=8, per='year', of='admitted')
    """
    rows, rules = inside(place, "rows"), given.get("rows")
    if not isinstance(rules, Mapping):
        return None
    only(section(rules, rows), _PER_PERIOD, rows)
    for name in _PER_PERIOD:
        if name not in rules:
            raise policy_error(rows, f"needs {name}: write {_EXAMPLE}.")
    for name in _LIMITS[1:]:
        if name in given:
            raise policy_error(inside(place, name), "cannot stand beside rows in each period: leave it out.")
    per, of = rules["per"], rules["of"]
    if per not in PERIODS:
        raise policy_error(inside(rows, "per"), f"must be one of {', '.join(PERIODS)}.")
    if not isinstance(of, str) or not of:
        raise policy_error(inside(rows, "of"), "must be the name of a column of dates.")
    return RowsPerPeriod(whole(rules["most"], f"{inside(rows, 'most')} in the policy"), str(per), of)


def _form(given: Mapping[str, Any], place: str) -> Form:
    """How the CSV files of a table are written."""
    encoding, delimiter = given.get("encoding", PLAIN.encoding), given.get("delimiter")
    name = encoding.lower().replace("_", "-") if isinstance(encoding, str) else ""
    if name not in ENCODINGS:
        raise policy_error(inside(place, "encoding"), f"must be one of {', '.join(map(toml_text, ENCODINGS))}.")
    if delimiter is not None and (not isinstance(delimiter, str) or delimiter not in DELIMITERS):
        raise policy_error(inside(place, "delimiter"), f"must be one of {', '.join(map(toml_text, DELIMITERS))}.")
    return Form(name, delimiter, flag(given.get("line_breaks", False), inside(place, "line_breaks")))


def _today(given: Any, place: str) -> datetime.date | None:
    if given is not None and (not isinstance(given, datetime.date) or isinstance(given, datetime.datetime)):
        raise policy_error(inside(place, "today"), "must be a date without quotes, such as 2026-01-31.")
    return given


def _link(given: Any, place: str) -> Link:
    """A foreign key: { through = "orders", on = { order_id = "id" } }."""
    only(section(given, place), ("through", "on"), place)
    table, on = given.get("through"), given.get("on")
    if not isinstance(table, str) or not table:
        raise policy_error(inside(place, "through"), 'must be the name of a table: through = "orders".')
    if not isinstance(on, Mapping) or not on or not all(isinstance(x, str) and x for pair in on.items() for x in pair):
        raise policy_error(inside(place, "on"), 'must say which columns are equal: on = { order_id = "id" }.')
    if len(set(on.values())) < len(on):
        raise policy_error(inside(place, "on"), "must not name a column of the far table twice: take one out.")
    return Link(table, tuple(on.items()))


def _chosen_rows(given: Mapping[str, Any], place: str) -> int | None:
    """The largest limit that a question may choose; None where questions choose none."""
    most = inside(place, "most_rows")
    if given.get("rows") != _EACH:
        if "most_rows" in given:
            raise policy_error(most, f'is for rows = "{_EACH}" alone: leave it out.')
        return None
    number = whole(given.get("most_rows", _MOST_ROWS), f"{most} in the policy", least=2)
    if number > LARGEST_ROWS:
        raise policy_error(most, "must be at most 2^40: it is the largest limit that may be chosen.")
    return number


def column_rules(given: Any, place: str) -> ColumnRules:
    """Read the rules of a column, or say what is wrong with them and where."""
    only(section(given, place), _COLUMN, place)
    _check_filled(given, place)
    bounds, keys, most = given.get("bounds"), given.get("keys"), given.get("rows_per_value")
    private_bounds, private_keys = (isinstance(part, str) and part == _PRIVATE for part in (bounds, keys))
    listed = None if keys is None or private_keys else _keys(keys, inside(place, "keys"))
    recode, listed = _recoding(given, listed, place, private=private_keys)
    return ColumnRules(
        _type(given.get("type"), inside(place, "type")),
        None if bounds is None or private_bounds else _bounds(bounds, inside(place, "bounds")),
        _grid(given.get("grid"), inside(place, "grid")),
        listed,
        flag(given.get("nullable", True), inside(place, "nullable")),
        private_bounds,
        private_keys,
        flag(given.get("group", True), inside(place, "group")),
        recode,
        None if most is None else whole(most, f"{inside(place, 'rows_per_value')} in the policy"),
        _format(given, place),
    )


def _format(given: Mapping[str, Any], place: str) -> str | None:
    """In which form the texts of a column write its dates."""
    format, here = given.get("format"), inside(place, "format")
    if format is None:
        return None
    if given.get("type") not in ("date", "timestamp"):
        raise policy_error(here, 'is for texts that are dates: say type = "date" or type = "timestamp" beside it.')
    wrong = fault(format, time=given["type"] == "timestamp") if isinstance(format, str) else "must be a text."
    if wrong is not None:
        raise policy_error(here, wrong)
    return str(format)


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


# Messy texts: trim, fold, map and other


def _recoding(
    given: Mapping[str, Any], keys: tuple[Value, ...] | None, place: str, *, private: bool
) -> tuple[Recode | None, tuple[Value, ...] | None]:
    """How a column is recoded, if it is, and the keys that it then has: the declared ones, those of map, and other.

    >>> _recoding({"fold": True, "other": "none"}, ("A", "B"), "ward", private=False)
    (Recode(trim=False, fold=True, names=(('A', ('a',)), ('B', ('b',))), other='none'), ('A', 'B', 'none'))
    """
    if not any(name in given for name in _RECODING):
        return None, keys
    trim, fold = (flag(given.get(name, False), inside(place, name)) for name in ("trim", "fold"))
    mapped, other = _map(given.get("map", {}), inside(place, "map")), given.get("other")
    if other is not None and not isinstance(other, str):
        raise policy_error(inside(place, "other"), 'must be a text, such as "other".')
    if private and (mapped or other is not None):
        raise policy_error(inside(place, "map" if mapped else "other"), 'cannot stand beside keys = "private".')
    if keys is not None and not all(isinstance(key, str) for key in keys):
        raise policy_error(place, "is recoded, so its keys must be texts.")
    named = dict.fromkeys((*(str(key) for key in keys or ()), *mapped))
    if other is not None and not named:
        raise policy_error(inside(place, "other"), "is for what is no key: declare keys as well.")
    how = Recode(trim, fold, other=other)
    names = {name: _plain_texts(how, (name, *mapped.get(name, ()))) for name in sorted(named) if name != other}
    _one_meaning(names, inside(place, "map" if mapped else "keys"))
    used = tuple((name, texts) for name, texts in names.items() if texts != (name,) or other is not None)
    values = in_order((*named, other))
    return replace(how, names=used), values if named else keys


def _map(given: Any, place: str) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for name, texts in section(given, place).items():
        listed = [texts] if isinstance(texts, str) else texts
        if not isinstance(listed, list | tuple) or not listed or not all(isinstance(text, str) for text in listed):
            raise policy_error(inside(place, name), 'must be a list of texts, such as ["ICU", "intensive care"].')
        if any("\ud800" <= letter <= "\udfff" for text in (name, *listed) for letter in text):
            raise policy_error(inside(place, name), "must be valid Unicode: one of its texts holds half a character.")
        found[name] = listed
    return found


def _plain_texts(how: Recode, texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(how.plain, texts)))


def _one_meaning(names: Mapping[str, tuple[str, ...]], place: str) -> None:
    listed = list(_texts(names))
    if len(listed) > _MOST_TEXTS:
        raise policy_error(place, f"may list at most {_MOST_TEXTS:,} texts.")
    if len(set(listed)) < len(listed):
        raise policy_error(place, "must not give one text two meanings, after trim and fold: take one of them out.")


def _texts(names: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    return (text for texts in names.values() for text in texts)
