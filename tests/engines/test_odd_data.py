"""Data that could stop a question, or let one row decide what is read of another: found at opening, or read by a rule.

Each rule is convicted once: without it, the attack that it answers must succeed.
"""

import struct
from decimal import Decimal
from fractions import Fraction

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from noisette.engines.duckdb import opening
from noisette.engines.duckdb import opening as reading
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql.syntax import column
from noisette.errors import InputError, NoisetteError
from noisette.privacy import Neighbours
from noisette.query.kind import Kind
from noisette.query.measure import sensitivity
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse

SECRET = bytes(range(16))
INVALID = [b"\xff", b"caf\xe9", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"x" * 30 + b"\xff"]
NOTE = Kind("text")
QUESTIONS = [
    "SELECT count(*) FROM t WHERE note = '?'",
    "SELECT count(*) FROM t WHERE lower(note) = 'ok'",
    "SELECT count(*) FROM t WHERE upper(note) LIKE '%K'",
    "SELECT count(DISTINCT note) FROM t",
    "SELECT count(*) FROM t WHERE CASE WHEN n = 1 THEN upper(trim(note)) ELSE 'x' END IN ('OK', '?')",
    "SELECT note, count(*) AS c FROM t GROUP BY note",
]


def text_of(values):
    """An array that says it is text, whatever its bytes are."""
    plain = pyarrow.array(values, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(plain), plain.buffers(), plain.null_count)


def rows_of(values):
    return pyarrow.table({"note": text_of(values), "n": list(range(len(values)))})


def schema_of(**kinds):
    return {"t": Table("t", tuple(Column(name, kind) for name, kind in kinds.items()))}


def asked(source, schema, text):
    prepared = prepare(parse(text, schema), schema)
    return source.aggregate(prepared.request, schema, SECRET), prepared


def counted(source, schema, text):
    return asked(source, schema, text)[0].measures[0].tolist()


SCHEMA = schema_of(note=NOTE, n=Kind("integer", Fraction(0), Fraction(99), Fraction(1)))


def written(folder, table, name="t.parquet", **options):
    parquet.write_table(table, folder / name, **options)
    return folder / name


# Text


def dictionary_of(values):
    indices = pyarrow.array([None if v is None else i for i, v in enumerate(values)])
    return pyarrow.table(
        {
            "note": pyarrow.DictionaryArray.from_arrays(indices, text_of([v or b"" for v in values])),
            "n": range(len(values)),
        }
    )


def wide(values):
    table = rows_of(values)
    large = table.column("note").cast(pyarrow.large_binary()).combine_chunks().view(pyarrow.large_string())
    return table.set_column(0, "note", large)


FORMS = {
    "frame": lambda folder, values: rows_of(values),
    "chunks": lambda folder, values: pyarrow.concat_tables([rows_of(values[:2]), rows_of(values[2:])]),
    "wide": lambda folder, values: wide(values),
    "dictionary": lambda folder, values: dictionary_of(values),
    "parquet": lambda folder, values: written(folder, rows_of(values)),
    "plain parquet": lambda folder, values: written(folder, rows_of(values), use_dictionary=False, compression="none"),
    "small pages": lambda folder, values: written(folder, rows_of(values), row_group_size=1, data_page_size=1),
}


@pytest.mark.parametrize("form", FORMS)
def test_text_that_is_not_valid_is_read_with_question_marks(tmp_path, form):
    """No question fails, and no other row is read differently."""
    values = [b"ok", None, b"OK", *INVALID, "café".encode(), b"a\0b", b""]
    source = DuckDB({"t": FORMS[form](tmp_path, values)}, threads=1)
    for text in QUESTIONS:
        asked(source, SCHEMA, text)
    found = asked(source, SCHEMA, QUESTIONS[-1])[0]
    keys = set(found.keys.column(0).to_pylist())
    assert {"ok", "OK", None, "café", "a\0b", ""} <= keys
    odd = keys - {"ok", "OK", None, "café", "a\0b", ""}
    assert odd
    assert all("?" in key for key in odd)


def test_frames_are_mended_only_where_they_must_be():
    frame = rows_of([b"ok", b"\xff"])
    source = DuckDB({"t": frame})
    assert counted(source, SCHEMA, "SELECT count(*) FROM t WHERE note = '?'") == [1]
    assert frame.column("note").combine_chunks().equals(text_of([b"ok", b"\xff"]))  # the caller's own is as it was


def test_an_engine_that_gets_text_that_is_not_valid_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "valid_table", lambda table, name: table)
    with pytest.raises(NoisetteError):
        counted(DuckDB({"t": rows_of(INVALID)}), SCHEMA, QUESTIONS[1])
    monkeypatch.setitem(reading._OPTIONS, "utf8_validation", reading.exp.Literal.string("strict"))
    with pytest.raises(NoisetteError):
        counted(DuckDB({"t": written(tmp_path, rows_of(INVALID))}), SCHEMA, QUESTIONS[1])


