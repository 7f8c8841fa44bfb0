"""What happens inside a transaction: look where the ledger stands, add an entry, read all of them again."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from noisette.errors import PrivacyError
from noisette.ledger.accounts import ALL, Standing, replayed
from noisette.ledger.chain import START, Head, Row, link, walk
from noisette.ledger.entry import answer_body, canonical, digest
from noisette.ledger.refusal import ACCEPT, RESTORE
from noisette.ledger.store import UNRECORDED, Store

__all__ = ["append", "check_witness", "locked", "now", "prepared", "standing_of", "verified"]


def now() -> str:
    """The wall clock, for people who read the ledger."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def standing_of(store: Store, about: str, analyst: str | None = None, *, everyone: bool = False) -> Standing:
    """Where the ledger stands, with the accounts that are needed."""
    try:
        standing = Standing({}, **json.loads(about))
    except (ValueError, TypeError):
        raise PrivacyError(f"The head of the ledger was changed: {RESTORE}.") from None
    names = [ALL] if analyst is None or not standing.shared else [ALL, analyst]
    standing.accounts = store.accounts(None if everyone else names)
    if ALL not in standing.accounts:
        raise PrivacyError(f"The running sums of the ledger are gone: {RESTORE}.")
    return standing


def locked(store: Store, analyst: str | None = None, *, everyone: bool = False) -> tuple[Head, Standing]:
    """The head, that nobody else can move now, and where it stands; raise if this is not the ledger it was."""
    head, about = store.head(lock=True)
    check_witness(store, head)
    standing = standing_of(store, about, analyst, everyone=everyone)
    if standing.place != store.place:
        raise PrivacyError(
            "This ledger was copied, moved or restored: go on with the original, or let its owner accept this one "
            f"({ACCEPT})."
        )
    store.remember(head)
    if store.elsewhere is not None:
        store.elsewhere.go_on(head)
    return head, standing


def check_witness(store: Store, head: Head) -> None:
    """Raise PrivacyError if the head kept beside the ledger is gone, or one kept anywhere is not on its chain."""
    beside = store.witness()
    gone = beside is None and head != START and store.WITNESSED
    away = None if store.elsewhere is None else store.elsewhere.head()
    seen = [known for known in (beside, away) if known not in (None, START)]
    if gone or any(store.hash_of(known.number) != known.hash for known in seen if known is not None):
        raise PrivacyError(
            "This ledger is not the one that was written last: if it is a restored backup or a copy, its owner can "
            f"accept it ({ACCEPT})."
        )


def append(store: Store, head: Head, standing: Standing, draft: Mapping[str, Any], time: str) -> dict[str, Any]:
    """Add an entry and write where the ledger stands after it; return the entry."""
    text = canonical({**draft, "number": head.number + 1, "time": time})
    body: dict[str, Any] = json.loads(text)
    standing.apply(body)
    row = Row(head.number + 1, text, link(head.hash, text), body.get("key"))
    store.append(row, canonical(standing.about), standing.accounts)
    return body


def prepared(store: Store) -> None:
    """Bring the tables to this version; answers that were kept before they had entries get theirs now."""
    if store.prepare() != UNRECORDED:
        return
    for key, answer in list(store.answers()):
        head, about = store.head(lock=True)
        append(store, head, standing_of(store, about), answer_body(key, answer), now())


def verified(store: Store, known: Head | None = None) -> Head:
    """Read all entries again and compare; raise PrivacyError that names the first bad one."""
    if not store.sound():
        raise PrivacyError(f"The ledger's database is damaged: {RESTORE}.")
    last, about = store.head()
    answers: dict[str, tuple[int, str]] = {}
    standing = replayed(_noted(walk(store.rows(), until=last, known=known), answers))
    sums = {who: account.text for who, account in standing.accounts.items()}
    stored = {who: account.text for who, account in store.accounts().items()}
    if sums != stored or about != canonical(standing.about):
        raise PrivacyError(f"The running sums of the ledger are not those of its entries: {RESTORE}.")
    _check_answers(store, answers)
    return last


def _noted(bodies: Iterable[dict[str, Any]], answers: dict[str, tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """The entries, while the digests of answers are noted by key, with the numbers of their entries."""
    for body in bodies:
        if body["kind"] == "answer":
            if body["of"] in answers:
                raise PrivacyError(f"Entry {body['number']} of the ledger is a second answer to one charge.")
            answers[body["of"]] = (body["number"], body["sha256"])
        yield body


def _check_answers(store: Store, known: dict[str, tuple[int, str]]) -> None:
    """Raise PrivacyError if the answers are not those that the entries name."""
    for key, answer in store.answers():
        number, recorded = known.pop(key, (0, ""))
        if not number:
            raise PrivacyError(f"The ledger holds an answer that no entry knows: {RESTORE}.")
        if digest(answer) != recorded:
            raise PrivacyError(f"The answer of entry {number} of the ledger was changed: {RESTORE}.")
    for number, _ in known.values():
        raise PrivacyError(f"The answer of entry {number} of the ledger is missing: {RESTORE}.")
