"""`noisette synth`: a file in the form of the input, a report, and refusals before anything is spent."""

import json

import pyarrow.parquet
import pytest
from tests.cli.tools import CANARY, NUMBER, refused, well

COLUMNS = ("--columns", "ward,age")


@pytest.mark.slow
def test_a_table_and_its_quality(opened):
    shown = well("synth", "visits", *COLUMNS, "--spend", "1,1e-7", "-o", "made.parquet", "--report", "quality.html")
    rows = pyarrow.parquet.read_table("made.parquet")
    assert rows.column_names == ["ward", "age"]
    assert set(rows.column("ward").to_pylist()) <= {"north", "south", None}
    assert all(age is None or 0 <= age <= 110 for age in rows.column("age").to_pylist())
    assert f"{len(rows):,} synthetic rows of ward, age, in made.parquet" in shown
    assert "ward × age" in shown
    page = (opened / "quality.html").read_text(encoding="utf-8")
    assert "<!doctype html>" in page
    for text in (page, shown):
        assert CANARY not in text
        assert str(NUMBER) not in text
    assert json.loads(well("budget", "--json"))["charges"] == 1


@pytest.mark.slow
def test_it_is_the_same_table_again_for_free(opened):
    for name in ("one.csv", "two.csv"):
        well("synth", *COLUMNS, "--spend", "1,1e-7", "--most", "50", "-o", name)
    assert (opened / "one.csv").read_text() == (opened / "two.csv").read_text()
    assert json.loads(well("budget", "--json"))["charges"] == 1


def test_refusals_spend_nothing(settled):
    assert ".parquet" in refused(2, "synth", *COLUMNS, "--spend", "1,1e-7", "-o", "made.txt")
    assert "folder" in refused(2, "synth", *COLUMNS, "--spend", "1,1e-7", "-o", "nowhere/made.csv")
    assert ".html" in refused(2, "synth", *COLUMNS, "--spend", "1,1e-7", "-o", "made.csv", "--report", "made.pdf")
    assert "no declared values" in refused(2, "synth", "visits", "--spend", "1,1e-7", "-o", "made.csv")
    assert "WHERE" in refused(2, "synth", *COLUMNS, "--where", "age", "--spend", "1,1e-7", "-o", "made.csv")
    assert json.loads(well("budget", "--json"))["charges"] == 0
