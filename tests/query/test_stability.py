"""How many rows of a unit a relation has: sub-queries by the unit and another key, on few tables chosen by hand."""

from dataclasses import replace
from fractions import Fraction

import pyarrow
import pytest
from tests.query.worlds import Worlds, faults, measured, replaced, table

from noisette.privacy import Neighbours
from noisette.query import stability
from noisette.query.kind import Kind
from noisette.query.schema import Limits

WARDS, MOST = ("a", "b", "c", "d"), 3
LIMITS = Limits(rows=MOST)
ONE, OTHER = [tuple((u, ward, 2) for ward in WARDS[:MOST]) for u in (1, 2)]
COUNTED = "{w} count(*), sum(least(n, 2)), avg(least(n, 2)) FROM (SELECT u, "
QUESTIONS = {
    "one more key": f"SELECT {COUNTED}ward, count(*) AS n{{m}} FROM v GROUP BY u, ward) AS s",
    "a computed key": f"SELECT {COUNTED}ward < 'c' AS k, x, count(*) AS n{{m}} FROM v GROUP BY u, k, x) AS s",
    "grouped again": "SELECT {w} ward, count(*), count(distinct u) FROM "
    "(SELECT u, ward, count(*) AS n{m} FROM v GROUP BY u, ward) AS s{g}ward",
    "within another one": f"SELECT {COUNTED}ward, count(*) AS n{{m}} FROM "
    "(SELECT u, ward, x{v} FROM v WHERE x > 0) AS t GROUP BY u, ward) AS s",
}


def hospital(limits):
    """No unit, one unit, and two units with as many rows as are retained, each in a ward of its own."""
    columns = {"u": Kind("integer", nullable=False), "ward": Kind("text", keys=WARDS)}
    x = Kind("integer", Fraction(0), Fraction(2), Fraction(1))
    v = table("v", {**columns, "x": x}, unit="u", limits=limits)
    types = {"u": pyarrow.int64(), "ward": pyarrow.string(), "x": pyarrow.int64()}
    two = ((2, "d", 0), *OTHER[1:])
    return Worlds({"v": v}, {"v": types}, [{"v": rows} for rows in ((), ONE, OTHER, (*ONE, *OTHER), two)], {})


ADDED = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4)]
"""Pairs of tables of which the first has one unit less."""


def moved_too_far(question, limits=LIMITS):
    prepared, arrays = measured(question, hospital(limits))
    found = faults(prepared, arrays, ADDED, Neighbours.ADD_REMOVE)
    return found + faults(prepared, arrays, replaced(ADDED), Neighbours.REPLACE)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_unit_has_a_row_for_each_of_its_other_keys(name):
    assert moved_too_far(QUESTIONS[name]) == []


@pytest.mark.parametrize("limits", [Limits(groups=MOST, rows_per_group=1), Limits(rows=2)], ids=str)
def test_fewer_rows_are_retained_and_stated(limits):
    assert moved_too_far(QUESTIONS["one more key"], limits) == []


def test_one_row_for_each_unit_is_noticed(monkeypatch):
    """A twin that forgets the other key."""
    real = stability._per_unit
    monkeypatch.setattr(stability, "_per_unit", lambda *given: replace(real(*given), rows=1))
    assert {"rows", "sum"} <= {what for what, *_ in moved_too_far(QUESTIONS["one more key"])}
