"""Flows: counts of pairs of cells, what is released of them, and what is refused before anything is spent."""

import math

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError

N = 3_000
TOWNS = np.array([[0.5, 0.5], [3.5, 0.5], [3.5, 3.5]])
start, stop = np.arange(N) % 3, np.arange(N) // 7 % 3  # towns
COLUMNS = ("x1", "y1", "x2", "y2")
BOTH = (("x1", "y1"), ("x2", "y2"))
HUGE = 10**5  # an epsilon with hardly any noise


def opened(rows=1, **changed):
    places = np.hstack([TOWNS[start], TOWNS[stop]])
    columns = {name: places[:, i].copy() for i, name in enumerate(COLUMNS)}
    columns["x1"][:4] = [math.nan, math.inf, -5, 0.5]
    table = pyarrow.table({"u": np.arange(N), **columns})
    rules = {name: {"bounds": [0, 4]} for name in COLUMNS} | changed
    policy = {"tables": {"t": {"unit": "u", "rows": rows, "columns": rules}}}
    return nz.open({"t": table}, policy=policy, budget=nz.Approx(10**6, "1e-2"))


def test_with_hardly_any_noise_flows_are_those_of_the_table():
    value = opened().ask(nz.Flows(*BOTH, cells=4), spend=HUGE).value
    found = {tuple(row[name] for name in COLUMNS): row["n"] for row in value.to_arrow().to_pylist() if row["n"] > 9}
    for i in range(3):
        for j in range(3):
            truth = int(((start == i) & (stop == j))[4:].sum())
            assert abs(found[(*TOWNS[i], *TOWNS[j])] - truth) <= 4  # the four odd ones lie elsewhere, or nowhere
    assert value.count().value == pytest.approx(N - 1, abs=5)  # NaN has no place, infinity is at the bound
    assert len(found) == 9


def test_rectangles_count_flows_between_them():
    value = opened().ask(nz.Flows(*BOTH, cells=4), spend=HUGE).value
    found = value.count((3, 0, 4, 1), (3, 3, 4, 4))
    assert found.value == ((start == 1) & (stop == 2))[4:].sum()  # of the odd ones one is at the other end
    assert found.low <= found.value <= found.high
    assert value.count((3, 0, 4, 1)).value == (start == 1)[4:].sum()
    with pytest.raises(InputError, match="low ends"):
        value.count((4, 0, 3, 1))


def test_the_largest_flows_come_first_and_are_drawn():
    value = opened().ask(nz.Flows(*BOTH, cells=4, threshold=5), spend=1).value
    top = value.top(4)
    assert top.num_rows == 4
    assert top.column("n").to_pylist() == sorted(top.column("n").to_pylist(), reverse=True)
    chart = value.chart(note="ε = 1", outline=[(0, 0), (4, 0), (4, 4)])
    rings = [row for row in chart.values if "n" in row and "turn" not in row and "x2" not in row]
    assert len([row for row in chart.values if "turn" in row]) >= 6
    assert len(rings) >= 3  # who stays
    assert repr(value).endswith("flows between 4 × 4 cells")
    with pytest.raises(InputError, match="k must be"):
        value.top(0)


def test_rows_outside_the_bounds_are_left_out():
    value = opened().ask(nz.Flows(*BOTH, bounds=(2, 0, 4, 4), cells=2), spend=HUGE).value
    assert round(value.count().value) == ((start > 0) & (stop > 0))[4:].sum() + (stop[1] > 0)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"origin": "x1"}, "two columns each"),
        ({"origin": ("x1",)}, "two columns each"),
        ({"destination": ("x1", "y2")}, "must differ"),
        ({"bounds": (0, 0, 4)}, "west, south, east, north"),
        ({"bounds": (4, 0, 0, 4)}, "reversed"),
        ({"bounds": (0, 0, 5, 4)}, "beyond the declared bounds of x1"),
        ({"cells": 0}, "cells"),
        ({"cells": 10**6}, "at most"),
        ({"threshold": 0}, "threshold"),
        ({"origin": ("u", "y1")}, "One group for each u"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(fields, says):
    data = opened()
    with pytest.raises(InputError, match=says):
        data.ask(nz.Flows(**{"origin": BOTH[0], "destination": BOTH[1], "cells": 4, **fields}), spend=1)
    assert not data.budget.entries


def test_a_unit_may_put_each_of_its_rows_into_another_pair():
    offer = nz.Flows(*BOTH, cells=2).offer(opened(5).schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95)
    moved = offer.procedure.sensitivity
    assert (moved.l1, moved.l2_squared, moved.linf, moved.l0) == (5, 25, 5, 5)
    assert offer.procedure.inner.made.noise.scale == 5
