"""Spark as an engine: rows go to the executor of their unit, DuckDB computes there, and exact parts are added up.

All rows of a unit are in one partition, so limits, sub-queries per unit, joins on the unit and along foreign keys are
right in each partition, and measures of different partitions add up, numbers of units included. Partitions may be
split, merged, lost and computed again: no number depends on that.

Spark itself reads, sends, joins rows to those that their keys refer to, and repeats. It computes with no value except
for sums of stored columns, where each row is a unit (`totals`). What it says of a failure stays inside.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow
from pyarrow import compute

from noisette.engines.contract import FLOATS, INTEGERS, CellDraw, Draw, Source, base_type
from noisette.engines.duckdb.held import bounded_key, held_columns
from noisette.engines.duckdb.retained import RetainedRows
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.needed import needed_columns, needed_of_request
from noisette.engines.spark.catalogue import functions_of, quoted, spark_schema, stored_type
from noisette.engines.spark.cells import CellLayout
from noisette.engines.spark.commit import Merge, noised_once
from noisette.engines.spark.executor import (
    PACKED,
    PARTS,
    Layout,
    merge_parts,
    merging,
    of_counted,
    of_retained,
    of_totals,
    of_units,
    parts_of,
    retaining,
)
from noisette.engines.spark.held import Held, HeldRows, held_by_spark
from noisette.engines.spark.opening import SparkTable, opened, place_of, state_of
from noisette.engines.spark.packing import stream_of
from noisette.engines.spark.parquet import Files, files_of
from noisette.engines.spark.routing import counted, few_differ, read_by_executors, routed, together
from noisette.engines.spark.silence import unlogged
from noisette.engines.spark.totals import added_up
from noisette.engines.sql.partial import merged_schema, partial_schema
from noisette.engines.sql.totals import Totals, totals_of
from noisette.errors import InputError, NoisetteError, UnfinishedError
from noisette.exact.random import SYSTEM, Random
from noisette.progress import doing
from noisette.query.beyond import within_bounds
from noisette.query.measure import Exact, Measure, Request
from noisette.query.operations import kind_of
from noisette.query.plan import Relation
from noisette.query.reads import tables_read
from noisette.query.schema import Schema, Table
from noisette.query.shape import ROW, UNIT
from noisette.query.stability import shape_of
from noisette.query.types import ARROW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Spark", "exact_of"]

T = TypeVar("T")

_FEW_CELLS = 2**14  # of which each task may send a part to the driver


class Spark(Source):
    """Tables of one Spark session, by name: frames, tables of its catalogue, or paths.

    Public tables come here whole and travel to every executor; of private ones only merged cells come, or the rows that
    a question reads. A session may be classic or of Spark Connect.
    """

    def __init__(self, tables: Mapping[str, SparkTable]) -> None:
        self._opened, self._frames, self._held = tables, opened(tables), Held()
        self._read: dict[str, Files | None] = {}
        self._scratch = next((table.scratch for table in tables.values() if table.scratch is not None), None)
        self._types = {
            name: {field.name: field.dataType for field in frame.schema.fields} for name, frame in self._frames.items()
        }
        for name, types in self._types.items():
            if len({column.lower() for column in types}) < len(self._frames[name].columns):
                raise InputError(
                    f"Give each column of table {name} a name of its own: upper and lower case do not tell names apart."
                )

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, sorted."""
        return tuple(sorted(self._frames))

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as, from metadata alone."""
        if table not in self._types:
            raise InputError(f"There is no data for table {table}: there is some for {', '.join(self.tables)}.")
        return {name: stored_type(kind) for name, kind in self._types[table].items()}

    def place(self, table: str) -> str | None:
        """Where a table is: its path, or its name in the catalogue; None for a frame."""
        return place_of(self._opened[table])

    def state(self) -> str | None:
        """The files of all tables, with sizes and times; None where one is not in files alone."""
        found = [state_of(self._opened[name], self._frames[name]) for name in self.tables]
        return None if None in found else str(found)

    def check_units(self, schema: Schema) -> None:
        """Refuse floating-point units, and joins of different units: each executor has the rows of some units only."""
        for table in schema.values():
            name = table.unit_column
            if name is not None and not table.public and self.stored(table.name).get(name) in ("FLOAT", "DOUBLE"):
                raise InputError(
                    f"{name} says whose a row is and must not be a floating-point number, which can have two forms of "
                    "one value: store it as text or as a whole number."
                )
        if any(column.rows_per_value is not None for table in schema.values() for column in table.columns):
            raise InputError(
                "Rows of different units cannot be joined on Spark: leave rows_per_value out of the policy, or open "
                "the files themselves."
            )

    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, the most rows that share one clean value."""
        return self._here({table.name: [column.name for column in table.columns]}).repeats(table)

    def unique(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether no two rows have equal values in the columns, as they are stored and when they are clean."""
        return self._here({table.name: columns}).unique(table, columns)

    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures of each group."""
        request = within_bounds(request, schema)
        if shape_of(request.source, schema).public:
            needed = needed_of_request(request, schema)
            return self._here(needed).aggregate(request, schema, secret)
        frame, parts = self._parts(request, schema, secret)
        with doing("Spark: bounding and counting on executors"):
            if _few_cells(request):
                return exact_of(merge_parts(parts_of(_on(frame.toArrow), parts), request.measures), request)
            return exact_of(_on(_cells(frame, parts, request.measures).toArrow), request)

    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> pyarrow.Table:
        """Columns of a relation under new names, and `unit`, which ranks the units from 0 on."""
        shape, needed = shape_of(relation, schema), needed_columns(relation, columns, schema)
        if shape.public:
            return self._here(needed).rows(relation, columns, schema, secret)
        result = pyarrow.schema({new: ARROW[shape.columns[name].type] for name, new in columns.items()})
        owner = None
        if shape.unit != ROW:
            table = next(table for table in tables_read(relation, schema) if not table.public)
            owner = self._arrow_type(table.owner, table.unit or "")
            result = result.append(pyarrow.field(UNIT, owner))

        def read(engine: DuckDB) -> pyarrow.Table:
            return engine.owned_rows(relation, columns, schema, secret)

        rows, layout = self._sent(needed, schema)
        function = of_units(layout, read, result, whole=owner is not None)
        with doing("Spark: sending the rows that the question reads"):
            found = _on(rows.mapInArrow(function, spark_schema(result)).toArrow)
        if owner is None:
            return found
        ranks = compute.rank(found.column(UNIT), tiebreaker="dense")
        numbers = compute.subtract(ranks.cast(pyarrow.int64()), 1)
        return found.drop_columns([UNIT]).append_column(UNIT, numbers)

    def release(self, request: Request, draw: Draw[T], schema: Schema, secret: bytes, rng: Random = SYSTEM) -> T:
        """Noise cells with unknown keys on the executors, where there is a scratch folder; other cells come here first.

        Declared cells are as many as the answer has, and draws that compare cells need all of them in one place.
        """
        request = within_bounds(request, schema)
        known = None not in request.domains or shape_of(request.source, schema).public
        if self._scratch is None or known or not isinstance(draw, CellDraw):
            return super().release(request, draw, schema, secret, rng)
        frame, by, merge = self._whole_cells(request, schema, secret) or (
            self._parts(request, schema, secret)[0], None, partial(merge_parts, measures=request.measures)
        )  # fmt: skip
        layout = CellLayout.of(request, schema)
        released: T = noised_once(frame, draw, layout, self._scratch, rng, merge=merge, by=by)
        return released

    # Frames

    def _parts(self, request: Request, schema: Schema, secret: bytes) -> tuple["DataFrame", pyarrow.Schema]:
        """The parts of exact cells that executors find in the rows of some units (`sql.partial`), and their columns."""
        scope = shape_of(request.source, schema).columns
        known = None not in request.domains
        types = None if known else [ARROW[kind_of(key, scope).type] for key in request.keys]
        result = partial_schema(types, request.measures)

        def computed(engine: DuckDB) -> pyarrow.Table:
            return engine.partial(request, schema, secret)

        needed = needed_of_request(request, schema)
        table = next(schema[name] for name in needed if not schema[name].public)
        stored = self.stored(table.name)
        totals = totals_of(request, schema, {table.name: stored})
        if totals is not None and few_differ(totals.by, request, table, stored, schema):
            return self._totals(totals, result, secret), result
        state = None if request.limits is None else self.state()
        if state is not None:
            return self._held_parts(request, schema, secret, needed, result, state), result
        if table.unit is None and few_differ(needed[table.name], request, table, stored, schema):
            rows, layout = self._routed(needed, schema)
            return counted(rows).mapInArrow(of_counted(layout, computed, result), spark_schema(result)), result
        rows, layout = self._sent(needed, schema)
        function = of_units(layout, computed, result, whole=table.unit is not None)
        return rows.mapInArrow(function, spark_schema(result)), result

    def _held_parts(
        self,
        request: Request,
        schema: Schema,
        secret: bytes,
        needed: Mapping[str, frozenset[str]],
        result: pyarrow.Schema,
        state: str,
    ) -> "DataFrame":
        """The same parts, from retained rows that are held for the next question, as long as data stay as they are.

        Few parts come with the rows that are retained for them, in one pass.
        """
        key = bounded_key(request, schema, secret), state
        held, before = self._held.serving(key, request), self._held.find(key)
        columns, firsts = held_columns(request, schema, None if before is None else before.what)

        def computed(engine: DuckDB, found: RetainedRows) -> pyarrow.Table:
            engine.hold(request, schema, secret, found, columns, firsts=firsts)
            return engine.partial(request, schema, secret)

        if held is None:
            earlier = needed_columns(request.source, columns, schema)
            rows, layout = self._sent({name: own | earlier[name] for name, own in needed.items()}, schema)

            def retain(engine: DuckDB) -> RetainedRows:
                return engine.retained(request, schema, secret, columns, firsts=firsts)

            function = retaining(layout, retain, computed if _few_cells(request) else None)
            packed = held_by_spark(rows.mapInArrow(function, spark_schema(PACKED)))
            held = HeldRows(packed, layout, columns, firsts)
            self._held.put(key, held)
            if _few_cells(request):
                return held.frame.select(PARTS)
        return held.frame.mapInArrow(of_retained(held.layout, computed, result), spark_schema(result))

    def _totals(self, totals: Totals, result: pyarrow.Schema, secret: bytes) -> "DataFrame":
        """The same parts, of groups whose totals Spark adds up: each group travels as one row."""
        rows, layout = self._added_up(totals)

        def computed(engine: DuckDB) -> pyarrow.Table:
            return totals.merged(engine.partial(totals.request, totals.schema, secret), result)

        return rows.mapInArrow(of_units(layout, computed, result, whole=False), spark_schema(result))

    def _added_up(self, totals: Totals) -> tuple["DataFrame", Layout]:
        columns = tuple(enumerate([*totals.by, *totals.names]))
        rows = added_up(self._frames[totals.table], totals, [f"c{i}" for i, _ in columns])
        return rows, Layout(((totals.table, columns),), ())

    def _whole_cells(
        self, request: Request, schema: Schema, secret: bytes
    ) -> tuple["DataFrame", list["Column"], Merge] | None:
        """Groups whose totals Spark adds up, what those of one cell agree in, and how cells are made of them.

        None where Spark cannot add up, or where cleaning may make two unknown keys one: then parts are made first.
        """
        table = next(t for t in tables_read(request.source, schema) if not t.public)
        stored = self.stored(table.name)
        totals = totals_of(request, schema, {table.name: stored})
        if totals is None or not few_differ(totals.by, request, table, stored, schema):
            return None
        names = totals.keys_apart(stored)
        if names is None:
            return None
        rows, layout = self._added_up(totals)
        places = {name: f"c{i}" for i, name in layout.tables[0][1]}
        return rows, [together(rows, places[name], stored[name]) for name in names], of_totals(totals, secret)

    def _sent(self, needed: Mapping[str, frozenset[str]], schema: Schema) -> tuple["DataFrame", Layout]:
        """The rows of private tables, each with all rows of its unit, and how they travel.

        Executors read files themselves where they can; all else is read by Spark.
        """
        private = [schema[name] for name in needed if not schema[name].public]
        files = self._readable(private, needed)
        if files is None:
            return self._routed(needed, schema)
        layout = self._layout(needed, schema)
        columns = dict(layout.tables)
        types = {name: {c: self._arrow_type(name, c) for _, c in own} for name, own in columns.items()}
        session = self._opened[private[0].name].session
        rows, arrive = read_by_executors(session, files, private, columns, types)
        return rows, replace(layout, arrive=arrive)

    def _routed(self, needed: Mapping[str, frozenset[str]], schema: Schema) -> tuple["DataFrame", Layout]:
        """The same as rows that Spark reads."""
        layout = self._layout(needed, schema)
        private = [schema[name] for name, _ in layout.tables]
        stored = {name: self.stored(name) for name in needed}
        return routed(self._frames, stored, private, dict(layout.tables), schema), layout

    def _layout(self, needed: Mapping[str, frozenset[str]], schema: Schema) -> Layout:
        read = [schema[name] for name in needed]
        numbered = iter(range(sum(len(columns) for columns in needed.values())))
        columns = ((t.name, tuple((next(numbered), n) for n in sorted(needed[t.name]))) for t in read if not t.public)
        public = tuple((table.name, self._stream(table.name, needed[table.name])) for table in read if table.public)
        return Layout(tuple(columns), public)

    def _readable(self, tables: Sequence[Table], needed: Mapping[str, frozenset[str]]) -> dict[str, Files] | None:
        """The files of tables, if executors read in them all that a question needs, and units are alike in all."""
        if any(table.through for table in tables):
            return None
        units = {base_type(self.stored(t.name)[t.unit]) for t in tables if t.unit is not None}
        if units & set(FLOATS) or (len(units) > 1 and not units <= set(INTEGERS)):
            return None
        found = {table.name: self._files(table.name) for table in tables}
        every = {name: files for name, files in found.items() if files is not None and needed[name]}
        return every if len(every) == len(tables) and all(needed[n] <= f.columns for n, f in every.items()) else None

    def _files(self, table: str) -> Files | None:
        if table not in self._read:
            with doing("Spark: looking at the ends of files"):
                self._read[table] = files_of(self._opened[table], self._frames[table])
        return self._read[table]

    # What comes here

    def _here(self, needed: Mapping[str, Any]) -> DuckDB:
        """An engine in this process with some columns of tables."""
        return DuckDB({name: self._whole(name, columns) for name, columns in needed.items()})

    def _whole(self, table: str, columns: Sequence[str] | frozenset[str]) -> pyarrow.Table:
        frame = self._frames[table]
        made = [quoted(frame, name) for name in self._types[table] if name in columns]
        with doing("Spark: sending columns of a table"):
            return _on(frame.select(*made or [functions_of(frame).lit(True).alias("nothing")]).toArrow)

    def _stream(self, table: str, columns: frozenset[str]) -> bytes:
        return stream_of(self._whole(table, columns))

    def _arrow_type(self, table: str, column: str) -> pyarrow.DataType:
        from pyspark.sql.pandas.types import to_arrow_type

        return to_arrow_type(self._types[table][column])


def _few_cells(request: Request) -> bool:
    """Whether parts of cells may come here to be added up: each task has as many as are declared, or fewer."""
    if None in request.domains or any(m.what == "distinct" for m in request.measures):
        return False
    groups = math.prod(len(domain or ()) for domain in request.domains)
    return groups * sum(m.cells if m.what == "histogram" else 1 for m in request.measures) <= _FEW_CELLS


def _cells(frame: "DataFrame", parts: pyarrow.Schema, measures: Sequence[Measure]) -> "DataFrame":
    """The merged exact cells, before they are collected: keys k0, k1, ... as they are released, or `code`.

    `code` is the place of a group where all domains are known; groups without rows may be missing. Measures are m0,
    m1, ...: whole numbers, cut at +-2^62, or lists of them for histograms.
    """
    cells = merged_schema(parts, measures)
    places = [quoted(frame, name) for name in parts.names[: parts.names.index("what")]]
    return frame.repartition(*places).mapInArrow(merging(measures, cells), spark_schema(cells))


def exact_of(cells: pyarrow.Table, request: Request) -> Exact:
    """Merged cells as what every engine answers: all combinations where all domains are known."""
    if None in request.domains:
        keys = [f"k{i}" for i in range(len(request.keys))]
        named = cells.select(keys).rename_columns([f"key{i}" for i in range(len(keys))])
        return Exact(named, tuple(_numbers(cells.column(f"m{i}"), m) for i, m in enumerate(request.measures)))
    size = 1
    for domain in request.domains:
        size *= len(domain or ())
    at = np.asarray(cells.column("code").to_numpy(), np.int64)
    made = []
    for i, m in enumerate(request.measures):
        numbers = np.zeros((size, m.cells) if m.what == "histogram" else size, np.int64)
        numbers[at] = _numbers(cells.column(f"m{i}"), m)
        made.append(numbers)
    return Exact(None, tuple(made))


def _numbers(column: pyarrow.ChunkedArray, m: Measure) -> Any:
    if m.what != "histogram":
        return np.asarray(column.to_numpy(), np.int64)
    flat = pyarrow.concat_arrays([chunk.flatten() for chunk in column.chunks]) if len(column) else pyarrow.array([])
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.int64).reshape(len(column), m.cells)


def _on(act: Callable[[], T]) -> T:
    """What Spark answers; an error of it becomes ours, raised where its own is no longer around."""
    try:
        with unlogged():
            return act()
    except NoisetteError:
        raise
    except Exception:
        pass
    raise UnfinishedError
