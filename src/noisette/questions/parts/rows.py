"""The rows that a question is about: an SQL text, so that the question is data, and a frame once the schema is known.

`of="SELECT * FROM visits WHERE age >= 18"` names them, `of="visits"` all rows of a table; a frame that is given there
becomes the text it stands for.
"""

import re
from typing import Any

from noisette.errors import InputError
from noisette.query.canonical import canonical, canonical_text
from noisette.query.expression import Name
from noisette.query.frame import Frame, frame
from noisette.query.plan import Aggregate, Query, Relation
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.query.sql.relation import rows_read
from noisette.query.sql.writer import quoted, reserved, rows_sql
from noisette.query.stability import shape_of

__all__ = ["Rows", "counted", "rows_of", "rows_text"]

Rows = str | Frame | None
"""SQL, or a table's methods; None is the one private table, or the one that has the column."""

_SELECT = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_ASK = 'of must be rows: of="SELECT * FROM visits WHERE age >= 18", or curator.table("visits").where("age >= 18").'


def rows_text(of: Any) -> Rows:
    """Rows as an SQL text; a frame that SQL has no text for stays a frame.

    >>> from noisette.query.kind import Kind
    >>> from noisette.query.schema import Column, Table
    >>> visits = Table("visits", (Column("ward", Kind("text")),))
    >>> rows_text(frame({"visits": visits}, "visits").where("ward <> 'A'"))
    "SELECT * FROM visits WHERE visits.ward <> 'A'"
    """
    if of is None or (isinstance(of, str) and _SELECT.match(of)):
        return of
    if isinstance(of, str) and of.isidentifier():
        return f"SELECT * FROM {quoted(of) if reserved(of) else of}"
    if not isinstance(of, Frame):
        raise InputError(_ASK)
    if of.keys is not None:
        raise InputError("A question is about rows, not groups: leave group_by out.")
    try:
        text = rows_sql(of.relation, of.hidden)
        read = _frame(text, of.schema)
    except InputError:
        return of
    same = read.hidden == of.hidden and _names(read) == _names(of)
    return text if same and _measured(read.relation, of.schema) == _measured(of.relation, of.schema) else of


def rows_of(of: Rows, column: str, schema: Schema) -> Frame:
    """The frame of the rows; without any, that of the one private table (that has the column)."""
    if isinstance(of, str):
        return _frame(of, schema)
    if of is not None:
        return of
    private = [table for table in schema.values() if not table.public]
    having = [table for table in private if any(known.name == column for known in table.columns)]
    tables = having if len(private) > 1 else private
    if len(tables) != 1:
        raise InputError('Say which rows are meant: of="SELECT * FROM visits", or curator.table("visits").')
    return frame(schema, tables[0].name)


def counted(column: str, of: Rows, schema: Schema) -> Prepared:
    """How many rows each value of a column (or of an expression) has."""
    query = rows_of(of, column, schema).group_by(column).count().query
    return prepare(canonical(query), schema)


def _frame(text: str, schema: Schema) -> Frame:
    relation, hidden = rows_read(text, schema)
    return Frame(schema, relation, hidden)


def _names(rows: Frame) -> list[str]:
    return sorted(shape_of(rows.relation, rows.schema).columns)


def _measured(relation: Relation, schema: Schema) -> list[str]:
    """What each column is, whatever it is called on the way."""
    names = sorted(shape_of(relation, schema).columns)
    return [canonical_text(Query(relation, (), (("n", Aggregate("count", Name(name))),))) for name in names]
