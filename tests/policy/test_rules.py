"""Rules joined with how a table is stored."""

import datetime
from fractions import Fraction

import pytest

from noisette.errors import InputError
from noisette.policy.rules import ColumnRules, TableRules, column_rules, table_rules
from noisette.policy.tables import described, type_of
from noisette.query.schema import Limits

DAY = datetime.date(1970, 1, 11)


def one(stored, **rules):
    made = table_rules({"columns": {"x": rules}}, "tables.t")
    return described("t", made, {"x": stored}).column("x").kind


def test_types_come_from_storage():
    assert type_of("DECIMAL(18,3)") == "real"
    assert type_of("ENUM('a', 'b')") == "text"
    unsupported = (
        "BIGINT[]",
        "DECIMAL(18,3)[]",
        "ENUM('a')[3]",
        "BLOB",
        "STRUCT(a INTEGER)",
        "TIMESTAMP WITH TIME ZONE",
    )
    assert [type_of(stored) for stored in unsupported] == [None] * 6


def test_bounds_are_exact_numbers():
    assert (one("BIGINT", bounds=[0, "120"]).low, one("DOUBLE", bounds=[0, 0.1]).high) == (0, Fraction(1, 10))
    assert one("DATE", bounds=[DAY, datetime.date(2020, 1, 1)]).low == 10
    assert one("TIMESTAMP", bounds=[DAY, datetime.date(2020, 1, 1)]).low == 10 * 86_400_000_000
    assert (
        one("TIMESTAMP", bounds=[datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 1)]).low == -86_400_000_000
    )


def test_integers_may_be_declared_real_and_have_a_grid():
    assert one("BIGINT", type="real", bounds=[0, 1]).type == "real"
    assert one("BIGINT", grid=10, bounds=[0, 100]).grid == 10
    assert one("BIGINT").grid == 1


@pytest.mark.parametrize(
    ("stored", "rules", "message"),
    [
        ("BOOLEAN", {"type": "integer"}, "x.type in the policy says integer, but the column is stored as boolean."),
        ("VARCHAR", {"bounds": [0, 1]}, "x.bounds in the policy are for numbers and dates, but the column holds text"),
        ("VARCHAR", {"grid": 1}, "x.grid in the policy is for numbers only"),
        ("VARCHAR", {"keys": [1]}, "x.keys in the policy must be of the column's type, text."),
        ("BIGINT", {"keys": [True]}, "x.keys in the policy must be of the column's type, integer."),
        ("BIGINT", {"keys": ["a"]}, "x.keys in the policy must be of the column's type, integer."),
        ("DATE", {"keys": [datetime.datetime(2020, 1, 1)]}, "x.keys in the policy must be of the column's type, date."),
        ("TIMESTAMP", {"keys": [DAY]}, "x.keys in the policy must be of the column's type, timestamp."),
        ("BIGINT", {"bounds": ["0.5", 3]}, "x.bounds in the policy must be whole numbers"),
        ("BIGINT", {"grid": "0.5"}, "x.grid in the policy must be a whole number"),
        ("BIGINT", {"bounds": [DAY, datetime.date(2020, 1, 1)]}, "x.bounds in the policy must be of the column's type"),
        ("DATE", {"bounds": [0, 1]}, "x.bounds in the policy must be of the column's type, date."),
        (
            "DATE",
            {"bounds": [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)]},
            "x.bounds in the policy must be dates without a time",
        ),
        ("BIGINT", {"bounds": [0, 2**60]}, "x.bounds in the policy must stay within 2^52 steps"),
        ("DOUBLE", {"bounds": [0, 10**9], "grid": "1e-9"}, "x.bounds in the policy must stay within 2^52 steps"),
        ("DOUBLE", {"bounds": ["0.1", "0.2"], "grid": 1}, "x in the policy cannot be kept: there is no value between"),
        ("BIGINT", {"bounds": [0, 2], "keys": [1, 3]}, "x.keys in the policy must lie within the bounds"),
        ("BLOB", {}, "x in the policy names a column stored as BLOB, which no question can use"),
        ("VARCHAR[]", {}, "x in the policy names a column stored as VARCHAR[], which no question can use"),
    ],
)
def test_what_does_not_fit_is_named(stored, rules, message):
    with pytest.raises(InputError) as caught:
        one(stored, **rules)
    assert f"tables.t.columns.{message}" in str(caught.value)


def test_columns_that_are_not_there_are_named():
    with pytest.raises(
        InputError, match=r"tables\.t\.columns\.agee in the policy names a column .* did you mean age\?"
    ):
        described("t", TableRules(columns={"agee": ColumnRules()}), {"age": "BIGINT"})
    with pytest.raises(InputError, match=r"tables\.t\.unit in the policy names a column .* there may be age\."):
        described("t", TableRules(unit="patient"), {"age": "BIGINT"})
    with pytest.raises(InputError, match=r"tables\.t\.unit in the policy names a column stored as BLOB"):
        described("t", TableRules(unit="patient"), {"patient": "BLOB"})


def test_what_cannot_be_asked_is_left_out():
    table = described("t", TableRules("p", Limits(rows=3)), {"p": "BIGINT", "tags": "VARCHAR[]", "raw": "BLOB"})
    assert [column.name for column in table.columns] == ["p"]


def test_today_is_a_date():
    assert table_rules({"today": datetime.date(2026, 1, 31)}, "tables.t").today == datetime.date(2026, 1, 31)
    for wrong in ("2026-01-31", datetime.datetime(2026, 1, 31), 5):
        with pytest.raises(InputError, match=r"tables\.t\.today in the policy must be a date without quotes"):
            table_rules({"today": wrong}, "tables.t")


def test_rows_per_value_is_a_whole_number_of_a_private_column():
    assert column_rules({"rows_per_value": 3}, "ward").rows_per_value == 3
    for wrong in (0, -1, 1.5, "3 rows", True):
        with pytest.raises(InputError, match="rows_per_value in the policy"):
            column_rules({"rows_per_value": wrong}, "ward")
    with pytest.raises(InputError, match=r"leave ward\.rows_per_value out"):
        table_rules({"public": True, "columns": {"ward": {"rows_per_value": 3}}}, "tables.wards")
