"""UNION ALL, NOT IN and NOT EXISTS mean what they mean in SQL, or are refused: the engine answers the same text."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import duckdb
import pyarrow
import pytest

from noisette.engines import listing
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.listing import Listing
from noisette.engines.memory.source import Memory
from noisette.errors import InputError
from noisette.query.canonical import canonical, canonical_text
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse
from noisette.query.sql.readback import sql_of
from noisette.query.sql.writer import query_sql

WHOLE = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
ROWS = [(u, *rest) for u, rest in zip((1, 1, 2, 2, 3) * 8, product("nsx_", "ns_", (1, 4, 7)), strict=False)]
ROWS = [tuple(None if value == "_" else value for value in row) for row in ROWS]
DATA = {
    "v": pyarrow.table({name: [row[i] for row in ROWS] for i, name in enumerate(("u", "a", "b", "x"))}),
    "p": pyarrow.table({"k": ["n", "x", None, "q"], "f": [1, 2, 3, 4]}),
    "r": pyarrow.table({"k": ["n", "n"], "f": [1, 2]}),
}
KEYS = Kind("text", keys=("n", "s", "x"))


def described(source):
    v = Table("v", (Column("u", WHOLE), Column("a", KEYS), Column("b", KEYS), Column("x", WHOLE)), unit="u")
    found = {"v": replace(v, limits=Limits(rows=1000))}
    for name in ("p", "r"):
        table = Table(name, (Column("k", Kind("text")), Column("f", WHOLE)), public=True)
        found[name] = replace(table, repeats=source.repeats(table), listing=Listing(source))
    return found


MEMORY, ENGINE = Memory(DATA), DuckDB(DATA, threads=1)
SCHEMA = described(MEMORY)


def exact(text, source):
    """Groups and their numbers, those without rows left out."""
    request = prepare(canonical(parse(text, SCHEMA)), SCHEMA).request
    found = source.aggregate(request, SCHEMA, b"")
    places = list(product(*request.domains))
    numbers = list(zip(*(m.tolist() for m in found.measures), strict=True))
    return sorted(((*place, *row) for place, row in zip(places, numbers, strict=True) if any(row)), key=repr)


def raw(text):
    with duckdb.connect() as engine:
        for name, table in DATA.items():
            engine.register(name, table)
        return sorted((row for row in engine.execute(text).fetchall() if any(row[-1:])), key=repr)


MEANT = [
    "SELECT a, count(*) FROM (SELECT a FROM v UNION ALL SELECT b FROM v) s GROUP BY a",
    "SELECT a, count(*) FROM (SELECT a FROM v WHERE x > 1 UNION ALL SELECT b FROM v AS w WHERE w.x < 4) s GROUP BY a",
    "SELECT k, count(*) FROM (SELECT 'l' AS k FROM v WHERE x < 4 UNION ALL SELECT 'h' FROM v WHERE x > 1) s GROUP BY k",
    "SELECT count(*) FROM ((SELECT a FROM v WHERE a = 'n') UNION ALL (SELECT b FROM v UNION ALL SELECT a FROM v)) s",
    "WITH s AS (SELECT * FROM v UNION ALL SELECT * FROM v) SELECT b, count(*) FROM s WHERE x > 1 GROUP BY b",
    "SELECT f, count(*) FROM (SELECT a AS g FROM v UNION ALL SELECT b FROM v) s JOIN p ON p.k = s.g GROUP BY f",
    "SELECT n, count(*) FROM (SELECT u, least(count(*), 9) AS n FROM (SELECT u FROM v UNION ALL SELECT u FROM v) s "
    "GROUP BY u) t GROUP BY n",
    "SELECT count(*) FROM (SELECT a FROM v WHERE a IN ('n') UNION ALL SELECT NULL FROM v) s WHERE a IS NULL",
    "SELECT count(*) FROM v WHERE a NOT IN (SELECT k FROM p WHERE k IS NOT NULL)",
    "SELECT count(*) FROM v WHERE NOT a IN (SELECT k FROM p WHERE f < 3)",
    "SELECT count(*) FROM v WHERE NOT (a IN (SELECT k FROM p WHERE f = 9))",
    "SELECT count(*) FROM v WHERE a NOT IN (SELECT k FROM p WHERE f > 3) AND b IN (SELECT k FROM p) AND x > 1",
    "SELECT count(*) FROM v WHERE NOT EXISTS (SELECT * FROM p WHERE p.k = v.a)",
    "SELECT a, count(*) FROM v WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.k = v.b AND f < 2) GROUP BY a",
    "SELECT count(*) FROM v WHERE EXISTS (SELECT 1 FROM p WHERE k = v.a) AND NOT EXISTS (SELECT 1 FROM p WHERE k = b)",
]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("place", range(len(MEANT)))
def test_it_means_what_sql_means(place):
    text = MEANT[place]
    assert exact(text, MEMORY) == exact(text, ENGINE) == raw(text)


def test_a_list_with_null_is_refused_where_sql_would_keep_no_row():
    text = "SELECT count(*) FROM v WHERE a NOT IN (SELECT k FROM p)"
    assert raw(text) == []
    with pytest.raises(InputError, match="NOT IN is never true where the list holds NULL: add WHERE key IS NOT NULL"):
        parse(text, SCHEMA)


@pytest.mark.parametrize("change", ["no reader", "too many"])
def test_what_is_not_known_of_a_list_is_refused(change, monkeypatch):
    monkeypatch.setattr(listing, "MOST_LISTED", 1)
    fresh = described(MEMORY)
    schema = {**fresh, "p": replace(fresh["p"], listing=None)} if change == "no reader" else fresh
    with pytest.raises(InputError, match="Whether NOT IN can be true depends on NULLs"):
        parse("SELECT count(*) FROM v WHERE a NOT IN (SELECT k FROM p)", schema)


REFUSED = {
    "SELECT count(*) FROM v UNION ALL SELECT count(*) FROM v": "UNION ALL joins rows of one table in a sub-query",
    "SELECT count(*) FROM (SELECT a FROM v UNION SELECT b FROM v) s": "UNION ALL joins rows of one table",
    "SELECT count(*) FROM (SELECT a FROM v INTERSECT SELECT b FROM v) s": "UNION ALL joins rows of one table",
    "SELECT count(*) FROM (SELECT a FROM v UNION ALL SELECT k FROM p) s": "takes slices of one table",
    "SELECT count(*) FROM (SELECT a FROM v UNION ALL SELECT a, b FROM v) s": "select different numbers of columns",
    "SELECT count(*) FROM (SELECT a FROM v UNION ALL SELECT x FROM v) s": "cannot mix text and number",
    "SELECT count(*) FROM (SELECT u, count(*) AS n FROM v GROUP BY u UNION ALL SELECT u, x FROM v) s": "group after",
    "SELECT count(*) FROM (SELECT a FROM v UNION ALL SELECT a FROM v JOIN p ON k = a) s": "columns of one table",
    "SELECT count(*) FROM (SELECT a FROM v UNION ALL SELECT a FROM (SELECT a FROM v) t) s": "columns of one table",
    "SELECT count(*) FROM (SELECT a FROM v UNION ALL SELECT a FROM v LIMIT 3) s": "UNION takes no limit here",
    f"SELECT count(*) FROM ({' UNION ALL '.join(['SELECT a FROM v'] * 9)}) s": "write at most 8",
    "SELECT count(*) FROM v WHERE a NOT IN (SELECT k FROM r)": "in which no value repeats",
    "SELECT count(*) FROM v WHERE x = 1 OR a NOT IN (SELECT k FROM p)": "among the conditions of WHERE alone",
    "SELECT count(*) FROM v WHERE a NOT IN (SELECT a FROM v)": "one column of a public table",
}


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_is_refused_says_why(place):
    text, sentence = list(REFUSED.items())[place]
    with pytest.raises(InputError, match=sentence):
        parse(text, SCHEMA)


def test_where_each_row_is_a_unit_slices_are_refused():
    """A row in two slices would be one unit with two rows, and nothing could tell that."""
    schema = {**SCHEMA, "v": replace(SCHEMA["v"], unit=None, limits=Limits())}
    with pytest.raises(InputError, match="UNION ALL could count it twice: join the conditions with OR"):
        parse(MEANT[0], schema)


def test_limits_hold_for_the_rows_of_the_union():
    schema = {**SCHEMA, "v": replace(SCHEMA["v"], limits=Limits(rows=3))}
    prepared = prepare(canonical(parse(MEANT[3], schema)), schema)
    assert prepared.part.total == 3
    assert prepared.request.limits == Limits(rows=3)
    found = [source.aggregate(prepared.request, schema, b"").measures[0].tolist() for source in (MEMORY, ENGINE)]
    assert found == [[9], [9]]  # three units


def test_names_of_tables_do_not_matter():
    one = "SELECT count(*) FROM (SELECT a FROM v WHERE x > 1 UNION ALL SELECT b FROM v) s"
    other = "SELECT count(*) FROM (SELECT r.a FROM v AS r WHERE 1 < r.x UNION ALL SELECT q.b FROM v q) t"
    assert canonical_text(parse(one, SCHEMA)) == canonical_text(parse(other, SCHEMA))


@pytest.mark.parametrize("place", [i for i, text in enumerate(MEANT) if "UNION ALL" in text])
def test_a_union_is_written_as_it_was_read(place):
    query = parse(MEANT[place], SCHEMA)
    assert canonical_text(parse(query_sql(query, ["v.u"]), SCHEMA)) == canonical_text(query)


def test_a_union_is_read_back_from_the_ledger():
    text = "SELECT w, count(*) FROM (SELECT a AS w FROM v WHERE x > 1 UNION ALL SELECT b FROM v) AS s GROUP BY w"
    shown = "(SELECT a AS c1 FROM v WHERE 1 < x UNION ALL SELECT b AS c1 FROM v) AS t3"
    assert sql_of(canonical_text(parse(text, SCHEMA))) == f"SELECT t3.c1, COUNT(*) FROM {shown} GROUP BY t3.c1"
