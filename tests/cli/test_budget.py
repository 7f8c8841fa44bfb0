"""`noisette budget`: spent, left, and how many more."""

import json

from tests.cli.tools import COUNT, refused, well


def test_before_and_after_questions(opened):
    assert "Nothing was asked yet" in well("budget")
    well("ask", COUNT, "--spend", "0.5")
    shown = well("budget")
    assert "25.0% spent" in shown
    assert "1 question was charged" in shown
    assert shown.splitlines()[0].count("█") == 13


def test_json(opened):
    well("ask", COUNT, "--spend", "0.5")
    assert json.loads(well("budget", "--json")) == {
        "budget": {"kind": "Approx", "epsilon": "2", "delta": "1/1000000"},
        "spent": {"kind": "Approx", "epsilon": "1/2", "delta": "1/1000000"},
        "left": {"kind": "Approx", "epsilon": "3/2", "delta": "1/2000000"},
        "charges": 1,
        "more_like_last": 3,
    }


def test_the_data_are_not_needed(opened):
    (opened / "visits.parquet").unlink()
    well("budget")


def test_a_zero_concentrated_budget(here):
    well("open", "visits.parquet", "--unit", "patient_id", "--rows", "4", "--budget", "rho=0.5")
    well("ask", "SELECT count(*) AS n FROM visits", "--spend", "rho=0.1")
    assert "20.0% spent" in well("budget")


def test_without_a_project(here):
    assert "no project" in refused(2, "budget")
