"""Tables as analysts see them: the owner's rules joined with how the tables are stored. No row is read for it."""

import datetime
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from noisette.engines.contract import CLEAN, INTEGERS, TEXTS, base_type
from noisette.engines.csv import first_line, no_column
from noisette.engines.csv_form import PLAIN, Form
from noisette.engines.files import files_of, is_csv
from noisette.errors import InputError
from noisette.names import closest
from noisette.policy.rules import LARGEST_ROWS, ColumnRules, TableRules, inside, policy_error
from noisette.query.kind import LARGEST, Kind, Type, Value
from noisette.query.operations import declared as settled
from noisette.query.periods import MOST_PERIODS, number_of_periods
from noisette.query.schema import Column, Link, RowsPerPeriod, Table

__all__ = [
    "check_column",
    "check_csv",
    "check_formats",
    "cure",
    "declared_only",
    "described",
    "equality_type",
    "header",
    "no_unit",
    "purchased",
    "type_of",
]

_EPOCH = datetime.datetime(1970, 1, 1)
_TYPES: dict[str, Type] = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"], "integer"),
    **dict.fromkeys(["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"], "integer"),
    **dict.fromkeys(["FLOAT", "DOUBLE", "DECIMAL"], "real"),
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID"], "text"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"], "timestamp"),
    "BOOLEAN": "boolean",
    "DATE": "date",
}

_CURES = {
    "TIMESTAMP_MILLIS": "store it in microseconds, since some milliseconds cannot be read",
    "DECIMAL_BYTE_ARRAY": "store it as a number, since some bytes cannot be read as one",
    "CHARACTER": "store it as text, since spaces at the end of char(n) are there and are not",
    "CITEXT": "store it as text, lower case if that is meant",
    "TIMESTAMP WITH TIME ZONE": "store it as a timestamp of one time zone",
    "GENERATED": "store its values in a column of their own, since it is computed as it is read",
}
_NESTED = {"STRUCT": "store its fields as columns of their own", "MAP": "store each pair in a row of its own"}
_OTHER = "store it as text, a number or a date"


def type_of(stored: str) -> Type | None:
    """The type of a stored column; None for what cannot be asked, such as lists and blobs.

    >>> type_of("DECIMAL(10,2)"), type_of("DECIMAL(10,2)[]"), type_of("BLOB")
    ('real', None, None)
    """
    return None if stored.endswith("]") else _TYPES.get(base_type(stored))


def cure(stored: str) -> str:
    """What to do about a stored column that no question can use.

    >>> cure("INTEGER[]"), cure("TIMESTAMP WITH TIME ZONE")
    ('store each value of the list in a row of its own', 'store it as a timestamp of one time zone')
    """
    kept = stored.partition("(")[0].strip()
    if stored.endswith("]"):
        return "store each value of the list in a row of its own"
    return _CURES.get(kept) or _NESTED.get(kept) or _OTHER


def described(name: str, rules: TableRules, stored: Mapping[str, str], *, texts: bool = False) -> Table:
    """A table as analysts see it; a unit through a foreign key is followed later (`foreign_keys`).

    `texts` says that its file holds texts, whatever they are read as.
    """
    place = inside("tables", name)
    for column in rules.columns:
        check_column(column, stored, inside(inside(place, "columns"), column))
    own = rules.unit if isinstance(rules.unit, str) else None
    if own is not None:
        check_column(own, stored, inside(place, "unit"))
    columns = [_column(c, rules.columns.get(c), kept, inside(place, "columns"), texts) for c, kept in stored.items()]
    known = tuple(c for c in columns if c is not None)
    if rules.per_period is not None:
        _check_period(rules.per_period, known, stored, inside(place, "rows"))
    return Table(
        name,
        known,
        own,
        rules.limits,
        rules.public,
        private_rows=rules.private_rows,
        chosen_rows=rules.chosen_rows,
        unit_type=None if own is None else equality_type(stored[own]),
        today=rules.today,
        per_period=rules.per_period,
        unusable={column: cure(kept) for column, kept in stored.items() if type_of(kept) is None},
    )


def _check_period(limit: RowsPerPeriod, columns: tuple[Column, ...], stored: Mapping[str, str], place: str) -> None:
    """Refuse a limit per period of what is no date with declared bounds, or of more periods and rows than count."""
    check_column(limit.of, stored, inside(place, "of"))
    [kind] = [column.kind for column in columns if column.name == limit.of]
    if kind.type not in ("date", "timestamp"):
        raise policy_error(inside(place, "of"), f"must name a column of dates, and {limit.of} holds {kind.type}.")
    if not kind.bounded:
        raise policy_error(
            inside(place, "of"),
            f"names {limit.of}, which has no declared bounds: write bounds = [2020-01-01, 2029-12-31] for it.",
        )
    if (number := number_of_periods(kind, limit.per)) is None:
        raise policy_error(
            inside(place, "per"), f"makes more than {MOST_PERIODS:,} periods between the bounds: write a longer one."
        )
    if limit.most * number > LARGEST_ROWS:
        raise policy_error(
            inside(place, "most"), f"allows more than 2^40 rows of one unit in {number:,} periods: write fewer."
        )


