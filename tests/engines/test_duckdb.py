"""DuckDB as an engine: right by a plain evaluation, locked, silent, and the same for any order and threads."""

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisette.engines.duckdb import fetch as fetching
from noisette.engines.duckdb import retained as retaining
from noisette.engines.duckdb import session
from noisette.engines.duckdb import source as duckdb_source
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql.syntax import number
from noisette.engines.tie_break import NULL, TieBreak, own_places
from noisette.errors import InputError, NoisetteError
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Aggregate, Join, PerUnit, Scan, Select, Where
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse

CANARY = "canary-7f3a"
SECRET = bytes(range(16))
AGE = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
PAY = Kind("real", Fraction(-1), Fraction(2), Fraction(1, 10))
WARD = Kind("text", keys=("a", "b"))
COLUMNS = (Column("age", AGE), Column("pay", PAY), Column("ward", WARD), Column("well", Kind("boolean")))
TYPES = {
    "person": pyarrow.string(),
    "number": pyarrow.int64(),
    "age": pyarrow.int64(),
    "pay": pyarrow.float64(),
    "ward": pyarrow.string(),
    "well": pyarrow.bool_(),
}
WARDS = Table("wards", (Column("ward", WARD), Column("floor", AGE)), public=True, repeats={"ward": 1})
FLOORS = {"ward": ["a", "b", "c", None], "floor": [1, 20, 3, 4]}
ROWS = Table("t", COLUMNS)
PEOPLE = Table("t", (*COLUMNS, Column("person", Kind("text"))), unit="person")
NUMBERED = Table("t", (*COLUMNS, Column("number", Kind("integer"))), unit="number")
MANY = Limits(rows=10**6, groups=10**6, rows_per_group=10**6)

age, pay, ward, well = (Name(f"t.{name}") for name in ("age", "pay", "ward", "well"))
MEASURES = (
    Measure("rows"),
    Measure("units"),
    Measure("count", age),
    Measure("distinct", ward),
    Measure("distinct", pay),
    Measure("sum", age, Fraction(1), 0, 9),
    Measure("sum", pay, Fraction(1, 10), -10, 20),
    Measure("histogram", age, Fraction(1), 0, 9),
    Measure("histogram", pay, Fraction(1, 2), -2, 4),
)

ages = st.none() | st.integers(-3, 12) | st.sampled_from([2**63 - 1, -(2**63)])
pays = st.none() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.3, 1e300, 0.25]) | st.floats(-2, 3)
people = st.sampled_from(["ann", "bob", "cy", None])
rows_strategy = st.lists(
    st.tuples(people, ages, pays, st.sampled_from(["a", "b", "c", None]), st.sampled_from([True, False, None])),
    max_size=12,
)


# A plain evaluation


def away(value):
    return math.floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)


def clean(row):
    """What the declared kinds make of a stored row, and which of its values are beyond their bounds."""
    person, a, p, w, b = row
    beyond = {"t.age"} if a is not None and not 0 <= a <= 9 else set()
    a = None if a is None else min(max(a, 0), 9)
    if p is not None and not math.isnan(p):
        on_grid = away(Fraction(min(max(p, -1.1), 2.1) * 10))
        beyond |= set() if -10 <= on_grid <= 20 else {"t.pay"}
        p = Fraction(min(max(on_grid, -10), 20), 10)
    else:
        p = None
    return {"t.person": person, "t.age": a, "t.pay": p, "t.ward": w, "t.well": b, "beyond": beyond}


def plain(rows, unit):
    return [r | {"unit": r["t.person"]} for r in map(clean, rows) if not unit or r["t.person"] is not None]


def evaluated(rows, keys, domains, measures, unit):
    """Keys and measures of all groups, or of those that are there."""
    groups = {}
    for row in (row for row in rows if row["beyond"].isdisjoint(key.name for key in keys)):
        groups.setdefault(tuple(row[key.name] for key in keys), []).append(row)
    if None in domains:
        inside = [g for g in groups if all(d is None or v in d for v, d in zip(g, domains, strict=True))]
        order = sorted(inside, key=lambda g: [(v is None, v if v is not None else 0) for v in g])
    else:
        order = list(itertools.product(*domains))
    return order, [[one(m, groups.get(g, []), unit) for g in order] for m in measures]


