"""A cell is noised once, whatever Spark does: retries, speculation, lost executors, a second look at a lazy frame.

    parts of cells -> bucket -> repartition -> mapInArrow(add up; draw with coins of the bucket) -> Parquet -> read

A bucket is a set of cells by a hash of their keys. One task has all cells of a bucket, and its coins follow from a
fresh secret key, the bucket and all cells in it, keys and values (`exact.keyed`). So a task that runs again repeats its
noise, and one that met other values has coins of its own. No coin depends on a partition, since Spark may cut
them anew. Only what the commit protocol committed is read; the rest is deleted.   [docs/proofs/noised-once.md]

The key is in the memory of the driver, and goes to the executors in the task, which sees the exact cells anyway. It is
in no plan text, file name or log. Nobody else must read along: switch on encryption of shuffle, spill and RPC.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow

from noisette.engines.contract import CellDraw
from noisette.engines.spark.catalogue import functions_of, spark_schema
from noisette.engines.spark.cells import PLACE, CellLayout, canonical, encoded
from noisette.engines.spark.executor import settle
from noisette.engines.spark.routing import partitions_of
from noisette.engines.spark.scratch import Scratch, write
from noisette.engines.spark.silence import unlogged
from noisette.errors import NoisetteError, UnfinishedError
from noisette.exact.keyed import KeyedRandom, keyed_digest, new_key
from noisette.exact.random import SYSTEM, Random
from noisette.progress import doing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Merge", "noised", "noised_once"]

T = TypeVar("T")

_BUCKET = "bucket"
_BUCKETS = 256  # a public number: 10^8 cells are 400,000 in a bucket
_PURPOSE = b"noisette bucket"
_FAILED = "The cells of this question could not be noised."  # no other words leave a task: they may quote data


Merge: TypeAlias = Callable[[pyarrow.Table], pyarrow.Table]
"""Makes cells of what is sent of them; the bucket, before all other columns, stays."""


def noised_once(
    cells: "DataFrame",
    draw: CellDraw[T],
    layout: CellLayout,
    scratch: Scratch,
    rng: Random = SYSTEM,
    *,
    merge: Merge | None = None,
    by: "Sequence[Column] | None" = None,
) -> T:
    """Apply a draw to each cell on the executors, commit what was drawn, and return that.

    `merge` adds up cells that come in parts; all parts of a cell must be equal in `by`, which is its keys otherwise.
    Raise UnfinishedError where the cluster or the storage fails: nothing was released, and what was written is deleted.
    """
    with scratch.folder() as name:
        with doing("Spark: bounding, counting and noising on executors"):
            _written(lambda: noised(cells, draw, layout, rng, merge=merge, by=by), f"{scratch.address}/{name}")
        with doing("Spark: reading what was released"):
            return draw.read(_together(scratch.committed(name), draw, layout))


def _written(make: "Callable[[], DataFrame]", address: str) -> None:
    """Write a frame once; an error of Spark becomes ours, raised where its own is no longer around."""
    try:
        with unlogged():
            write(make(), address)
        return
    except Exception as error:
        lost = _FAILED not in str(error)
    raise UnfinishedError if lost else NoisetteError(_FAILED)


def noised(
    cells: "DataFrame",
    draw: CellDraw[T],
    layout: CellLayout,
    rng: Random = SYSTEM,
    *,
    merge: Merge | None = None,
    by: "Sequence[Column] | None" = None,
) -> "DataFrame":
    """The lazy frame of what is drawn; it has the same rows whenever it is computed from the same cells.

    The hash of the buckets has a salt, which is no secret: nobody can know it when keys are chosen, so that nobody can
    fill one bucket. The number of buckets is public.
    """
    f = functions_of(cells)
    salt, buckets = f.lit(rng.bits(62)), f.lit(max(_BUCKETS, partitions_of(cells.sparkSession)))
    bucket = f.pmod(f.xxhash64(salt, *(by or layout.names)), buckets).cast("int")
    frame = cells.select(bucket.alias(_BUCKET), "*").repartition(_BUCKET)  # Spark merges small partitions
    task = _Task(new_key(rng), draw, layout, merge)
    return frame.mapInArrow(partial(_applied, task), spark_schema(task.empty.schema))


# On the executors


@dataclass(frozen=True, repr=False)
class _Task:
    """What an executor needs to noise a bucket."""

    key: bytes
    draw: CellDraw[Any]
    layout: CellLayout
    merge: Merge | None = None

    def drawn(self, bucket: int, cells: pyarrow.Table) -> pyarrow.Table:
        """What is drawn of all cells of a bucket."""
        cells = canonical(self.layout.stored(cells), self.layout)
        parts = [bucket.to_bytes(8, "little"), *encoded(cells)]
        return self._columns(bucket, cells, KeyedRandom(keyed_digest(self.key, parts, _PURPOSE)))

    @property
    def empty(self) -> pyarrow.Table:
        """What is drawn where there are no cells: it costs no coins."""
        return self._columns(0, self.layout.empty, SYSTEM)

    def _columns(self, bucket: int, cells: pyarrow.Table, rng: Random) -> pyarrow.Table:
        table = self.draw.table(self.draw(self.layout.exact(cells), rng))
        if isinstance(self.layout.keys, int):
            table = table.add_column(0, PLACE, cells.column(PLACE))
        else:
            table = _stored_keys(table, self.layout)
        named = {_BUCKET: pyarrow.array(np.full(len(table), bucket, np.int32))}
        return pyarrow.table(named | {f"c{i}": column for i, column in enumerate(table.columns)})


def _stored_keys(table: pyarrow.Table, layout: CellLayout) -> pyarrow.Table:
    for i, name in enumerate(layout.names):
        table = table.set_column(i, table.column_names[i], table.column(i).cast(layout.empty.schema.field(name).type))
    return table


def _applied(task: _Task, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Noise the buckets of a partition, one after the other."""
    try:
        settle()
        if some := list(batches):
            cells = pyarrow.Table.from_batches(some)
            for bucket, own in _buckets(cells if task.merge is None else task.merge(cells)):
                yield from task.drawn(bucket, own).to_batches()
    except Exception:
        pass
    else:
        return
    raise NoisetteError(_FAILED)


