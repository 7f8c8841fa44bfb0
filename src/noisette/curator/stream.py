"""Streams of questions against a threshold, as analysts have them: paid once, asked many times, resumed after a crash.

    begin:  charge all of it  ->  draw the threshold's noise  ->  keep it
    ask:    check the question  ->  compute  ->  compare  ->  keep where the stream is  ->  tell

With a ledger on disk each state of the stream is kept under its number before anything is told, and no number twice:
there is one line of answers, whoever asks (see `mechanisms.stream`). Who was overtaken compares again from the newer
state; nobody has seen the first comparison. A crash loses at most the answer that was about to be told. States hold the
noise of the threshold, which nobody may know, so they are kept under a key that is made of the curator's secret.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from typing import Any, NoReturn, Protocol

from noisette.curator.keeping import key_of
from noisette.curator.ledger import Book, Ledger
from noisette.errors import BudgetError, InputError, NoisetteError, PrivacyError
from noisette.exact.number import Number
from noisette.mechanisms import SparseVector
from noisette.mechanisms.stream import State
from noisette.questions.above import Above, Alert, Exactly, Watching

__all__ = ["Watch", "begun", "watching"]

_BLOCK = 512  # states are filled up to multiples of it: their length says nothing
_CHANGED = "What was kept of this stream was changed: restore a backup of the ledger."


class Line(Protocol):
    """One line of answers, each with its number."""

    @property
    def left(self) -> int:
        """How many positives may still come."""
        ...

    def ask(self, compute: Callable[[], int], threshold: int) -> tuple[int | None, int]:
        """The gap, or None, and the number of the question; a stream that has ended computes nothing."""
        ...


class Watch:
    """Takes questions one at a time and ends after so many that are above; `curator.stream` makes one.

    >>> from noisette.curator.demo import hospital
    >>> from noisette.questions.above import Above
    >>> many = hospital().stream(Above(1000, positives=3), spend=1)
    >>> many.ask("SELECT count(DISTINCT patient_id) FROM visits WHERE age > 90") is None
    True
    >>> many
    <stream above 1,000: 3 of 3 left>
    """

    def __init__(
        self, offer: Watching, line: Line, read: Callable[[Watching, Any], Exactly], draw: Callable[[Any], Any]
    ) -> None:
        self._offer, self._line, self._read, self._draw = offer, line, read, draw

    @property
    def left(self) -> int:
        """How many positives may still come."""
        return self._line.left

    def ask(self, question: Any, *, threshold: Number | None = None, level: float = 0.95) -> Alert | None:
        """Tell about how much a COUNT or SUM is, if it is above the stream's threshold or one of its own: else None.

        To ask the same again is to ask one more question: it is compared anew.
        """
        if not isinstance(level, float | Fraction) or not 0 < level < 1:
            raise InputError("level must lie strictly between 0 and 1: a usual one is 0.95.")
        above = self._offer.above
        t = above.steps(above.threshold if threshold is None else threshold)
        exactly = self._read(self._offer, question)
        gap, number = self._line.ask(lambda: self._draw(exactly), t)
        return None if gap is None else self._offer.alert(gap, number, t, exactly.rounded, level)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A stream cannot be copied: begin it again where it is needed, which is free with a ledger.")

    def __repr__(self) -> str:
        above = self._offer.above
        return f"<stream above {float(above.threshold):,.12g}: {self.left} of {above.positives} left>"


def watching(above: Any) -> Above:
    """What a stream is described by."""
    if not isinstance(above, Above):
        raise InputError("Say what the stream is for: stream(Above(1000, positives=3), spend=0.5).")
    return above


def begun(ledger: Ledger, offer: Watching, key: str, secret: bytes, *, analyst: str | None) -> Line:
    """Charge for a stream and begin it; on a ledger on disk, go on with it if it was begun before."""
    start = offer.above.steps(offer.above.threshold)
    if not isinstance(ledger, Book):
        ledger.charge(offer.text, offer.guarantee, offer.parts, analyst=analyst)
        return _Alone(offer.mechanism, start)
    seal = _Seal(secret, key)
    ledger.charge(offer.text, offer.guarantee, offer.parts, analyst=analyst, key=seal.key)
    return _Shared(ledger, offer.mechanism, seal, start)


def _check_left(left: int, positives: int) -> None:
    if not left:
        raise BudgetError(
            f"This stream has ended with positive number {positives}: begin one with another name, at the same price."
        )


class _Alone:
    """The stream of one process, gone with it."""

    def __init__(self, mechanism: SparseVector, start: int) -> None:
        self._process, self._positives, self._asked = os.getpid(), mechanism.positives, 0
        self._stream = mechanism.begin(start, keep=self._count)

    def _count(self, state: State) -> None:
        self._asked = state.asked

    @property
    def left(self) -> int:
        """How many positives may still come."""
        return self._stream.left

    def ask(self, compute: Callable[[], int], threshold: int) -> tuple[int | None, int]:
        """Compare; a thread that is told a later number than its own gets a wider error bar."""
        if os.getpid() != self._process:
            raise PrivacyError("This stream belongs to the parent process: ask there, or open the data with a ledger.")
        _check_left(self.left, self._positives)
        told: Any = self._stream.ask(compute(), threshold)
        return told, self._asked


class _OvertakenError(Exception):
    """Somebody else has gone on from the same state."""


class _Shared:
    """The stream of all processes with a ledger; what it holds itself may be out of date, and is then refused."""

    def __init__(self, book: Book, mechanism: SparseVector, seal: "_Seal", start: int) -> None:
        self._book, self._mechanism, self._seal = book, mechanism, seal
        try:
            if _well(lambda: book.latest(seal.key)) is None:
                mechanism.begin(start, keep=self._keep)
        except _OvertakenError:
            pass
        self._last = self._latest()

    @property
    def left(self) -> int:
        """How many positives may still come, by the ledger."""
        self._last = self._latest()
        return self._mechanism.positives - self._last.given

    def ask(self, compute: Callable[[], int], threshold: int) -> tuple[int | None, int]:
        """Compare from the last state, or from a newer one if this is not the last."""
        self._check_open(self._last)
        query = compute()
        while True:
            last = self._last
            self._check_open(last)
            try:
                told: Any = self._mechanism.resume(last, keep=self._keep).ask(query, threshold)
                return told, last.asked + 1
            except _OvertakenError:
                self._last = self._after(last)

    def _after(self, last: State) -> State:
        newer = self._latest()
        if newer.asked <= last.asked:
            raise PrivacyError(_CHANGED)
        return newer

    def _check_open(self, state: State) -> None:
        _check_left(self._mechanism.positives - state.given, self._mechanism.positives)

    def _keep(self, state: State) -> None:
        if not _well(lambda: self._book.advance(self._seal.key, state.asked, self._seal.closed(state))):
            raise _OvertakenError
        self._last = state

    def _latest(self) -> State:
        found = _well(lambda: self._book.latest(self._seal.key))
        if found is None:
            raise PrivacyError(_CHANGED)
        return self._seal.opened(*found)


def _well(use: Callable[[], Any]) -> Any:
    """Use the ledger; where it fails in a way that it has no sentence for, nothing is told."""
    try:
        return use()
    except NoisetteError:
        raise
    except Exception:
        pass
    raise PrivacyError("The ledger could not keep this, so nothing is told: ask again when it is well.")


class _Seal:
    """Encrypts the states of one stream; `key` is the ledger's, which differs where the secret does."""

    def __init__(self, secret: bytes, key: str) -> None:
        self.key = key_of(key, _derived(secret, "which", key).hex())
        self._cipher_key = _derived(secret, "seal", self.key)

    def closed(self, state: State) -> bytes:
        """A state that nobody can read."""
        text = json.dumps(asdict(state)).encode()
        nonce, filled = secrets.token_bytes(12), text.ljust(-(-len(text) // _BLOCK) * _BLOCK)
        sealed: bytes = self._cipher.encrypt(nonce, filled, str(state.asked).encode())
        return nonce + sealed

    def opened(self, number: int, sealed: bytes) -> State:
        """The state with that number."""
        from cryptography.exceptions import InvalidTag

        try:
            return State(**json.loads(self._cipher.decrypt(sealed[:12], sealed[12:], str(number).encode())))
        except (InvalidTag, ValueError):
            pass
        raise PrivacyError(_CHANGED)

    @property
    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._cipher_key)


def _derived(secret: bytes, purpose: str, key: str) -> bytes:
    return hmac.new(secret, f"noisette stream {purpose} {key}".encode(), hashlib.sha256).digest()
