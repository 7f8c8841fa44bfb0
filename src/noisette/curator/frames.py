"""Frames that come in, of whatever library, as Arrow tables that the engine can read."""

from typing import Any

import pyarrow

from noisette.errors import InputError

__all__ = ["arrow"]


def arrow(frame: Any, name: str) -> pyarrow.Table:
    """The frame as an Arrow table whose columns have different names.

    >>> arrow(pyarrow.table({"age": [40]}), "visits").column_names
    ['age']
    """
    table = _read(frame)
    if table is None:
        raise InputError(f"The frame of table {name} cannot be read: give each of its columns one type.")
    if len({column.lower() for column in table.column_names}) < table.num_columns:
        raise InputError("Give each column a name of its own: upper and lower case do not tell names apart.")
    for i, column in enumerate(table.schema):
        if pyarrow.types.is_float16(column.type):
            table = table.set_column(i, column.name, table.column(i).cast(pyarrow.float32()))
    return table


def _read(frame: Any) -> pyarrow.Table | None:
    """None where it fails: what a library says about that may quote cells."""
    try:
        return pyarrow.table(frame)
    except Exception:
        return None
