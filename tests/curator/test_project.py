"""Projects: found again from anywhere, one ledger, one secret, answers that outlive the process."""

import json

import pyarrow
import pyarrow.parquet
import pytest
from tests.curator.clinic import watch

import noisette as nz
from noisette.curator.demo import tables
from noisette.curator.project import FOLDER, Project
from noisette.errors import InputError, PrivacyError
from noisette.policy.toml import gaps

UNKNOWN = nz.Approx("0.3", "1e-8")
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
QUESTIONS = {
    "counts and means": ("SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward", "0.3"),
    "quantiles": ("SELECT ward, MEDIAN(age) AS m, QUANTILE_CONT(age, 0.9) AS q FROM visits GROUP BY ward", "0.3"),
    "unknown keys": ("SELECT diagnosis, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY diagnosis", UNKNOWN),
    "unknown and known keys": ("SELECT ward, diagnosis, AVG(cost) AS c FROM visits GROUP BY ward, diagnosis", UNKNOWN),
    "keys alone": ("SELECT diagnosis FROM visits GROUP BY diagnosis", UNKNOWN),
    "no groups": ("SELECT STDDEV(cost) AS s FROM visits", nz.ZCDP("0.01")),
    "several": ([WARDS, "SELECT AVG(cost) AS c FROM visits"], "0.3"),
}
RULES = """
[budget]
epsilon = "20"
delta = "1e-6"
[tables.visits]
unit = "patient_id"
rows = 8
[tables.visits.columns]
ward = { keys = ["cardiology", "emergency", "maternity", "oncology", "orthopaedics", "paediatrics"], nullable = false }
age = { bounds = [0, 100], nullable = false }
cost = { bounds = [0, 2000] }
"""


@pytest.fixture
def folder(tmp_path):
    pyarrow.parquet.write_table(tables(400)["visits"], tmp_path / "visits.parquet")
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path


@pytest.fixture
def project(folder):
    return Project.create([folder / "visits.parquet"], policy=folder / "rules.toml")


def asked(project, question, spend):
    """What a new process would be told, and how often it touched the data for it."""
    curator = project.curator()
    source = watch(curator)
    found = curator.ask(question, spend=spend)
    curator.ledger.close()
    releases = found if isinstance(found, list) else [found]
    return [release.to_arrow() for release in releases], source.computed


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_outlive_the_process(project, name):
    first, touched = asked(project, *QUESTIONS[name])
    again, touched_again = asked(project, *QUESTIONS[name])
    assert touched > 0
    assert touched_again == 0
    assert all(a.equals(b) for a, b in zip(first, again, strict=True))
    assert len(project.ledger().entries) == 1


@pytest.mark.slow
def test_kept_measures_are_found_by_what_they_are(project):
    first, _ = asked(project, "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward", "0.3")
    again, touched = asked(project, "SELECT AVG(age) AS a, COUNT(*) AS n, ward FROM visits GROUP BY ward", "0.3")
    assert touched == 0
    assert all(first[0][name].equals(again[0][name]) for name in ("ward", "n", "a"))


@pytest.mark.slow
def test_declarations_that_change_make_another_question(project):
    asked(project, WARDS, "0.3")
    project.policy_file.write_text(RULES.replace("rows = 8", "rows = 9"))
    assert asked(project, WARDS, "0.3")[1] > 0
    assert len(project.ledger().entries) == 2


@pytest.mark.slow
def test_a_crash_between_charge_and_answer_costs_nothing_more(project, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("noisette.ledger.book.Book.keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            asked(project, WARDS, "0.3")
    asked(project, "SELECT COUNT(*) AS many, ward FROM visits GROUP BY ward", "0.3")
    assert len(project.ledger().entries) == 1


def test_frames_in_memory_are_other_data_each_time(tmp_path):
    rules = {"tables": {"data": {"columns": {"age": {"bounds": [0, 100]}}}}}
    for times in (1, 2):
        frame = pyarrow.table({"age": [40, 50]})
        curator = nz.open(frame, budget=nz.Pure(4), policy=rules, ledger=tmp_path / "x.ledger")
        for _ in range(2):
            curator.sql("SELECT COUNT(*) AS n FROM data", spend=1)
        assert len(curator.budget.entries) == times
        curator.ledger.close()


def test_a_project_is_found_from_below(project, folder):
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    assert Project.find(below) == Project.find(folder / FOLDER) == Project.read(folder) == project
    with pytest.raises(InputError, match="no project here"):
        Project.find(folder.parent)


def test_processes_choose_the_same_rows(project):
    first, second = (project.curator() for _ in range(2))
    assert first._secret == second._secret
    assert len(first._secret) == 16
    (project.folder / FOLDER / "secret").write_bytes(b"short")
    with pytest.raises(PrivacyError, match="secret"):
        project.curator()


def test_explaining_leaves_open_what_the_ledger_is_about(project):
    project.curator(asking=False).explain(WARDS, spend=1)
    assert [entry["kind"] for entry in project.ledger().history] == ["open"]
    project.curator()
    assert [entry["kind"] for entry in project.ledger().history] == ["open", "act"]


@pytest.mark.slow
def test_several_tables_and_data_elsewhere(folder):
    pyarrow.parquet.write_table(tables()["wards"], folder / "w.parquet")
    rules = folder / "rules.toml"
    rules.write_text(RULES + "[tables.wards]\npublic = true\n")
    home = folder / "study"
    made = Project.create([folder / "visits.parquet", f"wards={folder}/w.parquet"], folder=home, policy=rules)
    said = json.loads((home / FOLDER / "project.json").read_text())
    assert said["data"] == {"visits": "../visits.parquet", "wards": "../w.parquet"}
    assert said["policy"] == "../rules.toml"
    regions = "SELECT region, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY region"
    assert len(asked(made, regions, UNKNOWN)) == 2


@pytest.mark.slow
def test_a_duckdb_file(tmp_path):
    import duckdb

    with duckdb.connect(tmp_path / "clinic.duckdb") as database:
        database.execute("CREATE TABLE visits AS SELECT range % 50 AS patient_id, range % 80 AS age FROM range(200)")
    made = Project.create([tmp_path / "clinic.duckdb"], unit="patient_id", rows=4, budget=nz.Pure(3))
    assert made.policy_file.name == "clinic.policy.toml"
    asked(made, "SELECT COUNT(*) AS n FROM visits", "0.5")
    assert asked(made, "SELECT COUNT(*) AS n FROM visits", "0.5")[1] == 0
    with pytest.raises(InputError, match="open it alone"):
        Project.create([tmp_path / "clinic.duckdb", "more=more-*.csv"])


def test_gaps_are_what_questions_would_miss():
    found = nz.open({"visits": tables(10)["visits"]}, unit="patient_id", budget=1)
    assert [(gap.column, gap.line.split(" ")[0]) for gap in gaps(found.schema)] == [
        (None, "rows"),
        ("day", "bounds"),
        ("ward", "keys"),
        ("ward", "trim"),
        ("diagnosis", "keys"),
        ("diagnosis", "trim"),
        ("age", "bounds"),
        ("cost", "bounds"),
    ]
