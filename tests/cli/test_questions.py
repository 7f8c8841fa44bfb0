"""`noisette questions`, and questions in JSON wherever a command takes SQL."""

import json

import pytest
from tests.cli.tools import CANARY, refused, run, well

from noisette import questions
from noisette.questions import from_json

MODE = '{"mode": {"column": "ward"}}'


def test_every_question_is_listed_with_an_example_that_can_be_read():
    shown, found = well("questions"), json.loads(well("questions", "--json"))["questions"]
    assert [one["name"] for one in found] == sorted(questions.FILES)
    for one in found:
        assert one["example"] in shown
        assert one["about"].endswith(".")
        assert any(field["required"] for field in one["fields"]) or one["name"] in ("left_out", "synthetic")
        if one["name"] != "apply":
            assert from_json(one["example"]).to_json() == one["example"]


def test_json_is_asked_and_explained_like_sql(opened):
    assert "permute and flip" in well("explain", MODE, "--spend", "0.5")
    answer = json.loads(well("ask", MODE, "--spend", "0.5", "--json"))
    assert [list(row) for row in answer["rows"]] == [["ward"]]
    (opened / "mode.json").write_text(MODE)
    assert json.loads(well("ask", "--file", "mode.json", "--spend", "0.5", "--json")) == answer
    assert run("ask", MODE, "--spend", "0.5", "--csv").stdout.splitlines()[0] == '"ward"'


@pytest.mark.slow
def test_sql_within_json_is_the_same_question(opened):
    count = "SELECT count(*) AS n FROM visits"
    plain = well("ask", count, "--spend", "0.5", "--json")
    assert well("ask", json.dumps({"sql": count}), "--spend", "0.5", "--json") == plain
    assert json.loads(well("budget", "--json"))["charges"] == 1


@pytest.mark.slow
def test_what_is_no_question_costs_nothing_and_is_not_quoted(opened):
    for text in ('{"mode"', f'{{"{CANARY}": 1}}', f'{{"mode": {{"column": "ward", "lead": "{CANARY}"}}}}'):
        assert CANARY not in refused(2, "ask", text, "--spend", "0.5")
    assert "stream" in refused(2, "ask", '{"above": {"threshold": 5}}', "--spend", "0.5")
    assert json.loads(well("budget", "--json"))["charges"] == 0
