"""Fetch columns batch by batch, in parts by unit: large results of the engine as NumPy arrays of moderate size.

Page faults on fresh memory dominate, so buffers are reused, and rows are divided into parts, each with all rows of its
units, so that whatever is computed of a part stays small, too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.engines.duckdb.identity import Identities, in_order
from noisette.engines.tie_break import NULL, words_of
from noisette.query.kind import Kind

__all__ = ["BATCH", "BATCH_WITH_TEXT", "IDENTITY", "Batch", "Columns", "Maker", "as_held", "fetched", "taken"]

BATCH = 1 << 19
"""Rows of a batch at most: as many as allocators still reuse memory for."""

BATCH_WITH_TEXT = 1 << 17
"""The same where units are fetched as they are: a batch of them takes several times the memory."""

IDENTITY = "identity"
"""The column of units as they are, by which they are told apart where `unit` is a hash."""

_PARTS = 16  # a power of two
_FIRST, _GROWTH = 1 << 20, 4  # rows at first, enough for huge pages, and how much more when they are full

Batch: TypeAlias = tuple[pyarrow.RecordBatch, NDArray[np.bool_] | None]
Maker: TypeAlias = Callable[[pyarrow.RecordBatch], NDArray[Any] | pyarrow.Array]
Columns: TypeAlias = dict[str, Any]


def fetched(batches: Iterable[Batch], makers: Mapping[str, Maker], by: str) -> list[Columns]:
    """What the makers make of each batch, in parts by the last bits of a column of whole numbers.

    Of a batch with a mask only the rows of the mask count. There are at most as many parts as batches, if these are a
    sequence. A single batch is not divided; there must be one.
    Of the column IDENTITY there are only numbers, equal for equal values; None if a value of the part is NULL.
    """
    rest = iter(batches)
    first = list(islice(rest, 2))
    many = len(batches) if isinstance(batches, Sequence) else _PARTS
    count = min(_PARTS, 1 << (many.bit_length() - 1)) if len(first) > 1 else 1
    parts = [{name: Identities() if name == IDENTITY else _Growing() for name in makers} for _ in range(count)]
    for batch, mask in chain(first, rest):
        made = {name: maker(batch) for name, maker in makers.items()}
        order, ends = _divided(made[by], mask, len(parts))
        for name, column in made.items():
            _divide(column, order, ends, [part[name] for part in parts])
    return [{name: column.whole() for name, column in part.items()} for part in parts]


def _divided(
    numbers: NDArray[np.int64], mask: NDArray[np.bool_] | None, parts: int
) -> tuple[NDArray[np.intp], list[int]]:
    """The places of rows, part after part, and where each part begins and the last ends."""
    some = None if mask is None else np.flatnonzero(mask)
    part = (numbers if some is None else numbers.take(some)) & (parts - 1)
    ends = np.cumsum(np.bincount(part, minlength=parts))
    order = np.argsort(part.astype(np.uint8), kind="stable")
    return order if some is None else some.take(order), [0, *ends.tolist()]


def _divide(
    column: NDArray[Any] | pyarrow.Array, order: NDArray[np.intp], ends: Sequence[int], parts: Sequence[Any]
) -> None:
    """Add the rows of each part; Arrow's are put in order at once and then cut, since it takes long to take few."""
    ordered = in_order(column, order) if isinstance(column, pyarrow.Array) else None
    for part, start, end in zip(parts, ends, ends[1:], strict=False):
        if ordered is None:
            part.add(column, order[start:end])
        else:
            part.append(ordered.slice(start, end - start))


class _Growing:
    """An array that grows: NumPy's by a factor, of which only what is used takes memory; Arrow's by its pieces."""

    def __init__(self) -> None:
        self._pieces: list[pyarrow.Array] = []
        self._block: NDArray[Any] = np.empty(0)
        self._used = 0

    def append(self, piece: pyarrow.Array) -> None:
        """Add a piece."""
        self._pieces.append(piece)

    def add(self, column: NDArray[Any], at: NDArray[np.intp]) -> None:
        """Add some rows of a column."""
        end = self._used + len(at)
        if end > len(self._block) or not self._used:
            larger = np.empty(max(_FIRST, _GROWTH * end), column.dtype)
            larger[: self._used] = self._block[: self._used]
            self._block = larger
        column.take(at, out=self._block[self._used : end], mode="clip")
        self._used = end

    def whole(self) -> Any:
        """All that was added."""
        return pyarrow.chunked_array(self._pieces) if self._pieces else self._block[: self._used]


# Columns that are retained


def as_held(name: str, kind: Kind) -> Maker:
    """How a column is held: text as it is, numbers in NumPy, where NULL is a number that no clean value is."""
    if kind.type == "text":
        return lambda batch: batch.column(name)
    if kind.type == "real":
        return lambda batch: words_of(batch.column(name)).view(np.float64)
    if kind.nullable or kind.type != "integer":
        return lambda batch: words_of(batch.column(name)).view(np.int64)
    return lambda batch: np.asarray(batch.column(name).to_numpy())


def taken(held: NDArray[Any] | pyarrow.ChunkedArray, at: NDArray[np.intp], kind: Kind) -> pyarrow.Array:
    """Some rows of a column that was held, for the engine."""
    if isinstance(held, pyarrow.ChunkedArray):
        return held.take(pyarrow.array(at))
    values = held.take(at)
    missing = None
    if kind.nullable:
        missing = np.isnan(values) if kind.type == "real" else values == NULL
    match kind.type:
        case "boolean":
            return pyarrow.array(values == 1, mask=missing)
        case "date":
            return pyarrow.array(values, mask=missing).cast(pyarrow.int32()).cast(pyarrow.date32())
        case "timestamp":
            return pyarrow.array(values, mask=missing).cast(pyarrow.timestamp("us"))
        case _:
            return pyarrow.array(values, mask=missing)
