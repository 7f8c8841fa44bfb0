"""Limits per calendar period: what conditions confine, what keys join, and what one unit can move, by brute force.

`Periods` looks at a whole period at once; here every day and many moments are looked at, by the specification of the
engines. Then all tables of at most three rows and their neighbours say what one unit moves.
"""

import datetime
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pyarrow
import pytest
from tests.query.worlds import Worlds, faults, loose, measured, multisets, neighbours, replaced, table

from noisette.engines.memory.values import value_of
from noisette.engines.sql import retention, tables
from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query import periods
from noisette.query.canonical import canonical
from noisette.query.expression import Call
from noisette.query.kind import Kind
from noisette.query.known import since_1970
from noisette.query.moments import truncated
from noisette.query.periods import MOST_PERIODS, PERIODS, Periods, number_of_periods, periods_of
from noisette.query.plan import Where
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Link, RowsPerPeriod, Table
from noisette.query.sql import parse

DAY, TIME = datetime.date, datetime.datetime
DATES = Kind("date", since_1970(DAY(2019, 11, 20)), since_1970(DAY(2022, 2, 10)))
TIMES = Kind("timestamp", since_1970(TIME(2019, 12, 31, 7)), since_1970(TIME(2021, 1, 2, 12)))
COLUMNS = {
    "u": Kind("integer"),
    "k": Kind("integer", Fraction(0), Fraction(3), Fraction(1)),
    "t": Kind("text", keys=("a",)),
}


def dated(kind, per="year", most=4, **more):
    columns = {"d": kind, **COLUMNS}
    rule = RowsPerPeriod(most, per, "d")
    return {"v": Table("v", tuple(Column(n, k) for n, k in columns.items()), unit="u", per_period=rule, **more)}


def asked(text, schema):
    return prepare(canonical(parse(text, schema)), schema)


def days(kind):
    """Every day within the bounds; of timestamps several moments of it, the ends of the bounds among them."""
    low, high = (datetime.datetime(1970, 1, 1) + _since(kind, end) for end in kind.ends)
    if kind.type == "date":
        return [low.date() + datetime.timedelta(i) for i in range((high - low).days + 1)]
    hours = [low.replace(hour=0) + datetime.timedelta(hours=5 * i) for i in range((high - low).days * 5 + 9)]
    return [low, *(at for at in hours if low < at < high), high]


def _since(kind, end):
    return datetime.timedelta(days=int(end)) if kind.type == "date" else datetime.timedelta(microseconds=int(end))


CONDITIONS = {  # with the years and the months that they leave
    "d >= DATE '2021-01-01'": (2, 14),
    "d < DATE '2021-01-01' AND d > DATE '2019-12-31'": (1, 12),
    "d BETWEEN DATE '2020-12-31' AND DATE '2021-01-01'": (2, 2),
    "d = DATE '2020-02-29'": (1, 1),
    "d <> DATE '2020-02-29'": (4, 28),
    "DATE '2020-02-29' > d": (2, 4),
    "year(d) = 2021": (1, 12),
    "year(d) IN (2019, 2022) AND k = 1": (2, 4),
    "year(d) NOT IN (2019, 2022, 2020)": (1, 12),
    "NOT (year(d) < 2021 OR k = 2)": (2, 14),
    "year(d) = 2021 OR k = 2": (4, 28),
    "year(d) = 2021 OR year(d) = 2022 AND t = 'b'": (2, 14),
    "month(d) = 3": (2, 2),
    "month(d) = 3 AND year(d) = 2020": (1, 1),
    "quarter(d) = 1 AND NOT month(d) IN (2, 3)": (3, 3),
    "date_trunc('year', d) = DATE '2020-01-01'": (1, 12),
    "date_trunc('month', d) >= DATE '2021-12-01'": (2, 3),
    "strftime(d, '%Y-%m') = '2020-05'": (1, 1),
    "strftime(d, '%Y') <> '2020'": (3, 16),
    "d + INTERVAL 1 MONTH < DATE '2020-01-15'": (1, 2),
    "year(d) * 100 + month(d) BETWEEN 202002 AND 202003": (1, 12),  # sums are known by their bounds alone
    "year(d) % 2 = 1": (4, 28),
    "extract(week FROM d) = 1 AND month(d) = 12": (3, 1),  # each part is possible in 2020
    "d IS NULL": (4, 28),
    "d = DATE '2030-01-01'": (1, 1),
    "k = 2": (4, 28),
    "t = 'b'": (4, 28),
    "year(d) + k = 2021": (4, 28),
    "year(d) / 2 = 1010": (4, 28),
    "CASE WHEN k = 1 THEN year(d) ELSE 2019 END = 2019": (4, 28),
    "TRUE": (4, 28),
}


