"""Values beyond the bounds, by other tables: without those rows, with NULL there, or with the nearer bound there.

The engines share what rewrites a request, so this is the specification that does not.
"""

import datetime
import functools
from dataclasses import replace
from fractions import Fraction

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.test_sources import CASES

import noisette as nz
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.errors import InputError
from noisette.query import beyond
from noisette.query.beyond import rows_within, within_bounds
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Aggregate, Join, Query, Scan, Where
from noisette.query.prepare import prepare
from noisette.query.reads import nodes_of
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse
from noisette.query.stability import retention, shape_of
from noisette.query.uses import uses_of_query

SECRET = bytes(16)
LOW, HIGH = 0, 9
DAY = datetime.date(2024, 1, 1)


def days(low, high):
    return tuple(DAY + datetime.timedelta(n) for n in range(low, high))


X = [None, -3, 0, 4, 9, 10, 99, 5, -1, 9, 0, 4]
Y = [0.5, 1.5, None, 0.0, 3.0, 2.5, 3.1, -0.1, 1.0, 7.0, -9.0, 2.0]
D = [*days(-2, 10)]
G = ["a", "b", None, "a"] * 3
ENDS = {"x": (LOW, HIGH), "y": (0.0, 3.0), "d": (DAY, DAY + datetime.timedelta(6))}
ROWS = [dict(zip("xydg", row, strict=True)) for row in zip(X, Y, D, G, strict=True)]


def since(day):
    return Fraction((day - datetime.date(1970, 1, 1)).days)


def columns(nullable=True):
    x = Kind("integer", Fraction(LOW), Fraction(HIGH), Fraction(1), nullable=nullable)
    y = Kind("real", Fraction(0), Fraction(3), Fraction(1, 2), nullable=nullable)
    d = Kind("date", *map(since, ENDS["d"]), nullable=nullable)
    return tuple(Column(n, k) for n, k in {"x": x, "y": y, "d": d, "g": Kind("text", keys=("a", "b"))}.items())


SCHEMA = {"t": Table("t", columns())}
TYPES = {"x": pyarrow.int64(), "y": pyarrow.float64(), "d": pyarrow.date32(), "g": pyarrow.string()}


def table(rows):
    return pyarrow.table({name: pyarrow.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})


def is_beyond(name, value):
    """On its grid: 3.1 is 3."""
    if value is None or name not in ENDS:
        return False
    low, high = ENDS[name]
    return not low <= (round(2 * value) / 2 if name == "y" else value) <= high


def without(*names):
    return [row for row in ROWS if not any(is_beyond(name, row[name]) for name in names)]


def nulled(rows=ROWS):
    return [{name: None if is_beyond(name, value) else value for name, value in row.items()} for row in rows]


def moved():
    nearer = {name: lambda v, ends=ends: min(max(v, ends[0]), ends[1]) for name, ends in ENDS.items()}
    return [{n: v if v is None or n not in nearer else nearer[n](v) for n, v in row.items()} for row in ROWS]


ENGINES = {"memory": Memory, "duckdb": DuckDB}
BOTH = ["memory", pytest.param("duckdb", marks=pytest.mark.slow)]  # the contract of sources compares them quickly


def answer(rows, text, engine="memory", schema=SCHEMA):
    request = prepare(parse(text, schema), schema).request
    exact = ENGINES[engine]({"t": table(rows)}).aggregate(request, schema, SECRET)
    numbers = [m.tolist() for m in exact.measures]
    if exact.keys is None:
        return numbers
    return sorted(zip(map(repr, exact.keys.to_pylist()), *numbers, strict=True))