def equality_type(stored: str) -> str:
    """How a unit or a key is stored, as far as it matters to equality: integers of any width are equal as they are.

    >>> equality_type("INTEGER") == equality_type("BIGINT"), equality_type("ENUM('a')"), equality_type("DECIMAL(10,2)")
    (True, 'VARCHAR', 'DECIMAL(10,2)')
    """
    base = base_type(stored)
    return "INTEGER" if base in INTEGERS else "VARCHAR" if base == "ENUM" else stored.upper()


def check_column(column: str, stored: Mapping[str, str], place: str) -> None:
    """Refuse a column that the data does not have, or that no question can use."""
    if column not in stored:
        raise policy_error(place, f"names a column that the data does not have: {closest(column, stored)}")
    if type_of(stored[column]) is None:
        kept = stored[column].partition("(")[0].strip()
        raise policy_error(
            place, f"names a column stored as {kept}, which no question can use: {cure(stored[column])}."
        )


def _column(name: str, given: ColumnRules | None, stored: str, columns: str, texts: bool) -> Column | None:
    rules, found, place = given or ColumnRules(), type_of(stored), inside(columns, name)
    if found is None:
        return None
    declared = rules.type or found
    numbers, text = {declared, found} <= {"integer", "real"}, base_type(stored) in TEXTS
    if declared != found and not numbers and not text:
        raise policy_error(inside(place, "type"), f"says {declared}, but the column is stored as {found}.")
    if rules.recode is not None and declared != "text":
        raise policy_error(place, f"holds {declared}, and trim, fold, map and other are for texts: leave them out.")
    kind = replace(_kind(declared, rules, place), text=declared != "text" and (texts or text))
    private = (rules.private_bounds, rules.private_keys)
    return Column(name, kind, *private, rules.group, rules.rows_per_value)


def _kind(declared: Type, rules: ColumnRules, place: str) -> Kind:
    grid = _grid(declared, rules.grid, inside(place, "grid"))
    kind = Kind(declared, nullable=rules.nullable, grid=grid, recode=rules.recode, format=rules.format)
    return _limited(kind, rules, place)


def _limited(kind: Kind, rules: ColumnRules, place: str) -> Kind:
    """A kind with the bounds and keys that rules name."""
    if rules.bounds is not None:
        low, high = (_exact(kind.type, bound, inside(place, "bounds")) for bound in rules.bounds)
        kind = replace(kind, low=low, high=high)
    if rules.keys is not None:
        kind = replace(kind, keys=_fitting(kind.type, rules.keys, inside(place, "keys")))
    _fits(kind, place)
    return kind


def purchased(table: Table, rules: TableRules) -> Table:
    """A table with bounds, keys or a limit on rows that were bought, where its owner lets them be bought."""
    if rules.limits.rows is not None and table.private_rows:
        table = replace(table, limits=replace(table.limits, rows=rules.limits.rows), private_rows=False)
    place = inside(inside("tables", table.name), "columns")
    columns = [_purchased(column, rules.columns.get(column.name), place) for column in table.columns]
    return replace(table, columns=tuple(columns))


def _purchased(column: Column, rules: ColumnRules | None, place: str) -> Column:
    if rules is None:
        return column
    bounds = rules.bounds if column.private_bounds else None
    keys = rules.keys if column.private_keys else None
    kind = _limited(column.kind, ColumnRules(bounds=bounds, keys=keys), inside(place, column.name))
    private_bounds, private_keys = column.private_bounds and bounds is None, column.private_keys and keys is None
    return replace(column, kind=kind, private_bounds=private_bounds, private_keys=private_keys)


def _grid(declared: Type, grid: Fraction | None, place: str) -> Fraction | None:
    if grid is not None and declared not in ("integer", "real"):
        raise policy_error(place, "is for numbers only: leave it out.")
    if declared != "integer":
        return grid
    if grid is not None and grid.denominator != 1:
        raise policy_error(place, "must be a whole number, since the column holds integers.")
    return grid or Fraction(1)


def _fits(kind: Kind, place: str) -> None:
    """Refuse what could not be kept: numbers too large for their grid, keys beyond the bounds."""
    if kind.bounded and (kind.magnitude or 0) / (kind.grid or 1) > LARGEST:
        raise policy_error(
            inside(place, "bounds"), "must stay within 2^52 steps of its grid: narrow the one or widen the other."
        )
    try:
        settled(kind)
    except InputError as fault:
        raise policy_error(place, f"cannot be kept: {str(fault)[:1].lower()}{str(fault)[1:]}") from None
    numbers = [Fraction(key) for key in kind.keys or () if kind.number and isinstance(key, int)]
    if kind.low is not None and kind.high is not None and any(not kind.low <= key <= kind.high for key in numbers):
        raise policy_error(inside(place, "keys"), "must lie within the bounds: values beyond them are in no group.")


