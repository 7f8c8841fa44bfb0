"""What is printed of curators, frames and questions: what is declared, dates as dates, nothing of the data."""

import datetime

import pyarrow
import pytest

import noisette as nz

CANARY = "canaryqx"
DAYS = [datetime.date(2019, 1, 1), datetime.date(2021, 1, 1)]
RULES = {
    "unit": "patient_id",
    "rows": 4,
    "columns": {"day": {"bounds": DAYS}, "at": {"bounds": DAYS}, "ward": {"keys": ["north", "south"]}},
}


@pytest.fixture(scope="module")
def data():
    columns = {
        "patient_id": pyarrow.array([CANARY]),
        "day": pyarrow.array(DAYS[:1]),
        "at": pyarrow.array([0], pyarrow.timestamp("us")),
        "ward": pyarrow.array([CANARY]),
    }
    wards = pyarrow.table({"name": ["north"]})
    tables = {"visits": RULES, "wards": {"public": True}}
    budget = nz.Approx(3, "1e-6")
    return nz.open({"visits": pyarrow.table(columns), "wards": wards}, budget=budget, policy={"tables": tables})


def test_a_curator_shows_its_schema_and_its_budget(data):
    shown = repr(data)
    assert "visits: all rows of one patient_id are protected together (rows 4)" in shown
    assert "wards: public, it protects nobody" in shown
    assert "2019-01-01 to 2021-01-01" in shown
    assert "2019-01-01 00:00:00 to 2021-01-01 00:00:00" in shown
    assert "budget  ε = 3" in shown
    assert CANARY not in shown


def test_a_frame_shows_its_columns(data):
    shown = repr(data.table("visits").select("ward", later="day + INTERVAL 3 DAY").group_by("ward"))
    assert shown.splitlines()[0].endswith("grouped by ward")
    assert "2019-01-04 to 2021-01-04" in shown
    assert CANARY not in shown
    assert "curator" not in shown


def test_a_question_shows_its_sql(data):
    asked = data.table("visits").where("day > DATE '2020-01-01'").group_by("ward").count()
    assert repr(asked) == (
        "Asked: SELECT visits.ward AS ward, COUNT(*) AS count FROM visits "
        "WHERE visits.day > DATE '2020-01-01' GROUP BY visits.ward"
    )


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("spend", ["0.5", "0.5,1e-8", "0.5,1e-7", "0.5,1e-6"])
def test_a_question_asked_for_one_half_says_one_half(data, spend):
    text = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"
    explained = data.explain(text, spend=spend)
    assert repr(explained).startswith(("ε = 0.5 ·", f"ε = 0.5, δ = {spend.partition(',')[2]} ·"))
    assert explained.offer.guarantee <= nz.Approx("0.5", spend.partition(",")[2] or 0)
    fresh = nz.open(pyarrow.table({"age": [1]}), budget=nz.Approx(3, "1e-5"))
    answer = fresh.sql("SELECT count(*) AS n FROM data", spend=spend)
    assert "ε = 0.5 ·" in repr(answer) or "ε = 0.5, δ =" in repr(answer)
    assert "0.50000" not in repr(answer) + answer.statement.partition("With it")[0]
