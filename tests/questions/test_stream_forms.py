"""What streams count beside rows: sums, who is there now, keys that open, quantiles, and rows that are pushed."""

import datetime
import itertools

import numpy as np
import pyarrow
import pytest
from tests.questions.test_stream_question import (
    ROWS,
    SURE,
    WEEK,
    cases,
    excess_of_events,
    numbers,
    opened,
    released_moves,
)

import noisette as nz
from noisette.curator.altered import altered
from noisette.errors import InputError
from noisette.questions.stream import Stream

# Sums, and who is there now

PAID = [(1, 1, 10.0, 3), (1, 2, 70.0, None), (2, 1, -20.0, 2), (3, 5, 5.5, 7), (3, 6, None, 6), (1, 3, 99.0, 4)]


def paid(rows, low=0, unit="person"):
    """(person, day it began, amount, day it ended), with amounts on a grid of 1/2."""
    person, day, amount, out = zip(*rows, strict=True)
    days = [[None if d is None else datetime.date(2026, 1, d) for d in some] for some in (day, out)]
    columns = [pyarrow.array(some, pyarrow.date32()) for some in days]
    data = pyarrow.table({"person": person, "day": columns[0], "amount": list(amount), "out": columns[1]})
    limits = {"unit": unit, "rows": 2} if unit else {}
    rules = {**limits, "columns": {"amount": {"bounds": [low, 50], "grid": "0.5"}}}
    return nz.open({"paid": data}, budget=nz.Approx(10**6, "1e-3"), policy={"tables": {"paid": rules}})


def exact(curator, asked, relation=nz.Neighbours.ADD_REMOVE):
    """What is measured after each step, and how far one unit may move it."""
    offer = asked.stream(curator.schema, nz.Approx(1, "1e-9"), relation)
    steps = range(1, asked.steps + 1)
    found = [offer.exactly(curator.schema, step).draw(curator._source, curator.schema, bytes(16)) for step in steps]
    return found, offer


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("low", "unit", "expected"),
    [
        (0, "person", [20, 120, 200, 200, 211, 211, 211]),  # clamped to [0, 50], of person 1 at most 100 in all
        (0, None, [20, 120, 220, 220, 231, 231, 231]),
        (-30, "person", [20, 120, 200, 200, 211, 211, 211]),
    ],
)
def test_values_are_clamped_added_up_in_steps_of_their_grid_and_cut_off_for_each_person(low, unit, expected):
    found, offer = exact(paid(PAID, low, unit), Stream("day", sum="amount", **WEEK))
    assert [row[0] for row in found] == expected
    assert [row[1:] for row in found] == [[40] if low < 0 else []] * 7
    assert offer.measure.grid * 2 == 1
    assert (offer.who.events, offer.who.taken) == (200 if unit else 100, 120 if low < 0 else 0)