def one(measure, rows, unit):
    if measure.what == "distinct":
        rows = [row for row in rows if measure.of.name not in row["beyond"]]
    values = [row[measure.of.name] for row in rows] if measure.of else []
    there = [value for value in values if value is not None]
    match measure.what:
        case "rows":
            return len(rows)
        case "units":
            return len({row["unit"] for row in rows}) if unit else len(rows)
        case "count":
            return len(there)
        case "distinct":
            return len(set(there))
        case "sum":
            return sum(away(value / measure.grid) for value in there)
        case _:
            cells = Counter(away(value / measure.grid) for value in there)
            return [cells[step] for step in range(measure.low, measure.high + 1)]


def table_of(rows):
    columns = list(zip(*rows, strict=True)) or [()] * 5
    names = ("person", "age", "pay", "ward", "well")
    data = {n: pyarrow.array(c, TYPES[n]) for n, c in zip(names, columns, strict=True)}
    numbers = [None if p is None else hash_number(p) for p in columns[0]]
    return pyarrow.table(data | {"number": pyarrow.array(numbers, pyarrow.int64())})


def hash_number(person):
    return {"ann": -(2**63), "bob": 0, "cy": 2**63 - 1}.get(person, 7)


def source_of(rows, **options):
    return DuckDB({"t": table_of(rows), "wards": pyarrow.table(FLOORS)}, **options)


def answer(source, schema_table, keys, domains, measures=MEASURES, limits=None, relation=None):
    request = Request(relation or Scan("t", "t"), keys, domains, measures, limits)
    exact = source.aggregate(request, {"t": schema_table, "wards": WARDS}, SECRET)
    found = None if exact.keys is None else list(zip(*exact.keys.to_pydict().values(), strict=True))
    assert all(m.dtype == np.int64 for m in exact.measures)
    if found is None:
        return None, [m.tolist() for m in exact.measures]
    order = sorted(range(len(found)), key=lambda i: repr(found[i]))  # groups come in any order
    return [found[i] for i in order], [m[order].tolist() for m in exact.measures]


steps = tuple(Fraction(i, 10) for i in range(-10, 21))
GROUPINGS = [
    ((), ()),
    ((ward,), (("a", "b"),)),
    ((ward,), (("a", "b", None),)),
    ((age,), (tuple(range(10)),)),
    ((age, well), ((*range(10), None), (False, True, None))),
    ((pay,), ((*steps, None),)),
    ((pay, ward), (steps[::7], ("b", None))),
    ((ward,), (None,)),
    ((age, ward), (None, ("a", None))),
    ((pay, well), (None, None)),
]


CASES = [(ROWS, None, False), (PEOPLE, MANY, True), (NUMBERED, MANY, True)]


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(rows_strategy, st.sampled_from(GROUPINGS), st.sampled_from(CASES))
def test_measures_are_those_of_a_plain_evaluation_quick(rows, grouping, case):
    check_measures(rows, *grouping, *case)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(rows_strategy)
def test_measures_are_those_of_a_plain_evaluation(rows):
    for grouping, case in itertools.product(GROUPINGS, CASES):
        check_measures(rows, *grouping, *case)


def check_measures(rows, keys, domains, table, limits, unit):
    source = source_of(rows)
    for asked in (MEASURES, MEASURES[:3] + MEASURES[5:7]):  # the second can be added up over groups
        order, expected = evaluated(plain(rows, unit), keys, domains, asked, unit)
        found, measures = answer(source, table, keys, domains, asked, limits)
        if found is None:
            assert measures == expected
            continue
        there = [[v if v is None else Fraction(v) if isinstance(v, float) else v for v in g] for g in found]
        wanted = [[Fraction(float(v)) if isinstance(v, Fraction) else v for v in g] for g in order]
        assert len(there) == len(wanted)
        at = [there.index(group) for group in wanted]  # groups come in any order
        assert [[numbers[i] for i in at] for numbers in measures] == expected


@pytest.mark.slow
def test_an_empty_table_and_a_column_of_nulls():
    for rows in ([], [("ann", None, None, None, None)] * 3):
        for (keys, domains), (table, limits) in itertools.product(GROUPINGS, [(ROWS, None), (PEOPLE, MANY)]):
            unit = limits is not None
            expected = evaluated(plain(rows, unit), keys, domains, MEASURES, unit)[1]
            assert answer(source_of(rows), table, keys, domains, limits=limits)[1] == expected


