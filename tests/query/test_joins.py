"""Joins of private tables: what each side retains, what one unit can produce, and that nothing else decides."""

import random
from dataclasses import replace
from fractions import Fraction

import pyarrow
import pytest
from tests.query.worlds import SECRET
from tests.timing import times_as_long

import noisette as nz
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql import retention as compiling
from noisette.errors import InputError
from noisette.query.canonical import canonical, canonical_text
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Link, Table
from noisette.query.shape import Shape
from noisette.query.sql import parse
from noisette.query.stability import MOST_JOINED, MOST_PAIRS, _along, shape_of
from noisette.questions.parts.offers import declared

WHOLE, DAY = Kind("integer", nullable=False), Kind("integer", Fraction(0), Fraction(99), Fraction(1))


def table(name, *columns, **more):
    return Table(name, tuple(Column(c, WHOLE if c == "id" else DAY) for c in columns), **more)


def private(name, *columns, rows=None, **limits):
    return table(name, "id", *columns, unit="id", limits=Limits(rows, **limits))


def asked(text, schema):
    tables = {t.name: t for t in schema}
    return prepare(canonical(parse(text, tables)), tables), tables


def exact(text, schema, data, secret=SECRET):
    prepared, tables = asked(text, schema)
    columns = {name: pyarrow.table(part) for name, part in data.items()}
    found = DuckDB(columns, threads=1).aggregate(prepared.request, tables, secret)
    return [m.tolist() for m in found.measures]


def owned(*counts):
    """Rows of units 0, 1, ...: so many of each, told apart by their day."""
    rows = [(unit, day) for unit, count in enumerate(counts) for day in range(count)]
    return {"id": [unit for unit, _ in rows], "day": [day for _, day in rows]}


PEOPLE, ORDERS = private("people", "age", rows=1), private("orders", "day", rows=30)
TWICE = private("people", "age", rows=2)  # such a join multiplies, so it retains rows of both sides first
DATA = {"people": {"id": list(range(40)), "age": [i % 90 for i in range(40)]}, "orders": owned(*[25] * 40)}
JOINED = "SELECT count(*) AS n FROM people JOIN orders USING (id)"


# Limits belong to each side


def test_each_side_has_its_own_limit():
    """One row of a person, but 30 orders: all pairs count."""
    assert exact(JOINED, (PEOPLE, ORDERS), DATA) == [[1000]]
    part = asked(JOINED, (PEOPLE, ORDERS))[0].part
    assert (part.groups, part.rows, part.total) == (1, 30, 30)


def test_more_than_a_limit_is_left_out_before_the_join():
    assert exact(JOINED, (PEOPLE, replace(ORDERS, limits=Limits(rows=20))), DATA) == [[800]]
    assert exact(JOINED, (PEOPLE, replace(ORDERS, limits=Limits(groups=2, rows_per_group=5))), DATA) == [[200]]
    assert exact(JOINED, (TWICE, replace(ORDERS, limits=Limits(groups=2, rows_per_group=5))), DATA) == [[400]]


@pytest.mark.slow
def test_conditions_on_one_side_come_first():
    """Of the rows that meet the conditions all count, though a person has more rows than the limit."""
    schema = PEOPLE, replace(ORDERS, limits=Limits(rows=5))
    conditions = "day < 5 AND age < 20"
    written = [
        f"{JOINED} WHERE {conditions}",
        "SELECT count(*) FROM (SELECT * FROM orders WHERE day < 5) o JOIN people p ON p.id = o.id WHERE age < 20",
        "SELECT count(*) FROM people LEFT JOIN (SELECT * FROM orders WHERE day < 5) o USING (id) WHERE age < 20",
    ]
    assert [exact(text, schema, DATA) for text in written] == [[[100]]] * 3
    both = "SELECT count(*) FROM (SELECT * FROM orders WHERE day < 5) o JOIN people p USING (id) WHERE p.age < 20"
    tables = {t.name: t for t in schema}
    other = both.replace("(SELECT * FROM orders WHERE day < 5) o", "orders o").replace("WHERE", "WHERE o.day < 5 AND")
    assert canonical_text(parse(both, tables)) == canonical_text(parse(other, tables))


