"""How data is opened: Parquet and CSV files, DuckDB files and frames in memory become named tables of one engine.

The engine is locked before it sees the first file: it may read the files that were named and nothing else, load no
extension, write no temporary file, and nobody can unlock it. Parquet stays in its file and is read as it is needed.
CSV is read into memory by the first question. No value of any row can make reading fail, and none can change what is
read of another row; columns of which that is not true are left out. No row of a file is read for opening it.

Parquet: text that is not UTF-8 is read with question marks in its place. Statistics of row groups then speak of other
bytes than those that are read, so text is kept away from them: the engine could leave out a row group, and with it rows
whose text matches as read, depending on what else is in there. Those of doubles ignore NaN, and the engine is set up
for that.

DuckDB files: views and generated columns are computed as they are read, and a computation can fail on one row.
Collations make values equal that differ, but not for hashes: they are taken off, so that text is equal where all of its
bytes are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
from sqlglot import exp

from noisette.engines import csv
from noisette.engines.contract import CLEAN
from noisette.engines.csv_form import PLAIN, Form
from noisette.engines.duckdb.session import text_of
from noisette.engines.files import Opened, family_of, files_of, is_database, is_frame, valid_table
from noisette.engines.sql.syntax import column, try_cast
from noisette.engines.sql.texts import as_moment
from noisette.errors import InputError
from noisette.names import is_unicode
from noisette.query.schema import Schema, Table

__all__ = ["Csv", "Engine", "connected", "csv_of", "database_rows", "parquet_rows"]

# Parquet files


_OPTIONS: dict[str, exp.Expr] = {"utf8_validation": exp.Literal.string("replace"), "can_have_nan": exp.true()}
_SCHEMA = ("file_name", "name", "num_children", "duckdb_type", "type", "converted_type")
_MILLISECONDS, _BYTES = "TIMESTAMP_MILLIS", "DECIMAL_BYTE_ARRAY"


def parquet_rows(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], name: str
) -> tuple[exp.Select, dict[str, str]]:
    """The rows of Parquet files with the same columns, and the columns that are left out: to read them can fail."""
    schemas = _schemas(connection, files)
    _check_same(schemas, name)
    left_out = {n: sort for schema in schemas.values() for n, *kept in schema if (sort := _fallible(*kept)) is not None}
    rows = exp.select(exp.Star()).from_(_reader(files))
    found = connection.sql(text_of(rows.limit(0)))
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    made = [exp.alias_(_apart(n) if t == "VARCHAR" else column(n), n, quoted=True) for n, t in types.items()]
    return exp.select(*(m for m in made if m.alias not in left_out)).from_(_reader(files)), left_out


def _reader(files: Sequence[str]) -> exp.Table:
    options = [exp.EQ(this=exp.to_identifier(key), expression=value.copy()) for key, value in _OPTIONS.items()]
    return exp.Table(this=exp.Anonymous(this="read_parquet", expressions=[_listed(files), *options]))


def _listed(files: Sequence[str]) -> exp.Array:
    return exp.Array(expressions=[exp.Literal.string(file) for file in files])


def _apart(name: str) -> exp.Expr:
    """The same text, of which the engine has no statistics, so that it looks at every row."""
    return exp.Anonymous(this="GREATEST", expressions=[column(name)])


# Schemas of Parquet files


def _schemas(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> dict[str, list[tuple[str, ...]]]:
    """What the files say of their columns, in alphabetical order, by file."""
    function = exp.Table(this=exp.Anonymous(this="parquet_schema", expressions=[_listed(files)]))
    asked = exp.select(*(column(c) for c in _SCHEMA)).from_(function)
    found: dict[str, list[tuple[str, ...]]] = {}
    for file, *described in connection.execute(text_of(asked)).fetchall():
        if file in found:
            found[file].append(tuple(str(part) for part in described))
        else:  # the first one stands for all columns, under a name that programs choose
            found[file] = []
    return {file: sorted(schema) for file, schema in found.items()}


def _check_same(schemas: dict[str, list[tuple[str, ...]]], name: str) -> None:
    """A column that is missing somewhere, or of another type, would stop the questions that meet it."""
    known = [{described[:3] for described in schema} for schema in schemas.values()]
    for other in known[1:]:
        if other != known[0]:
            raise InputError(
                f"The Parquet files of table {name} have different columns (see {min(other ^ known[0])[0]}): "
                "write each with the same columns and types, or open them as tables of their own."
            )


def _fallible(children: str, engine: str, stored: str, converted: str) -> str | None:
    """How a column is stored whose values the engine cannot always read: it must multiply them, or they can be long."""
    if engine.startswith("TIMESTAMP") and converted == "TIMESTAMP_MILLIS":
        return _MILLISECONDS
    return _BYTES if engine.startswith("DECIMAL") and stored == "BYTE_ARRAY" else None


# CSV files: the fields that `engines.csv` splits, read as the declared types


_LINES = "noisette_lines"


@dataclass(frozen=True)
class Csv:
    """Files with the same header: the engine's type of each column, and the format of those that have one."""

    files: tuple[str, ...]
    types: Mapping[str, str]
    form: Form = PLAIN
    formats: Mapping[str, str] = field(default_factory=dict)

    def nothing(self, connection: duckdb.DuckDBPyConnection) -> pyarrow.Table:
        """The columns without any row; no file is read."""
        return self._typed(connection, b"\n")

    def read(self, connection: duckdb.DuckDBPyConnection) -> pyarrow.Table:
        """All rows, as typed columns in memory."""
        parts = (block for file in self.files for block in self._records(file))
        return pyarrow.concat_tables([self.nothing(connection), *(self._typed(connection, b) for b in parts)])

    def texts(self) -> pyarrow.Table:
        """All rows as the texts that the files hold."""
        parts = [b"\n", *(block for file in self.files for block in self._records(file))]
        return pyarrow.concat_tables([pyarrow.table(self._fields(part), list(self.types)) for part in parts])

    def reading(self, column: exp.Expr, name: str) -> exp.Expr:
        """What the text of a column is read as; NULL where it cannot be."""
        return _cast(column, self.types[name], self.formats.get(name))

    def tally(self) -> csv.Tally:
        """How the lines of all files are written."""
        found = [csv.tally(file, self.form, len(self.types)) for file in self.files]
        return csv.Tally(*map(sum, zip(*found, strict=True)))

    def _records(self, file: str) -> Iterator[bytes]:
        return csv.records(file, self.form, len(self.types))

    def _fields(self, block: bytes) -> list[pyarrow.Array]:
        separator = self.form.separator(self.files[0])
        return csv.fields(block, separator, len(self.types), line_breaks=self.form.line_breaks)

    def _typed(self, connection: duckdb.DuckDBPyConnection, block: bytes) -> pyarrow.Table:
        names = [f"c{i}" for i in range(len(self.types))]
        connection.register(_LINES, pyarrow.table(self._fields(block), names))
        try:
            pairs = zip(names, self.types, strict=True)
            made = [exp.alias_(self.reading(column(c), name), name, quoted=True) for c, name in pairs]
            return connection.sql(text_of(exp.select(*made).from_(exp.to_identifier(_LINES)))).to_arrow_table()
        finally:
            connection.unregister(_LINES)


