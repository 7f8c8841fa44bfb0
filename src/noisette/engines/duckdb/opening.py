"""How data is opened: Parquet and CSV files, DuckDB files and frames in memory become named tables of one engine.

The engine is locked before it sees the first file: it may read the files that were named and nothing else, load no
extension, write no temporary file, and nobody can unlock it. Parquet stays in its file and is read as it is needed.
CSV is read into memory by the first question. No value of any row can make reading fail: `parquet`, `csv`, `database`
and `text` say how; columns of which that is not true are left out. No row of a file is read for opening it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from noisette.engines.duckdb.csv import Csv, csv_of
from noisette.engines.duckdb.database import database_rows
from noisette.engines.duckdb.dialect import text_of
from noisette.engines.duckdb.parquet import parquet_rows
from noisette.engines.files import Opened, family_of, files_of, is_database, is_frame
from noisette.engines.text import valid_table
from noisette.errors import InputError
from noisette.query.schema import Schema, Table

__all__ = ["Engine", "connected"]

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}


@dataclass(frozen=True)
class Engine:
    """A locked engine in memory with a view for each table.

    `waiting` are CSV files that nobody has asked about yet; `left_out` says how columns are stored that have no view,
    since to read them can fail.
    """

    connection: duckdb.DuckDBPyConnection
    waiting: dict[str, Csv] = field(default_factory=dict)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(sorted(self.left_out))

    def load(self, table: str) -> None:
        """Read a CSV file, unless that was done."""
        if table in self.waiting:
            self._register(table, self.waiting[table].read(self.connection))
            del self.waiting[table]

    def open(self, name: str, source: Opened, files: Sequence[str], table: Table | None) -> None:
        """Make one source known, or all tables of a database."""
        if is_frame(source):
            import pyarrow

            self._register(name, valid_table(pyarrow.table(source), name))
            return
        match family_of(files[0]):
            case ".parquet":
                self._view(name, *parquet_rows(self.connection, files, name))
            case ".csv":
                self.waiting[name] = csv_of(files, name, table)
                self._register(name, self.waiting[name].nothing(self.connection))
            case _:
                wanted = source[1] if isinstance(source, tuple) else name
                for own, rows, left_out in database_rows(self.connection, files[0], wanted, name):
                    self._view(own if wanted is None else name, rows, left_out)

    def _register(self, name: str, table: Any) -> None:
        self.left_out[name] = {}
        self.connection.register(name, table)

    def _view(self, name: str, rows: exp.Select, left_out: dict[str, str]) -> None:
        self.left_out[name] = left_out
        target = exp.Table(this=exp.to_identifier(name, quoted=True))
        self.connection.execute(text_of(exp.Create(this=target, kind="VIEW", expression=rows)))


def connected(
    tables: Mapping[str, Opened] | str | Path, schema: Schema | None = None, *, threads: int | None = None
) -> Engine:
    """A locked engine with all tables open.

    A DuckDB file in place of the mapping stands for all its tables.
    """
    whole = {"all": (tables, None)} if isinstance(tables, str | Path) else tables
    _check_names(whole)
    files = {name: files_of(source) for name, source in whole.items() if not is_frame(source)}
    connection = duckdb.connect(":memory:", config=_SETTINGS | ({} if threads is None else {"threads": threads}))
    _lock(connection, [path for paths in files.values() for path in paths])
    engine = Engine(connection)
    for name, source in whole.items():
        if not _opens(engine, name, source, files.get(name, []), None if schema is None else schema.get(name)):
            raise InputError(f"The data of table {name} cannot be read: is it whole, and of the kind its name says?")
    return engine


def _check_names(tables: Mapping[str, Opened]) -> None:
    if len({name.lower() for name in tables}) < len(tables):
        raise InputError("Give each table a name of its own: upper and lower case do not tell names apart.")
    if any(not name or name.startswith("noisette_") for name in tables):
        raise InputError("A table needs a name, and one that does not begin with noisette_.")


def _lock(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    allowed = [form for path in paths for form in (path, *([f"{path}.wal"] if is_database(path) else []))]
    connection.execute("SET allowed_paths = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _opens(engine: Engine, name: str, source: Opened, files: Sequence[str], table: Table | None) -> bool:
    """Open a table; whatever the engine has to say about a failure ends here."""
    try:
        engine.open(name, source, files, table)
    except duckdb.Error:
        return False
    return True
