"""What a ledger is, wherever it is kept, and the smallest one: `Memory`, which lives as long as the process.

All that a ledger says follows from where it stands and from its entries.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from operator import add
from threading import Lock
from typing import Any

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, whole
from noisette.ledger.accounts import ALL, Account, Parts, Share, Standing, act_body
from noisette.ledger.approvals import Request, check_number, request_body, requested, waiting
from noisette.ledger.entry import Entry, bought_last, drafted, new_key
from noisette.ledger.pins import State, new_pin_key, state_name
from noisette.ledger.receipt import Receipt
from noisette.ledger.refusal import GAP, UNCHARGED
from noisette.privacy import Guarantee, Promise, Pure
from noisette.process import here

__all__ = ["Ledger", "Memory", "tight"]


class Ledger(ABC):
    """Where charges are written before anything is drawn."""

    @property
    def budget(self) -> Promise:
        """What may be spent in all."""
        return self.standing().accounts[ALL].budget

    @property
    def spent(self) -> Promise:
        """What is spent."""
        return self.standing().accounts[ALL].filter.spent

    @property
    def left(self) -> Promise:
        """What is left."""
        return self.standing().accounts[ALL].filter.left

    @property
    def shares(self) -> dict[str, Share]:
        """The share of each analyst who has one: in all, spent, left."""
        return self.standing(everyone=True).shares

    @property
    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order."""

    def tight(self, delta: Number) -> float:
        """The epsilon of all charges together at a delta, had they been settled in advance."""
        return tight((entry.guarantee for entry in self.entries), delta)

    def allows(self, guarantee: Guarantee, *, analyst: str | None = None, times: int = 1) -> bool:
        """Whether a charge would be accepted now, `times` times."""
        return self.standing(analyst).allows(guarantee, analyst, times)

    def charge(
        self,
        question: str,
        guarantee: Guarantee,
        parts: Sequence[Mapping[str, Any]],
        *,
        analyst: str | None = None,
        key: str | None = None,
        about: State | None = None,
    ) -> Entry:
        """Write a charge, or raise BudgetError and write nothing.

        The same key with the same question, guarantee and mechanisms is charged once, whenever and by whomever it is
        repeated; with anything else it is an error. Who charges with a key releases nothing but what was kept under
        it: only then may the same charge be drawn for again. `about` is the state of the data, from `pinned`.
        """
        draft = drafted(question, guarantee, parts, analyst, key)
        return self._charged(draft if about is None else replace(draft, state=about.name, pin=about.pin))

    def pinned(self, pin: str | None) -> State:
        """A state of the data by its pin, with the name that analysts see; None where nothing pins the data."""
        return State(state_name(self._pin_key(), pin), pin)

    @abstractmethod
    def _pin_key(self) -> str:
        """The key of the names of states."""

    # What was drawn for a charge

    @abstractmethod
    def answer(self, key: str) -> bytes | None:
        """The answer that was kept under a key, if there is one."""

    @abstractmethod
    def keep(self, key: str, answer: bytes) -> bytes:
        """Keep an answer to a charge and return what is kept: the first one, which alone may be released."""

    @abstractmethod
    def advance(self, key: str, number: int, state: bytes) -> bool:
        """Keep state 0, 1, 2, ... of what was charged and goes on; False if that number is there, whatever it holds.

        Who got False went on from a state that is not the last one, so what was drawn since must not be released.
        """

    @abstractmethod
    def latest(self, key: str) -> tuple[int, bytes] | None:
        """The last state of what was charged under a key, with its number; None before the first."""

    # What was bought

    @property
    @abstractmethod
    def purchases(self) -> tuple[Mapping[str, Any], ...]:
        """The purchases so far, in order (see `entry.purchase_body`); of two of the same thing the later one holds."""

    @abstractmethod
    def record_purchase(self, key: str, purchase: Mapping[str, Any]) -> None:
        """Write what was bought with the charge of a key, for all who ask from now on; nothing if it holds already."""

    # What was released

    @abstractmethod
    def recorded(self, key: str, digests: Sequence[str]) -> Receipt:
        """Write that records with these digests are released for the charge of a key; return where they stand."""

    # What waits for the owner

    @property
    def requests(self) -> tuple[Request, ...]:
        """The questions that needed or need the owner's approval, in order."""
        return tuple(requested(self._noted()).values())

    def request(self, request: Request) -> Request:
        """Write that a question waits for the owner, unless it is known; return it with what the owner said to it."""
        known = requested(self._noted())
        if request.key not in known:
            check_number(known.values(), request.analyst)
            self._note(request_body(request))
        return known.get(request.key, request)

    def approve(self, name: str, *, why: str = "the owner approved it") -> Request:
        """As the owner: let a question that waits be answered, once."""
        return self._decided("approve", name, why)

    def decline(self, name: str, *, why: str = "the owner declined it") -> Request:
        """As the owner: decline a question that waits."""
        return self._decided("decline", name, why)

    def _decided(self, act: str, name: str, why: str) -> Request:
        request = waiting(self.requests, name)
        self._note(act_body(act, why, of=request.key))
        return requested(self._noted())[request.key]

    @abstractmethod
    def _noted(self) -> Sequence[Mapping[str, Any]]:
        """The requests and what the owner did, in order."""

    @abstractmethod
    def _note(self, body: Mapping[str, Any]) -> None:
        """Write a request, or what the owner said to it."""

    # What each ledger has to say

    @abstractmethod
    def _charged(self, draft: Entry) -> Entry:
        """The entry as it is written, with its number, or the one that its key was charged for."""

    @abstractmethod
    def standing(self, analyst: str | None = None, *, everyone: bool = False) -> Standing:
        """Where the ledger stands, at least with the account of all, and those of an analyst or of everyone."""

    def close(self) -> None:
        """Let go of the database, if there is one; the next call opens it again."""
        return


