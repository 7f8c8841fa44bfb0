"""A conversation with a locked engine: one question at a time, tables lent for its length, none of its own words."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeAlias, TypeVar

import duckdb
import pyarrow
from sqlglot import exp

from noisette.engines.duckdb.dialect import text_of
from noisette.errors import NoisetteError

__all__ = ["FAILED", "Run", "Session"]

T = TypeVar("T")

Run: TypeAlias = Callable[[Callable[[], exp.Select]], pyarrow.Table]
"""Runs a SELECT, which is written only if it has to be."""

_MOST_TEXTS = 64  # questions whose SELECTs are remembered

_INTERRUPTED = "Query interrupted"  # in a RuntimeError, after a signal

FAILED = "The engine could not compute this; what it said stays inside, since it may quote data."


class Session:
    """An engine that runs one thing at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.lock = threading.RLock()
        self._names = (f"noisette_{i}" for i in count())
        self._lent = 0
        self._texts: dict[Hashable, dict[int, str]] = {}

    def run(self, select: exp.Select) -> pyarrow.Table:
        """The rows of a SELECT."""
        return self._read(text_of(select))

    def remembering(self, question: Hashable) -> "Run":
        """A way to run the SELECTs of a question, always the same ones: they are written once.

        Those that need tables lent to them are written anew, since these get other names.
        """
        texts, numbers = self._texts.setdefault(question, {}), count()
        while len(self._texts) > _MOST_TEXTS:
            self._texts.pop(next(iter(self._texts)))

        def run(write: Callable[[], exp.Select]) -> pyarrow.Table:
            number, lent = next(numbers), self._lent
            text = texts.get(number) or text_of(write())
            if lent == self._lent:
                texts[number] = text
            return self._read(text)

        return run

    def _read(self, text: str) -> pyarrow.Table:
        return self.quietly(lambda: self.connection.sql(text).to_arrow_table())

    def stream(self, select: exp.Select, rows: int, use: Callable[[pyarrow.RecordBatchReader], T]) -> T:
        """What is made of the rows of a SELECT, which come in batches of so many."""
        found: T = self.quietly(lambda: use(self.connection.sql(text_of(select)).to_arrow_reader(rows)))
        return found

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table and their types, without reading a row."""
        nothing = exp.select(exp.Star()).from_(exp.to_identifier(table, quoted=True)).limit(0)
        rows = self.quietly(lambda: self.connection.sql(text_of(nothing)))
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def keep(self, table: pyarrow.Table) -> str:
        """Make a table known to the engine until it is dropped; return its name."""
        name = next(self._names)
        self.quietly(lambda: self.connection.register(name, table))
        return name

    def drop(self, name: str) -> None:
        """Forget a table that was kept."""
        self.quietly(lambda: self.connection.unregister(name))

    @contextmanager
    def lent(self) -> Iterator[Callable[[pyarrow.Table], str]]:
        """Within it, a function that lends tables to the engine; afterwards they are gone."""
        names: list[str] = []

        def lend(table: pyarrow.Table) -> str:
            names.append(next(self._names))
            self._lent += 1
            self.quietly(lambda: self.connection.register(names[-1], table))
            return names[-1]

        with self.lock:
            try:
                yield lend
            finally:
                for name in names:
                    self.connection.unregister(name)

    def quietly(self, act: Callable[[], Any]) -> Any:
        """Act; an error of the engine or of a file becomes ours, raised where its own is no longer around.

        The engine takes Ctrl-C for an error of its own. It is none: data has no part in it.
        """
        with self.lock:
            try:
                return act()
            except (duckdb.InterruptException, pyarrow.ArrowCancelled):
                interrupted = True
            except (duckdb.Error, pyarrow.ArrowException, OSError):
                interrupted = False
            except RuntimeError as fault:
                if str(fault) != _INTERRUPTED:
                    raise
                interrupted = True
        raise KeyboardInterrupt if interrupted else NoisetteError(FAILED)