def test_damaged_arrays_are_refused():
    offsets = pyarrow.py_buffer(struct.pack("<3i", 0, 9, 2))
    text = pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, offsets, pyarrow.py_buffer(b"abc")])
    with pytest.raises(InputError, match="Column note of table t holds arrays that are damaged"):
        DuckDB({"t": pyarrow.table({"note": text})})
    beyond = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 7]), text_of([b"\xff"]), safe=False)
    with pytest.raises(InputError, match="damaged"):
        DuckDB({"t": pyarrow.table({"note": beyond})})


# Statistics of Parquet files: one row must not decide what is read of others

LOW, HIGH = Fraction(0), Fraction(9)
PAY = Kind("real", LOW, HIGH, nullable=False)
STATISTICS = {
    "text as it is read": (
        {"note": text_of([b"!", b"b", b"\xff", b"\xff", b"\xff"])},
        schema_of(note=NOTE),
        "SELECT count(*) FROM t WHERE note = '?'",
    ),
    "text in a list": (
        {"note": text_of([b"!", b"b", b"\xff", b"\xff", b"\xff"])},
        schema_of(note=NOTE),
        "SELECT count(*) FROM t WHERE note IN ('?', '~')",
    ),
    "NaN among reals": (
        {"pay": [100.0, 1.0, *[float("nan")] * 5]},
        schema_of(pay=PAY),
        "SELECT sum(pay) FROM t",
    ),
    "NaN is no unit": (
        {"id": [100.0, 1.0, *[float("nan")] * 5]},
        {"t": Table("t", (Column("id", Kind("real")),), unit="id", limits=Limits(rows=3))},
        "SELECT count(*) FROM t",
    ),
}


def moved(folder, attack):
    """How far the first row, a person, moves the count, and how far it is stated to."""
    columns, schema, text = STATISTICS[attack]
    table, found = pyarrow.table(columns), []
    for rows in (table, table[1:]):
        answer, prepared = asked(DuckDB({"t": written(folder, rows)}, threads=1), schema, text)
        found.append(int(answer.measures[0][0]))
    (measure,) = prepared.request.measures
    return abs(found[0] - found[1]), sensitivity(measure, prepared.part, Neighbours.ADD_REMOVE).l1


@pytest.mark.parametrize("attack", STATISTICS)
def test_statistics_decide_nothing(tmp_path, attack):
    found, stated = moved(tmp_path, attack)
    assert found <= stated


@pytest.mark.parametrize("attack", ["text as it is read", "NaN among reals"])
def test_statistics_that_decide_are_convicted(tmp_path, monkeypatch, attack):
    monkeypatch.setattr(reading, "_apart", column)
    monkeypatch.setitem(reading._OPTIONS, "can_have_nan", reading.exp.false())
    found, stated = moved(tmp_path, attack)
    assert found > stated


@pytest.mark.parametrize("form", ["parquet", "frame", "duckdb"])
def test_nan_belongs_to_nobody_however_it_is_stored(tmp_path, form):
    table = pyarrow.table({"id": [1.0, 5.0, float("nan")]})
    path = tmp_path / "x.duckdb"
    if form == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.register("frame", table)
            connection.execute("CREATE TABLE t AS FROM frame")
    source = DuckDB({"t": {"parquet": written(tmp_path, table), "frame": table, "duckdb": path}[form]})
    assert counted(source, STATISTICS["NaN is no unit"][1], "SELECT count(*) FROM t") == [2]


# Files that do not fit together


BASE = {"n": pyarrow.array([1, 2]), "note": pyarrow.array(["a", "b"])}


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"n": pyarrow.array([1.5, 2.5]), "note": BASE["note"]}, "n"),
        ({"n": pyarrow.array(["1", "q"]), "note": BASE["note"]}, "n"),
        ({"n": BASE["n"].cast(pyarrow.int32()), "note": BASE["note"]}, "n"),
        ({"n": BASE["n"]}, "note"),
        ({**BASE, "more": pyarrow.array([1, 2])}, "more"),
        ({"N": BASE["n"], "note": BASE["note"]}, "N"),
        ({"n": pyarrow.array([1, 2]).cast(pyarrow.decimal128(20, 1)), "note": BASE["note"]}, "n"),
    ],
)
def test_parquet_files_of_one_table_have_the_same_columns(tmp_path, other, name):
    files = [written(tmp_path, pyarrow.table(BASE), "a.parquet"), written(tmp_path, pyarrow.table(other), "b.parquet")]
    for order in (files, files[::-1]):
        with pytest.raises(InputError, match=f"different columns .see {name}."):
            DuckDB({"t": order})


def test_the_order_of_columns_and_rows_that_must_be_there_do_not_matter(tmp_path):
    first = written(tmp_path, pyarrow.table(BASE), "a.parquet")
    must = pyarrow.schema(
        [pyarrow.field("note", pyarrow.string(), nullable=False), pyarrow.field("n", pyarrow.int64())]
    )
    second = written(tmp_path, pyarrow.table({"note": ["c"], "n": [3]}, schema=must), "b.parquet")
    source = DuckDB({"t": [first, second]})
    assert counted(source, SCHEMA, "SELECT sum(n) FROM t") == [6]


