"""Answers beside what is public or invented."""

import pytest

from noisette import charts
from noisette.charts.theme import BLUE, ORANGE
from noisette.errors import InputError


def test_a_bar_that_misses_has_another_colour():
    chart = charts.deviations(["a", "b"], [10, 10], [8, 8], [12, 12], [9, 13], title="n", note="ε = 1")
    assert chart.values == [
        {"label": "a", "off": 1.0, "low": -1.0, "high": 3.0, "holds": True},
        {"label": "b", "off": -3.0, "low": -5.0, "high": -1.0, "holds": False},
    ]
    ink = chart.spec["layer"][1]["encoding"]["color"]
    assert ink == {"condition": {"test": "datum.holds", "value": BLUE}, "value": ORANGE}


@pytest.mark.parametrize("values", [[0.0], [-3.0, 5.0], [1e9, 1.0]])
def test_odd_numbers_can_be_drawn(values):
    chart = charts.deviations([str(i) for i in range(len(values))], values, values, values, values)
    assert all(row["holds"] for row in chart.values if "holds" in row)


def test_private_and_plain_numbers_stand_beside_each_other():
    chart = charts.beside(["age", "hours"], ([3.1, 2.0], [2.5, 1.4], [3.7, 2.6]), [2.9, 2.2])
    points = [row for row in chart.values if "at" in row]
    assert [row["at"] for row in points] == [3.1, 2.0, 2.9, 2.2]
    assert len({row["kind"] for row in points}) == 2


def test_as_many_numbers_as_names():
    with pytest.raises(InputError, match="as many private and plain numbers"):
        charts.beside(["a"], ([1], [1], [1]), [1, 2])
