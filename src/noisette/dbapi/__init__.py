"""Noisette as a database of Python's own interface (PEP 249), for tools that read SQL: `noisette.dbapi.connect`.

Each statement is a question that is charged what the connection was made to spend; the same one again is free. A number
comes with two more columns, the ends of its error bar. Nothing can be written, so there is nothing to commit or to roll
back: what was spent stays spent.

>>> import noisette as nz, pyarrow
>>> from noisette.dbapi import connect
>>> people = nz.open(pyarrow.table({"age": [34, 51, 68] * 100}), budget=1)
>>> with connect(people, spend="0.1") as connection:
...     cursor = connection.cursor().execute("SELECT count(*) AS n FROM data")
...     [column[0] for column in cursor.description]
['n', 'n_low', 'n_high']
"""

from noisette.dbapi.connection import Connection, Cursor, connect
from noisette.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from noisette.dbapi.values import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 2  # threads may share a connection, not a cursor
paramstyle = "qmark"
