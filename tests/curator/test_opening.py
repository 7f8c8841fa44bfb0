"""Opening data for real: files of each sort, frames, several tables, and what is wrong with them."""

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import noisette as nz
from noisette.curator.curator import new_secret
from noisette.errors import InputError

ROWS = {"p": [1, 2, 3], "age": [10, 20, 30], "ward": ["a", "b", None]}
TYPES = {"p": {"type": "integer"}, "age": {"type": "integer", "bounds": [0, 99]}, "ward": {"type": "text"}}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def visits():
    return pyarrow.table(ROWS)


def counted(curator, table):
    """The number of rows; at an epsilon of 200 noise is 0 but for a chance below 1e-80."""
    return curator.sql(f"SELECT count(*) AS n FROM {table}", spend=200)["n"].values.to_pylist()[0]


def opened(source, **options):
    return nz.open(source, budget=1000, **options)


def refused(source, message, **options):
    with pytest.raises(InputError) as caught:
        opened(source, **options)
    assert message in str(caught.value)


# Files


def test_parquet(visits):
    pyarrow.parquet.write_table(visits, "visits.parquet")
    assert counted(opened("visits.parquet"), "visits") == 3


def test_several_files_are_one_table(visits):
    pyarrow.parquet.write_table(visits, "visits-1.parquet")
    pyarrow.parquet.write_table(visits, "visits-2.parquet")
    assert counted(opened("visits-*.parquet"), "visits") == 6
    assert counted(opened(["visits-1.parquet", "visits-2.parquet"]), "data") == 6
    assert counted(opened({"both": ["visits-1.parquet", "visits-2.parquet"]}), "both") == 6


def test_a_name_with_blanks(visits):
    pyarrow.parquet.write_table(visits, "my visits.parquet")
    assert counted(opened("my visits.parquet"), "my_visits") == 3


@pytest.mark.slow
def test_duckdb_files():
    with duckdb.connect("hospital.duckdb") as made:
        made.execute("CREATE TABLE visits AS SELECT range AS p FROM range(5); CREATE TABLE wards AS SELECT 'a' AS ward")
    both = opened("hospital.duckdb")
    assert (set(both.schema), counted(both, "visits")) == ({"visits", "wards"}, 5)
    assert counted(opened({"v": ("hospital.duckdb", "visits")}), "v") == 5
    refused({"v": "hospital.duckdb"}, "has no table v")


def test_csv_with_declared_types(here):
    (here / "visits.csv").write_text("p,age,ward\n1,10,a\n2,20,b\n3,30,\n", encoding="utf-8")
    curator = opened("visits.csv", policy={"tables": {"visits": {"columns": TYPES}}})
    assert counted(curator, "visits") == 3
    assert curator.schema["visits"].column("age").kind.type == "integer"


def test_csv_without_types_is_refused_with_the_lines_to_write(here):
    (here / "visits.csv").write_text("p,age,home town\n1,10,a\n", encoding="utf-8")
    lines = "[tables.visits.columns]  # or integer, real, boolean, date, timestamp"
    refused("visits.csv", lines)
    refused("visits.csv", 'age = { type = "text" }\n"home town" = { type = "text" }')
    refused({"visits": "visits.csv"}, lines)


