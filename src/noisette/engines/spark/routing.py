"""Which rows meet on one executor: all rows of a unit, of every private table that a question reads.

Rows are sent to their unit's executor, and DuckDB decides there what is equal. So what they are sent by may make two
units one, but never one unit two: text in which a byte is not UTF-8 is read with question marks in its place, and all
such texts go together with those that have a question mark. Along a foreign key a row goes where the row it refers to
goes; a row without a unit, or whose key refers to none, belongs to nobody and goes nowhere.

Where each row is a unit, equal rows may be counted instead and travel once.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow

from noisette.engines.contract import FLOATS, INTEGERS, base_type
from noisette.engines.needed import needed_columns
from noisette.engines.spark.catalogue import functions_of, quoted, spark_schema
from noisette.engines.spark.executor import COUNT, TAG, Batches, reading, sending, valid_rows
from noisette.engines.spark.packing import PARCEL, bucket_keys, unpacked
from noisette.engines.spark.parquet import Files
from noisette.query.expression import Call, Name, columns_of
from noisette.query.measure import Request
from noisette.query.plan import Relation, Where
from noisette.query.schema import Schema, Table
from noisette.query.variants import inside, plain

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["counted", "few_differ", "partitions_of", "read_by_executors", "routed", "together"]

_OWNER = "owner"
_USUAL = 200  # partitions, as Spark has them
_A_BUCKET = 1 << 21  # rows of a bucket at least, if there are more: a task for fewer costs more than it computes
_FEW = 1 << 17  # different rows that are counted sooner than sent


def routed(
    frames: Mapping[str, "DataFrame"],
    stored: Mapping[str, Mapping[str, str]],
    tables: Sequence[Table],
    columns: Mapping[str, Sequence[tuple[int, str]]],
    schema: Schema,
) -> "DataFrame":
    """The columns c0, c1, ... of private tables, so that all rows of a unit are in one partition.

    Where each row is a unit, rows stay where they are.
    """
    first = frames[tables[0].name]
    functions = functions_of(first)
    if tables[0].unit is None:
        return first.select(*_own(first, columns[tables[0].name]))
    kind = stored[tables[0].owner][tables[0].unit]
    if len(tables) == 1 and not tables[0].through and base_type(kind) not in FLOATS:
        return _of_one_table(first, stored[tables[0].name], tables[0], columns[tables[0].name])
    every = sorted((i, name, table.name) for table in tables for i, name in columns[table.name])
    types = {(field.name, t.name): field.dataType for t in tables for field in frames[t.name].schema.fields}
    sent: DataFrame | None = None
    for tag, table in enumerate(tables):
        own = _with_owner(frames, stored, table, _own(first, columns[table.name]), schema)
        made = [
            functions.col(f"c{i}") if at == table.name else functions.lit(None).cast(types[name, at]).alias(f"c{i}")
            for i, name, at in every
        ]
        tags = [functions.lit(tag).alias(TAG)] if len(tables) > 1 else []
        part = own.select(functions.col(_OWNER), *tags, *made)
        sent = part if sent is None else sent.unionAll(part)
    assert sent is not None
    return sent.repartition(together(sent, _OWNER, kind)).drop(_OWNER)


def _of_one_table(
    frame: "DataFrame", stored: Mapping[str, str], table: Table, columns: Sequence[tuple[int, str]]
) -> "DataFrame":
    """The same of a table whose unit is among the columns: nothing else travels."""
    unit = table.unit or ""
    own = frame.filter(quoted(frame, unit).isNotNull()).select(*_own(frame, columns))
    return own.repartition(together(own, next(f"c{i}" for i, name in columns if name == unit), stored[unit]))


def read_by_executors(
    session: Any,
    files: Mapping[str, Files],
    tables: Sequence[Table],
    columns: Mapping[str, Sequence[tuple[int, str]]],
    types: Mapping[str, Mapping[str, pyarrow.DataType]],
) -> tuple["DataFrame", "Callable[[Batches], Batches]"]:
    """The same rows from files that executors read themselves, and what makes rows of what then arrives."""
    schemas = {t.name: pyarrow.schema([(f"c{i}", types[t.name][name]) for i, name in columns[t.name]]) for t in tables}
    names = {table.name: [name for _, name in columns[table.name]] for table in tables}
    if tables[0].unit is None:
        name = tables[0].name
        return _splits(session, files[name]), reading(files[name], names[name], schemas[name])
    rows = sum(size for table in tables for groups in files[table.name].rows for size in groups)
    buckets = bucket_keys(max(1, min(partitions_of(session), rows // _A_BUCKET)))
    sent = list["DataFrame"]()
    for number, table in enumerate(tables):
        unit = next(f"c{i}" for i, name in columns[table.name] if name == table.unit)
        pack = sending(files[table.name], names[table.name], schemas[table.name], unit, buckets, number)
        sent.append(_splits(session, files[table.name]).mapInArrow(pack, spark_schema(PARCEL)))
    every = sorted((field for schema in schemas.values() for field in schema), key=lambda field: int(field.name[1:]))
    tag = [pyarrow.field(TAG, pyarrow.int32())] if len(tables) > 1 else []
    arrive = partial(unpacked, schema=pyarrow.schema([*tag, *every]), tag=TAG if tag else None)
    return reduce(lambda one, other: one.unionAll(other), sent).repartition(len(buckets), PARCEL.names[0]), arrive


def _splits(session: Any, files: Files) -> "DataFrame":
    """A task for each split of files."""
    count = len(files.splits)
    made: DataFrame = session.range(0, count, 1, max(1, count))
    return made


def partitions_of(session: Any) -> int:
    """How many partitions the owner's setting allows; some clusters choose it by themselves, and say "auto"."""
    try:
        return max(1, int(session.conf.get("spark.sql.shuffle.partitions")))  # a default in words would be refused
    except Exception:  # a server that does not say
        return _USUAL