def test_confines_as_far_as_it_is_certain():
    for text, stated in CONDITIONS.items():
        found = []
        for per in ("year", "month"):
            found.append(asked(f"SELECT COUNT(*) AS n FROM v WHERE {text}", dated(DATES, per)).part.total // 4)
        assert (text, *found) == (text, *stated)


def condition_of(relation):
    return relation.condition if isinstance(relation, Where) else None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [DATES, TIMES], ids=["dates", "timestamps"])
@pytest.mark.parametrize("per", PERIODS)
def test_no_day_that_meets_a_condition_is_in_another_period(kind, per):
    assert list(missed(kind, per)) == []


def missed(kind, per):
    """Conditions that are true on a day whose period they are said to exclude."""
    schema = dated(kind, per)
    every = days(kind)
    for text in CONDITIONS:
        for more in ("", "NOT "):
            source = parse(f"SELECT COUNT(*) AS n FROM v WHERE {more}({text})", schema).source
            condition = condition_of(source)
            if condition is None:
                continue
            spans = periods_of(kind, RowsPerPeriod(4, per, "d"), "v.d").where(condition).spans
            scope = {f"v.{name}": each for name, each in {"d": kind, **COLUMNS}.items()}
            holds = value_of(condition, scope)
            rows = ({"v.d": day, "v.k": k, "v.t": t, "v.u": 1} for day in every for k in (1, 2) for t in "ab")
            true = {truncated(per, row["v.d"]) for row in rows if holds(row)}
            left = {truncated(per, _moment(kind, low)) for low, _ in spans}
            if not true <= left:
                yield more + text


def _moment(kind, at):
    found = datetime.datetime(1970, 1, 1) + _since(kind, at)
    return found.date() if kind.type == "date" else found


KEYS = [
    "d", "year(d)", "month(d)", "quarter(d)", "day(d)", "extract(week FROM d)", "date_trunc('year', d)",
    "date_trunc('week', d)", "date_trunc('month', d)", "strftime(d, '%Y-%m')", "strftime(d, '%d')",
    "year(d) * 100 + month(d)", "d + INTERVAL 40 DAY", "CASE WHEN year(d) > 2020 THEN 'new' ELSE 'old' END",
    "CASE WHEN month(d) > 2 THEN year(d) END", "year(d) = 2020", "floor(year(d) / 10) * 10", "extract(isodow FROM d)",
    "CASE WHEN k = 1 THEN year(d) END", "CASE WHEN month(d) > 2 THEN strftime(d, '%Y') END",
]  # fmt: skip


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [DATES, TIMES], ids=["dates", "timestamps"])
@pytest.mark.parametrize("per", PERIODS)
def test_no_key_is_in_more_periods_than_stated(kind, per):
    assert list(joined(kind, per)) == []


def joined(kind, per, most=4):
    """Keys with a value in more periods, or with more values in all that one unit can have, than stated."""
    schema, every = dated(kind, per), days(kind)
    for text in KEYS:
        [key] = parse(f"SELECT {text} AS y, COUNT(*) AS n FROM v GROUP BY y", schema).keys
        value = value_of(key, {f"v.{name}": each for name, each in {"d": kind, **COLUMNS}.items()})
        where, values = defaultdict(set), defaultdict(set)
        for day in every:
            for k in (1, 2):
                period, made = truncated(per, day), value({"v.d": day, "v.k": k, "v.t": "a"})
                where[made].add(period)
                values[period].add(made)
        groups, rows = periods_of(kind, RowsPerPeriod(most, per, "d"), "v.d").spread([key])
        if groups < _most_groups(values, most) or rows < most * max(map(len, where.values())):
            yield text, groups, rows


