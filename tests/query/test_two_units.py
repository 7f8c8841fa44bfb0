"""Joins of rows of different units: what one person can change is what is stated, on all small databases of two tables.

Persons u have rows a(u, k, x) and b(u, k, y), which meet where k is equal. Keys have gaps and NULLs. The order in which
rows with one value are retained is that of their columns, so rows of one person displace those of the other.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import pyarrow
import pytest
import sqlglot
from tests.query.worlds import Worlds, faults, loose, measured, multisets, neighbours, replaced

from noisette.engines.sql import relation as compiling
from noisette.engines.sql import retention
from noisette.errors import InputError
from noisette.privacy import Neighbours, Pure
from noisette.query import stability
from noisette.query.canonical import canonical
from noisette.query.frequency import MinimumFrequency
from noisette.query.kind import Kind
from noisette.query.measure import sensitivity
from noisette.query.prepare import answerable, prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse
from noisette.query.stability import shape_of
from noisette.questions.sql import Sql

F = Fraction
WHOLE = pyarrow.int64()
KEY, X = Kind("integer"), Kind("integer", F(0), F(2), F(1))

A = [(1, 1, 0), (1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 1, 0), (2, 2, 2), (3, 1, 2), (1, None, 1)]
B = [(1, 1, 0), (1, 1, 2), (2, 1, 1), (2, 1, 0), (3, 2, 2), (None, 1, 1)]


@cache
def _worlds():
    return [{"a": a, "b": b} for a, b in product(multisets(A, 3), multisets(B, 2))]


def two_tables(limit=1, per_value=(1, 1)):
    """Both tables with a limit per person, and with a number of rows for each key."""

    def made(name, value, most):
        columns = (Column("u", KEY), Column("k", KEY, rows_per_value=most), Column(value, X))
        return Table(name, columns, unit="u", limits=Limits(rows=limit))

    columns = {"a": {"u": WHOLE, "k": WHOLE, "x": WHOLE}, "b": {"u": WHOLE, "k": WHOLE, "y": WHOLE}}
    return Worlds({"a": made("a", "x", per_value[0]), "b": made("b", "y", per_value[1])}, columns, _worlds(), {})


@cache
def pairs_of():
    """Pairs of neighbours under add/remove and under replace."""
    pairs = [(a, b) for a, b in neighbours(_worlds(), unit=True) if a != b]
    assert len(pairs) > 1000
    return {Neighbours.ADD_REMOVE: pairs, Neighbours.REPLACE: replaced(pairs)}


def checked(question, worlds, *, share=1, more=0):
    """Faults under add/remove and under replace."""
    prepared, arrays = measured(question, worlds, world="a.w", more=more)
    return [fault for name, pairs in pairs_of().items() for fault in faults(prepared, arrays, pairs, name, share=share)]


MET = "ON a.k = b.k{a.w = b.w}"
ALL = "count(*), count(x), count(distinct y), sum(x), sum(x - y), avg(y)"
QUESTIONS = {
    "all": f"SELECT {{w}} {ALL} FROM a JOIN b {MET}",
    "by value": f"SELECT {{w}} x, {ALL} FROM a JOIN b {MET}{{g}}x",
    "by both": f"SELECT {{w}} x, y, count(*), sum(x) FROM a JOIN b {MET}{{g}}x, y",
    "one side": f"SELECT {{w}} y, {ALL} FROM a JOIN b {MET} WHERE x >= 1{{g}}y",
    "both sides": f"SELECT {{w}} {ALL} FROM a JOIN b {MET} WHERE x > y",
    "itself": "SELECT {w} a.x, count(*), sum(c.x) FROM a JOIN a AS c ON a.k = c.k{a.w = c.w}{g}a.x",
}
DECLARED = [(1, (1, 1)), (1, (2, 1)), (2, (1, 2))]


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "per_value"), DECLARED, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_one_person_changes_no_more_than_is_stated(name, limit, per_value):
    assert checked(QUESTIONS[name], two_tables(limit, per_value)) == []


@pytest.mark.slow
def test_the_stated_number_of_rows_is_reached():
    """Without groups and without conditions: a n + b m rows, by one person who leaves."""
    prepared, arrays = measured(QUESTIONS["all"], two_tables(1, (2, 1)), world="a.w")
    missed = loose(prepared, arrays, pairs_of()[Neighbours.ADD_REMOVE], Neighbours.ADD_REMOVE)
    assert "rows" not in {measure for measure, *_ in missed}


# Broken twins


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all", "by value", "one side", "itself"])
def test_half_the_sensitivity_is_noticed(name):
    assert checked(QUESTIONS[name], two_tables(1, (2, 1)), share=F(1, 2))


@pytest.mark.slow
def test_a_twin_that_counts_rows_of_one_side_alone_is_noticed(monkeypatch):
    real = stability._of_two_units

    def halved(*given):
        shape = real(*given)
        return replace(shape, moved=replace(shape.moved, rows=shape.moved.rows - 1))

    monkeypatch.setattr(stability, "_of_two_units", halved)
    assert checked("SELECT {w} count(*) FROM a JOIN b ON a.k = b.k{a.w = b.w}", two_tables(1, (1, 1)))


@pytest.mark.slow
def test_a_twin_that_forgets_rows_that_return_is_noticed(monkeypatch):
    """As if each row had a unit: rows go or come, but not both."""
    monkeypatch.setattr(
        "tests.query.worlds.sensitivity", lambda m, part, n: sensitivity(m, replace(part, returns=False), n)
    )
    assert checked(f"SELECT {{w}} x, y, count(*) FROM a JOIN b {MET}{{g}}x, y", two_tables(1, (1, 1)))


@pytest.mark.slow
def test_a_twin_that_retains_one_row_more_for_each_value_is_noticed(monkeypatch):
    real = compiling.per_value
    more = lambda rows, names, limit, seed: real(rows, names, replace(limit, rows=limit.rows + 1), seed)  # noqa: E731
    monkeypatch.setattr(compiling, "per_value", more)
    assert checked(QUESTIONS["all"], two_tables(1, (1, 1)))


def test_an_order_that_depends_on_other_rows_is_noticed(monkeypatch):
    """The first rows in even worlds, the last ones in odd worlds."""
    real = retention._first

    def unstable(rows, names, limit, by, order_by):
        values = [name for name in names if name.endswith((".x", ".y"))]
        if by != [retention.UNIT] and values:
            world = next(name for name in by if name.endswith(".w"))
            order_by = sqlglot.parse_one(f'CASE WHEN "{world}" % 2 = 0 THEN -"{values[0]}" ELSE "{values[0]}" END')
        return real(rows, names, limit, by, order_by)

    shifts = tuple((p, k, 0) for p, k in ((2, 1), (4, 2), (6, 3)))
    visits = tuple((p, k, x) for p, k, x in ((2, 1, 0), (3, 1, 2), (4, 2, 0), (5, 2, 2), (6, 3, 0), (7, 3, 2)))
    worlds = [{"a": (*visits, *more), "b": shifts} for more in ((), ((1, 9, 1),))]
    tables, question = (
        replace(two_tables(1, (1, 1)), worlds=worlds),
        f"SELECT {{w}} x, count(*) FROM a JOIN b {MET}{{g}}x",
    )

    def found():
        return faults(*measured(question, tables, world="a.w"), [(0, 1)], Neighbours.ADD_REMOVE)

    assert found() == []
    monkeypatch.setattr(retention, "_first", unstable)
    assert found()


# What is refused


def refused(text, *, per_value=(1, 1), limit=1, **rule):
    tables = {name: replace(one, **rule) for name, one in two_tables(limit, per_value).schema.items()}
    with pytest.raises(InputError) as fault:
        answerable(canonical(parse(text, tables)), tables, of_two_units=True)
    return str(fault.value)


def test_both_sides_need_a_declared_number_of_rows():
    assert "rows_per_value = 3" in refused("SELECT count(*) FROM a JOIN b ON a.k = b.k", per_value=(1, None))
    assert "rows_per_value = 3" in refused("SELECT count(*) FROM a JOIN b ON a.k = b.y")


def test_what_counts_units_is_refused():
    joined = "FROM a JOIN b ON a.k = b.k"
    assert "declared keys" in refused(f"SELECT a.k, count(*) {joined} GROUP BY a.k")
    assert "Quantiles" in refused(f"SELECT median(x) {joined}")
    assert "number of units" in refused(f"SELECT count(*) {joined}", frequency=MinimumFrequency(5, F(1, 100)))
    assert "group first" in refused(f"SELECT count(*) FROM (SELECT a.u, count(*) AS n {joined} GROUP BY a.u) AS s")


def test_joins_that_go_further_are_refused():
    joined = "FROM a JOIN b ON a.k = b.k"
    assert "last" in refused(f"SELECT count(*) {joined} JOIN b AS c ON c.u = a.u")
    assert "last" in refused(f"SELECT count(*) {joined} JOIN b AS c ON c.k = a.k")
    assert "in place of LEFT JOIN" in refused("SELECT count(*) FROM a LEFT JOIN b ON a.k = b.k")
    assert "lower rows_per_value" in refused(f"SELECT count(*) {joined}", per_value=(1000, 1000))
    assert "how many rows" in refused(f"SELECT count(*) {joined}", limits=Limits())


def test_other_questions_are_refused():
    """They take for granted that each row belongs to one unit."""
    tables = two_tables(1, (1, 1)).schema
    with pytest.raises(InputError, match="for questions in SQL"):
        prepare(canonical(parse("SELECT count(*) FROM a JOIN b ON a.k = b.k", tables)), tables)


def test_the_unit_is_that_of_both_sides():
    tables = two_tables(2, (3, 4)).schema
    tables["b"] = replace(tables["b"], unit="y")
    shape = shape_of(parse("SELECT count(*) FROM a JOIN b ON a.k = b.k", tables).source, tables)
    assert (shape.whose, shape.moved.rows) == ("u or y", 2 * 4 + 2 * 3)


def test_answers_are_kept_by_the_columns_and_numbers_that_are_declared():
    """A join on two columns, of which one or the other has a number of rows: other answers."""
    text, found = "SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.x = b.y", set()
    for declared in ({"k": 2}, {"x": 2, "y": 2}, {"k": 3}, {"k": 2, "x": 2, "y": 2}):
        tables = {
            name: replace(one, columns=tuple(replace(c, rows_per_value=declared.get(c.name)) for c in one.columns))
            for name, one in two_tables().schema.items()
        }
        found.add(Sql(text).offer(tables, Pure(1), Neighbours.ADD_REMOVE, 0.95).text)
    assert len(found) == 4
