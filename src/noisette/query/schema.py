"""Tables as their owner describes them: columns, who is protected, and how much of one unit is used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from noisette.errors import InputError
from noisette.query.kind import Kind

__all__ = ["Column", "Limits", "Schema", "Table"]


@dataclass(frozen=True)
class Column:
    """A column and what is publicly known of its values."""

    name: str
    kind: Kind
    private_bounds: bool = False  # the owner lets analysts buy them
    private_keys: bool = False


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
class Table:
    """A table; public ones protect nobody.

    `unit` names the column that says whose row it is; without one each row is a unit by itself. `repeats` says for
    columns of a public table in how many of its rows one value stands, at most (0 if all are NULL): a join on the
    column makes at most that number of rows of one row. `private_rows`: the owner lets analysts buy `limits.rows`.
    `unit_type` is how the unit is stored, where that is known: only units that are stored alike can be compared.
    """

    name: str
    columns: tuple[Column, ...]
    unit: str | None = None
    limits: Limits = Limits()
    public: bool = False
    repeats: Mapping[str, int] = field(default_factory=dict, hash=False)
    private_rows: bool = False
    unit_type: str | None = None

    def column(self, name: str) -> Column:
        """The column of that name, or a sentence that lists the names there are."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"Table {self.name} has no column {name}: it has {', '.join(c.name for c in self.columns)}.")


Schema: TypeAlias = Mapping[str, Table]
