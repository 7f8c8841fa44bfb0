"""What only Spark has: sessions, partitions, executors. That it answers as specified is in tests/contracts."""

import gc
import os
import subprocess
import sys
import threading
import warnings
from fractions import Fraction
from types import SimpleNamespace

import pyarrow
import pytest
from pyarrow import parquet
from tests import services
from tests.contracts.test_sources import duckdb_hash, invalid_text
from tests.spark import stored

import noisette as nz
from noisette.engines import open_source
from noisette.engines.memory.source import Memory
from noisette.engines.needed import needed_of_request
from noisette.engines.spark import commit, executor, opening, routing, trial
from noisette.engines.spark.executor import Layout, _copies, ask, of_units
from noisette.engines.spark.held import Held, HeldRows, held_by_spark
from noisette.engines.spark.opening import SparkTable, spark_tables
from noisette.engines.spark.source import Spark
from noisette.engines.spark.versions import version_at
from noisette.engines.sql.partial import merged, multiplied, partial_schema
from noisette.errors import InputError, NoisetteError, UnfinishedError
from noisette.query.beyond import within_bounds
from noisette.query.expression import Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse

pytestmark = pytest.mark.slow
pytest.importorskip("pyspark", reason="Spark needs the extra spark")

SECRET = bytes(range(16))
VISITS = pyarrow.table({"who": [1, 1, 2, 3], "age": [30, 31, 50, 70], "ward": ["a", "b", "a", "a"]})
COLUMNS = {"age": {"bounds": [0, 120]}, "ward": {"keys": ["a", "b"]}}
POLICY = {"tables": {"visits": {"unit": "who", "rows": 2, "columns": COLUMNS}}}
COUNT = "SELECT ward, count(*) AS n, avg(age) AS a FROM visits GROUP BY ward"


@pytest.fixture
def path(tmp_path):
    parquet.write_table(VISITS, tmp_path / "visits.parquet")
    return str(tmp_path / "visits.parquet")


def counted(source, columns, unit, limits, *measures, keys=(), domains=None):
    """Measures of table t, here and in the specification."""
    table = Table("t", tuple(Column(name, kind) for name, kind in columns.items()), unit=unit, limits=limits)
    bounded = None if unit is None else limits
    request = Request(Scan("t", "t"), tuple(keys), domains or (None,) * len(keys), measures, bounded)
    found = source.aggregate(request, {"t": table}, SECRET)
    rows = [m.tolist() for m in found.measures]
    return sorted(zip(*(c.to_pylist() for c in found.keys.columns), *rows, strict=True), key=repr) if keys else rows


# Opening


def test_a_session_its_frames_and_paths_open_and_answer(sail, path):
    frame = sail.read.parquet(path)
    for opened in (
        nz.open(sail, tables={"visits": path}, budget=9, policy=POLICY),
        nz.open(sail, tables={"visits": frame}, budget=9, policy=POLICY),
        nz.open({"visits": frame}, budget=9, policy=POLICY),
    ):
        answer = opened.sql(COUNT, spend=8).to_arrow()
        assert set(answer.column("ward").to_pylist()) == {"a", "b", None}


def test_a_url_opens_and_names_are_looked_up_in_the_catalogue(connect, sail, path):
    data = nz.open(connect, tables={"visits": path}, budget=9, policy=POLICY)
    assert len(data.sql(COUNT, spend=8)) == 3
    with pytest.raises(InputError, match="no table nowhere"):
        nz.open(connect, tables={"visits": "nowhere"}, budget=1)


def test_bad_input_gets_a_sentence(sail, path, tmp_path, monkeypatch):
    frame = sail.read.parquet(path)
    twice = frame.withColumn("age ", frame["age"]).toDF("who", "age", "ward", "AGE")
    for tables, said in (
        ({"visits": "no/such/file.parquet"}, "table visits cannot be read"),
        ({"visits": f"{tmp_path}/visits.csv"}, "Parquet or ORC"),
        ({"visits": 3}, "as a frame of Spark"),
        ({"visits": twice}, "a name of its own"),
        ({"visits": path, "Visits": path}, "a name of its own"),
        ({}, "dictionary of tables"),
    ):
        with pytest.raises(InputError, match=said):
            nz.open(sail, tables=tables, budget=1)
    real = frame.withColumn("who", frame["who"].cast("double"))
    with pytest.raises(InputError, match="must not be a floating-point number"):
        nz.open(sail, tables={"visits": real}, budget=1, policy=POLICY)
    with pytest.raises(InputError, match="of a Spark session"):
        nz.open(path, tables={"visits": path}, budget=1)
    with pytest.raises(InputError, match="one Spark session"):
        open_source({"a": SparkTable(sail, frame), "b": path})
    with pytest.raises(InputError, match="cannot be reached"):
        nz.open("sc://127.0.0.1:1", tables={"visits": path}, budget=1)
    with pytest.raises(InputError, match="too old"):
        opening.check_version("3.5.4")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("JAVA_HOME", "")
    with pytest.raises(InputError, match="needs Java"):
        nz.open("local[2]", tables={"visits": path}, budget=1)