# Columns that can fail to be read


def test_milliseconds_in_parquet_are_not_read(tmp_path):
    """The engine multiplies them, and one value that is too large would stop every question about the column."""
    when = pyarrow.array([0, 2**62]).cast(pyarrow.timestamp("ms"))
    path = written(tmp_path, pyarrow.table({"day": when, "n": [1, 2]}))
    with pytest.raises(duckdb.Error):
        duckdb.connect().sql(f"SELECT max(day) FROM '{path}'").fetchall()
    source = DuckDB({"t": path})
    assert source.stored("t") == {"n": "BIGINT", "day": "TIMESTAMP_MILLIS"}
    assert counted(source, SCHEMA, "SELECT count(*) FROM t") == [2]
    with pytest.raises(InputError, match="stored as TIMESTAMP_MILLIS"):
        counted(source, schema_of(day=Kind("timestamp")), "SELECT count(DISTINCT day) FROM t")


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_other_moments_in_parquet_are_read_whatever_they_are(tmp_path, unit):
    when = pyarrow.array([0, 2**62, -(2**63), 2**63 - 1]).cast(pyarrow.timestamp(unit))
    source = DuckDB({"t": written(tmp_path, pyarrow.table({"day": when}))})
    schema = schema_of(day=Kind("timestamp"))
    for text in ("count(DISTINCT day)", "count(*)", "count(DISTINCT EXTRACT(YEAR FROM day))"):
        asked(source, schema, f"SELECT {text} FROM t")
    days = schema_of(day=Kind("date"))
    asked(source, days, "SELECT count(DISTINCT day) FROM t")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_in_frames_are_read_whatever_they_are(unit):
    when = pyarrow.array([0, 2**62, -(2**63), 2**63 - 1, None]).cast(pyarrow.timestamp(unit))
    source = DuckDB({"t": pyarrow.table({"day": when})})
    for kind in ("timestamp", "date"):
        asked(source, schema_of(day=Kind(kind)), "SELECT count(DISTINCT day), count(day) FROM t")
    unit_schema = {"t": Table("t", (Column("day", Kind("timestamp")),), unit="day", limits=Limits(rows=1))}
    assert counted(source, unit_schema, "SELECT count(*) FROM t") == [4]


def test_decimals_of_bytes_of_any_length_are_not_read():
    """Nobody writes them with the libraries at hand: the rule is about what a file says of its columns."""
    assert reading._fallible("None", "DECIMAL(10,2)", "BYTE_ARRAY", "DECIMAL") == "DECIMAL_BYTE_ARRAY"
    assert reading._fallible("None", "DECIMAL(10,2)", "FIXED_LEN_BYTE_ARRAY", "DECIMAL") is None
    assert reading._fallible("None", "VARCHAR", "BYTE_ARRAY", "UTF8") is None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("digits", [4, 9, 20, 38])
def test_decimals_beyond_their_digits_are_read(tmp_path, digits):
    """Bytes that no writer makes of a number of so many digits."""
    options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    kept = pyarrow.decimal128(digits, 2 if digits < 38 else 0)
    path = written(tmp_path, pyarrow.table({"pay": pyarrow.array([Decimal(77), Decimal(78)], kept)}), **options)
    width = parquet.ParquetFile(path).schema.column(0).length
    number = 77 * 10**kept.scale
    content = path.read_bytes()
    assert content.count(number.to_bytes(width, "big")) == 1
    for odd in (b"\x7f" + b"\xff" * (width - 1), b"\x80" + b"\0" * (width - 1)):
        path.write_bytes(content.replace(number.to_bytes(width, "big"), odd))
        for kind in (Kind("real"), Kind("integer"), Kind("real", LOW, HIGH, Fraction(1, 4))):
            asked(DuckDB({"t": path}), schema_of(pay=kind), "SELECT count(DISTINCT pay), count(pay) FROM t")


# DuckDB files


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (n INTEGER, note VARCHAR, twice INTEGER GENERATED ALWAYS AS (n * 2))")
        connection.execute("INSERT INTO t (n, note) VALUES (1, 'a'), (7, 'b')")
        connection.execute("CREATE VIEW v AS SELECT CAST(note AS INTEGER) AS n FROM t")
    return path


@pytest.mark.slow
def test_views_are_not_opened(file):
    assert DuckDB(file).tables == ("t",)
    for source in ({"v": file}, {"t": (file, "v")}):
        with pytest.raises(InputError, match="v is a view"):
            DuckDB(source)


def test_generated_columns_are_not_read(file):
    source = DuckDB(file)
    assert source.stored("t") == {"n": "INTEGER", "note": "VARCHAR", "twice": "GENERATED"}
    assert counted(source, SCHEMA, "SELECT count(*) FROM t WHERE note = 'a'") == [1]
    with pytest.raises(InputError, match="stored as GENERATED"):
        counted(source, schema_of(twice=Kind("integer")), "SELECT count(DISTINCT twice) FROM t")