KEYS = {
    "SELECT x, COUNT(*) AS n FROM t GROUP BY x": "x",
    "SELECT y, g, COUNT(*) AS n FROM t GROUP BY y, g": "y",
    "SELECT x, y, d, COUNT(*) AS n FROM t GROUP BY x, y, d": "xyd",
    "SELECT DAY(d) AS k, COUNT(*) AS n FROM t GROUP BY k": "d",
    "SELECT FLOOR(x / 5) AS k, COUNT(*) AS n FROM t GROUP BY k": "x",
    "SELECT CASE WHEN x > 5 THEN 'old' ELSE 'young' END AS k, COUNT(*) AS n FROM t GROUP BY k": "x",
    "SELECT x > 5 AS k, COUNT(*) AS n FROM t GROUP BY k": "x",
    "SELECT x > 5 OR g = 'a' AS k, COUNT(*) AS n FROM t GROUP BY k": "x",
    "SELECT k, COUNT(*) AS n FROM (SELECT x + 1 AS k FROM t) AS q GROUP BY k": "x",
    "SELECT k, COUNT(*) AS n FROM (SELECT x > 5 AS k FROM t) AS q GROUP BY k": "x",
    "SELECT COUNT(DISTINCT x + y) AS n FROM t": "xy",
}


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("text", KEYS)
def test_a_row_beyond_is_in_no_group(text, engine):
    assert answer(ROWS, text, engine) == answer(without(*KEYS[text]), text, engine)
    assert answer(ROWS, text, engine) != answer(moved(), text, engine)


COMPARED = [
    "SELECT COUNT(*) AS n FROM t WHERE x >= 9",
    "SELECT COUNT(*) AS n FROM t WHERE x <= 0 OR y > 1",
    "SELECT COUNT(*) AS n FROM t WHERE NOT x IN (0, 4)",
    "SELECT COUNT(*) AS n FROM t WHERE x BETWEEN -50 AND 50",
    "SELECT COUNT(*) AS n FROM t WHERE DAY(d) <> 3 AND y < 3",
    "SELECT COUNT(*) AS n FROM t WHERE x + y > 2",
    "SELECT SUM(CASE WHEN x > 4 THEN 1 ELSE 2 END) AS n FROM t",
    "SELECT COUNT(*) FILTER (WHERE x > 4) AS n FROM t",
    "SELECT g, COUNT(*) AS n FROM t WHERE d >= DATE '2024-01-07' GROUP BY g",
    "SELECT COUNT(*) AS n FROM (SELECT x * 2 AS k FROM t) AS q WHERE k > 4",
    "SELECT COUNT(*) AS n FROM (SELECT x > 4 AS k FROM t) AS q WHERE NOT k",
]


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("text", COMPARED)
def test_a_comparison_with_what_is_beyond_is_as_with_null(text, engine):
    assert answer(ROWS, text, engine) == answer(nulled(), text, engine)
    assert answer(ROWS, text, engine) != answer(moved(), text, engine)


NUMBERS = [
    "SELECT SUM(x) AS s, AVG(y) AS m, COUNT(x) AS n FROM t",
    "SELECT MEDIAN(x) AS m, MAX(y) AS h FROM t",
    "SELECT g, SUM(x + y) AS s FROM t GROUP BY g",
    "SELECT SUM(LEAST(x, 5)) AS s, SUM(COALESCE(y, 1)) AS c, VARIANCE(x) AS v, CORR(x, y) AS r FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE x IS NULL OR d IS NULL",
    "SELECT x IS NULL AS k, COUNT(*) AS n FROM t GROUP BY k",
]


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_beyond_is_the_nearer_bound_and_there(text, engine):
    assert answer(ROWS, text, engine) == answer(moved(), text, engine) != answer(nulled(), text, engine)


def test_both_in_one_question():
    text = "SELECT SUM(x) AS s FROM t WHERE y <= 3"
    mixed = [{**row, "x": near["x"]} for row, near in zip(nulled(), moved(), strict=True)]
    assert answer(ROWS, text) == answer(mixed, text)


def test_the_group_of_null_is_that_of_missing_values():
    *_, missing = answer(ROWS, "SELECT x, COUNT(*) AS n FROM t GROUP BY x")[0]
    assert missing == X.count(None) == 1
    never = {"t": Table("t", columns(nullable=False))}
    [counts] = answer(ROWS[1:2] + ROWS[3:], "SELECT x, COUNT(*) AS n FROM t GROUP BY x", schema=never)
    assert len(counts) == HIGH - LOW + 1
    assert sum(counts) == len(without("x")) - 2  # two rows are not asked about