@pytest.mark.slow
def test_a_condition_on_a_partner_that_may_be_missing_comes_after_a_left_join():
    data = {"people": {"id": [1, 2], "age": [1, 2]}, "orders": {"id": [1], "day": [9]}}
    text = "SELECT count(*) FROM people LEFT JOIN orders USING (id) WHERE {}"
    assert exact(text.format("day < 5"), (PEOPLE, ORDERS), data) == [[0]]
    assert exact(text.format("day IS NULL"), (PEOPLE, ORDERS), data) == [[1]]
    assert exact(text.format("age = 2"), (PEOPLE, ORDERS), data) == [[1]]


@pytest.mark.slow
def test_a_table_joined_with_itself_retains_the_same_rows_on_both_sides():
    schema = (replace(ORDERS, limits=Limits(rows=5)),)
    same = "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id AND a.day = b.day"
    later = "SELECT id, day + 1 AS day FROM orders"
    pairs = f"SELECT count(*) FROM orders a JOIN ({later}) b ON a.id = b.id WHERE a.day + 1 = b.day"
    wards = table("wards", "day", "floor", public=True, repeats={"day": 1})
    public = same.replace("orders a", "orders a JOIN wards ON a.day = wards.day") + " WHERE floor + a.day >= 0"
    data = {"orders": owned(30, 3, 0, 17), "wards": {"day": list(range(99)), "floor": [7] * 99}}
    for text in (same, pairs, public):
        assert exact(text, (*schema, wards), data) == [[13]]


def test_without_a_limit_a_join_is_refused():
    with pytest.raises(InputError, match=r"how many rows of one id may be joined with others: rows = 10"):
        asked(JOINED, (TWICE, replace(ORDERS, limits=Limits())))
    with pytest.raises(InputError, match=r"how many rows of one id may count: rows = 10"):  # it multiplies nothing
        asked(JOINED, (PEOPLE, replace(ORDERS, limits=Limits())))


@pytest.mark.parametrize("other", [pyarrow.float64(), pyarrow.string(), pyarrow.decimal128(21, 2)], ids=str)
def test_units_that_are_stored_differently_are_refused_before_anything_is_charged(other):
    tables = {"people": pyarrow.table({"id": [1]}), "orders": pyarrow.table({"id": pyarrow.array([1]).cast(other)})}
    kinds = {} if other == pyarrow.string() else {"columns": {"id": {"type": "integer"}}}
    policy = {"tables": {"people": {"unit": "id", "rows": 1}, "orders": {"unit": "id", "rows": 3, **kinds}}}
    data = nz.open(tables, policy=policy, budget=1)
    with pytest.raises(InputError, match=r"same type|cannot be equal"):
        data.sql(JOINED, spend=1)
    assert data.budget.entries == ()


# What decides about the rows


@pytest.mark.slow
def test_the_choice_depends_on_nothing_but_the_unit_s_own_rows():
    schema = TWICE, replace(ORDERS, limits=Limits(rows=4))
    text = "SELECT sum(day) AS n FROM people JOIN orders USING (id) WHERE id = 7"
    rng, found = random.Random(1), set()
    for others in (0, 3, 40):
        rows = [(7, day) for day in range(25)] + [(8 + i, day) for i in range(others) for day in range(9)]
        rng.shuffle(rows)
        data = {"people": {"id": [7], "age": [1]}, "orders": {"id": [u for u, _ in rows], "day": [d for _, d in rows]}}
        found.add(str(exact(text, schema, data)))
    assert len(found) == 1


@pytest.mark.slow
def test_the_secret_chooses():
    schema = TWICE, replace(ORDERS, limits=Limits(rows=4))
    text = "SELECT sum(day) AS n FROM people JOIN orders USING (id)"
    assert len({str(exact(text, schema, DATA, bytes([i] * 16))) for i in range(8)}) > 1


