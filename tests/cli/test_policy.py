"""Policy files: templates that are valid when their comments are taken in, and every problem with its line."""

import json
import re
import tomllib

import pyarrow
import pyarrow.parquet
import pytest
from tests.cli.tools import CANARY, refused, run, well

from noisette.policy.check import lines_of, problems
from noisette.policy.toml import Gap, sections

BAD = """[budgte]
x = 1
[budget]
epsilon = "2"
dleta = "1e-6"

[tables.visits]
unit = "patientid"
rows = "many"

[tables.visits.columns.age]
bounds = [110, 0]
nulable = true

[tables.visits.columns]
wrd = { keys = ["a"], group = 3 }
cost = { type = "date" }

[tables.vists]
public = true

[rules]
rounding = 0
"""


def taken_in(text):
    """A policy file with all of its commented lines."""
    return re.sub(r"^# ", "", text, flags=re.MULTILINE)


def filled(text):
    """The same with values in place of placeholders, those of bounds as the line itself gives an example."""
    text = re.sub(r'"…", "…"\](.*?such as )([^:]+(?::[0-9:T-]+, [^:]+[0-9:]+)?):', r"\2]\1\2:", text)
    return text.replace('"…", "…"', '"a", "b"').replace('rows = "…"', "rows = 10")


def pasted(text, printed):
    """A policy file with the sections that were printed, each in place of the one of that name."""
    blocks = {block.split("\n")[0]: block for block in text.strip().split("\n\n")}
    blocks |= {block.split("\n")[0]: block for block in printed.strip().split("\n\n") if block.startswith("[")}
    return "\n\n".join(blocks.values()) + "\n"


@pytest.fixture
def odd(here):
    """A table with every type, and names that TOML must quote."""
    columns = {
        "patient_id": pyarrow.array(["p"]),
        'a "b" é': pyarrow.array(["x"]),
        "day.of\tvisit": pyarrow.array([1], pyarrow.date32()),
        "at": pyarrow.array([1], pyarrow.timestamp("us")),
        "zoned": pyarrow.array([1], pyarrow.timestamp("us", tz="UTC")),
        "tags": pyarrow.array([["x"]]),
        "yes": pyarrow.array([True]),
        "cost": pyarrow.array([1.5]),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), here / "odd.parquet")
    (here / "odd.csv").write_text('patient_id,"a ""b"" é",day.of visit\np,x,1\n', "utf-8")
    return here


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("file", ["odd.parquet", "odd.csv", "visits.csv", "visits.parquet"])
def test_a_template_is_valid_when_everything_is_taken_in(odd, file):
    well("open", file, "--unit", "patient_id", "--budget", "2,1e-6")
    policy = odd / f"{file.partition('.')[0]}.policy.toml"
    text = policy.read_text("utf-8")
    assert problems(policy) == []
    full = taken_in(text)
    assert len(tomllib.loads(full)["tables"]) == 1
    assert full.count('\nrows = "…"') == 1
    policy.write_text(filled(full), "utf-8")
    assert "and fits the columns of the data; rows were not looked at" in well("policy", "check")
    assert "Not declared yet" not in well("policy", "check")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("file", ["odd.csv", "odd.parquet", "visits.csv", "visits.parquet"])
def test_everything_that_is_printed_can_be_pasted(odd, file):
    shown = well("open", file, "--unit", "patient_id", "--budget", "2,1e-6")
    policy = odd / f"{file.partition('.')[0]}.policy.toml"
    made = policy.read_text("utf-8")
    assert sections_of(well("policy", "check")) == sections_of(shown) != []
    tomllib.loads(pasted(made, shown))
    policy.write_text(pasted(made, filled(shown)), "utf-8")
    assert "Not declared yet" not in well("policy", "check")
    assert "±" in well("explain", f"SELECT count(*) AS n FROM {policy.name.partition('.')[0]}", "--spend", "0.1")


def sections_of(printed):
    return [line for line in printed.split("\n") if line.startswith("[")]


def test_the_types_that_a_csv_file_needs_can_be_pasted(odd):
    """As sections where the policy names no column yet; else the first column that lacks one is named."""
    text = '[budget]\nepsilon = "2"\n[tables.odd]\nunit = "patient_id"\nrows = 1\n'
    (odd / "p.toml").write_text(text)
    said = run("policy", "check", "p.toml", "--data", "odd.csv").stderr
    (odd / "p.toml").write_text(text + said[said.index("[tables.odd.columns]") :], "utf-8")
    assert "p.toml is in order" in well("policy", "check", "p.toml", "--data", "odd.csv")
    (odd / "p.toml").write_text(text + "[tables.odd.columns]\npatient_id = { nullable = false }\n")
    assert "columns.patient_id in the policy needs a type" in refused(
        2, "policy", "check", "p.toml", "--data", "odd.csv"
    )


