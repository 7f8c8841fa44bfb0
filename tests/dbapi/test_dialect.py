"""SQLAlchemy and pandas read answers as they read any database."""

import copy
from fractions import Fraction

import pandas
import pytest
import sqlalchemy
from pyarrow import parquet
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select, text
from sqlalchemy.pool import NullPool, QueuePool
from tests.dbapi.test_connection import BY_WARD, PEOPLE, POLICY

import noisette as nz
from noisette import dbapi
from noisette.dbapi import connect


@pytest.fixture
def curator():
    policy = copy.deepcopy(POLICY)
    policy["tables"]["data"]["columns"]["ward"]["nullable"] = False
    return nz.open(PEOPLE, budget=10, policy=policy)


@pytest.fixture
def engine(curator):
    return create_engine("noisette://", creator=lambda: connect(curator, spend="0.5"))


def test_pandas_reads_sql(engine):
    frame = pandas.read_sql(BY_WARD, engine)
    assert list(frame.columns) == ["ward", "n", "n_low", "n_high"]
    assert len(frame) == 2
    bound = pandas.read_sql(text("SELECT count(*) AS n FROM data WHERE age > :age"), engine, params={"age": 40})
    assert len(bound) == 1


def test_tables_are_reflected(engine):
    with engine.connect() as connection:
        seen = inspect(connection)
        assert seen.get_table_names() == ["data"]
        assert [c["name"] for c in seen.get_columns("data")] == ["age", "ward", "born"]
        assert [c["nullable"] for c in seen.get_columns("data")] == [True, False, True]
        assert seen.has_table("data")
        assert not seen.has_table("others")


def test_expressions_are_compiled(engine, curator):
    with engine.connect() as connection:
        data = Table("data", MetaData(), autoload_with=connection)
        asked = select(data.c.ward, func.count().label("n")).where(data.c.age > 40, data.c.ward != "o'clock")
        found = connection.execute(asked.group_by(data.c.ward).order_by(func.count().desc()).limit(2))
        assert len(found.fetchall()) == 2
    assert len(curator.ledger.entries) == 1


def test_a_statement_sets_its_price(engine, curator):
    with engine.connect() as connection:
        connection.execute(text(BY_WARD).execution_options(spend="0.125"))
    assert [entry.guarantee.epsilon for entry in curator.ledger.entries] == [Fraction("1/8")]


def test_errors_keep_their_sentence(engine):
    with engine.connect() as connection:
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="There is no column nope"):
            connection.execute(text("SELECT nope FROM data"))
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            connection.execute(text("DELETE FROM data"))


def test_a_url_names_what_to_open(tmp_path):
    path = tmp_path / "visits.parquet"
    parquet.write_table(PEOPLE, path)
    policy = tmp_path / "policy.toml"
    policy.write_text("[tables.visits.columns.age]\nbounds = [0, 120]\n")
    url = f"noisette:///{path}?spend=0.5&budget=1&ledger={tmp_path}/l.db&policy={policy}&bars=no&level=0.9"
    with create_engine(url).connect() as connection:
        assert connection.execute(text("SELECT avg(age) AS mean FROM visits")).keys() == ["mean"]


@pytest.mark.parametrize("poolclass", [NullPool, QueuePool])
def test_all_connections_of_a_url_have_one_budget(tmp_path, poolclass):
    parquet.write_table(PEOPLE, tmp_path / "visits.parquet")
    url = f"noisette:///{tmp_path}/visits.parquet?spend=1&budget=1&ledger={tmp_path}/visits.ledger"
    engine, question = create_engine(url, poolclass=poolclass), "SELECT count(*) AS n FROM visits WHERE age > {}"
    with engine.connect() as first, engine.connect() as second:
        answer = first.execute(text(question.format(40))).scalar()
        with pytest.raises(sqlalchemy.exc.OperationalError, match="The budget is used up"):
            second.execute(text(question.format(50)))
    engine.dispose()
    with engine.connect() as third:
        assert third.execute(text(question.format(40))).scalar() == answer


def test_a_url_without_a_ledger_is_refused(tmp_path):
    parquet.write_table(PEOPLE, tmp_path / "visits.parquet")
    for url in (f"noisette:///{tmp_path}/visits.parquet?spend=1&budget=1", f"noisette:///{tmp_path}?spend=1&budget=1"):
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="a fresh budget: name one"):
            create_engine(url).connect()


def test_a_url_without_a_path():
    with pytest.raises(sqlalchemy.exc.ProgrammingError, match="Name what to open"):
        create_engine("noisette://").connect()


@pytest.mark.parametrize("option", ["error=x", "level=high"])
def test_an_option_that_is_no_number_is_one_sentence(option):
    with pytest.raises(dbapi.ProgrammingError, match="must be a number: write it once"):
        create_engine(f"noisette:///visits.parquet?{option}").connect()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("noisette:///{path}?ledger={folder}/a.db&ledger={folder}/b.db", "ledger stands twice behind the"),
        ("noisette:///{path}?ledger={folder}/a.db&spend=1&spend=2", "spend stands twice behind the"),
        ("noisette://ann:secret@host/{path}?ledger={folder}/a.db", "names what to open after three slashes"),
        ("noisette:///{path}?ledger={folder}/a.db&budget=1&start_over=why", "start_over is said once"),
        ("noisette:///{path}?ledger={folder}/a.db&budget=1&nope=1", "A connection has no option nope"),
    ],
)
def test_a_url_that_cannot_be_meant_is_one_sentence(tmp_path, url, sentence):
    parquet.write_table(PEOPLE, path := tmp_path / "visits.parquet")
    with pytest.raises((dbapi.ProgrammingError, sqlalchemy.exc.ProgrammingError), match=sentence) as caught:
        create_engine(url.format(path=path, folder=tmp_path)).connect()
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("statement", [None, b"SELECT count(*) FROM data", 3])
def test_a_statement_is_a_text(curator, statement):
    with pytest.raises(dbapi.ProgrammingError, match="A statement is a text"):
        connect(curator, spend="0.1").execute(statement)
