"""Parquet files that executors read by themselves, row group by row group.

A row that Spark reads and hands to Python is taken apart and put together several times, which costs more than to read
the file. So where a table is given by the path of Parquet files, executors read them with Arrow. They read the columns
that every file stores exactly as the type that Spark says. All else is read by Spark: other types, folders that stand
for columns, old calendars, files that only Spark can open, and tables of a catalogue, which may have rules of their
own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow
from pyarrow import parquet, types

from noisette.engines.spark.catalogue import spark_schema
from noisette.engines.spark.opening import SparkTable
from noisette.engines.spark.scratch import reached
from noisette.engines.spark.silence import unlogged
from noisette.engines.spark.versions import address_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Files", "files_of", "tables_in"]

Split: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""What one task reads: files by their numbers, and row groups of each."""

_ROWS, _AT_ONCE = 1 << 22, 1 << 20  # rows of a split, if there are that many; and of a table that is read at once
_SPLITS = 1 << 14  # at most
_TASKS, _ENDS = 32, 64  # tasks that look at the ends of files, and how many of them one looks at, if tasks are left
_ABOUT = pyarrow.schema(
    {"file": pyarrow.int64(), "rows": pyarrow.list_(pyarrow.int64()), "columns": pyarrow.list_(pyarrow.int64())}
)
_REBASED = "spark.sql.parquet.datetimeRebaseModeInRead"


@dataclass(frozen=True)
class Files:
    """Parquet files of one table: the rows of each row group, and the columns that executors read as Spark does."""

    addresses: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    columns: frozenset[str]

    @property
    def splits(self) -> tuple[Split, ...]:
        """All row groups, in splits of similar size.

        >>> Files(("a", "b"), ((1 << 21, 1 << 21, 7), (9,)), frozenset()).splits
        (((0, (0, 1)),), ((0, (2,)), (1, (0,))))
        """
        most = max(_ROWS, sum(map(sum, self.rows)) // _SPLITS)
        splits: list[dict[int, tuple[int, ...]]] = [{}]
        held = 0
        for file, groups in enumerate(self.rows):
            for group, rows in enumerate(groups):
                if held and held + rows > most:
                    splits.append({})
                    held = 0
                splits[-1][file] = (*splits[-1].get(file, ()), group)
                held += rows
        return tuple(tuple(split.items()) for split in splits if split)


def files_of(table: SparkTable, frame: "DataFrame") -> Files | None:
    """The files of a table, from their ends alone, as executors see them; None where Spark has to read them."""
    if table.format != "parquet" or table.version is not None:
        return None
    try:
        with unlogged():
            addresses = tuple(sorted(frame.inputFiles()))
            if not addresses or any("=" in address for address in addresses):
                return None
            found = _looked_at(table.session, addresses, _expected(frame, table.session))
    except Exception:  # Spark will say what is wrong, if anything is
        return None
    if [about["file"] for about in found] != list(range(len(addresses))):
        return None
    rows = tuple(tuple(about["rows"]) for about in found)
    shared = frozenset.intersection(*(frozenset(about["columns"]) for about in found))
    names = frozenset(name for i, name in enumerate(frame.columns) if i in shared)
    return Files(addresses, rows, names) if names else None


def _looked_at(session: Any, addresses: Sequence[str], expected: pyarrow.Schema) -> list[dict[str, Any]]:
    tasks = min(_TASKS, 1 + len(addresses) // _ENDS)

    def look(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        found = [{"file": number, **_about(addresses[number], expected)} for number in numbers]
        yield pyarrow.RecordBatch.from_pylist(found, _ABOUT)

    frame = session.range(0, len(addresses), 1, tasks).mapInArrow(look, spark_schema(_ABOUT))
    return sorted(frame.toArrow().to_pylist(), key=lambda about: about["file"])


def _about(address: str, expected: pyarrow.Schema) -> dict[str, list[int]]:
    """The rows of each row group, and which columns are stored as expected; none of a file that cannot be read."""
    try:
        with _opened(address) as file:
            about, stored = file.metadata, file.schema_arrow
            old = _of_old_calendar(about.metadata or {})
            rows = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    except (pyarrow.ArrowException, OSError, ValueError, NotImplementedError):
        return {"rows": [], "columns": []}
    same = (i for i, f in enumerate(expected) if _same(stored, f) and not (old and types.is_date32(f.type)))
    return {"rows": rows, "columns": list(same)}


def _same(stored: pyarrow.Schema, field: pyarrow.Field) -> bool:
    """Whether a file has one column of that very name and type: a cast could fail on a value, or on many long ones."""
    found = stored.get_all_field_indices(field.name)
    return "." not in field.name and len(found) == 1 and stored.field(found[0]).type == field.type


def _of_old_calendar(about: dict[bytes, bytes]) -> bool:
    """Whether Spark would count days anew, since an old version of it wrote them.

    >>> _of_old_calendar({}), _of_old_calendar({b"org.apache.spark.version": b"2.4.8"})
    (False, True)
    """
    old = about.get(b"org.apache.spark.version", b"3").startswith((b"1.", b"2."))
    return old or b"org.apache.spark.legacyDateTime" in about


def _expected(frame: "DataFrame", session: Any) -> pyarrow.Schema:
    """The columns as Spark would hand them on; those that only Spark reads have the type null."""
    from pyspark.sql.pandas.types import to_arrow_type

    old = session.conf.get(_REBASED, "CORRECTED").upper() == "LEGACY"
    made = []
    for column in frame.schema.fields:
        try:
            kind = to_arrow_type(column.dataType)
        except Exception:  # a type that Arrow has no name for
            kind = pyarrow.null()
        plain = types.is_primitive(kind) or types.is_string(kind) or types.is_decimal(kind)
        zoned = types.is_timestamp(kind) and kind.tz is not None
        made.append(
            (column.name, kind if plain and not zoned and not (old and types.is_date32(kind)) else pyarrow.null())
        )
    return pyarrow.schema(made)


# On executors


def tables_in(
    files: Files, splits: Iterable[Split], names: Sequence[str], schema: pyarrow.Schema
) -> Iterator[pyarrow.Table]:
    """Columns of some row groups, under the names and types of a schema; a million rows or one row group at a time."""
    for split in splits:
        for number, groups in split:
            with _opened(files.addresses[number]) as file:
                about = file.metadata
                rows = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
                if rows != list(files.rows[number]):
                    raise OSError("a file changed")
                for some in _together(groups, rows):
                    found = file.read_row_groups(some, columns=list(names), use_threads=False)
                    yield pyarrow.table([found.column(name) for name in names], schema)


def _together(groups: Sequence[int], rows: Sequence[int]) -> Iterator[list[int]]:
    """Row groups in order, some at a time."""
    some: list[int] = []
    for group in groups:
        if some and sum(rows[i] for i in some) + rows[group] > _AT_ONCE:
            yield some
            some = []
        some.append(group)
    if some:
        yield some


def _opened(address: str) -> parquet.ParquetFile:
    files, path = reached(address_of(address))
    return parquet.ParquetFile(files.open_input_file(path))
