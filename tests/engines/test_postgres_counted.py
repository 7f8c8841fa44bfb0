"""Rows that the server counts instead of sending each: the same integers, and columns for which that would not hold."""

import functools

import pyarrow
import pytest
from tests import postgres
from tests.contracts.test_sources import CASES, answer, maker, specified

from noisette.engines import open_source
from noisette.engines.postgres import source as engine
from noisette.engines.postgres.catalogue import columns_of, few_rows
from noisette.query.expression import Name
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Kind, Table

pytestmark = pytest.mark.slow
LONG = ("functions of dates", "everything")  # in the contract suite; their columns are asked about by others, too
NAMES = [name for i, name in enumerate(CASES) if ("bounded" not in name or i % 12 == 0) and name not in LONG]
BY_WARD = Request(Scan("t", "t"), (Name("t.ward"),), (None,), (Measure("rows"),), None)
TEXTS = {"t": Table("t", (Column("ward", Kind("text")),))}


@pytest.fixture
def counting(monkeypatch):
    """Counts wherever it may, however few rows there are; notes what was counted."""
    seen = []

    def always(columns, sizes):
        seen.append(tuple(one.name for one in columns if one.bytewise))
        return all(one.bytewise for one in columns)

    monkeypatch.setattr(engine, "few_rows", always)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_counted_rows_answer_as_specified(name, counting, request):
    make, hash_of = maker("postgres", request)
    case = CASES[name]
    assert answer(make(case.stored()), case) == answer(specified(case.stored(), hash_of), case)
    assert counting


def wards(url, type="text"):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t (ward {type}, x float8)")
        connection.execute("INSERT INTO t SELECT 'a', 0.5 FROM generate_series(1, 3)")
        connection.execute("INSERT INTO t VALUES ('A', 1), ('á', 2), (NULL, 3), ('a ', -0.0), ('a', 0.0)")
    return open_source({"t": (url, "t")})


def by_ward(source):
    exact = source.aggregate(BY_WARD, TEXTS, bytes(16))
    return dict(zip(exact.keys.column(0).to_pylist(), exact.measures[0].tolist(), strict=True))


RIGHT = {"a": 4, "A": 1, "á": 1, None: 1, "a ": 1}


def test_texts_are_counted_by_their_bytes(server, counting):
    assert by_ward(wards(server())) == RIGHT
    assert counting == [("ward",)]


def test_texts_under_a_collation_that_makes_two_one_are_not_counted(server, counting, monkeypatch):
    """A twin that counts them all the same takes A for a."""
    import psycopg

    url = server()
    with psycopg.connect(url, autocommit=True) as connection:
        try:
            connection.execute(
                "CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("a server without ICU: the one that comes from the package index has none")
    source = wards(url, "text COLLATE anycase")
    assert by_ward(source) == RIGHT
    assert counting == [()]
    monkeypatch.setattr(engine, "few_rows", lambda *_: True)
    source._held = None
    assert by_ward(source) != RIGHT


def test_a_column_that_is_not_compared_by_its_bytes_is_not_counted():
    about = {"name": "ward", "type": "text", "sort": "b", "generated": "", "bytewise": False}
    sizes = [{"name": "ward", "different": 3.0, "rows": 1e6}]
    assert not few_rows(columns_of([about]), sizes)
    assert few_rows(columns_of([{**about, "bytewise": True}]), sizes)


TWINS = {
    "a collation takes A for a": 'SELECT min(ward COLLATE "C") AS c0, count(*) AS n FROM {t} GROUP BY lower(ward)',
    "spaces at the end are cut": "SELECT ward::char(9)::text AS c0, count(*) AS n FROM {t} GROUP BY 1",
    "NULL is left out": "SELECT ward AS c0, count(ward) AS n FROM {t} GROUP BY 1",
    "each row once": "SELECT DISTINCT ward AS c0, 1::int8 AS n FROM {t}",
}


@pytest.mark.parametrize("name", TWINS)
def test_twins_that_count_otherwise_are_convicted(name, server, counting, monkeypatch):
    source = wards(server())
    place = '"{schema}"."{name}"'.format(**source._tables["t"])
    monkeypatch.setattr(engine, "reading", lambda *_, **how: TWINS[name].format(t=place))
    assert by_ward(source) != RIGHT


def test_reals_are_not_counted(server, counting):
    """-0 equals 0 on the server."""
    source = wards(server())
    table = {"t": Table("t", (Column("x", Kind("real")),))}
    found = source.rows(Scan("t", "t"), {"t.x": "x"}, table, bytes(16))
    assert (found.num_rows, counting) == (8, [()])


def test_the_servers_statistics_decide(server, monkeypatch):
    """Many rows with few different ones are counted; a key of its own for each row is not."""
    import psycopg

    url, texts = server(), []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (ward text, who int)")
        connection.execute("INSERT INTO t SELECT 'w' || i % 7, i FROM generate_series(1, 60000) i")
        connection.execute("ANALYZE t")
    monkeypatch.setattr(engine, "reading", _noting(texts, engine.reading))
    assert sum(by_ward(open_source({"t": (url, "t")})).values()) == 60_000
    owned = {"t": Table("t", (Column("ward", Kind("text")), Column("who", Kind("integer"))), unit="who")}
    open_source({"t": (url, "t")}).rows(Scan("t", "t"), {"t.ward": "w"}, owned, bytes(16))
    assert ["GROUP BY" in text for text in texts] == [True, False]


def _noting(texts, write):
    @functools.wraps(write)
    def noting(*asked, **how):
        texts.append(write(*asked, **how))
        return texts[-1]

    return noting


def test_a_table_without_statistics_is_read_row_by_row():
    assert not few_rows([], [{"name": None, "different": None, "rows": -1.0}])
    assert few_rows([], [{"name": None, "different": None, "rows": 1e6}])


def test_nothing_but_a_number_of_rows_is_needed_for_a_count(server, counting):
    url = server()
    postgres.stored(url, {"t": pyarrow.table({"ward": ["a", None, "b"]})})
    count = Request(Scan("t", "t"), (), (), (Measure("rows"),), None)
    source = open_source({"t": (url, "t")})
    assert source.aggregate(count, TEXTS, bytes(16)).measures[0].tolist() == [3]
