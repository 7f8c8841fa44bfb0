"""A session with a locked engine: one question at a time, temporary tables, and none of its own words.

DuckDB reads the trees of `engines.sql` as they are written.
"""

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

import duckdb
import pyarrow
from sqlglot import exp

from noisette.engines.contract import Dialect
from noisette.engines.sql import syntax
from noisette.engines.sql.aggregate import Run
from noisette.errors import NoisetteError

__all__ = ["DUCKDB", "FAILED", "Session", "text_of"]

DUCKDB = Dialect("duckdb")
"""It has TRY_CAST, HASH, ROW, ISNAN and ISFINITE; ROUND takes halves away from 0; LEAST and GREATEST skip NULL."""


def text_of(tree: exp.Expr) -> str:
    """The text that DuckDB reads."""
    return syntax.text_of(tree, DUCKDB)


T = TypeVar("T")

_MOST_TEXTS = 64  # questions whose SELECTs are cached

_INTERRUPTED = "Query interrupted"  # in a RuntimeError, after a signal

FAILED = "The engine could not compute this; what it said stays inside, since it may quote data."


_OPEN: "weakref.WeakSet[Session]" = weakref.WeakSet()
_OF_PARENT: list[duckdb.DuckDBPyConnection] = []


def _forked() -> None:
    """Keep what the parent had open: to close it would wait for threads that a copy of the process does not have."""
    _OF_PARENT.extend(session.connection for session in _OPEN)


if hasattr(os, "register_at_fork"):  # not on systems without fork
    os.register_at_fork(after_in_child=_forked)


class Session:
    """An engine that runs one thing at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.lock = threading.RLock()
        self._names = (f"noisette_{i}" for i in count())
        self._registered = 0
        self._texts: dict[Hashable, dict[int, str]] = {}
        _OPEN.add(self)

    def run(self, select: exp.Select) -> pyarrow.Table:
        """The rows of a SELECT."""
        return self._read(text_of(select))

    def cached(self, question: Hashable) -> Run:
        """Runs the SELECTs of a question, whose texts are cached: a question always has the same ones.

        Those that use temporary tables are written anew, since these get other names.
        """
        texts, numbers = self._texts.setdefault(question, {}), count()
        while len(self._texts) > _MOST_TEXTS:
            self._texts.pop(next(iter(self._texts)))

        def run(write: Callable[[], exp.Select]) -> pyarrow.Table:
            number, before = next(numbers), self._registered
            text = texts.get(number) or text_of(write())
            if before == self._registered:
                texts[number] = text
            return self._read(text)

        return run

    def _read(self, text: str) -> pyarrow.Table:
        return self.quietly(lambda: self.connection.sql(text).to_arrow_table())

    def stream(self, select: exp.Select, rows: int, use: Callable[[pyarrow.RecordBatchReader], T]) -> T:
        """What is made of the rows of a SELECT, which come in batches of at most `rows`."""
        found: T = self.quietly(lambda: use(self.connection.sql(text_of(select)).to_arrow_reader(rows)))
        return found

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table and their types, without reading a row."""
        nothing = exp.select(exp.Star()).from_(exp.to_identifier(table, quoted=True)).limit(0)
        rows = self.quietly(lambda: self.connection.sql(text_of(nothing)))
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def register(self, table: pyarrow.Table) -> str:
        """Register a table with the engine until it is dropped; return its name."""
        name = next(self._names)
        self.quietly(lambda: self.connection.register(name, table))
        return name

    def drop(self, name: str) -> None:
        """Unregister a table."""
        self.quietly(lambda: self.connection.unregister(name))

    @contextmanager
    def registered(self) -> Iterator[Callable[[pyarrow.Table], str]]:
        """A function that registers tables for as long as the context lasts."""
        names: list[str] = []

        def register(table: pyarrow.Table) -> str:
            self._registered += 1
            names.append(self.register(table))
            return names[-1]

        with self.lock:
            try:
                yield register
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
