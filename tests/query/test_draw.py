"""Keys that nobody declared: what is released of them, in small tables where chance hardly counts."""

import pyarrow
import pytest

import noisette as nz

MANY, RARE = 120, ("only one", "alone", "lonely")
SPEND = nz.Approx(2, "1e-15")  # a key of one unit is released with p < 1e-15, and one of 120 is not with p < e^-100
KEYS = ["north"] * MANY + ["south"] * MANY + list(RARE)
QUESTIONS = [
    "SELECT DISTINCT k FROM v",
    "SELECT k, COUNT(*) AS n FROM v GROUP BY k",
    "SELECT k, COUNT(DISTINCT u) AS n FROM v GROUP BY k",
    "SELECT k, SUM(x) AS s FROM v GROUP BY k",
]


@pytest.fixture(scope="module")
def data():
    table = pyarrow.table({"u": range(len(KEYS)), "k": KEYS, "x": [1] * len(KEYS)})
    rules = {"unit": "u", "rows": 1, "columns": {"x": {"bounds": [0, 1]}}}
    return nz.open({"v": table}, budget=nz.Approx(100, "1e-12"), keys_delta="5e-13", policy={"tables": {"v": rules}})


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_key_of_one_unit_is_not_released(data, question):
    assert sorted(data.sql(question, spend=SPEND)["k"].values.to_pylist()) == ["north", "south"]
