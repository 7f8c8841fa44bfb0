"""A deleted or restored project does not get a fresh budget without a word: heads are kept outside of its folder."""

import json
import os
import shutil
import sys

import pyarrow.parquet
import pytest
from tests.cli.tools import CANARY, COUNT, NUMBER, POLICY, process, refused, run, table, texts, well

TOTAL = "SELECT count(*) AS n FROM visits"
OPEN = ("open", "visits.parquet", "--policy", "rules.toml")
OVER = ("--start-over", "--why", "the old answers were about test data")


def left():
    return json.loads(well("budget", "--json"))["left"]["epsilon"]


def first_entry():
    return json.loads(well("ledger", "show", "--json"))["entries"][0]


@pytest.fixture
def asked(opened):
    well("ask", TOTAL, "--spend", "0.5")
    return opened


@pytest.mark.slow
def test_a_deleted_project_is_missed(asked):
    shutil.rmtree(asked / ".noisette")
    assert "a second budget for the same people" in refused(4, *OPEN)
    assert not (asked / ".noisette").exists()
    well(*OPEN, *OVER)
    assert left() == "2"
    assert first_entry()["start_over"] == OVER[2]
    assert "starting over: the old answers" in well("ledger")
    well("ask", TOTAL, "--spend", "0.5")
    well("ledger", "verify")


@pytest.mark.slow
def test_it_is_missed_again_after_a_new_start(asked):
    for _ in range(2):
        shutil.rmtree(asked / ".noisette")
        refused(4, *OPEN)
        well(*OPEN, *OVER)


@pytest.mark.slow
def test_it_is_missed_in_another_process(asked):
    shutil.rmtree(asked / ".noisette")
    found = process(*OPEN, folder=asked)
    assert (found.returncode, found.stdout) == (4, "")
    assert found.stderr.count("\n") == 1
    assert process(*OPEN, *OVER, folder=asked).returncode == 0


@pytest.mark.slow
def test_nothing_is_missed_before_the_first_question(opened):
    well("explain", TOTAL, "--spend", "0.5")
    shutil.rmtree(opened / ".noisette")
    well(*OPEN)
    assert "start_over" not in first_entry()


def test_other_data_in_the_same_folder(asked):
    """The place is known, whatever the data are."""
    shutil.rmtree(asked / ".noisette")
    pyarrow.parquet.write_table(table().slice(0, 60), asked / "visits.parquet")
    refused(4, *OPEN)


@pytest.mark.slow
def test_a_copy_of_the_data_elsewhere(asked, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(asked / "visits.parquet", other / "renamed.parquet")
    shutil.copy(asked / "rules.toml", other)
    monkeypatch.chdir(other)
    copied = ("open", "visits=renamed.parquet", "--policy", "rules.toml")
    assert "a second budget" in refused(4, *copied)
    pyarrow.parquet.write_table(table().slice(0, 60), "renamed.parquet")
    well(*copied)  # these are other data, as far as can be told


@pytest.mark.slow
def test_a_project_in_another_folder_for_the_same_file(asked, tmp_path_factory):
    shutil.move(asked / ".noisette", tmp_path_factory.mktemp("away") / ".noisette")
    refused(4, *OPEN, "--project", tmp_path_factory.mktemp("other"))


@pytest.mark.slow
def test_a_public_table_is_shared(here, tmp_path_factory, monkeypatch):
    pyarrow.parquet.write_table(pyarrow.table({"ward": ["north", "south"], "floor": [1, 2]}), here / "wards.parquet")
    both = POLICY + "[tables.wards]\npublic = true\n"
    (here / "rules.toml").write_text(both)
    well("open", "visits.parquet", "wards.parquet", "--policy", "rules.toml")
    well("ask", TOTAL, "--spend", "0.5")
    other = tmp_path_factory.mktemp("other")
    shutil.copy(here / "wards.parquet", other)
    pyarrow.parquet.write_table(table().slice(0, 90), other / "visits.parquet")
    (other / "rules.toml").write_text(both)
    monkeypatch.chdir(other)
    well("open", "visits.parquet", "wards.parquet", "--policy", "rules.toml")


@pytest.mark.slow
def test_a_whole_folder_that_is_put_back_is_found(asked):
    """The files keep their inodes, and the head beside the ledger is as old as the ledger."""
    backup = {path: path.read_bytes() for path in (asked / ".noisette").iterdir() if path.is_file()}
    well("ask", COUNT, "--spend", "1")
    for path in (asked / ".noisette").iterdir():
        path.write_bytes(backup.get(path, b""))
    assert "not the one that was written last" in refused(4, "ask", TOTAL, "--spend", "0.5")
    assert "not the one that was written last" in refused(4, "budget")
    well("ledger", "accept", "--why", "the disk failed; one answer is missing")
    assert left() == "3/2"
    well("ask", TOTAL, "--spend", "0.5")


# What is said


def test_a_reason_is_needed(here):
    for half in (["--start-over"], ["--why", "so"]):
        assert "--start-over and --why" in refused(2, *OPEN, *half)
    assert "Say why" in refused(2, *OPEN, "--start-over", "--why", "  ")
    assert not (here / ".noisette").exists()


@pytest.mark.slow
def test_a_project_that_is_there_goes_on(asked):
    assert "This project is there and goes on" in refused(2, *OPEN, *OVER)
    assert left() == "3/2"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("typed", "code"), [("y\nanother study\n", 0), ("n\n", 4), ("\n", 4)])
