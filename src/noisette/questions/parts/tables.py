"""Answers that are drawn as one Arrow table: their columns with error bars, and their bytes."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.errors import PrivacyError

__all__ = ["columns_of", "pack_table", "unpack_table"]


def columns_of(drawn: pyarrow.Table) -> tuple[Column, ...]:
    """The columns of an answer; the error bar of x goes from x_low to x_high.

    >>> [column.name for column in columns_of(pyarrow.table({"n": [3], "n_low": [1.0], "n_high": [5.0]}))]
    ['n']
    """
    return tuple(_columns(drawn))


def pack_table(drawn: pyarrow.Table) -> bytes:
    """A table as an Arrow stream."""
    buffer = io.BytesIO()
    with pyarrow.ipc.new_stream(buffer, drawn.schema) as writer:
        writer.write_table(drawn)
    return buffer.getvalue()


def unpack_table(kept: bytes) -> pyarrow.Table:
    """A table from its Arrow stream."""
    try:
        table = pyarrow.ipc.open_stream(io.BytesIO(kept)).read_all()
        table.validate(full=True)
    except (pyarrow.ArrowException, ValueError, OSError):
        table = None
    if table is None:
        raise PrivacyError("The answer that was kept for this question was changed: restore a backup of the ledger.")
    return table


def _columns(drawn: pyarrow.Table) -> Iterator[Column]:
    names = drawn.column_names
    ends = {f"{name}_{end}" for name in names for end in ("low", "high") if f"{name}_{end}" in names}
    for name in names:
        if name in ends:
            continue
        low, high = (_numbers(drawn, f"{name}_{end}") if f"{name}_{end}" in ends else None for end in ("low", "high"))
        yield Column(name, drawn.column(name).combine_chunks(), low, high)


def _numbers(drawn: pyarrow.Table, name: str) -> Any:
    return np.array(drawn.column(name).to_numpy(), dtype=float)
