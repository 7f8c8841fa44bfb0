"""CSV as its owner declares it: encodings, delimiters, line breaks within quotes and formats of dates."""

import csv as standard
import datetime
import io
import json
import random
import re

import duckdb
import pyarrow
import pytest
from tests.engines.test_csv_lines import LINES, ODD, TYPES, file_of
from tests.engines.test_messy_texts import SAID, both

import noisette as nz
from noisette.curator.pins import Pins
from noisette.engines import csv, csv_records, open_source
from noisette.engines.csv_form import DELIMITERS, ENCODINGS, Form
from noisette.engines.duckdb.opening import csv_of
from noisette.engines.duckdb.source import DuckDB
from noisette.errors import InputError
from noisette.policy.policy import read_policy
from noisette.policy.rules import column_rules, table_rules
from noisette.query.canonical import canonical
from noisette.query.caveats import omissions
from noisette.query.formats import fault, reader
from noisette.query.kind import Kind
from noisette.query.plan import Scan
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Table
from noisette.query.sql import parse
from noisette.questions.parts.offers import declared

TEXTS = Table("t", tuple(Column(name, Kind("text")) for name in "abc"))
BROKEN = Form(line_breaks=True)


def read(path, content, form, names="abc"):
    path.write_bytes(content)
    table = Table("t", tuple(Column(name, Kind("text")) for name in names))
    return [tuple(row.values()) for row in csv_of([str(path)], "t", table, form).texts().to_pylist()]


# Encodings and delimiters


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_byte_is_read_in_the_declared_encoding(tmp_path, encoding):
    """But those that mean something in CSV; what the encoding has not is a question mark."""
    letters = [bytes([i]) for i in range(1, 256) if i not in b'\n\r",']
    found = read(tmp_path / "t.csv", b"a,b,c\n" + b"".join(b"x" + one + b",y,z\n" for one in letters), Form(encoding))
    assert found == [("x" + one.decode(ENCODINGS[encoding], "noisette.question_mark"), "y", "z") for one in letters]


def test_a_header_is_read_in_the_declared_encoding(tmp_path):
    names = ["größe"]
    assert read(tmp_path / "t.csv", "größe\nsüß\n".encode("latin-1"), Form("latin-1"), names) == [("süß",)]
    with pytest.raises(InputError, match=r'not saved as UTF-8 .*let its policy say encoding = "latin-1"\.'):
        read(tmp_path / "t.csv", "größe\nsüß\n".encode("latin-1"), Form(), names)


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_delimiters(tmp_path, delimiter):
    text = f'a{delimiter}b{delimiter}c\n1{delimiter}"x{delimiter} ""y"""{delimiter}, ; | \n'
    if delimiter == ",":
        text = text.replace(", ; | ", "; | ")
    wanted = "; | " if delimiter == "," else ", ; | " if delimiter == "\t" else None
    found = read(tmp_path / "t.csv", text.encode(), Form(delimiter=delimiter))
    assert found[0][:2] == ("1", f'x{delimiter} "y"')
    assert wanted in (None, found[0][2])


# Line breaks within quotes


def written(rows, end="\n"):
    text = io.StringIO(newline="")
    quoted = standard.QUOTE_ALL if end == "\n" else standard.QUOTE_MINIMAL  # else \r at an end is not quoted
    standard.writer(text, lineterminator=end, quoting=quoted).writerows(rows)
    return text.getvalue().encode()


