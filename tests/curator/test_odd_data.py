"""What owners are told of data that could stop a question, and that analysts learn nothing by it."""

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

import noisette as nz
from noisette.engines import csv
from noisette.errors import InputError

CANARY = "canary-7f3a"


def refused(source, words, **options):
    with pytest.raises(InputError) as caught:
        nz.open(source, budget=1, **options)
    assert words in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_column_that_can_fail_is_named_with_its_cure(tmp_path):
    path = tmp_path / "visits.parquet"
    when = pyarrow.array([0, 2**62]).cast(pyarrow.timestamp("ms"))
    parquet.write_table(pyarrow.table({"day": when, "ward": [CANARY, "a"]}), path)
    data = nz.open(path, budget=1)
    assert [c.name for c in data.schema["visits"].columns] == ["ward"]
    refused(path, "store it in microseconds", policy={"tables": {"visits": {"columns": {"day": {}}}}})
    refused(path, "tables.visits.unit", unit="day", rows=1)


def test_files_that_differ_are_refused(tmp_path):
    for name, values in (("a", [1, 2]), ("b", [CANARY, "x"])):
        parquet.write_table(pyarrow.table({"age": values}), tmp_path / f"visits-{name}.parquet")
    refused(str(tmp_path / "visits-*.parquet"), "have different columns (see age)")


@pytest.mark.slow
def test_views_and_generated_columns(tmp_path):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (n INTEGER, twice INTEGER GENERATED ALWAYS AS (n * 2))")
        connection.execute("CREATE VIEW v AS SELECT CAST('x' AS INTEGER) AS n FROM t")
    assert list(nz.open(path, budget=1).schema) == ["t"]
    refused(path, "a view must be stored as a table first", policy={"tables": {"v": {}}})
    refused({"v": path}, "v is a view")
    refused(path, "store its values", policy={"tables": {"t": {"columns": {"twice": {}}}}})


def test_text_that_is_not_valid_answers_like_any_other(tmp_path):
    plain = pyarrow.array([b"ok", b"\xff", b"OK"], pyarrow.binary())
    note = pyarrow.Array.from_buffers(pyarrow.string(), 3, plain.buffers())
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"note": note}), path)
    for source in (pyarrow.table({"note": note}), path):
        data = nz.open(source, budget=1000)
        for text, count in (("lower(note) = 'ok'", 2), ("note = '?'", 1)):
            found = data.sql(f"SELECT count(*) AS n FROM data WHERE {text}", spend=300)
            assert found["n"].values.to_pylist() == [count]  # another number has a probability of at most e^-299


def test_no_row_of_a_csv_file_is_read_before_the_charge(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(csv, "blocks", lambda path, inner=csv.blocks: read.append(path) or inner(path))
    path = tmp_path / "visits.csv"
    path.write_text(f'age,ward\n40,a\n50,"{CANARY}\n60,a\n')
    types = {"age": {"type": "integer", "bounds": [0, 99]}, "ward": {"type": "text"}}
    data = nz.open(path, budget=1000, policy={"tables": {"visits": {"columns": types}}})
    data.explain("SELECT sum(age) FROM visits", spend=1)
    with pytest.raises(InputError):
        data.sql("SELECT sum(weight) FROM visits", spend=1)
    assert read == []
    assert data.sql("SELECT count(*) AS n FROM visits", spend=500)["n"].values.to_pylist() == [3]
    assert len(read) == 1