def csv_of(files: Sequence[str], name: str, table: Table | None, form: Form = PLAIN) -> Csv:
    """CSV files as a table is declared; only their first lines are read."""
    if table is None:
        raise InputError(f"Declare the columns of table {name}: a CSV file does not say what they are.")
    header = csv.first_line(files[0], name, form)
    declared = {c.name: CLEAN[c.kind.type] for c in table.columns}
    missing = [c for c in (*declared, *([table.unit] if table.unit else [])) if c not in header]
    if missing:
        raise csv.no_column(name, missing[0], header)
    for file in files[1:]:
        if csv.first_line(file, name, form) != header:
            raise InputError(
                f"The files of table {name} differ in their first line ({Path(file).name}): "
                "write the same columns in the same order into each."
            )
    formats = {c.name: c.kind.format for c in table.columns if c.kind.format is not None}
    return Csv(tuple(files), {c: declared.get(c, "VARCHAR") for c in header}, form, formats)


def _cast(text: exp.Expr, to: str, format: str | None) -> exp.Expr:
    """Text, of which an empty field is NULL, or what a number or a date can be read as."""
    if format is not None:
        return as_moment(text, format, to)
    if to != "VARCHAR":
        return try_cast(exp.Trim(this=text.copy()), to)
    return exp.Nullif(this=text.copy(), expression=exp.Literal.string(""))


# DuckDB files, opened read-only: stored tables alone, compared as their values are


_GENERATED = "GENERATED"


