"""What happens inside a transaction: look where the ledger stands, add an entry, read all of them again."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from noisette.curator.ledger.chain import START, Head, Row, link, walk
from noisette.curator.ledger.entry import canonical
from noisette.curator.ledger.standing import ALL, Standing, replayed
from noisette.curator.ledger.store import Store
from noisette.errors import PrivacyError

__all__ = ["append", "check_witness", "locked", "now", "standing_of", "verified"]


def now() -> str:
    """The wall clock, for people who read the ledger."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def standing_of(store: Store, about: str, analyst: str | None = None, *, everyone: bool = False) -> Standing:
    """Where the ledger stands, with the accounts that are needed."""
    try:
        standing = Standing({}, **json.loads(about))
    except (ValueError, TypeError):
        raise PrivacyError("The head of the ledger was changed: restore a backup and accept it.") from None
    names = [ALL] if analyst is None or not standing.shared else [ALL, analyst]
    standing.accounts = store.accounts(None if everyone else names)
    if ALL not in standing.accounts:
        raise PrivacyError("The running sums of the ledger are gone: restore a backup and accept it.")
    return standing


def locked(store: Store, analyst: str | None = None, *, everyone: bool = False) -> tuple[Head, Standing]:
    """The head, that nobody else can move now, and where it stands; raise if this is not the ledger it was."""
    head, about = store.head(lock=True)
    check_witness(store, head)
    standing = standing_of(store, about, analyst, everyone=everyone)
    if standing.place != store.place:
        raise PrivacyError(
            "This ledger was copied, moved or restored: go on with the original, or let its owner accept this one "
            "(noisette.curator.ledger.accept)."
        )
    store.remember(head)
    return head, standing


def check_witness(store: Store, head: Head) -> None:
    """Raise PrivacyError if the head kept beside the ledger is gone, or not on the ledger's chain."""
    seen = store.witness()
    if seen is None and (head == START or not store.WITNESSED):
        return
    if seen is None or (seen != START and store.hash_of(seen.number) != seen.hash):
        raise PrivacyError(
            "This ledger is not the one that was written last: if it is a restored backup or a copy, its owner can "
            "accept it (noisette.curator.ledger.accept)."
        )


def append(store: Store, head: Head, standing: Standing, draft: Mapping[str, Any], time: str) -> dict[str, Any]:
    """Add an entry and write where the ledger stands after it; return the entry."""
    text = canonical({**draft, "number": head.number + 1, "time": time})
    body: dict[str, Any] = json.loads(text)
    standing.apply(body)
    row = Row(head.number + 1, text, link(head.hash, text), body.get("key"))
    store.append(row, canonical(standing.about), standing.accounts)
    return body


def verified(store: Store, known: Head | None = None) -> Head:
    """Read all entries again and compare; raise PrivacyError that names the first bad one."""
    if not store.sound():
        raise PrivacyError("The ledger's database is damaged: restore a backup and accept it.")
    last, about = store.head()
    standing = replayed(walk(store.rows(), until=last, known=known))
    sums = {who: account.text for who, account in standing.accounts.items()}
    stored = {who: account.text for who, account in store.accounts().items()}
    if sums != stored or about != canonical(standing.about):
        raise PrivacyError("The running sums of the ledger are not those of its entries: restore a backup.")
    return last
