"""Joins of rows of different units: every source retains the rows that the specification retains."""

import pyarrow
import pytest
from tests.contracts.test_sources import LATE, SECRET, SOURCES, kind, maker, specified

from noisette.query.canonical import canonical
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse

WARD, STAY = Kind("text"), kind("integer", 0, 9, 1)
WARDS = [None, "a", "b", "b", "c", "A", "b", "b", "a", "c", "b"]
VISITS = {"person": [1, 1, 1, 2, 2, 3, 4, None, 5, 5, 6], "ward": WARDS, "stay": [3, 1, 4, 1, 5, 9, 2, 6, None, 3, 4]}
SHIFTS = {"person": [1, 2, 3, 4, 5, 6, 7], "ward": ["b", "b", "c", "b", None, "a", "b"], "day": [1, 2, 2, 1, 2, 1, 2]}
TABLES = {"visits": pyarrow.table(VISITS), "shifts": pyarrow.table(SHIFTS)}

HERE = [source for source in SOURCES if source not in ("memory", "pysail", *LATE)]  # Spark refuses rows_per_value
JOINED = "FROM visits v JOIN shifts s ON v.ward = s.ward"
QUESTIONS = {
    "all": f"SELECT count(*), sum(stay), count(DISTINCT day) {JOINED}",
    "groups": f"SELECT day, count(*), avg(stay) {JOINED} GROUP BY day",
    "conditions": f"SELECT day, count(*), sum(stay) {JOINED} WHERE stay > 1 AND stay > day GROUP BY day",
    "computed": "SELECT count(*), sum(long) FROM (SELECT ward, least(stay, 2) AS long FROM visits) v "
    "JOIN shifts s ON v.ward = s.ward",
    "itself": "SELECT count(*), sum(a.stay) FROM visits a JOIN visits b ON a.ward = b.ward WHERE a.stay < b.stay",
    "two columns": "SELECT count(*) FROM shifts a JOIN shifts b ON a.ward = b.ward AND a.day = b.day",
    "grouped": "SELECT count(*), sum(least(n, 3)) FROM (SELECT person, ward, count(*) AS n FROM visits "
    "GROUP BY person, ward) v JOIN shifts s ON v.ward = s.ward",
}


def schema(per_value=2, rows=2):
    """Visits and shifts of persons, with a number of rows for each ward."""

    def table(name, columns):
        found = tuple(Column(n, k, rows_per_value=per_value if n == "ward" else None) for n, k in columns.items())
        return Table(name, found, unit="person", limits=Limits(rows=rows))

    visits = table("visits", {"person": Kind("integer"), "ward": WARD, "stay": STAY})
    day = kind("integer", 1, 2, 1, nullable=False)
    return {"visits": visits, "shifts": table("shifts", {"person": Kind("integer"), "ward": WARD, "day": day})}


def answer(source, text, tables):
    prepared = prepare(canonical(parse(text, tables)), tables, of_two_units=True)
    return [m.tolist() for m in source.aggregate(prepared.request, tables, SECRET).measures]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("source", HERE)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_source_retains_the_same_rows(name, source, request):
    make, hash_of = maker(source, request)
    for per_value, rows in ((1, 1), (2, 2), (3, 1), (100, 100)):
        tables = schema(per_value, rows)
        assert answer(make(TABLES), QUESTIONS[name], tables) == answer(
            specified(TABLES, hash_of), QUESTIONS[name], tables
        )


@pytest.mark.parametrize("source", [*HERE, "memory"])
def test_rows_of_each_unit_and_of_each_value_are_limited(source, request):
    """Wards a, b and c: of visits 2, 4 and 2 rows, of shifts 1, 4 and 1; nobody's row and NULL meet nobody."""
    make, _ = maker(source, request)
    found = {limits: answer(make(TABLES), QUESTIONS["all"], schema(*limits))[0] for limits in ((100, 100), (2, 100))}
    assert found == {(100, 100): [2 * 1 + 4 * 4 + 2 * 1], (2, 100): [2 * 1 + 2 * 2 + 2 * 1]}
    wide = pyarrow.table({"person": [1] * 5, "ward": list("vwxyz"), "stay": [1] * 5})
    others = pyarrow.table({"person": [2, 3, 4, 5, 6], "ward": list("vwxyz"), "day": [1] * 5})
    assert answer(make({"visits": wide, "shifts": others}), QUESTIONS["all"], schema(2, 1))[0] == [1]
