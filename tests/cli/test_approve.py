"""`noisette approve`: what waits is listed, and an approval in one process lets another one ask."""

import json

import pytest
from tests.cli.tools import CANARY, POLICY, refused, texts, well, write_data

RULES = """
[rules]
approval_above = "0.1"
largest_spend = "0.5"
minimum_frequency = 5
rounding = 5
"""
COUNT = "SELECT count(*) AS n FROM visits WHERE age > 3"


@pytest.fixture
def guarded(tmp_path, monkeypatch):
    write_data(tmp_path)
    (tmp_path / "rules.toml").write_text(POLICY.replace("note = {", "note = { group = false,") + RULES)
    monkeypatch.chdir(tmp_path)
    well("open", "visits.parquet", "--policy", "rules.toml")
    return tmp_path


def pending():
    return json.loads(well("approve", "--json"))["pending"]


def charges():
    return json.loads(well("budget", "--json"))["charges"]


@pytest.mark.slow
def test_a_question_waits_is_listed_approved_and_charged_once(guarded):
    assert well("approve") == "No question waits for approval.\n"
    sentence = refused(3, "ask", COUNT, "--spend", "0.3", "--analyst", "ana")
    assert "in Python" not in sentence
    name = sentence.split("`noisette approve ")[1].split("`")[0]
    assert name in well("approve")
    assert [(one["name"][:12], one["analyst"], one["state"]) for one in pending()] == [(name, "ana", "pending")]
    assert charges() == 0
    assert "is approved" in well("approve", name, "--why", "the board agreed")
    assert pending() == []
    first = well("ask", COUNT, "--spend", "0.3", "--analyst", "ana")
    assert well("ask", COUNT, "--spend", "0.3", "--analyst", "ana") == first
    assert charges() == 1
    assert "approve: the board agreed" in " ".join(well("ledger", "show").split())
    assert "a question waits for approval" in " ".join(well("ledger", "show").split())
    assert "whole" in well("ledger", "verify")
    assert CANARY.encode() not in texts(guarded)


@pytest.mark.slow
def test_a_literal_is_no_markup(guarded, monkeypatch):
    """Neither does it end the command, nor can it hide a part of the condition."""
    monkeypatch.setenv("COLUMNS", "400")
    for text in ("b[/]", "[conceal]'' OR note = ''a'' OR note = ''b[/conceal]", "b[red]x"):
        refused(3, "ask", f"SELECT count(*) AS n FROM visits WHERE note = '{text}'", "--spend", "0.3")
        assert f"WHERE note = '{text}' " in well("approve")
    assert "characters that are not text" in refused(
        2, "ask", "SELECT count(*) AS n FROM visits WHERE note = 'a\u202eb'", "--spend", "0.3"
    )


@pytest.mark.slow
def test_opening_again_shows_the_rules(guarded):
    shown = well("open", "visits.parquet")
    assert "rule     largest_spend = 1/2: of one question" in shown
    assert "not grouped" in shown
    found = json.loads(well("open", "visits.parquet", "--json"))
    assert found["rules"]["minimum_frequency"] == "5"
    assert not found["tables"]["visits"]["columns"]["note"]["group"]


@pytest.mark.slow
def test_what_is_refused_ends_with_one_sentence(guarded):
    assert "lets one question spend ε = 0.5 at most" in refused(3, "ask", COUNT, "--spend", "0.6")
    assert "waits for approval" in refused(2, "approve", "abc")
    assert "not grouped" in refused(
        2, "ask", "SELECT note, count(*) AS n FROM visits GROUP BY note", "--spend", "0.1,1e-8"
    )
    assert "behind every group" in refused(2, "ask", '{"histogram": "age"}', "--spend", "0.1")
    refused(3, "ask", COUNT, "--spend", "0.3")
    [one] = pending()
    assert "is declined" in well("approve", one["name"], "--decline")
    assert pending() == []
    assert charges() == 0


@pytest.mark.slow
def test_explain_shows_the_rules(guarded):
    shown = " ".join(well("explain", COUNT, "--spend", "0.3").split())
    assert "failure ≤ 1e-6" in shown
    assert "rounded to multiples of 5" in shown
    assert "waits for the owner's approval, as" in shown
    found = json.loads(well("explain", COUNT, "--spend", "0.6", "--json"))
    assert any(one.endswith("so it would be refused.") for one in found["rules"])
