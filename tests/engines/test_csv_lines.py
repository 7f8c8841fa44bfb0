"""CSV: a row is a line, and whatever bytes stand in one line, every other row is read as before."""

import random

import duckdb
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noisette.engines import csv
from noisette.engines.csv import fields
from noisette.engines.duckdb.opening import Csv, csv_of
from noisette.engines.duckdb.source import DuckDB
from noisette.errors import InputError, NoisetteError
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.plan import Scan
from noisette.query.schema import Column, Table

ENGINE = duckdb.connect()
TYPES = {"id": "integer", "ward": "text", "pay": "real", "day": "date"}
TABLE = Table("t", tuple(Column(name, Kind(type)) for name, type in TYPES.items()))
LINES = [f'{i},"ward {i}, ""east""",{i}.5,2020-01-0{1 + i % 9}'.encode() for i in range(40)]
ODD = [
    b'"', b'""', b'"""', b'7,"', b'7,"a', b'7,a"b', b'7,"a"b"', b'",",",', b'7,"a,b,c,d', b"'", b"7,'a",
    b"\0", b"7,\0,\0", b"\r", b"7\r8", b"\r\r\r", b"7,a\r", b"", b" ", b",", b",,,,,,,,,,", b"7",
    b"\xff\xfe", b"7,\xe9,1", b"7,\xe2\x82", b"\xef\xbb\xbf7,a", b"7,\xed\xa0\x80", b"\x1a", b"\\", b'7,"a\\",b',
    b"7,a,1e999,2020-13-45", b"99999999999999999999,a,nan,infinity", b"#7,a", b"id,ward,pay,day", b"\x85\xe2\x80\xa8",
]  # fmt: skip


def read(path, content, *more):
    path.write_bytes(content)
    files = [str(path), *map(str, more)]
    found = csv_of(files, "t", TABLE).read(ENGINE)
    day = found.column("day").cast(pyarrow.int32()) if found.column("day").type == pyarrow.date32() else None
    return (found if day is None else found.drop_columns("day").append_column("day", day)).to_pylist()


def file_of(lines, end=b"\n"):
    return end.join([b"id,ward,pay,day", *lines]) + end


def unchanged(path, odd, at, end=b"\n"):
    """Whether all rows but one are read as if the odd line were not there, and that one gives one row at most."""
    others = read(path, file_of(LINES[:at] + LINES[at + 1 :], end))
    found = read(path, file_of([*LINES[:at], odd, *LINES[at + 1 :]], end))
    return found[:at] == others[:at] and found[len(found) - len(others) + at :] == others[at:] and (
        len(found) - len(others) in (0, 1)
    )  # fmt: skip


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_lines_change_no_other_row(tmp_path, odd):
    for at in (0, 20, 39):
        assert unchanged(tmp_path / "t.csv", odd, at)
    assert unchanged(tmp_path / "t.csv", odd, 20, end=b"\r\n")


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(odd=st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), at=st.integers(0, 39))
@example(odd=b'1,"', at=0)
def test_arbitrary_bytes_change_no_other_row(tmp_path_factory, odd, at):
    assert unchanged(tmp_path_factory.mktemp("csv") / "t.csv", odd, at)


@pytest.mark.slow
def test_borders_of_blocks_change_nothing(tmp_path, monkeypatch):
    """Characters, quotes and line ends that are cut by a border are read as if there were none."""
    path = tmp_path / "t.csv"
    lines = [*LINES[:5], '8,"ä€😀, ""x""",1.5,2020-01-01'.encode(), b'9,"odd', b"10,\xe2\x82,1"]
    for end in (b"\n", b"\r\n"):
        whole = read(path, file_of(lines, end))
        for size in (*range(1, 8), 23, 59):
            monkeypatch.setattr(csv, "_BLOCK", size)
            assert read(path, file_of(lines, end)) == whole
        monkeypatch.undo()


def test_a_line_that_is_too_long_is_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "_LONGEST", 60)
    fits, long = b"7," + b"x" * 58, b"7," + b"x" * 59
    path = tmp_path / "t.csv"
    others = read(path, file_of(LINES))
    assert read(path, file_of([*LINES, long])) == others
    assert len(read(path, file_of([*LINES, fits]))) == len(others) + 1


@pytest.mark.slow
def test_a_long_line_costs_no_more_than_its_bytes(tmp_path):
    lines = [*LINES, b"7," + b'"a"",' * 400_000, b"8," * 1_000_000]
    assert [row["id"] for row in read(tmp_path / "t.csv", file_of(lines))] == [*range(40), 7, 8]


def plain(line, count):
    """The fields of a line by the rule of `csv`, letter by letter; None if the line is no row."""
    line = line.removesuffix(b"\r")
    if not line:
        return None
    found, field, inside, balanced = [], b"", False, line.count(b'"') % 2 == 0
    for letter in (line[i : i + 1] for i in range(len(line))):
        inside ^= letter == b'"' and balanced
        if letter == b"," and not inside:
            found, field = [*found, field], b""
        else:
            field += letter
    found.append(field)
    if balanced:
        found = [
            f[1:-1].replace(b'""', b'"') if len(f) > 1 and f.startswith(b'"') and f.endswith(b'"') else f for f in found
        ]
    return [f.decode() for f in found[:count]] + [None] * (count - len(found))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet='a",\r ', max_size=12).map(str.encode), max_size=6))
