"""A ledger in a SQLite file: WAL, synchronous = FULL, BEGIN IMMEDIATE.

Beside `visits.ledger` lies `visits.ledger-head`, the head before the last charge. If the file knows less than it, or
something else, then the file is not the one that was written last: an old copy, a backup, an empty file.
"""

import errno
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.ledger.chain import Head
from noisette.ledger.refusal import ACCEPT, RESTORE
from noisette.ledger.store import Store

__all__ = ["SQLite"]

_OURS = 0x6E7A6C67  # application_id: "nzlg"
_PAUSE = 0.005  # seconds
_GUARD = "CREATE TRIGGER ledger_{what} BEFORE {what} ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END"


class SQLite(Store):
    """A file; `timeout` is how many seconds to wait while others write."""

    WITNESSED = True

    def __init__(self, path: str | Path, *, timeout: float = 30.0) -> None:
        super().__init__()
        named = Path(path).expanduser().absolute()
        self.path, self.timeout = Path(os.path.realpath(named)), timeout  # two links to a ledger are one ledger
        self._earlier = named.with_name(f"{named.name}-head")  # where earlier versions kept the head: beside the link
        self._inode = 0

    def _where(self) -> str:
        """The path, and the file itself: a copy has another inode."""
        return f"{self.path.resolve()}#{self._inode}"

    def _connect(self) -> sqlite3.Connection:
        if not self.path.parent.is_dir():
            raise InputError(f"The directory of the ledger {self.path.name} is missing: create it first.")
        if self.path.is_dir():
            raise InputError(f"The ledger {self.path.name} is a directory: name a file.")
        connection = sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None, check_same_thread=False)
        try:
            # Both are written at once: whoever sees tables first and then the mark cannot miss it.
            tables, ours = (connection.execute(q).fetchone()[0] for q in (_TABLES, "PRAGMA application_id"))
            if ours != _OURS and tables:
                raise InputError(f"{self.path.name} is a database but not a ledger: name another file.")
            _write_ahead(connection, self.timeout)
            connection.execute("PRAGMA synchronous = FULL")
            self._inode = os.stat(self.path).st_ino
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, *, write: bool) -> None:
        self.run("BEGIN IMMEDIATE" if write else "BEGIN")

    def _check_place(self) -> None:
        try:
            there = os.stat(self.path).st_ino
        except OSError:
            there = None
        if there != self._inode:
            raise PrivacyError(f"The ledger {self.path.name} was moved or replaced while it was open: open it again.")

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement with ? for values; return its rows."""
        return self._connection.execute(statement, values).fetchall()  # type: ignore[no-any-return]

    def version(self) -> int:
        """Which version of the tables is there; 0 for none."""
        return int(self.run("PRAGMA user_version")[0][0])

    def _set_version(self, version: int) -> None:
        self.run(f"PRAGMA application_id = {_OURS}")
        self.run(f"PRAGMA user_version = {version:d}")

    def _guard(self) -> None:
        for what in ("UPDATE", "DELETE"):
            self.run(_GUARD.format(what=what))

    def there(self) -> bool:
        """Whether there is a file, or was one."""
        return self.path.exists() or self._beside.exists() or self._earlier.exists() or not self.path.parent.is_dir()

    def sound(self) -> bool:
        """Whether the file's structure and its indexes are in order."""
        return self.run("PRAGMA integrity_check(1)") == [("ok",)]

    def _meaning(self, fault: Exception) -> NoisetteError | None:
        if isinstance(fault, OSError):  # of the head beside the file
            code = _CODES.get(fault.errno or 0, 0)
        elif isinstance(fault, sqlite3.Error):
            code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
        else:
            return None
        kind, sentence = _SENTENCES.get(code, _OTHER)
        return kind(sentence.format(self.path.name))

    # The head beside the file; only one process at a time is here, since the transaction has the write lock.

    @property
    def _beside(self) -> Path:
        return self.path.with_name(f"{self.path.name}-head")

    def witness(self) -> Head | None:
        """The head beside the file."""
        beside = self._beside if self._beside.exists() else self._earlier
        try:
            return Head.read(beside.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, InputError):
            raise PrivacyError(
                f"{self._beside.name} cannot be read: the owner can accept the ledger as it is ({ACCEPT})."
            ) from None

    def remember(self, head: Head) -> None:
        """Write the head beside the file; on disk for sure when it is new, and soon after otherwise."""
        new = not self._beside.exists()
        file = os.open(self._beside, os.O_WRONLY | os.O_CREAT, os.stat(self.path).st_mode & 0o777)
        try:
            os.write(file, head.padded.encode())
            if new:
                os.fsync(file)
        finally:
            os.close(file)
        if new:
            _sync_directory(self.path.parent)


def _write_ahead(connection: sqlite3.Connection, timeout: float) -> None:
    """Switch to WAL, which needs the file for itself.

    SQLite does not wait here, whatever its busy timeout: two that hold a read lock would wait for each other for ever.
    Nothing is held between tries, so of those who begin one ledger at a time somebody always gets on.
    """
    last = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                raise
        time.sleep(_PAUSE)


def _sync_directory(path: Path) -> None:
    if os.name != "posix":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


_TABLES = "SELECT count(*) FROM sqlite_master"
_OTHER: tuple[type[NoisetteError], str] = (
    NoisetteError,
    "The ledger {} could not be used and nothing was charged: check its disk.",
)
_BUSY: tuple[type[NoisetteError], str] = (NoisetteError, "Others kept the ledger {} busy too long: ask again.")
_READONLY: tuple[type[NoisetteError], str] = (
    InputError,
    "The ledger {} is read-only: allow this user to write it and its directory.",
)
_CODES = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    **dict.fromkeys([errno.EACCES, errno.EPERM, errno.EROFS], sqlite3.SQLITE_READONLY),
}
_SENTENCES: dict[int, tuple[type[NoisetteError], str]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: (NoisetteError, "There is no room for the ledger {}: free some disk space, then ask again."),
    sqlite3.SQLITE_READONLY: _READONLY,
    sqlite3.SQLITE_PERM: _READONLY,
    sqlite3.SQLITE_CANTOPEN: (InputError, "The ledger {} cannot be opened: check its path and its permissions."),
    sqlite3.SQLITE_NOTADB: (InputError, "{} is not a ledger: name another file."),
    sqlite3.SQLITE_CORRUPT: (PrivacyError, f"The ledger {{}} is damaged: {RESTORE}."),
}
