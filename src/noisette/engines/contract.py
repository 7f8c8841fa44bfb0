"""What an engine is: a `Source` answers with exact numbers; a `Dialect` is what one SQL engine writes differently.

Everything else is shared. A plan (`query.plan`) says what is asked; `bounding` chooses which rows of a unit are
retained; `sql` writes a plan as SQL for any dialect. Read `memory` first: it is the specification, in plain Python, and
`tests/contracts/test_sources.py` compares every source with it. `duckdb` is the engine for files and frames.

A source keeps four promises. The numbers are whole and exact: no order of rows, number of threads or engine changes
one. No value of any row makes it fail. No error or log quotes data: the engine's own words stay inside. What is
retained of one unit depends on the secret and on that unit's rows alone.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

from noisette.exact.random import SYSTEM, Random
from noisette.query.kind import Type
from noisette.query.measure import Exact, Request
from noisette.query.plan import Relation
from noisette.query.schema import Schema, Table

if TYPE_CHECKING:
    import pyarrow
    from sqlglot import exp

__all__ = ["CLEAN", "FLOATS", "INTEGERS", "STORED", "TEXTS", "CellDraw", "Dialect", "Draw", "Source", "base_type"]

T = TypeVar("T")

Draw: TypeAlias = Callable[[Exact, Random], T]
"""Makes noised numbers of exact ones, with coins from the given generator."""


@runtime_checkable
class CellDraw(Protocol[T]):
    """A draw that treats every cell by itself, so that an engine may apply it to some cells here and others there.

    The plan alone says so: a draw that compares cells (a ranking, a projection onto consistent numbers) is a plain
    `Draw`, and an engine brings all of its cells together first. See `query.draw.TaskDraw`.
    """

    def __call__(self, exact: Exact, rng: Random = SYSTEM) -> T:
        """Draw from some cells: keys that are not released leave no row, and of declared cells each keeps its place."""
        ...

    def table(self, drawn: T) -> "pyarrow.Table":
        """What was drawn, a row for each cell: first its keys, if they were unknown, then the numbers."""
        ...

    def read(self, table: "pyarrow.Table") -> T:
        """What was drawn, from the rows of all these tables: those of declared cells in their order."""
        ...


Write: TypeAlias = "Callable[[exp.Expr], exp.Expr] | None"
"""How an engine writes one node of a query; None where it reads the node as it is."""


class Source(Protocol):
    """Tables somewhere, and an engine that computes over them; a subclass inherits `release`."""

    @property
    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, sorted."""

    @abstractmethod
    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as (`STORED`), from metadata alone."""

    def place(self, table: str) -> str | None:
        """Where a table is, in words that no other table has; None where files say it, or it is in memory."""
        return None

    def state(self) -> str | None:
        """In which state the data of all tables is: equal where nothing changed; None where files say it, or nobody."""
        return None

    def check_units(self, schema: Schema) -> None:
        """Raise InputError where two units, or two keys that lead to them, could be read as one; no row is read."""
        return

    @abstractmethod
    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, the most rows that share one clean value; 1 where values are unique."""

    @abstractmethod
    def unique(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether no two rows have equal values in the columns, as they are stored and when clean; NULL equals none."""

    @abstractmethod
    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures of each group; `secret` keys the choice of the rows that are retained of each unit."""

    @abstractmethod
    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> "pyarrow.Table":
        """Columns of a relation under new names, and `unit`, a number for each unit unless each row is one."""

    def release(self, request: Request, draw: Draw[T], schema: Schema, secret: bytes, rng: Random = SYSTEM) -> T:
        """Apply a draw where the cells are, and return the committed answer.

        By default the cells come here first. An engine that may run a task twice draws on its executors instead, with
        coins bound to the secret and to the cell's keys and values, and commits once before anybody reads the answer.
        """
        return draw(self.aggregate(request, schema, secret), rng)


@dataclass(frozen=True)
class Dialect:
    """What one SQL engine writes differently from the queries that `sql` makes. Nothing it writes may fail on a value.

    `name`: the writer of sqlglot for types, quotes and functions · `try_cast`: NULL where a value does not fit ·
    `hash`: 64 bits, of the values alone · `row`: one value, ordered by its parts, NULL last · `is_nan` of a double ·
    `is_finite` of a date or timestamp · `round` of a double, halves away from 0 · `least` and `greatest`: NULL is
    skipped, NaN is above all numbers.
    """

    name: str
    try_cast: Write = None
    hash: Write = None
    row: Write = None
    is_nan: Write = None
    is_finite: Write = None
    round: Write = None
    least: Write = None
    greatest: Write = None


# Stored types: the names that every source uses for how a column is stored, and which of them a plan's type may have.
# A source whose engine has other names says these instead: what PostgreSQL calls int4 is an INTEGER.

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
"""Types whose values all fit 64 bits with a sign."""

WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL")
FLOATS = ("FLOAT", "DOUBLE")
MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
TEXTS = ("VARCHAR", "ENUM")
"""Types whose values are texts, which may be read as any other type."""

STORED: dict[Type, tuple[str, ...]] = {
    "integer": INTEGERS + WIDE + FLOATS + TEXTS,
    "real": INTEGERS + WIDE + FLOATS + TEXTS,
    "text": (*TEXTS, "UUID"),
    "boolean": ("BOOLEAN", *TEXTS),
    "date": MOMENTS + TEXTS,
    "timestamp": MOMENTS + TEXTS,
}
"""How a column that is declared as a type may be stored; an engine could fail to read anything else."""

CLEAN: dict[Type, str] = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""The type of clean values."""


def base_type(stored: str) -> str:
    """The name of a stored type without its parameters.

    >>> base_type("DECIMAL(10,2)")
    'DECIMAL'
    """
    return stored.upper().partition("(")[0].strip()