def test_rows_with_one_hash_are_told_apart_by_their_columns(monkeypatch):
    monkeypatch.setattr(compiling, "hash_of", lambda *_: compiling.number(0))
    schema = TWICE, replace(ORDERS, limits=Limits(rows=4))
    text = "SELECT sum(day) AS n FROM people JOIN orders USING (id)"
    rows = list(zip(*DATA["orders"].values(), strict=True))
    for _ in range(3):
        random.Random(_).shuffle(rows)
        data = {**DATA, "orders": {"id": [u for u, _ in rows], "day": [d for _, d in rows]}}
        assert exact(text, schema, data) == [[40 * (0 + 1 + 2 + 3)]]


# What one unit can produce


def test_a_public_table_multiplies_by_its_most_repeated_value():
    wards = table("wards", "day", "floor", public=True, repeats={"day": 3, "floor": 1})
    data = {"orders": owned(2, 9), "wards": {"day": [0, 0, 0, 1], "floor": [1, 2, 3, 4]}}
    text = "SELECT count(*) AS n FROM orders JOIN wards USING (day)"
    schema = replace(ORDERS, limits=Limits(rows=9)), wards
    assert exact(text, schema, data) == [[8]]
    assert asked(text, schema)[0].part.total == 27
    twice = "SELECT count(*) AS n FROM orders JOIN wards USING (day) JOIN wards w ON w.floor = orders.day"
    assert asked(twice, schema)[0].part.total == 27
    often = replace(wards, repeats={"day": 200})
    assert asked(text, (schema[0], often))[0].part.total == MOST_JOINED


@pytest.mark.parametrize("repeats", [{}, {"day": MOST_PAIRS}], ids=["unknown", "often"])
def test_a_join_that_would_make_too_many_rows_is_refused(repeats):
    """Whether somebody has a row that meets so many could be seen in the time, or end in a lack of memory."""
    wards = table("wards", "day", "floor", public=True, repeats=repeats)
    with pytest.raises(InputError, match="could make more than 100,000 rows"):
        asked("SELECT count(*) AS n FROM orders JOIN wards USING (day)", (ORDERS, wards))
    with pytest.raises(InputError, match="lower the limits"):
        asked(JOINED, (private("people", "age", rows=400), private("orders", "day", rows=400)))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("times", [3, 4, 5])
def test_a_chain_of_self_joins_stays_within_the_cap(times):
    schema = (private("orders", "day", rows=30),)
    joins = " ".join(f"JOIN orders t{i} USING (id)" for i in range(1, times))
    text = f"SELECT count(*) AS n, count(DISTINCT t0.id) FROM orders t0 {joins}"
    assert exact(text, schema, {"orders": owned(30, 2)}) == [[MOST_JOINED + min(2**times, MOST_JOINED)], [2]]
    assert asked(text, schema)[0].part.total == MOST_JOINED


@pytest.mark.slow
def test_time_does_not_grow_with_the_rows_of_one_person():
    """A five-way self-join of 30 rows would make 24 million; a loop over the limits' product ends at once."""
    schema = (private("orders", "day", rows=30),)
    joins = " ".join(f"JOIN orders t{i} USING (id)" for i in range(1, 5))
    text = f"SELECT count(*) AS n FROM orders t0 {joins}"

    few, many = (lambda rows=rows: exact(text, schema, {"orders": owned(rows)}) for rows in (2, 99))
    assert times_as_long(many, few, rounds=3) < 10  # about 1


@pytest.mark.slow
def test_a_sub_query_per_unit_after_a_join_has_one_row_a_unit():
    inner = "SELECT id, count(*) AS n FROM people JOIN orders USING (id) GROUP BY id"
    text = f"SELECT count(*) AS n, sum(least(n, 50)) AS m FROM ({inner}) s"
    prepared, _ = asked(text, (PEOPLE, ORDERS))
    assert prepared.part.total == 1
    assert exact(text, (PEOPLE, ORDERS), DATA) == [[40], [1000]]
    assert exact(text, (PEOPLE, replace(ORDERS, limits=Limits(rows=10))), DATA) == [[40], [1000]]  # as of one table
    assert exact(text, (TWICE, replace(ORDERS, limits=Limits(rows=10))), DATA) == [[40], [400]]