def test_a_head_for_each_line_is_convicted():
    """A twin that prints the section again before each line that is missing in it."""
    gaps = [Gap("t", "k", "tables.t.columns.k", line, "why") for line in ('keys = ["…", "…"]', "trim = true")]
    printed = sections(gaps, {})
    assert tomllib.loads(printed)["tables"]["t"]["columns"]["k"]["trim"] is True
    twin = "\n\n".join(f"[{gap.place}]\n{gap.line}" for gap in gaps)
    with pytest.raises(tomllib.TOMLDecodeError, match="twice"):
        tomllib.loads(twin)


OPEN_LINES = {
    'rows = "…"': ("", "tables.visits.rows"),
    'keys = ["…", "…"]': ("columns.ward", "tables.visits.columns.ward.keys"),
    'keys = ["north", "…"]': ("columns.ward", "tables.visits.columns.ward.keys"),
    'bounds = ["…", "…"]': ("columns.age", "tables.visits.columns.age.bounds"),
    'bounds = [0, "…"]': ("columns.age", "tables.visits.columns.age.bounds"),
}


@pytest.mark.parametrize("line", OPEN_LINES)
def test_a_placeholder_is_never_read_as_a_value(here, line):
    section, place = OPEN_LINES[line]
    head = "[tables.visits]" + ("" if section else "\n" + line) + '\nunit = "patient_id"'
    more = f"[tables.visits.{section}]\n{line}" if section else ""
    (here / "p.toml").write_text(f'[budget]\nepsilon = "2"\n{head}\n{more}\n', "utf-8")
    said = f'{place} in the policy still holds "…": write what is true in its place, or take it out.\n'
    assert refused(2, "policy", "check", "p.toml").partition(": ")[2] == said
    assert refused(2, "open", "visits.parquet", "--policy", "p.toml") == said


def test_a_question_refuses_a_placeholder(opened):
    file = opened / "rules.toml"
    file.write_text(file.read_text().replace('"north", "south"', '"…", "…"'), "utf-8")
    assert 'ward.keys in the policy still holds "…"' in refused(2, "ask", "SELECT count(*) FROM visits", "--spend", "1")


def test_nothing_is_proposed_that_a_column_may_not_be_used_for(here):
    """Keys for what is never grouped, or says whose a row is."""
    text = '[budget]\nepsilon = "2"\n[tables.visits]\nunit = "patient_id"\nrows = 4\n[tables.visits.columns]\n'
    (here / "p.toml").write_text(text + "note = { group = false }\n")
    proposed = json.loads(well("policy", "check", "p.toml", "--data", "visits.parquet", "--json"))["missing"]
    assert {gap["column"] for gap in proposed} == {"ward", "age", "cost"}
    pyarrow.parquet.write_table(pyarrow.table({"patient_id": ["a"], "plan": ["x"]}), here / "people.parquet")
    link = 'unit = { through = "people", on = { patient_id = "patient_id" } }'
    (here / "p.toml").write_text(text.replace('unit = "patient_id"', link) + '[tables.people]\nunit = "plan"\nrows = 1')
    data = "--data", "visits.parquet", "--data", "people.parquet"
    proposed = json.loads(well("policy", "check", "p.toml", *data, "--json"))["missing"]
    assert {gap["column"] for gap in proposed} == {"ward", "age", "note", "cost"}


def test_a_repeated_key_is_one_problem(here):
    """Nor are the units that it leads to further problems."""
    rows = {"patient_id": ["a", "a"], "plan": ["x", "y"], "visit": [1, 2]}
    pyarrow.parquet.write_table(pyarrow.table(rows), here / "people.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"patient_id": ["a", "a"], "id": [1, 2]}), here / "visits.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"visit": [1, 2]}), here / "labs.parquet")
    text = """[budget]
epsilon = "2"
[tables.people]
unit = "plan"
[tables.visits]
rows = 4
unit = { through = "people", on = { patient_id = "patient_id" } }
[tables.labs]
rows = 3
unit = { through = "visits", on = { visit = "id" } }
"""
    (here / "p.toml").write_text(text)
    data = [part for name in ("people", "visits", "labs") for part in ("--data", f"{name}.parquet")]
    said = refused(2, "policy", "check", "p.toml", *data)
    assert said.count("\n") == 1
    assert said.startswith("line 7: tables.visits.unit.on in the policy refers to several rows of people")


@pytest.mark.slow
def test_a_csv_file_has_one_line_of_types_for_each_column(here):
    well("open", "visits.csv", "--unit", "patient_id", "--rows", "4", "--budget", "2")
    text = (here / "visits.policy.toml").read_text()
    line = 'type = "text"  # or "integer", "real", "boolean", "date", "timestamp"'
    assert text.count(line) == len(("patient_id", "ward", "age", "note", "cost"))
    assert CANARY not in text


