"""Columns that may be filtered but not grouped: no question and no detour makes groups of them."""

import copy

import pytest
from tests.contracts import test_questions as hospital
from tests.curator.ruled import opened, refusal, spent

import noisette as nz
from noisette.errors import InputError


@pytest.fixture(scope="module")
def ungrouped():
    rules = copy.deepcopy(hospital.RULES)
    for column in hospital.opened().schema["visits"].columns:
        rules["columns"].setdefault(column.name, {})["group"] = False
    tables = {"visits": rules, "wards": hospital.PUBLIC}
    return nz.open(hospital.TABLES, budget=nz.Approx(1000, "1e-4"), policy={"tables": tables})


FREE = {"above", "choose", "distinct", "left_out", "quantiles"}
"""They filter, or release numbers about all rows."""


@pytest.mark.parametrize("name", [name for name in hospital.EXAMPLES if name not in ("stream 0", "best 0")])
def test_every_question_that_makes_groups_is_refused(ungrouped, name):
    question = hospital.EXAMPLES[name]
    if name.split()[0] in FREE:
        ungrouped.explain(question, spend=(2, "1e-7"))
        return
    sentences = [refusal(ungrouped, question, spend) for spend in ((2, "1e-7"), 2)]  # some take an epsilon alone
    assert any("may be filtered but not grouped, by the policy" in one for one in sentences)
    assert None not in sentences


GROUPED = [
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT Ward, COUNT(*) AS n FROM Visits AS t GROUP BY 1",
    "SELECT DISTINCT ward FROM visits",
    "SELECT UPPER(ward) AS w, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT CASE WHEN ward = 'oncology' THEN 1 ELSE 0 END AS w, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT ward = 'oncology' AS w, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT FLOOR(age / 10) AS d, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT w, COUNT(*) AS n FROM (SELECT ward AS w FROM visits) AS s GROUP BY w",
    "SELECT w, COUNT(*) AS n FROM (SELECT LOWER(ward) AS w, age FROM visits) AS s GROUP BY w",
    "SELECT m, COUNT(*) AS n FROM (SELECT patient_id, MAX(age) AS m FROM visits GROUP BY patient_id) AS s GROUP BY m",
    "SELECT w, COUNT(*) AS n FROM (SELECT patient_id, ward AS w FROM visits GROUP BY patient_id, ward) AS s GROUP BY w",
    "SELECT region, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY region",
    "SELECT r, COUNT(*) AS n FROM (SELECT region AS r FROM visits JOIN wards USING (ward)) AS s GROUP BY r",
    "SELECT wards.ward, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY wards.ward",
    "SELECT b.ward, COUNT(*) AS n FROM visits AS a JOIN visits AS b USING (patient_id) GROUP BY b.ward",
]
ALLOWED = [
    "SELECT COUNT(*) AS n FROM visits WHERE ward = 'oncology' AND age > 60",
    "SELECT AVG(age) AS a, SUM(CASE WHEN ward = 'oncology' THEN 1 ELSE 0 END) AS n FROM visits",
    "SELECT COUNT(DISTINCT ward) AS w, MEDIAN(age) AS m FROM visits",
    "SELECT n, COUNT(*) AS k FROM (SELECT patient_id, COUNT(*) AS n FROM visits WHERE age > 3 GROUP BY patient_id) "
    "AS s GROUP BY n",
]


@pytest.mark.parametrize("question", GROUPED)
def test_no_detour_makes_groups(ungrouped, question):
    with pytest.raises(InputError, match="may be filtered but not grouped"):
        ungrouped.ask(question, spend=(1, "1e-7"))
    assert spent(ungrouped) == 0


@pytest.mark.slow
@pytest.mark.parametrize("question", ALLOWED)
def test_filters_and_aggregates_stay(ungrouped, question):
    found = ungrouped.explain(question, spend=(1, "1e-7"))
    assert "visits.ward may be filtered but not grouped." in found.rules
    assert "visits.ward" in found.offer.rules["not_grouped"]


def test_keys_of_such_a_column_are_not_sold():
    data = opened(columns={"ward": {"keys": "private", "group": False}})
    with pytest.raises(InputError, match=r"visits\.ward may be filtered but not grouped"):
        data.keys("ward", spend=(1, "1e-6"))