def test_at_a_terminal_the_owner_is_asked(asked, monkeypatch, typed, code):
    shutil.rmtree(asked / ".noisette")
    monkeypatch.setattr("noisette.cli.open._terminal", lambda: True)
    found = run(*OPEN, input=typed)
    assert found.exit_code == code
    assert "Begin a new ledger with a new budget? [y/N]" in found.stderr
    assert (asked / ".noisette").exists() is (code == 0)
    if code == 0:
        assert first_entry()["start_over"] == "another study"


# The state folder


@pytest.mark.slow
def test_it_says_nothing_about_data_paths_or_questions(asked):
    state = os.environ["NOISETTE_STATE"]
    held, names = texts(state), " ".join(name for _, _, files in os.walk(state) for name in files)
    for secret in (CANARY, str(NUMBER), "visits", "patient_id", "ward", "count", str(asked), asked.name):
        assert secret.encode() not in held
        assert secret not in names
    assert sorted(os.listdir(state)) == ["data", "ledgers", "secret"]
    if os.name == "posix":
        modes = {os.stat(os.path.join(root, name)).st_mode & 0o77 for root, d, f in os.walk(state) for name in d + f}
        assert modes == {0}


@pytest.mark.slow
def test_where_it_cannot_be_written_the_owner_is_told_once(here, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NOISETTE_STATE", str(tmp_path / "file" / "state"))
    assert "a ledger that is deleted would not be missed" in well(*OPEN)
    assert json.loads(well("open", "visits.parquet", "--json"))["guarded"] is False
    well("ask", TOTAL, "--spend", "0.5")
    shutil.rmtree(here / ".noisette")
    well(*OPEN)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the rule of other systems")
def test_where_it_is_by_default(here, monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.delenv("NOISETTE_STATE")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert json.loads(well(*OPEN, "--json"))["guarded"] is True
    assert (home / ".local" / "state" / "noisette" / "secret").stat().st_size == 32
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "xdg"))
    well("ask", TOTAL, "--spend", "0.5")
    assert sorted(os.listdir(home / "xdg" / "noisette")) == ["data", "ledgers", "secret"]


def test_the_demo_leaves_nothing_there(here):
    from noisette.cli.demo.tour import _opened
    from noisette.curator.demo import tables

    data = _opened(tables(2_000), here)
    data.sql("SELECT count(*) AS n FROM visits", spend="0.1")
    data.ledger.close()
    assert not os.path.exists(os.environ["NOISETTE_STATE"])
