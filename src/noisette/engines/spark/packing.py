"""Rows that executors read, as they travel to their units: packed by bucket, in few bytes.

What a shuffle costs is its bytes. So whole numbers are sent in the narrowest type that holds those of a batch, text
with few values as a dictionary, a bucket's rows as one Arrow stream, and equal rows of a unit that has very many once,
with their number; what arrives has the types of before, and all rows.

    unit -> hash -> bucket, one for each partition -> a row (key of the bucket, table, bytes) -> repartition(key)

Equal units have equal hashes: whole numbers of any width are hashed as 64 bits, all else by DuckDB, text once it is
valid.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute, types

from noisette.engines.bounding.words import pieces
from noisette.engines.files import valid_table

__all__ = ["COUNT", "PARCEL", "bucket_keys", "packed", "stream_of", "table_of", "unpacked"]

COUNT = "count"
"""The column that says how many rows are equal to a row, where different ones travel once."""

PARCEL = pyarrow.schema({"bucket": pyarrow.int32(), "table": pyarrow.int32(), "rows": pyarrow.binary()})
"""Rows of one table and one bucket."""

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
_HALF = np.uint64(32)
_BYTES = 1 << 17  # of a parcel, about: Spark hands on up to ten thousand at once, below 2^31 bytes
_FEW, _SMALL = 256, 1 << 14  # values of a dictionary, and its bytes, which travel with each parcel
_LOOK = 1024  # values that are looked at, before all are
_EVERY = 61  # of so many rows one is looked at
_OFTEN = 64  # of the rows that are looked at: a unit that has more of them is counted
_NARROW = (pyarrow.int8(), pyarrow.int16(), pyarrow.int32())

Hash = Callable[[pyarrow.Table], pyarrow.Table]
"""Returns the column `hash`, of a table's only column."""


def packed(
    tables: Iterable[pyarrow.Table], unit: str, keys: Sequence[int], number: int, hash_of: Hash
) -> Iterator[pyarrow.RecordBatch]:
    """The rows that belong to somebody, in parcels; `keys` are those of the buckets, `number` that of the table."""
    for table in tables:
        owned = table.filter(compute.is_valid(table.column(unit))) if table.column(unit).null_count else table
        for rows in _counted(owned, unit):
            if len(rows):
                yield _parcels(rows, _buckets(rows.column(unit), len(keys), hash_of), keys, number)


