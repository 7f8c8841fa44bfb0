"""`noisette ledger`: show, verify, head, and the owner's acts; what is tampered with ends with 4."""

import json
import sqlite3

import pytest
from tests.cli.tools import COUNT, process, refused, well


@pytest.fixture
def asked(opened):
    well("ask", COUNT, "--spend", "0.5")
    return opened


def ledger(folder):
    return folder / ".noisette" / "ledger.sqlite"


def change(folder, *statements):
    database = sqlite3.connect(ledger(folder))
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_entries(asked):
    for command in (["ledger"], ["ledger", "show"]):
        shown = well(*command)
        assert "the ledger was opened" in shown
        assert "budget ε = 2, δ = 1e-6" in " ".join(shown.split())
        assert "ε = 0.5" in shown
    assert "opened" not in well("ledger", "show", "--last", "1")


@pytest.mark.slow
def test_entries_as_json(asked):
    entries = json.loads(well("ledger", "show", "--json"))["entries"]
    assert [entry["kind"] for entry in entries] == ["open", "act", "charge", "answer", "release"]
    assert entries[-3]["guarantee"] == {"kind": "Pure", "epsilon": "1/2"}


@pytest.mark.slow
def test_verify_against_a_head(asked):
    head = well("ledger", "head").strip()
    assert json.loads(well("ledger", "head", "--json")) == {"head": head}
    well("ask", COUNT, "--spend", "0.1")
    assert "is on its chain" in well("ledger", "verify", "--head", head)
    told = json.loads(well("ledger", "verify", "--json"))
    assert (told["whole"], told["entries"], told["charges"]) == (True, 8, 2)
    other = head[:-1] + ("0" if head[-1] != "0" else "1")
    for wrong in (other, f"0:{'a' * 64}", f"99:{'a' * 64}"):
        refused(4, "ledger", "verify", "--head", wrong)
    assert "not the head of a ledger" in refused(2, "ledger", "verify", "--head", "x")


@pytest.mark.slow
def test_a_changed_entry_stops_everything(asked):
    change(asked, "DROP TRIGGER ledger_UPDATE", "UPDATE ledger_entries SET body = replace(body, '1/2', '1/9')")
    for command in (
        ["budget"],
        ["ledger", "verify"],
        ["ask", COUNT, "--spend", "0.1"],
        ["explain", COUNT, "--spend", "1"],
    ):
        assert "ntry" in refused(4, *command)
    found = process("budget", folder=asked)
    assert (found.returncode, found.stdout) == (4, "")
    assert found.stderr.count("\n") == 1


@pytest.mark.slow
def test_changed_sums_are_found(asked):
    change(asked, "UPDATE ledger_accounts SET state = replace(state, '1/2', '1/9')")
    refused(4, "ask", COUNT, "--spend", "0.1")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("names", [["ledger.sqlite"], ["ledger.sqlite", "ledger.sqlite-head"]])
@pytest.mark.parametrize("empty", [False, True])
def test_a_ledger_that_is_gone_is_not_begun_anew(asked, names, empty):
    for name in names:
        (asked / ".noisette" / name).unlink()
    if empty:
        ledger(asked).touch()
    for command in (["budget"], ["ask", COUNT, "--spend", "0.1"]):
        assert refused(4, *command)


@pytest.mark.slow
def test_a_secret_that_is_gone(asked):
    (asked / ".noisette" / "secret").unlink()
    assert "secret" in refused(4, "ask", COUNT, "--spend", "0.1")


@pytest.mark.slow
def test_a_project_file_that_is_damaged(asked):
    (asked / ".noisette" / "project.json").write_text("{")
    assert "cannot be read" in refused(2, "budget")


@pytest.mark.slow
def test_another_budget_is_the_owners_act(asked):
    rules = asked / "rules.toml"
    rules.write_text(rules.read_text().replace('epsilon = "2"', 'epsilon = "3"'))
    assert "noisette ledger budget" in refused(2, "ask", COUNT, "--spend", "2.4")
    assert "Missing option" in refused(2, "ledger", "budget")
    assert "Say why" in refused(2, "ledger", "budget", "--why", " ")
    assert "Recorded" in well("ledger", "budget", "--why", "the board agreed")
    well("ask", COUNT, "--spend", "2.4")
    assert "the board agreed" in " ".join(well("ledger").split())
    rules.write_text(rules.read_text().replace('epsilon = "3"', 'epsilon = "1"'))
    assert "More was spent already" in refused(2, "ledger", "budget", "--why", "less")


@pytest.mark.slow
def test_a_folder_that_moved_goes_on_when_its_owner_says_so(asked, monkeypatch):
    moved = asked.parent / "moved"
    monkeypatch.chdir(asked.parent)
    asked.rename(moved)
    monkeypatch.chdir(moved)
    assert "moved" in refused(4, "budget")
    well("ledger", "accept", "--why", "the disk is a new one")
    well("budget")
    assert "The data changed" in refused(4, "ask", COUNT, "--spend", "0.1")
    assert json.loads(well("ledger", "rebind", "--why", "the disk is a new one", "--json"))["recorded"] is True
    well("ask", COUNT, "--spend", "0.1")
    assert json.loads(well("budget", "--json"))["charges"] == 2


@pytest.mark.slow
def test_the_question_stands_as_sql_with_the_analyst_and_what_was_released(opened, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    well("ledger", "share", "ana=0.5", "--why", "a pilot")
    well(
        "ask",
        "SELECT ward, count(*) AS n FROM visits WHERE age > 30 GROUP BY ward",
        "--spend",
        "0.1",
        "--analyst",
        "ana",
    )
    shown = well("ledger", "show")
    [row] = [line for line in shown.splitlines() if "SELECT" in line]
    assert "SELECT ward, COUNT(*) FROM visits WHERE 30 < age GROUP BY ward" in row
    assert "ana" in row
    assert "→ rows: Geometric (entries 5, 6)" in shown
    assert "time (UTC)" in shown
    assert "a record of entry 4 was released" in well("ledger", "show", "--last", "1")
