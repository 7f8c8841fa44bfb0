"""Qrlew: rewrites each question into SQL that PostgreSQL runs."""

import re
import sys

import pyqrlew
import sqlalchemy
from pyqrlew import Dialect

sys.path.insert(0, sys.argv[1])
from questions import QUESTIONS, said

UNITS = [("visits", [], "patient"), ("people", [], "patient"), ("tests", [("visit", "visits", "visit")], "patient")]
FORMS = {
    "groups by CASE": [
        "SELECT who, count(*) AS n FROM (SELECT patient, CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' "
        "ELSE 'old' END AS who FROM visits) AS v GROUP BY who"
    ],
    "the share for which something is true": [
        "SELECT ward, avg(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) AS women FROM visits GROUP BY ward"
    ],
    "counts by month": ["SELECT extract(MONTH FROM admitted) AS m, count(*) AS n FROM visits GROUP BY m"],
    "the last thirty days": ["SELECT count(*) AS n FROM visits WHERE admitted >= DATE '2026-10-02'"],
    "a length of stay": ["SELECT avg(discharged - admitted) AS stay FROM visits"],
    "values that a public table lists": ["SELECT count(*) AS n FROM visits WHERE ward IN ('north', 'south')"],
    "values that a public table does not list": [
        "SELECT count(*) AS n FROM visits WHERE ward NOT IN ('north', 'south')"
    ],
    "a pattern": ["SELECT count(*) AS n FROM visits WHERE regexp_contains(diagnosis, '^[IJ][0-9]+$')"],
    "slices one below the other": [],
}


def main() -> None:
    """Ask each form until one is answered."""
    engine = sqlalchemy.create_engine(sys.argv[2].replace("postgresql://", "postgresql+psycopg2://"))
    data = pyqrlew.Dataset.from_database(
        name="hospital", engine=engine, schema_name="hospital", ranges=True, possible_values_threshold=20
    )

    def ask(statement: str) -> list[object]:
        named = re.sub(r"(FROM|JOIN) (visits|people|tests|wards)", r"\1 hospital.\2", statement)
        private = data.relation(named, Dialect.PostgreSql).rewrite_with_differential_privacy(
            dataset=data,
            privacy_unit=UNITS,
            epsilon_delta={"epsilon": 1.0, "delta": 1e-7},
            max_multiplicity=3.0,
            max_multiplicity_share=1.0,
        )
        text = private.relation().to_query(Dialect.PostgreSql)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sqlalchemy.text(text.replace(":", "\\:")))]

    for asked in QUESTIONS:
        said(asked.what, ask, [asked.sql, *FORMS.get(asked.what, [])])


main()