def _parcels(rows: pyarrow.Table, bucket: NDArray[np.integer], keys: Sequence[int], number: int) -> pyarrow.RecordBatch:
    """The rows in parcels, each of one bucket."""
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=len(keys))).tolist()
    sent = pyarrow.table({f.name: _narrow(rows.column(f.name)) for f in rows.schema}).take(pyarrow.array(order))
    most = max(1, len(sent) * _BYTES // max(1, sent.nbytes))
    parcels = [
        (keys[i], number, stream_of(sent.slice(at, min(most, end - at))))
        for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
        for at in range(start, end, most)
    ]
    columns = zip(*parcels, strict=True)
    made = [pyarrow.array(column, field.type) for column, field in zip(columns, PARCEL, strict=True)]
    return pyarrow.RecordBatch.from_arrays(made, schema=PARCEL)


def _counted(table: pyarrow.Table, unit: str) -> tuple[pyarrow.Table, ...]:
    """The rows; of units with very many rows, the different ones in a table of their own, with the number of each.

    Rows are equal if all bits of their values are. A sample of the rows says which units have very many; all rows
    arrive, whichever these are.

    >>> rows = pyarrow.table({"unit": [7] * 9000 + [8], "age": [30, 30, 41] * 3000 + [5]})
    >>> [some.to_pydict() for some in _counted(rows, "unit")]
    [{'unit': [8], 'age': [5]}, {'unit': [7, 7], 'age': [30, 41], 'count': [6000, 3000]}]
    """
    looked_at = table.column(unit).take(pyarrow.array(np.arange(0, len(table), _EVERY)))
    found = looked_at.value_counts()
    often = found.field("values").filter(compute.greater(found.field("counts"), _OFTEN))
    if not len(often):
        return (table,)
    many = compute.is_in(table.column(unit), often)
    different = table.filter(many).group_by(table.column_names, use_threads=False).aggregate([([], "count_all")])
    return table.filter(compute.invert(many)), different.rename_columns([*table.column_names, COUNT])


def unpacked(
    batches: Iterable[pyarrow.RecordBatch], schema: pyarrow.Schema, tag: str | None
) -> Iterator[pyarrow.RecordBatch]:
    """The rows as they were; columns that a table has not are NULL, and `tag` names the column that numbers tables."""
    for batch in batches:
        for number, rows in zip(batch.column("table").to_pylist(), batch.column("rows"), strict=True):
            found = table_of(rows.as_buffer())
            if COUNT in found.column_names:
                found = found.take(pyarrow.array(np.repeat(np.arange(len(found)), found.column(COUNT).to_numpy())))
            named = dict(zip(found.column_names, found.columns, strict=True))
            if tag is not None:
                named[tag] = pyarrow.array(np.full(len(found), number, np.int32))
            made = [
                named[f.name].cast(f.type) if f.name in named else pyarrow.nulls(len(found), f.type) for f in schema
            ]
            yield from pyarrow.table(made, schema).to_batches()


# Buckets


def _buckets(unit: pyarrow.ChunkedArray, count: int, hash_of: Hash) -> NDArray[np.uint16 | np.uint32]:
    if not types.is_integer(unit.type):
        unit = hash_of(valid_table(pyarrow.table({"unit": unit}), "rows")).column("hash")
    made: NDArray[np.uint16 | np.uint32] = np.empty(len(unit), np.uint16 if count <= 1 << 16 else np.uint32)
    done = 0
    for chunk in unit.chunks:
        for piece in pieces(len(chunk)):
            some = chunk[piece].to_numpy()
            words = some.astype(np.int64).view(np.uint64)
            words ^= words >> _HALF
            words *= _MIX
            words >>= _HALF
            words *= np.uint64(count)
            words >>= _HALF
            made[done : done + len(some)] = words
            done += len(some)
    return made


@cache
def bucket_keys(partitions: int) -> tuple[int, ...]:
    """A number for each bucket, such that Spark sends each to a partition of its own.

    Spark goes by Murmur3. With another server, or if it changes, rows of a unit still meet: only the balance is lost.

    >>> len(set(bucket_keys(200)))
    200
    """
    tried = 16 * partitions
    while True:
        numbers = np.arange(tried, dtype=np.uint32)
        _, first = np.unique(_murmur3(numbers) % partitions, return_index=True)
        if len(first) == partitions:
            return tuple(first.tolist())
        tried *= 2


def _murmur3(numbers: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Murmur3 of whole numbers of 32 bits with Spark's seed, as numbers with a sign.

    >>> _murmur3(np.array([1], np.uint32)).tolist()
    [-559580957]
    """

    def turned(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
        return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))

    words = turned(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    words = turned(words ^ np.uint32(42), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    words ^= np.uint32(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        words = (words ^ (words >> np.uint32(shift))) * np.uint32(factor)
    return (words ^ (words >> np.uint32(16))).view(np.int32).astype(np.int64)


# Bytes


def _narrow(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    """The same values in fewer bytes, if that is easy."""
    column = column.combine_chunks()
    if types.is_signed_integer(column.type):
        ends = compute.min_max(column).as_py()
        low, high = ends["min"] or 0, ends["max"] or 0
        kind = next((kind for kind in _NARROW if max(~low, high) < 1 << (kind.bit_width - 1)), column.type)
        return column.cast(kind) if kind.bit_width < column.type.bit_width else column
    if types.is_string(column.type) and len(column.slice(0, _LOOK).unique()) <= _FEW:
        found = column.dictionary_encode()
        if len(found.dictionary) <= _FEW and found.dictionary.nbytes <= _SMALL:
            return pyarrow.DictionaryArray.from_arrays(found.indices.cast(pyarrow.int16()), found.dictionary)
    return column


def stream_of(table: pyarrow.Table) -> bytes:
    """A table as bytes."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def table_of(stream: "bytes | pyarrow.Buffer") -> pyarrow.Table:
    """The table of such bytes."""
    return pyarrow.ipc.open_stream(stream).read_all()
