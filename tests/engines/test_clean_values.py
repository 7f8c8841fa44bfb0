"""Shorter ways to clean values and to bound rows change nothing, bit for bit: beside plain Python, with twins."""

import datetime
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow
import pytest
from sqlglot import exp

from noisette.engines.duckdb import retained
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql.relation import relation_sql
from noisette.engines.sql.stored import normalised
from noisette.query.canonical import canonical
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Link, Table
from noisette.query.sql import parse

DIGITS = [0, 1, -1, 7, 105_000_00, 105_000_01, 10**15 - 1, 1 - 10**15, 999_999_999_999_99, 29, 57, 58, 115]
DIGITS += [random.Random(7).randrange(-(10**15), 10**15) for _ in range(2000)] + list(range(-1200, 1200))


def cleaned(values, type, kind):
    """What the engine makes of a column, as bits."""
    table = pyarrow.table({"x": pyarrow.array([*values, None], type)})
    connection = duckdb.connect()
    connection.register("t", table)
    stored = str(connection.sql("SELECT x FROM t").types[0])
    sql = normalised(exp.column("x", quoted=True), kind, stored).sql("duckdb")
    return connection.sql(f"SELECT {sql} AS x FROM t").to_arrow_table().column("x").to_pylist(), sql


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("nullable", [False, True], ids=["sure", "nullable"])
@pytest.mark.parametrize("grid", [None, Fraction(1, 100), Fraction(1, 400), Fraction(1, 20)], ids=str)
def test_a_decimal_is_the_double_nearest_to_its_multiple_of_the_grid(grid, nullable):
    """Two decimals on a grid of a hundredth are as they are; on a coarser one they are still rounded."""
    low, high = Fraction(-5), Fraction(10**9)
    values = [Decimal(k) / 100 for k in DIGITS]
    found, sql = cleaned(values, pyarrow.decimal128(15, 2), Kind("real", low, high, grid, nullable=nullable))

    def expected(value):
        if not low <= Fraction(value) <= high:
            return float(min(max(Fraction(value), low), high))
        steps = Fraction(value) / (grid or Fraction(1, 100))
        halves = Fraction(1, 2) if steps >= 0 else Fraction(-1, 2)
        return float(int(steps + halves) * (grid or Fraction(1, 100)))

    wanted = [*map(expected, values), None if nullable else 0.0]
    assert [x if x is None else x.hex() for x in found] == [x if x is None else x.hex() for x in wanted]
    assert ("ROUND" in sql) == (grid == Fraction(1, 20))


def test_wide_decimals_are_rounded_as_before():
    """Sixteen digits do not all fit a double."""
    _, sql = cleaned([Decimal(1)], pyarrow.decimal128(16, 2), Kind("real", Fraction(0), Fraction(9), Fraction(1, 100)))
    assert "ROUND" in sql


def test_whole_numbers_of_decimals_are_rounded_half_away_from_zero():
    values = [Decimal(k) / 100 for k in (149, 150, -149, -150, 10**18 - 1, 1 - 10**18, 25)]
    found, _ = cleaned(values, pyarrow.decimal128(18, 2), Kind("integer", grid=Fraction(1)))
    assert found == [1, 2, -1, -2, 10**16, -(10**16), 0, None]


@pytest.mark.parametrize("nullable", [False, True], ids=["sure", "nullable"])
def test_dates_lie_within_their_bounds_infinite_ones_too(nullable):
    low, high = datetime.date(1992, 1, 1), datetime.date(1998, 12, 31)
    days = [Fraction((end - datetime.date(1970, 1, 1)).days) for end in (low, high)]
    sql = normalised(exp.column("x", quoted=True), Kind("date", *days, nullable=nullable), "DATE").sql("duckdb")
    values = "'-infinity', 'infinity', '1991-12-31', '1992-01-01', '1995-05-05', '1999-01-01', '290000-01-01', NULL"
    found = duckdb.connect().sql(f"SELECT {sql} FROM (SELECT unnest([{values}])::DATE AS x)").fetchall()
    nothing = None if nullable else low
    assert [x for (x,) in found] == [low, high, low, low, datetime.date(1995, 5, 5), high, high, nothing]


