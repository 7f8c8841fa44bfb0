"""Keys that follow from public tables: every group that any private row can be in is listed, and nothing else is."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pyarrow
import pytest

import noisette as nz
from noisette.engines import listing
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.listing import Listing
from noisette.engines.memory.source import Memory
from noisette.errors import InputError
from noisette.query import public_parts
from noisette.query.canonical import canonical
from noisette.query.domains import domains_of
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse

WHOLE = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
TEXT = Kind("text")
VALUES = {"u": [1, 2], "ward": ["n", "s", "x", None], "day": [1, 3, 8, None]}
ROWS = list(product(*VALUES.values()))
DATA = {
    "visits": pyarrow.table({name: [row[i] for row in ROWS] for i, name in enumerate(VALUES)}),
    "stays": pyarrow.table({"u": [1, 1, 1], "place": ["n", "e", "w"]}),
    "wards": pyarrow.table(
        {
            "ward": ["n", "s", "e", None, "w"],
            "region": ["N", "S", "S", "lost", None],
            "floor": [1, 2, 2, 3, 4],
            "rid": [1, 1, 2, 2, 7],
            "share": [0.5, 0.25, 1.0, 2.0, 0.5],
        }
    ),
    "twice": pyarrow.table({"ward": ["n", "n", "s", "q"], "kind": ["a", "b", "b", "c"]}),
    "regions": pyarrow.table({"rid": [1, 2, 3, None], "name": ["one", "two", "three", "none"]}),
}
ALLOWED = Limits(rows=40)


def described(source):
    """The tables, of which nothing is declared, with the public ones as a source reads them."""
    kinds = {"u": WHOLE, "day": WHOLE, "floor": WHOLE, "rid": WHOLE, "share": Kind("real")}
    columns = {n: tuple(Column(c, kinds.get(c, TEXT)) for c in data.column_names) for n, data in DATA.items()}
    found = {n: Table(n, columns[n], unit="u", limits=ALLOWED) for n in ("visits", "stays")}
    for name in ("wards", "twice", "regions"):
        table = Table(name, columns[name], public=True)
        found[name] = replace(table, repeats=source.repeats(table), listing=Listing(source))
    return found


MEMORY, ENGINE = Memory(DATA), DuckDB(DATA, threads=1)
SCHEMA = described(MEMORY)
ON = "v.ward = w.ward"
J, L = (f"visits v {how} wards w ON {ON}" for how in ("JOIN", "LEFT JOIN"))
R = "JOIN regions r ON r.rid = w.rid"
SOURCES = {
    "inner": ("w.region", f"{J}"),
    "left": ("w.region", f"{L}"),
    "floor, left": ("w.floor", f"{L}"),
    "public first": ("w.region", f"wards w JOIN visits v ON {ON}"),
    "private column": ("v.ward", f"{J}"),
    "condition": ("v.ward", f"{J} WHERE w.floor = 2 AND v.day > 1"),
    "condition, left": ("w.region", f"{L} WHERE w.floor < 2"),
    "no partner": ("w.region", f"{L} WHERE w.floor IS NULL"),
    "two keys": ("w.region, w.floor", f"{J}"),
    "two keys, left": ("w.region, w.ward", f"{L}"),
    "real": ("w.share", f"{J}"),
    "whole and real": ("w.share, v.day", "visits v JOIN wards w ON v.day = w.share"),
    "repeats": ("t.kind, t.ward", "visits v JOIN twice t ON v.ward = t.ward"),
    "snowflake": ("r.name, w.ward", f"{J} {R}"),
    "snowflake, left": ("r.name, w.floor", f"{L} LEFT {R}"),
    "left, then inner": ("r.name", f"{L} {R}"),
    "inner, then left": ("r.name, w.ward", f"{J} LEFT {R}"),
    "star": ("r.name, w.region", f"{J} JOIN regions r ON r.rid = v.day"),
    "computed": ("coalesce(w.region, 'none')", f"{L}"),
    "computed below": ("x", f"(SELECT coalesce(w.region, 'none') AS x FROM {L}) t"),
    "choice": ("CASE WHEN v.day > 2 THEN w.region ELSE 'early' END", f"{J}"),
    "of two parts": ("w.ward || r.name", f"{J} JOIN regions r ON r.rid = v.day"),
    "public sub-query": (
        "s.f",
        "visits v JOIN (SELECT ward, floor + 1 AS f FROM wards WHERE floor > 1) s ON s.ward = v.ward",
    ),
    "sub-query, left": (
        "s.f",
        "visits v LEFT JOIN (SELECT ward, floor + 1 AS f FROM wards WHERE floor > 1) s ON s.ward = v.ward",
    ),
    "among": ("ward", "visits WHERE ward IN (SELECT ward FROM wards WHERE floor < 3)"),
    "per unit": ("n", f"(SELECT v.u, w.region AS n, count(*) AS k FROM {J} GROUP BY v.u, w.region) t"),
    "private left": (
        "s.region",
        "visits v LEFT JOIN (SELECT t.u AS u, coalesce(w.region, '?') AS region FROM "
        "stays t JOIN wards w ON t.place = w.ward) s ON v.u = s.u",
    ),
    "private equal": ("s.place", f"{J} JOIN stays s ON s.u = v.u AND s.place = v.ward"),
}
FORMS = {
    name: f"SELECT {keys}, count(*) FROM {rows} GROUP BY {', '.join(str(i + 1) for i in range(keys.count(', ') + 1))}"
    if "coalesce" not in keys
    else f"SELECT {keys}, count(*) FROM {rows} GROUP BY 1"
    for name, (keys, rows) in SOURCES.items()
}


def asked(form, schema=SCHEMA):
    query = canonical(parse(FORMS[form], schema))
    return query, prepare(query, schema)


def listed(prepared):
    """The groups of an answer."""
    groups = list(product(*prepared.request.domains))
    return set(groups if prepared.groups is None else [groups[i] for i in prepared.groups])


def there(prepared, source=MEMORY, schema=SCHEMA):
    """The groups that the rows are in, whatever the domains."""
    unknown = replace(prepared.request, domains=(None,) * len(prepared.request.keys), limits=None)
    keys = source.aggregate(unknown, schema, b"").keys
    return set(zip(*(keys.column(i).to_pylist() for i in range(keys.num_columns)), strict=True))


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("form", FORMS)
def test_no_row_is_in_a_group_that_is_not_listed(form):
    """The private table holds every combination of values, so these are all groups that a row can be in."""
    _, prepared = asked(form)
    assert not prepared.opens
    assert there(prepared) <= listed(prepared)


def test_all_rows_of_the_public_table_are_groups_whether_or_not_somebody_meets_them():
    """Wards e and w have no visit; the ward NULL is met by none."""
    found = {form: listed(asked(form)[1]) for form in FORMS}
    assert found["inner"] == {("N",), ("S",), (None,)}
    assert found["left"] == {("N",), ("S",), (None,)}
    assert found["private column"] == {("n",), ("s",), ("e",), ("w",)}
    assert found["condition"] == {("s",), ("e",)}
    assert found["condition, left"] == {("N",)}
    assert found["no partner"] == {(None,)}
    assert {tuple(sorted(map(str, row))) for row in found["two keys"]} == {("1", "N"), ("2", "S"), ("4", "None")}
    assert found["among"] == {("n",), ("s",), ("e",)}
    assert found["computed"] == {("N",), ("S",), ("none",)}
    assert found["public sub-query"] == {(3,), (5,)}
    assert found["sub-query, left"] == {(3,), (5,), (None,)}
    assert len(found["snowflake"]) == 3  # of 5 wards by 3 regions


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("form", FORMS)
def test_every_engine_lists_and_counts_the_same(form):
    query, prepared = asked(form)
    other = described(ENGINE)
    assert prepare(query, other).request == prepared.request
    ones, others = (source.aggregate(prepared.request, SCHEMA, b"") for source in (MEMORY, ENGINE))
    assert [m.tolist() for m in ones.measures] == [m.tolist() for m in others.measures]


@pytest.mark.parametrize("form", ["floor, left", "two keys, left", "snowflake, left", "private left"])
def test_a_left_join_that_forgets_its_missing_partners_is_noticed(form, monkeypatch):
    monkeypatch.setattr(public_parts, "_or_none", lambda part: part)
    query = canonical(parse(FORMS[form], SCHEMA))
    found = domains_of(query, SCHEMA)
    prepared = asked(form)[1]
    groups = list(product(*found.values))
    twin = set(groups if found.groups is None else [groups[i] for i in found.groups])
    assert not there(prepared) <= twin


@pytest.mark.parametrize("form", ["computed", "condition, left"])
def test_a_row_of_nulls_that_conditions_and_keys_do_not_see_is_noticed(form, monkeypatch):
    """A twin that adds NULL to the values in place of computing them from a row of NULLs."""
    right = listed(asked(form)[1])
    read = Listing._read

    def twin(self, part, keys, schema):
        return (*read(self, replace(part, outer=False), keys, schema), *([(None,) * len(keys)] * part.outer))

    monkeypatch.setattr(Listing, "_read", twin)
    assert listed(asked(form, described(MEMORY))[1]) != right


def test_a_private_column_of_a_left_join_is_unknown():
    """Without a partner a visit keeps its ward, which is in no public table."""
    text = f"SELECT v.ward, count(*) FROM visits v LEFT JOIN wards w ON {ON} GROUP BY 1"
    assert prepare(canonical(parse(text, SCHEMA)), SCHEMA).opens


def test_too_many_values_are_not_listed(monkeypatch):
    monkeypatch.setattr(listing, "MOST_LISTED", 3)
    schema = described(MEMORY)
    assert asked("private column", schema)[1].opens
    assert asked("two keys", schema)[1].opens


def test_what_was_read_for_one_question_is_not_taken_for_another():
    """1 and TRUE are equal in Python."""
    one, other = (
        f"SELECT CASE WHEN w.floor > 1 THEN {value} END, count(*) FROM {J} GROUP BY 1" for value in ("1", "TRUE")
    )
    found = [prepare(canonical(parse(text, SCHEMA)), SCHEMA).request.domains[0] for text in (one, other)]
    assert [[type(value) for value in domain] for domain in found] == [[int, type(None)], [bool, type(None)]]


def test_no_group_at_all_is_refused_by_public_rows_alone():
    text = f"SELECT w.region, count(*) FROM visits v JOIN wards w ON {ON} WHERE w.floor = 9 GROUP BY 1"
    with pytest.raises(InputError, match="No row of the public table meets the conditions"):
        prepare(canonical(parse(text, SCHEMA)), SCHEMA)


# Through the front door


def opened(budget=1000, **columns):
    tables = {name: {"public": True} for name in ("wards", "twice", "regions")}
    private = {name: {"unit": "u", "rows": 40} for name in ("visits", "stays")}
    private["visits"]["columns"] = columns
    return nz.open(DATA, budget=budget, policy={"tables": {**tables, **private}})


def test_a_join_with_a_public_table_asks_for_no_delta():
    answer = opened().sql(f"{FORMS['two keys']} ORDER BY 2", spend=500)
    assert [c.values.to_pylist() for c in answer.columns[:2]] == [["N", "S", None], [1, 2, 4]]
    assert answer.columns[2].values.to_pylist() == [8, 8, 0]  # hardly any noise: wrong with probability below 1e-4


def test_groups_do_not_depend_on_the_private_rows():
    text = FORMS["left"].replace("visits v", "(SELECT * FROM visits WHERE day > 8) v")
    found = opened(day={"bounds": [0, 9]}).sql(text, spend=100)
    assert found.columns[0].values.to_pylist() == ["N", "S", None]


def test_a_plan_of_many_groups_is_computed_before_it_is_paid():
    """The possible groups are three of fifteen."""
    data = opened()
    assert len(data.explain(FORMS["snowflake"], spend=1).columns) == 1
    wards = data.sql(f"{FORMS['snowflake']} ORDER BY 2", spend=100).columns[1].values.to_pylist()
    assert wards == ["e", "n", "s"]


def test_a_total_of_results_adds_up_listed_groups_alone():
    """Noise in the other twelve would make it another number than their sum."""
    text = FORMS["snowflake"].replace("count(*)", "count(*) AS n, sum(count(*)) OVER () AS total")
    *_, counts, totals = (c.values.to_pylist() for c in opened().sql(text, spend="0.01").columns)
    assert totals == [sum(counts)] * 3


def test_limit_and_having_see_the_listed_groups_alone():
    answer = opened().sql(f"{FORMS['snowflake']} HAVING count(*) > -1000 LIMIT 2", spend=100)
    assert len(answer) == 2
    assert len(opened().sql(f"{FORMS['snowflake']} HAVING count(*) > -1000", spend=100)) == 3


FREE = [
    "date_trunc('month', d)", "date_trunc('week', d)", "year(d)", "extract(dow FROM d)", "month(d)", "d::DATE",
    "strftime(d, '%Y-%m')", "date_trunc('day', at)", "hour(at)", "extract(year FROM at)", "width_bucket(x, 0, 9, 3)",
    "CASE WHEN x > 3 THEN 'high' WHEN x IS NULL THEN NULL ELSE 'low' END", "upper(g)", "left(g, 1)", "g || 'x'",
    "floor(x / 3)", "round(x / 4, 1)", "date_diff('month', d, DATE '2020-06-01')", "x > 3", "d + INTERVAL 1 DAY",
    "coalesce(g, 'none')", "x % 3", "length(g)", "replace(g, 'a', 'b')", "x::VARCHAR", "d IN (DATE '2020-01-01')",
    "nullif(g, 'a')", "least(x, 4)",
]  # fmt: skip


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("key", FREE)
def test_what_is_computed_from_declared_values_is_free(key):
    date, moment = (
        Kind("date", Fraction(18262), Fraction(18400)),
        Kind("timestamp", Fraction(0), Fraction(86400 * 10**8)),
    )
    columns = {"d": date, "at": moment, "x": WHOLE, "g": Kind("text", keys=("a", "b"))}
    schema = {"t": Table("t", tuple(Column(n, kind) for n, kind in columns.items()))}
    assert not prepare(canonical(parse(f"SELECT {key}, count(*) FROM t GROUP BY 1", schema)), schema).opens
