"""Rules joined with how a table is stored."""

import datetime
from fractions import Fraction

import pytest

from noisette.errors import InputError
from noisette.policy.rules import ColumnRules, TableRules, column_rules, table_rules
from noisette.policy.tables import described, type_of
from noisette.query.schema import Limits, RowsPerPeriod, protected

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


# Rows in each calendar period

YEARS = {"most": 8, "per": "year", "of": "x"}
BETWEEN = {"bounds": [datetime.date(2020, 1, 1), datetime.date(2022, 12, 31)]}


def dated(rows, stored="DATE", column=None, **more):
    rules = {"unit": "u", "rows": rows, "columns": {"x": BETWEEN if column is None else column}, **more}
    return described("t", table_rules(rules, "tables.t"), {"u": "BIGINT", "x": stored})


@pytest.mark.parametrize("stored", ["DATE", "TIMESTAMP", "TIMESTAMP_NS"])
def test_rows_in_each_period_are_read(stored):
    table = dated(YEARS, stored)
    assert (table.per_period, table.limits) == (RowsPerPeriod(8, "year", "x"), Limits())
    assert protected(table) == "all rows of one u are protected together (rows 8 per year of x)"


def test_a_date_that_is_stored_as_text_is_declared_as_one():
    assert dated(YEARS, "VARCHAR", {"type": "date", **BETWEEN}).per_period is not None


LONG = {"bounds": [datetime.date(1900, 1, 1), datetime.date(2022, 12, 31)]}
WRONG = [
    ({"rows": {**YEARS, "per": "decade"}}, "rows.per in the policy must be one of year, quarter, month, week, day."),
    ({"rows": {**YEARS, "per": ["year"]}}, "rows.per in the policy must be one of year, quarter, month, week, day."),
    ({"rows": {**YEARS, "most": 0}}, "rows.most in the policy must be a whole number, at least 1."),
    ({"rows": {**YEARS, "most": 1.5}}, "rows.most in the policy must be a whole number, at least 1."),
    ({"rows": {**YEARS, "of": 3}}, "rows.of in the policy must be the name of a column of dates."),
    ({"rows": {**YEARS, "of": "y"}}, "rows.of in the policy names a column that the data does not have"),
    ({"rows": {**YEARS, "of": "u"}}, "rows.of in the policy must name a column of dates, and u holds integer."),
    ({"rows": {"most": 8, "per": "year"}}, "rows in the policy needs of: write { most = 8,"),
    ({"rows": {**YEARS, "least": 1}}, "rows.least in the policy is unknown"),
    ({"rows": {}}, "rows in the policy needs most: write { most = 8,"),
    ({"rows": YEARS, "column": {}}, "rows.of in the policy names x, which has no declared bounds: write bounds = ["),
    ({"rows": YEARS, "column": {"bounds": "private"}}, "rows.of in the policy names x, which has no declared bounds"),
    ({"rows": {**YEARS, "per": "day"}, "column": LONG}, "rows.per in the policy makes more than 10,000 periods"),
    ({"rows": {**YEARS, "most": 2**40}}, "rows.most in the policy allows more than 2^40 rows of one unit in 3 periods"),
    ({"rows": YEARS, "groups": 3}, "groups in the policy cannot stand beside rows in each period: leave it out."),
    ({"rows": YEARS, "rows_per_group": 3}, "rows_per_group in the policy cannot stand beside rows in each period"),
    ({"rows": YEARS, "most_rows": 8}, 'most_rows in the policy is for rows = "each question" alone: leave it out.'),
    ({"rows": YEARS, "unit": None}, "rows in the policy limits nobody"),
    (
        {"rows": YEARS, "public": True, "unit": None},
        "t in the policy is public, so it protects nobody: leave rows out.",
    ),
    ({"rows": "often"}, 'rows in the policy must be a whole number, "private" or "each question", or { most = 8,'),
]


@pytest.mark.parametrize(("rules", "message"), WRONG, ids=[message[:60] for _, message in WRONG])
def test_what_is_no_limit_per_period_is_refused(rules, message):
    with pytest.raises(InputError) as caught:
        dated(**rules)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