def test_java_that_does_not_start_gets_a_sentence(path):
    code = f"""
import noisette as nz
try:
    nz.open("local[2]", tables={{"visits": {path!r}}}, budget=1)
except nz.errors.InputError as error:
    print(error)
"""
    env = os.environ | {"JAVA_HOME": "/nowhere"}
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True)
    assert ran.stdout.startswith("Spark cannot start here"), ran.stderr[-2000:]


class Executors:
    """A session whose executors have some versions, or cannot run anything."""

    def __init__(self, *versions):
        self.versions = versions

    def range(self, *_):
        return self

    def mapInArrow(self, *_):  # noqa: N802
        return self

    def toArrow(self):  # noqa: N802
        return pyarrow.Table.from_pylist([dict(zip(trial._VERSIONS.names, row, strict=True)) for row in self.versions])


def test_executors_that_would_fail_are_refused_before_anything_is_charged(sail, monkeypatch):
    here = tuple(trial._versions().values())
    with pytest.raises(InputError, match="install noisette"):
        trial.try_executors(Executors())
    with pytest.raises(InputError, match=r"have version 0\.1 of duckdb"):
        trial.try_executors(Executors((here[0], "0.1")))
    trial.try_executors(Executors(here))
    trial._TRIED.discard(sail)
    trial.try_executors(sail)
    monkeypatch.setattr(trial, "_told", lambda _: [])
    trial.try_executors(sail)  # once for each session


def test_opening_tries_the_executors_of_spark_itself(spark, path, monkeypatch):
    for opened in (lambda: spark_tables(spark, {"visits": path}), lambda: spark_tables(spark.read.parquet(path), None)):
        trial._TRIED.discard(spark)
        opened()
        assert spark in trial._TRIED
        trial._TRIED.discard(spark)
        with monkeypatch.context() as patch:
            patch.setattr(trial, "_versions", lambda: {"noisette": nz.__version__, "duckdb": "0.1"})
            with pytest.raises(InputError, match=r"of duckdb and this process has 0\.1"):
                opened()


NEWCOMER = """
import noisette as nz
visits = {"unit": "who", "rows": 3, "columns": {"age": {"bounds": [0, 120]}, "code": {}}}
data = nz.open(
    "local[2]", tables={"visits": "visits.parquet"}, scratch="scratch", budget=nz.Approx(200, "1e-6"),
    policy={"tables": {"visits": visits}},
)
asked = data.sql("SELECT code, count(*) AS n, sum(age) AS s FROM visits GROUP BY code", spend=nz.Approx(100, "1e-8"))
print("codes", sorted(asked.to_arrow().column("code").to_pylist()))
"""


