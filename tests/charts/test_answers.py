"""Charts of answers: the values are the columns, and the kind of chart is what people expect."""

import datetime
import math

import numpy as np
import pytest

from noisette import charts
from noisette.charts.answers import LISTED
from noisette.errors import InputError

MONTHS = [datetime.date(2024, month, 1) for month in range(1, 13)]


def number(count, start=0.0):
    values = [start + 3.0 * i for i in range(count)]
    return values, [value - 1.5 for value in values], [value + 1.25 for value in values]


def marks(spec):
    """The kinds of marks, wherever they stand."""
    if isinstance(spec, dict):
        found = [spec["mark"]["type"]] if "mark" in spec else []
        return found + [kind for name, part in spec.items() if name not in ("data", "config") for kind in marks(part)]
    return [kind for part in spec for kind in marks(part)] if isinstance(spec, list) else []


def columns(chart, *fields):
    return [[row.get(field) for row in chart.values] for field in fields]


def test_bars_start_at_zero_and_have_visible_error_bars():
    chart = charts.answer(
        {"ward": ["north", "south"]}, {"n": ([900, 905], [899, 904], [901, 906])}, note="ε = 1 for each id"
    )
    assert columns(chart, "label", "v0", "low0", "high0") == [["north", "south"], [900, 905], [899, 904], [901, 906]]
    bar, line, *caps = chart.spec["layer"]
    assert bar["encoding"]["x"]["scale"] == {"zero": True}
    assert (line["encoding"]["x"]["field"], line["encoding"]["x2"]["field"]) == ("low0", "high0")
    assert [cap["mark"]["size"] for cap in caps] == [10, 10]
    assert chart.title == "n by ward\nε = 1 for each id"


def test_one_panel_for_each_number_in_rows_of_three():
    chart = charts.answer({"w": ["a", "b", "c"]}, {f"x{i}": number(3, i) for i in range(5)})
    assert len(chart.spec["concat"]) == 5
    assert chart.spec["columns"] == 3
    assert [panel["encoding"]["x"]["axis"]["title"] for panel in chart.spec["concat"]] == [f"x{i}" for i in range(5)]
    assert columns(chart, "v4") == [number(3, 4)[0]]


def test_unknown_numbers_leave_a_gap_with_its_name():
    chart = charts.bars(["a", "b"], {"n": ([1.0, math.nan], [0.0, math.nan], [math.inf, math.nan])})
    assert columns(chart, "v0", "low0", "high0") == [[1.0, None], [0.0, None], [None, None]]
    assert chart.spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["a", "b"]


@pytest.mark.parametrize("key", [MONTHS, [datetime.datetime(2024, 1, 1, hour) for hour in range(12)]])
def test_time_is_a_line_with_a_ribbon_in_order(key):
    values, low, high = number(12)
    chart = charts.answer({"when": key[::-1]}, {"n": (values[::-1], low[::-1], high[::-1])})
    assert columns(chart, "v0", "low0", "high0") == [values, low, high]
    assert columns(chart, "at")[0] == sorted(columns(chart, "at")[0])
    assert marks(chart.spec) == ["area", "line"]
    assert chart.spec["layer"][0]["encoding"]["x"]["scale"] == {"type": "utc"}


def test_a_group_without_a_time_is_named_as_missing():
    chart = charts.answer({"day": [*MONTHS, None]}, {"n": number(13)}, note="ε = 1")
    assert len(chart.values) == 12
    assert chart.title.endswith("ε = 1 · not drawn: NULL, n = 36")
    ages = charts.answer({"age": [0, None, 10, 20]}, {"n": ([1, 2, 3, 4], None, None), "m": number(4)})
    assert columns(ages, "at", "v0") == [[0, 10, 20], [1, 3, 4]]
    assert ages.title.endswith(" · not drawn: NULL, n = 2, m = 3")
    both = charts.answer({"day": [*MONTHS[:3], None], "w": ["a", "b", "a", "b"]}, {"n": number(4)})
    assert len(both.values) == 3
    assert both.title.endswith(" · groups of NULL are not drawn")


def test_numbers_become_a_histogram():
    chart = charts.answer({"age": [20, 0, 10]}, {"n": ([3, 1, 2], None, None)})
    assert columns(chart, "at", "v0") == [[0, 10, 20], [1, 2, 3]]
    assert marks(chart.spec)[0] == "bar"
    assert chart.spec["layer"][0]["encoding"]["x"]["type"] == "quantitative"


