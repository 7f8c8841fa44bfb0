"""SmartNoise SQL on PostgreSQL: each question in its own words where those differ."""

import re
import sys

import psycopg2
import snsql

sys.path.insert(0, sys.argv[1])
from questions import QUESTIONS, said

_DAY, _TEXT = {"type": "datetime"}, {"type": "string"}
METADATA = {
    "": {
        "hospital": {
            "visits": {
                "max_ids": 3,
                "visit": {"type": "int", "lower": 0, "upper": 3999},
                "patient": {"type": "int", "private_id": True},
                "age": {"type": "int", "lower": 0, "upper": 100},
                "cost": {"type": "float", "lower": 0, "upper": 5000},
                "admitted": _DAY,
                "discharged": _DAY,
                **dict.fromkeys(("ward", "sex", "diagnosis", "doctor"), _TEXT),
            },
            "people": {"max_ids": 1, "patient": {"type": "int", "private_id": True}, "smoker": {"type": "boolean"}},
            "wards": {"ward": _TEXT, "floor": {"type": "int", "private_id": False}},
        }
    }
}
_INNER = "FROM (SELECT patient, {} FROM visits) AS v"
FORMS = {
    "groups by CASE": [
        "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, count(*) AS n "
        "FROM visits GROUP BY who",
        "SELECT who, count(*) AS n "
        + _INNER.format("CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who")
        + " GROUP BY who",
    ],
    "a histogram": ["SELECT decade, count(*) AS n " + _INNER.format("floor(age / 10) AS decade") + " GROUP BY decade"],
    "counts by month": [
        "SELECT m, count(*) AS n " + _INNER.format("extract(MONTH FROM admitted) AS m") + " GROUP BY m"
    ],
    "the last thirty days": ["SELECT count(*) AS n FROM visits WHERE admitted >= '2026-10-02'"],
    "groups by the beginning of a code": [
        "SELECT c, count(*) AS n " + _INNER.format("left(diagnosis, 1) AS c") + " GROUP BY c"
    ],
    "a text in any case": ["SELECT count(*) AS n FROM visits WHERE lower(diagnosis) LIKE 'j1%'"],
    "the share for which something is true": [
        "SELECT ward, avg(f) AS women "
        + _INNER.format("ward, CASE WHEN sex = 'F' THEN 1 ELSE 0 END AS f")
        + " GROUP BY ward"
    ],
    "a length of stay": ["SELECT avg(stay) AS stay " + _INNER.format("discharged - admitted AS stay")],
    "a logarithm": ["SELECT avg(x) AS mean " + _INNER.format("ln(1 + cost) AS x")],
    "values that a public table lists": ["SELECT count(*) AS n FROM visits WHERE ward IN ('north', 'south')"],
    "values that a public table does not list": [
        "SELECT count(*) AS n FROM visits WHERE ward NOT IN ('north', 'south')"
    ],
}


def main() -> None:
    """Ask each form until one is answered."""
    connection = psycopg2.connect(sys.argv[2])
    privacy = snsql.Privacy(epsilon=1, delta=1e-7)
    reader = snsql.from_connection(connection, engine="postgres", privacy=privacy, metadata=METADATA)

    def ask(statement: str) -> list[object]:
        try:
            return list(
                reader.execute(re.sub(r"(FROM|JOIN) (visits|people|tests|wards)", r"\1 hospital.\2", statement))[1:]
            )
        except Exception:
            connection.rollback()
            raise

    for asked in QUESTIONS:
        said(asked.what, ask, [asked.sql, *FORMS.get(asked.what, [])])


main()
