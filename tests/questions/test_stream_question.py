"""Counts that are published again: tables that grow, late and altered rows, clocks, kills, and what a unit moves."""

import datetime
import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import noisette as nz
from noisette.curator.altered import altered
from noisette.curator.project import Project
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.questions.stream import Stream

ROOT = Path(__file__).resolve().parents[2]
DAYS = [datetime.date(2026, 1, day) for day in range(1, 32)]
SURE = nz.Approx(10**4, "1e-6")  # noise below one row
RULES = """
[budget]
epsilon = "100000"
delta = "1e-3"
[tables.cases]
unit = "person"
rows = 2
[tables.cases.columns]
region = { keys = ["north", "south"] }
"""
WEEK = {"since": "2026-01-01", "until": "2026-01-08"}


def cases(rows):
    """(person, day of January, region) as a table."""
    person, day, region = zip(*rows, strict=True)
    days = [None if d is None else datetime.date(2026, 1, d) for d in day]
    return pyarrow.table({"person": list(person), "day": pyarrow.array(days, pyarrow.date32()), "region": list(region)})


def opened(rows, **policy):
    rules = {"unit": "person", "rows": 2, "columns": {"region": {"keys": ["north", "south"]}}, **policy}
    return nz.open({"cases": cases(rows)}, budget=nz.Approx(10**6, "1e-3"), policy={"tables": {"cases": rules}})


def numbers(table):
    return [round(n) for n in table["n"].to_pylist()]


ROWS = [(1, 1, "north"), (2, 1, "south"), (3, 3, "north"), (3, 4, "north"), (3, 5, "south"), (4, 7, "south")]


# What is counted


@pytest.mark.slow_after(1)
def test_sums_so_far_by_group_with_a_zero_for_a_day_without_rows():
    published = opened(ROWS).stream(Stream("day", by="region", **WEEK), spend=SURE)
    for _ in range(7):
        published.step()
    found = published.to_arrow()
    north = [n for n, region in zip(numbers(found), found["region"].to_pylist(), strict=True) if region == "north"]
    south = [n for n, region in zip(numbers(found), found["region"].to_pylist(), strict=True) if region == "south"]
    assert (north, south) == ([1, 1, 2, 3, 3, 3, 3], [1, 1, 1, 1, 2, 2, 3])
    assert found["until"].to_pylist()[-1] == datetime.datetime(2026, 1, 8)


def test_of_each_person_a_few_rows_count_in_each_group():
    published = opened([(1, d, "north") for d in range(1, 8)]).stream(Stream("day", events=3, **WEEK), spend=SURE)
    assert [numbers(published.step())[0] for _ in range(7)] == [1, 2, 3, 3, 3, 3, 3]