def test_every_problem_has_its_line(here):
    (here / "bad.toml").write_text(BAD)
    lines = refused(2, "policy", "check", "bad.toml").splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"line {n}" for n in (1, 5, 9, 12, 13, 16, 23)]
    lines = refused(2, "policy", "check", "bad.toml", "--data", "visits.parquet").splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"line {n}" for n in (1, 5, 8, 9, 12, 13, 16, 16, 17, 19, 23)]
    assert "did you mean patient_id?" in lines[2]
    assert "says date, but the column is stored as integer" in lines[8]
    assert CANARY not in "".join(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "is not valid TOML at end of document"),
        (
            "[t.k]\na = 1\n[t.k]\nb = 2",
            "line 3: The policy file p.toml is not valid TOML at line 3, column 5: cannot declare ('t', 'k') twice.\n",
        ),
        ("[budget]\nepsilon = = 2", "line 2: The policy file p.toml is not valid TOML at line 2, column 11"),
        ('[tables.visits]\nunit = "p"', "Say how much may be spent in all"),
        ("[budget]\nepsilon = -1", "line 1: The budget in the policy cannot be used"),
        ("[budget]\nepsilon = 1\ntables = 3", "line 3: budget.tables in the policy is unknown"),
        ("tables = 3\n[budget]\nepsilon = 1", "line 1: tables in the policy must be a section"),
    ],
)
def test_single_problems(here, text, said):
    (here / "p.toml").write_text(text)
    found = refused(2, "policy", "check", "p.toml")
    assert said in found
    assert found.count("\n") == 1


@pytest.mark.slow
def test_json_and_a_project(opened):
    found = json.loads(well("policy", "check", "--json"))
    assert (found["policy"], found["against_data"], found["problems"]) == ("rules.toml", True, [])
    assert [gap["column"] for gap in found["missing"]] == ["note", "note", "cost"]
    (opened / "rules.toml").write_text("[budget]\nepsilon = 2\n[tables.visits]\nrows = 3\n")
    found = run("policy", "check", "--json")
    assert (found.exit_code, json.loads(found.stdout)["problems"][0]["line"]) == (2, 4)


def test_lines_of_quoted_names():
    text = '[tables."my visits"]\nrows = 1\n[tables."my visits".columns]\n"a = b" = { bounds = [0, 1], grid = 1 }'
    assert lines_of(text)['tables."my visits".columns."a = b".grid'] == 4


# What is no CSV file in UTF-8 with commas gets its own sentence, from the first line alone


HEAD = "patient_id{0}größe{0}day"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HEAD.format(",").encode("latin-1") + b"\n", "is not saved as UTF-8 (Latin-1 or Windows-1252 are likely)"),
        (HEAD.format(",").encode("utf-16"), "is saved as UTF-16: save it as UTF-8."),
        (HEAD.format(",").encode("utf-16-le"), "is saved as UTF-16: save it as UTF-8."),
        (
            HEAD.format(";").encode(),
            'its columns by semicolons: save it with commas instead, or let its policy say delimiter = ";".',
        ),
        (b"\xef\xbb\xbf" + HEAD.format(";").encode(), "separates its columns by semicolons"),
        (HEAD.format("\t").encode(), "separates its columns by tabs"),
        (
            HEAD.format(";").encode("latin-1"),
            'semicolons: save it as UTF-8, with commas instead, or let its policy say encoding = "latin-1" and delim',
        ),
        (b"", "has no first line that names its columns: is it empty?"),
        (b"\xef\xbb\xbf\r\n", "has no first line"),
        (b"PK\x03\x04abc", "is a spreadsheet or an archive"),
        (b"\x1f\x8b\x08", "is compressed"),
        (b"a,a\n1,2\n", "each one differently"),
    ],
    ids=[
        "latin-1",
        "utf-16",
        "utf-16-le",
        "semicolons",
        "mark",
        "tabs",
        "both",
        "empty",
        "blank",
        "xlsx",
        "gzip",
        "twice",
    ],
)
def test_files_that_are_no_csv(here, content, said):
    (here / "messy.csv").write_bytes(content + f"\n{CANARY};{CANARY},1".encode())
    found = refused(2, "open", "messy.csv", "--budget", "1")
    assert said in found
    assert found.count("\n") == 1
    assert CANARY not in found
    assert not (here / ".noisette").exists()


@pytest.mark.parametrize(
    ("file", "said"),
    [("visits.csv", "The first line of table visits names"), ("visits.parquet", "Table visits has")],
)
def test_a_unit_that_is_mistyped(here, file, said):
    found = refused(2, "open", file, "--unit", "patientid", "--rows", "1", "--budget", "1")
    assert found == f"{said} no column patientid: did you mean patient_id?\n"


@pytest.mark.slow
def test_a_byte_order_mark_alone_is_fine(here):
    (here / "messy.csv").write_bytes(b"\xef\xbb\xbf" + HEAD.format(",").encode() + b"\r\n1,2,3\r\n")
    assert "größe" in well("open", "messy.csv", "--budget", "1")


@pytest.mark.slow
def test_columns_that_no_question_can_use_say_why(odd):
    well("open", "odd.parquet", "--unit", "patient_id", "--rows", "1", "--budget", "2")
    zoned = refused(2, "ask", "SELECT count(zoned) FROM odd", "--spend", "1")
    assert zoned == "Column zoned cannot be asked for: store it as a timestamp of one time zone.\n"
    tags = refused(2, "ask", "SELECT count(tags) FROM odd", "--spend", "1")
    assert tags == "Column tags cannot be asked for: store each value of the list in a row of its own.\n"
    assert tags == refused(2, "ask", '{"mode": {"column": "tags"}}', "--spend", "1")
