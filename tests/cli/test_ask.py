"""`noisette ask`: answers, formats, exit codes, and the same answer in another process."""

import io
import json
from contextlib import closing

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.cli.tools import CANARY, COUNT, NUMBER, process, refused, run, texts, well

import noisette as nz
from noisette.curator.project import Project

NOTES = "SELECT note, count(DISTINCT patient_id) AS n FROM visits GROUP BY note"


def test_a_table_with_error_bars(opened):
    shown = well("ask", COUNT, "--spend", "0.5")
    assert shown.splitlines()[0].split() == ["ward", "n", "age"]
    assert shown.count("±") >= 4
    assert "ε = 0.5 · 95% error bars · left: ε = 1.5" in shown


def test_the_same_question_is_free_and_has_the_same_bytes(opened):
    first = well("ask", COUNT, "--spend", "0.5", "--json")
    assert well("ask", COUNT.lower(), "--spend", "1/2", "--json") == first
    assert len(json.loads(well("ledger", "show", "--json"))["entries"]) == 5


@pytest.mark.slow
def test_another_process_sees_the_spent_budget_and_gets_the_same_bytes(opened):
    first = well("ask", COUNT, "--spend", "1.5", "--json")
    again = process("ask", COUNT, "--spend", "1.5", "--json", folder=opened)
    assert (again.returncode, again.stdout, again.stderr) == (0, first, "")
    more = process("ask", COUNT, "--spend", "0.6", folder=opened)
    assert (more.returncode, more.stdout) == (3, "")
    assert more.stderr.startswith("The budget has")
    assert "Traceback" not in more.stderr


@pytest.mark.slow
def test_data_that_were_written_anew_are_asked_anew(opened):
    well("ask", COUNT, "--spend", "0.5")
    (opened / "visits.parquet").touch()
    well("ask", COUNT, "--spend", "0.5")
    assert json.loads(well("budget", "--json"))["charges"] == 2


@pytest.mark.slow
def test_a_project_is_found_from_below_and_by_its_name(opened, monkeypatch):
    below = opened / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    first = well("ask", COUNT, "--spend", "0.5", "--json")
    monkeypatch.chdir(opened.parent)
    for folder in (opened, opened / ".noisette"):
        assert well("ask", COUNT, "--spend", "0.5", "--json", "--project", folder) == first


@pytest.mark.slow
def test_json_is_a_record_that_can_be_checked(opened):
    shown = well("ask", COUNT, "--spend", "0.5", "--json")
    assert nz.answers.check(shown) == nz.Pure("1/2", neighbours=nz.Neighbours.ADD_REMOVE)
    record = json.loads(shown)
    assert record["guarantee"] == {"kind": "Pure", "epsilon": "1/2"}
    assert {"ward", "n", "n_low", "n_high"} <= set(record["rows"][0])


@pytest.mark.slow
def test_csv_and_parquet(opened):
    shown = run("ask", COUNT, "--spend", "0.5", "--csv", "--parquet", "wards.parquet")
    read = pyarrow.csv.read_csv(io.BytesIO(shown.stdout.encode()))
    kept = pyarrow.parquet.read_table("wards.parquet")
    assert read.column_names == kept.column_names == ["ward", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    assert read["n"].to_pylist() == kept["n"].to_pylist()
    assert "At most 4 rows of each patient_id are used; further rows are left out." in shown.stderr.splitlines()


@pytest.mark.slow
def test_an_answer_says_below_its_table_what_was_left_out(opened):
    lines = well("ask", COUNT, "--spend", "0.5").splitlines()
    assert lines[-4:] == [
        "At most 4 rows of each patient_id are used; further rows are left out.",
        "Values of age beyond [0, 110] count as the nearer bound.",
        "Rows whose ward is a value other than its 2 declared keys are left out.",
        "± covers the noise only, not what this leaves out; the owner can raise the limits, widen the bounds and "
        "declare more keys in the policy.",
    ]
    assert json.loads(well("ask", COUNT, "--spend", "0.5", "--json"))["caveats"] == lines[-4:]


@pytest.mark.slow
def test_several_questions_are_one_charge(opened):
    (opened / "all.sql").write_text(f"-- two; of them\n{COUNT};\nSELECT count(*) AS n FROM visits WHERE ward = 'a;b';")
    shown = well("ask", "--file", "all.sql", "--spend", "0.5", "--json", "--parquet", "all.parquet")
    assert len(shown.splitlines()) == 2
    assert [set(json.loads(line)["rows"][0]) & {"ward"} for line in shown.splitlines()] == [{"ward"}, set()]
    assert json.loads(well("budget", "--json"))["charges"] == 1
    assert pyarrow.parquet.read_table("all-2.parquet").num_rows == 1
    typed = run("ask", "--file", "-", "--spend", "0.5", "--json", input=(opened / "all.sql").read_text())
    assert typed.stdout == shown


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("spend", ["0.3,1e-8", "rho=0.01", "1/3"])
def test_every_form_of_spend(opened, spend):
    assert "±" in well("ask", COUNT, "--spend", spend)


@pytest.mark.slow
def test_the_level_is_free_to_change(opened):
    wide = json.loads(well("ask", COUNT, "--spend", "0.5", "--json", "--level", "0.99"))["rows"][0]
    tight = json.loads(well("ask", COUNT, "--spend", "0.5", "--json", "--level", "0.5"))["rows"][0]
    assert wide["n"] == tight["n"]
    assert wide["n_high"] > tight["n_high"]
    assert json.loads(well("budget", "--json"))["charges"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([COUNT], "--spend 0.1"),
        (["--spend", "0.1"], "Say what to ask"),
        ([COUNT, "--file", "rules.toml", "--spend", "0.1"], "Say what to ask"),
        (["--file", "none.sql", "--spend", "0.1"], "cannot be read"),
        ([" ; ", "--spend", "0.1"], "nothing to ask"),
        (["SELECT 'a", "--spend", "0.1"], "quotation mark"),
        (["SELECT sum(price) FROM visits", "--spend", "0.1"], "price"),
        (["SELECT count(*) FROM visit", "--spend", "0.1"], "visit"),
        (["SELECT * FROM visits", "--spend", "0.1"], "Rows are never shown"),
        (["DROP TABLE visits", "--spend", "0.1"], "SELECT"),
        ([NOTES, "--spend", "0.1"], "delta"),
        *(([COUNT, f"--spend={bad}"], "--spend must be") for bad in ("0", "-1", "nan", "inf", "abc", "0.1,2", "1,1,1")),
        ([COUNT, "--spend", "rho=x"], "--spend must be"),
        ([COUNT, "--spend", "0.1", "--level", "1"], "level"),
        ([COUNT, "--spend", "0.1", "--csv", "--json"], "Choose one"),
        ([COUNT, "--spend", "0.1", "--parquet", "none/x.parquet"], "folder"),
        ([COUNT, "--spend", "0.1", "--project", "none"], "no project"),
        ([COUNT, "--spned", "0.1"], "There is no option --spned: did you mean --spend?"),
    ],
)
def test_bad_input_gets_a_sentence_and_costs_nothing(settled, arguments, words):
    assert words in refused(2, "ask", *arguments)
    with closing(Project.read(settled).ledger()) as book:
        assert book.entries == ()