def test_a_key_that_is_used_elsewhere_too_is_clean_there():
    """Plain integer keys are cleaned group by group; conditions, values and other keys must not see them as stored."""
    source = DuckDB({"t": pyarrow.table({"age": [-5, 0, 4, 9, 50, 60, None]})})
    table = Table("t", (Column("age", AGE),))
    more, total = Call("add", (age, Literal(1))), Measure("sum", age, Fraction(1), 0, 9)
    whole = (*range(10), None)

    def asked(relation, keys, domains, measure=MEASURES[0]):
        request = Request(relation, keys, domains, (measure,), None)
        return [m.tolist() for m in source.aggregate(request, {"t": table}, SECRET).measures]

    scan, old = Scan("t", "t"), Where(Scan("t", "t"), Call("at_most", (age, Literal(9))))
    ones = [1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1]  # and none beyond the bounds
    assert asked(scan, (age,), (whole,)) == [ones]
    assert asked(old, (age,), (whole,)) == [[*ones[:-1], 0]]
    assert asked(scan, (age,), (whole,), total) == [[0, 0, 0, 0, 4, 0, 0, 0, 0, 9, 0]]
    both = asked(scan, (age, more), (whole, (*range(1, 11), None)))[0]
    assert [both[i * 11 + i] for i in range(11)] == ones


# Relations


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows_strategy)
def test_relations_are_those_of_a_plain_evaluation(rows):
    source, every = source_of(rows), plain(rows, True)
    where = Where(Scan("t", "t"), Call("at_least", (age, Literal(3))))
    grown = [row for row in every if "t.age" not in row["beyond"] and row["t.age"] is not None and row["t.age"] >= 3]
    keys, domains = (ward,), (("a", "b", None),)
    expected = evaluated(grown, keys, domains, MEASURES, True)[1]
    assert answer(source, PEOPLE, keys, domains, limits=MANY, relation=where)[1] == expected

    floors = {"a": 1, "b": 9, "c": 3}  # 20 is cut to 9, and beyond it
    met = [
        row | {"w.floor": floors.get(w), "beyond": row["beyond"] | ({"w.floor"} if w == "b" else set())}
        for row in every
        for w in [row["t.ward"]]
    ]
    floor = Name("w.floor")
    for how, kept in (("inner", [row for row in met if row["t.ward"] is not None]), ("left", met)):
        join = Join(Scan("t", "t"), Scan("wards", "w"), (("t.ward", "w.ward"),), how)
        expected = evaluated(kept, (floor,), ((*range(10), None),), MEASURES, True)[1]
        assert answer(source, PEOPLE, (floor,), ((*range(10), None),), limits=MANY, relation=join)[1] == expected


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows_strategy)
def test_private_joins_and_sub_queries(rows):
    source, every = source_of(rows), plain(rows, True)
    pairs = [{**a, "u.age": b["t.age"]} for a in every for b in every if a["unit"] == b["unit"]]
    join = Join(Scan("t", "t"), Scan("t", "u"), (("t.person", "u.person"),))
    other = Name("u.age")
    measures = (Measure("rows"), Measure("units"), Measure("sum", other, Fraction(1), 0, 9))
    expected = evaluated(pairs, (age,), (tuple(range(10)),), measures, True)[1]
    people = replace(PEOPLE, limits=Limits(rows=31))  # and so at most 31^2 pairs
    assert answer(source, people, (age,), (tuple(range(10)),), measures, MANY, join)[1] == expected

    per = PerUnit(
        Scan("t", "t"), (("p.ward", ward),), (("p.n", Aggregate("rows")), ("p.most", Aggregate("quantile", age, 1)))
    )
    groups = {}
    for row in every:
        groups.setdefault((row["unit"], row["t.ward"]), []).append(row["t.age"])
    most = [
        {"unit": u, "p.ward": w, "p.most": max((v for v in values if v is not None), default=None), "p.n": len(values)}
        | {"beyond": set()}
        for (u, w), values in groups.items()
    ]
    measures = (Measure("rows"), Measure("sum", Name("p.most"), Fraction(1), 0, 9), Measure("distinct", Name("p.n")))
    expected = evaluated(most, (Name("p.ward"),), (("a", "b", None),), measures, True)[1]
    assert answer(source, PEOPLE, (Name("p.ward"),), (("a", "b", None),), measures, MANY, per)[1] == expected
    chosen = Select(per, (("q.most", Name("p.most")),))
    found = answer(source, PEOPLE, (), (), (Measure("count", Name("q.most")),), MANY, chosen)[1]
    assert found == [[sum(row["p.most"] is not None for row in most)]]


# Bounds


