"""Tables that the tests of the front ends ask about."""

from fractions import Fraction

from noisette.query.kind import Kind
from noisette.query.schema import Column, Limits, Schema, Table


def _number(low: int, high: int) -> Kind:
    return Kind("integer", Fraction(low), Fraction(high), Fraction(1))


VISITS = Table(
    "visits",
    (
        Column("patient_id", Kind("text", nullable=False)),
        Column("ward", Kind("text", keys=("A", "B", "C"))),
        Column("Age", _number(0, 120)),
        Column("cost", Kind("real", Fraction(0), Fraction(1000), Fraction(1, 100))),
        Column("change", _number(-10, 10)),
        Column("smoker", Kind("boolean")),
        Column("visited", Kind("date", Fraction(18262), Fraction(19722))),
        Column("entered", Kind("timestamp")),
    ),
    unit="patient_id",
    limits=Limits(rows=10),
)
LABS = Table(
    "labs",
    (Column("patient_id", Kind("text", nullable=False)), Column("value", _number(0, 50))),
    unit="patient_id",
    limits=Limits(rows=5),
)
WARDS = Table(
    "wards",
    (Column("ward", Kind("text", keys=("A", "B", "C"))), Column("floor", _number(0, 5))),
    public=True,
    repeats={"ward": 1},
)
EVENTS = Table("events", (Column("hour", _number(0, 23)),))

SCHEMA: Schema = {table.name: table for table in (VISITS, LABS, WARDS, EVENTS)}