def test_without_a_project(here):
    assert "noisette open" in refused(2, "ask", COUNT, "--spend", "0.1")


def test_data_that_are_gone(opened):
    (opened / "visits.parquet").unlink()
    assert "There is no file" in refused(2, "ask", COUNT, "--spend", "0.1")
    assert json.loads(well("budget", "--json"))["charges"] == 0


@pytest.mark.slow
def test_an_exhausted_budget_refuses_and_tells_old_answers_all_the_same(opened):
    first = well("ask", COUNT, "--spend", "2", "--json")
    assert "The budget is used up and this question costs ε = 0.01" in refused(3, "ask", COUNT, "--spend", "0.01")
    assert well("ask", COUNT, "--spend", "2", "--json") == first


def test_a_fault_that_was_not_foreseen_says_nothing_of_the_data(opened, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError(CANARY)

    monkeypatch.setattr("noisette.curator.project.Project.curator", fails)
    assert CANARY not in refused(1, "ask", COUNT, "--spend", "0.1")


@pytest.mark.slow
def test_a_draw_that_fails_is_charged_once_and_fails_for_ever(opened, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError(CANARY)

    with monkeypatch.context() as broken:
        broken.setattr("noisette.query.draw.draw", fails)
        first = refused(1, "ask", COUNT, "--spend", "0.5")
    assert "failed after it was charged" in first
    assert refused(1, "ask", COUNT, "--spend", "0.5") == first  # that is its answer, though nothing is broken any more
    assert json.loads(well("budget", "--json"))["charges"] == 1


@pytest.mark.slow
def test_a_kept_answer_that_was_changed_is_not_handed_out(opened):
    import sqlite3

    well("ask", COUNT, "--spend", "0.5")
    with sqlite3.connect(opened / ".noisette" / "ledger.sqlite") as database:
        database.execute("UPDATE ledger_answers SET body = substr(body, 1, 40)")
    database.close()
    assert "was changed" in refused(4, "ask", COUNT, "--spend", "0.5")


@pytest.mark.slow
def test_no_value_of_the_data_is_told(opened):
    outputs = [
        run("ask", question, "--spend", "0.3,1e-8", *form).output
        for question in (
            COUNT,
            NOTES,
            f"SELECT count(*) FROM visits WHERE cost = {NUMBER - 1}",
            "SELECT max(cost) FROM visits",
        )
        for form in ([], ["--json"], ["--csv"], ["--parquet", "x.parquet"])
    ]
    outputs += [run(*command).output for command in (["budget"], ["ledger"], ["ledger", "show", "--json"])]
    assert all(CANARY not in text and str(NUMBER) not in text for text in outputs)
    assert CANARY.encode() not in texts(opened)
    assert str(NUMBER).encode() not in texts(opened)


@pytest.mark.slow
def test_a_process_of_its_own_for_each_exit_code(opened):
    asked = {
        code: process("ask", COUNT, f"--spend={spend}", folder=opened) for code, spend in ((0, 1), (2, "abc"), (3, 9))
    }
    for code, found in asked.items():
        assert found.returncode == code
        assert bool(found.stdout) == (code == 0)
        assert bool(found.stderr) == (code != 0)


def test_an_error_instead_of_a_spend(settled):
    total = "SELECT count(*) AS n FROM visits"
    told = json.loads(well("explain", total, "--error", "60", "--json"))
    answer = well("ask", total, "--error", "60")
    assert told["prices"]["more"] == json.loads(well("budget", "--json"))["more_like_last"] + 1
    assert well("ask", total, "--error", "60") == answer
    assert json.loads(well("budget", "--json"))["charges"] == 1
    assert "--spend 0.1 or --error 50" in refused(2, "ask", total, "--error", "60", "--spend", "1")
    assert "--delta goes with --error" in refused(2, "ask", total, "--spend", "1", "--delta", "1e-8")
    assert "--rows must be" in refused(2, "ask", total, "--error", "1", "--rows", "0")
