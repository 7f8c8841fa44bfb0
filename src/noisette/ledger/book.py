"""The durable ledger: what is decided, in which order, whatever the database.

    charge -> draw -> keep -> release

`charge` returns once the entry is on disk, so nothing is drawn that was not paid for. `keep` returns once the answer is
on disk, so nothing was released before. A crash in between leaves a charge without an answer: to draw again under the
same key is then safe, since nobody has seen the first draw.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import whole
from noisette.laws.law import smallest
from noisette.ledger.accounts import Standing, act_body, share_records
from noisette.ledger.chain import Head, parsed
from noisette.ledger.entry import (
    Entry,
    answer_body,
    bought_last,
    charge_body,
    checked,
    covers,
    entry_of,
    name,
    new_key,
    purchase_body,
    same,
    to_record,
)
from noisette.ledger.ledger import Ledger
from noisette.ledger.pins import new_pin_key, state_fields
from noisette.ledger.receipt import Receipt, confirmed, recorded
from noisette.ledger.refusal import GAP, UNCHARGED
from noisette.ledger.store import Store
from noisette.ledger.transactions import append, locked, now, standing_of, verified
from noisette.privacy import Promise

__all__ = ["Book"]


def _nothing(step: str) -> None:
    """What happens at each step: nothing, but tests may stop here."""


class Book(Ledger):
    """A ledger in a database; `open_ledger` makes one. Any number of threads and processes may use it at once."""

    def __init__(self, store: Store, *, clock: Callable[[], str] = now, step: Callable[[str], None] = _nothing) -> None:
        self._store, self._clock, self._step = store, clock, step
        self._read: list[Entry] = []
        self._upto = 0
        self._bought: list[Mapping[str, Any]] = []
        self._notes: list[Mapping[str, Any]] = []
        self._followed_upto = 0
        self._key = ""

    # What was written

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order; what was read once is not read again."""
        with self._store.transaction(write=False):  # one thread at a time
            new = [parsed(row) for row in self._store.rows(self._upto)]
            self._read += [entry_of(body) for body in new if body["kind"] == "charge"]
            self._upto += len(new)
            return tuple(self._read)

    @property
    def history(self) -> list[dict[str, Any]]:
        """All that was written: the opening, charges, digests of answers and records, and what the owner did."""
        with self._store.transaction(write=False):
            return [parsed(row) for row in self._store.rows()]

    @property
    def purchases(self) -> tuple[Mapping[str, Any], ...]:
        """The purchases so far, in order, those of other processes too; what was read once is not read again."""
        with self._store.transaction(write=False):
            return tuple(self._purchases())

    def _purchases(self) -> list[Mapping[str, Any]]:
        self._follow()
        return self._bought

    def _noted(self) -> Sequence[Mapping[str, Any]]:
        with self._store.transaction(write=False):
            self._follow()
            return tuple(self._notes)

    def _follow(self) -> None:
        """Read the new entries that are purchases, requests or acts of the owner."""
        for row in self._store.rows(self._followed_upto):
            if any(f'"kind":"{kind}"' in row.body for kind in ("purchase", "request", "act")):
                body = parsed(row)
                lists = {"purchase": self._bought, "request": self._notes, "act": self._notes}
                lists.get(body["kind"], []).append(body)
            self._followed_upto = row.number

    def _note(self, body: Mapping[str, Any]) -> None:
        with self._store.transaction(write=True):
            head, standing = locked(self._store)
            append(self._store, head, standing, body, self._clock())

    # Charges and answers

    def _charged(self, draft: Entry) -> Entry:
        """The entry once it is on disk."""
        body = charge_body(draft)
        with self._store.transaction(write=True):
            head, standing = locked(self._store, draft.analyst)
            self._step("begun")
            old = None if draft.key is None else self._store.found(draft.key)
            if old is not None:
                return _repeated(parsed(old), body)
            new_key(draft.key)
            standing.after(draft.guarantee, draft.analyst)
            if self._store.elsewhere is not None:
                self._store.elsewhere.remember(head, standing.dataset)
            self._step("decided")
            about = {} if draft.state is None else state_fields(draft.state, draft.pin, standing.state)
            written = append(self._store, head, standing, {**body, **about}, self._clock())
            self._step("written")
        self._step("committed")
        return replace(draft, number=written["number"], time=written["time"])

    def _pin_key(self) -> str:
        """The key that the opening holds; a ledger of an earlier version gets one now."""
        if not self._key:
            with self._store.transaction(write=False):
                self._key = standing_of(self._store, self._store.head()[1]).pin_key
        if not self._key:
            with self._store.transaction(write=True):
                head, standing = locked(self._store)
                if not standing.pin_key:
                    body = act_body("pins", "a key for the names of states", pin_key=new_pin_key())
                    append(self._store, head, standing, body, self._clock())
                self._key = standing.pin_key
        return self._key

    def answer(self, key: str) -> bytes | None:
        """The answer that was kept under a key, if there is one."""
        with self._store.transaction(write=False):
            return self._store.answer(key)

    def keep(self, key: str, answer: bytes) -> bytes:
        """Write an answer to disk and return what is kept: the first one, which alone may be released."""
        kept = self._unless_kept(key, key, answer)
        return answer if kept is None else kept

    def advance(self, key: str, number: int, state: bytes) -> bool:
        """Write state 0, 1, 2, ... of what was charged and goes on; False if that number is there already."""
        place = _place(key, whole(number, "number", least=0))
        with self._store.transaction(write=False):
            if number and self._store.answer(_place(key, number - 1)) is None:
                raise PrivacyError(GAP)
            if self._store.found(place) is not None:
                raise PrivacyError("A charge has the name of this state: begin the stream under another key.")
        return self._unless_kept(key, place, state) is None

    def latest(self, key: str) -> tuple[int, bytes] | None:
        """The last state of what was charged under a key, with its number; None before the first."""
        with self._store.transaction(write=False):
            number = smallest(lambda n: self._store.answer(_place(key, n)) is None) - 1
            state = self._store.answer(_place(key, number))
        return None if state is None else (number, state)

    def record_purchase(self, key: str, purchase: Mapping[str, Any]) -> None:
        """Write what was bought with the charge of a key to disk."""
        with self._store.transaction(write=True):
            head, standing = locked(self._store)
            if self._store.found(key) is None:
                raise PrivacyError(UNCHARGED)
            if not bought_last(purchase, self._purchases()):
                append(self._store, head, standing, purchase_body(key, purchase), self._clock())

    def recorded(self, key: str, digests: Sequence[str]) -> Receipt:
        """Write that records with these digests are released for the charge with a key; return where they stand."""
        return recorded(self._store, key, digests, self._clock)

    def _unless_kept(self, charged: str, key: str, body: bytes) -> bytes | None:
        """Write something to disk under a key, or return what is there already."""
        name(key, "key")
        with self._store.transaction(write=True):
            head, standing = locked(self._store)
            if self._store.found(charged) is None:
                raise PrivacyError(UNCHARGED)
            kept = self._store.answer(key)
            if kept is None:
                self._store.keep(key, body)
                append(self._store, head, standing, answer_body(key, body), self._clock())
            self._step("keeping")
        self._step("kept")
        return kept

    # What the owner does

    def raise_budget(self, budget: Promise, *, why: str) -> None:
        """Set another budget that holds what was spent; to raise one is a new promise to everyone in the data."""
        self._act(act_body("budget", why, budget=to_record(budget)))

    def share(self, shares: Mapping[str, Promise], *, why: str) -> None:
        """Give analysts shares, or other ones; from then on only those with a share are answered."""
        self._act(act_body("share", why, shares=share_records(shares)))

    def _act(self, body: dict[str, Any]) -> None:
        with self._store.transaction(write=True):
            head, standing = locked(self._store, everyone=True)
            append(self._store, head, standing, body, self._clock())
            if not standing.sound():
                raise InputError("More was spent already: name a budget or a share that holds what was spent.")

    # Trust

    def head(self) -> Head:
        """The number and hash of the last entry; as a text, keep it where the ledger's writers cannot reach it."""
        with self._store.transaction(write=False):
            return self._store.head()[0]

    def verify(self, *, head: str | Head | None = None) -> Head:
        """Read all entries again; raise PrivacyError that names the first one that is not as it was written.

        Edits, deletions and changed orders show by themselves, those of kept answers too. What was cut off at the end,
        and a chain that was written anew, show against a `head` that was kept elsewhere.
        """
        known = None if head is None else Head.read(head)
        with self._store.transaction(write=False):
            return verified(self._store, known)

    def confirm(self, record: Mapping[str, Any]) -> int:
        """The number of the charge of a record (`answers.check` reads one); raise PrivacyError if it was changed."""
        return confirmed(self._store, record)

    def check(self) -> int:
        """Build the mechanisms of every charge again and hold its claim to what they promise; return how many."""
        charges = [body for body in self.history if body["kind"] == "charge"]
        for body in charges:
            _check(body)
        return len(charges)

    def close(self) -> None:
        """Let go of the database; the next call opens it again."""
        self._store.close()

    def standing(self, analyst: str | None = None, *, everyone: bool = False) -> Standing:
        """Where the ledger stands now, by its running sums."""
        with self._store.transaction(write=False):
            return standing_of(self._store, self._store.head()[1], analyst, everyone=everyone)


def _place(key: str, number: int) -> str:
    """Under which key a state is kept; no state has a number below 0."""
    return f"{key}#{number}"


def _check(body: Mapping[str, Any]) -> None:
    """Raise if a charge's claim, or what it takes, does not follow from its mechanisms."""
    try:
        kept = covers(body, checked(body))
    except InputError:
        raise InputError(f"Entry {body['number']} cannot be checked by this version of Noisette: update it.") from None
    except PrivacyError:
        kept = False
    if not kept:
        raise PrivacyError(f"Entry {body['number']} of the ledger claims more than its mechanisms promise.")


def _repeated(old: Mapping[str, Any], new: Mapping[str, Any]) -> Entry:
    if old["kind"] != "charge" or not same(old, new):
        raise InputError("This key was used for another question: take a new one.")
    return entry_of(old)
