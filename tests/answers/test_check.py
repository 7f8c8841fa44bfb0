"""A release's claim can be checked from its record alone, and a false one is found out."""

import json
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.answers import check
from noisette.errors import InputError, PrivacyError

ROWS = 2_000
VISITS = pyarrow.table(
    {
        "p": np.arange(ROWS) // 2,
        "age": np.arange(ROWS) % 90,
        "ward": ["north", "south"] * (ROWS // 2),
        "note": ["cough", "cold"] * (ROWS // 2),
    }
)
COLUMNS = {"age": {"bounds": [0, 100], "nullable": False}, "ward": {"keys": ["north", "south"], "nullable": False}}
ASKED = [
    ("SELECT ward, count(*) AS n, avg(age) AS a FROM visits GROUP BY ward", "1/3"),
    ("SELECT ward, sum(age) AS s, stddev(age) AS d FROM visits GROUP BY ward", nz.Approx(1, "1e-9")),
    ("SELECT count(*) AS n, count(DISTINCT p) AS m FROM visits", nz.ZCDP("0.1")),
    ("SELECT note FROM visits GROUP BY note", nz.Approx(1, "1e-9")),
    ("SELECT note, count(*) AS n, avg(age) AS a FROM visits GROUP BY note", nz.Approx(1, "1e-9")),
    ("SELECT note, count(DISTINCT p) AS n FROM visits GROUP BY note", nz.Approx(1, "1e-9")),
    ("SELECT ward, median(age) AS m, count(*) AS n FROM visits GROUP BY ward", 1),
]


@pytest.fixture(scope="module", params=["add/remove", "replace"])
def records(request):
    budget = {"epsilon": 100, "delta": "1e-6", "neighbours": request.param}
    rules = {"unit": "p", "groups": 2, "rows_per_group": 2, "columns": COLUMNS}
    visits = nz.open({"visits": VISITS}, policy={"budget": budget, "tables": {"visits": rules}})
    answers = [visits.sql(text, spend=spend) for text, spend in ASKED]
    return [(answer, answer.to_json()) for answer in answers]


@pytest.mark.parametrize("i", range(len(ASKED)), ids=[text[:40] for text, _ in ASKED])
def test_the_claim_follows_from_the_record(records, i):
    answer, text = records[i]
    found = check(text)
    assert repr(found) == repr(answer.guarantee)
    assert all(part["sensitivity"]["l0"] for part in json.loads(text)["mechanisms"])


def weaker(record):
    """Twins that claim too much: less noise, more distance, a mechanism more, a smaller number."""
    yield lambda r: r["mechanisms"].append(r["mechanisms"][0])
    yield lambda r: r["guarantee"].update(epsilon=str(Fraction(r["guarantee"]["epsilon"]) * Fraction(999, 1000)))
    if "scale" in record["mechanisms"][0]["parameters"]:
        yield lambda r: r["mechanisms"][0]["parameters"].update(
            scale=str(Fraction(r["mechanisms"][0]["parameters"]["scale"]) * Fraction(4, 5))
        )


def test_false_claims_are_found_out(records):
    tried = 0
    for _, text in records:
        if "epsilon" not in json.loads(text)["guarantee"]:
            continue
        for change in weaker(json.loads(text)):
            record = json.loads(text)
            change(record)
            with pytest.raises(PrivacyError, match="claims more"):
                check(json.dumps(record))
            tried += 1
    assert tried >= 10


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '{"format": 2}', '{"format": 1, "mechanisms": []}'])
def test_what_is_no_record(text):
    with pytest.raises(InputError, match="not the record of a release"):
        check(text)


def test_a_mechanism_that_is_not_known(records):
    record = json.loads(records[0][1])
    record["mechanisms"][0]["mechanism"] = "Magic"
    with pytest.raises(InputError, match="No mechanism here is called Magic"):
        check(json.dumps(record))
