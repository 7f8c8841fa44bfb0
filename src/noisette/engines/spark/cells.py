"""Exact cells as a frame: their columns, their canonical order, and the bytes that stand for them.

A frame of cells has a row for each cell: the columns `k0`, `k1`, ... of its keys, or `code`, its place among all
combinations of declared keys; then its measures `m0`, `m1`, ..., 64-bit integers or, for histograms, lists of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from noisette.errors import InputError
from noisette.query.kind import Type
from noisette.query.measure import Exact, Request
from noisette.query.operations import kind_of
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.query.types import ARROW

__all__ = ["PLACE", "CellLayout", "canonical", "encoded"]

PLACE = "code"

# How keys are stored and hashed: a moment is a number, so that no time zone, calendar or Parquet setting of the cluster
# has a part in it.
_STORED: dict[Type, Any] = {**ARROW, "date": pyarrow.int32(), "timestamp": pyarrow.int64()}


@dataclass(frozen=True)
class CellLayout:
    """The columns of a frame of cells, from the plan alone.

    `keys`: the types of unknown keys, or how many cells there are if all keys are declared · `steps` of each measure
    that is a histogram, None for those that are numbers.
    """

    keys: tuple[Type, ...] | int
    steps: tuple[int | None, ...]

    @classmethod
    def of(cls, request: Request, schema: Schema) -> "CellLayout":
        """The layout of what an engine answers to a request."""
        steps = tuple(m.cells if m.what == "histogram" else None for m in request.measures)
        known = [len(domain) for domain in request.domains if domain is not None]
        if len(known) == len(request.domains):
            return cls(prod(known), steps)
        scope = shape_of(request.source, schema).columns
        return cls(tuple(kind_of(key, scope).type for key in request.keys), steps)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that say which cell it is."""
        return (PLACE,) if isinstance(self.keys, int) else tuple(f"k{i}" for i in range(len(self.keys)))

    @property
    def _types(self) -> tuple[Type, ...]:
        return ("integer",) if isinstance(self.keys, int) else self.keys

    @property
    def empty(self) -> pyarrow.Table:
        """The table without cells."""
        kinds = [_STORED[kind] for kind in self._types]
        kinds += [pyarrow.int64() if width is None else pyarrow.list_(pyarrow.int64()) for width in self.steps]
        return pyarrow.schema(list(zip(self._columns, kinds, strict=True))).empty_table()

    @property
    def _columns(self) -> list[str]:
        return [*self.names, *(f"m{i}" for i in range(len(self.steps)))]

    def stored(self, table: pyarrow.Table) -> pyarrow.Table:
        """Cells with the types that they are stored and hashed by, whatever the types are that an engine sends."""
        return pyarrow.Table.from_arrays(
            [_as_stored(table.column(field.name), field.type) for field in self.empty.schema], schema=self.empty.schema
        )

    def exact(self, table: pyarrow.Table) -> Exact:
        """What a draw reads, from stored cells."""
        keys = None if isinstance(self.keys, int) else self.shown(table.select(self.names))
        measures = (table.column(f"m{i}") for i in range(len(self.steps)))
        return Exact(keys, tuple(_numbers(c, width) for c, width in zip(measures, self.steps, strict=True)))

    def shown(self, table: pyarrow.Table) -> pyarrow.Table:
        """A table that begins with stored keys, with keys as answers have them."""
        for i, kind in enumerate(self._types):
            table = table.set_column(i, table.column_names[i], table.column(i).cast(ARROW[kind]))
        return table


def _as_stored(column: pyarrow.ChunkedArray, kind: Any) -> pyarrow.ChunkedArray:
    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", column.type.tz))
    return column.cast(kind)


def _numbers(column: pyarrow.ChunkedArray, width: int | None) -> Any:
    if width is None:
        return column.to_numpy()
    return _flat(column).reshape(len(column), width)


def _flat(column: pyarrow.ChunkedArray) -> Any:
    return np.concatenate([np.zeros(0, np.int64), *(chunk.flatten().to_numpy() for chunk in column.chunks)])


# Order and bytes


def canonical(table: pyarrow.Table, layout: CellLayout) -> pyarrow.Table:
    """The cells in an order that depends on their keys alone, by the bits of each: no two cells share all keys.

    >>> layout = CellLayout(("real",), (None,))
    >>> cells = layout.stored(pyarrow.table({"k0": [2.0, None, -0.0, 0.0], "m0": [1, 2, 3, 4]}))
    >>> canonical(cells, layout).column("m0").to_pylist()
    [3, 4, 1, 2]
    """
    keys = {name: _sortable(table.column(name)) for name in layout.names}
    by = [(name, "ascending") for name in keys]
    return table.take(pyarrow.compute.sort_indices(pyarrow.table(keys), sort_keys=by))


def _sortable(column: pyarrow.ChunkedArray) -> Any:
    if not pyarrow.types.is_floating(column.type):
        return column
    bits = column.fill_null(0.0).to_numpy().view(np.int64)
    return pyarrow.array(bits, mask=column.is_null().to_numpy())


def encoded(table: pyarrow.Table) -> Iterator[bytes | memoryview]:
    """The bytes of stored cells, part by part: two tables of one layout have equal parts only if they are equal.

    Of each column: its type, where it is NULL, how long each text or list is, and the values one after the other. Bits
    of doubles count, so that 0 and -0 are two values.
    """
    yield len(table).to_bytes(8, "little")
    for column in table.columns:
        yield str(column.type).encode()
        yield column.is_null().to_numpy().tobytes()
        yield from _values(column)


def _values(column: pyarrow.ChunkedArray) -> Iterator[bytes | memoryview]:
    if pyarrow.types.is_list(column.type):
        yield pyarrow.compute.list_value_length(column).fill_null(0).to_numpy().tobytes()
        yield memoryview(_flat(column))
    elif pyarrow.types.is_string(column.type):
        yield pyarrow.compute.binary_length(column).fill_null(0).to_numpy().tobytes()
        yield _letters(column.fill_null("").cast(pyarrow.large_string()).combine_chunks())
    elif pyarrow.types.is_primitive(column.type):
        zero = pyarrow.scalar(False if pyarrow.types.is_boolean(column.type) else 0, column.type)
        yield column.fill_null(zero).to_numpy().tobytes()
    else:
        raise InputError("Cells have keys of the six types of a schema, and whole numbers as measures.")


def _letters(texts: pyarrow.LargeStringArray) -> bytes | memoryview:
    """The bytes of all texts, one after the other."""
    _, places, letters = texts.buffers()
    if letters is None:
        return b""
    ends = np.frombuffer(places, np.int64)[[texts.offset, texts.offset + len(texts)]]
    return memoryview(letters)[ends[0] : ends[1]]