def _most_groups(values, most):
    """A number of groups that one unit reaches: in each period it takes those that it is not in yet."""
    taken = set()
    for there in sorted(values.values(), key=len):
        taken |= set(sorted(there - taken, key=repr)[:most])
    return len(taken)


STATED = {  # groups, rows in one, rows in all, of 4 rows a year in the years 2019 to 2022
    "year(d)": (4, 4, 16),
    "date_trunc('year', d)": (4, 4, 16),
    "strftime(d, '%Y')": (4, 4, 16),
    "date_trunc('month', d)": (12, 4, 16),  # two months of 2019 and of 2022 are within the bounds
    "d": (16, 4, 16),
    "month(d)": (12, 12, 16),
    "t": (2, 16, 16),
    "year(d), t": (8, 4, 16),
    "year(d), month(d)": (12, 4, 16),
    "CASE WHEN year(d) > 2020 THEN 1 END": (2, 16, 16),
    "CASE WHEN k = 1 THEN year(d) END": (5, 16, 16),
}


def test_what_keys_are_stated_to_join():
    for keys, stated in STATED.items():
        part = asked(f"SELECT {keys}, COUNT(*) AS n FROM v GROUP BY {keys}", dated(DATES)).part
        assert (keys, part.groups, part.rows, part.total) == (keys, *stated)


def test_l2_of_a_count_by_year_grows_with_the_root_of_the_years():
    prepared = asked("SELECT year(d) AS y, COUNT(*) AS n FROM v GROUP BY y", dated(DATES))
    assert prepared.part.squares == 4 * 4**2  # and not 16^2


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT COUNT(*) AS n FROM (SELECT d AS e FROM v) AS s WHERE year(e) = 2020", 4),
        ("SELECT COUNT(*) AS n FROM (SELECT year(d) AS e, k FROM v) AS s WHERE e = 2020", 4),
        ("SELECT COUNT(*) AS n FROM (SELECT d AS k, k AS d FROM v) AS s WHERE d = 2", 16),
        ("SELECT COUNT(*) AS n FROM (SELECT u, year(d) AS y FROM v GROUP BY u, year(d)) AS s", 4),
        ("SELECT COUNT(*) AS n FROM (SELECT u, year(d) AS y FROM v GROUP BY u, year(d)) AS s WHERE y > 2020", 2),
        ("SELECT COUNT(*) AS n FROM (SELECT u, t FROM v WHERE year(d) = 2020 GROUP BY u, t) AS s", 4),
        ("SELECT COUNT(*) AS n FROM (SELECT u, month(d) AS m FROM v GROUP BY u, month(d)) AS s", 16),  # two of 2019
        ("SELECT COUNT(*) AS n FROM (SELECT u, MAX(d) AS d, k FROM v GROUP BY u, k) AS s WHERE year(d) = 2020", 16),
        ("SELECT COUNT(*) AS n FROM (SELECT u, COUNT(*) AS k FROM v GROUP BY u) AS s", 1),
        ("SELECT COUNT(*) AS n FROM v JOIN v AS w ON v.u = w.u WHERE year(v.d) = 2020", 4 * 16),
        ("SELECT COUNT(*) AS n FROM (SELECT u, d FROM v UNION ALL SELECT u, d FROM v) AS s WHERE year(d) = 2020", 8),
    ],
)  # fmt: skip
def test_relations(text, rows):
    assert asked(text, dated(DATES)).part.total == rows


JOINED = {  # the most rows of one unit in one group, and in all: dates of one side say nothing of the other's rows
    "SELECT year(a.d) AS y, COUNT(*) AS n FROM v AS a JOIN v AS b ON a.u = b.u GROUP BY y": (256, 256),
    "SELECT COUNT(*) AS n FROM v LEFT JOIN c ON c.k = v.k WHERE year(v.d) = 2020": (4 + 56, 4 + 56),
    "SELECT year(v.d) AS y, COUNT(*) AS n FROM v LEFT JOIN c ON c.k = v.k GROUP BY y": (16 + 56, 16 + 56),
    "SELECT year(c.d) AS y, COUNT(*) AS n FROM c LEFT JOIN v ON c.k = v.k GROUP BY y": (24, 56),
    "SELECT year(c.d) AS y, COUNT(*) AS n FROM v JOIN c ON c.k = v.k WHERE year(v.d) = 2020 GROUP BY y": (24, 56),
    "SELECT year(v.d) AS y, COUNT(*) AS n FROM v JOIN c ON c.k = v.k WHERE year(c.d) = 2020 GROUP BY y": (24, 24),
}


