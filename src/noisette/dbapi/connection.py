"""Connections and cursors over a curator in this process."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow

from noisette.answers import Release
from noisette.curator import Curator
from noisette.curator.opening import open_again
from noisette.dbapi import errors
from noisette.dbapi.values import filled, type_of
from noisette.errors import InputError

__all__ = ["Connection", "Cursor", "connect"]

_EXPLAIN = re.compile(r"^\s*EXPLAIN\b", re.IGNORECASE)


def connect(
    source: Any,
    *,
    spend: Any = None,
    error: float | None = None,
    level: float = 0.95,
    analyst: str | None = None,
    bars: bool = True,
    **opening: Any,
) -> "Connection":
    """A connection to a curator, or to data that `nz.open` opens with the further options.

    Pools and tools open connections by themselves, so data need a lasting ledger: `ledger=...`, or a project's folder.
    Each statement costs `spend`, or what its `error` costs. `level` is that of the error bars, `analyst` says who asks.
    With `bars=False` the ends of the error bars are left out.
    """
    with errors.translated():
        curator = source if isinstance(source, Curator) else _opened(source, opening)
    asked = {"spend": spend, "error": error, "level": level, "analyst": analyst}
    return Connection(curator, asked, bars=bars, owned=curator is not source)


def _opened(source: Any, opening: Mapping[str, Any]) -> Curator:
    if isinstance(source, str | Path | None) and not source:
        raise InputError('Name what to open: connect("folder", spend=0.1), or "noisette:///folder?spend=0.1".')
    return open_again(source, **opening)


class Connection:
    """Statements to a curator; `options` are those of `Curator.ask` for each of them.

    A curator that is `owned` was opened for this connection alone, whose end lets go of its ledger.
    """

    Warning, Error, InterfaceError, DatabaseError = (
        errors.Warning,
        errors.Error,
        errors.InterfaceError,
        errors.DatabaseError,
    )
    DataError, OperationalError, IntegrityError = errors.DataError, errors.OperationalError, errors.IntegrityError
    InternalError, ProgrammingError = errors.InternalError, errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, curator: Curator, options: Mapping[str, Any], *, bars: bool = True, owned: bool = False) -> None:
        self.curator, self.bars, self._options = curator, bars, dict(options)
        self._owned, self._closed = owned, False

    def cursor(self) -> "Cursor":
        """A new cursor."""
        self.check()
        return Cursor(self)

    def execute(self, statement: str, parameters: Sequence[Any] = (), **options: Any) -> "Cursor":
        """A new cursor with the answer to a statement."""
        return self.cursor().execute(statement, parameters, **options)

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of one statement: those of the connection, less what the statement sets itself."""
        kept = dict(self._options)
        if "spend" in given or "error" in given:
            kept.update(spend=None, error=None)
        return {**kept, **given}

    def commit(self) -> None:
        """Nothing is ever pending."""
        self.check()

    def rollback(self) -> None:
        """Nothing is ever pending; what was spent stays spent."""
        self.check()

    def close(self) -> None:
        """Use it no more; a curator that was given stays open."""
        if self._owned:
            self.curator.ledger.close()
        self._closed = True

    def check(self) -> None:
        """Refuse to go on after `close`."""
        if self._closed:
            raise errors.InterfaceError("This connection is closed: connect again.")

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """One answer at a time; `release` is the whole of it, with its statement of privacy.

    `messages` has what to know about it, as PEP 249 says: its warnings, which Python shows as well, and its caveats.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection, self.arraysize = connection, 1
        self.messages: list[tuple[type[Exception], str]] = []
        self.release: Release | None = None
        self._table: pyarrow.Table | None = None
        self._next, self._closed = 0, False

    # Questions

    def execute(self, statement: str, parameters: Sequence[Any] = (), **options: Any) -> "Cursor":
        """Ask a statement, with a constant for each `?`; with EXPLAIN before it, what to expect, for free.

        The options are those of `Curator.ask`, for this statement alone: `spend=0.5`.
        """
        self._check()
        self._table, self._next, self.release, self.messages = None, 0, None, []
        with errors.translated():
            if not isinstance(statement, str):
                raise InputError("A statement is a text, such as SELECT count(*) FROM visits.")
            text = _EXPLAIN.sub("", statement)
            asked, curator = filled(text, parameters), self.connection.curator
            price = self.connection.options(options)
            if text != statement:
                found = curator.explain(asked, **price)
                self._table = pyarrow.table({"explanation": repr(found).splitlines()})
            else:
                self.release = curator.ask(asked, **price)
                self._table = _columns(self.release, bars=self.connection.bars)
                self.messages = [(errors.Warning, text) for text in self.release.notes]
        for text in () if self.release is None else self.release.warnings:
            warnings.warn(text, errors.Warning, stacklevel=2)
        return self

    def executemany(self, statement: str, sequence: Sequence[Sequence[Any]]) -> None:
        """Refused: it is for what writes."""
        raise errors.NotSupportedError("Nothing can be written here: ask each question with execute.")

    # Rows

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """For each column its name, its type, and five times None."""
        if self._table is None:
            return None
        return [(field.name, type_of(field.type), None, None, None, None, None) for field in self._table.schema]

    @property
    def rowcount(self) -> int:
        """How many rows the answer has; -1 before there is one."""
        return -1 if self._table is None else self._table.num_rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, at most `size` (by default `arraysize`) of them."""
        self._check()
        if self._table is None:
            raise errors.InterfaceError("There is no answer yet: execute a statement first.")
        part = self._table.slice(self._next, self.arraysize if size is None else size)
        self._next += part.num_rows
        columns = [column.to_pylist() for column in part.columns]
        return list(zip(*columns, strict=True))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self.fetchmany(max(0, self.rowcount))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing needs it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing needs it."""

    def close(self) -> None:
        """Use it no more."""
        self._closed = True

    def _check(self) -> None:
        self.connection.check()
        if self._closed:
            raise errors.InterfaceError("This cursor is closed: make a new one.")

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _columns(release: Release, *, bars: bool) -> pyarrow.Table:
    table = release.to_arrow()
    return table if bars else table.select([column.name for column in release.columns])
