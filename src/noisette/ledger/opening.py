"""Open a ledger: a path is a SQLite file, a URL a PostgreSQL database. What is there goes on; nothing starts afresh."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction
from noisette.exact.random import SYSTEM
from noisette.ledger.accounts import ALL, Parts, Standing, act_body, open_body
from noisette.ledger.book import Book
from noisette.ledger.chain import START
from noisette.ledger.entry import to_record
from noisette.ledger.heads import Elsewhere, KnownError, elsewhere
from noisette.ledger.pins import new_pin_key
from noisette.ledger.refusal import BUDGET, REBIND
from noisette.ledger.store import Store
from noisette.ledger.transactions import append, check_witness, locked, now, prepared, standing_of, verified
from noisette.privacy import Promise

__all__ = ["accept", "open_ledger", "rebind"]


_NONE = "There is no ledger: name the file or the database that has one."
_CHANGED = (
    "The data changed since the ledger's first question: its path, columns, unit or neighbouring relation. "
    f"If it is the same data, run: {REBIND}."
)
_NONE_YET = "There is no ledger yet: say how much may be spent in all, budget=Approx(2, '1e-6')."


def store_of(where: str | Path, timeout: float) -> Store:
    """The store for a path or a URL."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from noisette.ledger.postgres import Postgres

        return Postgres(where, timeout=timeout)
    if isinstance(where, str | Path) and str(where) and "://" not in str(where):
        from noisette.ledger.sqlite import SQLite

        return SQLite(where, timeout=timeout)
    raise InputError("A ledger is the path of a file or a URL that starts with postgresql://.")


def open_ledger(
    where: str | Path,
    *,
    budget: Promise | None = None,
    shares: Mapping[str, Promise] | None = None,
    keys_delta: Number | None = None,
    data: Mapping[str, str] | None = None,
    formerly: Mapping[str, str] | None = None,
    elsewhere: Elsewhere | None = None,
    start_over: str | None = None,
    timeout: float = 30.0,
    **hooks: Callable[..., Any],
) -> Book:
    """Open a ledger, or begin one where there is none.

    `budget` what may be spent in all; a ledger that is there has its own, and another one is refused · `shares` of
    analysts, for a new ledger · `keys_delta` the part of delta for questions with unknown keys, a tenth by default: for
    a new ledger, since parts of delta are settled before the first answer · `data` fingerprints of what is asked about:
    with other data it is refused · `formerly` the fingerprints that an earlier version made of the same data: an entry
    replaces them · `elsewhere` what is remembered outside of the ledger's folder: it is held against the ledger, and
    where it knows of one that is gone, a new one begins only with a reason to `start_over` · `timeout` seconds to wait
    while others write. Everything that is there is verified first.

    >>> import tempfile
    >>> from noisette.privacy import Pure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = open_ledger(f"{folder}/visits.ledger", budget=Pure(1))
    ...     entry = ledger.charge("a count", Pure("0.4"), [])
    ...     ledger.close()
    ...     again = open_ledger(f"{folder}/visits.ledger")
    ...     print(again.left)
    ...     again.close()
    0.6-DP
    """
    store = store_of(where, timeout)
    store.elsewhere = elsewhere
    if budget is None and not store.there():
        raise InputError(_NONE_YET)
    try:
        with store.transaction(write=True):
            prepared(store)
            if store.head(lock=True)[0] == START:
                parts = None if budget is None else Parts.new(budget, keys_delta)
                _begin(store, open_body(budget, shares, data, start_over, parts) if budget and parts else None)
            elif start_over is not None:
                raise InputError("There is a ledger, and it goes on: leave start_over out, or move the ledger away.")
        with store.transaction(write=False):
            verified(store)
        with store.transaction(write=True):
            _go_on(store, budget, keys_delta, data, formerly)
    except BaseException:
        store.close()
        raise
    return Book(store, **hooks)


def _begin(store: Store, body: dict[str, Any] | None) -> None:
    away = store.elsewhere or Elsewhere(None)
    if body is None or "start_over" not in body:
        if body is not None and away.known():
            raise KnownError
        check_witness(store, START)
    if body is None:
        raise InputError(_NONE_YET)
    store.remember(START)
    away.begin()
    draft = {**body, "dataset": f"{SYSTEM.bits(128):032x}", "place": store.place, "pin_key": new_pin_key()}
    append(store, START, Standing(), draft, now())


def _go_on(
    store: Store,
    budget: Promise | None,
    keys_delta: Number | None,
    data: Mapping[str, str] | None,
    formerly: Mapping[str, str] | None,
) -> None:
    head, standing = locked(store)
    account = standing.accounts[ALL]
    if budget is not None and to_record(budget) != to_record(account.budget):
        raise InputError(f"The ledger has another budget: name that one, or let its owner change it ({BUDGET}).")
    if keys_delta is not None and fraction(keys_delta, "keys_delta") != account.parts.own * account.budget.delta:
        raise InputError("The delta for unknown keys was settled when the ledger opened: name that one, or none.")
    if data is None or dict(data) == standing.data:
        return
    if standing.data is None:
        why = "opened for the first time"
    elif formerly is not None and dict(formerly) == standing.data:
        why = "the same data, described by another rule"
    else:
        raise PrivacyError(_CHANGED)
    append(store, head, standing, act_body("data", why, data=dict(data)), now())


def accept(where: str | Path, *, why: str, timeout: float = 30.0) -> None:
    """As the owner, go on with a ledger that was copied, moved or restored; the act becomes an entry.

    What a backup does not know is spent all the same: charge for it afterwards. Of two copies only one may go on.
    """
    _owner(where, timeout, lambda store: act_body("accept", why, place=store.place))


def rebind(where: str | Path, *, why: str, timeout: float = 30.0) -> None:
    """As the owner, let the next opening say which data the ledger is about; the act becomes an entry.

    For data that moved or got another column. What was spent stays spent.
    """
    _owner(where, timeout, lambda _: act_body("data", why, data=None))


def _owner(where: str | Path, timeout: float, body: Callable[[Store], dict[str, Any]]) -> None:
    store, away = store_of(where, timeout), elsewhere(where)
    store.elsewhere = away
    if not store.there():
        raise InputError(_NONE)
    try:
        with store.transaction(write=True):
            prepared(store)
            head, about = store.head(lock=True)
            if head == START:
                raise InputError(_NONE)
            verified(store)
            act = body(store)
            if act["act"] == "accept":
                store.remember(head)
                away.go_on(head)
            check_witness(store, head)
            append(store, head, standing_of(store, about, everyone=True), act, now())
    finally:
        store.close()