def random_rows(rng, n):
    """Rows whose fields hold whatever CSV has a meaning for."""
    return [tuple("".join(rng.choices('ab",;\n\r \té', k=rng.randrange(8))) or "x" for _ in range(3)) for _ in range(n)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_record_is_a_row(tmp_path, end):
    rows = random_rows(random.Random(3), 400)
    assert any("\n" in field for row in rows for field in row)
    assert read(tmp_path / "t.csv", b"a,b,c\n" + written(rows, end), BROKEN) == rows


def test_a_record_changes_no_other_one(tmp_path):
    rows = random_rows(random.Random(4), 60)
    for i in range(0, 60, 7):
        assert read(tmp_path / "t.csv", b"a,b,c\n" + written(rows[:i] + rows[i + 1 :]), BROKEN) == (
            rows[:i] + rows[i + 1 :]
        )


def unchanged(path, odd, at):
    """Whether a line that is no record costs its own row alone."""
    whole, without = [read(path, file_of([*LINES[:at], *extra, *LINES[at:]]), BROKEN, TYPES) for extra in ([odd], [])]
    return whole[:at] == without[:at] and whole[len(whole) - len(LINES) + at :] == without[at:]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_stray_quote_swallows_no_row(tmp_path, odd):
    assert unchanged(tmp_path / "t.csv", odd, 20)


def test_stray_quotes_between_records(tmp_path):
    """Two of them, below each other and around a record with a line break: each is a row by itself."""
    lines = ['1,"a', 'x"y,2', '3,"b\nc",d', '4,e"', "5,f,g"]
    found = read(tmp_path / "t.csv", ("a,b,c\n" + "\n".join(lines)).encode(), BROKEN)
    assert found == [("1", '"a', None), ('x"y', "2", None), ("3", "b\nc", "d"), ("4", 'e"', None), ("5", "f", "g")]


def test_a_reader_that_joins_what_is_no_record_is_convicted(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_records, "_record_of", lambda delimiter, count: re.compile(rb"[\s\S]*"))
    lines = [*LINES[:20], b'7,"a', *LINES[20:30], b'8,b"', *LINES[30:]]
    assert len(read(tmp_path / "t.csv", file_of(lines), BROKEN, TYPES)) < 42
    monkeypatch.undo()
    assert len(read(tmp_path / "t.csv", file_of(lines), BROKEN, TYPES)) == 42


def test_borders_of_blocks_cut_no_record(tmp_path, monkeypatch):
    rows = [*random_rows(random.Random(5), 12), ("ä\n€", '"\n"', "\n,\n")]
    for size in (*range(1, 12), 37, 101):
        monkeypatch.setattr(csv, "_BLOCK", size)
        assert read(tmp_path / "t.csv", b"a,b,c\n" + written(rows).removesuffix(b"\n"), BROKEN) == rows


def test_what_is_longer_than_a_row_is_not_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_records, "LONGEST", 40)
    monkeypatch.setattr(csv, "_BLOCK", 8)
    content = b'a,b,c\n1,"' + b"x" * 20 + b"\n" + b"y\n" * 20 + b'",z\n2,"b\nc",d\n'
    assert read(tmp_path / "t.csv", content, BROKEN)[-1] == ("2", "b\nc", "d")


def test_a_byte_that_stands_for_line_breaks_is_a_question_mark_elsewhere(tmp_path):
    assert read(tmp_path / "t.csv", b'a,b,c\n1,\xff,"\xff\n"\n', BROKEN) == [("1", "?", "?\n")]


# Formats of dates

