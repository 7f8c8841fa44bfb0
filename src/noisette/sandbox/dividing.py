"""Rows in blocks, each unit in `each` of them, with all of its rows.

Each unit draws its blocks with coins of its own, fresh for every question. So the blocks of all other units have the
same law whether a unit is there or not, and a unit that replaces another one draws in its place: `each` blocks change,
under add/remove and under replace. (A hash of the unit as its block would not do under replace: who comes is in other
blocks than who went, and twice as many change.) Within a block the rows come in random order, since the order in which
an engine gives them may depend on rows of other blocks.
"""

import io
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.query.shape import UNIT

__all__ = ["as_bytes", "divided"]


def divided(
    rows: pyarrow.Table, names: Sequence[str], blocks: int, rng: Random, *, each: int = 1
) -> list[Callable[[], bytes]]:
    """The blocks of rows, whose columns get these names, each as bytes once they are wanted.

    Until then there is one copy of the rows, however many blocks they are in, and their places in the blocks.
    """
    block = _blocks(rows, blocks, each, rng).ravel()  # of all rows, and of all of them again until `each`
    order = np.lexsort((rng.words(len(block), np.uint64), block)) % max(1, len(rows))
    ends = np.cumsum(np.bincount(block, minlength=blocks))
    shown = rows.drop_columns([UNIT]) if UNIT in rows.column_names else rows
    whole = shown.rename_columns(list(names)).combine_chunks()

    def one(i: int) -> bytes:
        start = int(ends[i - 1]) if i else 0
        return as_bytes(whole.take(pyarrow.array(order[start : int(ends[i])])).combine_chunks())

    return [lambda i=i: one(i) for i in range(blocks)]  # type: ignore[misc]


def _blocks(rows: pyarrow.Table, blocks: int, each: int, rng: Random) -> NDArray[np.uint16]:
    """The blocks of each row, one below the other: drawn by its unit, or by the row itself where that is the unit."""
    if UNIT not in rows.column_names:
        return _drawn(len(rows), blocks, each, rng)
    unit: NDArray[np.int64] = rows.column(UNIT).to_numpy()
    return _drawn(int(unit.max()) + 1 if len(unit) else 0, blocks, each, rng)[:, unit]


def _drawn(count: int, blocks: int, each: int, rng: Random) -> NDArray[np.uint16]:
    """So many times `each` different blocks, every choice of them as likely as any other.   [Bentley-Floyd 1987]

    One of the first blocks is drawn, and one block more is among these each time; who has the one that is drawn already
    takes the last. That some are likelier by 2^-50 is nothing to privacy: all units draw by one law.
    """
    chosen = np.empty((each, count), np.uint16)
    for i, last in enumerate(range(blocks - each, blocks)):
        drawn = (rng.words(count, np.uint64) % np.uint64(last + 1)).astype(np.uint16)
        chosen[i] = np.where((chosen[:i] == drawn).any(axis=0), np.uint16(last), drawn)
    return chosen


def as_bytes(rows: pyarrow.Table) -> bytes:
    """A table as Arrow's own bytes."""
    buffer = io.BytesIO()
    with pyarrow.ipc.new_stream(buffer, rows.schema) as writer:
        writer.write_table(rows)
    return buffer.getvalue()
