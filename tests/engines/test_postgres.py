"""What only a server has: accounts, views, snapshots, changes. That it answers as specified is in tests/contracts."""

import gc
import json
import time
from fractions import Fraction

import pyarrow
import pytest
from tests import postgres

import noisette as nz
from noisette.curator.project import Project
from noisette.engines import open_source
from noisette.errors import InputError, NoisetteError, UnfinishedError
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Kind, Table

pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL needs the extra postgres")

VISITS = pyarrow.table({"who": [1, 1, 2, 3], "age": [30, 31, 50, 70], "ward": ["a", "b", "a", "a"]})
POLICY = {
    "tables": {
        "visits": {
            "unit": "who",
            "rows": 2,
            "columns": {"age": {"bounds": [0, 120]}, "ward": {"keys": ["a", "b"]}},
        }
    }
}
COUNT = Request(Scan("visits", "v"), (), (), (Measure("rows"),), None)
SCHEMA = {"visits": Table("visits", (Column("age", Kind("integer")),))}


@pytest.fixture
def url(server):
    found = server()
    postgres.stored(found, {"visits": VISITS})
    return found


def run(url, *statements):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def counted(source):
    return int(source.aggregate(COUNT, SCHEMA, bytes(16)).measures[0][0])


# Opening


def test_the_url_of_a_database_opens_its_tables_and_answers(url):
    data = nz.open(url, budget=9, policy=POLICY)
    answer = data.sql("SELECT ward, count(*) AS n FROM visits GROUP BY ward", spend=8).to_arrow()
    assert set(answer.column("ward").to_pylist()) == {"a", "b", None}
    assert data.sql("SELECT count(*) AS n FROM visits WHERE age > 40", spend="1/10") is not None


def test_pairs_name_tables_of_any_schema(url, server):
    import psycopg

    with psycopg.connect(url) as connection:
        [(schema,)] = connection.execute("SELECT current_schema()").fetchall()
    other = server()
    source = open_source({"seen": (other, f"{schema}.visits")})
    assert source.tables == ("seen",)
    assert source.stored("seen") == {"who": "BIGINT", "age": "BIGINT", "ward": "VARCHAR"}
    with pytest.raises(InputError, match="no table visits that this account can read"):
        open_source({"seen": (other, "visits")})


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("CREATE VIEW odd AS SELECT 1 / (age - age) AS x FROM visits", "could fail on some row"),
        ("CREATE TABLE odd (x int); ALTER TABLE odd ENABLE ROW LEVEL SECURITY", "Row-level security"),
        ('CREATE TABLE odd (x int, "X" int)', "a name of its own"),
    ],
)
def test_what_could_fail_or_hide_rows_is_refused(url, made, said):
    run(url, *made.split("; "))
    run(url, "DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    run(url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk", "GRANT SELECT ON odd TO clerk")
    schema = url.rpartition("%3D")[2]
    run(url, f"GRANT USAGE ON SCHEMA {schema} TO clerk")
    with pytest.raises(InputError, match=said):
        open_source({"odd": (url.replace("postgres:@", "clerk:@"), "odd")})


FOREIGN = (
    "DO $$ BEGIN CREATE FOREIGN DATA WRAPPER nowhere; EXCEPTION WHEN duplicate_object THEN END $$",
    "DO $$ BEGIN CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere; EXCEPTION WHEN duplicate_object THEN END $$",
)


@pytest.mark.parametrize(
    "made",
    [
        (
            "CREATE TABLE odd (x int) PARTITION BY RANGE (x)",
            "CREATE FOREIGN TABLE odd_low PARTITION OF odd FOR VALUES FROM (0) TO (9) SERVER nowhere",
        ),
        (
            "CREATE TABLE odd (x int) PARTITION BY RANGE (x)",
            "CREATE TABLE odd_low PARTITION OF odd FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (x)",
            "CREATE FOREIGN TABLE odd_lowest PARTITION OF odd_low FOR VALUES FROM (0) TO (3) SERVER nowhere",
        ),
        ("CREATE TABLE odd (x int)", "CREATE FOREIGN TABLE odd_more () INHERITS (odd) SERVER nowhere"),
    ],
    ids=["partition", "of a partition", "child"],
)
def test_a_table_of_which_a_part_is_foreign_is_refused(url, made):
    run(url, *FOREIGN, *made)
    with pytest.raises(InputError, match=r"^A part of odd is a foreign table, which could fail on some row: "):
        open_source({"odd": (url, "odd")})
    assert open_source({"visits": (url, "visits")}).tables == ("visits",)


