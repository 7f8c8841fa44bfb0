"""Map: which rows are on it, what is refused before anything is spent, and what is kept of it."""

import math

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.releases.maps.catalogue import STRATEGIES

N = 2_000
ENDS = {"lon": [8.0, 9.0], "lat": [47.0, 48.0]}
LARGE = nz.Approx(10**6, "1e-2")
HUGE = 10**5  # an epsilon with hardly any noise


def places():
    rng = np.random.default_rng(7)
    lon, lat = rng.uniform(8.05, 8.95, N), rng.normal(47.5, 0.1, N)
    lon[:8] = [math.nan, math.inf, -math.inf, 8.0, 9.0, 7.0, 99.0, 8.5]
    return lon, lat


LON, LAT = places()
ROWS = pyarrow.table(
    {
        "u": np.arange(N) // 2,
        "lon": LON,
        "lat": pyarrow.array([None if i % 100 == 50 else y for i, y in enumerate(LAT)]),
        "floor": np.arange(N) % 5,
        "kind": ["a", "b"] * (N // 2),
        "free": LAT,
    }
)
COLUMNS = {
    **{name: {"bounds": ends} for name, ends in ENDS.items()},
    "floor": {"bounds": [0, 4], "nullable": False},
    "kind": {"keys": ["a", "b"]},
}


def opened(rows=2, table=ROWS, columns=COLUMNS, budget=LARGE, **more):
    return nz.open(
        {"t": table},
        policy={"tables": {"t": {"unit": "u", "rows": rows, "columns": columns}}},
        budget=budget,
        **more,
    )


def truth(west, south, east, north, shape):
    """The counts of cells: rows without a place, or beyond the policy's bounds, are in none."""
    there = ~np.isnan(LON) & (np.arange(N) % 100 != 50)
    lon, lat = LON[there], LAT[there]
    inside = (lon >= west) & (lon <= east) & (lat >= south) & (lat <= north)
    return np.histogram2d(lon[inside], lat[inside], bins=shape, range=((west, east), (south, north)))[0]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_with_hardly_any_noise_counts_are_those_of_the_table(strategy):
    value = opened().ask(nz.Map("lon", "lat", cells=(8, 4), strategy=strategy), spend=HUGE).value
    exact = truth(8, 47, 9, 48, (8, 4))
    assert value.bounds == (8.0, 47.0, 9.0, 48.0)
    beyond = [((x < ends[0]) | (x > ends[1])) for x, ends in ((LON, ENDS["lon"]), (LAT, ENDS["lat"]))]
    assert np.any(beyond)
    assert round(value.total.value) == exact.sum() < N - 1 - N // 100  # fails with p < e^-1000
    assert np.abs(value.x - exact).max() < 0.5


@pytest.mark.slow
def test_points_outside_the_bounds_are_left_out():
    value = opened().ask(nz.Map("lon", "lat", bounds=(8.25, 47.25, 8.75, 47.75), cells=16), spend=HUGE).value
    assert np.abs(value.x - truth(8.25, 47.25, 8.75, 47.75, (16, 16))).max() < 0.5


@pytest.mark.parametrize("bounds", [(8.25, 47.25, 8.75, 47.75), (8, 47, 9, 47.5), ("8.1", 47, "8.2", 48)], ids=str)
def test_a_map_lies_where_it_was_asked(bounds):
    """Ends, shape and counts: a point just within each corner, and one just beyond."""
    west, south, east, north = map(float, bounds)
    near = [(west, south), (east - 1e-6, north - 1e-6)]
    beyond = [(max(west - 0.01, 7), south + 0.1), (west + 0.01, min(north + 0.01, 49))]
    lon, lat = zip(*(near + beyond), strict=True)
    found = opened(1, pyarrow.table({"u": range(4), "lon": lon, "lat": lat}), {n: COLUMNS[n] for n in ENDS})
    value = found.ask(nz.Map("lon", "lat", bounds=bounds, cells=2, strategy="quadtree"), spend=HUGE).value
    assert value.bounds == pytest.approx((west, south, east, north))
    assert np.round(value.x).tolist() == [[1, 0], [0, 1]]  # fails with p < e^-1000


def test_points_outside_do_not_use_up_the_limit_of_a_unit():
    table = pyarrow.table({"u": [1] * 50 + [2], "lon": [8.1] * 49 + [8.9] * 2, "lat": [47.5] * 51})
    found = opened(1, table, {name: COLUMNS[name] for name in ("lon", "lat")})
    assert found.ask(nz.Map("lon", "lat", bounds=(8.5, 47, 9, 48), cells=2), spend=HUGE).value.total.value > 1.5


def test_units_count_with_as_many_rows_as_are_declared():
    offers = [
        nz.Map("lon", "lat", cells=4).offer(opened(rows).schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95)
        for rows in (1, 7)
    ]
    assert [offer.procedure.sensitivity.l1 for offer in offers] == [1, 7]
    assert all(offer.guarantee <= nz.Pure(1) for offer in offers)


@pytest.mark.slow
def test_three_columns_are_a_map_too():
    value = opened().ask(nz.Map("lon", "lat", cells=(4, 4, 5), more=["floor"], strategy="quadtree"), spend=HUGE).value
    assert value.x.shape == (4, 4, 5)
    assert value.count((8, 47, 0, 9, 48, 1)).value == pytest.approx(value.x[:, :, 0].sum())
    assert len(value.bounds) == 6


@pytest.mark.slow
def test_the_table_of_an_answer_is_an_overview():
    answer = opened().ask(nz.Map("lon", "lat", cells=64), spend=1)
    assert len(answer) == 16 * 16
    assert answer.to_arrow().column_names == ["lon", "lat", "n", "n_low", "n_high"]
    assert answer["n"].values.to_numpy().sum() == pytest.approx(answer.value.total.value)
    assert answer.value.to_arrow().num_rows == 64 * 64
    assert "ε = 1" in answer.plot().title


def test_whole_numbers_have_whole_cells():
    found = opened(columns={**COLUMNS, "floor": {"bounds": [0, 100], "nullable": False}})
    value = found.ask(nz.Map("floor", "lat", cells=(40, 8)), spend=HUGE).value
    assert value.x.shape == (34, 8)  # three floors each
    assert value.count((0, 40, 3, 50)).value == pytest.approx(value.x[0].sum())


@pytest.mark.slow
def test_asking_again_is_free_and_the_same(tmp_path):
    asked = nz.Map("lon", "lat", cells=8)
    data = opened(budget=3, ledger=tmp_path / "l.sqlite", table=ROWS)
    first = data.ask(asked, spend=1)
    assert np.array_equal(data.ask(asked, spend=1).value.x, first.value.x)
    assert len(data.budget.entries) == 1


@pytest.mark.slow_after(6)
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"bounds": (8.7, 47.2, 8.3, 47.6)}, "date line: make two maps"),
        ({"bounds": (8.3, 47.6, 8.7, 47.2)}, "reversed or empty"),
        ({"bounds": (8.3, 47.2, 8.3, 47.6)}, "reversed or empty"),
        ({"bounds": (8.3, 47.2, 8.7)}, "west, south, east, north"),
        ({"bounds": "8,47,9,48"}, "bounds"),
        ({"bounds": 5}, "bounds"),
        ({"bounds": (8.3, 47.2, 8.7, math.nan)}, "finite number"),
        ({"bounds": (7, 47, 9, 48)}, "beyond the declared bounds of lon, 8 to 9"),
        ({"cells": 0}, "at least 1"),
        ({"cells": 2.5}, "cells"),
        ({"cells": (4, 4, 4)}, "one for each column"),
        ({"cells": "many"}, "cells"),
        ({"cells": 100_000}, "at most 16,777,216 cells"),
        ({"strategy": "mercator"}, "adaptive"),
        ({"strategy": None}, "adaptive"),
        ({"y": "floor", "cells": (4, 9)}, "floor has 5 values"),
        ({"y": "kind"}, "kind must hold numbers"),
        ({"y": "free"}, "declared domain"),
        ({"y": "lon"}, "different columns"),
        ({"y": ""}, "must be a text"),
        ({"y": "nothing"}, "nothing"),
        ({"more": "floor"}, "lists"),
        ({"more": [3]}, "text"),
        ({"more": ["floor"], "cells": 4}, "for 2 columns: use quadtree"),
        ({"of": 3}, "of must be rows"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(fields, says):
    data = opened()
    with pytest.raises(InputError, match=says) as refusal:
        data.ask(nz.Map(**{"x": "lon", "y": "lat", "cells": 8, **fields}), spend=1)
    assert str(refusal.value).count("\n") == 0
    assert not data.budget.entries


@pytest.mark.slow
def test_a_depth_beyond_the_grid_is_refused():
    found = opened(columns={**COLUMNS, "lon": {"bounds": [8, 9], "grid": "0.01"}})
    with pytest.raises(InputError, match="lon has 101 values between these bounds"):
        found.explain(nz.Map("lon", "lat", cells=256), spend=1)
    assert found.ask(nz.Map("lon", "lat"), spend=1).value.x.shape == (101, 256)


def test_texts_stored_as_coordinates_are_refused_by_the_policy():
    table = ROWS.set_column(1, "lon", pyarrow.array([str(x) for x in LON]))
    with pytest.raises(InputError):
        opened(table=table).ask(nz.Map("lon", "lat", cells=8), spend=1)
