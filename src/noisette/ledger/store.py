"""What both databases share: four tables, the statements on them, and transactions that hold the one write lock.

ledger_entries   number, body (the entry's text), hash, key       only ever added to
ledger_head      number, hash, about                              one row: where the ledger stands
ledger_accounts  analyst, state                                   the running sums; '' is the budget
ledger_answers   key, body                                        what was drawn; an entry has its digest

A store decides nothing. It fails closed: whatever a database says, a charge that did not return was not made to be
drawn for, and the sentence says what to do. The database's own words stay inside.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any
from weakref import WeakSet

from noisette.errors import InputError, NoisetteError
from noisette.ledger.accounts import Account
from noisette.ledger.chain import START, Head, Row
from noisette.ledger.heads import Elsewhere

__all__ = ["MIGRATIONS", "UNRECORDED", "Store"]

MIGRATIONS: list[list[str]] = [
    [
        "CREATE TABLE ledger_entries (number {whole} PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL, key TEXT)",
        "CREATE UNIQUE INDEX ledger_keys ON ledger_entries (key) WHERE key IS NOT NULL",
        "CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), "
        "number {whole} NOT NULL, hash TEXT NOT NULL, about TEXT NOT NULL)",
        "CREATE TABLE ledger_accounts (analyst TEXT PRIMARY KEY, state TEXT NOT NULL)",
        "CREATE TABLE ledger_answers (key TEXT PRIMARY KEY, body {blob} NOT NULL)",
    ],
    [],  # from here on every answer has an entry with its digest; those from before get one when this is reached
    [],  # from here on every record that is released has an entry, of a kind that earlier versions do not know
    [],  # from here on purchases have entries, of a kind that earlier versions do not know
]
"""The statements that lead to each version of the tables from the one before; what is here never changes."""

UNRECORDED = 1
"""The last version whose answers have no entries."""


_STORES: WeakSet["Store"] = WeakSet()
_PARENTS: list[Any] = []
"""Connections of the process that forked this one: not to be used here, nor closed, which would be a use."""


def _forked() -> None:
    for store in _STORES:
        _PARENTS.append(store._connection)
        store._connection, store._lock = None, RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Store(ABC):
    """Rows and transactions; any number of threads, and a process that was forked opens a connection of its own."""

    WITNESSED = False
    LOCK = ""
    WHOLE, BLOB = "INTEGER", "BLOB"

    def __init__(self) -> None:
        self._lock = RLock()
        self._connection: Any = None
        self._place: str | None = None
        self.elsewhere: Elsewhere | None = None
        _STORES.add(self)

    # What each database has to say

    @abstractmethod
    def _where(self) -> str:
        """Where the ledger is: copies and restored backups are elsewhere."""

    @abstractmethod
    def version(self) -> int:
        """Which version of the tables is there; 0 for none."""

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _begin(self, *, write: bool) -> None: ...

    def _check_place(self) -> None:
        """Raise if what is open is no longer what the place holds."""
        return

    @abstractmethod
    def _meaning(self, fault: Exception) -> NoisetteError | None:
        """A fault of the database as a sentence."""

    @abstractmethod
    def _set_version(self, version: int) -> None: ...

    @abstractmethod
    def _guard(self) -> None:
        """Let the database itself refuse to change or delete entries."""

    @abstractmethod
    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement with ? for values; return its rows."""

    def there(self) -> bool:
        """Whether there is something to open, as far as can be known without opening it."""
        return True

    def sound(self) -> bool:
        """Whether the database finds its own structure in order."""
        return True

    def witness(self) -> Head | None:
        """A head kept beside the database, if there is a place for it."""
        return None

    def remember(self, head: Head) -> None:
        """Keep a head beside the database, if there is a place for it."""
        return

    # Connections and transactions

    def connection(self) -> Any:
        """The connection of this process."""
        if self._connection is None:
            self._connection, self._place = self._connect(), None
        return self._connection

    @property
    def place(self) -> str:
        """Where the ledger is, looked up once for each connection; inside a transaction."""
        if self._place is None:
            self._place = self._where()
        return self._place

    def close(self) -> None:
        """Let go of the connection; the next call opens a new one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """All or nothing; with `write`, alone, and on disk when it ends without an error."""
        with self._lock, self._faults():
            self.connection()
            self._begin(write=write)
            try:
                self._check_place()
                yield
                self._commit()
            except BaseException:
                self._roll_back()
                raise

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except NoisetteError:
            raise
        except Exception as fault:
            meaning = self._meaning(fault)
            if meaning is None:
                raise
            said = meaning
        else:
            return
        raise said

    def _commit(self) -> None:
        self.run("COMMIT")

    def _roll_back(self) -> None:
        """Undo; a connection on which even that fails is dropped, which undoes as well."""
        try:
            self.run("ROLLBACK")
        except Exception:
            self._connection = None

    def prepare(self) -> int:
        """Bring the tables to this version, inside a transaction; return which one there was."""
        there = self.version()
        if there > len(MIGRATIONS):
            raise InputError("This ledger was written by a newer version of Noisette: update Noisette to open it.")
        for statements in MIGRATIONS[there:]:
            for statement in statements:
                self.run(statement.format(whole=self.WHOLE, blob=self.BLOB))
        if there == 0:
            self._guard()
        if there < len(MIGRATIONS):
            self._set_version(len(MIGRATIONS))
        return there

    # Rows

    def head(self, *, lock: bool = False) -> tuple[Head, str]:
        """The last entry's number and hash, and what the ledger is about; `lock` it before you decide on it."""
        rows = self.run(f"SELECT number, hash, about FROM ledger_head{self.LOCK if lock else ''}")
        return (Head(rows[0][0], rows[0][1]), rows[0][2]) if rows else (START, "")

    def append(self, row: Row, about: str, accounts: Mapping[str, Account]) -> None:
        """Add an entry, and write where the ledger stands after it."""
        self.run("INSERT INTO ledger_entries (number, body, hash, key) VALUES (?, ?, ?, ?)", *row)
        self.run(
            "INSERT INTO ledger_head (one, number, hash, about) VALUES (1, ?, ?, ?) ON CONFLICT (one) "
            "DO UPDATE SET number = excluded.number, hash = excluded.hash, about = excluded.about",
            *(row.number, row.hash, about),
        )
        for analyst, account in accounts.items():
            self.run(
                "INSERT INTO ledger_accounts (analyst, state) VALUES (?, ?) ON CONFLICT (analyst) "
                "DO UPDATE SET state = excluded.state",
                *(analyst, account.text),
            )

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The entries after a number, in order; read in pieces."""
        while True:
            found = self.run(
                "SELECT number, body, hash, key FROM ledger_entries WHERE number > ? ORDER BY number LIMIT 1000", after
            )
            yield from (Row(*row) for row in found)
            if len(found) < 1000:
                return
            after = found[-1][0]

    def hash_of(self, number: int) -> str | None:
        """The hash of an entry, if it is there."""
        rows = self.run("SELECT hash FROM ledger_entries WHERE number = ?", number)
        return rows[0][0] if rows else None

    def found(self, key: str) -> Row | None:
        """The entry with an idempotency key."""
        rows = self.run("SELECT number, body, hash, key FROM ledger_entries WHERE key = ?", key)
        return Row(*rows[0]) if rows else None

    def accounts(self, names: list[str] | None = None) -> dict[str, Account]:
        """The running sums of some analysts, or of all."""
        if names is None:
            rows = self.run("SELECT analyst, state FROM ledger_accounts")
        else:
            marks = ", ".join("?" * len(names))
            rows = self.run(f"SELECT analyst, state FROM ledger_accounts WHERE analyst IN ({marks})", *names)
        return {analyst: Account.read(state) for analyst, state in rows}

    def answer(self, key: str) -> bytes | None:
        """What was kept under a key."""
        rows = self.run("SELECT body FROM ledger_answers WHERE key = ?", key)
        return _bytes(rows[0][0]) if rows else None

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """All answers with their keys; read in pieces."""
        after = ""
        while True:
            found = self.run("SELECT key, body FROM ledger_answers WHERE key > ? ORDER BY key LIMIT 100", after)
            yield from ((key, _bytes(body)) for key, body in found)
            if len(found) < 100:
                return
            after = found[-1][0]

    def keep(self, key: str, body: bytes) -> None:
        """Keep an answer where there is none."""
        self.run("INSERT INTO ledger_answers (key, body) VALUES (?, ?)", key, body)


def _bytes(body: Any) -> bytes:
    """What is stored, as bytes; in SQLite a forger may have put anything there."""
    return bytes(body) if isinstance(body, bytes | memoryview) else str(body).encode()
