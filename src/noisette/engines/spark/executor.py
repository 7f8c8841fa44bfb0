"""What runs on executors: rows in, exact parts out, by the engine that reads files (`duckdb`).

Every number is that of files with the same rows, to the last bit. Nothing of a question is written for Spark, except
sums of stored columns (`totals`).
An error of Spark's would quote a value, in a log at least: whatever happens here is raised as one fixed sentence.
"""

import gc
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow
from pyarrow import compute

from noisette.engines.spark.packing import COUNT, packed, stream_of, table_of
from noisette.errors import NoisetteError
from noisette.query.measure import Measure

if TYPE_CHECKING:
    from sqlglot import exp

    from noisette.engines.duckdb.retained import RetainedRows
    from noisette.engines.duckdb.source import DuckDB
    from noisette.engines.spark.parquet import Files
    from noisette.engines.sql.totals import Totals

__all__ = [
    "COUNT",
    "PACKED",
    "PARTS",
    "TAG",
    "Batches",
    "Function",
    "Layout",
    "ask",
    "merge_parts",
    "merging",
    "of_counted",
    "of_retained",
    "of_totals",
    "of_units",
    "parts_of",
    "reading",
    "retaining",
    "sending",
    "settle",
    "valid_rows",
]

Batches: TypeAlias = Iterable[pyarrow.RecordBatch]
Function: TypeAlias = Callable[[Batches], Iterator[pyarrow.RecordBatch]]

TAG = "table"
"""The column that numbers the table of a row, where the rows of several tables travel together."""

PARTS = "parts"
"""The column of parts that were computed in the pass that retained the rows, as Arrow streams."""

PACKED = pyarrow.schema(
    dict.fromkeys(("types", "rows", "keys"), pyarrow.binary()) | {"size": pyarrow.int64(), PARTS: pyarrow.binary()}
)
"""Retained rows as they are held: types of the stored columns, some rows, keys if they are unknown, how many codes;
and the first question's parts, if these are few."""

_DIGIT = 7  # bits: a row that stands for many is copied less than 128 times, whatever its number is
_CHUNK = 1 << 21  # rows that are computed with at once, where each row is a unit
_A_PARCEL = 256  # rows, about: with many buckets, more rows are packed at once
_GATHERED = 1 << 30  # bytes of rows that are packed at once, if there is more than one batch
_FAILED = "An executor could not compute this; what it said stays inside, since it may quote data."


@dataclass(frozen=True)
class Layout:
    """How rows travel: those of private tables as columns c0, c1, ..., those of public ones whole, as Arrow streams.

    `tables` holds for each private table the numbers and names of its columns; `arrive` makes rows of what Spark sends.
    """

    tables: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
    public: tuple[tuple[str, bytes], ...]
    arrive: "Callable[[Batches], Batches]" = iter

    def engine(self, rows: pyarrow.Table) -> "DuckDB":
        """An engine with the rows that came, and with the public tables."""
        from noisette.engines.duckdb.source import DuckDB

        frames = {name: table_of(stream) for name, stream in self.public}
        for tag, (name, columns) in enumerate(self.tables):
            own = rows if len(self.tables) == 1 else rows.filter(compute.equal(rows.column(TAG), tag))
            made = {stem: own.column(f"c{i}") for i, stem in columns}
            frames[name] = pyarrow.table(made or {"nothing": pyarrow.nulls(len(own), pyarrow.bool_())})
        return DuckDB(frames, threads=1)