def test_a_key_takes_the_bounds_of_what_it_is_made_of():
    """Each part of a union, and each branch of a CASE, asks for its own column alone."""
    text = "SELECT k, COUNT(*) AS n FROM (SELECT {} FROM t) AS q GROUP BY k"
    chosen = "CASE WHEN g = 'a' THEN x ELSE y * 2 END AS k"
    expected = [
        row for row in ROWS if not is_beyond("x" if row["g"] == "a" else "y", row["x" if row["g"] == "a" else "y"])
    ]
    assert answer(ROWS, text.format(chosen)) == answer(expected, text.format(chosen))
    first = "COALESCE(x, y * 2) AS k"
    expected = [
        row for row in ROWS if not is_beyond("y" if row["x"] is None else "x", row["y" if row["x"] is None else "x"])
    ]
    assert answer(ROWS, text.format(first)) == answer(expected, text.format(first))


# Any condition

numbers = st.sampled_from([Name("t.x"), Name("t.y"), Literal(4), Literal(0), Literal(9), Literal(2)])
compared = st.builds(
    lambda op, a, b: Call(op, (a, b)),
    st.sampled_from(["less", "at_most", "equal", "unequal", "more"]),
    numbers,
    numbers,
)
conditions = st.recursive(
    compared,
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: Call(op, (a, b)), st.sampled_from(["and", "or"]), inner, inner),
        st.builds(lambda a: Call("not", (a,)), inner),
        st.builds(lambda a, b, c: Call("case", (a, b, c)), inner, inner, inner),
        st.builds(lambda a, b, c: Call("less", (Call("case", (a, b, Literal(3))), c)), inner, numbers, numbers),
    ),
    max_leaves=5,
)


@functools.cache
def sources():
    return Memory({"t": table(ROWS)}), Memory({"t": table(nulled())})


def met(source, condition):
    request = Request(Where(Scan("t", "t"), condition), (), (), (Measure("rows"),), None)
    return source.aggregate(request, SCHEMA, SECRET).measures[0].tolist()


@given(conditions)
def test_any_condition_reads_what_is_beyond_as_null(condition):
    own, other = sources()
    assert met(own, condition) == met(other, condition)


def test_a_condition_that_reads_the_nearer_bound_is_convicted(monkeypatch):
    monkeypatch.setattr(beyond, "_read", lambda e, moved: e)
    own, other = sources()
    condition = Call("not", (Call("less", (Name("t.x"), Literal(4))),))
    assert met(own, condition) != met(other, condition)


# Requests


@pytest.mark.parametrize("name", CASES)
def test_a_request_that_is_read_once_stays_as_it_is(name):
    case = CASES[name]
    read = within_bounds(case.request, case.schema)
    assert within_bounds(read, case.schema) == read
    assert read.keys == case.request.keys
    assert read.domains == case.request.domains


def retained_of(relation, schema):
    return [retention(node, schema) for node in nodes_of(relation) if isinstance(node, Join)]


BOUNDED_UNITS = {
    name: Table(
        name,
        (Column("who", Kind("integer", Fraction(0), Fraction(99), Fraction(1))), *columns()),
        unit="who",
        limits=Limits(rows=3),
    )
    for name in ("t", "u")
}
JOINS = [
    "SELECT COUNT(*) AS n FROM t LEFT JOIN u ON t.who = u.who AND t.x = u.x",
    "SELECT COUNT(*) AS n FROM t JOIN u ON t.who = u.who",
    "SELECT COUNT(*) AS n FROM t LEFT JOIN (SELECT who, x, COUNT(*) AS k FROM u GROUP BY who, x) AS v "
    "ON t.who = v.who AND t.x = v.x",
    "SELECT COUNT(*) AS n FROM (SELECT who, x, COUNT(*) AS k FROM t GROUP BY who, x) AS v LEFT JOIN u "
    "ON v.who = u.who AND v.x = u.x",
]


