"""How wide a bin of the median is, on grids other than 1."""

import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError

ROWS = 400
SPEND = nz.Approx(50, "1e-3")
WIDTHS = [
    (5, "1/2", 10),
    ("5/4", "1/2", 3),  # rounded up
    ("0.51", "1/2", 2),
    ("1/5", "1/10", 2),
    (7, 2, 4),
    (5, 2, 3),
    (6, 3, 2),
    (3, 1, 3),
]
"""A width, a grid and how many of its steps a bin has."""


@pytest.fixture(scope="module")
def data():
    table = pyarrow.table({"u": range(ROWS), "x": [20.0] * ROWS})
    return nz.open({"t": table}, unit="u", rows=1, budget=nz.Approx(10_000, "1/2"))


def of(width, grid):
    return nz.Centre("x", of="SELECT * FROM t WHERE x IS NOT NULL", width=width, grid=grid)


@pytest.mark.parametrize(("width", "grid", "steps"), WIDTHS)
def test_a_bin_is_as_wide_as_was_asked_rounded_up_to_the_grid(data, width, grid, steps):
    offer = of(width, grid).offer(data.schema, SPEND, nz.Neighbours.ADD_REMOVE, 0.95)
    assert offer.procedure.mechanism.width == steps


def test_an_answer_is_no_wider(data):
    [row] = data.ask(of("5/4", "1/2"), spend=SPEND).rows()
    assert row["centre_low"] <= 20 <= row["centre_high"]
    assert 0 < row["centre_high"] - row["centre_low"] <= 3 * 0.5


@pytest.mark.parametrize(("width", "grid"), [("1/2", "1/2"), (2, 2), (1, 3)])
def test_one_step_is_too_narrow(data, width, grid):
    with pytest.raises(InputError, match="at least two steps of the grid"):
        of(width, grid).offer(data.schema, SPEND, nz.Neighbours.ADD_REMOVE, 0.95)