# Units that no limit concerns


WHOLE = Kind("integer", grid=Fraction(1))
PRICE = Kind("integer", Fraction(0), Fraction(9), Fraction(1), nullable=False)


def counted(sizes, limit, question="SELECT count(*), sum(price) FROM t"):
    """The answer for units with some numbers of rows, of which a limit is used."""
    unit = [u for u, size in enumerate(sizes) for _ in range(size)]
    table = pyarrow.table({"u": pyarrow.array(unit, pyarrow.int64()), "price": np.ones(len(unit), np.int64)})
    schema = {"t": Table("t", (Column("u", WHOLE), Column("price", PRICE)), unit="u", limits=Limits(rows=limit))}
    prepared = prepare(canonical(parse(question, schema)), schema)
    found = DuckDB({"t": table}).aggregate(prepared.request, schema, bytes(16)).measures
    return [int(m[0]) for m in found]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("sizes", [[3, 4, 5, 1], [3] * 5, [9] * 5, [0], [4, 1, 1]], ids=str)
def test_units_below_the_limit_keep_their_rows_and_others_no_more_than_it(sizes, monkeypatch):
    monkeypatch.setattr(retained, "BATCH", 3)
    kept = sum(min(size, 3) for size in sizes)
    assert counted(sizes, 3) == [kept, kept]


def test_a_twin_whose_limit_is_one_off_is_convicted(monkeypatch):
    crowded = retained._crowded
    monkeypatch.setattr(
        retained, "_crowded", lambda units, limits: crowded(units, Limits(rows=None if limits.rows is None else 4))
    )
    assert counted([3, 4, 5, 1], 3) != [10, 10]


def test_rows_that_are_set_aside_are_not_retained_twice():
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 9, 300).tolist()
    histogram = Counter(min(size, 4) for size in sizes)
    assert counted(sizes, 4)[0] == sum(size * n for size, n in histogram.items())


# Units along a foreign key


def along(kind):
    """Lines that refer to orders; their join."""
    orders = Table("orders", (Column("key", kind), Column("who", WHOLE)), unit="who", limits=Limits(rows=5))
    lines = (Column("order", kind), Column("price", PRICE))
    to_order = Link("orders", (("order", "key"),))
    schema = {"orders": orders, "lines": Table("lines", lines, unit="who", limits=Limits(rows=5), through=(to_order,))}
    question = 'SELECT count(*), sum(price) FROM lines l JOIN orders o ON l."order" = o.key'
    return schema, prepare(canonical(parse(question, schema)), schema).request


def test_a_row_that_meets_its_owner_takes_its_unit():
    """The table of orders is read once where the key is compared as it is stored, else twice."""
    stored = {"orders": {"key": "BIGINT", "who": "BIGINT"}, "lines": {"order": "BIGINT", "price": "BIGINT"}}
    for kind, times in ((WHOLE, 1), (Kind("integer", grid=Fraction(1), nullable=False), 2)):
        schema, request = along(kind)
        assert relation_sql(request.source, schema, stored).sql("duckdb").count('FROM "orders"') == times


@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "sure"])
def test_a_missing_key_leads_to_nobody_even_if_it_is_cleaned_to_one_that_is_there(nullable):
    schema, request = along(Kind("integer", grid=Fraction(1), nullable=nullable))
    tables = {"orders": pyarrow.table({"key": [0, 1], "who": [7, 8]})}
    tables["lines"] = pyarrow.table({"order": [None, 0, 1, 5], "price": [1, 2, 3, 4]})
    found = DuckDB(tables).aggregate(request, schema, bytes(16)).measures
    assert [int(m[0]) for m in found] == [2, 5]
