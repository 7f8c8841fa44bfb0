"""Rows in disjoint blocks, all rows of one unit in the same.

Each unit draws its block with coins of its own, fresh for every question. So the blocks of all other units have the
same law whether a unit is there or not, and a unit that replaces another one draws in its place: one block changes,
under add/remove and under replace. (A hash of the unit as its block would not do under replace: who comes is in another
block than who went, and two blocks change.) Within a block the rows come in random order, since the order in which an
engine gives them may depend on rows of other blocks.
"""

import io
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.query.stability import UNIT

__all__ = ["as_bytes", "divided"]


def divided(rows: pyarrow.Table, names: Sequence[str], blocks: int, rng: Random) -> list[Callable[[], bytes]]:
    """The blocks of rows, whose columns get these names, each as bytes once they are wanted."""
    block = _blocks(rows, blocks, rng)
    order = np.lexsort((rng.words(len(rows), np.uint64), block))
    ends = np.cumsum(np.bincount(block, minlength=blocks))
    shown = rows.drop_columns([UNIT]) if UNIT in rows.column_names else rows
    mixed = shown.rename_columns(list(names)).take(pyarrow.array(order)).combine_chunks()

    def one(i: int) -> bytes:
        start = int(ends[i - 1]) if i else 0
        return as_bytes(mixed.slice(start, int(ends[i]) - start))

    return [lambda i=i: one(i) for i in range(blocks)]  # type: ignore[misc]


def _blocks(rows: pyarrow.Table, blocks: int, rng: Random) -> NDArray[np.int64]:
    """The block of each row: drawn by its unit, or by the row itself where that is the unit."""
    if UNIT not in rows.column_names:
        return _drawn(len(rows), blocks, rng)
    unit: NDArray[np.int64] = rows.column(UNIT).to_numpy()
    return _drawn(int(unit.max()) + 1 if len(unit) else 0, blocks, rng)[unit]


def _drawn(count: int, blocks: int, rng: Random) -> NDArray[np.int64]:
    return np.asarray((rng.words(count, np.uint64) % np.uint64(blocks)).astype(np.int64))


def as_bytes(rows: pyarrow.Table) -> bytes:
    """A table as Arrow's own bytes."""
    buffer = io.BytesIO()
    with pyarrow.ipc.new_stream(buffer, rows.schema) as writer:
        writer.write_table(rows)
    return buffer.getvalue()
