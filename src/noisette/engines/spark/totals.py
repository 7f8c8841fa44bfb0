"""Totals of groups of rows, added up by Spark itself: expressions of stored columns that no value makes fail.

`sql.totals` says what is added up; here it is written for Spark. All else of a question is computed by DuckDB.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from noisette.engines.contract import Dialect
from noisette.engines.spark.catalogue import functions_of, quoted
from noisette.engines.sql.syntax import text_of
from noisette.engines.sql.totals import Totals, digits_of, steps_of, sums_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["added_up"]

_SPARK = Dialect("spark")


def added_up(frame: "DataFrame", totals: Totals, places: Sequence[str]) -> "DataFrame":
    """A row for each group: its columns and then the digits of its totals, under the names of `places`."""
    functions = functions_of(frame)

    def written(tree: exp.Expr, name: str) -> "Column":
        made: Column = functions.expr(text_of(tree, _SPARK)).alias(name)
        return made

    by = places[: len(totals.by)]
    kept = [quoted(frame, name).alias(place) for name, place in zip(totals.by, by, strict=True)]
    rows = frame.select(*kept, *(written(sql, name) for name, sql in steps_of(totals.totals).items()))
    groups = rows.groupBy(*by).agg(*(written(sql, name) for name, sql in sums_of(totals.totals).items()))
    digits = zip(digits_of(totals.totals), places[len(by) :], strict=True)
    return groups.select(*by, *(written(sql, name) for sql, name in digits))