@pytest.mark.parametrize(
    "keys", [[10115, 80331, 20095, 1], [True, False, None], [1.0, math.nan, 2.0], [1, None, 2], [None] * 1]
)
def test_keys_that_are_no_axis_are_names(keys):
    chart = charts.answer({"zip": keys}, {"n": number(len(keys))})
    assert len(set(columns(chart, "label")[0])) == len(keys)


def test_two_keys_become_panels():
    wards, sexes = ["north", "north", "south", "south", "south"], ["f", "m", "f", "m", None]
    chart = charts.answer({"ward": wards, "sex": sexes}, {"n": number(5)})
    assert columns(chart, "panel", "label", "v0") == [wards, ["f", "m", "f", "m", "NULL"], number(5)[0]]
    assert chart.spec["facet"]["header"] == {"title": "ward"}
    assert marks(chart.spec) == ["bar", "rule", "tick", "tick"]


def test_time_and_a_key_become_lines_in_panels():
    chart = charts.answer({"month": MONTHS[:6], "ward": ["a", "b"] * 3}, {"n": number(6), "m": number(6)})
    assert len(chart.spec["vconcat"]) == 2
    assert marks(chart.spec) == ["area", "line"] * 2


def test_too_many_panels_become_names():
    keys = {"a": [str(i) for i in range(20)], "b": [str(i) for i in range(20)]}
    assert columns(charts.answer(keys, {"n": number(20)}), "label")[0][3] == "3, 3"


def test_of_many_groups_the_largest_are_named_and_the_rest_is_a_range():
    count = 500
    values, low, high = number(count)
    chart = charts.answer({"zip": [f"z{i}" for i in range(count)]}, {"n": (values, low, high)})
    *named, rest = chart.values
    assert len(named) <= LISTED
    assert [row["v0"] for row in named] == values[::-1][: len(named)]
    assert [row["low0"] for row in named] == low[::-1][: len(named)]
    others = values[: count - len(named)]
    assert rest == {
        "label": f"{len(others)} others, least to most", "least0": others[0], "most0": others[-1],
        "middle0": others[(len(others) - 1) // 2],
    }  # fmt: skip


@pytest.mark.parametrize("groups", [LISTED, LISTED + 1, 3000])
def test_at_most_so_many_names(groups):
    chart = charts.answer({"k": [f"g{i}" for i in range(groups)]}, {"n": number(groups)})
    assert len(chart.values) <= LISTED


@pytest.mark.parametrize(
    "keys",
    [
        {"k": [f"g{i}" for i in range(100)]},
        {"k": list(range(100))},
        {"k": [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(100)]},
        {"k": [f"g{i % 20}" for i in range(100)], "p": [f"p{i // 20}" for i in range(100)]},
    ],
)
def test_a_chart_carries_nothing_but_the_columns(keys):
    values, low, high = number(100)
    chart = charts.answer(keys, {"n": (np.array(values), np.array(low), np.array(high))}, note="note")
    released = {*values, *low, *high}
    for row in chart.values:
        drawn = {name: value for name, value in row.items() if name not in ("label", "at", "panel")}
        assert set(drawn.values()) <= released
        assert set(row) <= {"label", "at", "panel", "v0", "low0", "high0", "least0", "middle0", "most0"}


def test_names_with_signs_of_their_own_are_only_names():
    chart = charts.answer({"a.b[0]": ["datum.x'"]}, {'sum("x")': ([1], [0], [2])})
    assert set(chart.values[0]) == {"label", "v0", "low0", "high0"}
    assert chart.title == 'sum("x") by a.b[0]'


@pytest.mark.parametrize(("keys", "numbers"), [({}, {}), ({"k": []}, {"n": ([], [], [])}), ({"k": ["a"]}, {})])
def test_nothing_to_draw(keys, numbers):
    with pytest.raises(InputError, match="no number to draw"):
        charts.answer(keys, numbers)


def test_a_line_has_an_end():
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=i) for i in range(10_001)]
    with pytest.raises(InputError, match="at most 10,000 points"):
        charts.answer({"day": days}, {"n": number(10_001)})