def requests_with_joins():
    for case in CASES.values():
        yield case.request, case.schema
    for text in JOINS:
        yield prepare(parse(text, BOUNDED_UNITS), BOUNDED_UNITS).request, BOUNDED_UNITS


def test_a_unit_has_as_many_rows_as_the_price_is_for():
    """What joins and each unit retain is the same by the relation that is asked and by the one that is read."""
    joins = 0
    for request, schema in requests_with_joins():
        read = within_bounds(request, schema)
        found, expected = retained_of(read.source, schema), retained_of(request.source, schema)
        assert found == expected
        joins += len(found)
        own, other = shape_of(request.source, schema), shape_of(read.source, schema)
        assert replace(own, columns={}) == replace(other, columns={})
        assert all(other.columns[name] == kind for name, kind in own.columns.items() if kind.type != "boolean")
    assert joins > 10


@pytest.mark.parametrize("place", ["unit_keys", "stability"])
def test_joins_that_forget_which_column_is_read_are_convicted(place, monkeypatch):
    monkeypatch.setattr(f"noisette.query.{place}.plain", lambda name: name)
    with pytest.raises((AssertionError, InputError, KeyError)):
        test_a_unit_has_as_many_rows_as_the_price_is_for()


def test_what_has_no_bounds_is_read_as_it_is_asked():
    request = prepare(parse("SELECT g, COUNT(*) AS n FROM t WHERE g = 'a' GROUP BY g", SCHEMA), SCHEMA).request
    assert within_bounds(request, SCHEMA) is request


def joined(text, left, right):
    """The measures of a question about two tables of persons with a number from 0 to 9, each of one row."""
    kinds = (Column("who", Kind("integer")), Column("x", Kind("integer", Fraction(0), Fraction(9), Fraction(1))))
    schema = {name: Table(name, kinds, unit="who", limits=Limits(rows=1)) for name in ("t", "u")}
    stored = {
        name: pyarrow.table({"who": list(rows), "x": list(rows.values())}) for name, rows in (("t", left), ("u", right))
    }
    request = prepare(parse(text, schema), schema).request
    [found] = {
        tuple(tuple(m.tolist()) for m in engine(stored).aggregate(request, schema, SECRET).measures)
        for engine in ENGINES.values()
    }
    return found


def test_who_has_no_partner_is_in_the_group_of_null_and_a_partner_beyond_is_in_none():
    text = "SELECT u.x AS k, COUNT(*) AS n FROM t LEFT JOIN u ON t.who = u.who GROUP BY k"
    [counts] = joined(text, {1: 5, 2: 5, 3: 5}, {1: 5, 2: 99})
    assert counts == (*[0] * 5, 1, *[0] * 4, 1)


def test_a_row_beyond_stays_on_the_left_and_meets_no_partner():
    text = "SELECT COUNT(*) AS n, COUNT(u.x) AS c FROM t LEFT JOIN u ON t.who = u.who AND t.x = u.x"
    assert joined(text, {1: 5, 2: 99, 3: 5}, {1: 5, 2: 9}) == ((3,), (1,))


def test_rows_beyond_take_no_place_of_a_unit():
    """One row of each unit counts: the one that is in a group."""
    kinds = (Column("who", Kind("integer")), Column("x", Kind("integer", Fraction(0), Fraction(9), Fraction(1))))
    schema = {"t": Table("t", kinds, unit="who", limits=Limits(rows=1))}
    data = pyarrow.table({"who": [*range(50)] * 4, "x": [*[5] * 50, *[99] * 50, *[-7] * 50, *[10] * 50]})
    request = prepare(parse("SELECT x, COUNT(*) AS n FROM t GROUP BY x", schema), schema).request
    for engine in ENGINES.values():
        [counts] = engine({"t": data}).aggregate(request, schema, SECRET).measures
        assert counts.tolist() == [0] * 5 + [50] + [0] * 5


