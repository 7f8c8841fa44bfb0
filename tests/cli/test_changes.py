"""The ways that are documented for data and declarations that change: each keeps one ledger, and what was spent."""

import json

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.cli.tools import refused, table, well

TOTAL = "SELECT count(*) AS n FROM visits"
COST = "SELECT avg(cost) AS c FROM visits"


def spent():
    return json.loads(well("budget", "--json"))["spent"]["epsilon"]


def charges():
    return json.loads(well("budget", "--json"))["charges"]


def edit(folder, old, new):
    rules = folder / "rules.toml"
    assert old in rules.read_text()
    rules.write_text(rules.read_text().replace(old, new))


def acts():
    entries = json.loads(well("ledger", "show", "--last", "99", "--json"))["entries"]
    return [(entry["act"], entry["why"]) for entry in entries if entry["kind"] == "act"]


# Declarations


@pytest.mark.slow
@pytest.mark.parametrize("file", ["visits.csv", "visits.parquet"])
def test_types_are_declarations_before_and_after_the_first_question(here, file):
    well("open", file, "--policy", "rules.toml")
    edit(here, 'cost = { type = "integer" }', 'cost = { type = "real", bounds = [0, 9], grid = "0.5" }')
    well("ask", COST, "--spend", "0.5")
    edit(here, '{ type = "real", bounds = [0, 9], grid = "0.5" }', '{ type = "integer", bounds = [0, 9] }')
    well("ask", TOTAL, "--spend", "0.5")
    well("ask", COST, "--spend", "0.5")  # the same words, another question: it is paid
    assert (charges(), spent()) == (3, "3/2")
    assert [act for act, _ in acts()] == ["data"]


@pytest.mark.slow
def test_columns_of_a_csv_file_may_be_declared_later(here):
    edit(here, 'cost = { type = "integer" }\n', "")
    well("open", "visits.csv", "--policy", "rules.toml")
    well("ask", TOTAL, "--spend", "0.5")
    with (here / "rules.toml").open("a") as rules:
        rules.write('cost = { type = "integer", bounds = [0, 9] }\n')
    well("ask", COST, "--spend", "0.5")
    assert charges() == 2


@pytest.mark.slow
def test_another_column_or_unit_is_not_a_declaration_alone(here):
    well("open", "visits.csv", "--policy", "rules.toml")
    well("ask", TOTAL, "--spend", "0.5")
    edit(here, 'unit = "patient_id"', 'unit = "ward"')
    assert "The data changed since the ledger's first question" in refused(4, "ask", TOTAL, "--spend", "0.5")
    edit(here, 'unit = "ward"', 'unit = "patient_id"')
    pyarrow.csv.write_csv(table().append_column("more", pyarrow.array([1] * 121)), here / "visits.csv")
    assert "noisette ledger rebind --why" in refused(4, "ask", TOTAL, "--spend", "0.5")


# Data


def without(patient):
    rows = table()
    return rows.filter(pyarrow.compute.not_equal(rows["patient_id"], patient))


@pytest.mark.slow
def test_erasure(opened):
    before = well("ask", TOTAL, "--spend", "0.5")
    assert well("ask", TOTAL, "--spend", "0.5") == before
    pyarrow.parquet.write_table(without("p07"), opened / "visits.parquet")
    well("ask", TOTAL, "--spend", "0.5")
    assert (charges(), spent()) == (2, "1")  # both states count against one budget
    assert [act for act, _ in acts()] == ["data"]


@pytest.mark.slow
def test_a_yearly_extract_with_another_column(opened):
    well("ask", TOTAL, "--spend", "0.5")
    extract = table().append_column("year", pyarrow.array([2026] * 121))
    pyarrow.parquet.write_table(extract, opened / "visits.parquet")
    assert "noisette ledger rebind --why" in refused(4, "ask", TOTAL, "--spend", "0.5")
    well("ledger", "rebind", "--why", "the extract of 2026 has a year")
    well("ask", TOTAL, "--spend", "0.5")
    assert (charges(), spent()) == (2, "1")
    assert [why for _, why in acts()][1] == "the extract of 2026 has a year"
    well("ledger", "verify")


def test_data_that_moved(opened):
    well("ask", TOTAL, "--spend", "0.5")
    (opened / "visits.parquet").rename(opened / "v2026.parquet")
    project = opened / ".noisette" / "project.json"
    project.write_text(project.read_text().replace("visits.parquet", "v2026.parquet"))
    assert "noisette ledger rebind --why" in refused(4, "ask", TOTAL, "--spend", "0.5")
    well("ledger", "rebind", "--why", "renamed")
    well("ask", TOTAL, "--spend", "0.5")
    assert spent() == "1"
