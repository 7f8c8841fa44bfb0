"""`noisette budget`: spent, left, and how many more."""

import json

import pytest
from tests.cli.tools import COUNT, refused, well

import noisette as nz


def test_before_and_after_questions(opened):
    assert "Nothing was asked yet" in well("budget")
    well("ask", COUNT, "--spend", "0.5")
    shown = well("budget")
    assert "25.0% spent" in shown
    assert "1 question was charged" in shown
    assert shown.splitlines()[0].count("█") == 13


@pytest.mark.slow
def test_json(opened):
    well("ask", COUNT, "--spend", "0.5")
    assert json.loads(well("budget", "--json")) == {
        "budget": {"kind": "Approx", "epsilon": "2", "delta": "1/1000000"},
        "spent": {"kind": "Approx", "epsilon": "1/2", "delta": "1/1000000"},
        "left": {"kind": "Approx", "epsilon": "3/2", "delta": "1/10000000"},
        "tight": {"epsilon": pytest.approx(0.5, rel=1e-3), "delta": "1/1000000"},
        "charges": 1,
        "more_like_last": 3,
        "shares": {},
    }


def test_the_data_are_not_needed(opened):
    (opened / "visits.parquet").unlink()
    well("budget")


@pytest.mark.slow
def test_a_zero_concentrated_budget(here):
    well("open", "visits.parquet", "--unit", "patient_id", "--rows", "4", "--budget", "rho=0.5")
    well("ask", "SELECT count(*) AS n FROM visits", "--spend", "rho=0.1")
    assert "20.0% spent" in well("budget")


def test_without_a_project(here):
    assert "no project" in refused(2, "budget")


@pytest.mark.slow
def test_the_tight_figure_stands_beside_the_filters(opened):
    for i in range(20):
        well("ask", f"SELECT count(*) AS n FROM visits WHERE age < {30 + i}", "--spend", "0.05")
    shown, told = well("budget"), json.loads(well("budget", "--json"))
    assert "had all costs been settled in advance" in shown
    assert 0.8 < told["tight"]["epsilon"] <= (nz.Pure("0.05") * 20).epsilon_at("1e-6") < 0.9
    assert told["spent"]["epsilon"] == "1"


@pytest.mark.slow
def test_shares_of_analysts(opened):
    assert "Name each analyst once" in refused(2, "ledger", "share", "ana", "--why", "a pilot")
    assert "The share of ana must be" in refused(2, "ledger", "share", "ana=x", "--why", "a pilot")
    assert "Recorded" in well("ledger", "share", "ana=0.5", "bob=1,1e-7", "--why", "a pilot")
    for command in (["ask", COUNT], ["explain", COUNT]):
        assert "--analyst" in refused(4, *command, "--spend", "0.1")
        assert "no share" in refused(4, *command, "--spend", "0.1", "--analyst", "eve")
        well(*command, "--spend", "0.4", "--analyst", "ana")
    assert "The share of ana has ε = 0.1 left" in refused(3, "ask", COUNT, "--spend", "0.2", "--analyst", "ana")
    assert "does not hold" in well("explain", COUNT, "--spend", "0.2", "--analyst", "ana")
    well("ask", COUNT, "--spend", "0.2", "--analyst", "bob")
    mine, all_of_them = (json.loads(well("budget", "--json", *who)) for who in (["--analyst", "ana"], []))
    assert mine["shares"].keys() == {"ana"}
    assert mine["more_like_last"] == 0
    assert all_of_them["shares"]["bob"]["left"]["epsilon"] == "4/5"
    assert all_of_them["more_like_last"] is None
    assert "share of ana  ε = 0.5; spent ε = 0.4, left ε = 0.1 in one question" in well("budget")
    assert "no share" in refused(4, "budget", "--analyst", "eve")