def crowd(size, seed=1):
    rng = random.Random(seed)
    return [
        (rng.choice(["ann", "bob", "cy", "dee", None]), rng.randrange(10), rng.uniform(-1, 2), rng.choice("abc"), None)
        for _ in range(size)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("table", [PEOPLE, NUMBERED])
def test_limits_hold_for_each_unit(table):
    rows = [row for row in crowd(400) if row[0] == "ann"]
    for limits in (Limits(rows=5), Limits(groups=2, rows_per_group=3), Limits(rows=4, groups=3, rows_per_group=2)):
        for domains in ((tuple(range(10)),), (None,)):
            counts, units = answer(source_of(rows), table, (age,), domains, MEASURES[:2], limits)[1]
            assert sum(counts) == min(
                x for x in (limits.rows, (limits.groups or 10) * (limits.rows_per_group or 99)) if x
            )
            assert max(counts) <= (limits.rows_per_group or 99)
            assert np.count_nonzero(counts) <= (limits.groups or 10)
            assert units == [int(count > 0) for count in counts]


def test_keys_outside_the_domain_use_no_contribution():
    rows = [("ann", 1, 0.0, "c", True)] * 50 + [("ann", 1, 0.0, "a", True)]
    limits = Limits(rows=1, groups=1)
    assert answer(source_of(rows), PEOPLE, (ward,), (("a", "b"),), MEASURES[:1], limits)[1] == [[1, 0]]


@pytest.mark.slow
def test_a_unit_changes_nothing_but_its_own_rows():
    """Other people's rows are chosen alike whether Ann is there or not: her rows can only add."""
    rows = crowd(300)
    others = [row for row in rows if row[0] != "ann"]
    limits = Limits(groups=3, rows_per_group=1)
    for domains in ((tuple(range(10)),), (None,)):
        for table in (PEOPLE, NUMBERED):
            sums = []
            for data in (rows, others, [row for row in rows if row[0] == "ann"]):
                keys, (counts, total) = answer(
                    source_of(data), table, (age,), domains, (MEASURES[0], MEASURES[6]), limits
                )
                places = range(10) if keys is None else [k for (k,) in keys]
                full = np.zeros((2, 10), int)
                full[:, list(places)] = counts, total
                sums.append(full)
            assert (sums[0] - sums[1] == sums[2]).all()


@pytest.mark.slow
@pytest.mark.parametrize("table", [PEOPLE, NUMBERED])
def test_colliding_hashes_are_told_apart(table, monkeypatch):
    """With a hash of two values, limits and stability must hold as before."""

    def weak(*values):
        from sqlglot import exp

        return exp.Mod(this=exp.Anonymous(this="hash", expressions=[v.copy() for v in values]), expression=number(2))

    rows = [(p, a, p_, w, b) for p, a, p_, w, b in crowd(200) if p is not None]
    limits = Limits(groups=2, rows_per_group=1)
    monkeypatch.setattr(retaining, "hash_of", weak)
    parts = []
    for who in (None, "ann", "bob", "cy", "dee"):
        data = [row for row in rows if who in (None, row[0])]
        keys, (counts, units) = answer(source_of(data), table, (age, ward), (None, None), MEASURES[:2], limits)
        parts.append(Counter(dict(zip(keys, counts, strict=True))))
        assert units == counts or who is None
        assert who is None or sum(counts) == 2
    if table is PEOPLE:
        assert parts[0] == sum(parts[1:], Counter())


# The same answers


@pytest.mark.slow
@pytest.mark.parametrize("limits", [None, Limits(rows=7, groups=4, rows_per_group=2)])
def test_order_threads_and_repetition_change_nothing(limits):
    rows = crowd(5000)
    shuffled = random.Random(2).sample(rows, len(rows))
    table = ROWS if limits is None else PEOPLE
    for keys, domains in GROUPINGS:
        answers = [
            answer(source, table, keys, domains, limits=limits)
            for source in (source_of(rows, threads=1), source_of(shuffled, threads=4), source_of(shuffled[::-1]))
        ]
        assert answers[0] == answers[1] == answers[2]


@pytest.mark.slow
def test_kept_tables_answer_as_fresh_ones_do():
    rows, limits = crowd(3000), Limits(rows=7, groups=4, rows_per_group=2)
    source = source_of(rows, most_tables=2)
    for keys, domains in GROUPINGS * 2:
        fresh = answer(source_of(rows), PEOPLE, keys, domains, limits=limits)
        assert answer(source, PEOPLE, keys, domains, limits=limits) == fresh
        assert answer(source, PEOPLE, keys, domains, limits=limits) == fresh
        assert len(source._cache) <= 2


def test_a_kept_table_grows_by_the_columns_of_new_questions():
    source, limits = source_of(crowd(3000)), Limits(rows=7)
    few, many = (MEASURES[0], MEASURES[5]), (*MEASURES[:4], *MEASURES[5:])
    answer(source, PEOPLE, (ward,), (("a", "b"),), few, limits)
    full = answer(source, PEOPLE, (ward,), (("a", "b"),), many, limits)[1]
    assert answer(source, PEOPLE, (ward,), (("a", "b"),), few, limits)[1] == [full[0], full[4]]
    assert len(source._cache) == 1


def test_what_is_read_within_its_bounds_is_about_the_same_rows():
    """Where no value is beyond them; a value beyond its bounds tells rows apart that would else be alike."""
    limits, grouping = Limits(rows=7), ((ward,), (("a", "b"),))
    source = source_of(crowd(500))
    full = answer(source, PEOPLE, *grouping, MEASURES, limits)[1]
    assert answer(source, PEOPLE, *grouping, (MEASURES[0], MEASURES[5]), limits)[1] == [full[0], full[5]]
    words = TieBreak((np.array([9, 9, 4]), np.array([9, NULL, 4])), own=own_places(["t.x", "t within.x"]))[:]
    assert words[0] != words[1]
    assert words[[0, 2]].tolist() == TieBreak((np.array([9, 4]),))[:].tolist()


def counting(monkeypatch):
    """The calls of the choice from now on."""
    calls, choose = [], duckdb_source.retained_rows
    monkeypatch.setattr(duckdb_source, "retained_rows", lambda *a, **k: calls.append(1) or choose(*a, **k))
    return calls


@pytest.mark.slow
def test_another_number_of_the_kept_rows_needs_no_second_choice(monkeypatch):
    calls = counting(monkeypatch)
    for first in MEASURES[:1], MEASURES[5:6], MEASURES[6:7]:
        source, limits = source_of(crowd(500)), Limits(groups=2, rows_per_group=1)
        calls.clear()
        for measures in (first, MEASURES[5:7], MEASURES[7:9], MEASURES[2:3], MEASURES[:2]):
            answer(source, PEOPLE, (ward,), (("a", "b"),), measures, limits)
        assert len(calls) == 1
        answer(source, PEOPLE, (ward,), (("a", "b"),), (Measure("count", well),), limits)
        assert len(calls) == 2  # nobody could know that this column would be asked for


def survivors_agree(limits):
    """Whether each number, asked in any order, alone or with others, is of the same rows."""
    rows, grouping = crowd(2000), ((ward,), (("a", "b"),))
    asked = MEASURES[0], MEASURES[5], MEASURES[6], MEASURES[7]
    together = answer(source_of(rows), PEOPLE, *grouping, asked, limits)[1]
    source = source_of(rows)
    in_turn = [answer(source, PEOPLE, *grouping, (m,), limits)[1][0] for m in reversed(asked)][::-1]
    alone = [answer(source_of(rows), PEOPLE, *grouping, (m,), limits)[1][0] for m in asked]
    return together == in_turn == alone


SHARED = [Limits(rows=7), Limits(groups=1, rows_per_group=2), Limits(rows=9, groups=2, rows_per_group=5)]


@pytest.mark.slow
@pytest.mark.parametrize("limits", SHARED)
def test_all_questions_are_about_the_same_rows(limits):
    assert survivors_agree(limits)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("limits", SHARED)
def test_rows_chosen_by_what_is_asked_alone_are_noticed(limits, monkeypatch):
    every = duckdb_source.tie_breakers
    monkeypatch.setattr(
        duckdb_source, "tie_breakers", lambda r, asked, s: tuple(name for name in every(r, asked, s) if name in asked)
    )
    assert not survivors_agree(limits)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("table", [PEOPLE, NUMBERED])
def test_many_batches_in_parts_keep_the_rows_of_a_single_one(table, monkeypatch):
    rows, limits = [(f"p{row[0]}{i % 97}", *row[1:]) for i, row in enumerate(crowd(9000))], Limits(rows=5, groups=2)
    data = table_of(rows).set_column(5, "number", pyarrow.array([hash(row[0]) for row in rows]))
    grouping, answers = ((age,), (tuple(range(10)),)), []
    for size in (fetching.BATCH, 2048):
        for name in ("BATCH", "BATCH_WITH_TEXT"):
            monkeypatch.setattr(retaining, name, size)
        parts = []
        divided = fetching._divided
        monkeypatch.setattr(fetching, "_divided", lambda n, m, k, f=divided, p=parts: p.append(k) or f(n, m, k))
        answers.append(answer(DuckDB({"t": data}), table, *grouping, limits=limits))
        assert set(parts) == ({1} if size > 9000 else {16} if table is PEOPLE else {4})
    assert answers[0] == answers[1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("limits", [Limits(groups=2), Limits(groups=3, rows_per_group=1), Limits(rows=5, groups=2)])
def test_a_table_of_all_pairs_keeps_the_same_rows(limits, monkeypatch):
    rows = [row for row in crowd(9000) if row[0] is not None]
    numbers = pyarrow.array([3 + 7 * i % 400 for i in range(len(rows))])
    source = {"t": table_of(rows).set_column(5, "number", numbers)}
    monkeypatch.setattr(retaining, "BATCH", 2048)
    masked, gather = [], retaining.fetched

    def watched(batches, *others):
        pairs = list(batches)
        masked.append(all(mask is not None for _, mask in pairs))
        return gather(pairs, *others)

    monkeypatch.setattr(retaining, "fetched", watched)
    answers = []
    for most in (64, 0):
        monkeypatch.setattr(retaining, "MOST_GROUPS", most)
        answers.append(answer(DuckDB(source), NUMBERED, (age,), (tuple(range(10)),), limits=limits))
    assert answers[0] == answers[1]
    assert masked == [True, False]


def test_kept_columns_of_all_types_are_those_of_the_table():
    import datetime

    day, instant = datetime.date(2024, 2, 29), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    stored = {
        "unit": [1, 1, 2, 2, 3, 3],
        "day": [day, day, None, datetime.date(1960, 1, 1), day, None],
        "at": [instant, None, instant, instant, datetime.datetime(2300, 1, 1), None],
        "well": [True, False, None, True, True, None],
        "note": ["x", None, "x", "y", "", "x"],
        "small": [-128, 127, None, 0, 5, 5],
        "large": [2**40, -(2**40), None, 0, 5, 5],
    }
    bound = {"small": Fraction(127), "large": Fraction(2**40)}
    kinds = {"day": "date", "at": "timestamp", "well": "boolean", "note": "text"}
    columns = [Column(name, Kind(kind)) for name, kind in kinds.items()]
    columns += [Column(name, Kind("integer", -most - 1, most)) for name, most in bound.items()]
    source = DuckDB({"t": pyarrow.table(stored)})
    names = [*kinds, *bound]
    measures = [Measure(what, Name(f"t.{name}")) for name in names for what in ("count", "distinct")]
    measures += [
        Measure("sum", Name(f"t.{name}"), Fraction(1), -int(most) - 1, int(most)) for name, most in bound.items()
    ]
    found = []
    for limits in (None, MANY):
        table = Table("t", tuple(columns), unit=None if limits is None else "unit")
        request = Request(Scan("t", "t"), (), (), tuple(measures), limits)
        found.append([m.tolist() for m in source.aggregate(request, {"t": table}, SECRET).measures])
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_question_that_is_written_once_is_written_again_for_other_domains():
    source, keys = source_of(crowd(300)), (ward,)
    for domains in (("a", "b"),), (("b", "a"),), (("c",),), (("a", "b"),):
        expected = answer(source_of(crowd(300)), ROWS, keys, domains, MEASURES[:1])
        assert answer(source, ROWS, keys, domains, MEASURES[:1]) == expected


def test_a_changed_declaration_does_not_use_an_old_table():
    source, limits = source_of([("ann", 9, 0.0, "a", True)]), Limits(rows=7)
    narrow = Kind("integer", Fraction(0), Fraction(5), Fraction(1))
    other = Table("t", (Column("age", narrow), *PEOPLE.columns[1:]), unit="person")
    measure = (Measure("sum", age, Fraction(1), 0, 9),)
    assert answer(source, PEOPLE, (), (), measure, limits)[1] == [[9]]
    assert answer(source, other, (), (), measure, limits)[1] == [[5]]


def test_sums_are_cut_not_wrapped():
    wide = Kind("integer", Fraction(-(2**52)), Fraction(2**52), Fraction(1))
    table = Table("t", (Column("age", wide),))
    source = DuckDB({"t": pyarrow.table({"age": [2**63 - 1] * 2000})})
    measure = Measure("sum", age, Fraction(1), -(2**52), 2**52)
    found = source.aggregate(Request(Scan("t", "t"), (), (), (measure,), None), {"t": table}, SECRET)
    assert found.measures[0].tolist() == [2**62]


def test_values_repeat_as_they_do_after_cleaning():
    columns = {
        "a": [1, 2, None, None],
        "b": [1, 1, 2, 3],
        "c": [10, 11, 12, 13],
        "d": pyarrow.nulls(4, pyarrow.int64()),
    }
    source = DuckDB({"p": pyarrow.table(columns)})
    plain = Table("p", tuple(Column(name, Kind("integer")) for name in "abcd"), public=True)
    assert source.repeats(plain) == {"a": 1, "b": 2, "c": 1, "d": 0}
    declared = Table("p", tuple(Column(name, AGE) for name in "abcd"), public=True)
    assert source.repeats(declared) == {"a": 1, "b": 2, "c": 4, "d": 0}


# Locked and silent


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM read_csv('{other}')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/new.duckdb'",
        "EXPORT DATABASE '{folder}/export'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 3",
        "SET temp_directory = '{folder}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM frame_outside",
    ],
)
def test_the_engine_is_locked(text, tmp_path):
    frame_outside = pyarrow.table({"a": [1]})
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    path = written(tmp_path, frame_outside)
    connection = DuckDB({"t": path})._session.connection
    assert connection.sql("SELECT count(*) FROM t").fetchall() == [(1,)]
    with pytest.raises(duckdb.Error):
        connection.execute(text.format(other=other, folder=tmp_path)).fetchall()
    assert {file.name for file in tmp_path.iterdir()} == {"other.csv", path.name}


