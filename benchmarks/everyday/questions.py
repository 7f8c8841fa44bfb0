"""Forty everyday questions about a hospital, each in SQL, and the made-up tables they are about.

Nothing of Noisette is imported here: peers read this file in environments of their own.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["DIAGNOSES", "QUESTIONS", "WARDS", "Asked", "said", "tables"]

WARDS = ["north", "south", "east", "west"]
DIAGNOSES = ["J10", "J18", "I21", "I50", "S72", "O80"]


class Asked(NamedTuple):
    """A question: its number is its place; `python` says that SQL has no word for it."""

    what: str
    sql: str
    python: bool = False


QUESTIONS: tuple[Asked, ...] = (
    Asked("how many visits", "SELECT count(*) AS n FROM visits"),
    Asked("how many with a condition", "SELECT count(*) AS n FROM visits WHERE age >= 65 AND sex = 'F'"),
    Asked("how many patients", "SELECT count(DISTINCT patient) AS n FROM visits"),
    Asked("counts by a column with known values", "SELECT ward, count(*) AS n FROM visits GROUP BY ward"),
    Asked("counts by a column whose values nobody listed", "SELECT doctor, count(*) AS n FROM visits GROUP BY doctor"),
    Asked("counts by two columns", "SELECT ward, sex, count(*) AS n FROM visits GROUP BY ward, sex"),
    Asked("a sum", "SELECT sum(cost) AS total FROM visits"),
    Asked("averages by group", "SELECT ward, avg(age) AS mean FROM visits GROUP BY ward"),
    Asked("a standard deviation", "SELECT stddev(age) AS spread FROM visits"),
    Asked("a median", "SELECT median(age) AS middle FROM visits"),
    Asked("several quantiles at once", "SELECT quantile_cont(age, [0.25, 0.5, 0.75]) AS q FROM visits"),
    Asked("the largest value", "SELECT max(age) AS oldest FROM visits"),
    Asked("the most frequent value", "SELECT mode(diagnosis) AS usual FROM visits", python=True),
    Asked(
        "the first three groups",
        "SELECT diagnosis, count(*) AS n FROM visits GROUP BY diagnosis ORDER BY n DESC LIMIT 3",
    ),
    Asked("groups above a size", "SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING count(*) > 500"),
    Asked("the share for which something is true", "SELECT ward, avg(sex = 'F') AS women FROM visits GROUP BY ward"),
    Asked(
        "groups by CASE",
        "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, count(*) AS n "
        "FROM visits GROUP BY 1",
    ),
    Asked("a histogram", "SELECT width_bucket(age, 0, 100, 10) AS decade, count(*) AS n FROM visits GROUP BY 1"),
    Asked("every range of a column at once", "SELECT age, count(*) AS n FROM visits GROUP BY age", python=True),
    Asked("counts by month", "SELECT date_trunc('month', admitted) AS m, count(*) AS n FROM visits GROUP BY 1"),
    Asked("counts by day of the week", "SELECT extract(dow FROM admitted) AS d, count(*) AS n FROM visits GROUP BY 1"),
    Asked(
        "a length of stay",
        "SELECT avg(least(greatest(date_diff('day', admitted, discharged), 0), 30)) AS stay FROM visits",
    ),
    Asked(
        "the last thirty days",
        "SELECT count(*) AS n FROM visits WHERE admitted >= current_date - INTERVAL 30 DAY",
    ),
    Asked(
        "groups by the beginning of a code", "SELECT substr(diagnosis, 1, 1) AS c, count(*) AS n FROM visits GROUP BY 1"
    ),
    Asked("a text in any case", "SELECT count(*) AS n FROM visits WHERE diagnosis ILIKE 'j1%'"),
    Asked("a pattern", "SELECT count(*) AS n FROM visits WHERE regexp_matches(diagnosis, '^[IJ][0-9]+$')"),
    Asked("a logarithm", "SELECT avg(ln(1 + cost)) AS mean FROM visits"),
    Asked(
        "a public table's column as the group",
        "SELECT w.floor, count(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.ward GROUP BY w.floor",
    ),
    Asked(
        "a left join with a public table",
        "SELECT w.floor, count(*) AS n FROM visits AS v LEFT JOIN wards AS w ON v.ward = w.ward GROUP BY w.floor",
    ),
    Asked(
        "values that a public table lists",
        "SELECT count(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards WHERE floor = 1)",
    ),
    Asked(
        "values that a public table does not list",
        "SELECT count(*) AS n FROM visits WHERE ward NOT IN (SELECT ward FROM wards WHERE floor = 1)",
    ),
    Asked(
        "patients by number of visits",
        "SELECT k, count(*) AS n FROM (SELECT patient, least(count(*), 3) AS k FROM visits GROUP BY patient) AS p "
        "GROUP BY k",
    ),
    Asked(
        "two private tables joined on the patient",
        "SELECT v.ward, count(*) AS n FROM visits AS v JOIN people AS p ON v.patient = p.patient "
        "WHERE p.smoker GROUP BY v.ward",
    ),
    Asked(
        "a table that leads to the patient by a foreign key",
        "SELECT count(*) AS n FROM tests AS t JOIN visits AS v ON t.visit = v.visit WHERE v.ward = 'north'",
    ),
    Asked("totals beside the groups", "SELECT ward, sex, count(*) AS n FROM visits GROUP BY ROLLUP (ward, sex)"),
    Asked(
        "shares of the total",
        "SELECT ward, count(*) * 1.0 / sum(count(*)) OVER () AS share FROM visits GROUP BY ward",
    ),
    Asked("a correlation", "SELECT corr(age, cost) AS r FROM visits"),
    Asked("a slope", "SELECT regr_slope(cost, age) AS slope FROM visits"),
    Asked(
        "slices one below the other",
        "SELECT ward, count(*) AS n FROM (SELECT ward FROM visits WHERE age < 18 UNION ALL "
        "SELECT ward FROM visits WHERE age >= 65) AS both_ends GROUP BY ward",
    ),
    Asked("a made-up table in the form of the input", "SELECT ward, sex, age FROM visits", python=True),
)


def tables(size: int = 4000) -> dict[str, Any]:
    """Columns of visits, people, tests and wards, made by counting: the same on every machine, nobody behind them."""
    import datetime

    first = datetime.date(2026, 1, 1)
    visits: dict[str, list[Any]] = {
        "visit": list(range(size)),
        "patient": [i * 7 % (size // 2) for i in range(size)],
        "ward": [WARDS[i * 5 % 7 % 4] for i in range(size)],
        "sex": ["F" if i % 9 < 5 else "M" for i in range(size)],
        "age": [(i * 37 + i // 11) % 100 for i in range(size)],
        "cost": [float(30 * ((i * 37 + i // 11) % 100) + i * 911 % 2000) for i in range(size)],
        "diagnosis": [DIAGNOSES[i * 3 % 11 % 6] for i in range(size)],
        "doctor": [f"doctor {i % 13}" for i in range(size)],
        "admitted": [first + datetime.timedelta(days=i * 13 % 300) for i in range(size)],
        "discharged": [first + datetime.timedelta(days=i * 13 % 300 + i % 12) for i in range(size)],
    }
    people = {
        "patient": list(range(size // 2)),
        "smoker": [i % 4 == 0 for i in range(size // 2)],
    }
    tests = {"test": list(range(2 * size)), "visit": [i % size for i in range(2 * size)]}
    wards = {"ward": WARDS, "floor": [1, 1, 2, 3]}
    return {"visits": visits, "people": people, "tests": tests, "wards": wards}


def said(what: str, ask: Callable[[Any], Sequence[Any]], forms: Sequence[Any]) -> None:
    """Ask a question in its forms until one is answered, and print the answer's rows as one line of JSON."""
    found: Any = "there is no form for it"
    for form in forms:
        try:
            found = [[_plain(value) for value in row] for row in ask(form)]
            break
        except BaseException as refused:  # some peers end in a panic
            found = f"{type(refused).__name__}"
    print(json.dumps({"what": what, "found": found}), flush=True)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else str(value)
