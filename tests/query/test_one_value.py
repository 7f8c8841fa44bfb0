"""Values of which declarations leave one alone, and draws that cannot work: nothing fails after it was charged."""

import datetime

import pyarrow
import pytest

import noisette as nz
from noisette.curator.demo import hospital
from noisette.errors import InputError
from noisette.query import ranks

DAY = datetime.date


@pytest.fixture(scope="module")
def visits():
    table = pyarrow.table({"day": [DAY(2020, 8, 1)] * 50, "ward": ["a", "b"] * 25})
    columns = {"day": {"bounds": [DAY(2020, 7, 1), DAY(2020, 9, 30)]}, "ward": {"keys": ["a", "b"]}}
    return nz.open({"v": table}, budget=100, policy={"tables": {"v": {"columns": columns}}})


ONE = {
    "MIN(YEAR(day))": 2020,
    "MAX(YEAR(day))": 2020,
    "QUANTILE(YEAR(day), 0.5)": 2020,
    "MAX(QUARTER(day))": 3,
    "MEDIAN(LEAST(GREATEST(MONTH(day), 5), 5))": 5,
    "AVG(YEAR(day))": 2020,
    "VARIANCE(YEAR(day))": 0,
}


@pytest.mark.parametrize("asked", ONE)
def test_the_only_possible_value_is_the_answer(visits, asked):
    [row] = visits.sql(f"SELECT {asked} AS y FROM v", spend="0.1").rows()
    assert row == {"y": ONE[asked], "y_low": ONE[asked], "y_high": ONE[asked]}


def test_several_quantiles_of_one_value(visits):
    question = "SELECT ward, QUANTILE(YEAR(day), [0.2, 0.5, 0.7, 0.9]) AS y FROM v GROUP BY ward"
    for row in visits.sql(question, spend="0.1").rows():
        assert {value for name, value in row.items() if name != "ward"} == {2020}


FAILING = [
    "SELECT MEDIAN(age) AS m FROM visits",
    "SELECT ward, QUANTILE(age, [0.4, 0.6]) AS m FROM visits GROUP BY ward",
    "SELECT ward, MIN(age) AS m FROM visits GROUP BY ROLLUP (ward)",
]


@pytest.mark.parametrize("asked", FAILING)
def test_a_draw_that_cannot_work_fails_before_the_charge(asked, monkeypatch):
    """A mechanism that refuses the cells it is given is met by the dry run, which draws from no rows."""
    data = hospital()
    before = list(data.budget.entries)

    def refused(*_):
        raise InputError("Give the cells that were announced.")

    monkeypatch.setattr(ranks, "_wide", refused)
    with pytest.raises(InputError, match="that were announced"):
        data.sql(asked, spend="0.5")
    assert list(data.budget.entries) == before


def test_one_cell_is_widened(monkeypatch):
    """Without it the mechanism refuses, and nothing is charged for it."""
    monkeypatch.setattr(ranks, "_wide", lambda counts: counts)
    table = pyarrow.table({"day": [DAY(2020, 8, 1)]})
    policy = {"tables": {"v": {"columns": {"day": {"bounds": [DAY(2020, 7, 1), DAY(2020, 9, 30)]}}}}}
    data = nz.open({"v": table}, budget=1, policy=policy)
    with pytest.raises(InputError):
        data.sql("SELECT MIN(YEAR(day)) AS y FROM v", spend=1)
    assert not data.budget.entries


ORDERED = [
    ("SELECT ward, COUNT(*) AS n FROM v GROUP BY ROLLUP (ward) ORDER BY ward", ["a", "b", None, None]),
    ("SELECT ward, COUNT(*) AS n FROM v GROUP BY ROLLUP (ward) ORDER BY ward DESC", ["b", "a", None, None]),
    ("SELECT ward, COUNT(*) AS n FROM v GROUP BY GROUPING SETS ((), (ward)) ORDER BY ward LIMIT 1", ["a"]),
    ("SELECT ward, COUNT(*) AS n FROM v WHERE ward = 'b' GROUP BY CUBE (ward) ORDER BY COUNT(*) > 0, ward", None),
]


@pytest.mark.parametrize(("asked", "wards"), ORDERED)
def test_totals_are_ordered_by_a_key(visits, asked, wards):
    found = [row["ward"] for row in visits.sql(asked, spend="0.1").rows()]
    assert wards is None or found == wards