def database_rows(
    connection: duckdb.DuckDBPyConnection, path: str, wanted: str | None, name: str
) -> Iterator[tuple[str, exp.Select, dict[str, str]]]:
    """A table of a file, or all: its own name, its rows, and the columns that are left out, since they are computed."""
    database = f"noisette_{path}"
    if not connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = ?", [database]).fetchall():
        attached = exp.alias_(exp.Literal.string(path), database, quoted=True)
        connection.execute(
            text_of(exp.Attach(this=attached, expressions=[exp.AttachOption(this=exp.var("READ_ONLY"))]))
        )
    asked = (
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_catalog = ? AND table_schema = 'main'"
    )
    there: dict[str, str] = dict(connection.execute(asked, [database]).fetchall())
    if wanted is not None and wanted not in there:
        raise InputError(f"The DuckDB file of table {name} has no table {wanted}: name it, (path, table).")
    if wanted is not None and there[wanted] != "BASE TABLE":
        raise InputError(
            f"{wanted} is a view, which could fail on some row: store it (CREATE TABLE … AS FROM {wanted})."
        )
    for table in [t for t, sort in there.items() if sort == "BASE TABLE"] if wanted is None else [wanted]:
        yield table, *_rows(connection, database, table)


def _rows(connection: duckdb.DuckDBPyConnection, database: str, table: str) -> tuple[exp.Select, dict[str, str]]:
    asked = (
        "SELECT column_name, data_type, generation_expression FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = 'main' AND table_name = ? ORDER BY column_index"
    )
    found = connection.execute(asked, [database, table]).fetchall()
    left_out = {name: _GENERATED for name, _, computed in found if computed is not None}
    made = [
        _by_value(name) if kept == "VARCHAR" else column(name) for name, kept, computed in found if computed is None
    ]
    place = [exp.to_identifier(part, quoted=True) for part in (table, "main", database)]
    return exp.select(*made).from_(exp.Table(this=place[0], db=place[1], catalog=place[2])), left_out


def _by_value(name: str) -> exp.Expr:
    binary = exp.Collate(this=column(name), expression=exp.to_identifier("binary", quoted=True))
    return exp.alias_(binary, name, quoted=True)


# The engine with all of them


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

    `files` are CSV files, and `waiting` those of them that nobody has asked about yet; `left_out` says how columns are
    stored that have no view, since to read them can fail.
    """

    connection: duckdb.DuckDBPyConnection
    files: dict[str, Csv] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(sorted(self.left_out))

    def load(self, table: str) -> None:
        """Read a CSV file, unless that was done."""
        if table in self.waiting:
            self._register(table, self.files[table].read(self.connection))
            self.waiting.remove(table)

    def open(self, name: str, source: Opened, files: Sequence[str], table: Table | None, form: Form) -> None:
        """Make one source known, or all tables of a database."""
        if is_frame(source):
            import pyarrow

            self._register(name, valid_table(pyarrow.table(source), name))
            return
        match family_of(files[0]):
            case ".parquet":
                self._view(name, *parquet_rows(self.connection, files, name))
            case ".csv":
                self.files[name] = csv_of(files, name, table, form)
                self.waiting.add(name)
                self._register(name, self.files[name].nothing(self.connection))
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
    tables: Mapping[str, Opened] | str | Path,
    schema: Schema | None = None,
    forms: Mapping[str, Form] | None = None,
    *,
    threads: int | None = None,
) -> Engine:
    """A locked engine with all tables open; `forms` says how CSV files are written.

    A DuckDB file in place of the mapping stands for all its tables.
    """
    whole = {"all": (tables, None)} if isinstance(tables, str | Path) else tables
    _check_names(whole)
    files = {name: files_of(source) for name, source in whole.items() if not is_frame(source)}
    connection = duckdb.connect(":memory:", config=_SETTINGS | ({} if threads is None else {"threads": threads}))
    _lock(connection, [path for paths in files.values() for path in paths])
    engine = Engine(connection)
    for name, source in whole.items():
        table, form = None if schema is None else schema.get(name), (forms or {}).get(name, PLAIN)
        if not _opens(engine, name, source, files.get(name, []), table, form):
            raise InputError(f"The data of table {name} cannot be read: is it whole, and of the kind its name says?")
    return engine


def _check_names(tables: Mapping[str, Opened]) -> None:
    if len({name.lower() for name in tables}) < len(tables):
        raise InputError("Give each table a name of its own: upper and lower case do not tell names apart.")
    if any(not name or name.startswith("noisette_") for name in tables):
        raise InputError("A table needs a name, and one that does not begin with noisette_.")
    if not all(map(is_unicode, tables)):
        raise InputError("The name of a table must be valid Unicode: one of them holds half a character.")


def _lock(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    allowed = [form for path in paths for form in (path, *([f"{path}.wal"] if is_database(path) else []))]
    connection.execute("SET allowed_paths = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _opens(engine: Engine, name: str, source: Opened, files: Sequence[str], table: Table | None, form: Form) -> bool:
    """Open a table; whatever the engine has to say about a failure ends here."""
    try:
        engine.open(name, source, files, table, form)
    except duckdb.Error:
        return False
    return True