NEAR = [
    *("31.12.2023", "1.2.2024", " 01.02.2024 ", "29.02.2023", "29.2.24", "0.1.2024", "1.13.2024", "1.1.0000"),
    *("1.1.0001", "31.12.9999", "1.1.69", "1.1.68", "01/02/2024", "01.02.2024 7:05", "01.02.2024 24:00", "1.2.2024x"),
    *("20240229", "2024229", "20230229", "2024-02-29T23:59:59", "2024-02-29T23:59:60", "٣١.12.2023", "1.2.20245", "\n"),
]
FORMATS = ["%d.%m.%Y", "%m/%d/%Y", "%d.%m.%y", "%Y%m%d", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S"]


PAIRS = [(t, f) for f in FORMATS for t in ("date", "timestamp") if fault(f, time=t == "timestamp") is None]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(("type", "format"), PAIRS)
def test_every_engine_reads_a_format_alike(type, format):
    rng = random.Random(2)
    texts = [*SAID, *NEAR, *("".join(rng.choices("0123456789./ :", k=rng.randint(6, 12))) for _ in range(200))]
    texts += [f"{rng.randint(0, 32)}.{rng.randint(0, 13)}.{rng.randint(0, 10_500)}" for _ in range(200)]
    one, two = both(texts, Kind(type, format=format))
    assert one == two == [None if text is None else reader(format, time=type == "timestamp")(text) for text in texts]
    assert sum(value is not None for value in one) >= 1


def test_formats_are_those_of_python():
    for format in FORMATS:
        for text in NEAR:
            found = reader(format, time=True)(text)
            if found is not None:
                assert found == datetime.datetime.strptime(text.strip(" "), format)


def test_an_answer_says_what_is_no_date():
    schema = {"t": Table("t", (Column("day", Kind("date", format="%d.%m.%Y", text=True)),))}
    query = canonical(parse("SELECT count(day) AS n FROM t", schema))
    said = [part.sentence for part in omissions(prepare(query, schema))]
    assert "Texts of day that are no date by %d.%m.%Y count as NULL." in said


@pytest.mark.parametrize("stored", ["csv", "texts", "numbers"])
def test_an_answer_says_which_texts_are_no_numbers(tmp_path, stored):
    """Of columns that are read from texts, in CSV or not; columns that are stored as numbers say nothing of it."""
    (tmp_path / "t.csv").write_text("cost,ward\n1,a\n12,b\n" * 9)
    texts = pyarrow.array(["1", "12,5"] * 9)
    kept = {"csv": tmp_path / "t.csv", "texts": pyarrow.table({"cost": texts, "ward": texts})}
    table = kept.get(stored, pyarrow.table({"cost": [1.0] * 9, "ward": ["a"] * 9}))
    columns = {"cost": {"type": "real", "bounds": [0, 100]}, "ward": {"type": "text", "keys": ["a", "b"]}}
    data = nz.open({"t": table}, budget=9, policy={"tables": {"t": {"columns": columns}}})
    said = data.sql("SELECT ward, avg(cost) AS c FROM t GROUP BY ward", spend=1).caveats
    assert ("Texts of cost that are no real count as NULL." in said) == (stored != "numbers")
    assert not any(sentence.startswith("Texts of ward") for sentence in said)


def test_a_day_and_a_month_that_change_places_are_told_apart():
    assert reader("%d.%m.%Y", time=False)("1.2.2024") == datetime.date(2024, 2, 1)
    assert reader("%m.%d.%Y", time=False)("1.2.2024") == datetime.date(2024, 1, 2)


def test_a_file_is_read_in_the_format(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"day\n 1.2.2024\n2024-02-01\n31.02.2024\n\n")
    table = Table("t", (Column("day", Kind("date", format="%d.%m.%Y")),))
    found = csv_of([str(tmp_path / "t.csv")], "t", table).read(duckdb.connect())
    assert found.column("day").to_pylist() == [datetime.date(2024, 2, 1), None, None]


@pytest.mark.slow
def test_csv_and_stored_texts_are_read_in_the_same_format(tmp_path):
    """The file once, when it is read; the column of a frame by each question."""
    days = [f"{1 + i % 28:02}.{1 + i % 12:02}.2024" for i in range(84)]
    (tmp_path / "t.csv").write_text("day\n" + "\n".join([*days, "2024-01-01", "31.02.2024"]) + "\n")
    frame = pyarrow.table({"day": [*days, "2024-01-01", "31.02.2024"]})
    column = {"type": "date", "format": "%d.%m.%Y", "bounds": [datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)]}
    policy = {"tables": {"t": {"columns": {"day": column}}}}
    for source in (tmp_path / "t.csv", frame):
        data = nz.open({"t": source}, budget=10_000, policy=policy)
        answer = data.sql("SELECT month(day) AS m, count(*) AS n FROM t GROUP BY m", spend=1_000)
        assert {row["m"]: row["n"] for row in answer.rows()} == {**dict.fromkeys(range(1, 13), 7), None: 2}


# What the owner writes

