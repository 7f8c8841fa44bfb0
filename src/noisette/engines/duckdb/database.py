"""DuckDB files, opened read-only: stored tables alone, compared as their values are.

Views and generated columns are computed as they are read, and a computation can fail on one row. Collations make values
equal that differ, but not for hashes: they are taken off, so that text is equal where all of its bytes are.
"""

from collections.abc import Iterator

import duckdb
from sqlglot import exp

from noisette.engines.duckdb.dialect import text_of
from noisette.engines.sql.syntax import column
from noisette.errors import InputError

__all__ = ["database_rows"]

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
