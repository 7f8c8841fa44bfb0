"""Tables as their owner describes them: columns, who is protected, and how much of one unit is used."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from noisette.errors import InputError
from noisette.names import closest
from noisette.query.frequency import MinimumFrequency
from noisette.query.kind import Kind, Value
from noisette.query.units import in_words

__all__ = [
    "COLUMN_HEAD",
    "Column",
    "Limits",
    "Link",
    "RowsPerPeriod",
    "Schema",
    "Table",
    "Tuples",
    "all_grouped",
    "least_rows",
    "protected",
    "shown",
    "with_limits",
]

Tuples: TypeAlias = tuple[tuple[Value, ...], ...]
"""Combinations of values."""


@dataclass(frozen=True)
class Column:
    """A column and what is publicly known of its values."""

    name: str
    kind: Kind
    private_bounds: bool = False  # the owner lets analysts buy them
    private_keys: bool = False
    group: bool = True  # whether groups may be made of its values
    rows_per_value: int | None = None  # the most rows with one value of it that a join of two units' rows uses


COLUMN_HEAD = ["column", "type", "bounds", "keys", "NULL"]


def shown(column: Column) -> list[str]:
    """What is declared of a column, under `COLUMN_HEAD`; keys are counted, dates are dates.

    >>> shown(Column("ward", Kind("text", keys=("north", "south"))))
    ['ward', 'text', '–', '2', 'possible']
    """
    kind = column.kind
    bounds = "for sale" if column.private_bounds else " to ".join(kind.bounds or ["–"])
    keys = "for sale" if column.private_keys else "–" if kind.keys is None else f"{len(kind.keys):,}"
    null = "possible" if kind.nullable else "never"
    return [column.name, kind.type, bounds, keys if column.group else "not grouped", null]


@dataclass(frozen=True)
class Limits:
    """How much of one unit's data a question uses; None is no limit of that sort.

    `rows` of a unit in all · `groups` it appears in · `rows_per_group` in each of them.
    """

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} must be a whole number from 1 on, or left out for no limit.")


@dataclass(frozen=True)
class RowsPerPeriod:
    """The most rows of one unit that are used in each calendar period of a column of dates.

    >>> str(RowsPerPeriod(8, "year", "admitted"))
    '8 per year of admitted'
    """

    most: int
    per: str  # year, quarter, month, week or day
    of: str

    def __str__(self) -> str:
        return f"{self.most:,} per {self.per} of {self.of}"


@dataclass(frozen=True)
class Link:
    """A step along a foreign key: the far table, and pairs of a column here and the column there that it equals."""

    table: str
    on: tuple[tuple[str, str], ...]

    @property
    def here(self) -> tuple[str, ...]:
        """The columns that refer."""
        return tuple(a for a, _ in self.on)

    @property
    def there(self) -> tuple[str, ...]:
        """The columns that are referred to: no two rows of the far table have equal ones."""
        return tuple(b for _, b in self.on)


@dataclass(frozen=True)
class Table:
    """A table; public ones protect nobody.

    `unit` names the column that says whose row it is; without one each row is a unit by itself. `through` are the
    foreign keys that lead to the table with that column, where it is another one. `repeats` says for
    columns of a public table in how many of its rows one value stands, at most (0 if all are NULL): a join on the
    column makes at most that number of rows of one row. `private_rows`: the owner lets analysts buy `limits.rows`.
    `chosen_rows`: the largest limit among which each question chooses `limits.rows` by itself; None if it does not.
    `per_period`: a limit on rows in each calendar period, in place of `limits`.
    `unit_type` is how the unit is stored, where that is known: only units that are stored alike can be compared.
    `today` is what CURRENT_DATE means in a question, if the owner says so: no clock has a part in an answer.
    `frequency` is how many units must stand behind every group that is shown. `unusable` columns are stored in a way
    that no question can use; it says what the owner can do. `listing` reads a public table: it gives the values of
    expressions over a public part of a relation (`public_parts`), or None if they are too many.
    """

    name: str
    columns: tuple[Column, ...]
    unit: str | None = None
    limits: Limits = Limits()
    public: bool = False
    repeats: Mapping[str, int] = field(default_factory=dict, hash=False)
    private_rows: bool = False
    chosen_rows: int | None = None
    unit_type: str | None = None
    today: datetime.date | None = None
    through: tuple[Link, ...] = ()
    frequency: MinimumFrequency | None = None
    per_period: RowsPerPeriod | None = None
    unusable: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    listing: Callable[[Any, Any, Any], Tuples | None] | None = field(default=None, repr=False, compare=False)

    @property
    def owner(self) -> str:
        """The table whose column the unit is."""
        return self.through[-1].table if self.through else self.name

    @property
    def unit_column(self) -> str | None:
        """The column of this table that holds the unit, if one does.

        >>> Table("orders", (), unit="id", through=(Link("customer", (("customer_id", "id"),)),)).unit_column
        'customer_id'
        """
        name = self.unit
        for link in reversed(self.through):
            name = next((here for here, there in link.on if there == name), None)
        return name

    def column(self, name: str) -> Column:
        """The column of that name, or a sentence that lists the names there are."""
        for column in self.columns:
            if column.name == name:
                return column
        if name in self.unusable:
            raise InputError(f"Column {name} of table {self.name} cannot be asked for: {self.unusable[name]}.")
        known = closest(name, [c.name for c in self.columns], "it has")
        raise InputError(f"Table {self.name} has no column {name}: {known}")


Schema: TypeAlias = Mapping[str, Table]


def with_limits(schema: Schema, chosen: Mapping[str, Mapping[str, int]]) -> Schema:
    """The tables with limits that a question chose, by table and by the name of the limit."""
    known = {
        name: replace(schema[name], limits=replace(schema[name].limits, **given), chosen_rows=None)
        for name, given in chosen.items()
    }
    return {**schema, **known} if known else schema


def protected(table: Table) -> str:
    """Whose rows are protected together, and how many of them count.

    >>> protected(Table("visits", (), unit="patient_id", limits=Limits(rows=4)))
    'all rows of one patient_id are protected together (rows 4)'
    """
    if table.public:
        return "public, it protects nobody"
    if table.unit is None:
        return "each row is protected by itself; if one person can have several, name a unit"
    limits = ["rows for sale"] if table.private_rows else ["rows chosen by each question"] if table.chosen_rows else []
    limits += [f"{name} {number}" for name, number in vars(table.limits).items() if number is not None]
    limits += [] if table.per_period is None else [f"rows {table.per_period}"]
    through = " and ".join(link.table for link in table.through)
    rows = f"rows that lead through {through} to" if through else "rows of"
    return f"all {rows} one {in_words(table.unit)} are protected together ({', '.join(limits) or 'no limit yet'})"


def all_grouped(schema: Schema) -> Schema:
    """The tables as they are for what chooses a limit: the groups that it compares are not released.

    >>> from noisette.query.kind import Kind
    >>> all_grouped({"v": Table("v", (Column("dx", Kind("text"), group=False),))})["v"].column("dx").group
    True
    """

    def free(table: Table) -> Table:
        return replace(table, columns=tuple(replace(column, group=True) for column in table.columns))

    ruled = {name for name, table in schema.items() if not all(column.group for column in table.columns)}
    return {name: free(table) if name in ruled else table for name, table in schema.items()} if ruled else schema


def least_rows(schema: Schema) -> Schema:
    """The tables as they are while a question is read: limits that it is still to choose stand at 1."""
    return with_limits(schema, {name: {"rows": 1} for name, table in schema.items() if table.chosen_rows is not None})