def counted(rows: "DataFrame") -> "DataFrame":
    """The different rows, with how many there are of each."""
    functions = functions_of(rows)
    return rows.groupBy(*rows.columns).agg(functions.count(functions.lit(1)).alias(COUNT))


def few_differ(
    read: Collection[str], request: Request, table: Table, stored: Mapping[str, str], schema: Schema
) -> bool:
    """Whether rows that are equal in some columns meet before they are sent; declarations alone say so, and no data.

    They do where these are columns of keys, since a group-by compares them anyway, and where few different rows are
    declared. Floating-point numbers are not compared: 0 and -0 would be one.
    """
    filtered = needed_columns(_asked(request.source), (), schema)[table.name]
    keys = {name for key in request.keys for name in columns_of(key)}
    others = set(read) - (needed_columns(request.source, keys, schema)[table.name] - filtered)
    if any(base_type(stored[name]) in FLOATS for name in read):
        return False
    sizes = [table.column(name).kind.count for name in read]
    return not others or math.prod(_FEW + 1 if size is None else size for size in sizes) <= _FEW


def _asked(relation: Relation) -> Relation:
    """Rows without the conditions that keys lie within their bounds: group by these as by any others."""
    if not isinstance(relation, Where):
        return relation
    source, condition = _asked(relation.source), relation.condition
    both = isinstance(condition, Call) and condition.operation == "and"
    parts = condition.arguments if isinstance(condition, Call) and both else (condition,)
    asked = [part for part in parts if not (isinstance(part, Name) and part.name == inside(plain(part.name)))]
    return Where(source, Call("and", tuple(asked))) if asked else source


def _own(frame: "DataFrame", columns: Sequence[tuple[int, str]]) -> list["Column"]:
    made = [quoted(frame, name).alias(f"c{i}") for i, name in columns]
    return made or [functions_of(frame).lit(True).alias("nothing")]


def _with_owner(
    frames: Mapping[str, "DataFrame"],
    stored: Mapping[str, Mapping[str, str]],
    table: Table,
    made: Sequence["Column"],
    schema: Schema,
) -> "DataFrame":
    """Columns of the rows that belong to somebody, and their unit.

    Keys are compared as they are stored, text when it is valid, so that each row finds the one that DuckDB finds.
    """
    frame = frames[table.name]
    functions = functions_of(frame)
    if not table.through:
        unit, base = quoted(frame, table.unit or ""), base_type(stored[table.name][table.unit or ""])
        owner = unit + functions.lit(0.0) if base in FLOATS else unit.cast("long") if base in INTEGERS else unit
        somebody = unit.isNotNull() & ~functions.isnan(unit) if base in FLOATS else unit.isNotNull()
        return frame.filter(somebody).select(*made, owner.alias(_OWNER))
    link = table.through[0]
    far = schema[link.table]
    here = [quoted(frame, name).alias(f"{table.name} here{i}") for i, name in enumerate(link.here)]
    there = [quoted(frame, name).alias(f"{table.name} there{i}") for i, name in enumerate(link.there)]
    child = frame.select(*made, *here)
    parent = _with_owner(frames, stored, far, there, schema)
    if any(base_type(stored[table.name][name]) == "VARCHAR" for name in link.here):
        child, parent = (side.mapInArrow(valid_rows(), side.schema) for side in (child, parent))
    pairs = [(f"{table.name} here{i}", f"{table.name} there{i}") for i in range(len(link.on))]
    met = [quoted(child, one) == quoted(parent, other) for one, other in pairs]
    return child.join(parent, met, "inner").drop(*(name for pair in pairs for name in pair))


def together(sent: "DataFrame", name: str, stored: str) -> "Column":
    """What rows are sent by: equal for values that are equal when text is valid."""
    functions, owner = functions_of(sent), quoted(sent, name)
    if base_type(stored) != "VARCHAR":
        return owner
    mark = functions.lit("?")
    plain = functions.is_valid_utf8(owner) & ~functions.contains(owner, mark)
    made: Column = functions.when(plain, owner).otherwise(mark)
    return made
