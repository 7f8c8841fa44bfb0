"""Bounds and keys that are bought: they fit the data, cost what was said, and serve later questions."""

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import BudgetError, InputError, NoisetteError

ROWS = 5_000
RNG = np.random.default_rng(7)
DATA = pyarrow.table(
    {
        "who": np.arange(ROWS) // 2,
        "pay": RNG.normal(300, 40, ROWS),
        "loss": -RNG.integers(1, 1000, ROWS),
        "ward": np.where(np.arange(ROWS) == 7, "only one", RNG.choice(["north", "south"], ROWS)),
        "note": ["x"] * ROWS,
    }
)
FOR_SALE = {"pay": {"bounds": "private"}, "loss": {"bounds": "private"}, "ward": {"keys": "private"}}


def opened(columns=FOR_SALE, budget=None):
    rules = {"unit": "who", "rows": 2, "groups": 2, "rows_per_group": 2, "columns": columns}
    return nz.open({"staff": DATA}, budget=budget or nz.Approx(100, "1e-6"), policy={"tables": {"staff": rules}})


@pytest.mark.parametrize(("name", "low", "high"), [("pay", 128, 512), ("loss", -1024, 0)])
def test_bounds_fit_the_data_and_serve_later_questions(name, low, high):
    staff = opened()
    with pytest.raises(InputError, match="buy them with bounds"):
        staff.sql(f"SELECT AVG({name}) FROM staff", spend=1)
    found = staff.bounds(name, spend=10)
    values = DATA[name].to_numpy()
    assert low - abs(low) <= found[0] <= np.quantile(values, 0.01)
    assert high + abs(high) >= found[1] >= np.quantile(values, 0.99)
    answer = staff.sql(f"SELECT AVG({name}) AS a FROM staff", spend=10)
    assert abs(answer["a"].values[0].as_py() - DATA[name].to_numpy().mean()) < 20
    assert staff.budget.spent.eps == 20


def test_keys_are_those_that_many_share():
    staff = opened()
    assert staff.keys("staff.ward", spend=nz.Approx(4, "1e-7")) == ["north", "south"]
    answer = staff.sql("SELECT ward, COUNT(*) AS n FROM staff GROUP BY ward", spend=4)
    assert answer["ward"].values.to_pylist()[:2] == ["north", "south"]


def test_what_is_bought_once_is_not_for_sale_again():
    staff = opened()
    staff.bounds("pay", spend=1)
    with pytest.raises(InputError, match="not for sale"):
        staff.bounds("pay", spend=1)


@pytest.mark.parametrize(
    ("buy", "why"),
    [
        (lambda staff: staff.bounds("note", spend=1), "not for sale"),
        (lambda staff: staff.bounds("nothing", spend=1), "no column nothing"),
        (lambda staff: staff.bounds("other.pay", spend=1), "Name the column with its table"),
        (lambda staff: staff.keys("ward", spend=1), "needs a delta"),
        (lambda staff: staff.bounds("pay", spend=0), "more than 0"),
    ],
)
def test_refusals_cost_nothing(buy, why):
    staff = opened()
    with pytest.raises(InputError, match=why):
        buy(staff)
    assert staff.budget.spent.eps == 0


def test_a_budget_that_does_not_hold_the_price_is_left_alone():
    staff = opened(budget=1)
    with pytest.raises(BudgetError):
        staff.bounds("pay", spend=2)
    assert staff.budget.left == nz.Pure(1)


def test_keys_that_nobody_shares():
    staff = opened({"who": {"keys": "private"}})
    with pytest.raises(NoisetteError, match=r"No key is shared .* was charged"):
        staff.keys("who", spend=nz.Approx(1, "1e-7"))
    assert staff.budget.spent.eps > 0