# What is said about it


def curator(rows, people=1):
    policy = {
        "tables": {
            "people": {"unit": "id", "rows": people, "columns": {"age": {"bounds": [0, 99]}}},
            "orders": {"unit": "id", "rows": rows, "columns": {"day": {"bounds": [0, 99]}}},
        }
    }
    return nz.open({name: pyarrow.table(part) for name, part in DATA.items()}, policy=policy, budget=100)


@pytest.mark.slow
def test_an_explanation_names_what_each_side_retains():
    told = " ".join(repr(curator(30).explain(JOINED, spend=1)).split())
    assert "At most 1 row of each id in people is joined; further rows are left out." in told
    assert "At most 30 rows of each id are used; further rows are left out." in told
    assert "used of the join" not in told
    assert told.count("At most") == 2
    told = " ".join(repr(curator(30, people=2).explain(JOINED, spend=1)).split())
    assert "At most 2 rows of each id in people are joined; further rows are left out." in told
    assert "At most 30 rows of each id in orders are joined; further rows are left out." in told
    answer = curator(3000, people=2).ask(JOINED, spend=1)
    assert "At most 1,000 rows of each id are used of the join of people and orders" in " ".join(answer.caveats)


def test_other_limits_are_another_question():
    """30 rows as 1 x 30 and as 5 x 6 are not the same answer."""
    one, other = (
        declared([asked(JOINED, (private("people", "age", rows=a), private("orders", "day", rows=b)))[0]])
        for a, b in ((1, 30), (5, 6))
    )
    assert one != other


@pytest.mark.slow
def test_a_function_gets_the_rows_that_joins_retain():
    data = curator(5)
    joined = data.table("people").join(data.table("orders"), on="id").where("day < 3")
    question = nz.Apply(lambda rows: rows.num_rows, blocks=2, bounds=(0, 1000), of=joined)
    offer = question.offer(data.schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95)
    found = data._source.rows(offer.procedure.relation, {"orders.day": "day"}, data.schema, SECRET)
    assert found.num_rows == 120


# A row of the other side for each row


@pytest.mark.parametrize(("repeats", "rows", "limits"), [(1, None, Limits(rows=3)), (2, 12, Limits(rows=12))])
def test_rows_that_a_public_table_repeats_make_no_key(repeats, rows, limits):
    """Orders of customers: where a customer stands in two rows, an order has two as well."""
    key, day = Kind("integer"), Kind("integer", Fraction(0), Fraction(9), Fraction(1))
    customers = Table("c", (Column("u", key), Column("id", key), Column("ward", day)), unit="u", limits=Limits(rows=2))
    link = Link("c", (("id", "id"),))
    orders = Table("o", (Column("id", key),), unit="u", limits=Limits(rows=3), through=(link,))
    floors = Table("f", (Column("ward", day), Column("floor", day)), public=True, repeats={"ward": repeats})
    schema = {each.name: each for each in (customers, orders, floors)}
    text = "(SELECT c.id AS id, f.floor AS floor FROM c JOIN f ON c.ward = f.ward) AS s JOIN o ON s.id = o.id"
    shape = shape_of(canonical(parse(f"SELECT COUNT(*) AS n FROM {text}", schema)).source, schema)
    assert (shape.rows, shape.limits) == (rows, limits)


@pytest.mark.parametrize(("child", "outer", "rows"), [("left", True, 2), ("right", True, 5), ("right", False, 3)])
def test_rows_without_a_partner_are_rows_as_well(child, outer, rows):
    left, right = (Shape({}, "who", n, Limits(rows=n)) for n in (2, 3))
    assert _along(left, left, right, child, outer=outer).rows == rows
