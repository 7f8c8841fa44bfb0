"""Maps of who is nearest."""

import numpy as np
import pytest

from noisette import charts
from noisette.accuracy.nearest import laws
from noisette.errors import InputError
from noisette.mechanisms.spatial.nearest_place import NearestPlace

SMALL = NearestPlace(2, k=2, columns=(3, 9), rows=(-2, 2), place=(4, 0))
PEOPLE = [(3, -2), (4, 1), (5, 1), (8, 2), (9, 2), (9, 2)]
THERE = {"columns": SMALL.columns, "rows": SMALL.rows, "place": SMALL.place}


def test_three_maps_with_people_and_both_laws():
    both = dict(zip(("ranks", "distance"), laws(SMALL, PEOPLE), strict=True))
    maps = charts.nearest(PEOPLE, both, **THERE, note="ε = 1").spec["concat"]
    assert [part["title"]["text"] for part in maps] == ["6 people, and the place", "ranks", "distance"]
    assert [(row["x"], row["y"]) for row in maps[0]["layer"][0]["data"]["values"]] == PEOPLE
    for part, law in zip(maps[1:], both.values(), strict=True):
        drawn = np.zeros_like(law)
        for row in part["layer"][0]["data"]["values"]:
            drawn[row["y"] + 2, row["x"] - 3] = row["p"]
        assert np.array_equal(drawn, np.where(law >= 1e-6, law, 0))
        assert part["layer"][1]["data"]["values"] == [{"x": 4, "y": 0}]


def test_a_law_has_the_shape_of_the_map():
    with pytest.raises(InputError, match="rows by columns"):
        charts.nearest(PEOPLE, {"wrong": [[1.0]]}, **THERE)
