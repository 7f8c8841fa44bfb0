"""Engines compute exact numbers: `contract` first, then `memory`, the specification; `duckdb`, `postgres`, `spark`.

`bounding` chooses which rows of a unit are retained · `sql` writes plans for SQL engines · `open_source` picks one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noisette.engines.contract import Source
    from noisette.engines.csv_form import Form
    from noisette.engines.files import Opened
    from noisette.query.schema import Schema

__all__ = ["open_source"]


def open_source(
    tables: "Mapping[str, Opened] | str | Path",
    schema: "Schema | None" = None,
    forms: "Mapping[str, Form] | None" = None,
) -> "Source":
    """The source of some tables; a database file in place of the mapping stands for all its tables.

    DuckDB reads files and frames. The schema is needed for CSV files, which do not say what their columns are; `forms`
    says how they are written. What the
    URL of a PostgreSQL database, or pairs (URL, table), name is read from the server. Tables of a Spark session
    (`spark.opening.SparkTable`) are computed with on its executors.

    >>> import pyarrow
    >>> open_source({"visits": pyarrow.table({"age": [40, 70]})}).tables
    ('visits',)
    """
    from noisette.engines.files import is_postgres

    if is_postgres(tables) or (isinstance(tables, Mapping) and any(map(is_postgres, tables.values()))):
        from noisette.engines.postgres.source import Postgres

        return Postgres(tables)  # type: ignore[arg-type]
    from noisette.engines.spark.opening import SparkTable

    if isinstance(tables, Mapping) and any(isinstance(table, SparkTable) for table in tables.values()):
        from noisette.engines.spark.source import Spark

        return Spark(tables)
    from noisette.engines.duckdb.source import DuckDB

    return DuckDB(tables, schema, forms)