def test_joins():
    schema = dated(DATES)
    rule, link = RowsPerPeriod(2, "month", "d"), Link("v", (("k", "k"),))
    schema["c"] = replace(schema["v"], name="c", through=(link,), per_period=rule)
    found = {text: asked(text, schema).part for text in JOINED}
    assert {text: (part.rows, part.total) for text, part in found.items()} == JOINED


def test_periods_that_are_cut_by_the_bounds_count():
    assert number_of_periods(DATES, "year") == 4
    assert number_of_periods(DATES, "week") == 117
    assert number_of_periods(Kind("date", Fraction(0), Fraction(MOST_PERIODS - 1)), "day") == MOST_PERIODS
    assert number_of_periods(Kind("date", Fraction(0), Fraction(MOST_PERIODS)), "day") is None
    far = [since_1970(at) for at in (DAY.min, DAY.max)]
    assert number_of_periods(Kind("date", *far), "year") == 9999
    ends = periods_of(Kind("date", *far), RowsPerPeriod(1, "year", "d"), "d").spans
    assert (ends[0][0], ends[-1][1]) == tuple(far)


# What one unit moves

BEFORE, FIRST, JULY, LAST, BEYOND = (
    DAY(2019, 12, 31), DAY(2020, 1, 1), DAY(2020, 7, 1), DAY(2021, 1, 1), DAY(2021, 1, 2)
)  # fmt: skip
ROWS = [(u, d, 2) for u in (1, 2) for d in (BEFORE, FIRST, JULY, LAST, BEYOND, None)] + [(1, FIRST, 0), (1, LAST, None)]
YEARS = Kind("date", since_1970(BEFORE), since_1970(LAST))
X = Kind("integer", Fraction(0), Fraction(2), Fraction(1))
ALL = "count(distinct u), count(*), count(x), sum(x), sum(x - 1), count(distinct x), median(x)"
QUESTIONS = {
    "whole": f"SELECT {{w}} {ALL} FROM v",
    "a year": f"SELECT {{w}} {ALL} FROM v WHERE year(d) = 2020",
    "from a day on": f"SELECT {{w}} {ALL} FROM v WHERE d > DATE '2020-01-01'",
    "another column": f"SELECT {{w}} {ALL} FROM v WHERE x = 2",
    "years": f"SELECT {{w}} year(d), {ALL} FROM v{{g}}year(d)",
    "months": f"SELECT {{w}} month(d), {ALL} FROM v{{g}}month(d)",
    "year and value": f"SELECT {{w}} year(d), x, {ALL} FROM v{{g}}year(d), x",
    "values of a year": f"SELECT {{w}} x, {ALL} FROM v WHERE d < DATE '2020-12-01'{{g}}x",
    "per unit and year": "SELECT {w} y, count(*), sum(least(n, 3)) FROM "
    "(SELECT u, year(d) AS y, count(*) AS n{m} FROM v GROUP BY u, year(d)) AS s{g}y",
    "slices": "SELECT {w} year(d), count(*) FROM (SELECT u, d{v} FROM v UNION ALL SELECT u, d{v} FROM v WHERE x > 0) "
    "AS s{g}year(d)",
    "self": "SELECT {w} count(*) FROM v JOIN v AS z ON v.u = z.u{v.w = z.w}",
}  # fmt: skip


def persons(most, per="year", limit=3):
    rule = RowsPerPeriod(most, per, "d")
    v = table("v", {"u": Kind("integer", nullable=False), "d": YEARS, "x": X}, unit="u", per_period=rule)
    types = {"v": {"u": pyarrow.int64(), "d": pyarrow.date32(), "x": pyarrow.int64()}}
    return Worlds({"v": v}, types, [{"v": world} for world in multisets(ROWS, limit)], {})


