"""Receipts: an entry for every record that is released, so that the record can be held against the ledger later.

A charge says what was paid for and an answer what was drawn. One draw may be released in several forms: at another
level, sorted, with some of its columns. So each record that leaves has an entry of its own, of kind `release`:

of          the key of the charge
key         "record", a line break, and the record's digest: no key of a charge has a line break

The record carries the ledger's random name, the number and hash of its charge, and the head at that time. A record is
thus also a head that is kept elsewhere: a chain that was rolled back or written anew does not fit it. All of these
are hashes of entries, and entries hold questions, costs and digests of noised answers: nothing of the data. What an
entry says of the state of the data is hashed with random bits (see `pins`); the record names the state by a keyed hash.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import takewhile
from typing import Any, NamedTuple

from noisette.answers.digest import digest_of_record
from noisette.answers.record import as_json, stated
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import fraction_of, whole_of
from noisette.ledger.accounts import ALL, replayed
from noisette.ledger.chain import Head, parsed
from noisette.ledger.entry import FORMAT, canonical
from noisette.ledger.refusal import UNCHARGED
from noisette.ledger.store import Store
from noisette.ledger.transactions import append, locked, now, standing_of, verified
from noisette.privacy import Promise

__all__ = ["Receipt", "confirmed", "recorded"]

_MARGIN = Fraction(1, 2**30)  # numerical libraries differ in their last digits
_PLACE = {"dataset", "entry", "hash", "head"}


class Receipt(NamedTuple):
    """What was spent and left with a release, and the place of its record in the ledger; None in memory."""

    spent: Promise
    left: Promise
    place: dict[str, Any] | None


def _mark(digest: str) -> str:
    return f"record\n{digest}"


# Writing


def recorded(store: Store, key: str, digests: Sequence[str], clock: Callable[[], str] = now) -> Receipt:
    """The receipt of the records that answer the charge with a key; the entry of each is written once."""
    marks = [_mark(digest) for digest in digests]
    with store.transaction(write=False):
        if all(store.found(mark) is not None for mark in marks):
            return _receipt(store, key)
    with store.transaction(write=True):
        for mark in marks:
            head, standing = locked(store)
            if store.found(mark) is None:
                append(store, head, standing, {"format": FORMAT, "kind": "release", "of": key, "key": mark}, clock())
        return _receipt(store, key)


def _receipt(store: Store, key: str) -> Receipt:
    charge, (head, about) = store.found(key), store.head()
    if charge is None:
        raise PrivacyError(UNCHARGED)
    standing = standing_of(store, about)
    filter = standing.accounts[ALL].filter
    place = {"dataset": standing.dataset, "entry": charge.number, "hash": charge.hash, "head": str(head)}
    return Receipt(filter.spent, filter.left, place)


# Reading


def confirmed(store: Store, record: Mapping[str, Any]) -> int:
    """The number of the charge of a record; raise PrivacyError if the ledger did not hand out this very record."""
    said = _place(record)
    with store.transaction(write=False):
        if standing_of(store, store.head()[1]).dataset != said["dataset"]:
            raise PrivacyError("The record is of another ledger: check it against its own.")
        head = Head.read(said["head"])
        verified(store, head)
        charge = _charge(store, said, record)
        release = store.found(_mark(digest_of_record(record)))
        if release is None or parsed(release)["of"] != charge["key"] or release.number > head.number:
            raise PrivacyError(
                "The record is not as it was released: its numbers, error bars, words or mechanisms were changed."
            )
        _check_spent(store, head, record)
    return whole_of(charge["number"], "The number of an entry")


def _place(record: Mapping[str, Any]) -> dict[str, Any]:
    said = record.get("ledger")
    if said is None:
        raise InputError(
            "The record names no entry of a ledger: it was charged in memory, or by a version that named none. "
            "Its claim alone can be checked."
        )
    if not (isinstance(said, dict) and said.keys() == _PLACE and _whole(said["entry"])):
        raise PrivacyError("What the record says of its ledger was changed.")
    return said


def _whole(number: Any) -> bool:
    return type(number) is int and 0 < number < 2**63


def _charge(store: Store, said: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """The charge that the record names; raise PrivacyError if it is none, or promised something else."""
    row = next(iter(store.rows(said["entry"] - 1)), None)
    if row is None or (row.number, row.hash) != (said["entry"], said["hash"]):
        raise PrivacyError("The entry that the record names is not in the ledger.")
    body = parsed(row)
    if body["kind"] != "charge" or _promised(body) != _promised(record):
        raise PrivacyError(f"The record does not say what entry {row.number} of the ledger says of its question.")
    return body


def _promised(body: Mapping[str, Any]) -> Any:
    """What a charge and its record both say, in one form; mechanisms have no order."""
    try:
        parts = sorted(as_json(part) for part in body["mechanisms"])
        return [body["question"], body["neighbours"], canonical(body["guarantee"]), parts, body.get("state")]
    except (KeyError, TypeError, AttributeError):
        raise PrivacyError("The record does not say what was asked: something was taken out.") from None


def _check_spent(store: Store, head: Head, record: Mapping[str, Any]) -> None:
    bodies = map(parsed, takewhile(lambda row: row.number <= head.number, store.rows()))
    spent = stated(replayed(bodies).accounts[ALL].filter.spent)
    if not _near(spent, record.get("spent")):
        raise PrivacyError("The record does not say what was spent by then.")


def _near(here: Mapping[str, Any], there: Any) -> bool:
    """Whether two statements of one amount are the same except for the last digits of a numerical library."""
    if not isinstance(there, dict) or there.keys() != here.keys() or there["kind"] != here["kind"]:
        return False
    if not all(isinstance(part, str) for part in there.values()):
        return False
    try:
        pairs = [(fraction_of(here[n], n), fraction_of(there[n], n)) for n in here if n != "kind"]
    except InputError:
        return False
    return all(abs(a - b) <= _MARGIN * a for a, b in pairs)
