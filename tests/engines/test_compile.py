"""Relations as SQL: names, units, joins, sums within a unit."""

from fractions import Fraction

import duckdb
import pyarrow
import pytest
from sqlglot import exp

from noisette.engines.duckdb.session import text_of
from noisette.engines.sql.relation import relation_sql
from noisette.errors import InputError
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind
from noisette.query.plan import Aggregate, Join, PerUnit, Scan, Select, Where
from noisette.query.schema import Column, Limits, Table

AGE = Kind("integer", Fraction(0), Fraction(120), Fraction(1))
PAY = Kind("real", Fraction(0), Fraction(9), Fraction(1, 10))
FREE = Kind("integer")

ROWS = Limits(rows=9)
PEOPLE = Table("people", (Column("id", FREE), Column("age", AGE), Column("pay", PAY)), unit="id", limits=ROWS)
PETS = Table("pets", (Column("owner", FREE), Column("kind", Kind("text"))), unit="owner", limits=ROWS)
TOWNS = Table("towns", (Column("age", AGE), Column("town", Kind("text"))), public=True, repeats={"age": 1})
SCHEMA = {table.name: table for table in (PEOPLE, PETS, TOWNS)}
DATA = {
    "people": {"id": [1, 1, 2, None], "age": [10, 500, None, 7], "pay": [0.1, 0.2, 0.3, 0.4]},
    "pets": {"owner": [1, 2, 3, None], "kind": ["cat", "dog", "cat", "dog"]},
    "towns": {"age": [10, 120, None], "town": ["a", "b", "c"]},
}
STORED = {
    "people": {"id": "BIGINT", "age": "BIGINT", "pay": "DOUBLE"},
    "pets": {"owner": "BIGINT", "kind": "VARCHAR"},
    "towns": {"age": "BIGINT", "town": "VARCHAR"},
}


def rows(relation, needed=None, data=DATA, schema=SCHEMA, stored=STORED):
    with duckdb.connect() as connection:
        for name, columns in data.items():
            connection.register(name, pyarrow.table(columns))
        found = connection.sql(text_of(relation_sql(relation, schema, stored, needed))).to_arrow_table()
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str), found.column_names


def test_a_scan_cleans_names_and_leaves_out_rows_without_a_unit():
    found, names = rows(Scan("people", "p"))
    assert names == ["p.id", "p.age", "p.pay", "unit"]
    assert found == [(1, 10, 0.1, 1), (1, 120, 0.2, 1), (2, None, 0.3, 2)]


def test_only_needed_columns_are_read():
    tree = relation_sql(Where(Scan("people", "p"), Call("at_least", (Name("p.age"), Literal(3)))), SCHEMA, STORED, ())
    assert {c.name for c in tree.find_all(exp.Column)} == {"id", "age", "p.age", "unit"}
    assert rows(Scan("towns", "t"), ())[1] == ["nothing"]


def test_nan_units_belong_to_nobody_and_zero_has_one_sign():
    data = {"people": {"id": [0.0, -0.0, float("nan"), None], "age": [1, 2, 3, 4], "pay": [0.0] * 4}}
    schema = {"people": Table("people", (Column("age", AGE),), unit="id")}
    source = PerUnit(Scan("people", "p"), (), (("n", Aggregate("rows")),))
    stored = {"people": STORED["people"] | {"id": "DOUBLE"}}
    assert rows(source, None, data, schema, stored)[0] == [(0.0, 2)]


def test_a_select_keeps_the_unit():
    found, names = rows(Select(Scan("people", "p"), (("q.a", Call("add", (Name("p.age"), Literal(1)))),)))
    assert names == ["q.a", "unit"]
    assert found == [(11, 1), (121, 1), (None, 2)]


def test_null_joins_with_nothing_and_the_unit_comes_from_the_private_side():
    join = Join(Scan("people", "p"), Scan("towns", "t"), (("p.age", "t.age"),))
    assert rows(join, {"t.town"})[0] == [("a", 1), ("b", 1)]
    left = Join(Scan("people", "p"), Scan("towns", "t"), (("p.age", "t.age"),), "left")
    assert rows(left, {"t.town"})[0] == [("a", 1), ("b", 1), (None, 2)]
    other = Join(Scan("towns", "t"), Scan("people", "p"), (("t.age", "p.age"),))
    assert rows(other, {"t.town"})[0] == [("a", 1), ("b", 1)]


