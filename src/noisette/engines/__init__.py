"""Engines compute exact numbers where the data is: `contract` first, `memory` is the specification, then `duckdb`.

`bounding` chooses which rows of a unit are retained · `sql` writes plans for SQL engines · `open_source` picks one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noisette.engines.contract import Source
    from noisette.engines.files import Opened
    from noisette.query.schema import Schema

__all__ = ["open_source"]


def open_source(tables: "Mapping[str, Opened] | str | Path", schema: "Schema | None" = None) -> "Source":
    """The source of some tables; a database file in place of the mapping stands for all its tables.

    DuckDB reads files and frames. The schema is needed for CSV files, which do not say what their columns are.

    >>> import pyarrow
    >>> open_source({"visits": pyarrow.table({"age": [40, 70]})}).tables
    ('visits',)
    """
    from noisette.engines.duckdb.source import DuckDB

    return DuckDB(tables, schema)