def test_a_table_of_which_all_parts_are_stored_is_read(url):
    run(
        url,
        "CREATE TABLE parted (x int) PARTITION BY RANGE (x)",
        "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (9)",
        "INSERT INTO parted VALUES (1), (2)",
    )
    assert open_source({"parted": (url, "parted")}).stored("parted") == {"x": "INTEGER"}


def test_columns_that_no_question_can_use_are_named_with_a_cure(url):
    run(url, "CREATE TABLE odd (who int, c char(3), z timestamptz, j json)")
    assert open_source(url).stored("odd") == {
        "who": "INTEGER",
        "c": "CHARACTER",
        "z": "TIMESTAMP WITH TIME ZONE",
        "j": "JSON",
    }
    for column, cure in {"c": "spaces at the end", "z": "one time zone", "j": "store it as text"}.items():
        with pytest.raises(InputError, match=cure):
            nz.open(url, budget=1, policy={"tables": {"odd": {"columns": {column: {"keys": ["a"]}}}}})


def test_the_account_needs_select_alone_and_sees_the_columns_it_was_granted(url):
    schema = url.rpartition("%3D")[2]
    run(
        url,
        "DO $$ BEGIN CREATE ROLE viewer LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
        f"GRANT USAGE ON SCHEMA {schema} TO viewer",
        "GRANT SELECT (who, age) ON visits TO viewer",
    )
    source = open_source(url.replace("postgres:@", "viewer:@"))
    assert set(source.stored("visits")) == {"who", "age"}
    assert counted(source) == 4


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be reached"),
        ({"a": ("postgresql://x/y", "a"), "b": ("postgresql://x/z", "b")}, "one PostgreSQL database"),
        ({"a": ("postgresql://x/y", "a"), "b": "visits.parquet"}, "Name tables of one database"),
        ({"a": ("postgresql://x/y", 3)}, "Name tables of one database"),
        ({"a": ("postgresql://x/y",)}, "Name tables of one database"),
    ],
)
def test_bad_addresses_get_a_sentence(tables, said):
    with pytest.raises(InputError, match=said):
        open_source(tables)


def test_an_empty_schema_says_what_to_grant(server):
    with pytest.raises(InputError, match="grant SELECT"):
        open_source(server())


def test_no_moment_or_decimal_makes_reading_fail(url):
    """The driver cannot hold the last timestamps, NaN is a decimal, and infinite moments are beyond every bound."""
    run(
        url,
        "CREATE TABLE odd (who int, at timestamp, day date, n numeric, p numeric(9,2))",
        "INSERT INTO odd VALUES (1, 'infinity', '-infinity', '1e400', 'NaN')",
        "INSERT INTO odd VALUES (2, '294276-12-31', '5874897-12-31', 'NaN', 2.5)",
        "INSERT INTO odd VALUES (3, '4713-01-01 BC', '4713-01-01 BC', '-Infinity', 7.25)",
        "INSERT INTO odd VALUES (4, '2020-05-06 07:08', '2020-05-06', 3.5, NULL)",
    )
    moment = Kind("timestamp", Fraction(0), Fraction(10**16))
    days = Kind("date", Fraction(0), Fraction(40_000))
    kinds = {
        "at": moment,
        "day": days,
        "n": Kind("real", Fraction(0), Fraction(9)),
        "p": Kind("real", Fraction(0), Fraction(9)),
    }
    table = {"odd": Table("odd", tuple(Column(name, kind) for name, kind in kinds.items()))}
    found = open_source({"odd": (url, "odd")}).rows(Scan("odd", "o"), {f"o.{c}": c for c in kinds}, table, bytes(16))
    rows = {name: sorted(map(str, found.column(name).to_pylist())) for name in kinds}
    assert rows["at"][:2] == ["1970-01-01 00:00:00", "2020-05-06 07:08:00"]
    assert rows["at"][2] == rows["at"][3]  # infinite, or far away: the last moment that counts
    assert rows["day"] == ["1970-01-01", "1970-01-01", "2020-05-06", "2079-07-08"]
    assert rows["n"] == ["0.0", "3.5", "9.0", "None"]
    assert rows["p"] == ["2.5", "7.25", "None", "None"]