SAYS = {
    "encoding": ({"encoding": "utf-7"}, 'encoding in the policy must be one of "utf-8", "latin-1", "iso-8859-1", "win'),
    "a number": ({"encoding": 3}, "encoding in the policy must be one of"),
    "delimiter": ({"delimiter": ";;"}, 'delimiter in the policy must be one of ",", ";", "\\t", "|".'),
    "line breaks": ({"line_breaks": "yes"}, "line_breaks in the policy must be true or false"),
}
SAYS_OF_COLUMN = {
    "a letter": ({"type": "date", "format": "%d.%b.%Y"}, "may hold %d, %m, %Y or %y"),
    "twice": ({"type": "date", "format": "%d.%m.%Y %y"}, "the year, the month and the day, each once"),
    "no day": ({"type": "date", "format": "%m/%Y"}, "the year, the month and the day, each once"),
    "no hour": ({"type": "timestamp", "format": "%d.%m.%Y %M"}, "must name hours before minutes"),
    "a time": ({"type": "date", "format": "%d.%m.%Y %H:%M"}, "names a time, which a date has not"),
    "a pattern": ({"type": "date", "format": "%d(%m)%Y"}, "may hold %d, %m, %Y or %y"),
    "no text": ({"type": "date", "format": 3}, "must be a text"),
    "no date": ({"type": "integer", "format": "%d.%m.%Y"}, 'say type = "date" or type = "timestamp"'),
    "no type": ({"format": "%d.%m.%Y"}, 'say type = "date" or type = "timestamp"'),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_is_wrong_with_a_table_is_said(name):
    given, said = SAYS[name]
    with pytest.raises(InputError) as caught:
        table_rules(given, "tables.t")
    assert said in str(caught.value)


@pytest.mark.parametrize("name", SAYS_OF_COLUMN)
def test_what_is_wrong_with_a_column_is_said(name):
    given, said = SAYS_OF_COLUMN[name]
    with pytest.raises(InputError) as caught:
        column_rules(given, "day")
    assert said in str(caught.value)


def test_a_policy_is_written_as_it_was_read(tmp_path):
    columns = {"day": {"type": "date", "format": "%d.%m.%Y"}}
    table = {"encoding": "Windows-1252", "delimiter": "\t", "line_breaks": True, "columns": columns}
    policy = read_policy({"budget": {"epsilon": 1}, "tables": {"t": table}})
    (tmp_path / "p.toml").write_text(policy.to_toml(), "utf-8")
    assert read_policy(tmp_path / "p.toml") == policy
    assert policy.tables["t"].form == Form("windows-1252", "\t", line_breaks=True)


@pytest.mark.parametrize("form", [{"encoding": "latin-1"}, {"delimiter": ";"}, {"line_breaks": True}], ids=str)
def test_what_is_for_csv_is_refused_elsewhere(form):
    policy = {"tables": {"t": form}}
    with pytest.raises(InputError, match="is for CSV files alone: leave it out"):
        nz.open({"t": pyarrow.table({"x": [1]})}, budget=1, policy=policy)


def test_a_format_is_refused_where_dates_are_stored():
    days = pyarrow.table({"day": pyarrow.array([1], pyarrow.date32())})
    policy = {"tables": {"t": {"columns": {"day": {"type": "date", "format": "%d.%m.%Y"}}}}}
    with pytest.raises(InputError, match=r"day.format in the policy is for texts, but the column is stored as DATE"):
        nz.open({"t": days}, budget=1, policy=policy)


def test_what_is_read_otherwise_is_in_another_state(tmp_path):
    """And what is not declared is in the state of earlier versions."""
    (tmp_path / "t.csv").write_bytes(b"a,b,c\n1,2,3\n")
    tables = {"t": tmp_path / "t.csv"}
    source = DuckDB(tables, {"t": TEXTS})
    forms = [None, {}, {"t": Form("latin-1")}, {"t": BROKEN}]
    states = [Pins(source, tables, form, pinned=True)() for form in forms]
    assert states[0] == states[1]
    assert set(json.loads(states[0])) == {"files"}
    assert len(set(states)) == 3


def test_a_question_about_a_column_in_another_format_is_another_question():
    def text(format):
        schema = {"t": Table("t", (Column("day", Kind("date", format=format)),))}
        return declared([prepare(canonical(parse("SELECT count(day) AS n FROM t", schema)), schema)])

    assert len({text(format) for format in (None, "%d.%m.%Y", "%m.%d.%Y")}) == 3
    assert "format" not in repr(Kind("date"))


@pytest.mark.slow
def test_what_is_read_otherwise_is_another_question(tmp_path):
    """Of which the answer that was given before is no answer."""
    (tmp_path / "t.csv").write_bytes("ward,day\nö,01.02.2024\n".encode("latin-1"))

    def paid(form, format):
        day = {"type": "date", **({} if format is None else {"format": format})}
        rules = {**form, "columns": {"ward": {"type": "text", "keys": ["ö"]}, "day": day}}
        data = nz.open(tmp_path / "t.csv", ledger=tmp_path / "ledger", budget=9, policy={"tables": {"t": rules}})
        data.sql("SELECT ward, count(day) AS n FROM t GROUP BY ward", spend=1)
        spent = data.budget.spent.epsilon
        data.ledger.close()
        return int(spent)

    latin = {"encoding": "latin-1"}
    forms = [({}, None), ({}, None), (latin, None), (latin, "%d.%m.%Y"), (latin, "%m.%d.%Y"), (latin, "%m.%d.%Y")]
    assert [paid(*form) for form in forms] == [1, 1, 2, 3, 4, 4]


def test_rows_through_the_engine(tmp_path):
    (tmp_path / "t.csv").write_bytes('a;b;c\n1;"Pädi\natrie";x\n'.encode("latin-1"))
    form = Form("latin-1", ";", line_breaks=True)
    source = open_source({"t": tmp_path / "t.csv"}, {"t": TEXTS}, {"t": form})
    found = source.rows(Scan("t", "t"), {"t.b": "b"}, {"t": TEXTS}, b"")
    assert found.column("b").to_pylist() == ["Pädi\natrie"]