@pytest.mark.slow
def test_rows_under_way_are_those_that_began_less_those_that_ended():
    found, offer = exact(paid(PAID), Stream("day", ends="out", **WEEK))
    assert [began - over for began, over in found] == [2, 2, 1, 0, 1, 1, 0]
    assert (offer.who.events, offer.who.taken) == (2, 2)
    each, _ = exact(paid(PAID, unit=None), Stream("day", ends="out", **WEEK))
    assert [began - over for began, over in each] == [2, 2, 2, 1, 2, 2, 1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("spend", [SURE, nz.Pure(10**5)], ids=["approx", "pure"])
@pytest.mark.parametrize("low", [0, -30])
def test_sums_are_published_in_their_own_units(spend, low):
    published = paid(PAID, low).stream(Stream("day", sum="amount", **WEEK), spend=spend)
    while published.left:
        table = published.step()
    assert table.column_names == ["until", "sum", "sum_low", "sum_high"]
    off = [a - b for a, b in zip(published.to_arrow()["sum"].to_pylist(), SUMS[low], strict=True)]
    half = [(b - a) / 2 for a, b in zip(*(published.to_arrow()[f"sum_{end}"].to_pylist() for end in ENDS), strict=True)]
    assert all(abs(o) <= 4 * h for o, h in zip(off, half, strict=True))  # 7.8 deviations, or no noise at all
    assert max(half) < 20


ENDS = ("low", "high")
SUMS = {0: [10, 60, 100, 100, 105.5, 105.5, 105.5], -30: [-10, 40, 80, 80, 85.5, 85.5, 85.5]}


@pytest.mark.slow
def test_a_step_measures_what_one_person_adds_beside_what_they_take_away():
    """Twins: amounts of both signs in one sum, or of rows that are retained, would move it back and forth."""
    rows = [(9, 1, 40.0, None), (9, 2, -30.0, None), (9, 3, 40.0, None), (9, 4, -30.0, None)]
    found, offer = exact(paid([(1, 1, 5.0, None), *rows], -30), Stream("day", sum="amount", **WEEK))
    without, _ = exact(paid([(1, 1, 5.0, None)], -30), Stream("day", sum="amount", **WEEK))
    moved = np.subtract(found, without)
    assert (np.diff(moved, axis=0) >= 0).all()
    assert moved[-1].tolist() == [160, 120]
    assert (moved[-1] <= [offer.who.events, offer.who.taken]).all()
    signed = moved[:, 0] - moved[:, 1]
    assert np.abs(np.diff(signed, prepend=0)).sum() > np.abs(signed).max()  # one number would not only grow


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sum": "day"}, "Only numbers"),
        ({"sum": "person"}, "bounds"),
        ({"sum": "nothing"}, "nothing"),
        ({"sum": "amount", "ends": "out"}, "leave those out"),
        ({"window": 2, "ends": "out"}, "leave those out"),
        ({"ends": "amount"}, "dates or timestamps"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else None,
)
def test_what_cannot_be_added_up_is_refused(changes, words):
    curator = paid(PAID)
    with pytest.raises(InputError, match=words):
        curator.stream(Stream("day", **WEEK, **changes), spend=1)
    assert not curator.ledger.entries


# The largest groups and quantiles


def ages(spend, by="FLOOR(LEAST(GREATEST(person, 0), 99) / 10) * 10"):
    """A hundred persons, numbered from 0, in ten groups of their number: ten times each in two days."""
    rows = [(person, 1 + (person >= 70), "north") for person in range(100) for _ in range(10)]
    published = single(rows).stream(Stream("day", by=by, since="2026-01-01", until="2026-01-03"), spend=spend)
    while published.left:
        published.step()
    return published


@pytest.mark.slow_after(1)
def test_quantiles_are_bins_with_an_interval():
    published = ages(SURE)
    assert [published.quantile(q).value for q in (0.05, 0.25, 0.85, 1)] == [0, 20, 80, 90]
    assert published.quantile(0.45, 1).value == 30  # of the first seventy
    rough = ages(nz.Approx("1/50", "1e-6")).quantile(0.45)  # noise beyond all counts
    assert rough.low <= rough.value <= rough.high
    assert rough.low < rough.high
    for bad in ({"q": 2}, {"q": 0.5, "step": 3}):
        with pytest.raises(InputError):
            published.quantile(**bad)


@pytest.mark.slow_after(1)
def test_the_largest_groups_come_first_with_bars_for_all():
    published = opened(ROWS).stream(Stream("day", by="region", **WEEK), spend=SURE)
    while published.left:
        published.step()
    found, all_of_them = published.top(1, 4), published.top(9)
    assert found["region"].to_pylist() == ["north"]
    assert numbers(all_of_them) == [3, 3, 0]
    half = (found["n_high"][0].as_py() - found["n_low"][0].as_py()) / 2
    table = published.to_arrow()
    assert half > (table["n_high"][9].as_py() - table["n_low"][9].as_py()) / 2
    with pytest.raises(InputError, match="number with bounds"):
        published.quantile(0.5)
    once = opened(ROWS).stream(Stream("day", events=1, **WEEK), spend=SURE)
    once.step()
    with pytest.raises(InputError, match="begin one with by"):
        once.top(1)


@pytest.mark.slow
def test_sums_may_fade():
    published = opened([(d, d, "north") for d in range(1, 8)]).stream(Stream("day", half_life=1, **WEEK), spend=SURE)
    while published.left:
        published.step()
    off = np.array(published.to_arrow()["n"].to_pylist()) - 2 * (1 - 0.5 ** np.arange(1, 8))
    assert np.abs(off).max() < 2  # rounded to whole rows
    for changes, spend in (({}, 1), ({"window": 2}, SURE), ({"ends": "day"}, SURE)):
        with pytest.raises(InputError, match=r"half-life|Gaussian"):
            opened(ROWS).stream(Stream("day", half_life=1, **WEEK, **changes), spend=spend)


# Keys that nobody declared


def single(rows):
    """Each row is a unit by itself, and regions are not declared."""
    return nz.open({"cases": cases(rows)}, budget=nz.Approx(10**6, "1e-3"))


@pytest.mark.slow_after(1)
def test_keys_open_when_enough_rows_have_come():
    rows = [*((i, 1 + i // 200, "north") for i in range(600)), *((i, 2, "south") for i in range(300)), (1, 1, "rare")]
    published = single(rows).stream(Stream("day", by="region", **WEEK), spend=nz.Approx(10, "1e-6"))
    while published.left:
        published.step()
    found = published.to_arrow()
    assert found["region"].to_pylist()[:4] == ["north", "north", "south", "north"]
    assert set(found["region"].to_pylist()) == {"north", "south"}
    assert numbers(found)[-2:] == pytest.approx([600, 300], abs=20)
    assert published.difference(1, 7, "north").value == pytest.approx(400, abs=20)
    for key in ("south", "rare", None):  # open after the first step, never, and no key
        with pytest.raises(InputError, match="key that both steps have"):
            published.difference(1, 7, key)
    assert "noisy number stays below" in str(single(rows).explain(Stream("day", by="region", **WEEK), spend="10,1e-6"))


@pytest.mark.parametrize(
    ("changes", "spend", "words"),
    [({}, nz.Pure(1), "needs a delta"), ({"window": 2}, nz.Approx(1, "1e-6"), "declared keys")],
    ids=["pure", "window"],
)
def test_keys_that_cannot_open_are_refused(changes, spend, words):
    curator = single(ROWS)
    with pytest.raises(InputError, match=words):
        curator.stream(Stream("day", by="region", **WEEK, **changes), spend=spend)
    assert not curator.ledger.entries


def test_persons_may_have_any_number_of_keys_so_that_those_must_be_declared():
    curator = nz.open({"cases": cases(ROWS)}, budget=nz.Approx(9, "1e-3"), unit="person", rows=2)
    with pytest.raises(InputError, match="declared keys"):
        curator.stream(Stream("day", by="region", **WEEK), spend=nz.Approx(1, "1e-6"))


# What one unit can do while rows arrive

SIGNED = "CASE WHEN region = 'north' THEN 1.5 WHEN person = 9 THEN -2 ELSE 0.5 END"


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [{"sum": SIGNED}, {"sum": f"ABS({SIGNED})"}, {"ends": "day"}], ids=["signed", "positive", "ends"]
)
@pytest.mark.parametrize("events", [1, 2])
def test_nobody_adds_or_takes_away_more_than_stated_while_rows_arrive(events, form):
    assert excess_of_events("SELECT * FROM cases", None, events, **form) <= 0


def test_a_sum_of_the_rows_that_are_retained_is_convicted():
    """All orders in which three values arrive and are retained: sums that are cut off hold, retained ones do not."""
    values, worst = (3, 1, 2), {"cut off": 0, "retained": 0}
    for order in itertools.permutations(values):  # the first of those that are there is retained
        for arrival in itertools.permutations(values):
            there = [arrival[:n] for n in range(1, 4)]
            forms = {
                "cut off": [min(sum(now), 3) for now in there],
                "retained": [min(now, key=order.index) for now in there],
            }
            for others in itertools.product(range(4), repeat=3):
                for name, mine in forms.items():
                    moved = np.subtract(released_moves(np.add(others, mine)), released_moves(others))
                    worst[name] = max(worst[name], int(np.abs(moved).sum()))
    assert worst["cut off"] == 3
    assert worst["retained"] > 3


# Rows that are pushed


def pushing(by=None, spend=SURE, **form):
    columns = {"region": {"keys": ["north", "south"]}} if by != "open" else {}
    policy = {"tables": {"cases": {"columns": columns}}}
    curator = nz.open({"cases": cases(ROWS).slice(0, 0)}, budget=nz.Approx(10**6, "1e-3"), policy=policy)
    asked = Stream("day", by="region" if by else None, pushed=True, **WEEK, **form)
    return curator.stream(asked, spend=spend)


@pytest.mark.slow_after(1)
def test_rows_that_are_pushed_count_once():
    published = pushing()
    batches = [ROWS[:2], [(9, 1, "north")], [(9, 7, "north")], [(1, None, "north")], [ROWS[0]] * 4]
    for batch in batches:  # a late row counts, one of a later day and one without do not
        published.push(cases(batch))
    assert numbers(published.to_arrow()) == [2, 3, 3, 3, 7]
    assert altered(published)["fell"].to_pylist() == [0] * 5


@pytest.mark.slow_after(1)
def test_pushed_keys_open():
    published = pushing("open", spend=nz.Approx(10, "1e-6"))
    for day in (1, 2):
        published.push(cases([*((i, day, "north") for i in range(400)), (1, day, "rare")]))
    assert published.to_arrow()["region"].to_pylist() == ["north", "north"]
    assert numbers(published.to_arrow()) == pytest.approx([400, 800], abs=20)


@pytest.mark.slow
def test_rows_are_not_lost_where_somebody_else_pushed_first(monkeypatch):
    published = pushing()
    monkeypatch.setattr(published._line, "ask", lambda compute, after: (None, None))
    with pytest.raises(InputError, match="push these rows with the next one"):
        published.push(cases(ROWS))


def test_rows_that_cannot_be_pushed_are_refused_and_the_step_waits():
    published = pushing()
    for bad in (5, cases(ROWS).drop_columns("day"), cases(ROWS).append_column("more", [[1] * 6])):
        with pytest.raises(InputError, match="Push"):
            published.push(bad)
    with pytest.raises(InputError, match="call push"):
        published.step()
    assert published.steps == 0
    with pytest.raises(InputError, match="call step"):
        opened(ROWS).stream(Stream("day", **WEEK), spend=SURE).push(cases(ROWS))
    with pytest.raises(InputError, match="unit by itself"):
        opened(ROWS).stream(Stream("day", pushed=True, **WEEK), spend=SURE)
    with pytest.raises(InputError, match="leave ends and joins out"):
        pushing(ends="day")
