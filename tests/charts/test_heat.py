"""Heat maps and arrows: what each cell and each flow looks like."""

import numpy as np
import pytest

from noisette.charts import grid, heat, heats
from noisette.charts.flows import flows
from noisette.errors import InputError

LOW = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0), indexing="ij"), axis=-1).reshape(-1, 2)


def drawn(value, bars=0.0, **options):
    chart = heat(LOW, LOW + 1, value, np.broadcast_to(bars, 12), names=("x", "y"), **options)
    return chart, [row for row in chart.values if "f" in row]


def test_cells_fade_as_their_bars_exceed_them():
    _, cells = drawn(np.arange(12.0), 4.0)
    assert [row["f"] for row in cells] == [0.25, 0.5, 0.75, *[1.0] * 8]
    assert cells[0] == {"x": 0.0, "x2": 1.0, "y": 1.0, "y2": 2.0, "n": 1.0, "f": 0.25}


def test_empty_cells_are_left_out_and_equal_neighbours_are_one():
    chart, cells = drawn(np.repeat([5.0, 0.0, 5.0, 7.0], 3))
    assert [(row["x"], row["y"], row["y2"], row["n"]) for row in cells] == [(0, 0, 3, 5), (2, 0, 3, 5), (3, 0, 3, 7)]
    assert chart.spec["width"] % 4 == 0
    assert chart.spec["height"] % 3 == 0
    empty, none = drawn(np.zeros(12))
    assert none == []
    assert empty.title.endswith("all counts are 0")


def test_negative_counts_are_drawn_in_differences_only():
    value = np.array([-3.0, 2.0] * 6)
    assert {row["n"] for row in drawn(value)[1]} == {2.0}
    chart, cells = drawn(value, signed=True)
    assert {row["n"] for row in cells} == {-3.0, 2.0}
    scale = chart.spec["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [-3.0, 0, 3.0]


@pytest.mark.parametrize("most", [0.3, 1.0, 7.0, 99.0, 12_345.0, 3e9])
def test_legends_name_a_few_round_numbers_up_to_the_largest(most):
    chart, _ = drawn(np.full(12, most))
    values = chart.spec["layer"][0]["encoding"]["color"]["legend"]["values"]
    assert 1 <= len(values) <= 4
    assert values == sorted(values, reverse=True)
    assert max(most, 1) / 2 < values[0] <= max(most, 1)


def test_degrees_of_longitude_are_narrower_far_from_the_equator():
    shapes = []
    for latitude in (0, 60):
        low = LOW / 10 + [0, latitude]
        chart = heat(low, low + 0.1, np.ones(12), np.zeros(12), names=("lon", "lat"), degrees=True)
        shapes.append(chart.spec["height"] / chart.spec["width"])
    assert shapes[0] == pytest.approx(3 / 4, rel=0.05)
    assert shapes[1] == pytest.approx(3 / 2, rel=0.05)


def test_panels_share_their_colours():
    one, other = np.arange(12.0), 10 * np.arange(12.0)
    chart = heats({"a": (LOW, LOW + 1, one, one), "b": (LOW, LOW + 1, other, other)}, columns=2)
    domains = [part["layer"][0]["encoding"]["color"]["scale"]["domain"] for part in chart.spec["concat"]]
    assert domains[0] == domains[1]


def test_grids_stand_upright_beside_each_other():
    chart = heats({"true": [[1, 2, 3], [3, 4, 9]], "private": grid([[0, 9, 1], [3, -1, 2]], 2)}, unit="%", width=90)
    true, private = chart.spec["concat"]
    assert [part["title"]["text"] for part in (true, private)] == ["true", "private"]
    assert (true["width"], true["height"]) == (90, 60)
    assert true["layer"][0]["encoding"]["color"]["legend"]["title"] == "%"
    drawn = {(row["x"], row["y"]): (row["n"], row["f"]) for row in true["layer"][0]["data"]["values"]}
    assert drawn[(0.0, 1.0)] == (1.0, 1.0)  # row 0 is at the top
    assert drawn[(2.0, 0.0)] == (9.0, 1.0)
    faded = {(row["x"], row["y"]): row["f"] for row in private["layer"][0]["data"]["values"]}
    assert faded == {(1.0, 1.0): 1.0, (2.0, 1.0): 0.5, (0.0, 0.0): 1.0, (2.0, 0.0): 1.0}


@pytest.mark.parametrize("wrong", [{}, {"a": [1, 2]}, {"a": []}])
def test_maps_that_cannot_be_drawn(wrong):
    with pytest.raises(InputError, match=r"rows by columns|at least one map"):
        heats(wrong)


def test_arrows_point_where_people_go():
    chart = flows([(0, 0), (0, 0), (2, 2)], [(0, 2), (2, 0), (0, 2)], [3, 2, 1], span=(0, 0, 4, 4), names=("x", "y"))
    assert [row["turn"] for row in chart.values if "turn" in row] == [0.0, 90.0, -90.0]  # clockwise from north