def test_a_newcomer_asks_spark_with_its_own_settings(tmp_path):
    """No environment is active, `python3` is another one, and no setting of Spark's is named."""
    services.java()
    rows = range(900)
    table = pyarrow.table({"who": [i // 2 for i in rows], "age": [i % 90 for i in rows], "code": [i % 3 for i in rows]})
    parquet.write_table(table, tmp_path / "visits.parquet")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHON", "SPARK"))}
    clean["PATH"] = f"{tmp_path}/bin:{os.environ['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NEWCOMER], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert "codes [0, 1, 2]" in ran.stdout, ran.stderr[-2000:]
    assert " WARN " not in ran.stderr
    assert not list((tmp_path / "scratch").iterdir())


def test_rows_of_different_units_are_not_joined(sail, path):
    columns = {"ward": {"rows_per_value": 2}}
    policy = {"tables": {"visits": {"unit": "who", "rows": 2, "columns": columns}}}
    with pytest.raises(InputError, match="leave rows_per_value out of the policy"):
        nz.open(sail, tables={"visits": path}, budget=1, policy=policy)


def test_a_view_is_refused_by_name(sail, path):
    sail.read.parquet(path).createOrReplaceTempView("seen")
    with pytest.raises(InputError, match="is a view"):
        nz.open(sail, tables={"visits": "seen"}, budget=1)


def test_types_that_no_question_can_use_keep_their_names(sail):
    made = "SELECT timestamp'2020-01-01 00:00:00' AS z, array(1) AS l, 1.5BD AS d, X'41' AS b, 'x' AS t"
    source = open_source({"t": SparkTable(sail, sail.sql(made))})
    assert source.stored("t") == {
        "z": "TIMESTAMP WITH TIME ZONE",
        "l": "ARRAY<INT>",
        "d": "DECIMAL(2,1)",
        "b": "BINARY",
        "t": "VARCHAR",
    }


def test_files_pin_a_state_and_frames_do_not(sail, path):
    def state(source):
        return open_source({"visits": SparkTable(sail, source)}).state()

    before = state(path)
    assert before is not None
    assert before == state(path)
    assert state(sail.read.parquet(path)) is None
    parquet.write_table(VISITS.slice(1), path)
    os.utime(path, ns=(1, 1))
    assert state(path) != before


@pytest.mark.parametrize("named", [False, True], ids=["path", "catalogue"])
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_version_is_read_and_pins_the_data(sail, tmp_path, format, named):
    where, table = str(tmp_path / "visits"), f"visits_{format}"
    rows = sail.createDataFrame(VISITS)
    rows.write.format(format).save(where)
    if named:
        sail.sql(f"CREATE TABLE {table} USING {format} LOCATION '{where}'")
    source = table if named else where

    def opened():
        return nz.open(sail, tables={"visits": source}, budget=2000, policy=POLICY, ledger=tmp_path / "ledger")

    def wards(data):
        return [round(n) for n in data.sql(COUNT, spend=400).to_arrow().column("n").to_pylist()]

    data = opened()
    assert wards(data) == [3, 1, 0]
    rows.write.format(format).mode("append").save(where)
    assert wards(data) == [3, 1, 0]  # of the version that was opened
    assert data.sql("SELECT count(*) AS n FROM visits", spend=400)["n"].values.to_pylist() == [4]
    spent = data.budget.spent.epsilon
    data.ledger.close()
    later = opened()
    later.sql(COUNT, spend=400)
    assert later.budget.spent.epsilon == spent + 400  # the same question about another version
    later.ledger.close()
    if named:
        sail.sql(f"DROP TABLE {table}")


def test_the_owner_is_told_of_files_that_are_not_encrypted(sail, spark, path):
    with pytest.warns(UserWarning, match="not encrypted"):
        spark_tables(sail, {"visits": path})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        spark_tables(spark, {"visits": path})


def test_an_address_opens_that_server_and_no_other(sail, connect, spark, path):
    assert spark_tables(connect, {"visits": path})["visits"].session is not sail
    with pytest.raises(InputError, match="another address"):
        spark_tables("local[1]", {"visits": path})


def test_a_table_made_anew_is_another_one(tmp_path):
    log = tmp_path / "visits" / "_delta_log"
    log.mkdir(parents=True)
    assert version_at(str(tmp_path / "visits")) is None
    commit = log / f"{7:020}.json"
    commit.write_text("{}")
    (log / f"{7:020}.checkpoint.parquet").write_text("")
    version = version_at(f"file:{tmp_path}/visits")
    before = version.state()
    assert (version.format, version.option, version.number) == ("delta", "versionAsOf", "7")
    commit.write_text("{ }")
    assert version.state() != before
    assert version_at("nowhere://else") is None


# Partitions

MANY = pyarrow.table({"who": [i % 40 for i in range(400)], "x": [i % 7 for i in range(400)]})
WHOLE = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
X = Name("t.x")
MEASURES = (Measure("rows"), Measure("units"), Measure("sum", X, Fraction(1), 0, 9), Measure("distinct", X))


def many(source, keys=()):
    columns = {"who": Kind("integer"), "x": WHOLE}
    return counted(source, columns, "who", Limits(rows=3), *MEASURES, keys=keys)


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_units_that_are_torn_apart_are_noticed(engine, request, tmp_path, monkeypatch):
    """Rows are in several partitions, so a source that leaves them there bounds too little."""
    session = request.getfixturevalue(engine)
    right = many(Memory({"t": MANY}, hash_of=duckdb_hash))
    assert many(stored(session, tmp_path, {"t": MANY})) == right
    monkeypatch.setattr(routing, "together", lambda sent, *_: routing.functions_of(sent).rand())
    assert many(stored(session, tmp_path, {"t": MANY}))[:2] > right[:2]


def test_groups_of_unknown_keys_come_once(sail, tmp_path):
    right = many(Memory({"t": MANY}, hash_of=duckdb_hash), (X,))
    assert many(stored(sail, tmp_path, {"t": MANY}), (X,)) == right
    assert len(right) == 7


def test_units_in_text_that_is_not_valid_stay_together(spark, tmp_path, monkeypatch):
    """Bytes that are not UTF-8 are read as question marks: these are the rows of three people, not of six."""
    names = [b"caf\xe9", b"caf?", b"caf\xff", b"ann", b"x\xff?", b"x??"] * 20
    table = {"t": pyarrow.table({"who": invalid_text(names), "x": [1] * len(names)})}
    columns = {"who": Kind("text"), "x": WHOLE}
    asked = columns, "who", Limits(rows=1), Measure("rows"), Measure("units")
    assert counted(stored(spark, tmp_path, table), *asked) == counted(Memory(table), *asked) == [[3], [3]]
    monkeypatch.setattr(routing, "together", lambda sent, unit, _: routing.quoted(sent, unit))
    assert counted(stored(spark, tmp_path, table), *asked) != [[3], [3]]


def test_sums_are_cut_when_they_are_complete():
    """Parts beyond 2^62 that cancel are exact; a total beyond it is cut."""
    measures = (Measure("sum", X, Fraction(1), -(2**52), 2**52),)
    schema = partial_schema(None, measures)
    none = {"what": [None] * 4, "cell": [None] * 4, "value": [None] * 4}
    parts = pyarrow.table({"code": [0, 0, 1, 1], **none, "m0": [2**70, -(2**70) + 5, 2**62, 1]}, schema)
    found = merged(parts, measures, ask).sort_by("code")
    assert found.column("m0").to_pylist() == [5, 2**62]


def test_sums_across_partitions_are_cut_once(sail, tmp_path):
    most = 2**52
    kind = Kind("integer", Fraction(-most), Fraction(most), Fraction(1))
    table = {"t": pyarrow.table({"x": [most] * 1500 + [-most] * 1500 + [7]})}
    found = counted(
        stored(sail, tmp_path, table), {"x": kind}, None, Limits(), Measure("sum", X, Fraction(1), -most, most)
    )
    assert found == [[7]]


def test_one_unit_or_one_group_with_half_of_the_table(sail, tmp_path):
    size = 200_000
    heavy = pyarrow.table(
        {"who": [0 if i % 2 else i for i in range(size)], "x": [3 if i % 2 else i % 10 for i in range(size)]}
    )
    columns = {"who": Kind("integer"), "x": WHOLE}
    asked = columns, "who", Limits(groups=1, rows_per_group=2), Measure("rows"), Measure("units")
    one = counted(stored(sail, tmp_path, {"t": heavy}), *asked, keys=(X,))
    assert one == counted(open_source({"t": heavy}), *asked, keys=(X,))


# Equal rows

OFTEN = pyarrow.table(
    {"x": [3] * 16_500 + [4] * 300 + [5, None, 99] * 2, "y": ["a"] * 16_500 + ["b"] * 300 + ["b", "c", None] * 2}
)
HISTOGRAM = Measure("histogram", X, Fraction(1), 0, 9)
PLAIN = (Measure("rows"), Measure("count", X), Measure("sum", X, Fraction(1), 0, 9), Measure("distinct", X), HISTOGRAM)


@pytest.mark.parametrize("engine", ["sail", "spark"])
@pytest.mark.parametrize("keys", [(), (X,), (Name("t.y"),)], ids=["all", "x", "y"])
def test_equal_rows_travel_once_and_count_as_often_as_they_are_there(engine, keys, request, tmp_path, monkeypatch):
    session = request.getfixturevalue(engine)
    columns = {"x": WHOLE, "y": Kind("text", keys=("a", "b"))}
    asked = columns, None, Limits(), *PLAIN
    right = counted(Memory({"t": OFTEN}), *asked, keys=keys)
    assert counted(stored(session, tmp_path, {"t": OFTEN}), *asked, keys=keys) == right
    monkeypatch.setattr(
        "noisette.engines.spark.source.counted", lambda rows: rows.distinct().selectExpr("*", "1L AS count")
    )
    assert counted(stored(session, tmp_path, {"t": OFTEN}), *asked, keys=keys) != right


@pytest.mark.parametrize("engine", ["sail", "spark"])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_rows_are_counted_where_no_column_is_read(engine, rows, request, tmp_path):
    table = {"t": pyarrow.table({"x": pyarrow.array([3] * rows, pyarrow.int64())})}
    asked = {"x": WHOLE}, None, Limits(), Measure("rows")
    assert counted(stored(request.getfixturevalue(engine), tmp_path, table), *asked) == [[rows]]


def test_a_row_that_is_there_a_trillion_times_costs_its_digits():
    """Each table of copies has fewer than 128 of a row, and together they are as many as it says."""
    counts = [1, 127, 128, 2**40 + 129, 3]
    rows = pyarrow.table({"c0": [0, 1, 2, 3, 4], "count": counts})
    found = dict.fromkeys(range(5), 0)
    for times, copies in _copies(rows):
        for one in copies.column("c0").to_pylist():
            found[one] += times
        assert len(copies) < 5 * 128
    assert list(found.values()) == counts


def test_copies_come_in_chunks(monkeypatch):
    monkeypatch.setattr(executor, "_CHUNK", 10)
    rows = pyarrow.table({"c0": list(range(9)), "count": [7, 7, 7, 30, 1, 1, 1, 200, 1]})
    made = list(_copies(rows))
    assert max(len(copies) for _, copies in made) <= 10 + 127
    assert len(made) > 5
    assert sum(times * len(copies) for times, copies in made) == 255


def test_parts_of_many_copies_are_whole_numbers_of_any_size():
    measures = (Measure("rows"), Measure("sum", X, Fraction(1), 0, 9))
    none = {"what": [None], "cell": [None], "value": [None]}
    parts = pyarrow.table({"code": [0], **none, "m0": [5], "m1": [2**80 + 1]}, partial_schema(None, measures))
    made = multiplied(parts, 2**35)
    assert [int(made.column(name)[0].as_py()) for name in ("m0", "m1")] == [5 * 2**35, (2**80 + 1) * 2**35]
    assert made.schema.equals(parts.schema)


@pytest.mark.parametrize(
    ("keys", "measure", "kind", "stored_as", "few"),
    [
        ((), Measure("rows"), Kind("integer"), "BIGINT", True),  # nothing is read
        ((Name("t.key"),), Measure("rows"), Kind("integer"), "BIGINT", True),  # keys alone
        ((Name("t.key"),), Measure("count", X), Kind("integer"), "BIGINT", False),  # and what may differ in each row
        ((), Measure("count", X), WHOLE, "BIGINT", True),  # ten values are declared
        ((), Measure("count", X), WHOLE, "DOUBLE", False),  # of which 0 could be two
        ((), Measure("count", X), Kind("integer", Fraction(0), Fraction(10**6), Fraction(1)), "BIGINT", False),
    ],
)
def test_declarations_alone_say_whether_equal_rows_are_counted(keys, measure, kind, stored_as, few):
    table = Table("t", (Column("x", kind), Column("key", Kind("text"))), unit=None, limits=Limits())
    request = Request(Scan("t", "t"), keys, (None,) * len(keys), (measure,), None)
    read = needed_of_request(request, {"t": table})["t"]
    assert routing.few_differ(read, request, table, {"x": stored_as, "key": "VARCHAR"}, {"t": table}) is few


def test_what_a_filter_reads_is_no_key():
    """Groups by a key alone would be few; with what the filter reads, each row may differ."""
    table = Table("t", (Column("x", Kind("integer")), Column("key", Kind("text"))), unit=None, limits=Limits())
    query = parse("SELECT key, count(*) FROM t WHERE x > 3 GROUP BY key", {"t": table})
    request = Request(query.source, query.keys, (None,), (Measure("rows"),), None)
    read = needed_of_request(request, {"t": table})["t"]
    assert not routing.few_differ(read, request, table, {"x": "BIGINT", "key": "VARCHAR"}, {"t": table})


def test_that_a_key_lies_within_its_bounds_is_no_filter():
    """Groups are those of the key, whether or not rows beyond its bounds are left out of them."""
    many = Kind("integer", Fraction(0), Fraction(10**6), Fraction(1))
    table = Table("t", (Column("x", many), Column("key", Kind("text"))), unit=None, limits=Limits())
    for condition, few in (("x IS NULL OR x IS NOT NULL", False), ("x > 3", False), (None, True)):
        text = f"SELECT x, count(*) FROM t {'' if condition is None else f'WHERE {condition}'} GROUP BY x"
        query = parse(text, {"t": table})
        request = within_bounds(Request(query.source, query.keys, (None,), (Measure("rows"),), None), {"t": table})
        read = needed_of_request(request, {"t": table})["t"]
        assert routing.few_differ(read, request, table, {"x": "BIGINT", "key": "VARCHAR"}, {"t": table}) is few


# Failures


def test_what_spark_says_of_a_failure_stays_inside(sail, path):
    """A frame that fails on a value: neither the error nor what it hangs on quotes it."""
    frame = sail.read.parquet(path)
    broken = frame.selectExpr("who", "raise_error(concat('canary ', ward)) AS x")
    with pytest.raises(UnfinishedError) as found:
        counted(
            open_source({"t": SparkTable(sail, broken)}),
            {"x": Kind("text")},
            "who",
            Limits(rows=1),
            Measure("count", X),
        )
    fault = found.value
    assert "canary" not in str(fault)
    assert fault.__cause__ is None
    assert fault.__context__ is None


def test_executors_raise_fixed_words():
    def fail(_):
        raise ValueError("canary")

    run = of_units(Layout((("t", ((0, "x"),)),), ()), fail, pyarrow.schema({"x": pyarrow.int64()}), whole=True)
    with pytest.raises(NoisetteError, match="stays inside") as found:
        list(run([pyarrow.record_batch({"c0": [1]})]))
    assert found.value.__context__ is None
    assert found.value.__cause__ is None


# Rows


def test_units_are_numbered_by_rank_whatever_the_partitions(sail, tmp_path):
    table = Table("t", (Column("x", WHOLE),), unit="who", limits=Limits(rows=3))
    found = stored(sail, tmp_path, {"t": MANY}).rows(Scan("t", "t"), {"t.x": "x"}, {"t": table}, SECRET)
    pairs = sorted(zip(found.column("unit").to_pylist(), found.column("x").to_pylist(), strict=True))
    assert pairs == sorted(zip(MANY.column("who").to_pylist(), MANY.column("x").to_pylist(), strict=True))


# Retained rows that are held


def on_disk(session, folder, table):
    """A source that is pinned by its files."""
    (folder / "t").mkdir(exist_ok=True)
    for i in range(3):
        parquet.write_table(table.slice(20 * i, 20), folder / "t" / f"{i}.parquet")
    return Spark(spark_tables(session, {"t": f"{folder}/t"}))


OWNED = {"who": Kind("integer"), "x": WHOLE, "y": Kind("text", keys=("a", "b"))}
SIXTY = pyarrow.table(
    {"who": [i % 7 for i in range(60)], "x": [i % 11 for i in range(60)], "y": ["ab"[i % 2] for i in range(60)]}
)


@pytest.mark.parametrize("keys", [(), (X,), (Name("t.y"),)], ids=["all", "x", "y"])
@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_held_rows_answer_as_the_rows_themselves(engine, keys, request, tmp_path):
    """Other measures in turn: what is held grows, and serves what it has; one in three reads the table."""
    source = on_disk(request.getfixturevalue(engine), tmp_path, SIXTY)
    bounds = OWNED, "who", Limits(groups=2, rows_per_group=3)
    asked = [(Measure("rows"),), (Measure("sum", X, Fraction(1), 0, 9), Measure("units")), (Measure("distinct", X),)]
    for measures in (*asked, *asked):
        right = counted(open_source({"t": SIXTY}), *bounds, *measures, keys=keys)
        assert counted(source, *bounds, *measures, keys=keys) == right
    assert len(source._held._frames) >= 1


@pytest.mark.parametrize("limits", [Limits(groups=2), Limits(rows=3)], ids=["groups", "rows"])
def test_held_rows_serve_questions_about_other_columns(sail, tmp_path, limits):
    """Columns of several types, together and one by one: none is taken for another."""
    more = SIXTY.append_column("day", pyarrow.array([f"2026-01-{i % 28 + 1:02}" for i in range(60)]))
    source, columns = on_disk(sail, tmp_path, more), {**OWNED, "day": Kind("text")}
    x, day, y = Measure("sum", X, Fraction(1), 0, 9), Measure("distinct", Name("t.day")), Measure("count", Name("t.y"))
    for measures in ((x,), (day,), (y, x), (day, x, y), (x,), (day,), (y,)):
        asked = columns, "who", limits, *measures
        right = counted(open_source({"t": more}), *asked, keys=(Name("t.y"),))
        assert counted(source, *asked, keys=(Name("t.y"),)) == right


def test_rows_are_held_for_questions_that_retain_the_same(sail, tmp_path, monkeypatch):
    source, made = on_disk(sail, tmp_path, SIXTY), []
    retained = "noisette.engines.spark.source.retaining"
    monkeypatch.setattr(retained, lambda *given: made.append(given) or executor.retaining(*given))
    total, bounds = Measure("sum", X, Fraction(1), 0, 9), (OWNED, "who")
    counted(source, *bounds, Limits(rows=3), total)
    counted(source, *bounds, Limits(rows=3), total, Measure("count", X))
    assert len(made) == 1
    counted(source, *bounds, Limits(rows=2), total)  # other limits
    counted(source, *bounds, Limits(rows=2), total, keys=(X,))  # other groups
    assert len(made) == 3


def test_few_parts_come_in_the_pass_that_retains_rows(sail, tmp_path, monkeypatch):
    """Also where what a task retains is held in several pieces: its parts come with the first one."""
    monkeypatch.setattr(executor, "_CHUNK", 7)
    source, again = on_disk(sail, tmp_path, SIXTY), []
    read = "noisette.engines.spark.source.of_retained"
    monkeypatch.setattr(read, lambda *given: again.append(given) or executor.of_retained(*given))
    total, bounds = Measure("sum", X, Fraction(1), 0, 9), (OWNED, "who", Limits(rows=3))
    right = counted(open_source({"t": SIXTY}), *bounds, total)
    assert counted(source, *bounds, total) == right
    assert not again
    assert counted(source, *bounds, total) == right
    assert len(again) == 1


class Shown:
    """A draw that adds nothing, so that a test sees the cells that it gets."""

    def __call__(self, exact, rng):
        return exact

    def table(self, exact):
        numbers = {f"m{i}": pyarrow.array(m) for i, m in enumerate(exact.measures)}
        return pyarrow.table(dict(zip(exact.keys.column_names, exact.keys.columns, strict=True)) | numbers)

    def read(self, table):
        return table


KEYED = pyarrow.table(
    {
        "n": [None if i % 13 == 0 else (-5, 0, 3, 9, 10, 2**62, -(2**63))[i % 7] for i in range(200)],
        "t": [(None, "", "?", "a?", "a", "é", "b")[i // 7 % 7] for i in range(200)],
        "b": [(None, True, False)[i % 3] for i in range(200)],
        "x": [i % 11 for i in range(200)],
    }
)
FREE = {"n": Kind("integer"), "t": Kind("text"), "b": Kind("boolean"), "x": WHOLE}
BOUNDED = {
    "bounds": FREE | {"n": Kind("integer", Fraction(0), Fraction(9))},
    "an end": FREE | {"n": Kind("integer", Fraction(0))},
}
CLEANED = {
    "no NULL": FREE | {"n": Kind("integer", nullable=False)},
    "text without NULL": FREE | {"t": Kind("text", nullable=False)},
    "truth without NULL": FREE | {"b": Kind("boolean", nullable=False)},
}


def cells_sent(session, folder, columns, monkeypatch, *, keys="ntb", domains=None, rows=KEYED):
    """What a draw on executors gets, what it should get, and whether groups are sent before they are clean."""
    table = Table("t", tuple(Column(name, kind) for name, kind in columns.items()))
    asked = tuple(Name(f"t.{key}") for key in keys)
    measures = Measure("rows"), Measure("sum", X, Fraction(1), 0, 9)
    request = Request(Scan("t", "t"), asked, domains or (None,) * len(asked), measures, None)
    source, whole = stored(session, folder, {"t": rows}), []

    def shown(frame, draw, layout, scratch, rng, *, merge, by):
        whole.append(by is not None)
        return commit.noised(frame, draw, layout, rng, merge=merge, by=by).toArrow()

    monkeypatch.setattr("noisette.engines.spark.source.noised_once", shown)
    source._scratch = "a folder"
    found = source.release(request, Shown(), {"t": table}, SECRET)
    cells = sorted(zip(*(c.to_pylist() for c in found.drop_columns(["bucket"]).columns), strict=True), key=repr)
    right = counted(open_source({"t": rows}), columns, None, None, *measures, keys=asked, domains=domains)
    return cells, right, whole == [True]


@pytest.mark.parametrize("keys", ["n", "t", "b", "ntb"])
def test_groups_of_plain_keys_are_sent_to_the_draw_at_once(sail, tmp_path, monkeypatch, keys):
    found, right, whole = cells_sent(sail, tmp_path, FREE, monkeypatch, keys=keys)
    assert found == right
    assert whole


def test_keys_in_text_that_is_not_valid_stay_together(spark, tmp_path, monkeypatch):
    """A twin that sends them by their bytes draws for a cell twice."""
    names = [b"caf\xe9", b"caf?", b"caf\xff", b"ann", b"x\xff?", b"x??", None] * 20
    rows = pyarrow.table({"t": invalid_text(names), "x": [i % 9 for i in range(140)]})
    columns = {"t": Kind("text"), "x": WHOLE}
    found, right, whole = cells_sent(spark, tmp_path, columns, monkeypatch, keys="t", rows=rows)
    assert found == right
    assert whole
    assert len(right) == 4
    monkeypatch.setattr("noisette.engines.spark.source.together", lambda sent, name, _: routing.quoted(sent, name))
    assert len(cells_sent(spark, tmp_path, columns, monkeypatch, keys="t", rows=rows)[0]) > 4


def test_keys_that_are_declared_need_not_stay_apart(sail, tmp_path, monkeypatch):
    columns = FREE | {"n": Kind("integer", Fraction(0), Fraction(9), keys=(0, 3, 9), nullable=False)}
    found, right, whole = cells_sent(sail, tmp_path, columns, monkeypatch, keys="nt", domains=((0, 3, 9), None))
    assert found == right
    assert whole


@pytest.mark.parametrize("name", BOUNDED)
def test_keys_beyond_their_bounds_are_not_sent(sail, tmp_path, monkeypatch, name):
    found, right, _ = cells_sent(sail, tmp_path, BOUNDED[name], monkeypatch)
    assert found == right
    assert {0, 9} < {key for key, *_ in right} <= {None, *range(0, 10), *([] if name == "bounds" else [10, 2**62])}


@pytest.mark.parametrize("name", CLEANED)
def test_keys_that_cleaning_makes_one_are_clean_before_they_are_sent(sail, tmp_path, monkeypatch, name):
    """A twin that sends them as they are stored draws for a cell twice."""
    found, right, whole = cells_sent(sail, tmp_path, CLEANED[name], monkeypatch)
    assert found == right
    assert not whole
    (tmp_path / "twin").mkdir()
    monkeypatch.setattr("noisette.engines.sql.totals.stays_apart", lambda *_: True)
    found, right, _ = cells_sent(sail, tmp_path / "twin", CLEANED[name], monkeypatch)
    assert len(found) > len(right)


def test_small_frames_that_are_held_are_computed_in_few_tasks(spark, tmp_path, monkeypatch):
    from pyspark.sql import functions

    adaptive = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
    merging, before = "spark.sql.adaptive.coalescePartitions.enabled", spark.conf.get(adaptive)

    def tasks(hold):
        held = hold(spark.range(100).repartition("id"))
        places = held.select(functions.spark_partition_id().alias("at")).toArrow().column("at").to_pylist()
        held.unpersist()
        return len(set(places))

    spark.conf.set(merging, "true")
    spark.conf.set(adaptive, "false")
    try:
        assert (tasks(held_by_spark), tasks(lambda frame: frame.persist())) == (1, 3)
        assert spark.conf.get(adaptive) == "false"
        monkeypatch.setattr(Spark, "_readable", lambda *_: None)  # so that Spark reads
        source = on_disk(spark, tmp_path, SIXTY)
        counted(source, OWNED, "who", Limits(rows=3), Measure("rows"))
        [held] = source._held._frames.values()
        assert len(held.frame.toArrow()) == 1  # a row of each task
    finally:
        spark.conf.set(merging, "false")
        spark.conf.set(adaptive, before)


def test_a_server_that_lets_nobody_change_its_settings_holds_frames_as_well():
    def refused(*_):
        raise ValueError

    for conf in (SimpleNamespace(get=refused), SimpleNamespace(get=lambda _: "false", set=refused)):
        frame = SimpleNamespace(sparkSession=SimpleNamespace(conf=conf), persist=lambda: "held")
        assert held_by_spark(frame) == "held"


def test_rows_are_not_held_where_the_data_changed_or_nothing_says_so(sail, tmp_path):
    """A twin that goes by the question alone would answer about the rows of before."""
    total, bounds = Measure("rows"), (OWNED, "who", Limits(rows=100))
    source = on_disk(sail, tmp_path, SIXTY)
    assert counted(source, *bounds, total) == [[60]]
    parquet.write_table(SIXTY.slice(0, 7), tmp_path / "t" / "more.parquet")
    again = Spark(spark_tables(sail, {"t": f"{tmp_path}/t"}))
    again._held = source._held
    assert counted(again, *bounds, total) == [[67]]
    unpinned = stored(sail, tmp_path, {"t": SIXTY})
    assert counted(unpinned, *bounds, total) == [[60]]
    assert not unpinned._held._frames


def test_a_server_that_is_gone_keeps_nobody_waiting():
    """A client of Spark Connect tries for minutes; whoever lets go of a source does not."""
    asked, answered = threading.Event(), threading.Event()
    frame = SimpleNamespace(unpersist=lambda: asked.set() or answered.wait())
    held = Held()
    held.put("key", HeldRows(frame, Layout((), ()), {}, firsts=False))
    del held
    assert asked.wait(60)
    answered.set()


def test_a_process_that_holds_rows_ends():
    """A thread that starts while the interpreter ends would never be there, and whoever waits for it never done."""
    made = """
from types import SimpleNamespace
from noisette.engines.spark.executor import Layout
from noisette.engines.spark.held import Held, HeldRows
held = Held()
held.put("key", HeldRows(SimpleNamespace(unpersist=print), Layout((), ()), {}, firsts=False))
print("end")
"""
    ran = subprocess.run([sys.executable, "-c", made], check=True, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "end\n"


def test_a_frame_that_is_no_longer_held_is_forgotten(sail, tmp_path, monkeypatch):
    gone = []
    monkeypatch.setattr("noisette.engines.spark.held._forget", lambda *held: gone.extend(held))
    source = on_disk(sail, tmp_path, SIXTY)
    for rows in range(1, 7):
        counted(source, OWNED, "who", Limits(rows=rows), Measure("rows"))
    held = list(source._held._frames.values())
    assert (len(gone), len(held)) == (2, 4)
    del source
    gc.collect()
    assert all(rows in gone for rows in held)
