"""How data is opened: Parquet and CSV files, DuckDB files and frames in memory become named tables of one engine.

The engine is locked before it sees the first file: it may read the files that were named and nothing else, load no
extension, write no temporary file, and nobody can unlock it. Parquet stays in its file and is read as it is needed.
CSV is read as text and cast to the declared types; what cannot be cast is NULL, so that no row can stop a question.
"""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
from sqlglot import exp

from noisette.errors import InputError
from noisette.query.compile import text_of
from noisette.query.schema import Schema, Table
from noisette.query.syntax import column, try_cast
from noisette.query.types import ENGINE

__all__ = ["Opened", "connected"]

Opened: TypeAlias = Any
"""A path, a glob or a list of paths (.parquet, .csv, .duckdb), a pair (path of a DuckDB file, table), or a frame."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}
_PARQUET, _CSV, _DATABASE = {".parquet", ".pq"}, {".csv", ".tsv"}, {".duckdb", ".db"}


def connected(
    tables: Mapping[str, Opened] | str | Path, schema: Schema | None = None, *, threads: int | None = None
) -> tuple[duckdb.DuckDBPyConnection, tuple[str, ...]]:
    """A locked engine in memory with a view for each table, and their names.

    A DuckDB file in place of the mapping stands for all its tables.
    """
    whole = {"all": (tables, None)} if isinstance(tables, str | Path) else tables
    _check_names(whole)
    files = {name: _files(source) for name, source in whole.items() if not _is_frame(source)}
    connection = duckdb.connect(":memory:", config=_SETTINGS | ({} if threads is None else {"threads": threads}))
    _lock(connection, [path for paths in files.values() for path in paths])
    for name, source in whole.items():
        if not _opens(connection, name, source, files.get(name, []), None if schema is None else schema.get(name)):
            raise InputError(f"The data of table {name} cannot be read: is it whole, and of the kind its name says?")
    names = connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND database_name IN ('memory', 'temp')"
    )
    return connection, tuple(sorted(name for (name,) in names.fetchall()))


def _check_names(tables: Mapping[str, Opened]) -> None:
    if len({name.lower() for name in tables}) < len(tables):
        raise InputError("Give each table a name of its own: upper and lower case do not tell names apart.")
    if any(not name or name.startswith("noisette_") for name in tables):
        raise InputError("A table needs a name, and one that does not begin with noisette_.")


def _lock(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    allowed = [form for path in paths for form in (path, *([f"{path}.wal"] if _suffix(path) in _DATABASE else []))]
    connection.execute("SET allowed_paths = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


# Sources


def _is_frame(source: Opened) -> bool:
    return hasattr(source, "__arrow_c_stream__")


def _files(source: Opened) -> list[str]:
    """The files that a source names, all of them there."""
    if isinstance(source, tuple) and len(source) == 2 and (source[1] is None or _suffix(source[0]) in _DATABASE):
        if source[1] is None and _suffix(source[0]) not in _DATABASE:
            raise InputError("Give each file the name of its table: {'visits': 'visits.parquet'}.")
        source = source[0]
    listed = source if isinstance(source, list | tuple) else [source]
    if not listed or not all(isinstance(part, str | Path) for part in listed):
        raise InputError("A table is a path, a list of paths, or a frame that speaks Arrow (pandas, polars, pyarrow).")
    found = [path for part in listed for path in _expanded(str(part))]
    suffixes = {_suffix(path) for path in found}
    if len({_family(suffix) for suffix in suffixes}) > 1:
        raise InputError("The files of one table must be of one kind.")
    return found


def _expanded(path: str) -> list[str]:
    if Path(path).is_file():
        return [str(Path(path).resolve())]
    found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not found:
        raise InputError(f"There is no file {path}.")
    return [str(Path(name).resolve()) for name in found if Path(name).is_file()]


def _suffix(path: str | Path) -> str:
    return Path(path).suffix.lower() if isinstance(path, str | Path) else ""


def _family(suffix: str) -> str:
    for family in (_PARQUET, _CSV, _DATABASE):
        if suffix in family:
            return min(family)
    raise InputError(f"Files that end in {suffix or 'nothing'} cannot be opened: use .parquet, .csv or .duckdb.")


def _opens(
    connection: duckdb.DuckDBPyConnection, name: str, source: Opened, files: Sequence[str], table: Table | None
) -> bool:
    """Open a table; whatever the engine has to say about a failure ends here."""
    try:
        _open(connection, name, source, files, table)
    except duckdb.Error:
        return False
    return True


def _open(
    connection: duckdb.DuckDBPyConnection, name: str, source: Opened, files: Sequence[str], table: Table | None
) -> None:
    if _is_frame(source):
        import pyarrow

        connection.register(name, pyarrow.table(source))
        return
    match _family(_suffix(files[0])):
        case ".parquet":
            _view(connection, name, exp.select(exp.Star()).from_(_reader("read_parquet", files)))
        case ".csv":
            _view(connection, name, _csv(files, name, table))
        case _:
            _attached(connection, name, source, files)


def _reader(function: str, files: Sequence[str], *options: exp.Expr) -> exp.Table:
    paths = exp.Array(expressions=[exp.Literal.string(path) for path in files])
    return exp.Table(this=exp.Anonymous(this=function, expressions=[paths, *options]))


def _view(connection: duckdb.DuckDBPyConnection, name: str, rows: exp.Select) -> None:
    target = exp.Table(this=exp.to_identifier(name, quoted=True))
    connection.execute(text_of(exp.Create(this=target, kind="VIEW", expression=rows)))


# CSV


def _csv(files: Sequence[str], name: str, table: Table | None) -> exp.Select:
    """All columns as text, then each as what it is declared to be; nothing is guessed from the rows."""
    if table is None:
        raise InputError(f"Declare the columns of table {name}: a CSV file does not say what they are.")
    header = _header(files[0], name)
    declared = {c.name: ENGINE[c.kind.type] for c in table.columns}
    missing = [c for c in (*declared, *([table.unit] if table.unit else [])) if c not in header]
    if missing:
        raise InputError(f"The header of table {name} has no column {missing[0]}.")
    texts = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(c, quoted=True), expression=exp.Literal.string("VARCHAR"))
            for c in header
        ]
    )
    options = {
        "columns": texts,
        "header": exp.true(),
        "delim": exp.Literal.string("\t" if _suffix(files[0]) == ".tsv" else ","),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "auto_detect": exp.false(),
        "null_padding": exp.true(),
        "ignore_errors": exp.true(),
        "strict_mode": exp.false(),
    }
    pairs = [exp.EQ(this=exp.to_identifier(key), expression=value) for key, value in options.items()]
    made = [exp.alias_(_typed(c, declared.get(c, "VARCHAR")), c, quoted=True) for c in header]
    return exp.select(*made).from_(_reader("read_csv", files, *pairs))


def _typed(name: str, to: str) -> exp.Expr:
    """The cast must not reach the reader, which would drop the row: hence TRIM, which numbers and dates can bear."""
    return column(name) if to == "VARCHAR" else try_cast(exp.Trim(this=column(name)), to)


def _header(path: str, name: str) -> list[str]:
    """The names in the first line of a CSV file."""
    import csv

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            found = next(csv.reader(file, delimiter="\t" if _suffix(path) == ".tsv" else ","), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError(f"The header of table {name} cannot be read: save the file as UTF-8.") from None
    if not found or len({c.lower() for c in found}) < len(found) or not all(found):
        raise InputError(f"The first line of table {name} must name its columns, each one differently.")
    return found


# DuckDB files


def _attached(connection: duckdb.DuckDBPyConnection, name: str, source: Opened, files: Sequence[str]) -> None:
    """A table of a DuckDB file, opened read-only: the one that is named, or the one of the same name, or all."""
    wanted = source[1] if isinstance(source, tuple) else name
    database = f"noisette_{files[0]}"
    if not connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = ?", [database]).fetchall():
        attached = exp.alias_(exp.Literal.string(files[0]), database, quoted=True)
        connection.execute(
            text_of(exp.Attach(this=attached, expressions=[exp.AttachOption(this=exp.var("READ_ONLY"))]))
        )
    tables = "SELECT table_name FROM information_schema.tables WHERE table_catalog = ? AND table_schema = 'main'"
    there = [table for (table,) in connection.execute(tables, [database]).fetchall()]
    if wanted is not None and wanted not in there:
        raise InputError(f"The DuckDB file of table {name} has no table {wanted}: name it, (path, table).")
    for table in there if wanted is None else [wanted]:
        place = [exp.to_identifier(part, quoted=True) for part in (table, "main", database)]
        inner = exp.Table(this=place[0], db=place[1], catalog=place[2])
        _view(connection, table if wanted is None else name, exp.select(exp.Star()).from_(inner))
