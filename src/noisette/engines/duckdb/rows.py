"""The rows of a relation themselves, for whoever computes with them elsewhere: clean, with a number for each unit."""

from collections.abc import Mapping

import pyarrow
from sqlglot import exp

from noisette.engines.duckdb.compile import Stored, relation_sql, selected
from noisette.engines.duckdb.session import Session
from noisette.engines.duckdb.syntax import column
from noisette.query.plan import Relation
from noisette.query.schema import Schema
from noisette.query.stability import ROW, UNIT, shape_of
from noisette.query.types import ENGINE

__all__ = ["rows"]


def rows(
    session: Session, relation: Relation, columns: Mapping[str, str], schema: Schema, stored: Stored, secret: bytes
) -> pyarrow.Table:
    """Columns of a relation under new names, and `unit`, which numbers the units from 0 in no particular order.

    Equal numbers are the same unit, exactly. Where each row is a unit by itself there is no such column.
    """
    shape = shape_of(relation, schema)
    made: dict[str, exp.Expr] = {
        new: exp.cast(column(name), ENGINE[shape.columns[name].type]) for name, new in columns.items()
    }
    owned = shape.unit not in (None, ROW)
    if owned:
        made[UNIT] = column(UNIT)
    found = session.run(selected(relation_sql(relation, schema, stored, set(columns), secret=secret), made))
    if not owned:
        return found
    numbers = found.column(UNIT).combine_chunks().dictionary_encode().indices.cast(pyarrow.int64())
    return found.drop_columns([UNIT]).append_column(UNIT, numbers)
