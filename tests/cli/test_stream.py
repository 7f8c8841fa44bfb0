"""`noisette stream`: one command a step, sums, what is released of keys that open, and what the owner alone reads."""

import datetime
import json
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.cli.tools import refused, well

RULES = """
[budget]
epsilon = "100000"
delta = "1e-3"
[tables.stays]
[tables.stays.columns]
cost = { type = "integer", bounds = [0, 100] }
"""
STREAM = ["stream", "came", "--since", "2026-01-01", "--until", "2026-01-05", "--spend", "10000,1e-6"]


def write(many):
    came = [datetime.date(2026, 1, 1 + i % 4) for i in range(many)]
    table = {"came": pyarrow.array(came), "cost": [7] * many, "illness": ["flu"] * (many - 1) + ["rare"]}
    pyarrow.parquet.write_table(pyarrow.table(table), "stays.parquet")


@pytest.fixture
def stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(400)
    (tmp_path / "rules.toml").write_text(RULES)
    well("open", "stays.parquet", "--policy", "rules.toml")
    return tmp_path


@pytest.mark.slow
def test_one_command_is_one_step_and_the_owner_reads_what_fell(stays):
    first = json.loads(well(*STREAM, "--sum", "cost", "--json"))
    assert first["steps"] == 1
    assert [row["sum"] for row in first["rows"]] == [pytest.approx(700, abs=30)]  # beyond 15 deviations
    write(40)  # rows are gone
    said = well(*STREAM, "--sum", "cost", "--altered", "altered.csv", "--csv", "all.csv")
    assert "± " in said
    assert "<stream by 1 day: 2 of 4 steps released>" in said
    assert pyarrow.csv.read_csv("altered.csv")["fell"].to_pylist() == [0, 560]
    assert "560" not in said
    assert pyarrow.csv.read_csv("all.csv").column_names == ["until", "sum", "sum_low", "sum_high"]


@pytest.mark.slow
def test_what_fell_is_not_for_analysts(stays):
    said = refused(2, *STREAM, "--altered", "altered.csv", "--analyst", "ana")
    assert "for the owner alone" in said
    assert not Path("altered.csv").exists()


@pytest.mark.slow
def test_keys_open_and_sums_fade(stays):
    found = json.loads(well(*STREAM, "--by", "illness", "--all", "--json"))
    assert {row["illness"] for row in found["rows"]} == {"flu"}
    assert found["steps"] == 4
    assert json.loads(well(*STREAM, "--half-life", "1", "--json"))["steps"] == 1
    assert "leave one of them out" in refused(2, *STREAM, "--half-life", "1", "--window", "2")


@pytest.mark.slow
def test_a_step_without_an_open_key_says_so(stays):
    write(3)
    said = well(*STREAM[:-1], "1,1e-9", "--by", "illness")
    assert said.startswith("No key is released yet.")