def nested(deep):
    """A CASE of CASEs whose conditions and values read other columns each."""
    key = Name("t.x")
    for i in range(deep):
        asked = Call("less", (Name("t.y"), Literal(i))) if i % 2 else Call("equal", (Name("t.d"), Literal(DAY)))
        key = Call("case", (asked, key, Call("add", (Name("t.x"), Literal(i)))))
    return key


def test_a_key_that_can_be_asked_can_be_read():
    """What is added to a request never makes it deeper than can be computed."""
    key = nested(22)
    prepared = prepare(Query(Scan("t", "t"), (key,), (("n", Aggregate("rows")),)), SCHEMA)
    found = Memory({"t": table(ROWS)}).aggregate(prepared.request, SCHEMA, SECRET)
    assert sum(found.measures[0].tolist()) == len(without("x", "y", "d"))


def test_a_key_that_became_too_deep_is_convicted(monkeypatch):
    monkeypatch.setattr(beyond, "kind_of", lambda expression, scope: None)
    prepared = prepare(Query(Scan("t", "t"), (nested(22),), (("n", Aggregate("rows")),)), SCHEMA)
    with pytest.raises(InputError, match="Nest at most"):
        Memory({"t": table(ROWS)}).aggregate(prepared.request, SCHEMA, SECRET)


def test_fetched_values_are_the_nearer_bound():
    rows = rows_within(Scan("t", "t"), SCHEMA)
    for engine in ENGINES.values():
        found = engine({"t": table(ROWS)}).rows(rows, {"t.x": "x"}, SCHEMA, SECRET).column("x").to_pylist()
        assert sorted(map(repr, found)) == sorted(repr(row["x"]) for row in moved())


# What is said


def said(text):
    prepared = prepare(parse(text, SCHEMA), SCHEMA)
    return uses_of_query(prepared.query, dict(prepared.read))


USES = {
    "SELECT SUM(x) AS s, COUNT(y) AS n FROM t": {"number x", "number y"},
    "SELECT x, COUNT(*) AS n FROM t GROUP BY x": {"key x"},
    "SELECT x, SUM(x) AS s FROM t WHERE x < 5 GROUP BY x": {"key x", "number x", "comparison x"},
    "SELECT CASE WHEN x > 5 THEN y ELSE 0 END AS k, COUNT(*) AS n FROM t GROUP BY k": {"key x", "key y"},
    "SELECT SUM(CASE WHEN x > 5 THEN y ELSE 0 END) AS s FROM t": {"comparison x", "number y"},
    "SELECT COUNT(x > 5) AS n, SUM(y) AS s FROM t": {"comparison x", "number y"},
    "SELECT x > 5 AS k, COUNT(*) AS n FROM t GROUP BY k": {"key x"},
    "SELECT COUNT(DISTINCT x) AS n FROM t": {"distinct x"},
    "SELECT COUNT(*) AS n FROM t WHERE x IS NULL AND g = 'a'": set(),
    "SELECT k, SUM(y) AS s FROM (SELECT FLOOR(x / 2) AS k, y FROM t WHERE d > DATE '2024-01-02') AS q GROUP BY k": {
        "key x",
        "number y",
        "comparison d",
    },
}


@pytest.mark.parametrize("text", USES)
def test_what_is_done_with_columns(text):
    assert {f"{use} {name.removeprefix('t.')}" for use, name in said(text)} == USES[text]


POLICY = {
    "tables": {
        "t": {
            "columns": {
                "x": {"bounds": [0, 9]},
                "y": {"bounds": [0, 3], "grid": "0.5"},
                "d": {"bounds": list(ENDS["d"])},
                "g": {"keys": ["a", "b"]},
            }
        }
    }
}


@pytest.fixture
def data():
    return nz.open({"t": table(ROWS)}, budget=99, policy=POLICY)


NEVER = {
    "d >= '2025-01-01'": ("d >= DATE '2025-01-01'", "d"),
    "x > 9": ("x > 9", "x"),
    "x < 0 AND y > 1": ("x < 0", "x"),
    "x IN (11, 12)": ("x IN (11, 12)", "x"),
    "x + y = 13": ("(x + y) = 13", "x and y"),
    "YEAR(d) = 2025": ("YEAR(d) = 2025", "d"),
    "x >= 9 OR x < 0": None,
    "x <= 0": None,
    "x IN (9, 10)": None,
    "g = 'z'": None,
}