def test_private_tables_join_on_units_as_stored_not_as_cleaned():
    """Cleaning cuts both ids to 1, but rows of two people must not become one."""
    narrow = Kind("integer", Fraction(0), Fraction(1), Fraction(1))
    people = Table("people", (Column("id", narrow),), unit="id", limits=ROWS)
    pets = Table("pets", (Column("owner", narrow), Column("kind", Kind("text"))), unit="owner", limits=ROWS)
    join = Join(Scan("people", "p"), Scan("pets", "q"), (("p.id", "q.owner"),))
    data = {"people": {"id": [5, 6]}, "pets": {"owner": [6, 7], "kind": ["cat", "dog"]}}
    assert rows(join, {"q.kind"}, data, {"people": people, "pets": pets})[0] == [("cat", 6)]


def test_units_of_different_types_do_not_meet():
    join = Join(Scan("people", "p"), Scan("pets", "q"), (("p.id", "q.owner"),))
    with pytest.raises(InputError, match="same type"):
        relation_sql(join, SCHEMA, STORED | {"pets": {"owner": "DOUBLE", "kind": "VARCHAR"}})


def test_names_that_differ_only_in_case_are_refused():
    """The engine would read the first for the second, whose bounds are others."""
    for names in (("n", "N"), ("n", "Unit"), ("n", "Order")):
        source = Select(Scan("people", "p"), tuple((name, Name("p.age")) for name in names))
        with pytest.raises(InputError, match="upper and lower case"):
            relation_sql(source, SCHEMA, STORED)


def test_a_missing_column_is_told_only_if_it_is_needed():
    stored = {"people": {"id": "BIGINT"}}
    with pytest.raises(InputError, match="a column age, but the data has none"):
        relation_sql(Scan("people", "p"), SCHEMA, stored, {"p.age"})
    assert text_of(relation_sql(Scan("people", "p"), SCHEMA, stored, ())).startswith('SELECT "id" AS "unit"')


def test_aggregates_of_one_unit():
    x = Name("p.age")
    parts = (
        ("n", Aggregate("rows")),
        ("c", Aggregate("count", x)),
        ("s", Aggregate("sum", x)),
        ("m", Aggregate("mean", x)),
        ("low", Aggregate("quantile", x, Fraction(0))),
        ("high", Aggregate("quantile", x, Fraction(1))),
        ("pay", Aggregate("sum", Name("p.pay"))),
    )
    found, names = rows(PerUnit(Scan("people", "p"), (), parts))
    assert names == ["unit", "n", "c", "s", "m", "low", "high", "pay"]
    assert found == [(1, 2, 2, 130, 65.0, 10, 120, 0.3), (2, 1, 0, None, None, None, None, 0.3)]


def test_sums_of_one_unit_do_not_depend_on_the_order():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are different doubles; sums of steps are not."""
    wide = Kind("real", Fraction(-(2**40)), Fraction(2**40))
    schema = {"people": Table("people", (Column("pay", wide),), unit="id")}
    source = PerUnit(Scan("people", "p"), (), (("s", Aggregate("sum", Name("p.pay"))),))
    values = [0.1, 0.2, 0.3, 1e11, -1e11, 1e-3]
    sums = set()
    for order in (values, values[::-1], sorted(values)):
        data = {"people": {"id": [1] * 6, "age": [0] * 6, "pay": order}}
        sums.add(rows(source, None, data, schema)[0][0])
    assert len(sums) == 1


def test_sums_of_one_unit_stay_within_what_doubles_hold():
    wide = Kind("integer", Fraction(0), Fraction(2**52), Fraction(1))
    schema = {"people": Table("people", (Column("age", wide),), unit="id")}
    source = PerUnit(Scan("people", "p"), (), (("s", Aggregate("sum", Name("p.age"))),))
    data = {"people": {"id": [1] * 3, "age": [2**62] * 3, "pay": [0.0] * 3}}
    assert rows(source, None, data, schema)[0] == [(1, 2**52)]


def test_keys_of_a_unit_may_be_constants():
    source = PerUnit(Scan("people", "p"), (("one", Literal(1)), ("a", Name("p.age"))), (("n", Aggregate("rows")),))
    assert rows(source)[0] == [(1, 1, 10, 1), (1, 1, 120, 1), (2, 1, None, 1)]
    assert rows(source, {"n"})[0] == [(1, 1), (1, 1), (2, 1)]