def test_those_lines_are_all_it_takes(here):
    (here / "visits.csv").write_text("p,age,home town\n1,10,a\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        opened("visits.csv")
    (here / "policy.toml").write_text(str(caught.value).partition("\n\n")[2], encoding="utf-8")
    assert [c.name for c in opened("visits.csv", policy="policy.toml").schema["visits"].columns] == [
        "p",
        "age",
        "home town",
    ]


def test_a_csv_column_without_a_type_is_named(here):
    (here / "visits.csv").write_text("p,age,ward\n1,10,a\n", encoding="utf-8")
    untyped = {"p": {"type": "integer"}, "age": {"bounds": [0, 9]}}
    refused("visits.csv", "tables.visits.columns.age in the policy needs a type",
            policy={"tables": {"visits": {"columns": untyped}}})  # fmt: skip
    refused("visits.csv", "tables.visits.columns.p in the policy is missing: the unit", unit="p", rows=1,
            policy={"tables": {"visits": {"columns": {"age": {"type": "integer"}}}}})  # fmt: skip


def test_a_csv_column_that_is_not_declared_is_left_out(here):
    (here / "visits.csv").write_text("p,age,ward\n1,10,a\n", encoding="utf-8")
    curator = opened("visits.csv", policy={"tables": {"visits": {"columns": {"p": {"type": "integer"}}}}})
    assert [c.name for c in curator.schema["visits"].columns] == ["p"]
    with pytest.raises(InputError, match="There is no column age here"):
        curator.sql("SELECT count(age) FROM visits", spend=1)


def test_a_late_change_of_type_in_csv_is_null(here):
    lines = ["p,age,ward", *(f"{i},{i % 90},a" for i in range(30_000)), "30000,old,a"]
    (here / "visits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    curator = opened("visits.csv", policy={"tables": {"visits": {"columns": TYPES}}})
    answer = curator.sql("SELECT count(age) AS known, count(*) AS n FROM visits", spend=400)
    assert (answer["known"].values.to_pylist(), answer["n"].values.to_pylist()) == ([30_000], [30_001])


@pytest.mark.parametrize(
    "source",
    [
        "postgres+x://ann:sesame@host/clinic",
        "mysql://ann:sesame@host/clinic.db",
        "sc:/token=sesame",
        "host=h user=ann password=sesame",
        ["visits.parquet", "x://ann:sesame@host"],
        {"v": ("x://ann:sesame@host/a.duckdb", "t")},
    ],
)
def test_nothing_of_an_address_is_repeated(here, visits, source):
    pyarrow.parquet.write_table(visits, "visits.parquet")
    with pytest.raises(InputError, match=r"no file of this name; the address of a server begins with") as caught:
        opened(source)
    assert "sesame" not in str(caught.value)


def test_broken_files(here, visits):
    (here / "folder").mkdir()
    (here / "folder.parquet").mkdir()
    (here / "empty.parquet").write_bytes(b"")
    (here / "empty.csv").write_bytes(b"")
    (here / "visits.txt").write_text("x", encoding="utf-8")
    pyarrow.parquet.write_table(visits, "whole.parquet")
    (here / "half.parquet").write_bytes((here / "whole.parquet").read_bytes()[:300])
    refused("none.parquet", "There is no file none.parquet.")
    refused("none-*.parquet", "There is no file none-*.parquet.")
    refused("folder", "folder is a directory without a project: name its files")
    refused({"a": "folder.parquet"}, "folder.parquet is a directory without a project: name its files")
    refused("empty.parquet", "The data of table empty cannot be read")
    refused("half.parquet", "The data of table half cannot be read")
    refused("empty.csv", "has no first line that names its columns: is it empty?")
    refused("empty.csv", "is it empty?", policy={"tables": {"empty": {"columns": TYPES}}})
    refused("visits.txt", "Files that end in .txt cannot be opened")


# Frames


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("library", "frame"), [("pyarrow", "table"), ("pandas", "DataFrame"), ("polars", "DataFrame")])
def test_frames(library, frame):
    make = getattr(pytest.importorskip(library), frame)
    curator = opened(make(ROWS))
    assert [c.name for c in curator.schema["data"].columns] == ["p", "age", "ward"]
    assert counted(curator, "data") == 3
    assert counted(opened({"visits": make(ROWS)}), "visits") == 3


def test_an_index_without_a_name_is_no_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2]}, index=["ann", "bob"])
    assert [c.name for c in opened(frame).schema["data"].columns] == ["age"]


def test_a_column_of_several_types_is_refused_without_a_word_about_it():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError) as caught:
        opened(pandas.DataFrame({"age": [1, "secret", 3.5]}))
    assert str(caught.value) == "The frame of table data cannot be read: give each of its columns one type."
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_half_floats_are_read():
    halves = pyarrow.array(np.array([0.5, 1.5], np.float16))
    assert counted(opened(pyarrow.table({"x": halves})), "data") == 2