def of_units(
    layout: Layout, compute_: "Callable[[DuckDB], pyarrow.Table]", result: pyarrow.Schema, *, whole: bool
) -> Function:
    """A function of the rows that an executor gets; all at once if they are `whole` units, else some at a time."""

    def computed(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        def made() -> Iterator[pyarrow.RecordBatch]:
            for rows in _tables(layout.arrive(batches), None if whole else _CHUNK):
                yield from _typed(compute_(layout.engine(rows)), result)

        return _quietly(made)

    return computed


def reading(files: "Files", names: Sequence[str], schema: pyarrow.Schema) -> "Callable[[Batches], Batches]":
    """A function of numbers of splits: the columns that they have of files, under the names and types of a schema."""

    def read(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        from noisette.engines.spark.parquet import tables_in

        splits = files.splits
        wanted = (splits[number] for batch in batches for number in batch.column(0).to_pylist())
        for table in tables_in(files, wanted, names, schema):
            yield from table.to_batches()

    return read


def sending(
    files: "Files", names: Sequence[str], schema: pyarrow.Schema, unit: str, buckets: Sequence[int], number: int
) -> Function:
    """The same, of rows that are packed for the bucket of their unit (`packing`); `number` is that of the table."""
    read, most = reading(files, names, schema), max(_CHUNK // 2, _A_PARCEL * len(buckets))

    def sent(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        return _quietly(lambda: packed(_gathered(read(batches), most), unit, buckets, number, hash_of=_hashed))

    return sent


def _gathered(batches: Batches, most: int) -> Iterator[pyarrow.Table]:
    """The rows as tables of about `most` rows, or fewer long ones: no column of a table has 2^31 bytes."""
    some: list[pyarrow.RecordBatch] = []
    for batch in batches:
        if sum(map(len, some)) >= most or sum(one.nbytes for one in [*some, batch]) > _GATHERED:
            yield from [pyarrow.Table.from_batches(some)] if some else []
            some = []
        some.append(batch)
    if some:
        yield pyarrow.Table.from_batches(some)


def _hashed(units: pyarrow.Table) -> pyarrow.Table:
    from sqlglot import exp

    from noisette.engines.sql.syntax import column, hash_of

    made = exp.alias_(hash_of(*map(column, units.column_names)), "hash")
    return ask(exp.select(made).from_("units"), {"units": units})


def retaining(
    layout: Layout,
    retain: "Callable[[DuckDB], RetainedRows]",
    compute_: "Callable[[DuckDB, RetainedRows], pyarrow.Table] | None" = None,
) -> Function:
    """A function of the rows of whole units: what is retained of them, packed into few rows (`PACKED`).

    `compute_` makes the parts of the question that retains them, so that it need not read what is held.
    """

    def computed(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        def made() -> Iterator[pyarrow.RecordBatch]:
            for rows in _tables(layout.arrive(batches), None):
                engine = layout.engine(rows)
                found = retain(engine)
                parts = None if compute_ is None else stream_of(compute_(engine, found))
                keys = None if found.keys is None else stream_of(found.keys)
                types = stream_of(rows.schema.empty_table())
                for start in range(0, max(len(found.rows), 1), _CHUNK):
                    held = types, stream_of(found.rows.slice(start, _CHUNK)), keys, found.size, parts
                    yield pyarrow.RecordBatch.from_pylist([dict(zip(PACKED.names, held, strict=True))], PACKED)
                    parts = None

        return _quietly(made)

    return computed


def of_retained(
    layout: Layout, compute_: "Callable[[DuckDB, RetainedRows], pyarrow.Table]", result: pyarrow.Schema
) -> Function:
    """A function of what is held of some units: an engine without rows, and what was retained of them."""

    def computed(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        from noisette.engines.duckdb.retained import RetainedRows

        def made() -> Iterator[pyarrow.RecordBatch]:
            for held_as in (row for batch in batches for row in batch.to_pylist()):
                types, rows, keys = (held_as[name] and table_of(held_as[name]) for name in PACKED.names[:3])
                held = RetainedRows(rows, held_as["size"], keys)
                yield from _typed(compute_(layout.engine(types), held), result)

        return _quietly(made)

    return computed


def of_counted(layout: Layout, partial: "Callable[[DuckDB], pyarrow.Table]", result: pyarrow.Schema) -> Function:
    """A function of different rows, with how many there are of each, where each row is a unit.

    Parts add up over rows, so those of n equal rows are n times those of one. With n = a + 128 b + ... they are those
    of a rows, 128 times those of b rows, and so on: a number of rows costs its digits.
    """

    def computed(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        from noisette.engines.sql.partial import multiplied

        def made() -> Iterator[pyarrow.RecordBatch]:
            for rows in _tables(batches, _CHUNK):
                for times, copies in _copies(rows):
                    yield from _typed(multiplied(partial(layout.engine(copies)), times), result)

        return _quietly(made)

    return computed


def _copies(rows: pyarrow.Table) -> Iterator[tuple[int, pyarrow.Table]]:
    """Tables of copies of rows, and how often each table counts: together, each row as often as its number says."""
    counts = rows.column(COUNT).to_numpy()
    rows = rows.drop_columns([COUNT])
    for shift in range(0, int(counts.max()).bit_length(), _DIGIT):
        digits = (counts >> shift) & ((1 << _DIGIT) - 1)
        total = np.cumsum(digits)
        ends = np.minimum(np.searchsorted(total, np.arange(_CHUNK, total[-1] + _CHUNK, _CHUNK)) + 1, len(rows)).tolist()
        for start, end in zip([0, *ends], ends, strict=False):
            at = np.repeat(np.arange(start, end), digits[start:end])
            if len(at):
                yield 1 << shift, rows.take(pyarrow.array(at))


def parts_of(found: pyarrow.Table, result: pyarrow.Schema) -> pyarrow.Table:
    """The parts that executors sent, as rows or as streams of rows."""
    if found.column_names == [PARTS]:
        found = pyarrow.concat_tables(
            [result.empty_table(), *(table_of(one).cast(result) for one in found.column(PARTS).to_pylist() if one)]
        )
    return found.cast(result)


def merging(measures: Sequence[Measure], result: pyarrow.Schema) -> Function:
    """A function that adds up all parts of some groups."""

    def computed(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        def made() -> Iterator[pyarrow.RecordBatch]:
            for parts in _tables(batches, None):
                yield from _typed(merge_parts(parts, measures), result)

        return _quietly(made)

    return computed


def merge_parts(parts: pyarrow.Table, measures: Sequence[Measure]) -> pyarrow.Table:
    """The cells of some groups, from all of their parts."""
    from noisette.engines.sql.partial import merged

    return merged(parts, measures, ask)


def of_totals(totals: "Totals", secret: bytes) -> Callable[[pyarrow.Table], pyarrow.Table]:
    """A function of groups with their totals and, before them, the place that they were sent to: whole cells there."""
    apart = totals.with_place()

    def cells(groups: pyarrow.Table) -> pyarrow.Table:
        from noisette.engines.duckdb.source import DuckDB

        engine = DuckDB({apart.table: groups.rename_columns([*apart.by, *apart.names])}, threads=1)
        found = apart.exact(engine.aggregate(apart.request, apart.schema, secret))
        assert found.keys is not None
        names = [groups.column_names[0], *(f"k{i}" for i in range(len(totals.request.keys)))]
        numbers = {f"m{i}": pyarrow.array(made) for i, made in enumerate(found.measures)}
        return pyarrow.table(dict(zip(names, found.keys.columns, strict=True)) | numbers)

    return cells


def valid_rows() -> Function:
    """A function that makes text valid, as the engine would (`engines.files`)."""

    def computed(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        from noisette.engines.files import valid_table

        def made() -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                yield from _typed(valid_table(pyarrow.Table.from_batches([batch]), "rows"), batch.schema)

        return _quietly(made)

    return computed


def _quietly(made: Callable[[], Iterator[pyarrow.RecordBatch]]) -> Iterator[pyarrow.RecordBatch]:
    """What is made; an error becomes ours, raised where its own is no longer around."""
    failed = False
    try:
        settle()
        yield from made()
    except Exception:
        failed = True
    if failed:
        raise NoisetteError(_FAILED)


@cache
def settle() -> None:
    """Load the engine once for each worker, and let PySpark's collection of garbage after each task leave it out.

    Without that, the collection takes longer than a small task.
    """
    for name in ("duckdb.source", "sql.partial"):
        importlib.import_module(f"noisette.engines.{name}")
    if "SPARK_REUSE_WORKER" in os.environ:
        gc.collect()
        gc.freeze()


def _tables(batches: Batches, most: int | None) -> Iterator[pyarrow.Table]:
    """The rows as tables of about `most` rows; none without rows."""
    some: list[pyarrow.RecordBatch] = []
    count = 0
    for batch in batches:
        if len(batch):
            some.append(batch)
            count += len(batch)
        if most is not None and count >= most:
            yield pyarrow.Table.from_batches(some)
            some, count = [], 0
    if some:
        yield pyarrow.Table.from_batches(some)


def _typed(table: pyarrow.Table, schema: pyarrow.Schema) -> list[pyarrow.RecordBatch]:
    """A table in the types that Spark expects."""
    columns = [table.column(i).cast(field.type) for i, field in enumerate(schema)]
    found: list[pyarrow.RecordBatch] = pyarrow.table(columns, schema).combine_chunks().to_batches()
    return found


def ask(select: "exp.Select", tables: Mapping[str, pyarrow.Table]) -> pyarrow.Table:
    """What a SELECT makes of tables by name, in an engine of its own."""
    import duckdb

    from noisette.engines.duckdb.session import text_of

    with duckdb.connect(":memory:", config={"threads": 1, "temp_directory": ""}) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(text_of(select)).to_arrow_table()
