"""Columns that may be filtered but not grouped: no question and no detour makes groups of them."""

import copy

import pyarrow
import pytest
from tests.contracts import test_questions as hospital
from tests.curator.ruled import opened, refusal, spent

import noisette as nz
from noisette.errors import InputError
from noisette.query import grouping


@pytest.fixture(scope="module")
def ungrouped():
    rules = copy.deepcopy(hospital.RULES)
    for column in hospital.opened().schema["visits"].columns:
        rules["columns"].setdefault(column.name, {})["group"] = False
    tables = {"visits": rules, "wards": hospital.PUBLIC}
    return nz.open(hospital.TABLES, budget=nz.Approx(1000, "1e-4"), policy={"tables": tables})


FREE = {"above", "choose", "distinct", "left_out 0", "left_out 2", "quantiles"}
"""They filter, or release numbers about all rows."""


@pytest.mark.parametrize("name", [name for name in hospital.EXAMPLES if name not in ("stream 0", "best 0")])
def test_every_question_that_makes_groups_is_refused(ungrouped, name):
    question = hospital.EXAMPLES[name]
    if {name, name.split()[0]} & FREE:
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
    "SELECT NULLIF(ward, 'oncology') IS NULL AS w, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT ward, diagnosis, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (diagnosis), ())",
]
ALLOWED = [
    "SELECT COUNT(*) AS n FROM visits WHERE ward = 'oncology' AND age > 60",
    "SELECT AVG(age) AS a, SUM(CASE WHEN ward = 'oncology' THEN 1 ELSE 0 END) AS n FROM visits",
    "SELECT COUNT(DISTINCT ward) AS w, MEDIAN(age) AS m FROM visits",
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


# One column alone is not grouped: keys of others, and a condition on it that decides which rows carry which of them


COLUMNS = {
    "dx": {"keys": ["cold", "flu", "hiv"], "nullable": False, "group": False},
    "kind": {"keys": ["x"], "nullable": False},
    "x": {"bounds": [0, 9]},
}


@pytest.fixture(scope="module")
def one_column():
    """Made-up visits of units with several rows each, and public codes of what `dx` holds."""
    n = 90
    rows = {"u": [i // 3 for i in range(n)], "dx": ["flu", "hiv", "cold"] * (n // 3), "x": [i % 9 for i in range(n)]}
    visits = pyarrow.table({**rows, "kind": ["x"] * n})
    codes = pyarrow.table({"kind": ["x"] * 3, "code": COLUMNS["dx"]["keys"], "label": ["C", "F", "H"]})
    policy = {"tables": {"v": {"unit": "u", "rows": 3, "columns": COLUMNS}, "codes": {"public": True}}}
    return nz.open({"v": visits, "codes": codes}, budget=nz.Approx(1000, "1e-4"), policy=policy)


HIV = "(SELECT u, 'hiv' AS c, x FROM v WHERE dx = 'hiv')"
OF_UNIT = "(SELECT u, COUNT(*) AS n FROM v WHERE dx = 'hiv' GROUP BY u)"
SLICES = "(SELECT u, 1 AS g FROM v WHERE dx = 'flu' UNION ALL SELECT u, 2 AS g FROM v WHERE dx = 'hiv')"
DETOURS = {
    "a slice for each value": f"SELECT g, COUNT(*) AS n FROM {SLICES} AS t GROUP BY g",
    "a constant of a partner": f"SELECT f.c, COUNT(*) AS n FROM v LEFT JOIN {HIV} AS f ON v.u = f.u GROUP BY f.c",
    "whether a unit has such rows": f"SELECT f.n IS NULL AS g, COUNT(*) AS c FROM v LEFT JOIN {OF_UNIT} AS f "
    "ON v.u = f.u GROUP BY 1",
    "another value for none": f"SELECT COALESCE(f.x, 99) = 99 AS g, COUNT(*) AS n FROM v LEFT JOIN {HIV} AS f "
    "ON v.u = f.u GROUP BY 1",
    "a comparison with a partner": f"SELECT f.x >= 0 AS g, COUNT(*) AS n FROM v LEFT JOIN {HIV} AS f ON v.u = f.u "
    "GROUP BY 1",
    "a number of each unit": f"SELECT n, COUNT(*) AS k FROM {OF_UNIT} AS t GROUP BY n",
    "slices below a number of each unit": "SELECT m, COUNT(*) AS n FROM "
    f"(SELECT u, MAX(g) AS m FROM {SLICES} AS s GROUP BY u) AS t GROUP BY m",
    "a condition that compares it with a key": "SELECT code, COUNT(*) AS n FROM v JOIN codes ON v.kind = codes.kind "
    "WHERE code = dx GROUP BY code",
    "a row of a public table that it picks": "SELECT label, COUNT(*) AS n FROM v JOIN codes ON v.kind = codes.kind "
    "WHERE code = dx GROUP BY label",
    "other values for each key": "SELECT x, COUNT(*) AS n FROM v WHERE x < 4 AND dx = 'flu' OR x > 4 AND dx = 'hiv' "
    "GROUP BY x",
    "through a third column": "SELECT code, COUNT(*) AS n FROM v JOIN codes ON v.kind = codes.kind "
    "WHERE label = CASE WHEN x > 4 THEN 'H' ELSE 'F' END AND CASE WHEN dx = 'hiv' THEN 5 ELSE 0 END <= x GROUP BY code",
    "a partner with an equal value": "SELECT b.u IS NULL AS g, COUNT(*) AS n FROM v LEFT JOIN "
    "(SELECT u, 'hiv' AS c FROM v GROUP BY u) AS b ON v.u = b.u AND v.dx = b.c GROUP BY 1",
    "what is different within a unit": "SELECT n, COUNT(*) AS k FROM (SELECT u, COUNT(*) AS n FROM "
    "(SELECT DISTINCT u, dx = 'hiv' AS h FROM v) AS d GROUP BY u) AS t GROUP BY n",
    "HAVING of a partner": "SELECT f.n IS NULL AS g, COUNT(*) AS c FROM v LEFT JOIN (SELECT u, COUNT(*) AS n FROM v "
    "GROUP BY u HAVING MAX(CASE WHEN dx = 'hiv' THEN 1 ELSE 0 END) = 1) AS f ON v.u = f.u GROUP BY 1",
    "HAVING that compares it with a key": "SELECT n, COUNT(*) AS k FROM (SELECT u, COUNT(*) AS n FROM v GROUP BY u "
    "HAVING COUNT(*) = SUM(CASE WHEN dx = 'hiv' THEN 1 ELSE 0 END)) AS t GROUP BY n",
    "a partner that is there for other values": "SELECT f.c IS NULL AS g, COUNT(*) AS n FROM v LEFT JOIN "
    "(SELECT u, 1 AS c FROM v WHERE x > 4 GROUP BY u) AS f ON v.u = f.u "
    "WHERE f.c IS NULL AND dx = 'flu' OR f.c = 1 AND dx = 'hiv' GROUP BY 1",
    "other values for each key, of the rows read again": "SELECT v.x, COUNT(*) AS n FROM v JOIN (SELECT DISTINCT u "
    "FROM v WHERE x < 4 AND dx = 'flu' OR x > 4 AND dx = 'hiv') AS f ON v.u = f.u GROUP BY v.x",
    "FILTER within a unit": "SELECT n, COUNT(*) AS k FROM (SELECT u, COUNT(*) FILTER (WHERE dx = 'hiv') AS n FROM v "
    "GROUP BY u) AS t GROUP BY n",
}
FILTERED = [
    "SELECT x, COUNT(*) AS n FROM v WHERE dx = 'hiv' AND x > 3 GROUP BY x",
    "SELECT x, COUNT(*) AS n FROM v WHERE dx = 'hiv' AND x > 3 OR dx = 'hiv' AND x < 2 GROUP BY x",
    "SELECT x, SUM(CASE WHEN dx = 'hiv' THEN 1 ELSE 0 END) AS h, COUNT(*) FILTER (WHERE dx = 'flu') AS f FROM v "
    "GROUP BY x",
    "SELECT v.x, COUNT(*) AS n FROM v JOIN codes ON v.dx = codes.code WHERE label = 'H' GROUP BY v.x",
    "SELECT x, COUNT(*) AS n FROM v WHERE dx IN (SELECT code FROM codes WHERE label <> 'H') GROUP BY x",
    f"SELECT v.x, AVG(f.n) AS m FROM v LEFT JOIN (SELECT u, LEAST(n, 9) AS n FROM {OF_UNIT} AS t) AS f ON v.u = f.u "
    "GROUP BY v.x",
    "SELECT v.x, COUNT(*) AS n FROM v JOIN (SELECT DISTINCT u FROM v WHERE dx = 'hiv') AS f ON v.u = f.u GROUP BY v.x",
    "SELECT x, COUNT(*) AS n FROM (SELECT x, u FROM v WHERE dx = 'hiv' UNION ALL SELECT 9 - x AS x, u FROM v "
    "WHERE dx = 'hiv') AS t GROUP BY x",
    "SELECT n, COUNT(*) AS k FROM (SELECT u, COUNT(*) AS n FROM v GROUP BY u "
    "HAVING MAX(CASE WHEN dx = 'hiv' THEN 1 ELSE 0 END) = 1) AS t GROUP BY n",
]


@pytest.mark.parametrize("name", DETOURS)
def test_no_condition_makes_groups(one_column, name):
    with pytest.raises(InputError, match=r"^v\.dx may be filtered but not grouped"):
        one_column.ask(DETOURS[name], spend=(1, "1e-6"))
    assert spent(one_column) == 0


def test_a_check_that_forgets_what_conditions_link_is_convicted(one_column, monkeypatch):
    """It follows values alone, and lets slices and comparisons with a key pass."""
    monkeypatch.setattr(grouping, "_linked", lambda found, links: found)
    passed = {name for name, question in DETOURS.items() if refusal(one_column, question, (1, "1e-6")) is None}
    assert {"a slice for each value", "a row of a public table that it picks", "other values for each key"} <= passed


@pytest.mark.parametrize("question", FILTERED)
def test_conditions_that_are_alike_for_all_groups_filter(one_column, question):
    one_column.explain(question, spend=(1, "1e-6"))


def test_a_limit_that_is_chosen_releases_no_groups():
    """The rows of units are counted under the question's condition, and their total by its size."""
    columns = COLUMNS | {"x": {"bounds": [0, 9], "group": False}}
    policy = {"tables": {"v": {"unit": "u", "rows": "each question", "columns": columns}}}
    table = pyarrow.table({"u": [1, 1, 2], "dx": ["flu", "hiv", "flu"], "x": [1, 2, 3], "kind": ["x"] * 3})
    data = nz.open({"v": table}, budget=10, policy=policy)
    for question in ("SELECT SUM(x) AS s FROM v WHERE dx = 'hiv'", "SELECT COUNT(*) AS n FROM v WHERE dx = 'hiv'"):
        data.explain(question, spend=1)
    with pytest.raises(InputError, match=r"v\.dx may be filtered but not grouped"):
        data.explain(nz.LeftOut(rows=[1, 2], of="SELECT * FROM v WHERE dx = 'hiv'"), spend=1)


def test_keys_of_such_a_column_are_not_sold():
    data = opened(columns={"ward": {"keys": "private", "group": False}})
    with pytest.raises(InputError, match=r"visits\.ward may be filtered but not grouped"):
        data.keys("ward", spend=(1, "1e-6"))