@pytest.mark.parametrize("condition", NEVER)
def test_a_condition_that_no_row_can_meet(data, condition):
    [caveats] = data.explain(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", spend=1).caveats
    found = [sentence for sentence in caveats if sentence.startswith("No row can meet")]
    if NEVER[condition] is None:
        assert not found
    else:
        text, names = NEVER[condition]
        assert found == [f"No row can meet {text}: that asks for values beyond the bounds of {names}."]
    [summed] = data.explain(f"SELECT SUM(x) FILTER (WHERE {condition}) AS s FROM t", spend=1).caveats
    assert [sentence for sentence in summed if sentence.startswith("No row can meet")] == found


def test_keys_and_comparisons_are_other_questions_than_before(data, monkeypatch):
    """Answers of earlier versions counted the nearer bound: they are found again for sums alone."""
    counts = ("SELECT x, COUNT(*) AS n FROM t GROUP BY x", "SELECT COUNT(*) AS n FROM t WHERE x < 5")
    questions = ["SELECT SUM(x) AS s FROM t", *counts, nz.OrderStatistic("x"), nz.Histogram("x"), nz.Distinct("x")]
    new = [data.explain(question, spend=1).offer.text for question in questions]
    for place in ("questions.parts.offers", "questions.distinct"):
        monkeypatch.setattr(f"noisette.{place}.changed_by_bounds", lambda uses: ())
    old = [data.explain(question, spend=1).offer.text for question in questions]
    assert [a == b for a, b in zip(new, old, strict=True)] == [True, False, False, True, False, False]


QUESTIONS = {
    nz.Histogram("x"): "Rows whose x lies beyond [0, 9] are in no group.",
    nz.Mode("x"): "Rows whose x lies beyond [0, 9] are in no group.",
    nz.Cube(["x", "g"], ways=2): "Rows whose x lies beyond [0, 9] are in no group.",
    nz.Quantiles("x"): "Values of x beyond [0, 9] count as the nearer bound.",
    nz.OrderStatistic("x"): "Values of x beyond [0, 9] count as the nearer bound.",
    nz.Distinct("x"): "COUNT(DISTINCT ...) counts no value of x beyond [0, 9].",
}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
def test_questions_say_what_becomes_of_values_beyond(data, question):
    [caveats] = data.explain(question, spend=1).caveats
    assert QUESTIONS[question] in caveats
    assert sum("beyond [0, 9]" in sentence for sentence in caveats) == 1


def test_a_histogram_has_no_pile_at_its_ends(data):
    rich = nz.open({"t": table(ROWS)}, budget=999, policy=POLICY)
    answer = rich.ask(nz.Histogram("x"), spend=200)
    counts = dict(
        zip(answer.to_arrow().column("x").to_pylist(), answer.to_arrow().column("n").to_pylist(), strict=True)
    )
    assert (round(counts[0]), round(counts[9]), round(sum(counts.values()))) == (2, 2, 7)
    assert rich.ask(nz.OrderStatistic("x", q=1), spend=200).rows()[0]["value"] == 9
    assert rich.ask(nz.Distinct("x"), spend=200).rows()[0]["distinct"] == 4


def test_tables_of_synthetic_rows_are_about_the_same_rows(data, monkeypatch):
    """As many rows by ward as by number, or else the tables could not fit together."""

    def totals():
        asked = nz.Synthetic(["x", "g"]).offer(data.schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95)
        requests = [one.request for one in asked.procedure.requests.values()]
        exact = [Memory({"t": table(ROWS)}).aggregate(one, data.schema, SECRET) for one in requests]
        return [int(one.measures[0].sum()) for one in exact]

    assert totals() == [len(without("x"))] * 3
    monkeypatch.setattr("noisette.questions.synthetic.rows_within", lambda relation, *_: relation)
    assert len(set(totals())) > 1
