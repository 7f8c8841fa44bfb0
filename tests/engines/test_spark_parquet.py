"""Parquet files that executors read themselves: what they read, where rows go, and that nothing is lost on the way."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from tests.contracts.test_sources import invalid_text

from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.engines.spark import executor, packing
from noisette.engines.spark.executor import reading, sending
from noisette.engines.spark.opening import spark_tables
from noisette.engines.spark.packing import bucket_keys, packed, unpacked
from noisette.engines.spark.parquet import _ROWS, Files, _about, files_of, tables_in
from noisette.engines.spark.source import Spark
from noisette.errors import NoisetteError, UnfinishedError
from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Limits, Table

SECRET, THREE = bytes(range(16)), Limits(rows=3)
WHOLE = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
MANY = pyarrow.table({"who": [i % 40 for i in range(400)], "x": [i % 7 for i in range(400)]})


def written(folder, *tables):
    folder.mkdir(exist_ok=True)
    for i, table in enumerate(tables):
        parquet.write_table(table, folder / f"{i}.parquet", row_group_size=64)
    return str(folder)


def counted(source, who="integer", limits=THREE):
    """Rows and units that are retained of table t."""
    table = Table("t", (Column("who", Kind(who)), Column("x", WHOLE)), unit="who", limits=limits)
    measures = Measure("rows"), Measure("units"), Measure("sum", Name("t.x"), Fraction(1), 0, 9)
    found = source.aggregate(Request(Scan("t", "t"), (), (), measures, limits), {"t": table}, SECRET)
    return [m.tolist() for m in found.measures]


# What executors read


def test_columns_are_read_that_are_stored_as_the_type_they_should_have(tmp_path):
    day = datetime.date(1500, 3, 1)
    stored = pyarrow.table({
        "same": pyarrow.array([1], pyarrow.int16()), "long": pyarrow.array(["a"], pyarrow.large_string()),
        "few": pyarrow.array(["a"]).dictionary_encode(), "unsigned": pyarrow.array([1], pyarrow.uint32()),
        "bytes": pyarrow.array([b"a"]), "day": [day], "a.b": [1], "Case": [1],
        "late": pyarrow.array([0], pyarrow.timestamp("ms")), "price": pyarrow.array([Decimal("1.50")]),
    })  # fmt: skip
    expected = pyarrow.schema({
        "same": pyarrow.int16(), "long": pyarrow.string(), "few": pyarrow.string(), "unsigned": pyarrow.int64(),
        "bytes": pyarrow.string(), "day": pyarrow.date32(), "a.b": pyarrow.int64(), "case": pyarrow.int64(),
        "late": pyarrow.timestamp("us"), "price": pyarrow.decimal128(3, 2), "missing": pyarrow.int64(),
    })  # fmt: skip
    right = ["same", "day", "price"]
    for about, found in (({}, right), ({"org.apache.spark.version": "2.4.0"}, [n for n in right if n != "day"])):
        parquet.write_table(stored.replace_schema_metadata(about), tmp_path / "t.parquet")
        columns = _about(f"file:{tmp_path}/t.parquet", expected)["columns"]
        assert [expected.names[i] for i in columns] == found
    (tmp_path / "t.parquet").write_text("no such format")
    assert _about(f"file:{tmp_path}/t.parquet", expected) == {"rows": [], "columns": []}
    assert _about("nowhere://else/t.parquet", expected) == {"rows": [], "columns": []}


def test_all_row_groups_are_in_one_split_each():
    files = Files(tuple("abc"), ((1 << 20,) * 5, (3,) * 100, (1 << 23, 1)), frozenset())
    every = [(file, group) for split in files.splits for file, groups in split for group in groups]
    assert every == [(file, group) for file, rows in enumerate(files.rows) for group in range(len(rows))]
    sizes = [[files.rows[file][group] for file, groups in split for group in groups] for split in files.splits]
    assert all(sum(rows) <= _ROWS or len(rows) == 1 for rows in sizes)
    assert len(sizes) == 4


def test_a_file_that_changed_is_not_read(tmp_path):
    written(tmp_path / "t", MANY)
    address = f"file:{tmp_path}/t/0.parquet"
    files = Files((address,), (tuple(_about(address, MANY.schema)["rows"]),), frozenset(MANY.column_names))
    assert pyarrow.concat_tables(tables_in(files, files.splits, MANY.column_names, MANY.schema)).equals(MANY)
    written(tmp_path / "t", pyarrow.concat_tables([MANY, MANY]))
    with pytest.raises(OSError, match="changed"):
        list(tables_in(files, files.splits, MANY.column_names, MANY.schema))


# How rows travel

ODD = {
    "unit": st.none() | st.integers(-(2**63), 2**63 - 1),
    "small": st.none() | st.sampled_from([-129, -128, 127, 128, 32767, 32768, -32769, 2**31 - 1, 2**31, 0]),
    "text": st.none() | st.sampled_from(["", "é", "north", "x" * 300]),
    "real": st.none() | st.floats(),
    "day": st.none() | st.dates(),
    "truth": st.none() | st.booleans(),
    "price": st.none() | st.decimals("-9.99", "9.99", places=2),
    "at": st.none() | st.datetimes(),
}
TYPES = pyarrow.schema({
    "unit": pyarrow.int64(), "small": pyarrow.int64(), "text": pyarrow.string(), "real": pyarrow.float64(),
    "day": pyarrow.date32(), "truth": pyarrow.bool_(), "price": pyarrow.decimal128(9, 2), "at": pyarrow.timestamp("us"),
})  # fmt: skip


def shown(table):
    return sorted(map(repr, table.to_pylist()))


@given(rows=st.lists(st.fixed_dictionaries(ODD), max_size=40), buckets=st.integers(1, 9))
def test_rows_arrive_as_they_were_sent_and_those_of_a_unit_together(rows, buckets):
    table = pyarrow.Table.from_pylist(rows, TYPES)
    some = packed([table], "unit", bucket_keys(buckets), 0, executor._hashed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_EVERY", 1)
        patch.setattr(packing, "_OFTEN", 1)  # the same rows, equal ones counted
        counted = list(packed([table], "unit", bucket_keys(buckets), 0, executor._hashed))
    parcels = [*some, *counted]
    arrived = pyarrow.Table.from_batches(unpacked(parcels, TYPES, None), TYPES)
    owned = table.filter(pyarrow.compute.is_valid(table.column("unit")))
    assert shown(arrived) == shown(pyarrow.concat_tables([owned, owned]))
    places = {}
    for batch in parcels:
        for key, at in zip(batch.column("bucket").to_pylist(), range(len(batch)), strict=True):
            for unit in (
                pyarrow.Table.from_batches(unpacked([batch.slice(at, 1)], TYPES, None)).column("unit").to_pylist()
            ):
                assert places.setdefault(unit, key) == key


def test_text_with_many_values_and_large_rows_travel_in_several_parcels(monkeypatch):
    table = pyarrow.table({"unit": range(2000), "text": [f"{i}" * 50 for i in range(2000)]})
    monkeypatch.setattr(packing, "_BYTES", 1000)
    parcels = list(packed([table], "unit", (5, 6), 3, executor._hashed))
    assert sum(len(batch) for batch in parcels) > 100
    tagged = pyarrow.schema([("table", pyarrow.int32()), *table.schema])
    arrived = pyarrow.Table.from_batches(unpacked(parcels, tagged, "table"), tagged)
    assert set(arrived.column("table").to_pylist()) == {3}
    assert arrived.drop_columns(["table"]).sort_by("unit").equals(table)


def test_long_texts_are_packed_in_small_tables_and_without_dictionaries(monkeypatch):
    """Few long values would travel with each parcel, and many could be more than a column holds."""
    monkeypatch.setattr(executor, "_GATHERED", 10_000)
    texts = ["a" * 9000, "b" * 9000]
    batches = [pyarrow.record_batch({"unit": [i], "text": [texts[i % 2]]}) for i in range(6)]
    tables = list(executor._gathered(batches, 1000))
    assert [len(table) for table in tables] == [1] * 6
    assert [len(table) for table in executor._gathered(batches[:0], 1000)] == []
    [parcels] = packed([pyarrow.Table.from_batches(batches)], "unit", (5,), 0, executor._hashed)
    found = packing.table_of(parcels.column("rows")[0].as_py())
    assert found.schema.field("text").type == pyarrow.string()
    monkeypatch.setattr(executor, "_GATHERED", 1 << 30)
    assert [len(table) for table in executor._gathered(batches, 4)] == [4, 2]


def test_whole_numbers_of_any_width_go_to_one_bucket():
    numbers = [*range(-128, 128, 5), None]
    found = []
    for kind in (pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64()):
        table = pyarrow.table({"unit": pyarrow.array(numbers, kind), "n": [n or 0 for n in numbers]})
        schema = pyarrow.schema({"n": pyarrow.int64()})
        parcels = list(packed([table], "unit", bucket_keys(7), 0, executor._hashed))
        keys = [k for batch in parcels for k in batch.column("bucket").to_pylist()]
        rows = [
            pyarrow.Table.from_batches(unpacked([b.slice(i, 1)], schema, None)) for b in parcels for i in range(len(b))
        ]
        found.append({n: key for key, some in zip(keys, rows, strict=True) for n in some.column("n").to_pylist()})
    assert found[0] == found[1] == found[2] == found[3]
    assert len(set(found[0].values())) == 7


def test_a_unit_with_a_million_rows_travels_in_few_bytes():
    def sent(ages, units):
        table = pyarrow.table({"unit": np.arange(10**6) % units, "age": np.arange(10**6) // units % ages})
        parcels = list(packed([table], "unit", bucket_keys(3), 0, executor._hashed))
        arrived = pyarrow.Table.from_batches(unpacked(parcels, table.schema, None))
        assert arrived.sort_by([("unit", "ascending"), ("age", "ascending")]).equals(
            table.sort_by([("unit", "ascending"), ("age", "ascending")])
        )
        return sum(batch.nbytes for batch in parcels)

    assert sent(100, 1) < 10_000 < 1_000_000 < sent(100, 10**5)


@pytest.mark.parametrize("kind", ["small", "text", "real", "day", "truth", "price", "at"])
def test_units_of_every_type_may_have_very_many_rows(kind, monkeypatch):
    monkeypatch.setattr(packing, "_EVERY", 1)
    monkeypatch.setattr(packing, "_OFTEN", 2)
    one, day = datetime.datetime(2020, 1, 1, 5), datetime.date(2020, 1, 1)
    units = {"small": 1, "text": "é", "real": 0.5, "day": day, "truth": True, "price": Decimal("1.50"), "at": one}
    rows = [{"who": units[kind], **units} for _ in range(5)] + [{"who": None}, {"who": units[kind], "text": "x"}]
    table = pyarrow.Table.from_pylist(rows, pyarrow.schema([("who", TYPES.field(kind).type), *list(TYPES)[1:]]))
    parcels = list(packed([table], "who", bucket_keys(3), 0, executor._hashed))
    sent = [packing.table_of(some.as_buffer()) for batch in parcels for some in batch.column("rows")]
    assert [some.column("count").to_pylist() for some in sent] in ([[5, 1]], [[1, 5]])
    assert shown(pyarrow.Table.from_batches(unpacked(parcels, table.schema, None))) == shown(
        table.filter(pyarrow.compute.is_valid(table.column("who")))
    )


def test_rows_that_differ_in_their_bits_alone_are_not_one(monkeypatch):
    monkeypatch.setattr(packing, "_EVERY", 1)
    monkeypatch.setattr(packing, "_OFTEN", 2)
    reals = [0.0, -0.0, 0.0, np.nan, np.nan, None, 1e300, -0.0, 0.0]
    table = pyarrow.table({"unit": [7] * 9 + [8], "real": pyarrow.array([*reals, 0.0])})
    schema = pyarrow.schema([("table", pyarrow.int32()), *table.schema])
    arrived = pyarrow.Table.from_batches(
        unpacked(packed([table], "unit", (5, 6), 3, executor._hashed), schema, "table")
    )
    assert sorted(map(repr, arrived.column("real").to_pylist())) == sorted(map(repr, [*reals, 0.0]))
    assert arrived.column("table").to_pylist() == [3] * 10


def test_executors_say_fixed_words_of_files_that_fail(tmp_path):
    files = Files((f"file:{tmp_path}/canary.parquet",), ((1,),), frozenset(["x"]))
    schema = pyarrow.schema({"c0": pyarrow.int64()})
    split = [pyarrow.record_batch({"id": [0]})]
    layout = executor.Layout((("t", ((0, "x"),)),), (), reading(files, ["x"], schema))
    for run in (
        sending(files, ["x"], schema, "c0", (0,), 0),
        executor.of_units(layout, lambda engine: engine, schema, whole=False),
    ):
        with pytest.raises(NoisetteError, match="stays inside") as found:
            list(run(split))
        assert found.value.__context__ is None
        assert found.value.__cause__ is None


# In Spark

slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_units_that_are_torn_apart_are_noticed(engine, request, tmp_path, monkeypatch):
    session = request.getfixturevalue(engine)
    path, right = written(tmp_path / "t", MANY.slice(0, 150), MANY.slice(150)), counted(Memory({"t": MANY}))

    def source():
        return Spark(spark_tables(session, {"t": path}))

    assert files_of(source()._opened["t"], source()._frames["t"]).columns == {"who", "x"}
    assert counted(source()) == right
    read = []
    monkeypatch.setattr("noisette.engines.spark.source.routed", lambda *given: read.append(given))
    assert counted(source()) == right
    assert not read  # by Spark
    if engine == "sail":
        return  # so few rows are in one partition there
    torn = "lambda unit, count, _: np.random.default_rng().integers(0, count, len(unit)).astype(np.uint16)"
    monkeypatch.setattr("noisette.engines.spark.routing.sending", _torn(torn))
    assert counted(source())[:2] > right[:2]


def _torn(buckets):
    """The same function of executors, with another choice of buckets there."""

    def made(*given):
        def run(batches):
            before = packing._buckets
            packing._buckets = eval(buckets, {"np": np})
            try:
                yield from sending(*given)(batches)
            finally:
                packing._buckets = before

        return run

    return made


@slow
@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_a_unit_with_half_of_the_table_retains_the_same_rows(engine, request, tmp_path):
    """Its rows are counted in each file, and which of them are retained depends on how often each is there."""
    who = [7 if i % 2 else i // 40 for i in range(40_000)]
    table = pyarrow.table({"who": who, "x": [(i * i) % 13 for i in range(40_000)]})
    assert len(packing._counted(table.slice(0, 17_000), "who")) == 2
    path = written(tmp_path / "t", table.slice(0, 17_000), table.slice(17_000))
    for limits in (Limits(rows=1), Limits(rows=5)):
        source = Spark(spark_tables(request.getfixturevalue(engine), {"t": path}))
        assert counted(source, limits=limits) == counted(DuckDB({"t": table}), limits=limits)


@slow
def test_each_bucket_has_a_partition_of_its_own(spark):
    from pyspark.sql import functions

    keys = bucket_keys(int(spark.conf.get("spark.sql.shuffle.partitions")))
    numbers = spark.range(max(keys) + 1).selectExpr("CAST(id AS INT) AS bucket")
    frame = numbers.where(functions.col("bucket").isin(*keys)).repartition("bucket")
    places = frame.select(functions.spark_partition_id().alias("at")).toArrow().column("at").to_pylist()
    assert len(set(places)) == len(keys) == 3


@slow
def test_units_in_text_that_is_not_valid_stay_together(spark, tmp_path, monkeypatch):
    names = [b"caf\xe9", b"caf?", b"caf\xff", b"ann", b"x\xff?", b"x??"] * 20
    table = pyarrow.table({"who": invalid_text(names), "x": [1] * len(names)})
    path = written(tmp_path / "t", table.slice(0, 50), table.slice(50))

    def source():
        return Spark(spark_tables(spark, {"t": path}))

    one = counted(source(), "text", Limits(rows=1))
    assert one == counted(Memory({"t": table}), "text", Limits(rows=1)) == [[3], [3], [3]]
    by_bytes = (
        "lambda unit, count, _: np.array([len(set(v.as_buffer().to_pybytes())) % count for v in unit], np.uint16)"
    )
    monkeypatch.setattr("noisette.engines.spark.routing.sending", _torn(by_bytes))
    assert counted(source(), "text", Limits(rows=1)) != one


@slow
def test_what_only_spark_reads_is_read_by_spark(sail, tmp_path):
    """Folders that are columns, frames, tables of other files: the answers are those of before."""
    for ward in ("a", "b"):
        written(tmp_path / "parts", MANY)
        (tmp_path / "parts" / f"ward={ward}").mkdir()
        (tmp_path / "parts" / "0.parquet").rename(tmp_path / "parts" / f"ward={ward}" / "0.parquet")
    both = pyarrow.concat_tables([MANY, MANY])
    for opened in (str(tmp_path / "parts"), sail.read.parquet(str(tmp_path / "parts"))):
        source = Spark(spark_tables(sail, {"t": opened}))
        assert files_of(source._opened["t"], source._frames["t"]) is None
        assert counted(source) == counted(Memory({"t": both}))


@slow
def test_a_file_that_changes_while_it_is_open_leaves_the_question_unfinished(sail, tmp_path):
    path = written(tmp_path / "t", MANY)
    source = Spark(spark_tables(sail, {"t": path}))
    assert counted(source) == counted(Memory({"t": MANY}))
    written(tmp_path / "t", pyarrow.concat_tables([MANY, MANY]))
    with pytest.raises(UnfinishedError):
        counted(source, limits=Limits(rows=2))