def _buckets(cells: pyarrow.Table) -> Iterator[tuple[int, pyarrow.Table]]:
    """The buckets of a partition, each with all its cells."""
    numbers = cells.column(_BUCKET).to_numpy()
    order = np.argsort(numbers, kind="stable")
    cells, numbers = cells.take(pyarrow.array(order)), numbers[order]
    ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else []
    for start, end in zip([0, *ends], ends, strict=False):
        yield int(numbers[start]), cells.slice(start, end - start)


# What was committed


def _together(tables: list[pyarrow.Table], draw: CellDraw[T], layout: CellLayout) -> pyarrow.Table:
    """The committed rows of all files; raise UnfinishedError if a bucket or cell is there twice, or a cell is not."""
    buckets = [bucket for table in tables for bucket in table.column(_BUCKET).unique().to_pylist()]
    empty = _Task(bytes(32), draw, layout).empty
    rows = pyarrow.concat_tables([empty, *(table.cast(empty.schema) for table in tables)]).drop_columns([_BUCKET])
    if len(set(buckets)) < len(buckets) or not _each_once(rows, layout):
        raise UnfinishedError
    names = draw.table(draw(layout.exact(layout.empty), SYSTEM)).column_names
    if isinstance(layout.keys, int):
        return rows.sort_by("c0").drop_columns(["c0"]).rename_columns(names)
    return layout.shown(rows).rename_columns(names)


def _each_once(rows: pyarrow.Table, layout: CellLayout) -> bool:
    if isinstance(layout.keys, int):
        places = np.sort(rows.column("c0").to_numpy())
        return len(places) == layout.keys and bool((places == np.arange(layout.keys)).all())
    keys = rows.column_names[: len(layout.names)]
    return len(rows.group_by(keys).aggregate([])) == len(rows)
