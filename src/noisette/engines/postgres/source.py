"""PostgreSQL as an engine: the server reads one snapshot, and this process computes.

The columns that a question reads come over in binary, in one read-only transaction of one snapshot; DuckDB computes
with them, so that all numbers are those of files with the same rows, to the last bit. What it costs is the transfer and
the memory of these columns; they are kept for the next question, as long as the server counts no change. Where a large
table has few different rows of these columns, by the server's own statistics, the server counts equal ones, and they
are repeated here: what is computed with is the same.

Where each row is a unit and there are few groups, the server adds up (`sql.totals`): CASE, comparisons and sums of
stored columns, which cannot fail. No other expression of a question runs there, so that none can fail there, be logged
there, or be compared by a collation.
"""

import json
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow

from noisette.engines.contract import Source
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.files import is_postgres
from noisette.engines.needed import identifying_columns, needed_columns, needed_of_request
from noisette.engines.postgres.catalogue import (
    CHANGES,
    COLUMNS,
    DATABASE,
    PLACE,
    SIZES,
    TABLES,
    StoredColumn,
    adding_up,
    columns_of,
    digit,
    few_rows,
    reading,
)
from noisette.engines.postgres.server import Run, Server
from noisette.engines.sql.totals import Totals, totals_of
from noisette.errors import InputError, UnfinishedError
from noisette.query.beyond import within_bounds
from noisette.query.measure import Exact, Request
from noisette.query.plan import Relation
from noisette.query.schema import Schema, Table

__all__ = ["Postgres"]

_OLDEST = 140_000
_SNAPSHOT = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL search_path = pg_catalog",  # nobody's function is called by a name of the server's own
    "SET LOCAL row_security = off",  # a table that would hide rows is an error, not an answer about fewer
)
_STORED = ("r", "p", "m")
_MOST_ADDED = 7  # groups with totals that are kept beside the newest

T = TypeVar("T")
Needed: TypeAlias = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class _Held:
    """Columns that were read, in an engine that computes with them; `changes` is None if they must be read again."""

    changes: Any
    columns: Mapping[str, frozenset[str]]
    engine: DuckDB