def _exact(declared: Type, bound: Value, place: str) -> Fraction:
    """A bound as a number: itself, or days or microseconds since 1970."""
    match declared, bound:
        case "integer", Fraction(denominator=1):
            return bound
        case "integer", Fraction():
            raise policy_error(place, "must be whole numbers, since the column holds integers.")
        case "real", Fraction():
            return bound
        case "timestamp", datetime.datetime():
            return Fraction((bound - _EPOCH) // datetime.timedelta(microseconds=1))
        case "date", datetime.datetime():
            raise policy_error(place, "must be dates without a time, since the column holds dates.")
        case "timestamp" | "date", datetime.date():
            days = (bound - _EPOCH.date()).days
            return Fraction(days if declared == "date" else days * 86_400_000_000)
        case (("text" | "boolean"), _):
            raise policy_error(place, f"are for numbers and dates, but the column holds {declared}: leave them out.")
        case _:
            raise policy_error(place, f"must be of the column's type, {declared}.")


def _fitting(declared: Type, keys: tuple[Value, ...], place: str) -> tuple[Value, ...]:
    sorts: dict[Type, type] = {
        "integer": int,
        "real": int,
        "text": str,
        "boolean": bool,
        "date": datetime.date,
        "timestamp": datetime.datetime,
    }
    if not all(type(key) is sorts[declared] for key in keys):
        raise policy_error(place, f"must be of the column's type, {declared}.")
    return keys


def declared_only(tables: Mapping[str, TableRules]) -> dict[str, Table]:
    """The tables with the types that are declared alone: what is needed to read text, such as CSV."""
    typed = {name: _typed(rules) for name, rules in tables.items()}
    return {
        name: described(name, rules, {c: CLEAN[part.type] for c, part in rules.columns.items() if part.type})
        for name, rules in typed.items()
        if rules.columns
    }


def _typed(rules: TableRules) -> TableRules:
    columns = {name: part for name, part in rules.columns.items() if part.type}
    per_period = rules.per_period if rules.per_period is not None and rules.per_period.of in columns else None
    return replace(rules, columns=columns, unit=rules.unit if rules.unit in columns else None, per_period=per_period)


# CSV files hold text alone, so their types are declared, never guessed from the rows


def check_csv(tables: Any, rules: Mapping[str, TableRules], unit: str | None) -> None:
    """Refuse CSV files without types, with the lines to write, and what is said of CSV files where there are none."""
    sources = tables if isinstance(tables, Mapping) else {}
    for name, source in sources.items():
        if is_csv(source):
            _check(name, source, rules.get(name, TableRules()), unit)
    for name, table in rules.items():
        told = [what for what, value in vars(table.form).items() if value != getattr(PLAIN, what)]
        if told and not (name in sources and is_csv(sources[name])):
            raise policy_error(inside(inside("tables", name), told[0]), "is for CSV files alone: leave it out.")


def no_unit(table: str) -> str:
    """What to do about a table that has not the unit which all tables are said to have."""
    here = inside("tables", table)
    return f"name its unit below [{here}] in a policy, or, if it protects nobody, public = true (--public {table})."


def check_formats(name: str, rules: TableRules, stored: Mapping[str, str]) -> None:
    """Refuse formats of columns that are not stored as text."""
    place = inside(inside("tables", name), "columns")
    for column, part in rules.columns.items():
        if part.format is not None and column in stored and base_type(stored[column]) not in TEXTS:
            at = inside(inside(place, column), "format")
            raise policy_error(at, f"is for texts, but the column is stored as {stored[column]}: leave it out.")


def _check(name: str, source: Any, rules: TableRules, unit: str | None) -> None:
    place = inside(inside("tables", name), "columns")
    if not rules.columns:
        raise InputError(
            "A CSV file does not say what its columns are: write into the policy\n\n"
            f"{_lines(place, header(source, name, rules.form))}"
        )
    for column, declared in rules.columns.items():
        if declared.type is None:
            raise policy_error(
                inside(place, column), 'needs a type, since a CSV file does not say it: type = "integer".'
            )
    whose = rules.unit or (None if rules.public else unit)
    for column in whose.here if isinstance(whose, Link) else [] if whose is None else [whose]:
        known = header(source, name, rules.form) if column not in rules.columns else [column]
        if column not in known:
            raise no_column(name, column, known, *([no_unit(name)] if rules.unit is None else []))
        if column not in rules.columns:
            raise policy_error(
                inside(place, column), 'is missing: the unit of a CSV file needs a type, such as type = "text".'
            )


def _lines(place: str, columns: list[str]) -> str:
    lines = [f'{inside("", column)} = {{ type = "text" }}' for column in columns]
    kinds = "# or integer, real, boolean, date, timestamp; what is not listed cannot be asked for"
    return "\n".join([f"[{place}]  {kinds}", *lines])


def header(source: Any, name: str, form: Form = PLAIN) -> list[str]:
    """The names in the first line of a CSV file; no row is read."""
    return first_line(files_of(source)[0], name, form)
