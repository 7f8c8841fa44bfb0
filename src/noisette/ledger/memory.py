"""A ledger that lives as long as the process."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import whole
from noisette.ledger.accounts import ALL, Account, Standing
from noisette.ledger.entry import Entry, bought_last, new_key
from noisette.ledger.ledger import Ledger
from noisette.ledger.receipt import Receipt
from noisette.ledger.refusal import GAP, UNCHARGED
from noisette.privacy import Promise
from noisette.process import here

__all__ = ["Memory"]


_FORKED = (
    "This ledger is in the memory of the parent process: ask there, or open the data with a ledger file (ledger=...)."
)


class Memory(Ledger):
    """A ledger that lives as long as the process; a filter keeps it within the budget, whatever analysts choose.

    A forked process has a copy that nobody else charges, so it can neither charge nor be answered from there.

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
        self._answers: dict[str, bytes] = {}
        self._states: dict[str, tuple[int, bytes]] = {}
        self._purchases: list[Mapping[str, Any]] = []
        self._lock, self._process = Lock(), here()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order."""
        return tuple(self._entries)

    def _charged(self, draft: Entry) -> Entry:
        with self._own():
            key = draft.key
            if key is not None and key in self._keys:
                return _same(self._keys[key], draft)
            new_key(key)
            self._where.accounts.update(self._where.after(draft.guarantee, draft.analyst))
            entry = replace(draft, number=len(self._entries) + 1)
            self._entries.append(entry)
            if key is not None:
                self._keys[key] = entry
            return entry

    def answer(self, key: str) -> bytes | None:
        """The answer that was kept under a key, if there is one."""
        with self._own():
            return self._answers.get(key)

    def keep(self, key: str, answer: bytes) -> bytes:
        """Keep an answer to a charge and return what is kept: the first one, which alone may be released."""
        with self._own(key):
            return self._answers.setdefault(key, answer)

    def advance(self, key: str, number: int, state: bytes) -> bool:
        """Keep the next state of what was charged and goes on, in place of the last; False if that number was there."""
        with self._own(key):
            last, _ = self._states.get(key, (-1, b""))
            if whole(number, "number", least=0) > last + 1:
                raise PrivacyError(GAP)
            if number == last + 1:
                self._states[key] = number, state
            return number == last + 1

    def latest(self, key: str) -> tuple[int, bytes] | None:
        """The last state of what was charged under a key, with its number; None before the first."""
        with self._own():
            return self._states.get(key)

    @property
    def purchases(self) -> tuple[Mapping[str, Any], ...]:
        """The purchases so far, in order."""
        return tuple(self._purchases)

    def record_purchase(self, key: str, purchase: Mapping[str, Any]) -> None:
        """Keep what was bought with the charge of a key."""
        with self._own(key):
            if not bought_last(purchase, self._purchases):
                self._purchases.append(dict(purchase))

    def recorded(self, key: str, digests: Sequence[str]) -> Receipt:
        """What is spent and left with a release; a ledger in memory proves nothing later, so it names no entry."""
        with self._own(key):
            filter = self._where.accounts[ALL].filter
            return Receipt(filter.spent, filter.left, None)

    @contextmanager
    def _own(self, key: str | None = None) -> Iterator[None]:
        """Alone, in the process that made this ledger (a fork may have copied a lock that is held), after a charge."""
        if here() != self._process:
            raise PrivacyError(_FORKED)
        with self._lock:
            if key is not None and key not in self._keys:
                raise PrivacyError(UNCHARGED)
            yield

    def standing(self, analyst: str | None = None, *, everyone: bool = False) -> Standing:
        """Where the ledger stands now; a copy, since others may charge meanwhile."""
        return replace(self._where, accounts=dict(self._where.accounts))


def _same(old: Entry, new: Entry) -> Entry:
    if (old.question, old.guarantee, old.parts, old.analyst) != (new.question, new.guarantee, new.parts, new.analyst):
        raise InputError("This key was used for another question: take a new one.")
    return old