def test_columns_that_no_question_can_use_are_left_out():
    tags = pyarrow.table({"p": [1, 2], "tags": [["a"], ["b"]], "raw": [b"x", b"y"]})
    curator = opened(tags)
    assert [c.name for c in curator.schema["data"].columns] == ["p"]
    with pytest.raises(InputError, match="Column tags cannot be asked for: store each value of the list in a row"):
        curator.sql("SELECT count(tags) FROM data", spend=1)
    refused(tags, "tables.data.columns.tags in the policy names a column stored as VARCHAR[]",
            policy={"tables": {"data": {"columns": {"tags": {}}}}})  # fmt: skip


def test_names_must_differ(visits):
    message = "upper and lower case do not tell names apart"
    refused({"visits": visits, "Visits": visits}, message)
    refused(pyarrow.table([[1], [2]], names=["a", "a"]), message)
    refused({"data": pyarrow.table([[1], [2]], names=["a", "A"])}, message)
    refused(pytest.importorskip("polars").DataFrame({"a": [1], "A": [2]}), message)


@pytest.mark.parametrize("source", [3, {"a": [1, 2]}, {"a": None}])
def test_what_is_no_table(source):
    refused(source, "A table is a path, a list of paths, or a frame")


def test_nothing_to_open():
    refused({}, "Give a dictionary of tables by name")
    refused({1: pyarrow.table({"a": [1]})}, "Give a dictionary of tables by name")


# Units and limits


def test_the_unit_is_named_for_all_tables_or_for_each(visits):
    wards = pyarrow.table({"ward": ["a", "b"], "beds": [10, 20]})
    policy = {"tables": {"wards": {"public": True}}}
    schema = opened({"visits": visits, "wards": wards}, unit="p", rows=2, policy=policy).schema
    assert (schema["visits"].unit, schema["visits"].limits.rows, schema["wards"].unit) == ("p", 2, None)
    assert schema["wards"].repeats == {"ward": 1, "beds": 1}
    refused({"visits": visits, "wards": wards}, "Table wards has no column p", unit="p", rows=2)
    refused(visits, "Table data has no column patient", unit="patient", rows=1)
    refused(visits, "unit must be the name of a column", unit=3)
    refused(visits, "Name the unit whose rows are limited", rows=3)
    refused(visits, "rows must be a whole number, at least 1.", unit="p", rows=0)


def test_the_policy_of_a_table_comes_first(visits):
    policy = {"tables": {"data": {"unit": "ward", "rows": 5}}}
    table = opened(visits, unit="p", rows=2, policy=policy).schema["data"]
    assert (table.unit, table.limits.rows) == ("ward", 5)
    table = opened(visits, unit="p", rows=2, policy={"tables": {"data": {"unit": "p"}}}).schema["data"]
    assert (table.unit, table.limits.rows) == ("p", 2)


def test_a_table_that_is_not_there_is_named(visits):
    refused({"visits": visits}, "tables.visit in the policy names a table that is not there: did you mean visits?",
            policy={"tables": {"visit": {}}})  # fmt: skip


def test_a_policy_file(here, visits):
    (here / "policy.toml").write_text(
        '[budget]\nepsilon = "3"\n[tables.data]\nunit = "p"\nrows = 1\n', encoding="utf-8"
    )
    curator = nz.open(visits, policy="policy.toml")
    assert (curator.policy.budget, curator.schema["data"].unit) == (nz.Pure(3), "p")
    assert nz.open(visits, policy=curator.policy).policy == curator.policy
    with pytest.raises(InputError, match="Say how much may be spent in all"):
        nz.open(visits)


def test_all_data_that_are_opened_have_a_secret_of_their_own():
    secrets = [new_secret() for _ in range(8)]
    assert {len(secret) for secret in secrets} == {16}
    assert len(set(secrets)) == 8  # fails with p < 1e-12
