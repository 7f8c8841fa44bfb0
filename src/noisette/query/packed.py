"""What was drawn as bytes, to be kept and handed out again: Arrow tables, one for each task, nothing that can run."""

import hashlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow

from noisette.errors import PrivacyError
from noisette.query.design import Design, Task
from noisette.query.draw import Noised

__all__ = ["packed", "unpacked"]

_SIZE = b"size"


def packed(drawn: Sequence[Noised]) -> bytes:
    """Keys, measures and quantiles of each task; measures are named by what they are, not by their place."""
    buffer = io.BytesIO()
    for noised in drawn:
        table = _table(noised)
        with pyarrow.ipc.new_stream(buffer, table.schema) as writer:
            writer.write_table(table)
    return buffer.getvalue()


def _table(noised: Noised) -> pyarrow.Table:
    keys = [] if noised.keys is None else noised.keys.columns
    columns = {f"key {i}": column for i, column in enumerate(keys)}
    columns |= {_name(measure): pyarrow.array(values) for measure, values in noised.measures.items()}
    for place, ends in noised.quantiles.items():
        columns |= {f"{_name(*place)} {i}": pyarrow.array(end) for i, end in enumerate(ends)}
    return pyarrow.table(columns).replace_schema_metadata({_SIZE: str(noised.size)})


def _name(*what: object) -> str:
    """A measure, or a quantile of one, in a few letters that are the same in every process."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:32]


def unpacked(kept: bytes, design: Design) -> tuple[Noised, ...]:
    """What was packed for the same question; raise PrivacyError if it is not that."""
    try:
        buffer = io.BytesIO(kept)
        found = tuple(_noised(pyarrow.ipc.open_stream(buffer).read_all(), task) for task in design.tasks)
        whole = buffer.read() == b""
    except (pyarrow.ArrowException, ValueError, KeyError, TypeError, OSError):
        whole = False
    if not whole:
        raise PrivacyError("The answer that was kept for this question was changed: restore a backup of the ledger.")
    return found


def _noised(table: pyarrow.Table, task: Task) -> Noised:
    table.validate(full=True)
    size = int((table.schema.metadata or {})[_SIZE])
    if table.num_columns and table.num_rows != size:
        raise ValueError("another size")
    keys = [name for name in table.column_names if name.startswith("key ")]
    told = [task.members] if task.members is not None and _name(task.members) in table.column_names else []
    measures = {m: _numbers(table, _name(m)) for m in (*task.noised, *told)}
    quantiles: dict[Any, Any] = {
        place: tuple(_numbers(table, f"{_name(*place)} {i}") for i in range(3)) for place in task.quantiles
    }
    return Noised(table.select(keys) if keys else None, size, measures, quantiles)


def _numbers(table: pyarrow.Table, name: str) -> Any:
    return np.array(table.column(name).to_numpy(), dtype=float)
