"""PEP 249 over a curator: what a tool relies on, what is charged, and that nothing is said beyond our own sentences."""

import datetime
import math
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import noisette as nz
from noisette import dbapi
from noisette.curator.project import Project
from noisette.dbapi import connect, errors
from noisette.dbapi.values import filled
from noisette.errors import FailedError, InputError, UnfinishedError
from noisette.query.sql.text import read

PEOPLE = pyarrow.table(
    {
        "age": [34, 51, 68, 70] * 50,
        "ward": ["north", "south", "north", None] * 50,
        "born": [datetime.date(1990, 1, 2), datetime.date(1973, 5, 6), None, None] * 50,
    }
)
POLICY = {
    "tables": {
        "data": {
            "columns": {
                "ward": {"keys": ["north", "south"]},
                "age": {"bounds": [0, 120]},
                "born": {"bounds": [datetime.date(1900, 1, 1), datetime.date(2020, 1, 1)]},
            }
        }
    }
}
BY_WARD = "SELECT ward, count(*) AS n FROM data GROUP BY ward ORDER BY ward"


@pytest.fixture
def curator():
    return nz.open(PEOPLE, budget=10, policy=POLICY)


@pytest.fixture
def connection(curator):
    return connect(curator, spend="0.5")


# The interface


def test_the_module_says_what_it_is():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")


def test_errors_are_a_tree_and_stand_on_the_connection():
    assert issubclass(dbapi.Error, Exception)
    assert all(issubclass(getattr(dbapi, name), dbapi.Error) for name in ("InterfaceError", "DatabaseError"))
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        assert issubclass(getattr(dbapi, f"{name}Error"), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, f"{name}Error") is getattr(dbapi, f"{name}Error")


def test_a_number_comes_with_the_ends_of_its_bar(connection):
    cursor = connection.cursor().execute(BY_WARD)
    assert [(name, kind) for name, kind, *_ in cursor.description] == [
        ("ward", dbapi.STRING),
        ("n", dbapi.NUMBER),
        ("n_low", dbapi.NUMBER),
        ("n_high", dbapi.NUMBER),
    ]
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.rowcount == 3
    rows = cursor.fetchall()
    assert rows == [tuple(row.values()) for row in cursor.release.rows()]
    assert [row[0] for row in rows] == ["north", "south", None]


def test_without_bars_only_the_numbers(curator):
    cursor = connect(curator, spend=1, bars=False).execute(BY_WARD)
    assert [column[0] for column in cursor.description] == ["ward", "n"]


def test_what_to_know_about_an_answer_comes_with_it(connection):
    """A mean of no rows: NULL, with a warning of Python's and the messages of PEP 249, for pandas as well."""
    asked = "SELECT ward, avg(age) AS mean FROM data WHERE age > 119 GROUP BY ward ORDER BY ward LIMIT 1"
    with pytest.warns(dbapi.Warning, match="mean: no answer, since too few rows vouch for one; spend more"):
        cursor = connection.execute(asked)
    assert cursor.fetchall() == [("north", None, 0.0, 120.0)]
    assert [kind for kind, _ in cursor.messages] == [dbapi.Warning] * len(cursor.release.notes)
    assert [text for _, text in cursor.messages] == [*cursor.release.warnings, *cursor.release.caveats]
    assert "Values of age beyond [0, 120] count as the nearer bound." in dict(map(reversed, cursor.messages))
    assert connection.execute("EXPLAIN SELECT count(*) FROM data").messages == []


def test_rows_come_in_order_and_once(connection):
    cursor = connection.execute(BY_WARD)
    everything = list(connection.execute(BY_WARD))
    assert cursor.fetchone() == everything[0]
    assert cursor.fetchmany() == everything[1:2]  # arraysize is 1
    cursor.arraysize = 5
    assert cursor.fetchmany() == everything[2:]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == cursor.fetchmany(3) == []


def test_before_the_first_statement(connection):
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    with pytest.raises(dbapi.InterfaceError, match="execute a statement first"):
        cursor.fetchall()


@pytest.mark.parametrize("what", ["cursor", "commit", "rollback"])
def test_a_closed_connection(connection, what):
    with connection:
        pass
    with pytest.raises(dbapi.InterfaceError, match="connect again"):
        getattr(connection, what)()


def test_a_closed_cursor(connection):
    with connection.cursor() as cursor:
        cursor.setinputsizes([1])
        cursor.setoutputsize(1)
    with pytest.raises(dbapi.InterfaceError, match="make a new one"):
        cursor.execute(BY_WARD)


def test_nothing_is_written(connection, curator):
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany("INSERT INTO data VALUES (?)", [[1]])
    for statement in ("INSERT INTO data VALUES (1)", "DROP TABLE data", "BEGIN"):
        with pytest.raises(dbapi.ProgrammingError):
            connection.execute(statement)
    assert not curator.ledger.entries


