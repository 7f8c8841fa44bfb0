"""A conversation with a locked engine: one question at a time, tables lent for its length, none of its own words."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import duckdb
import pyarrow
from sqlglot import exp

from noisette.errors import NoisetteError
from noisette.query.compile import text_of

__all__ = ["FAILED", "Session"]

FAILED = "The engine could not compute this; what it said stays inside, since it may quote data."


class Session:
    """An engine that runs one thing at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.lock = threading.RLock()
        self._names = (f"noisette_{i}" for i in count())

    def run(self, select: exp.Select) -> pyarrow.Table:
        """The rows of a SELECT."""
        return self._quiet(lambda: self.connection.sql(text_of(select)).to_arrow_table())

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table and their types, without reading a row."""
        nothing = exp.select(exp.Star()).from_(exp.to_identifier(table, quoted=True)).limit(0)
        rows = self._quiet(lambda: self.connection.sql(text_of(nothing)))
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def keep(self, table: pyarrow.Table) -> str:
        """Copy a table into the engine; return its name."""
        with self.lent() as lend:
            source, name = lend(table), next(self._names)
            rows = exp.select(exp.Star()).from_(exp.to_identifier(source, quoted=True))
            target = exp.Table(this=exp.to_identifier(name, quoted=True))
            self._quiet(
                lambda: self.connection.execute(text_of(exp.Create(this=target, kind="TABLE", expression=rows)))
            )
        return name

    def drop(self, name: str) -> None:
        """Forget a table that was kept."""
        target = exp.Table(this=exp.to_identifier(name, quoted=True))
        self._quiet(lambda: self.connection.execute(text_of(exp.Drop(tables=[target], kind="TABLE"))))

    @contextmanager
    def lent(self) -> Iterator[Callable[[pyarrow.Table], str]]:
        """Within it, a function that lends tables to the engine; afterwards they are gone."""
        names: list[str] = []

        def lend(table: pyarrow.Table) -> str:
            names.append(next(self._names))
            self._quiet(lambda: self.connection.register(names[-1], table))
            return names[-1]

        with self.lock:
            try:
                yield lend
            finally:
                for name in names:
                    self.connection.unregister(name)

    def _quiet(self, act: Callable[[], Any]) -> Any:
        """Act; an error of the engine becomes ours, raised where its own is no longer around."""
        with self.lock:
            try:
                return act()
            except (duckdb.Error, pyarrow.ArrowException):
                pass
        raise NoisetteError(FAILED)