def test_units_and_keys_that_could_be_read_as_others_are_refused(url):
    """Decimals of no size are read as doubles, which are fewer; those of a size are exact."""
    run(url, "CREATE TABLE odd (who numeric, n numeric(20,0), x int)", "CREATE TABLE parts (n numeric(20,0), x int)")
    source = {"odd": (url, "odd"), "parts": (url, "parts")}
    link = {"unit": {"through": "odd", "on": {"n": "n"}}, "rows": 1}
    with pytest.raises(InputError, match="who of odd is stored in a type that cannot say whose a row is"):
        nz.open(source, budget=1, policy={"tables": {"odd": {"unit": "who", "rows": 1}, "parts": {"public": True}}})
    nz.open(source, budget=1, policy={"tables": {"odd": {"unit": "n", "rows": 1}, "parts": link}})
    run(url, "ALTER TABLE odd ADD COLUMN at timestamp", "ALTER TABLE parts ADD COLUMN at timestamp")
    link["unit"]["on"] = {"at": "at"}
    with pytest.raises(InputError, match="at of parts is stored in a type"):
        nz.open(source, budget=1, policy={"tables": {"odd": {"unit": "n", "rows": 1}, "parts": link}})


def test_rows_that_are_hidden_later_are_an_error_and_no_smaller_answer(url):
    schema = url.rpartition("%3D")[2]
    run(
        url,
        "DO $$ BEGIN CREATE ROLE viewer LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
        f"GRANT USAGE ON SCHEMA {schema} TO viewer",
        "GRANT SELECT ON visits TO viewer",
    )
    source = open_source(url.replace("postgres:@", "viewer:@"))
    run(url, "ALTER TABLE visits ENABLE ROW LEVEL SECURITY", "CREATE POLICY young ON visits USING (age < 40)")
    with pytest.raises(NoisetteError, match="what it said stays inside"):
        counted(source)


# Changes


def test_rows_that_come_are_read_once_the_server_counts_them(url):
    source = open_source(url)
    assert counted(source) == 4
    run(url, "INSERT INTO visits VALUES (4, 20, 'b')", "SELECT pg_stat_force_next_flush()")
    assert counted(source) == 5


def test_what_was_read_is_kept_while_nothing_changes(url, monkeypatch):
    source = open_source(url)
    counted(source)
    read = []
    frame = type(source)._frame
    monkeypatch.setattr(type(source), "_frame", lambda *asked: read.append(asked[2]) or frame(*asked))
    counted(source)
    assert read == []


def test_the_state_is_that_of_the_rows(url):
    before = open_source(url).state()
    assert before == open_source(url).state()
    run(url, "UPDATE visits SET age = age", "SELECT pg_stat_force_next_flush()")
    assert open_source(url).state() != before


def test_where_the_server_counts_nothing_no_state_comes_again(url):
    uncounted = url.replace("options=", "options=-ctrack_counts%3Doff%20")
    assert open_source(uncounted).state() is None
    assert counted(open_source(uncounted)) == 4
    with pytest.raises(InputError, match="pinned = false into the policy"):
        nz.open(uncounted, budget=1, policy=POLICY)
    data = nz.open(uncounted, budget=1, policy={**POLICY, "pinned": False})
    asked = "SELECT count(*) AS n FROM visits"
    records = [data.sql(asked, spend="1/4").record["state"] for _ in range(3)]
    assert (set(records), data.budget.left.epsilon) == ({"unpinned"}, Fraction("1/4"))


def test_each_question_is_about_the_rows_as_they_are_counted_then(url):
    """A repeated question is free while nothing changes, and charged, with another state in its record, after that."""
    data = nz.open(url, budget=1, policy=POLICY)
    asked = "SELECT count(*) AS n FROM visits"
    first = [data.sql(asked, spend="1/4") for _ in range(2)]
    assert (first[0].record["state"], data.budget.left.epsilon) == (first[1].record["state"], Fraction("3/4"))
    run(url, "INSERT INTO visits VALUES (4, 20, 'b')", "SELECT pg_stat_force_next_flush()")
    later = data.sql(asked, spend="1/4")
    assert later.record["state"] != first[0].record["state"]
    assert data.budget.left.epsilon == Fraction("1/2")
    pins = [json.loads(entry.pin) for entry in data.ledger.entries]
    assert pins[0]["tables"] != pins[1]["tables"]
    assert "tables" not in later.to_json()