def moved(name, most, per="year", limit=3):
    """What is wrong with the stated sensitivities, under both relations."""
    worlds = persons(most, per, limit)
    prepared, arrays = measured(QUESTIONS[name], worlds, world="v.w" if name == "self" else "w")
    pairs = list(neighbours(worlds.worlds, unit=True))
    return [
        *faults(prepared, arrays, pairs, Neighbours.ADD_REMOVE),
        *faults(prepared, arrays, replaced(pairs), Neighbours.REPLACE),
    ]


LIMITS = [(1, "year"), (2, "year"), (1, "month"), (1, "week"), (1, "day")]
ASKED = [
    (name, *each) for each in LIMITS for name in QUESTIONS if name != "self" or "year" in each
]  # or too many pairs


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(("name", "most", "per"), ASKED)
def test_one_unit_moves_no_more_than_is_stated(name, most, per):
    assert moved(name, most, per) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whole", "a year", "years"])
def test_no_smaller_sensitivity_holds(name):
    worlds = persons(1)
    prepared, arrays = measured(QUESTIONS[name], worlds)
    counts = {m: values for m, values in arrays.items() if m.what in ("rows", "count")}
    assert loose(prepared, counts, list(neighbours(worlds.worlds, unit=True)), Neighbours.ADD_REMOVE) == []


def total_of_one(patch):
    patch.setattr(Periods, "total", property(lambda self: self.most))


def any_condition_confines(patch):
    plain = Periods.where
    patch.setattr(Periods, "where", lambda self, e: SimpleNamespace(**vars(plain(self, e)), total=self.most))


def every_key_is_the_period(patch):
    plain = Periods.spread
    patch.setattr(Periods, "spread", lambda self, keys: (plain(self, keys)[0], self.most))


def all_are_retained(patch):
    plain = retention.per_period
    patch.setattr(tables, "per_period", lambda rows, names, limit: plain(rows, names, 99))


GUILTY = [
    (total_of_one, "whole"),
    (any_condition_confines, "another column"),
    (every_key_is_the_period, "months"),
    (all_are_retained, "years"),
]


@pytest.mark.parametrize(("twin", "name"), GUILTY, ids=[name for _, name in GUILTY])
def test_twins_are_convicted(twin, name, monkeypatch):
    twin(monkeypatch)
    assert moved(name, 1)


def negated_alike(patch):
    """The opposite of a comparison is taken for the comparison itself."""
    patch.setattr(periods, "_OPPOSITE", {name: name for name in periods._OPPOSITE})


def or_is_and(patch):
    """One part of an OR is enough to exclude a period."""
    plain = Periods._test
    patch.setattr(Periods, "_test", lambda self, e: plain(self, Call("and", e.arguments) if _is(e, "or") else e))


def _is(e, operation):
    return isinstance(e, Call) and e.operation == operation


@pytest.mark.parametrize("twin", [negated_alike, or_is_and])
def test_twins_that_misread_conditions_are_convicted(twin, monkeypatch):
    twin(monkeypatch)
    assert next(missed(DATES, "year"), None)


def test_a_twin_that_joins_no_keys_is_convicted(monkeypatch):
    monkeypatch.setattr(periods, "_together", lambda kinds: 1)
    assert {text for text, *_ in joined(DATES, "year")} >= {"month(d)", "day(d)"}


# Sentences


def test_a_stream_and_what_limits_leave_out_are_refused():
    import noisette as nz

    data = nz.open(
        {"v": pyarrow.table({"u": [1], "d": [DAY(2020, 1, 1)]})},
        budget=1,
        policy={
            "tables": {
                "v": {
                    "unit": "u",
                    "rows": {"most": 2, "per": "year", "of": "d"},
                    "columns": {"d": {"bounds": [BEFORE, LAST]}},
                }
            }
        },
    )
    with pytest.raises(InputError, match="a row that comes can take the place of another"):
        data.explain(nz.Stream("d", since="2020-01-01", until="2020-01-05", every="1 days"), spend=1)
    with pytest.raises(InputError, match="at most 2 per year of d before any question"):
        data.explain(nz.LeftOut(rows=[1, 2]), spend=1)
