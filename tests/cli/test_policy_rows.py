"""`noisette policy check --rows`, and what `noisette open` says of bytes: for the owner, and free of charge."""

import datetime
import json

import pyarrow
import pyarrow.parquet
import pytest
from tests.cli.tools import CANARY, NUMBER, refused, run, texts, well

from noisette.curator.row_check import FOR_THE_OWNER

MESSY = """[budget]
epsilon = "4"
[tables.messy]
unit = "id"
rows = 1
[tables.messy.columns]
id = { type = "integer" }
admitted = { type = "date", bounds = [2024-01-01, 2024-12-31] }
ward = { type = "text", keys = ["Orthopädie", "Chirurgie", "Pädiatrie"] }
"""
WARDS = ["Orthopädie", "Chirurgie", "Pädiatrie"]


@pytest.fixture
def messy(here):
    """German dates, Latin-1 below an ASCII header, semicolons in one of two files, line breaks within quotes."""
    rows = [f'{i};{1 + i % 28:02}.{1 + i % 12:02}.2024;{WARDS[i % 3]};"a\nb"' for i in range(30)]
    (here / "messy.csv").write_bytes("\n".join(["id;admitted;ward;note", *rows, ""]).encode("latin-1"))
    (here / "p.toml").write_text(MESSY, "utf-8")
    return here


def replaced(file, old, new):
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def counted(*arguments):
    [table] = json.loads(well("policy", "check", *arguments, "--rows", "--json"))["rows"]["tables"]
    return table["rows"], {(one["column"], one["what"].partition(":")[0]): one["rows"] for one in table["findings"]}


@pytest.mark.slow
def test_a_messy_file_step_by_step(messy):
    """Each line that the check names takes one finding away, until nothing is left."""
    policy, check = messy / "p.toml", ("p.toml", "--data", "messy.csv")
    assert 'let its policy say delimiter = ";"' in refused(2, "policy", "check", *check)
    replaced(policy, "rows = 1", 'rows = 1\ndelimiter = ";"')
    rows, found = counted(*check)
    assert rows == 60
    assert found["admitted", "cannot be read as date"] == 30
    assert found[None, "with an odd number of quotes"] == 60
    assert found["ward", "none of the 3 declared keys"] == found[None, 'with bytes that are not UTF-8, so "?"'] == 20
    replaced(policy, "rows = 1", 'rows = 1\nline_breaks = true\nencoding = "latin-1"')
    assert counted(*check) == (30, {("admitted", "cannot be read as date"): 30})
    replaced(policy, 'type = "date"', 'type = "date", format = "%d.%m.%Y"')
    assert counted(*check) == (30, {})
    assert "messy: 30 rows of 30 units, all of which meet the policy" in well("policy", "check", *check, "--rows")


@pytest.mark.slow
def test_what_is_in_order_is_answered(messy):
    declared = 'rows = 1\ndelimiter = ";"\nline_breaks = true\nencoding = "latin-1"'
    replaced(messy / "p.toml", "rows = 1", declared)
    replaced(messy / "p.toml", 'type = "date"', 'type = "date", format = "%d.%m.%Y"')
    well("open", "messy.csv", "--policy", "p.toml")
    asked = "ask", "SELECT ward, count(*) AS n FROM messy GROUP BY ward", "--spend", "4", "--json"
    assert {row["ward"]: round(row["n"], -1) for row in json.loads(well(*asked))["rows"]} == dict.fromkeys(
        WARDS, 10
    ) | {None: 0}


@pytest.mark.slow
def test_what_people_see(messy):
    replaced(messy / "p.toml", "rows = 1", 'rows = 1\ndelimiter = ";"')
    shown = well("policy", "check", "p.toml", "--data", "messy.csv", "--rows")
    assert FOR_THE_OWNER in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["60", "100.0%", "with"] in [line[:3] for line in lines]
    assert ["30", "50.0%", "admitted", "cannot", "be", "read"] in [line[:6] for line in lines]
    assert "99.99.9999" in shown
    assert "p.toml is in order, and fits the columns of the data.\n" in shown
    plain = well("policy", "check", "p.toml", "--data", "messy.csv")
    assert "rows were not looked at: say --rows" in plain
    assert FOR_THE_OWNER not in plain


def test_years_and_limits(here):
    """A third year, which the bounds do not know, and which makes the limit too small for every year."""
    years = [2023, 2024, 2025]
    days = [datetime.date(year, 1, 1) for year in years for _ in range(8)]
    frame = pyarrow.table({"patient_id": [i % 4 for i in range(24)], "day": days})
    pyarrow.parquet.write_table(frame, here / "visits.parquet")
    (here / "p.toml").write_text(
        '[budget]\nepsilon = "2"\n[tables.visits]\nunit = "patient_id"\nrows = 4\n'
        "[tables.visits.columns.day]\nbounds = [2023-01-01, 2024-12-31]\n"
    )
    shown = well("policy", "check", "p.toml", "--data", "visits.parquet", "--rows")
    lines = [line.split() for line in shown.splitlines()]
    for row in (["2023", "8", "0", "3"], ["2024", "8", "0", "3"], ["2025", "8", "8", "3"]):
        assert row in lines
    assert "beyond rows = 4: 4 of 4 units have more" in shown


def test_a_check_of_rows_is_free_and_leaves_no_trace(opened):
    before, budget = texts(opened), well("budget", "--json")
    shown = well("policy", "check", "--rows") + well("policy", "check", "--rows", "--json")
    assert texts(opened) == before
    assert well("budget", "--json") == budget
    assert CANARY not in shown
    assert str(NUMBER) not in shown


@pytest.mark.slow
def test_problems_come_first_and_repeated_keys_are_counted(here):
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 1, 2]}), here / "people.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 3]}), here / "stays.parquet")
    text = '[budget]\nepsilon = "2"\n[tables.people]\nunit = "id"\nrows = 1\n[tables.stays]\nrows = 2\n'
    (here / "p.toml").write_text(f'{text}unit = {{ through = "people", on = {{ id = "id" }} }}\n')
    check = "policy", "check", "p.toml", "--data", "people.parquet", "--data", "stays.parquet", "--rows"
    found = run(*check)
    assert found.exit_code == 2
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("line 8: tables.stays.unit.on in the policy refers to several rows of people")
    assert "a key that other rows have, too" in found.stdout
    (here / "p.toml").write_text(f'{text}unit = {{ through = "people", on = {{ id = "id" }} }}\nrowz = 1\n')
    found = run(*check)
    assert (found.exit_code, found.stdout) == (2, "")  # a policy that cannot be read counts nothing


def test_rows_need_data(here):
    assert "Name the data whose rows are counted" in refused(2, "policy", "check", "rules.toml", "--rows")


# Bytes that are not of the encoding


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=str)
def test_opening_says_that_bytes_are_not_of_the_encoding(here, more):
    (here / "lat.csv").write_bytes("id,ward\n1,Orthopädie\n".encode("latin-1"))
    found = run("open", "lat.csv", "--budget", "1", *more)
    assert found.exit_code == 0
    assert found.stderr.startswith("Some rows of lat are not in UTF-8, and question marks stand for such bytes")
    assert 'encoding = "latin-1" or "windows-1252" may be it' in found.stderr
    assert "Orthop" not in found.output
    replaced(here / "lat.policy.toml", "[tables.lat]\n", '[tables.lat]\nencoding = "latin-1"\n')
    assert run("open", "lat.csv", *more).stderr == ""
