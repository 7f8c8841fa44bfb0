"""`noisette check`: records against the project's ledger."""

import json

import pytest
from tests.cli.tools import COUNT, process, refused, run, well

TOTAL = "SELECT count(*) AS n FROM visits"


@pytest.fixture(scope="module")
def record(one):
    text = process("ask", COUNT, "--spend", "0.25", "--json", folder=one).stdout
    (one / "record.json").write_text(text)
    return json.loads(text)


@pytest.mark.slow
def test_a_record_that_was_released(record, settled):
    said = well("check", "record.json")
    assert "as it was released" in said
    assert "epsilon 1/4 for each patient_id (add/remove)" in said
    told = json.loads(well("check", "record.json", "--json"))["records"]
    assert told == [
        {
            "verified": True,
            "entry": record["ledger"]["entry"],
            "guarantee": {"epsilon": "1/4", "kind": "Pure"},
            "neighbours": "add/remove",
            "unit": "patient_id",
        }
    ]


@pytest.mark.slow
def test_a_number_that_was_changed(record, settled, tmp_path):
    record = json.loads(json.dumps(record))
    record["rows"][0]["n"] += 1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(record, indent=2))
    assert "not as it was released" in refused(4, "check", changed)
    alone = well("check", changed, "--without-ledger")
    assert "Not verified without the ledger: that these numbers were ever released" in alone
    assert json.loads(well("check", changed, "--without-ledger", "--json"))["records"][0]["verified"] is False
    del record["ledger"]  # no way around the ledger: what names none is no better
    changed.write_text(json.dumps(record))
    assert "names no entry of a ledger" in refused(2, "check", changed)


def test_several_records_and_the_input(settled):
    both = well("ask", f"{COUNT}; {TOTAL}", "--spend", "0.25", "--json")
    assert len(json.loads(run("check", "-", "--json", input=both).stdout)["records"]) == 2
    found = run("check", "-", input=both.replace('"level": 0.95', '"level": 0.99', 1))
    assert (found.exit_code, found.stdout) == (4, "")


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 1, "mechanisms": [3], "guarantee": {}}', "\0"])
def test_what_is_no_record(settled, tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    assert "not the record of a release" in refused(2, "check", tmp_path / "x.json")
    assert "not the record of a release" in refused(2, "check", tmp_path / "x.json", "--without-ledger")


@pytest.mark.slow
def test_mechanisms_that_make_no_sense(settled, record, tmp_path):
    twin = {**record, "mechanisms": [{"mechanism": "Geometric", "parameters": {"scale": "none"}}]}
    (tmp_path / "x.json").write_text(json.dumps(twin))
    assert "must be a finite number" in refused(2, "check", tmp_path / "x.json", "--without-ledger")
    twin = {**record, "mechanisms": [{"mechanism": "Geometric", "parameters": {"shape": "1"}}]}
    (tmp_path / "x.json").write_text(json.dumps(twin))
    assert "cannot be built again" in refused(2, "check", tmp_path / "x.json", "--without-ledger")


def test_files_that_are_not_there(settled):
    assert "cannot be read" in refused(2, "check", "none.json")


def test_the_ledger_shows_what_was_released(settled, record):
    """Other tests have asked, too: the entries are those that follow the charge of this record."""
    entries = json.loads(well("ledger", "show", "--json"))["entries"]
    charge = next(entry for entry in entries if entry["number"] == record["ledger"]["entry"])
    numbers = {entry["kind"]: entry["number"] for entry in entries if entry.get("of") == charge["key"]}
    assert f"(entries {numbers['answer']}, {numbers['release']})" in " ".join(well("ledger").split())
