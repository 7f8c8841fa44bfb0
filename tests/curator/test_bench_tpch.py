"""`make bench-tpch` on small tables of the same columns: every query is answered, its figures are right, twins fail."""

import json
import re
from dataclasses import replace

import duckdb
import pyarrow
import pytest
from benchmarks.harness import Bench
from benchmarks.tpch import __main__ as program
from benchmarks.tpch import data, measured, report
from benchmarks.tpch.projects import COLUMNS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, UNITS, policy
from benchmarks.tpch.queries import COMPARED, QUERIES

from noisette.curator.described import described_data

CUSTOMERS, ORDERS, PARTS, SUPPLIERS = 60, 600, 40, 20
MONEY = "DECIMAL(15,2)"


def one_of(values, i):
    """SQL for one of some values, by a number."""
    return f"[{', '.join(repr(v) for v in values)}][1 + ({i}) % {len(values)}]"


def day(i):
    return f"(DATE '1992-01-01' + (({i}) % 2400)::INTEGER)"


NATION_ROWS = [(i, name, j) for j, names in enumerate(REGIONS.values()) for i, name in enumerate(names, 5 * j)]
MADE = {
    "region": f"SELECT i AS r_regionkey, {one_of(REGIONS, 'i')} AS r_name FROM range(5) t(i)",
    "nation": f"SELECT * FROM (VALUES {', '.join(map(str, NATION_ROWS))}) t(n_nationkey, n_name, n_regionkey)",
    "customer": f"""SELECT i AS c_custkey, i % 25 AS c_nationkey, (i * 37 % 9000)::{MONEY} AS c_acctbal,
        {one_of(SEGMENTS, "i")} AS c_mktsegment, (10 + i % 25) || '-555' AS c_phone FROM range({CUSTOMERS}) t(i)""",
    "orders": f"""SELECT i AS o_orderkey, i * 7 % {CUSTOMERS - 10} AS o_custkey, {one_of("FOP", "i")} AS o_orderstatus,
        (i * 911 % 400000)::{MONEY} AS o_totalprice, {day("i * 13")} AS o_orderdate,
        {one_of(PRIORITIES, "i")} AS o_orderpriority, 0 AS o_shippriority,
        CASE WHEN i % 9 = 0 THEN 'special requests' ELSE 'none' END AS o_comment FROM range({ORDERS}) t(i)""",
    "part": f"""SELECT i AS p_partkey, ['forest green', 'blue'][1 + i % 2] AS p_name,
        'Manufacturer#' || (1 + i % 5) AS p_mfgr, 'Brand#' || (1 + i % 5) || (1 + i % 3) AS p_brand,
        ['PROMO BRASS', 'ECONOMY ANODIZED STEEL'][1 + i % 2] AS p_type,
        (1 + i % 50)::INTEGER AS p_size, ['MED BOX', 'SM CASE'][1 + i % 2] AS p_container FROM range({PARTS}) t(i)""",
    "partsupp": f"""SELECT i // 4 AS ps_partkey, (i // 4 + i % 4 * 5) % {SUPPLIERS} AS ps_suppkey,
        (1 + i * 31 % 9999)::INTEGER AS ps_availqty, (1 + i % 900)::{MONEY} AS ps_supplycost
        FROM range({4 * PARTS}) t(i)""",
    "supplier": f"""SELECT i AS s_suppkey, i % 25 AS s_nationkey, 7::{MONEY} AS s_acctbal,
        CASE WHEN i = 3 THEN 'Customer Complaints' ELSE 'fine' END AS s_comment FROM range({SUPPLIERS}) t(i)""",
    "lineitem": f"""SELECT i // 4 AS l_orderkey, i % {PARTS} AS l_partkey,
        (i % {PARTS} + i % 4 * 5) % {SUPPLIERS} AS l_suppkey,
        (1 + i * 17 % 50)::{MONEY} AS l_quantity, (1000 + i * 271 % 90000)::{MONEY} AS l_extendedprice,
        (i % 11 / 100)::{MONEY} AS l_discount, (i % 9 / 100)::{MONEY} AS l_tax, {one_of("ANR", "i")} AS l_returnflag,
        {one_of("FO", "i // 3")} AS l_linestatus, {day("i * 3")} AS l_shipdate,
        {day("i * 3 + i % 3 * 5")} AS l_commitdate,
        {day("i * 3 + 7")} AS l_receiptdate, ['NONE', 'DELIVER IN PERSON'][1 + i % 2] AS l_shipinstruct,
        {one_of(MODES, "i")} AS l_shipmode FROM range({4 * ORDERS}) t(i)""",
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch") / "scale-tiny"
    folder.mkdir()
    for name, sql in MADE.items():
        duckdb.connect().sql(f"COPY ({sql}) TO '{folder}/{name}.parquet'")
    return data.files(folder)


def test_all_tables_and_queries_are_there():
    assert set(data.TABLES) == set(MADE) == set(COLUMNS)
    assert [shape.name for shape in QUERIES] == [f"Q{i}" for i in range(1, 23)]
    assert len(NATIONS) == 25
    assert all(re.fullmatch(r".+; asked instead: .+\.", shape.instead) for shape in QUERIES if not shape.own)
    assert all(set(units) < set(data.TABLES) for units in UNITS.values())


@pytest.mark.slow
def test_every_query_is_answered_and_limits_that_nobody_reaches_bias_nothing(paths, tmp_path, capsys):
    """The least truth that a bias is divided by is a single row; epsilon 1000 leaves 700 / 1000 of noise at most."""
    wanted = ["--scale", "tiny", "--runs", "2", "--rounds", "0", "--data", str(paths["orders"].parent.parent)]
    program.main([*wanted, "--json", str(tmp_path / "found.json"), "--shared", str(tmp_path)])
    found = {one["name"]: one for one in json.loads((tmp_path / "found.json").read_text())["queries"]}
    assert set(found) == {shape.name for shape in (*QUERIES, *COMPARED)}
    assert {name: one["refused"] for name, one in found.items() if one["refused"]} == {}
    exact = {column["column"]: column["bias"] for name in ("Q1", "Q4", "Q12") for column in found[name]["columns"]}
    assert max(exact[name] for name in ("count_order", "order_count", "high", "low")) < 0.01
    printed = capsys.readouterr().out
    assert "Scale tiny" in printed
    assert "anchors/tpch.md is missing" in printed


def measure(paths, shape, truth=lambda table: table):
    opened = described_data(dict(paths), policy=policy(shape.project))
    with duckdb.connect() as connection:
        measured.views(connection, paths)
        exact = connection.sql(shape.sql).to_arrow_table()
    return measured.errors(shape, opened, truth(exact), "tiny", 20), opened


@pytest.mark.slow
def test_noise_bias_and_lost_groups_are_told_apart(paths):
    """Twins of the truth: half of it, and one with a group that no answer has. Errors by chance are below 1e-9."""
    shape = next(one for one in COMPARED if one.name == "customers by nation")

    def halved(table):
        return table.set_column(1, "n", pyarrow.array([v / 2 for v in table.column("n").to_pylist()]))

    def more(table):
        return pyarrow.concat_tables([table, pyarrow.table({"n_name": ["ATLANTIS"], "n": [5]})])

    (right, _), (half, _), (lost, _) = (measure(paths, shape, twin) for twin in (lambda t: t, halved, more))
    assert right.columns[0].bias == 0
    assert half.columns[0].bias == pytest.approx(1)
    assert half.columns[0].held_limited > 0.8
    assert right.columns[0].noise > 0
    assert lost.lost == pytest.approx(1 / 26)
    assert right.lost == 0


@pytest.mark.slow
def test_a_refusal_is_a_result(paths):
    shape = replace(QUERIES[0], sql="SELECT max(c_phone) AS x FROM customer")
    found, _ = measure(paths, shape)
    assert "Only numbers" in found.refused
    assert not found.columns


@pytest.mark.slow
def test_cpu_is_a_ratio_of_work_that_was_done(paths):
    shape = next(one for one in QUERIES if one.name == "Q12")
    found, opened = measure(paths, shape)
    measured.cpu(Bench([], quick=True), shape, opened, paths, found, 1)
    assert found.raw_seconds > 0
    assert found.cpu > found.again > 0


def test_other_systems_figures_are_read():
    assert report._figures("1.2–1.6; 1.5 / .13–.23; 1.4", 1) == [0.23, 1.4]
    assert report._figures("100 (97 % lost) / **1.4–1.6**", 0) == [100]
    assert report._figures("fails", 0) == []
    assert [report.percent(x) for x in (0.0123, 0.000049, 1.0)] == ["1.2 %", ".005 %", "100 %"]


def test_ours_stand_beside_other_systems():
    column = measured.Errors("revenue", error=0.05, noise=0.05, bias=0.0, held=1, held_limited=1)
    ours = measured.Measured("Q6", "1", "customers", 1, columns=[column])
    text = "| | Noisette | A | B |\n|---|---|---|---|\n| Q6 | 5.3 / .47 | 72 / 6.3 | 5.2 / 4.9 |\n"
    table, [goal] = report.beside_peers([ours], text)
    assert table.rows == [["Q6", "– / 5", "72 / 6.3", "5.2 / 4.9"]]
    assert goal.value == pytest.approx(5 / 4.9)
    assert goal.passed


def test_without_the_generator_the_reason_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(data, "generator", lambda: None)
    with pytest.raises(FileNotFoundError, match="pip install tpchgen-cli"):
        data.tables("0.01", tmp_path)