def tight(guarantees: Iterable[Guarantee], delta: Number) -> float:
    """The epsilon of all of them together at a delta, rounded up; equal ones are counted, not added one by one.

    It composes privacy losses tightly, which is right for costs that no answer has influenced. It shows how much a
    filter has left unused; it is no promise to one who chose costs along the way.

    >>> round(tight([Pure("0.1")] * 100, "1e-6"), 3)
    4.775
    """
    counted = Counter((guarantee, guarantee.losses) for guarantee in guarantees)
    parts = [guarantee * count for (guarantee, _), count in counted.items()]
    return reduce(add, parts, Pure(0)).epsilon_at(delta)


# In memory


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

    def __init__(
        self, budget: Promise, *, shares: Mapping[str, Promise] | None = None, keys_delta: Number | None = None
    ) -> None:
        accounts, parts = {ALL: budget, **(shares or {})}, Parts.new(budget, keys_delta)
        self._where = Standing({who: Account.of(b, parts) for who, b in accounts.items()}, shares is not None)
        self._where.pin_key = new_pin_key()
        self._entries: list[Entry] = []
        self._keys: dict[str, Entry] = {}
        self._answers: dict[str, bytes] = {}
        self._states: dict[str, tuple[int, bytes]] = {}
        self._purchases: list[Mapping[str, Any]] = []
        self._notes: list[Mapping[str, Any]] = []
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

    def _pin_key(self) -> str:
        return self._where.pin_key

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

    def _noted(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self._notes)

    def _note(self, body: Mapping[str, Any]) -> None:
        with self._own():
            self._notes.append(dict(body))

    def recorded(self, key: str, digests: Sequence[str]) -> Receipt:
        """What is spent and left with a release; a ledger in memory proves nothing later, so it names no entry."""
        with self._own(key):
            filter = self._where.accounts[ALL].filter
            return Receipt(filter.spent, filter.left, None)

    def confirm(self, record: Mapping[str, Any]) -> int:
        """Nothing can be confirmed, since it names no entry; in a ledger file, `Book.confirm` compares the record."""
        raise InputError(
            "A ledger in memory proves nothing later: check the record's claim alone, without ledger=, or charge to a "
            "ledger file."
        )

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
