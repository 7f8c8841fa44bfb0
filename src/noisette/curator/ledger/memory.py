"""A ledger that lives as long as the process."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from noisette.curator.ledger.account import Account
from noisette.curator.ledger.entry import Entry
from noisette.curator.ledger.standing import ALL, Share, Standing
from noisette.curator.ledger.tight import tight
from noisette.errors import InputError
from noisette.exact.number import Number
from noisette.privacy import Guarantee, Promise

__all__ = ["Memory"]


class Memory:
    """A ledger that lives as long as the process; a filter keeps it within the budget, whatever analysts choose.

    >>> from noisette.privacy import Pure
    >>> ledger = Memory(Pure(1))
    >>> ledger.charge("a count", Pure("0.4"), []).number, ledger.left
    (1, Pure('3/5'))
    """

    def __init__(self, budget: Promise, *, shares: Mapping[str, Promise] | None = None) -> None:
        accounts = {ALL: budget, **(shares or {})}
        self._standing = Standing({who: Account.of(b) for who, b in accounts.items()}, shares is not None)
        self._entries: list[Entry] = []
        self._keys: dict[str, Entry] = {}
        self._lock = Lock()
        self.budget = budget

    @property
    def spent(self) -> Promise:
        """What is spent."""
        return self._standing.accounts[ALL].filter.spent

    @property
    def left(self) -> Promise:
        """What is left."""
        return self._standing.accounts[ALL].filter.left

    @property
    def shares(self) -> dict[str, Share]:
        """The share of each analyst who has one: in all, spent, left."""
        return self._standing.shares

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order."""
        return tuple(self._entries)

    def tight(self, delta: Number) -> float:
        """The epsilon of all charges together at a delta, had they been settled in advance."""
        return tight((entry.guarantee for entry in self.entries), delta)

    def allows(self, guarantee: Guarantee, *, analyst: str | None = None, times: int = 1) -> bool:
        """Whether a charge would be accepted now, so many times."""
        return self._standing.allows(guarantee, analyst, times)

    def charge(
        self,
        question: str,
        guarantee: Guarantee,
        parts: Sequence[Mapping[str, Any]],
        *,
        analyst: str | None = None,
        key: str | None = None,
    ) -> Entry:
        """Write a charge, or raise BudgetError and write nothing; a key that was charged is not charged again."""
        with self._lock:
            entry = Entry(len(self._entries) + 1, question, guarantee, tuple(parts), analyst, key)
            if key is not None and key in self._keys:
                return _same(self._keys[key], entry)
            self._standing.accounts.update(self._standing.after(guarantee, analyst))
            self._entries.append(entry)
            if key is not None:
                self._keys[key] = entry
            return entry


def _same(old: Entry, new: Entry) -> Entry:
    if (old.question, old.guarantee, old.parts, old.analyst) != (new.question, new.guarantee, new.parts, new.analyst):
        raise InputError("This key was used for another question: take a new one.")
    return old