def test_engine_errors_say_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    duckdb.connect().sql(f"COPY (SELECT '{CANARY}' AS ward, i AS age FROM range(5000) r(i)) TO '{path}'")
    source = DuckDB({"t": str(path)})
    table = Table("t", (Column("ward", WARD), Column("age", AGE)))
    request = Request(Scan("t", "t"), (ward,), (None,), (Measure("rows"),), None)
    assert source.aggregate(request, {"t": table}, SECRET).measures[0].tolist() == [5000]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3] + b"\0" * 50)
    with pytest.raises(NoisetteError) as caught:
        source.aggregate(request, {"t": table}, SECRET)
    assert_silent(caught.value)


def test_a_failing_cast_says_nothing():
    source = DuckDB({"t": pyarrow.table({"ward": [CANARY]})})
    with pytest.raises(NoisetteError) as caught:
        source._session.run(__import__("sqlglot").parse_one("SELECT CAST(ward AS INTEGER) FROM t"))
    assert_silent(caught.value)


def assert_silent(error):
    while error is not None:
        assert CANARY not in str(error)
        assert not isinstance(error, duckdb.Error)
        error = error.__cause__ or error.__context__


# Opening


def written(folder, table, name="t.parquet"):
    from pyarrow import parquet

    parquet.write_table(table, folder / name)
    return folder / name


