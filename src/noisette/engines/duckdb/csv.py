"""CSV files in DuckDB: the fields that `engines.csv` splits, read as the declared types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow
from sqlglot import exp

from noisette.engines import csv
from noisette.engines.duckdb.dialect import text_of
from noisette.engines.sql.syntax import column, try_cast
from noisette.engines.types import CLEAN
from noisette.errors import InputError
from noisette.query.schema import Table

__all__ = ["Csv", "csv_of"]

_LINES = "noisette_lines"


@dataclass(frozen=True)
class Csv:
    """Files with the same header, and the engine's type of each column."""

    files: tuple[str, ...]
    types: Mapping[str, str]

    def nothing(self, connection: duckdb.DuckDBPyConnection) -> pyarrow.Table:
        """The columns without any row; no file is read."""
        return self._typed(connection, b"\n")

    def read(self, connection: duckdb.DuckDBPyConnection) -> pyarrow.Table:
        """All rows, as typed columns in memory."""
        parts = (block for file in self.files for block in csv.blocks(file))
        return pyarrow.concat_tables([self.nothing(connection), *(self._typed(connection, b) for b in parts)])

    def _typed(self, connection: duckdb.DuckDBPyConnection, block: bytes) -> pyarrow.Table:
        found = csv.fields(block, csv.delimiter_of(self.files[0]), len(self.types))
        connection.register(_LINES, pyarrow.table(found, [f"c{i}" for i in range(len(found))]))
        try:
            made = [
                exp.alias_(_cast(f"c{i}", to), name, quoted=True) for i, (name, to) in enumerate(self.types.items())
            ]
            return connection.sql(text_of(exp.select(*made).from_(exp.to_identifier(_LINES)))).to_arrow_table()
        finally:
            connection.unregister(_LINES)


def csv_of(files: Sequence[str], name: str, table: Table | None) -> Csv:
    """CSV files as a table is declared; only their first lines are read."""
    if table is None:
        raise InputError(f"Declare the columns of table {name}: a CSV file does not say what they are.")
    header = csv.first_line(files[0], name)
    declared = {c.name: CLEAN[c.kind.type] for c in table.columns}
    missing = [c for c in (*declared, *([table.unit] if table.unit else [])) if c not in header]
    if missing:
        raise InputError(f"The header of table {name} has no column {missing[0]}.")
    for file in files[1:]:
        if csv.first_line(file, name) != header:
            raise InputError(
                f"The files of table {name} differ in their first line ({Path(file).name}): "
                "write the same columns in the same order into each."
            )
    return Csv(tuple(files), {c: declared.get(c, "VARCHAR") for c in header})


def _cast(name: str, to: str) -> exp.Expr:
    """Text, of which an empty field is NULL, or what a number or a date can be read as."""
    if to != "VARCHAR":
        return try_cast(exp.Trim(this=column(name)), to)
    return exp.Nullif(this=column(name), expression=exp.Literal.string(""))
