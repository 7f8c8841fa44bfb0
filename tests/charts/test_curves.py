"""Lines with names: errors to expect, errors of mechanisms, what many releases cost."""

import itertools
import math

import pytest
from tests.timing import times_as_long

import noisette as nz
from noisette import accuracy, charts
from noisette.charts.accuracy import _COSTS
from noisette.errors import InputError
from noisette.privacy import ZCDP, Approx, sensitivity, theorems

PROMISE = Approx(1, "1e-6")
BUDGETS = [0.1, 1.0, 10.0]


def lines(chart):
    """The points of each line."""
    found = {}
    for row in chart.spec["layer"][0]["data"]["values"]:
        found.setdefault(row["line"], []).append((row["x"], row["y"]))
    return found


def test_values_are_the_points():
    points = {"a": [(1, 4), (2, 2)], "b": [(1, 3), (2, 0)], "c": [(1, math.nan), (2, -1)]}
    chart = charts.curves(points, x="ε", y="error", dots={"a": [(1, 3.5), (1, 0)]})
    assert lines(chart) == {"a": [(1, 4), (2, 2)], "b": [(1, 3), (2, None)]}
    assert [(row["x"], row["y"]) for row in chart.spec["layer"][1]["data"]["values"]] == [(1, 3.5)]
    assert set(chart.texts) == {"a", "b"}
    assert [chart.spec["encoding"][axis]["scale"]["type"] for axis in "xy"] == ["log", "log"]


def test_y_may_be_linear():
    chart = charts.curves({"a": [(1, 0.5), (10, 0.7)], "b": [(1, 0.5), (10, 0.7)]}, x="k", y="accuracy", linear=True)
    assert chart.spec["encoding"]["x"]["scale"]["type"] == "log"
    low, high = chart.spec["encoding"]["y"]["scale"]["domain"]
    assert (low, high) == pytest.approx((0.488, 0.712))
    one, other = (row["y"] for row in chart.values if "text" in row)
    assert other - one == pytest.approx((high - low) * 17 / 300)  # names are moved apart


def test_names_do_not_overlap():
    chart = charts.curves({name: [(1, 1), (2, 1)] for name in "abcdefg"} | {"far": [(1, 99), (2, 99)]}, x="", y="")
    low, high = chart.spec["encoding"]["y"]["scale"]["domain"]
    places = sorted(row["y"] for row in chart.values if "text" in row)
    least = min(math.log(b / a) for a, b in itertools.pairwise(places))
    assert least / math.log(high / low) * chart.spec["height"] > 15


def test_nothing_above_zero_cannot_be_drawn():
    with pytest.raises(InputError, match="no value is above 0"):
        charts.curves({"a": [(1, 0)]}, x="", y="")


# The error to expect


def test_a_line_ends_where_the_error_is_0():
    chart = charts.forecast(BUDGETS, {"n": [30.0, 3.0, 0.0]}, now=1.0)
    assert lines(chart) == {"n": [(0.1, 30.0), (1.0, 3.0), (10.0, None)]}


def test_the_budget_in_question_is_marked():
    chart = charts.forecast(BUDGETS, {"n": [30.0, 3.0, 0.3]}, now=1.0, symbol="ρ", note="95 %")
    assert chart.texts == ["ρ = 1", "n"]
    assert {"line": "n", "x": 1.0, "y": 3.0} in chart.spec["layer"][-2]["data"]["values"]
    assert chart.title == "Error to expect against ρ\n95 %"


def test_no_error_at_all_cannot_be_drawn():
    with pytest.raises(InputError, match="No column of this question has an error that can be drawn"):
        charts.forecast(BUDGETS, {"n": [0.0, 0.0, 0.0], "m": [math.nan] * 3}, now=1.0)


# Comparisons


@pytest.mark.slow
def test_lines_are_named_and_the_budget_is_marked():
    c = accuracy.compare(sensitivity.counts(20), PROMISE, answers=20)
    chart = charts.error(c)
    assert chart.title == "20 answers: largest error of all answers (95 %)\nδ = 1e-6"
    assert chart.spec["encoding"]["x"]["axis"]["title"] == "ε, the privacy budget"
    assert set(chart.texts) == {row.name for row in c.rows} | {"ε = 1"}


@pytest.mark.slow
def test_lines_pass_through_the_rows():
    c = accuracy.compare(sensitivity.counts(4), PROMISE, answers=4)
    drawn = lines(charts.error(c))
    for row in c.rows:
        assert {round(x, 9): y for x, y in drawn[row.name]}[1.0] == pytest.approx(row.largest, rel=1e-9)


def test_whole_numbers_may_have_no_error_at_all():
    c = accuracy.compare(sensitivity.count(), 4, answers=1, grid=1)
    assert charts.error(c).title == "One answer: error (95 %)"


@pytest.mark.slow
def test_zcdp_and_other_columns():
    chart = charts.error(accuracy.compare(sensitivity.counts(3), ZCDP("1/10"), answers=3, by="sd"))
    assert chart.title == "3 answers: standard deviation\nzCDP"
    assert "ρ = 0.1" in chart.texts


@pytest.mark.slow
@pytest.mark.parametrize("grid", [None, 1])
def test_ten_thousand_answers_are_drawn_as_quickly_as_a_hundred(grid):
    few, many = (accuracy.compare(sensitivity.counts(n), PROMISE, answers=n, grid=grid) for n in (100, 10_000))
    longer = times_as_long(lambda: charts.error(many), lambda: charts.error(few), rounds=2)
    assert longer < 10  # at most 1; a step for each answer takes a hundred times as long


# Composition


@pytest.mark.slow
def test_lines_end_at_the_theorems():
    chart = charts.composition("1/10", "1e-6", up_to=30)
    assert chart.title == "ε of k releases together\neach 0.1-DP, at δ = 1e-6"
    assert {name: points[-1] for name, points in lines(chart).items()} == {
        "basic": (30, 3.0),
        "advanced": (30, theorems.advanced("0.1", 30, "1e-6")[0]),
        "zCDP": (30, theorems.concentrated("0.1", 30, "1e-6")),
        "optimal": (30, theorems.optimal("0.1", 0, 30, "1e-6")),
        "Laplace": (30, (nz.Laplace(10).guarantee() * 30).epsilon_at("1e-6")),
        "Gaussian, same sd": (
            30,
            pytest.approx((nz.Gaussian("14.142135623730951").guarantee() * 30).epsilon_at("1e-6")),
        ),
    }
    assert set(chart.texts) == set(_COSTS)


def test_colours_are_told_apart():
    assert len(set(_COSTS.values())) == len(_COSTS)


def test_what_has_no_logarithm_is_left_out():
    assert set(charts.composition("0.01", "0.9", up_to=2).texts) == {"basic", "advanced"}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((0,), "epsilon"), ((1, 0), "delta"), ((1, "1e-6", 1), "up_to"), ((1, "1e-6", 10**7), "at most 1,000,000")],
)
def test_what_cannot_be_composed(arguments, match):
    with pytest.raises(InputError, match=match):
        charts.composition(*arguments)
