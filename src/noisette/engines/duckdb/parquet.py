"""Parquet files: read so that no value can stop a question, and none can change what is read of another row.

Text that is not UTF-8 is read with question marks in its place. Statistics of row groups then speak of other bytes than
those that are read, so text is kept away from them: the engine could leave out a row group, and with it rows whose text
matches as read, depending on what else is in there. Those of doubles ignore NaN, and the engine is set up for that.
"""

from collections.abc import Sequence

import duckdb
from sqlglot import exp

from noisette.engines.duckdb.dialect import text_of
from noisette.engines.sql.syntax import column
from noisette.errors import InputError

__all__ = ["parquet_rows"]

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


# Schemas


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