def test_partitions_count_as_their_table(url):
    run(
        url,
        "CREATE TABLE parts (who int, age int) PARTITION BY RANGE (age)",
        "CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (50)",
        "CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (50) TO (200)",
    )
    source = open_source({"visits": (url, "parts")})
    before = source.state()
    run(url, "INSERT INTO parts VALUES (1, 20), (2, 60)", "SELECT pg_stat_force_next_flush()")
    assert source.state() != before
    assert counted(source) == 2


def test_a_server_that_dies_says_nothing_of_the_data(url, monkeypatch):
    source = open_source(url)
    run(url, "ALTER TABLE visits RENAME TO gone")
    with pytest.raises(NoisetteError, match="what it said stays inside") as caught:
        counted(source)
    assert caught.value.__context__ is None
    assert "visits" not in str(caught.value)


def test_a_connection_that_the_server_ends_is_made_again(url):
    source = open_source(f"{url}&application_name=ended")
    assert counted(source) == 4
    run(url, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'ended'")
    assert counted(source) == 4


def test_no_transaction_and_no_connection_is_left_behind(url):
    """A transaction that stays open would keep the server from clearing away old rows."""
    import psycopg

    source = open_source(f"{url}&application_name=left")
    counted(source)
    asked = "SELECT state FROM pg_stat_activity WHERE application_name = 'left'"
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute(asked).fetchall() == [("idle",)]
        del source
        gc.collect()
        until = time.monotonic() + 120  # it hangs
        while connection.execute(asked).fetchall():
            assert time.monotonic() < until


def test_a_server_that_is_not_there_leaves_a_question_unfinished(url):
    data = nz.open(url, budget=1, policy=POLICY)
    source, address, gone = data._source, data._source._url, "postgresql://nobody@127.0.0.1:1/none"
    source._url = gone
    with pytest.raises(NoisetteError, match="nothing was charged"):
        data.sql("SELECT count(*) AS n FROM visits", spend="1/4")
    assert data.budget.left.epsilon == Fraction("1")
    source._url = address
    pinned = data._pin()
    for _ in range(2):
        data._pin, source._url = lambda: pinned, gone  # it dies after the charge
        with pytest.raises(UnfinishedError, match="under the same charge") as caught:
            data.sql("SELECT count(*) AS n FROM visits", spend="1/4")
        assert caught.value.__cause__ is None
    source._url = address
    data.sql("SELECT count(*) AS n FROM visits", spend="1/4")
    assert data.budget.left.epsilon == Fraction("3/4")  # charged once, when it was asked first


# Ledgers and projects


def test_one_budget_for_a_table_whatever_the_server_is_called(url, tmp_path):
    nz.open(url, budget=1, policy=POLICY, ledger=tmp_path / "one.ledger").sql(
        "SELECT count(*) AS n FROM visits", spend="1/10"
    )
    again = f"{url}&application_name=other"
    data = nz.open(again, budget=1, policy=POLICY, ledger=tmp_path / "one.ledger")
    assert data.budget.left.epsilon < 1
    with pytest.raises(NoisetteError, match="ledger"):
        nz.open(again, budget=1, policy=POLICY, ledger=tmp_path / "two.ledger")


def test_a_project_keeps_the_address_without_a_password(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Project.create([f"visits={url}#visits"], budget=1, unit="who", rows=2)
    assert made.folder == tmp_path
    asked = "SELECT count(*) AS n FROM visits"
    first = made.curator().sql(asked, spend="1/10").to_arrow()
    assert Project.find(tmp_path).curator().sql(asked, spend="1/10").to_arrow().equals(first)
    with pytest.raises(InputError, match="Leave the password out"):
        Project.create(["postgresql://me:word@host/clinic"], budget=1)
    with pytest.raises(InputError, match="Name tables of one database"):
        Project.create([url, "other.parquet"], budget=1)