def test_people_so_far():
    rows = [(d // 2, d, "north") for d in range(1, 8)]
    published = opened(rows).stream(Stream("day", events=1, **WEEK), spend=SURE)
    assert [numbers(published.step())[0] for _ in range(7)] == [1, 2, 2, 3, 3, 4, 4]


def test_windows_weeks_and_conditions():
    rows = [(d, d, "north") for d in range(1, 29)]
    weekly = {"since": "2026-01-01", "until": "2026-01-29", "every": "1 week"}
    published = opened(rows).stream(Stream("day", window=2, **weekly), spend=SURE)
    assert [numbers(published.step())[0] for _ in range(4)] == [7, 14, 14, 14]
    some = opened(rows).stream(Stream("day", of="SELECT * FROM cases WHERE person > 10", **weekly), spend=SURE)
    assert [numbers(some.step())[0] for _ in range(4)] == [0, 4, 11, 18]


def test_rows_without_a_time_or_with_other_keys_are_left_out():
    rows = [(1, None, "north"), (2, 1, "west"), (3, 1, None), (4, 1, "south"), (5, 30, "south")]
    published = opened(rows).stream(Stream("day", by="region", **WEEK), spend=SURE)
    for _ in range(7):
        published.step()
    assert numbers(published.to_arrow())[-3:] == [0, 1, 1]  # the last group is that of rows without a region


# A table that grows


@pytest.fixture
def project(tmp_path):
    pyarrow.parquet.write_table(cases(ROWS[:2]), tmp_path / "cases.parquet")
    (tmp_path / "rules.toml").write_text(RULES)
    return Project.create([tmp_path / "cases.parquet"], policy=tmp_path / "rules.toml")


def with_rows(project, rows):
    pyarrow.parquet.write_table(cases(rows), project.folder / "cases.parquet")
    return Project.read(project.folder).curator().stream(Stream("day", **WEEK), spend=SURE)


@pytest.mark.slow
def test_late_rows_count_when_they_are_first_seen_and_deleted_ones_change_nothing(project):
    assert numbers(with_rows(project, ROWS[:2]).step()) == [2]
    assert numbers(with_rows(project, ROWS[:2]).step()) == [2]
    late = [*ROWS[:3], (9, 1, "north")]  # day 3, and somebody of day 1 who was not there before
    assert numbers(with_rows(project, late).step()) == [4]
    assert numbers(with_rows(project, late[1:]).step()) == [4]  # somebody of day 1 is gone
    assert numbers(with_rows(project, [*late, (10, 5, "south")]).step()) == [5]
    again = with_rows(project, late)
    assert numbers(again.to_arrow()) == [2, 2, 4, 4, 5]
    assert len(Project.read(project.folder).curator().ledger.entries) == 1


@pytest.mark.slow_after(1)
def test_altered_rows_are_reported_to_the_owner_and_never_make_a_step_fail(project):
    for rows in (ROWS[:2], ROWS[1:2], ROWS):
        published = with_rows(project, rows)
        published.step()
    assert altered(published)["fell"].to_pylist() == [0, 1, 0]
    assert "fell" not in published.to_arrow().column_names
    assert altered(published)["until"].to_pylist()[1] == datetime.datetime(2026, 1, 3)


@pytest.mark.slow
def test_a_step_that_was_kept_is_not_drawn_again_after_a_kill(project):
    code = (
        "import os, signal, sys; import noisette as nz; from noisette.curator.project import Project\n"
        "curator = Project.read(sys.argv[1]).curator()\n"
        f"stream = curator.stream(nz.Stream('day', **{WEEK!r}), spend=nz.Approx(10**4, '1e-6'))\n"
        "curator.ledger._step = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == 'kept' else None\n"
        "stream.step()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(project.folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    stream = Project.read(project.folder).curator().stream(Stream("day", **WEEK), spend=SURE)
    assert stream.steps in (0, 1)  # kept or not, by where the kill came
    before = stream.to_arrow().to_pydict()
    stream.step()
    assert {name: column[: len(before["n"])] for name, column in stream.to_arrow().to_pydict().items()} == before


def test_who_was_overtaken_while_reading_gets_the_step_that_is_there():
    curator = opened(ROWS)
    one, two = (curator.stream(Stream("day", **WEEK), spend=nz.Approx(1, "1e-9")) for _ in range(2))
    found, shell = {}, one._shell

    class Overtaken:
        check, schema = shell.check, shell.schema

        def draw(self, *asked):
            found["first"] = two.step()
            return shell.draw(*asked)

    one._shell = Overtaken()
    late = one.step()
    assert one.steps == two.steps == 1  # the second step is not published with the rows of the first
    assert late == found["first"]


# Clocks, ends and bad input


def test_a_step_must_be_over(monkeypatch):
    published = opened(ROWS).stream(Stream("day", **WEEK), spend=1)
    clock = "noisette.questions.parts.publication._now"
    monkeypatch.setattr(clock, lambda: datetime.datetime(2026, 1, 1, 23, 59))
    with pytest.raises(InputError, match="ends at 2026-01-02 00:00 UTC"):
        published.step()
    assert published.steps == 0
    monkeypatch.setattr(clock, lambda: datetime.datetime(2026, 1, 2))
    published.step()
    assert (published.steps, published.left) == (1, 6)


def test_the_horizon_is_the_end_and_all_of_it_was_charged_at_the_beginning():
    curator = opened(ROWS)
    published = curator.stream(Stream("day", since="2026-01-01", until="2026-01-03"), spend=nz.Approx(1, "1e-9"))
    spent = curator.budget.spent
    published.step()
    published.step()
    with pytest.raises(BudgetError, match="All 2 steps"):
        published.step()
    assert curator.budget.spent == spent
    assert len(curator.ledger.entries) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"until": "2026-01-01"}, "until must come after since"),
        ({"since": "yesterday"}, "since must be a date"),
        ({"since": "2026-01-01T00:00+01:00"}, "in UTC"),
        ({"every": "1 month"}, "every must be"),
        ({"every": "0 days"}, "every must be"),
        ({"every": "99999999999999999999 days"}, "every must be"),
        ({"every": f"{10**400} weeks"}, "every must be"),
        ({"every": "999999 weeks"}, "ends before the year 10000"),
        ({"every": "1 minute", "until": "2036-01-01"}, "at most 1,048,576 steps"),
        ({"events": 0}, "events"),
        ({"window": 0}, "window"),
        ({"time": "region"}, "dates or timestamps"),
        ({"time": "nothing"}, "nothing"),
        ({"every": "6 hours"}, "whole days"),
        ({"by": "day"}, "declared keys"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else None,
)
def test_bad_input_is_one_sentence_and_costs_nothing(changes, words):
    curator = opened(ROWS)
    with pytest.raises(InputError, match=words):
        curator.stream(Stream(**{"time": "day", **WEEK, **changes}), spend=1)
    assert not curator.ledger.entries


def test_it_is_a_stream_and_not_a_question():
    with pytest.raises(InputError, match=r"begin it with curator.stream\(Stream"):
        opened(ROWS).ask(Stream("day", **WEEK), spend=1)
    published = opened(ROWS).stream(Stream("day", **WEEK), spend=1)
    with pytest.raises(PrivacyError, match="cannot be copied"):
        published.__reduce_ex__(4)


# Error bars


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-9"), nz.ZCDP("1/10")], ids=["pure", "approx", "zcdp"])
def test_what_is_expected_is_what_bars_show(spend):
    curator, asked = opened(ROWS), Stream("day", since="2025-01-01", until="2026-01-01")
    explained = curator.explain(asked, spend=spend)
    published = curator.stream(asked, spend=spend)
    for _ in range(3):
        published.step()
    found = published.to_arrow()
    half = [(high - low) / 2 for low, high in zip(found["n_low"].to_pylist(), found["n_high"].to_pylist(), strict=True)]
    assert max(half) <= explained.error * 1.001
    change = published.difference(1, 3)
    assert change.low < change.value < change.high
    assert (change.high - change.low) / 2 < 2 * max(half)
    with pytest.raises(InputError, match="between 1 and 3"):
        published.difference(2, 4)
    assert "fresh noise after every step" in str(explained)


def test_groups_cost_nothing_more_where_each_row_is_a_unit():
    policy = {"tables": {"cases": {"columns": {"region": {"keys": ["north", "south"]}}}}}
    rows = nz.open({"cases": cases(ROWS)}, budget=9, policy=policy)
    single, by = (rows.explain(Stream("day", by=by, **WEEK), spend=1).error for by in (None, "region"))
    assert single == by
    people = opened(ROWS)
    single, by = (people.explain(Stream("day", by=by, events=1, **WEEK), spend=1).error for by in (None, "region"))
    assert by > 1.3 * single  # one person may have rows in both


# What one unit can do


def released_moves(histories):
    """What comes in each step, by the rule of the stream: the excess over the largest count so far."""
    came, most = [], 0
    for count in histories:
        came.append(max(0, count - most))
        most = max(most, count)
    return came


@pytest.mark.parametrize("events", [1, 2])
def test_no_unit_has_more_events_than_it_may_whatever_others_do(events):
    """All counts of others from 0 to 3 in five steps, and all rows of a unit that only come: enumerated."""
    own = [u for u in itertools.product(range(events + 1), repeat=5) if all(a <= b for a, b in itertools.pairwise(u))]
    for others in itertools.product(range(4), repeat=5):
        without = released_moves(others)
        for mine in own:
            moved = np.subtract(released_moves([a + b for a, b in zip(others, mine, strict=True)]), without)
            assert (moved >= 0).all()
            assert moved.sum() <= events


def test_a_row_that_is_deleted_and_entered_anew_is_another_event():
    """The page says so: with rows that only come, the sum above holds; here it does not."""
    others, mine = [5, 5, 6, 6], [0, 1, 0, 1]
    moved = np.subtract(released_moves(np.add(others, mine)), released_moves(others))
    assert np.abs(moved).sum() > 1


def test_json_and_back():
    asked = Stream("day", by="region", window=7, events=2, name="a", **WEEK)
    assert nz.questions.from_json(asked.to_json()) == asked
    assert json.loads(asked.to_json())["stream"]["window"] == 7


# Rows that stay: what a unit does while the table grows

ARRIVALS = [
    *((9, 1, "north"), (1, 1, "north"), (9, 2, "south"), (2, 2, "south")),
    *((9, 3, "north"), (9, 4, "south"), (3, 4, "north"), (9, 5, "north")),
]
HIDDEN = 9
PLACES = pyarrow.table({"region": ["north", "south"], "coast": [True, False]})
TWICE = pyarrow.table({"region": ["north", "north", "south"], "coast": [True, False, False]})
LEAVING = {
    "per unit": "SELECT * FROM (SELECT person, MIN(day) AS day, COUNT(*) AS n FROM cases GROUP BY person) AS s "
    "WHERE n = 1 OR n = 3 OR n = 5",
    "two private tables": "SELECT cases.day, cases.region FROM cases JOIN other ON cases.person = other.person",
    "values that repeat": "SELECT cases.day, cases.region FROM cases JOIN twice ON cases.region = twice.region",
}
STAYING = {
    "all rows": "SELECT * FROM cases",
    "a condition": "SELECT * FROM cases WHERE region = 'north' OR person < 5",
    "a public table": "SELECT day, cases.region FROM cases JOIN places ON cases.region = places.region WHERE coast",
}


def growing(rows):
    """A curator of the rows that are there, with tables to join."""
    table, rules = cases(rows), {"unit": "person", "rows": 2, "columns": {"region": {"keys": ["north", "south"]}}}
    policy = {"tables": {"cases": rules, "other": rules, "places": {"public": True}, "twice": {"public": True}}}
    tables = {"cases": table, "other": table, "places": PLACES, "twice": TWICE}
    return nz.open(tables, budget=nz.Approx(10**6, "1e-3"), policy=policy)


def came(rows, of, by, events, **form):
    """What comes in each step, while the rows arrive one after the other: one step for each row."""
    asked = Stream("day", of=of, by=by, events=events, **WEEK, **form)
    offer = growing(rows).explain(asked, spend=1).offer
    counts = []
    for there in range(1, len(ARRIVALS) + 1):
        now = growing([row for row in ARRIVALS[:there] if row in rows] or [(0, None, "west")])
        counts.append(offer.exactly(now.schema, 7).draw(now._source, now.schema, b"0123456789abcdef"))
    most, found = [0] * len(counts[0]), []
    for count in counts:
        found.append([max(0, b - a) for a, b in zip(most, count, strict=True)])
        most = [max(a, b) for a, b in zip(most, count, strict=True)]
    return np.array(found), offer.who


def excess_of_events(of, by, events, **form):
    """How many events the hidden person has in the group where they are most, over what is stated."""
    others = [row for row in ARRIVALS if row[0] != HIDDEN]
    (one, who), (two, _) = came(ARRIVALS, of, by, events, **form), came(others, of, by, events, **form)
    moved = np.abs(one - two).sum(axis=0)
    plus = len(moved) // 2 if who.taken else len(moved)
    return int(max(moved[:plus].max() - who.events, moved[plus:].max(initial=0) - who.taken))


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, "region"])
@pytest.mark.parametrize("events", [1, 2])
@pytest.mark.parametrize("of", STAYING.values(), ids=STAYING)
def test_nobody_has_more_events_than_stated_while_rows_arrive(of, events, by):
    assert excess_of_events(of, by, events) <= 0


@pytest.mark.parametrize("of", LEAVING.values(), ids=LEAVING)
def test_rows_that_may_leave_again_are_refused(of):
    curator = growing(ARRIVALS)
    with pytest.raises(InputError, match="rows that stay"):
        curator.stream(Stream("day", of=of, events=1, **WEEK), spend=1)
    assert not curator.ledger.entries


@pytest.mark.parametrize("form", [{}, {"sum": "1"}], ids=["rows", "sum"])
def test_a_row_that_becomes_several_is_refused_where_each_row_is_a_unit(form):
    policy = {"tables": {"twice": {"public": True}}}
    curator = nz.open({"cases": cases(ROWS), "twice": TWICE}, budget=nz.Approx(9, "1e-3"), policy=policy)
    with pytest.raises(InputError, match="rows that stay"):
        curator.stream(Stream("day", of=LEAVING["values that repeat"], events=2, **WEEK, **form), spend=1)


@pytest.mark.slow
def test_a_stream_that_takes_rows_which_leave_is_convicted(monkeypatch):
    monkeypatch.setattr("noisette.questions.parts.so_far._stays", lambda relation, schema: True)
    assert excess_of_events(LEAVING["per unit"], None, 1) == 4  # five events where one was stated
