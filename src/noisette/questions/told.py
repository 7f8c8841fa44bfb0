"""What offers of small tables share: how an answer is told, kept and read again."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow

from noisette.errors import PrivacyError
from noisette.releases import Column

__all__ = ["Told"]


class Told:
    """An offer whose answer is one Arrow table; a number x has the ends of its error bar in x_low and x_high."""

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The columns of the answer."""
        return [tuple(_columns(drawn))]

    def pack(self, drawn: pyarrow.Table) -> bytes:
        """What was drawn as bytes, to be kept."""
        buffer = io.BytesIO()
        with pyarrow.ipc.new_stream(buffer, drawn.schema) as writer:
            writer.write_table(drawn)
        return buffer.getvalue()

    def unpack(self, kept: bytes) -> pyarrow.Table:
        """What was drawn, from its bytes."""
        try:
            table = pyarrow.ipc.open_stream(io.BytesIO(kept)).read_all()
            table.validate(full=True)
        except (pyarrow.ArrowException, ValueError, OSError):
            table = None
        if table is None:
            raise PrivacyError(
                "The answer that was kept for this question was changed: restore a backup of the ledger."
            )
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
