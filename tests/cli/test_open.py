"""`noisette open`: the policy, the project, what is missing, and no second budget."""

import json
import os
import stat
from pathlib import Path

import pytest
from tests.cli.tools import CANARY, NUMBER, refused, run, texts, well

OPEN = ("open", "visits.parquet", "--unit", "patient_id", "--rows", "4", "--budget", "2,1e-6")


def test_it_writes_a_policy_and_a_project_and_says_what_is_missing(here):
    shown = well(*OPEN)
    policy = (here / "visits.policy.toml").read_text()
    assert "ε = 2, δ = 1e-6" in shown
    assert "all rows of one patient_id are protected together (rows 4)" in shown
    for line in ("[tables.visits.columns.age]", 'bounds = ["…",', "[tables.visits.columns.ward]", 'keys = ["…",'):
        assert line in shown
        assert f"# {line}" in policy
    assert 'unit = "patient_id"' in policy
    assert sorted(path.name for path in (here / ".noisette").iterdir())[-2:] == ["project.json", "secret"]


def test_paths_are_relative_and_the_secret_is_for_its_owner_alone(here):
    well(*OPEN)
    said = json.loads((here / ".noisette" / "project.json").read_text())
    assert said == {"format": 1, "data": {"visits": "visits.parquet"}, "policy": "visits.policy.toml"}
    secret = here / ".noisette" / "secret"
    assert len(secret.read_bytes()) == 16
    if os.name == "posix":
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_json(here):
    told = json.loads(well(*OPEN, "--json"))
    assert told["budget"] == {"kind": "Approx", "epsilon": "2", "delta": "1/1000000"}
    assert told["tables"]["visits"]["unit"] == "patient_id"
    assert told["tables"]["visits"]["rows"] == 4
    assert told["tables"]["visits"]["columns"]["age"] == {
        "type": "integer",
        "bounds": None,
        "keys": None,
        "nullable": True,
        "group": True,
    }
    assert next((gap["column"], gap["line"]) for gap in told["missing"]) == ("ward", 'keys = ["…", "…"]')


def test_the_delta_for_unknown_keys_is_settled(here):
    well(*OPEN, "--keys-delta", "5e-7")
    assert json.loads(well("budget", "--json"))["left"]["delta"] == "1/2000000"
    well(*OPEN, "--keys-delta", "5e-7")
    assert "settled when the ledger opened" in refused(2, *OPEN, "--keys-delta", "1e-7")


def test_a_missing_limit_is_told(here):
    assert 'rows = "…"' in well("open", "visits.parquet", "--unit", "patient_id", "--budget", "2")
    assert "how many rows of one patient_id" in refused(2, "ask", "SELECT count(*) FROM visits", "--spend", "0.1")


def test_a_complete_policy_is_used_where_it_is(opened):
    assert json.loads((opened / ".noisette" / "project.json").read_text())["policy"] == "rules.toml"
    assert not (opened / "visits.policy.toml").exists()


def test_the_policy_that_was_written_can_be_edited_and_used(here):
    well(*OPEN)
    file = here / "visits.policy.toml"
    text = file.read_text()
    text = text.replace(
        '# [tables.visits.columns.age]\n# bounds = ["…", "…"]', "[tables.visits.columns.age]\nbounds = [0, 110]"
    )
    file.write_text(text)
    assert "±" in well("ask", "SELECT avg(age) AS age FROM visits", "--spend", "0.1")


@pytest.mark.slow
def test_a_csv_file_gets_a_policy_in_which_every_column_is_text_until_it_is_edited(here):
    well("open", "visits.csv", "--unit", "patient_id", "--rows", "4", "--budget", "2")
    file = here / "visits.policy.toml"
    assert file.read_text().count('type = "text"') == 5
    assert "sums" not in file.read_text()
    assert "±" in well("explain", "SELECT count(*) AS n FROM visits", "--spend", "0.1")
    text = file.read_text().replace('columns.age]\ntype = "text"', 'columns.age]\ntype = "integer"\nbounds = [0, 110]')
    file.write_text(text)
    assert "±" in well("ask", "SELECT avg(age) AS age FROM visits", "--spend", "0.5")


@pytest.mark.slow
def test_opening_again_changes_nothing(opened):
    well("ask", "SELECT count(*) AS n FROM visits", "--spend", "0.5")
    before = json.loads(well("budget", "--json"))
    for more in ([], ["--policy", "rules.toml"], ["--unit", "patient_id", "--rows", "4"], ["--budget", "2,1e-6"]):
        well("open", "visits.parquet", *more)
    assert json.loads(well("budget", "--json")) == before


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--budget", "3,1e-6"], "noisette ledger budget"),
        (["--budget", "2"], "noisette ledger budget"),
        (["--unit", "ward"], "another unit"),
        (["--rows", "5"], "other limits"),
        (["--policy", "other.toml"], "another policy"),
    ],
)
def test_opening_again_with_something_else_is_refused(settled, more, words):
    (settled / "other.toml").write_text(Path("rules.toml").read_text().replace("110", "120"))
    assert words in refused(2, "open", "visits.parquet", *more)