def test_threads_share_a_connection(connection):
    found = []
    threads = [threading.Thread(target=lambda: found.append(connection.execute(BY_WARD).fetchall())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(rows == found[0] for rows in found)


# What it costs


def test_a_statement_is_charged_once(connection, curator):
    first = connection.execute(BY_WARD).fetchall()
    assert connection.execute(BY_WARD).fetchall() == first
    connection.rollback()
    connection.commit()
    assert [entry.guarantee.epsilon for entry in curator.ledger.entries] == [Fraction("1/2")]


def test_a_statement_may_have_its_own_price(curator):
    connection = connect(curator, error=30)
    connection.execute("SELECT count(*) AS n FROM data", spend="0.25")
    connect(curator, spend=1).execute("SELECT count(*) AS n FROM data", error=20)
    costs = [entry.guarantee.epsilon for entry in curator.ledger.entries]
    assert costs[0] == Fraction(1, 4)
    assert 0 < costs[1] < 1


def test_explain_is_free(connection, curator):
    lines = [line for (line,) in connection.execute("explain\nSELECT count(*) FROM data WHERE age > ?", [4])]
    assert any("±" in line for line in lines)
    assert not curator.ledger.entries


def test_without_a_price_nothing_is_asked(curator):
    with pytest.raises(dbapi.ProgrammingError, match="what to spend"):
        connect(curator).execute(BY_WARD)


def test_what_can_be_opened_can_be_connected_to(tmp_path):
    opening = {"budget": 1, "ledger": tmp_path / "people.ledger"}
    with connect(PEOPLE, **opening, spend=1) as connection:
        assert connection.execute("SELECT count(*) FROM data").rowcount == 1
    with connect(PEOPLE, **opening, spend=1) as connection, pytest.raises(dbapi.OperationalError, match="used up"):
        connection.execute("SELECT count(*) FROM data WHERE age > 40")


@pytest.mark.parametrize("source", [PEOPLE, PEOPLE.to_pandas(), {"data": PEOPLE}, "visits.parquet", "postgresql://h/d"])
def test_a_ledger_in_memory_is_refused_before_anything_is_opened(source):
    """A budget would hold for one connection, and not for the data."""
    with pytest.raises(dbapi.ProgrammingError, match=r'fresh budget: name one, ledger="visits.ledger", or open the'):
        connect(source, budget=1, spend=1)


def test_a_project_has_its_ledger(tmp_path):
    parquet.write_table(PEOPLE, tmp_path / "visits.parquet")
    Project.create([tmp_path / "visits.parquet"], budget=nz.Pure(1))
    assert connect(tmp_path, spend=1).execute("SELECT count(*) FROM visits").rowcount == 1
    with pytest.raises(dbapi.OperationalError, match="used up"):
        connect(str(tmp_path), spend=1).execute("SELECT count(*) FROM visits WHERE age > 40")


def test_a_connection_lets_go_of_the_ledger_that_it_opened(curator, tmp_path):
    own = connect(PEOPLE, budget=1, ledger=tmp_path / "own.ledger", spend=1)
    own.execute("SELECT count(*) FROM data")
    assert own.curator.ledger._store._connection is not None
    own.close()
    assert own.curator.ledger._store._connection is None
    connect(curator).close()
    assert curator.sql("SELECT count(*) FROM data", spend=1)


def test_nothing_to_open_is_named():
    with pytest.raises(dbapi.ProgrammingError, match="Name what to open"):
        connect("", spend=1)


def test_who_asks_is_written_down(curator):
    connect(curator, spend=1, analyst="ann").execute(BY_WARD)
    assert [entry.analyst for entry in curator.ledger.entries] == ["ann"]


# Errors


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (InputError("a"), dbapi.ProgrammingError),
        (nz.errors.BudgetError("a"), dbapi.OperationalError),
        (UnfinishedError(), dbapi.OperationalError),
        (FailedError(), dbapi.InternalError),
        (nz.errors.PrivacyError("a"), dbapi.DatabaseError),
    ],
)
def test_every_error_has_its_counterpart(ours, theirs):
    with pytest.raises(theirs) as caught, errors.translated():
        raise ours
    assert str(caught.value) == str(ours)


def test_a_spent_budget(curator):
    connection = connect(curator, spend=9)
    connection.execute("SELECT count(*) FROM data")
    with pytest.raises(dbapi.OperationalError):
        connection.execute("SELECT avg(age) FROM data")


# Parameters


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "-3"),
        (1e-7, "0.0000001"),
        (0.1, "0.1"),
        (np.float64(0.5), "0.5"),
        (np.int64(-7), "-7"),
        (Decimal("1.50"), "1.50"),
        ("it's", "'it''s'"),
        ("\\' OR 1=1 --", "'\\'' OR 1=1 --'"),
        (datetime.date(2024, 1, 2), "DATE '2024-01-02'"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5), "TIMESTAMP '2024-01-02 03:04:05'"),
    ],
)
def test_a_parameter_is_one_constant(value, written):
    text = filled("SELECT count(*) FROM data WHERE born = ?", [value])
    assert text == f"SELECT count(*) FROM data WHERE born = {written}"
    read(text)


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, b"x", object(), [1], datetime.datetime.now(datetime.UTC), np.bool_(True)),
        *(1e300, 10**40, 10**5000, Decimal("1e999999999"), Decimal("1e-999999999"), Decimal("NaN"), np.float64("inf")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_parameters_are_refused(value):
    with pytest.raises(InputError, match="A parameter is"):
        filled("?", [value])


def test_marks_in_quotes_and_comments_stay():
    text = "SELECT '?' AS \"?\" -- ?\n, ? /* ? */"
    assert filled(text, [7]) == "SELECT '?' AS \"?\" -- ?\n, 7 /* ? */"


@pytest.mark.parametrize("parameters", [[], [1, 2]])
def test_as_many_parameters_as_marks(connection, parameters):
    with pytest.raises(dbapi.ProgrammingError, match="The statement has 1 \\?"):
        connection.execute("SELECT count(*) FROM data WHERE age > ?", parameters)


@pytest.mark.parametrize("parameters", ["a", b"a", {"a": 1}, 3])
def test_parameters_are_a_list(connection, parameters):
    with pytest.raises(dbapi.ProgrammingError, match="as a list"):
        connection.execute("SELECT count(*) FROM data WHERE ward = ?", parameters)
