"""A reusable holdout, or a leaderboard, in a ledger: charged once, and it goes on after a restart where it was.

Its states lie in the ledger, sealed with a key that lies in a file beside it, `<ledger>.secret`, which only its owner
can read. The ledger knows the data by a keyed hash: with other records it is refused. Of a delta one half is charged,
since a ledger keeps the other one for composition.
"""

import hashlib
import hmac
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from noisette.curator.curator import new_secret
from noisette.curator.kept_line import KeptLine, Seal
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number
from noisette.holdout.leaderboard import Leaderboard, board_machine
from noisette.holdout.losses import Loss
from noisette.holdout.machine import Machine, State
from noisette.holdout.reusable import Method, ReusableHoldout
from noisette.holdout.thresholdout import Thresholdout
from noisette.ledger import elsewhere, open_ledger
from noisette.privacy import Approx, Neighbours, Promise, Spend, as_promise

__all__ = ["open_holdout", "open_leaderboard"]

_BYTES = 32


def open_holdout(
    X: Any,
    y: Any,
    X_train: Any,
    y_train: Any,
    *,
    ledger: str | Path,
    budget: int = 10,
    spend: Spend = 1,
    threshold: Number | None = None,
    method: Method = "sparse vector",
    start_over: str | None = None,
) -> ReusableHoldout:
    """Open a reusable holdout that a ledger file keeps: all of `spend` is charged when it is first opened.

    Where a ledger for these records is gone, `start_over` says why a new one may begin all the same.

    >>> import tempfile, noisette as nz
    >>> X, y = np.arange(4000) % 2, np.arange(4000) % 4 < 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sets = X[::2], y[::2], X[1::2], y[1::2]
    ...     first = nz.open_holdout(*sets, ledger=f"{folder}/holdout.db", budget=2)
    ...     used = first.ask(lambda x, y: x).cost
    ...     nz.open_holdout(*sets, ledger=f"{folder}/holdout.db", budget=2).left
    1
    """
    asked: dict[str, Any] = {"budget": budget, "threshold": threshold, "method": method}
    fresh = ReusableHoldout(X, y, X_train, y_train, spend=_charged(spend), **asked)  # refuses what cannot be opened
    kept = _kept(ledger, {"holdout": asked}, fresh.mechanism, Machine, spend, [X, y], start_over)
    return ReusableHoldout(X, y, X_train, y_train, spend=_charged(spend), kept=kept)


def open_leaderboard(
    y: Any,
    *,
    ledger: str | Path,
    budget: int = 10,
    spend: Spend = 1,
    step: Number | None = None,
    start: Number = 0,
    loss: Loss | str = "accuracy",
    start_over: str | None = None,
) -> Leaderboard:
    """Open a leaderboard that a ledger file keeps: all of `spend` is charged when it is first opened."""
    asked: dict[str, Any] = {"budget": budget, "step": step, "start": start}
    fresh = Leaderboard(y, spend=_charged(spend), loss=loss, **asked)  # refuses what cannot be opened

    def machine(mechanism: Thresholdout) -> Machine:
        return board_machine(mechanism, start)

    kept = _kept(ledger, {"leaderboard": asked}, fresh.mechanism, machine, spend, [y], start_over)
    return Leaderboard(y, loss=loss, kept=kept)


def _kept(
    where: str | Path,
    asked: dict[str, Any],
    fresh: Thresholdout,
    machine: Callable[[Thresholdout], Machine],
    spend: Spend,
    data: list[Any],
    start_over: str | None,
) -> tuple[Thresholdout, KeptLine[State]]:
    """The mechanism and the line of states in the ledger; both are new and charged, or as they were kept."""
    if not isinstance(where, str | Path) or "://" in str(where):
        raise InputError('ledger must be the path of a file, such as "holdout.db".')
    secret, promise = _secret(Path(f"{where}.secret")), as_promise(spend)
    book = open_ledger(
        where,
        budget=promise,
        keys_delta=promise.delta / 2 or None,
        data={"holdout": _digest(secret, data)},
        elsewhere=elsewhere(where, [_digest(b"", data)]),
        start_over=start_over,
    )
    text = json.dumps({**asked, "records": fresh.records, "spend": repr(promise)}, sort_keys=True, default=str)
    seal = Seal(secret, text)
    found = [entry.parts for entry in book.entries if entry.key == seal.key]
    if found:
        fresh = Thresholdout.from_parts(found[0])
    else:
        charged = _charged(spend)
        exact = isinstance(charged, Approx) and charged.delta  # tight composition is about fixed costs: charge it whole
        guarantee = charged.restated(Neighbours.REPLACE) if exact else fresh.guarantee
        book.charge(text, guarantee, fresh.parts, key=seal.key)
    return fresh, KeptLine(book, machine(fresh), seal)


def _charged(spend: Spend) -> Promise:
    """What is charged of a promise."""
    promise = as_promise(spend)
    return promise.share(1, delta="1/2") if isinstance(promise, Approx) and promise.delta else promise


def _secret(path: Path) -> bytes:
    """The key of a ledger's states; the first process makes it, written aside so that nobody reads half of it."""
    if not path.exists():
        try:
            file, aside = tempfile.mkstemp(dir=path.parent, suffix=".new")  # which only its owner can read
        except OSError:
            raise InputError("The ledger's folder is not there or cannot be written: make it first.") from None
        try:
            os.write(file, new_secret() + new_secret())
            os.fsync(file)
            with suppress(FileExistsError):
                os.link(aside, path)
        finally:
            os.close(file)
            os.unlink(aside)
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        secret = path.read_bytes()
    except OSError:
        secret = b""
    if len(secret) != _BYTES:
        raise PrivacyError("The secret beside the ledger cannot be read or is damaged: restore it from a backup.")
    return secret


def _digest(secret: bytes, data: list[Any]) -> str:
    """A keyed hash of records: shape, type and bytes."""
    found = hmac.new(secret, b"noisette holdout", hashlib.sha256)
    for part in data:
        array = np.asarray(part.toarray() if hasattr(part, "toarray") else part)
        found.update(repr((array.shape, str(array.dtype))).encode())
        found.update(array.tobytes() if array.dtype != object else repr(array.tolist()).encode())
    return found.hexdigest()