@pytest.mark.slow
def test_the_same_data_have_one_project(opened, monkeypatch):
    assert "one budget" in refused(2, "open", "visits.parquet", "--policy", "rules.toml", "--project", "elsewhere")
    assert "other data" in refused(2, "open", "visits.csv", "--policy", "rules.toml")
    (opened / "links").mkdir()
    (opened / "links" / "visits.parquet").symlink_to(opened / "visits.parquet")
    monkeypatch.chdir(opened / "links")
    well("open", "visits.parquet")
    assert not (opened / "links" / ".noisette").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.parquet", "--budget", "1"], "There is no file nothing.parquet."),
        (["nothing.csv", "--budget", "1"], "There is no file nothing.csv."),
        (["x://ann:sesame@host", "--budget", "1"], "There is no file of this name; the address of a server begins"),
        (["visits.parquet"], "how much may be spent in all"),
        (["visits.parquet", "--budget", "0"], "--budget must be above 0"),
        (["visits.parquet", "--budget", "1,2,3"], "--budget must be"),
        (["visits.parquet", "--budget", "1", "--unit", "nobody"], "no column nobody"),
        (["visits.parquet", "--budget", "1", "--rows", "4"], "Name the unit"),
        (["visits.parquet", "--budget", "1", "--rows", "x"], "Invalid value"),
        (["visits.parquet", "visits.csv", "--budget", "1"], "Two files are called visits"),
        (["visits.parquet", "--policy", "none.toml"], "cannot be read"),
        (["rules.toml", "--budget", "1"], "cannot be opened"),
        ([], "Name the data"),
    ],
)
def test_bad_input_gets_a_sentence_and_leaves_nothing_behind(here, arguments, words):
    before = sorted(here.iterdir())
    assert words in refused(2, "open", *arguments)
    assert sorted(here.iterdir()) == before


def test_a_table_to_look_up_is_public(here):
    """Beside a unit that it has not; the sentence before it names the option."""
    (here / "wards.csv").write_text("ward,floor\nnorth,1\n")
    both = "open", "visits.csv", "wards.csv", "--unit", "patient_id", "--rows", "4", "--budget", "2"
    said = refused(2, *both)
    assert "The first line of table wards names no column patient_id: name its unit below [tables.wards]" in said
    assert "(--public wards)" in said
    assert "There is no table wrds that could be public: did you mean wards?" in refused(2, *both, "--public", "wrds")
    assert "wards: public, it protects nobody" in well(*both, "--public", "wards")
    assert "with other public tables" in refused(2, *both, "--public", "visits")
    assert "public = true in the policy file" in refused(
        2, "open", "visits.parquet", "--policy", "rules.toml", "--public", "visits", "--project", "other"
    )


def test_a_policy_that_is_there_is_not_overwritten(here):
    (here / "visits.policy.toml").write_text("# mine\n")
    assert "is there already" in refused(2, *OPEN)
    assert (here / "visits.policy.toml").read_text() == "# mine\n"
    assert not (here / ".noisette").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_folder_that_is_read_only(here):
    here.chmod(0o500)
    assert "Nothing can be written" in refused(2, *OPEN)
    here.chmod(0o700)


def test_a_folder_that_cannot_be_written(here, monkeypatch):
    def fails(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", fails)
    assert "Nothing can be written" in refused(2, *OPEN)


def test_a_fault_on_the_way_leaves_nothing_behind(here, monkeypatch):
    before = sorted(here.iterdir())

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("noisette.curator.new_project.open_ledger", fails)
    assert "Nothing can be written" in refused(2, *OPEN)
    assert sorted(here.iterdir()) == before


def test_a_half_made_folder_is_not_taken_over(here):
    (here / ".noisette").mkdir()
    assert "not whole" in refused(2, *OPEN)
    assert "no project" in refused(2, "budget")


@pytest.mark.parametrize("source", ["visits.parquet", "visits.csv"])
def test_no_value_of_the_data_is_told(here, source):
    shown = run("open", source, "--unit", "patient_id", "--rows", "4", "--budget", "2").output
    for value in (CANARY, str(NUMBER), "usual", "p07"):
        assert value not in shown
        assert value.encode() not in texts(here)
