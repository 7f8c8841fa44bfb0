"""Quotients, roots and logarithms of what may have none: what a refusal tells to write gives the true number."""

import re

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError

N = 20_000
CHANCE = np.random.default_rng(0)
CARAT = np.round(CHANCE.uniform(0, 2.5, N), 2)  # some are 0
PRICE = np.where(CARAT > 0.2, np.rint(3000 * CARAT + CHANCE.normal(0, 200, N)).clip(0, 20_000), 0).astype(int)
THERE = CARAT > 0
TRUE = {
    "price / carat": np.mean(PRICE[THERE] / CARAT[THERE]),
    "LN(price)": np.mean(np.log(PRICE[PRICE > 0])),
    "LN(carat)": np.mean(np.log(CARAT[THERE])),
    "SQRT(carat - 1)": np.mean(np.sqrt(CARAT[CARAT >= 1] - 1)),
}
"""Means over the rows that have one."""


@pytest.fixture(scope="module", params=["0.01", None], ids=["a grid", "no grid"])
def stones(request):
    carat = {"bounds": [0, 5], "nullable": False} | ({"grid": request.param} if request.param else {})
    policy = {"tables": {"t": {"columns": {"price": {"bounds": [0, 20_000], "nullable": False}, "carat": carat}}}}
    return nz.open({"t": pyarrow.table({"price": PRICE, "carat": CARAT})}, budget=10**6, policy=policy)


def holds(data, written, expected):
    """Whether the bar of a mean holds a number; at this spend it misses the true one with p < 1e-12."""
    [row] = data.sql(f"SELECT AVG({written}) AS v FROM t", spend=200).rows()
    middle, wide = (row["v_low"] + row["v_high"]) / 2, (row["v_high"] - row["v_low"]) / 2
    return abs(middle - expected) <= 20 * wide


def advised(data, written):
    """What is answered: the expression itself, or what its refusal says to write, with bounds that hold."""
    try:
        data.explain(f"SELECT AVG({written}) AS v FROM t", spend=1)
    except InputError as refusal:
        remedy = re.search(r"write (.*) with bounds that hold for it", str(refusal))[1]
        return remedy.replace("low", "-5" if "LN" in written else "0").replace("high", "10000")
    return written


@pytest.mark.parametrize("written", TRUE)
def test_the_advice_gives_the_true_number(stones, written):
    assert holds(stones, advised(stones, written), TRUE[written])


@pytest.mark.parametrize("guarded", ["price / NULLIF(carat, 0)", "CASE WHEN carat > 0 THEN price / carat END"])
def test_guards_are_accepted(stones, guarded):
    assert holds(stones, f"LEAST(GREATEST({guarded}, 0), 10000)", TRUE["price / carat"])
    assert advised(stones, guarded) in (
        guarded,
        *("LEAST(GREATEST(price / " + y + ", 0), 10000)" for y in ("carat", "y")),
    )


@pytest.mark.parametrize("other", ["price / GREATEST(carat, 1)", "LN(GREATEST(price, 1))"])
def test_a_limit_on_the_divisor_is_convicted(stones, other):
    """It is another question, whose tight bar misses the mean of the quotients."""
    true = TRUE["LN(price)" if "LN" in other else "price / carat"]
    assert not holds(stones, other, true)
    assert not any(
        limit in advised(stones, written) for written in TRUE for limit in ("GREATEST(carat", "GREATEST(price,")
    )


def test_rows_without_a_value_do_not_count(stones):
    [row] = stones.sql("SELECT COUNT(price / carat) AS q, COUNT(LN(price)) AS l FROM t", spend=1000).rows()
    assert abs(row["q"] - THERE.sum()) <= 1  # fails with p < 1e-12
    assert abs(row["l"] - (PRICE > 0).sum()) <= 1
