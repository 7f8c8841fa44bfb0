"""Heads outside of the ledger's folder: who deletes or puts back all of a folder does not delete these.

secret          32 random bytes: all names below are made with it
ledgers/<name>  the last head of a ledger, by its path
data/<name>     the random names of the ledgers that some data were charged to, by what the files hold

They lie in the user's state folder: NOISETTE_STATE if that is set, else noisette in $XDG_STATE_HOME or ~/.local/state
(on macOS in ~/Library/Application Support, on Windows in %LOCALAPPDATA%). A name is an HMAC-SHA256 under the secret and
a line is a hash or a random number, so nothing there reveals data, paths or questions. Nothing is written before
the first charge. Where the folder cannot be written, all works as before, without this guard.
"""

import hashlib
import hmac
import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from noisette.errors import InputError, PrivacyError
from noisette.exact.random import SYSTEM
from noisette.ledger.chain import START, Head
from noisette.ledger.refusal import ACCEPT, START_OVER

__all__ = ["Elsewhere", "KnownError", "elsewhere", "guarded", "state_folder"]

_STATE = "NOISETTE_STATE"


class KnownError(PrivacyError):
    """The data, or the place, had a ledger before: a new one needs its owner's word."""

    def __init__(self) -> None:
        super().__init__(
            "Questions about these data, or in this place, were charged to a ledger that is not here, and a new one "
            f"would be a second budget for the same people: restore it from a backup, or start over ({START_OVER})."
        )


def state_folder() -> Path | None:
    """Where heads are kept; None where the system names no home."""
    given = os.environ.get(_STATE)
    if given:
        return Path(given).expanduser().absolute()
    try:
        return _base() / "noisette"
    except RuntimeError:
        return None


def _base() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".local" / "state"


def guarded() -> bool:
    """Whether heads can be kept on this machine."""
    return _secret(create=True) is not None


def elsewhere(where: str | Path, contents: Iterable[str] = ()) -> "Elsewhere":
    """What is remembered of the ledger at a path, or a URL, and of data with these contents."""
    local = "://" not in str(where)
    return Elsewhere(os.path.realpath(Path(where).expanduser()) if local else None, tuple(contents))


@dataclass
class Elsewhere:
    """What the state folder says of one ledger, `path`, and of the data that it is about."""

    path: str | None
    contents: tuple[str, ...] = ()
    _noted: bool = False
    _found: dict[str, list[Path]] = field(default_factory=dict)

    def known(self) -> bool:
        """Whether something was charged at this path, or about these data."""
        return any(place.exists() for place in (*self._ledger(), *self._data()))

    def head(self) -> Head | None:
        """The last head of the ledger at this path."""
        for place in self._ledger():
            try:
                return Head.read(place.read_text(encoding="ascii"))
            except FileNotFoundError:
                return None
            except (OSError, UnicodeDecodeError, InputError):
                raise PrivacyError(
                    f"The head of this ledger in the state folder cannot be read: its owner can accept it ({ACCEPT})."
                ) from None
        return None

    def remember(self, head: Head, dataset: str) -> None:
        """Before a charge: note that there is a ledger, and that the data are charged to the one of this name."""
        if self._noted:
            return
        try:
            for place in self._ledger(create=True):
                _write(place, head)
            for place in self._data(create=True):
                _note(place, dataset)
            self._noted = True
        except OSError:
            return

    def go_on(self, head: Head) -> None:
        """The ledger at this path has this head now; nothing is written before something was charged there."""
        try:
            for place in self._ledger():
                if place.exists():
                    _write(place, head)
        except OSError:
            return

    def begin(self) -> None:
        """As the owner says, a new ledger begins at this path."""
        self.go_on(START)

    # Places

    def _ledger(self, *, create: bool = False) -> list[Path]:
        return self._places("ledgers", () if self.path is None else (self.path,), create)

    def _data(self, *, create: bool = False) -> list[Path]:
        return self._places("data", self.contents, create)

    def _places(self, kind: str, names: tuple[str, ...], create: bool) -> list[Path]:
        """Where something is remembered, looked up once there is a secret."""
        if not self._found.get(kind) and names:
            self._found[kind] = _places(kind, names, create=create)
        return self._found.get(kind, [])


def _places(kind: str, names: Iterable[str], *, create: bool) -> list[Path]:
    """Where something is remembered; nowhere, if there is no secret yet."""
    folder, secret = state_folder(), _secret(create=create)
    if folder is None or secret is None:
        return []
    digests = [hmac.new(secret, f"{kind} {name}".encode(), hashlib.sha256).hexdigest() for name in names]
    return [folder / kind / digest for digest in digests]


def _secret(*, create: bool) -> bytes | None:
    """The key of all names; None if there is none, or it cannot be had."""
    folder = state_folder()
    if folder is None:
        return None
    try:
        if create and not (folder / "secret").exists():
            _make_secret(folder)
        secret = (folder / "secret").read_bytes()
    except OSError:
        return None
    return secret if len(secret) == 32 else None


def _make_secret(folder: Path) -> None:
    """Write it aside first: of several processes the first one's counts, and nobody reads half of it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file, aside = tempfile.mkstemp(dir=folder, suffix=".new")
    try:
        os.write(file, SYSTEM.bits(256).to_bytes(32, "big"))
        os.fsync(file)
        os.link(aside, folder / "secret")
    except FileExistsError:
        pass
    finally:
        os.close(file)
        os.unlink(aside)


# Files


def _write(place: Path, head: Head) -> None:
    """Write a head in place of another of the same length; on disk for sure when it is new."""
    new = not place.exists()
    file = _opened(place, os.O_WRONLY | os.O_CREAT)
    try:
        os.ftruncate(file, os.write(file, head.padded.encode()))
        if new:
            os.fsync(file)
    finally:
        os.close(file)


def _opened(place: Path, flags: int) -> int:
    place.parent.mkdir(mode=0o700, exist_ok=True)
    return os.open(place, flags, 0o600)


def _note(place: Path, dataset: str) -> None:
    """Add the name of a ledger, once."""
    if place.exists() and dataset in place.read_text(encoding="ascii").split():
        return
    file = _opened(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{dataset}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
