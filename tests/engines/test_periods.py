"""Which rows a limit per period retains: the same ones in every question, by the unit's own rows alone."""

import datetime
import itertools
import random
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import pyarrow
import pytest

from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory import rows as memory_rows
from noisette.engines.memory.source import Memory
from noisette.engines.needed import needed_columns
from noisette.engines.sql import tables
from noisette.query.canonical import canonical
from noisette.query.kind import Kind
from noisette.query.known import since_1970
from noisette.query.plan import Scan
from noisette.query.prepare import prepare
from noisette.query.schema import Column, RowsPerPeriod, Table
from noisette.query.sql import parse

DAY, SECRET = datetime.date, bytes(range(16))
LOW, HIGH = DAY(2020, 3, 1), DAY(2022, 11, 30)
KINDS = {
    "u": Kind("integer"),
    "id": Kind("integer"),
    "d": Kind("date", since_1970(LOW), since_1970(HIGH)),
    "x": Kind("integer", Fraction(0), Fraction(9), Fraction(1)),
}
VISITS = Table(
    "t", tuple(Column(n, kind) for n, kind in KINDS.items()), unit="u", per_period=RowsPerPeriod(3, "year", "d")
)
SCHEMA = {"t": VISITS}
SOURCES = pytest.mark.parametrize("make", [DuckDB, Memory])


def visits(seed=0, people=5):
    """Rows of people with many dates, some of them NULL, some beyond the bounds, some alike."""
    rng = random.Random(f"visits {seed}")
    days = [None, DAY(2019, 5, 5), DAY(2020, 2, 29), LOW, HIGH, DAY(2022, 12, 1), DAY(2040, 1, 1)]
    days += [DAY(y, m, 7) for y in (2020, 2021, 2022) for m in (4, 5, 6)]
    return [(rng.randrange(people), i, rng.choice(days), rng.randrange(3)) for i in range(120)]


def stored(rows):
    columns = list(zip(*rows, strict=True))
    types = [pyarrow.int64(), pyarrow.int64(), pyarrow.date32(), pyarrow.int64()]
    return {"t": pyarrow.table([pyarrow.array(c, t) for c, t in zip(columns, types, strict=True)], names=list(KINDS))}


def read(make, rows, text="SELECT COUNT(*) AS n FROM t", columns=("id",)):
    """Columns of the rows that are retained for a question."""
    source = canonical(parse(text, SCHEMA)).source
    while not isinstance(scan := source, Scan):
        source = source.source
    source = canonical(parse(text, SCHEMA)).source
    names = {f"{scan.alias}.{column}": column for column in columns}
    found = make(stored(rows)).rows(source, names, SCHEMA, SECRET)
    return list(zip(*(found.column(column).to_pylist() for column in columns), strict=True))


def inside(day):
    return day is not None and LOW <= day <= HIGH


@SOURCES
def test_of_each_unit_so_many_rows_in_each_year_are_retained(make):
    rows = visits()
    ids = {i for (i,) in read(make, rows)}
    there, left = (
        Counter((u, day.year) for u, i, day, _ in rows if inside(day) and (i in chosen))
        for chosen in (range(len(rows)), ids)
    )
    assert left == {period: min(n, 3) for period, n in there.items()}
    assert all(inside(day) for _, i, day, _ in rows if i in ids)
    assert max(there.values()) > 3


@SOURCES
def test_every_question_retains_the_same_rows(make):
    assert questions_agree(make)


def questions_agree(make):
    rows = visits()
    by_id = {i: (day, x) for _, i, day, x in rows}
    ids = {i for (i,) in read(make, rows)}
    assert Counter(read(make, rows, columns=("x",))) == Counter((by_id[i][1],) for i in ids)
    assert Counter(read(make, rows, columns=("x", "d"))) == Counter((by_id[i][1], by_id[i][0]) for i in ids)
    of_a_year = read(make, rows, "SELECT COUNT(*) AS n FROM t WHERE EXTRACT(year FROM d) = 2021")
    assert {i for (i,) in of_a_year} == {i for i in ids if by_id[i][0].year == 2021}
    of_a_value = read(make, rows, "SELECT COUNT(*) AS n FROM t WHERE x = 1")
    assert {i for (i,) in of_a_value} == {i for i in ids if by_id[i][1] == 1}
    return True


def test_an_order_of_each_question_is_convicted(monkeypatch):
    plain, number = tables.order_of, itertools.count()
    monkeypatch.setattr(tables, "order_of", lambda parts, salt: plain(parts, salt + next(number)))
    with pytest.raises(AssertionError):
        questions_agree(DuckDB)


@SOURCES
def test_what_a_unit_retains_depends_on_its_own_rows_alone(make):
    rows = visits()
    of_all = {i for (i,) in read(make, rows)}
    for person in range(2):
        own = [row for row in rows if row[0] == person]
        random.Random("order").shuffle(own)
        assert {i for (i,) in read(make, own)} == {i for u, i, *_ in rows if i in of_all and u == person}


@SOURCES
def test_equal_rows_are_retained_as_often_as_others(make):
    rows = [(1, 7, DAY(2021, 1, 1), 0)] * 5 + [(1, 8, DAY(2022, 1, 1), 0)] * 2
    assert Counter(read(make, rows)) == {(7,): 3, (8,): 2}


BEYOND = [(1, 7, DAY(2021, 1, 1), x) for x in (9, 30)]


@SOURCES
def test_rows_alike_but_for_a_value_beyond_the_bounds_are_chosen_in_whatever_order_they_are_stored(make):
    assert len(numbers_in_any_order(make)) == 1


def numbers_in_any_order(make):
    """Counts by one row a year, of two that are clean as the bound 9, one of them beyond it."""
    schema = {"t": replace(VISITS, per_period=RowsPerPeriod(1, "year", "d"))}
    texts = ["SELECT COUNT(*) AS n FROM t WHERE x >= 9", "SELECT COUNT(DISTINCT x) AS n FROM t"]
    requests = [prepare(canonical(parse(text, schema)), schema).request for text in texts]
    sources = [make(stored(rows)) for rows in (BEYOND, BEYOND[::-1])]
    return {
        tuple(int(source.aggregate(each, schema, SECRET).measures[0].sum()) for each in requests) for source in sources
    }


@pytest.mark.parametrize(("make", "where"), [(DuckDB, tables), (Memory, memory_rows)], ids=["duckdb", "memory"])
def test_an_order_by_clean_values_alone_is_convicted(make, where, monkeypatch):
    monkeypatch.setattr(where, "telling_apart", lambda table, alias: [f"{alias}.{c.name}" for c in table.columns])
    assert len(numbers_in_any_order(make)) > 1


@SOURCES
def test_a_secret_decides_which_rows_are_retained(make):
    chosen = defaultdict(int)
    for byte in range(4):
        found = make(stored(visits())).rows(Scan("t", "t"), {"t.id": "id"}, SCHEMA, bytes([byte]) * 16)
        chosen[frozenset(found.column("id").to_pylist())] += 1
    assert len(chosen) == 4  # fixed secrets, so no chance has a part in it


def test_engines_that_fetch_columns_fetch_all_by_which_rows_are_chosen():
    assert needed_columns(Scan("t", "t"), (), SCHEMA) == {"t": frozenset(KINDS)}