@pytest.mark.slow
def test_files_frames_globs_and_databases_hold_the_same(tmp_path):
    import pandas
    import polars

    rows = crowd(50)
    table = table_of(rows)
    first, second = written(tmp_path, table[:20], "a.parquet"), written(tmp_path, table[20:], "b.parquet")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE t AS FROM frame")
    (tmp_path / "t.csv").write_text(polars.from_arrow(table).write_csv())
    reader = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    path = tmp_path / "x.duckdb"
    sources = [table, reader, table.to_pandas(types_mapper=pandas.ArrowDtype), polars.from_arrow(table)]
    sources += [[first, str(second)], str(tmp_path / "*.parquet"), path, (path, "t"), tmp_path / "t.csv"]
    keys, domains = (ward, well), (None, None)
    expected = answer(source_of(rows), PEOPLE, keys, domains, limits=MANY)
    for opened in sources:
        assert answer(DuckDB({"t": opened}, {"t": PEOPLE}), PEOPLE, keys, domains, limits=MANY) == expected
    assert DuckDB(path).tables == ("t",)
    assert DuckDB({"t": path, "u": (path, "t")}).tables == ("t", "u")


def test_csv_cells_of_another_type_are_null(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["age,ward", *["5,a"] * 30_000, f'{CANARY},"x, y"', "7", "1,b,2,3", '"8,b']
    path.write_text("\n".join(lines))
    table = Table("t", (Column("age", AGE), Column("ward", WARD)))
    source = DuckDB({"t": path}, {"t": table})
    assert source.stored("t") == {"age": "BIGINT", "ward": "VARCHAR"}
    request = Request(Scan("t", "t"), (ward,), (("a",),), (Measure("sum", age, Fraction(1), 0, 9),), None)
    assert source.aggregate(request, {"t": table}, SECRET).measures[0].tolist() == [150_000]


def test_what_cannot_be_opened_is_told_without_data(tmp_path):
    broken, other = tmp_path / "t.parquet", tmp_path / "t.xyz"
    broken.write_text(CANARY)
    other.write_text(CANARY)
    (tmp_path / "t.csv").write_text(f"{CANARY}\n1\n")
    (tmp_path / "near.csv").write_text("ages\n1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "t.duckdb").write_text(CANARY)
    table = Table("t", (Column("age", AGE),))
    cases = {
        "no file": tmp_path / "none.parquet",
        "no file ": str(tmp_path / "none*.parquet"),
        "cannot be read": broken,
        "cannot be opened": other,
        "no column age": tmp_path / "t.csv",
        "names no column age: let it": tmp_path / "near.csv",
        "names its columns": tmp_path / "empty.csv",
        "cannot be read:": tmp_path / "t.duckdb",
        "is a path": 7,
        "one kind": [broken, other.with_suffix(".csv")],
    }
    for words, opened in cases.items():
        with pytest.raises(InputError, match=words) as caught:
            DuckDB({"t": opened}, {"t": table})
        assert_silent(caught.value)
    with pytest.raises(InputError, match="Declare the columns"):
        DuckDB({"t": tmp_path / "t.csv"})
    with pytest.raises(InputError, match="a name of its own"):
        DuckDB({"t": pyarrow.table({"a": [1]}), "T": pyarrow.table({"a": [1]})})
    with pytest.raises(InputError, match="no data for table u"):
        DuckDB({"t": pyarrow.table({"a": [1]})}).stored("u")


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("bounds", [(0, 9), (Fraction(1, 4), 7), (-5, -1)])
def test_steps_at_once_are_those_of_cleaned_values(bounds, nullable):
    """A sum of a bare double takes a short way; with 0 added to the column it takes the long one."""
    stored = [0.0, -0.0, 0.1, 1 / 3, 8.999, 9.0, 9.1, 1e300, -1e300, math.inf, -math.inf, math.nan, None, -3.3, -1.0]
    kind = Kind("real", *map(Fraction, bounds), nullable=nullable)
    schema = {"t": Table("t", (Column("x", kind),))}
    source = DuckDB({"t": pyarrow.table({"x": pyarrow.array(stored, pyarrow.float64())})})
    ways = []
    long = "SELECT SUM(COALESCE(x, NULL)) AS s FROM t WHERE x IS NULL OR x IS NOT NULL"
    for text in ("SELECT SUM(x) AS s FROM t", long):
        request = prepare(parse(text, schema), schema).request
        ways.append(int(source.aggregate(request, schema, bytes(16)).measures[0][0]))
    assert ways[0] == ways[1]


def test_the_name_of_a_table_can_be_written_down():
    with pytest.raises(InputError, match=r"^The name of a table must be valid Unicode"):
        DuckDB({"a\ud800": table_of(crowd(5))})


@pytest.mark.parametrize(("table", "limits"), [(ROWS, None), (PEOPLE, MANY)], ids=["all rows", "retained rows"])
@pytest.mark.parametrize("method", ["aggregate", "partial"])
def test_a_statement_writes_the_columns_it_counts_and_no_others(monkeypatch, method, table, limits):
    """Counted in characters: if each histogram's statement wrote the columns of all of them, it would be the square."""

    def written(many):
        texts = []
        original = session.text_of
        monkeypatch.setattr(session, "text_of", lambda tree: texts.append(original(tree)) or texts[-1])
        ages = [Call("multiply", (age, Literal(n + 1))) for n in range(many)]
        measures = tuple(Measure("histogram", each, Fraction(1), 0, 9) for each in ages)
        request = Request(Scan("t", "t"), (), (), (*measures, Measure("rows")), limits)
        getattr(DuckDB({"t": table_of(crowd(20))}, {"t": table}), method)(request, {"t": table}, SECRET)
        monkeypatch.setattr(session, "text_of", original)
        return sum(map(len, texts))

    none, few, many = written(0), written(5), written(20)
    assert many - none < 5 * (few - none)