def test_fields_are_those_of_the_rule(lines):
    expected = [row for row in (plain(line, 3) for line in lines) if row is not None]
    for block in (b"\n".join(lines), b"\n".join([*lines, b""])):
        found = [column.to_pylist() for column in fields(block, b",", 3)]
        assert [list(row) for row in zip(*found, strict=True)] == expected


def test_what_other_programs_write_is_read(tmp_path):
    """Fields as the standard library writes them, except line breaks within one."""
    import csv as standard
    import io

    draw = random.Random(5)
    rows = [["".join(draw.choices("ab\",; \t'é", k=draw.randrange(6))) or "x" for _ in range(3)] for _ in range(300)]
    text = io.StringIO()
    standard.writer(text).writerows(rows)
    found = [column.to_pylist() for column in fields(text.getvalue().encode(), b",", 3)]
    assert [list(row) for row in zip(*found, strict=True)] == rows


def test_rows_of_the_rule(tmp_path):
    """Too few fields, too many, none, empty ones, cells of another type, a mark of the encoding, no last line end."""
    lines = [b"1", b"2,b,3,2020-01-01,5,6", b"", b'3,"",,', b"x,c,y,z", b"\r", b" 4 , d ,1,2020-01-01"]
    content = b"\xef\xbb\xbf" + file_of(lines).removesuffix(b"\n")
    rows = [tuple(row.values())[:3] for row in read(tmp_path / "t.csv", content)]
    assert rows == [(1, None, None), (2, "b", 3.0), (3, None, None), (None, "c", None), (4, " d ", 1.0)]


def test_files_of_one_table_have_one_header(tmp_path):
    other = tmp_path / "u.csv"
    other.write_bytes(b"id,ward,pay,day\r\n7,a,1,2020-01-01")
    assert len(read(tmp_path / "t.csv", file_of(LINES), other)) == 41
    for header in (b"ward,id,pay,day", b"id,ward,pay", b"id,ward,pay,day,more", b"ID,ward,pay,day"):
        other.write_bytes(header + b"\n")
        with pytest.raises(InputError, match="differ in their first line"):
            read(tmp_path / "t.csv", file_of(LINES), other)


@pytest.mark.parametrize("header", [b"", b"\n1,2", b"id,id\n", b"id,,ward\n", b"id,ward,pay,day\r1,a,2,3\r", b'"a\n"'])
def test_headers_that_name_no_columns_are_refused(tmp_path, header):
    with pytest.raises(InputError, match=r"first line|no column"):
        read(tmp_path / "t.csv", header)


def test_other_encodings_are_refused(tmp_path):
    with pytest.raises(InputError, match="UTF-8"):
        read(tmp_path / "t.csv", file_of(LINES).decode().encode("utf-16"))


# Through the engine


def counts(source):
    ward = Request(Scan("t", "t"), (), (), (Measure("rows"),), None)
    return source.aggregate(ward, {"t": TABLE}, bytes(16)).measures[0].tolist()


def test_one_quote_swallows_no_other_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(file_of([*LINES[:1], b'7,"a', *LINES[1:]]))
    assert counts(DuckDB({"t": path}, {"t": TABLE})) == [41]


def test_rows_are_read_by_the_first_question_and_once(tmp_path, monkeypatch):
    blocks = []
    monkeypatch.setattr(csv, "blocks", lambda path, inner=csv.blocks: blocks.append(path) or inner(path))
    path = tmp_path / "t.csv"
    path.write_bytes(file_of(LINES))
    source = DuckDB({"t": path}, {"t": TABLE})
    assert source.stored("t") == {"id": "BIGINT", "ward": "VARCHAR", "pay": "DOUBLE", "day": "DATE"}
    assert blocks == []
    assert counts(source) == counts(source) == [40]
    assert len(blocks) == 1


def test_a_file_that_is_gone_says_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(file_of(LINES))
    source = DuckDB({"t": path}, {"t": TABLE})
    path.unlink()
    with pytest.raises(NoisetteError, match="stays inside") as caught:
        counts(source)
    assert caught.value.__context__ is None


def test_a_reader_that_lets_quotes_span_lines_is_convicted(tmp_path, monkeypatch):
    """A twin with the engine's own reader, as it is usually called."""

    def engine(self, connection):
        columns = dict.fromkeys(self.types, "VARCHAR")
        options = "header = true, quote = '\"', auto_detect = false, null_padding = true, strict_mode = false"
        return connection.sql(
            f"FROM read_csv({list(self.files)}, columns = {columns}, ignore_errors = true, {options})"
        ).to_arrow_table()

    monkeypatch.setattr(Csv, "read", engine)
    assert not unchanged(tmp_path / "t.csv", b'7,"a', 20)
