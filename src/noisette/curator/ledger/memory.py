"""A ledger that lives as long as the process."""

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock

from noisette.curator.ledger.account import Account
from noisette.curator.ledger.entry import Entry
from noisette.curator.ledger.ledger import Ledger
from noisette.curator.ledger.standing import ALL, Standing
from noisette.errors import InputError
from noisette.privacy import Promise

__all__ = ["Memory"]


class Memory(Ledger):
    """A ledger that lives as long as the process; a filter keeps it within the budget, whatever analysts choose.

    >>> from noisette.privacy import Pure
    >>> ledger = Memory(Pure(1))
    >>> ledger.charge("a count", Pure("0.4"), []).number, ledger.left
    (1, Pure('3/5'))
    """

    def __init__(self, budget: Promise, *, shares: Mapping[str, Promise] | None = None) -> None:
        accounts = {ALL: budget, **(shares or {})}
        self._where = Standing({who: Account.of(b) for who, b in accounts.items()}, shares is not None)
        self._entries: list[Entry] = []
        self._keys: dict[str, Entry] = {}
        self._lock = Lock()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order."""
        return tuple(self._entries)

    def _charged(self, draft: Entry) -> Entry:
        with self._lock:
            key = draft.key
            if key is not None and key in self._keys:
                return _same(self._keys[key], draft)
            self._where.accounts.update(self._where.after(draft.guarantee, draft.analyst))
            entry = replace(draft, number=len(self._entries) + 1)
            self._entries.append(entry)
            if key is not None:
                self._keys[key] = entry
            return entry

    def _standing(self, analyst: str | None = None, *, everyone: bool = False) -> Standing:
        return self._where


def _same(old: Entry, new: Entry) -> Entry:
    if (old.question, old.guarantee, old.parts, old.analyst) != (new.question, new.guarantee, new.parts, new.analyst):
        raise InputError("This key was used for another question: take a new one.")
    return old