class Postgres(Source):
    """Tables of a database by its URL: all of the first schema on the search path, or those that a mapping names.

    A mapping gives a pair (URL, table or schema.table) for each name. What a table holds is read anew where the server
    counts a change. The account needs the right to SELECT, and no other.
    """

    def __init__(self, tables: Mapping[str, tuple[str, str]] | str, *, most_bytes: int = 2**31) -> None:
        self._url, named = _addressed(tables)
        self._lock, self._server = threading.RLock(), Server()
        _check_database(self._asked(DATABASE)[0])
        self._place = self._asked(PLACE)[0]
        self._tables = _found(self._asked(TABLES), named)
        columns = self._asked(COLUMNS)
        self._columns = {
            name: _distinct(name, columns_of(row for row in columns if row["oid"] == table["oid"]))
            for name, table in self._tables.items()
        }
        self._most_bytes = most_bytes
        self._held: _Held | None = None
        self._added: dict[Hashable, tuple[Any, DuckDB]] = {}

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, sorted."""
        return tuple(sorted(self._tables))

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as, from the catalogue alone."""
        if table not in self._columns:
            raise InputError(f"There is no data for table {table}: there is some for {', '.join(self.tables)}.")
        return {name: one.stored for name, one in self._columns[table].items()}

    def place(self, table: str) -> str:
        """Where a table is, whatever the server is called: the cluster, the database, the schema, the table."""
        about = self._tables[table]
        return f"postgresql:{self._place['system']}/{self._place['database']}/{about['schema']}.{about['name']}"

    def state(self) -> str | None:
        """What the server has counted of changes to all tables; None where it does not count."""
        counted = self._server(self._url, self._changes)
        return None if counted is None else json.dumps({**self._place, "tables": counted})

    def check_units(self, schema: Schema) -> None:
        """Raise InputError where two units, or two keys that lead to them, could be read as one."""
        for table in schema.values():
            for name, column in [] if table.public else identifying_columns(table):
                if not self._columns[name][column].exact:
                    raise InputError(
                        f"{column} of {name} is stored in a type that cannot say whose a row is: store it as text, "
                        "integer, date or numeric with a declared size."
                    )

    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, the most rows that share one clean value."""
        with self._engine({table.name: frozenset(column.name for column in table.columns)}) as engine:
            return engine.repeats(table)

    def unique(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether no two rows have equal values in the columns, as they are stored and when they are clean."""
        with self._engine({table.name: frozenset(columns)}) as engine:
            return engine.unique(table, columns)

    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures of each group."""
        request = within_bounds(request, schema)
        needed = needed_of_request(request, schema)
        there = {table: {name: one.there for name, one in self._columns[table].items()} for table in needed}
        totals = totals_of(request, schema, there)
        if totals is not None and not totals.counted and (engine := self._groups(totals, needed)) is not None:
            return totals.exact(engine.aggregate(totals.request, totals.schema, secret))
        with self._engine(needed) as engine:
            return engine.aggregate(request, schema, secret)

    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> pyarrow.Table:
        """Columns of a relation under new names, and `unit`."""
        with self._engine(needed_columns(relation, columns, schema)) as engine:
            return engine.rows(relation, columns, schema, secret)

    def holding(self, columns: Needed) -> AbstractContextManager[DuckDB]:
        """An engine on this machine that holds some columns of tables, as one snapshot has them."""
        return self._engine(columns)

    # What is read

    def _asked(self, text: str) -> list[dict[str, Any]]:
        """What the catalogue says, when the data is opened."""
        try:
            return self._server(self._url, lambda run: run(text))
        except UnfinishedError:
            pass
        raise InputError("The PostgreSQL server cannot be reached: check its address, the account and the password.")

    @contextmanager
    def _engine(self, needed: Needed) -> Iterator[DuckDB]:
        """An engine that holds the columns which are needed, as one snapshot has them."""
        with self._lock:
            self._held = self._snapshot(lambda run, changes: self._columns_of(run, changes, needed))
            yield self._held.engine

    def _groups(self, totals: Totals, needed: Needed) -> DuckDB | None:
        """An engine that holds groups of rows with their totals; None where the rows are here, or groups are many."""
        with self._lock:
            return self._snapshot(lambda run, changes: self._totals_of(run, changes, totals, needed))

    def _snapshot(self, read: Callable[[Run, Any], T]) -> T:
        """What is read in one snapshot, by a function of the server and of the changes that it counts."""

        def act(run: Run) -> T:
            for statement in _SNAPSHOT:
                run(statement)
            found = read(run, self._changes(run))
            run("COMMIT")
            return found

        return self._server(self._url, act)

    def _columns_of(self, run: Run, changes: Any, needed: Needed) -> _Held:
        held, before = self._held, self._before(changes)
        if held is not None and _among(needed, before):
            return held
        return self._read(run, changes, before, needed)

    def _before(self, changes: Any) -> Needed:
        """The columns that are here, as the server still has them."""
        held = self._held
        return held.columns if held is not None and changes is not None and held.changes == changes else {}

    def _totals_of(self, run: Run, changes: Any, totals: Totals, needed: Needed) -> DuckDB | None:
        if _among(needed, self._before(changes)):
            return None
        key = totals.table, totals.by, totals.totals
        if changes is not None and key in self._added and self._added[key][0] == changes:
            return self._added[key][1]
        about, known = self._tables[totals.table], self._columns[totals.table]
        by = [known[name] for name in totals.by]
        if not few_rows(by, run(SIZES.format(oid=int(about["oid"])))):
            return None
        found = run.table(adding_up(about["schema"], about["name"], by, totals.totals))
        engine = DuckDB({totals.table: _arrived(found, [*by, *map(digit, totals.names)])})
        self._added = {**dict(list(self._added.items())[-_MOST_ADDED:]), key: (changes, engine)}
        return engine

    def _read(self, run: Run, changes: Any, before: Needed, needed: Needed) -> _Held:
        """The columns that are needed, and those of before if there was room."""
        self._held = None
        wanted = {
            table: needed.get(table, frozenset()) | before.get(table, frozenset()) for table in {*needed, *before}
        }
        frames = {table: self._frame(run, table, columns) for table, columns in wanted.items()}
        room = sum(frame.nbytes for frame in frames.values()) < self._most_bytes
        return _Held(changes if room else None, wanted, DuckDB(frames))

    def _frame(self, run: Run, table: str, columns: Iterable[str]) -> pyarrow.Table:
        about, known = self._tables[table], self._columns[table]
        read = [known[name] for name in known if name in set(columns)]
        counted = few_rows(read, run(SIZES.format(oid=int(about["oid"]))))
        found = run.table(reading(about["schema"], about["name"], read, counted=counted))
        return _arrived(_repeated(found) if counted else found, read)

    def _changes(self, run: Run) -> tuple[tuple[Any, ...], ...] | None:
        oids = ", ".join(str(int(about["oid"])) for about in self._tables.values())
        found = run(CHANGES.format(oids=oids)) if oids else []
        if any(row["changes"] is None and row["file"] for row in found):
            return None
        return tuple(tuple(row.values()) for row in found)


def _among(needed: Needed, here: Needed) -> bool:
    return all(table in here and columns <= here[table] for table, columns in needed.items())


def _repeated(found: pyarrow.Table) -> pyarrow.Table:
    """Each row as often as its last column says."""
    times = found.column(found.num_columns - 1).to_numpy()
    if found.num_columns == 1:
        return pyarrow.table({"nothing": pyarrow.repeat(pyarrow.scalar(True), int(times.sum()))})
    return found.select(range(found.num_columns - 1)).take(np.repeat(np.arange(len(times)), times))


def _arrived(found: pyarrow.Table, columns: Sequence[StoredColumn]) -> pyarrow.Table:
    """Columns under their own names, as they are stored."""
    import duckdb
    from sqlglot import exp

    from noisette.engines.duckdb.session import text_of

    for i, one in enumerate(columns):
        if one.travels == "day":
            days = [chunk.cast(pyarrow.int32()).view(pyarrow.date32()) for chunk in found.column(i).chunks]
            found = found.set_column(i, f"c{i}", pyarrow.chunked_array(days, pyarrow.date32()))
    if any(one.travels in ("moment", "text") for one in columns):
        made = [exp.alias_(one.arrived(f"c{i}"), f"c{i}", quoted=True) for i, one in enumerate(columns)]
        with duckdb.connect(":memory:") as connection:
            connection.register("noisette_read", found)
            found = connection.sql(text_of(exp.select(*made).from_("noisette_read"))).to_arrow_table()
    return found.rename_columns([one.name for one in columns]) if columns else found


# Opening


def _addressed(tables: Mapping[str, tuple[str, str]] | str) -> tuple[str, dict[str, str] | None]:
    """The URL of the database, and the tables that are named in it; None for all."""
    if isinstance(tables, str):
        return tables, None
    pairs = list(tables.values())
    if not all(
        isinstance(pair, tuple) and len(pair) == 2 and is_postgres(pair[0]) and isinstance(pair[1], str)
        for pair in pairs
    ):
        raise InputError("Name tables of one database: {'visits': ('postgresql://host/clinic', 'public.visits')}.")
    if len({url for url, _ in pairs}) > 1:
        raise InputError("All tables must be in one PostgreSQL database: copy the others there.")
    return pairs[0][0], {name: table for name, (_, table) in tables.items()}


def _check_database(about: Mapping[str, Any]) -> None:
    if about["encoding"] != "UTF8":
        raise InputError("This database does not store text as UTF-8, so some of it could not be read: recode it.")
    if about["version"] < _OLDEST:
        raise InputError("This PostgreSQL server is too old: version 14 or a newer one is needed.")


def _found(described: Sequence[dict[str, Any]], named: Mapping[str, str] | None) -> dict[str, dict[str, Any]]:
    """What the catalogue says of the tables, by the names that questions use."""
    if named is None:
        found = {row["name"]: row for row in described if row["near"] and row["readable"] and row["kind"] in _STORED}
        if not found:
            raise InputError("This account can read no table in the first schema of its search path: grant SELECT.")
    else:
        found = {name: _one(table, described) for name, table in named.items()}
    for name, row in found.items():
        _check_table(name, row)
    if len({name.lower() for name in found}) < len(found):
        raise InputError("Give each table a name of its own: upper and lower case do not tell names apart.")
    return found


def _one(table: str, described: Sequence[dict[str, Any]]) -> dict[str, Any]:
    schema, dot, own = table.partition(".") if "." in table else ("", "", table)
    fits = [row for row in described if row["name"] == own and (row["schema"] == schema if dot else row["near"])]
    if not fits or not fits[0]["readable"]:
        raise InputError(
            f"There is no table {table} that this account can read: name it as schema.table, grant SELECT."
        )
    return fits[0]


def _check_table(name: str, row: Mapping[str, Any]) -> None:
    if row["kind"] not in _STORED:
        raise InputError(
            f"{name} is a view or a foreign table, which could fail on some row: "
            "store it (CREATE MATERIALIZED VIEW … AS TABLE …)."
        )
    if row["computed"]:
        raise InputError(
            f"A part of {name} is a foreign table, which could fail on some row: detach it, or store its rows here."
        )
    if row["hidden"]:
        raise InputError(f"Row-level security hides rows of {name} from this account: give it the BYPASSRLS attribute.")


def _distinct(table: str, columns: Sequence[StoredColumn]) -> dict[str, StoredColumn]:
    if len({one.name.lower() for one in columns}) < len(columns):
        raise InputError(
            f"Give each column of table {table} a name of its own: upper and lower case do not tell names apart."
        )
    return {one.name: one for one in columns}
