"""What is known of a relation without looking at it: its columns, whose its rows are, and how many one unit can own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from noisette.query.expression import Expression
from noisette.query.kind import Kind
from noisette.query.periods import Periods
from noisette.query.schema import Limits, Link, RowsPerPeriod
from noisette.query.units import ROW, Unit, in_words

__all__ = ["ROW", "UNIT", "Moved", "Retained", "RetainedPerPeriod", "Shape"]

UNIT = "unit"
"""The name under which the unit of a row travels through every relation; no other column can have it (no dot)."""


@dataclass(frozen=True)
class Retained:
    """How many rows of one unit a join retains: of one side of it (by its private tables), or after they are joined.

    Where `by` names columns, of the rows with equal values in them, whosever they are.
    """

    tables: tuple[str, ...]
    rows: int
    joined: bool = False
    by: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class RetainedPerPeriod:
    """Of a table at most `limit` rows of one unit are retained, and none whose date is NULL or beyond the bounds."""

    table: str
    limit: RowsPerPeriod
    bounds: tuple[str, str]
    joined: ClassVar[bool] = False
    by: ClassVar[tuple[str, ...]] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The table, as `Retained` has its tables."""
        return (self.table,)


@dataclass(frozen=True)
class Moved:
    """What a unit can change of rows that belong to several units: it takes away `rows` at most, and as many come."""

    unit: str
    rows: int


@dataclass(frozen=True)
class Shape:
    """What is known of a relation without looking at it.

    `columns` by name · `unit`: None if the relation is public, ROW, or the name of the declared unit column ·
    `rows`: the most rows one unit can own, None if unlimited · `limits`: what the owner allows a question to use ·
    `retained`: where joins within it, or its tables, retain rows · `through`: foreign keys by which rows of its
    tables have a unit ·
    `moved`: what one unit can change if rows belong to several; `unit` is ROW then, as no row has one of its own ·
    `periods`: in which calendar periods the rows can lie, where their table limits those of a unit in each.
    """

    columns: Mapping[str, Kind]
    unit: Unit | None
    rows: int | None
    limits: Limits = field(default_factory=Limits)
    retained: tuple[Retained | RetainedPerPeriod, ...] = ()
    through: tuple[tuple[str, tuple[Link, ...]], ...] = ()
    moved: Moved | None = None
    periods: Periods | None = None
    kinds: dict[Expression, Kind] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What is known of expressions over its columns, as `sums.kind_in` finds it once."""

    @property
    def whose(self) -> str:
        """Who is protected, in a word."""
        return in_words(self.unit) if self.moved is None else self.moved.unit

    @property
    def public(self) -> bool:
        """Whether it protects nobody."""
        return self.unit is None
