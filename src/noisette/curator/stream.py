"""Streams of questions against a threshold, as analysts have them: paid once, asked many times, resumed after a crash.

    begin:  charge all of it  ->  draw the threshold's noise  ->  keep it
    ask:    check the question  ->  compute  ->  compare  ->  keep where the stream is  ->  release

The ledger keeps each state of the stream under its number before anything is released, and no number twice: there is
one line of answers, whoever asks (see `mechanisms.stream`). Who was overtaken compares again from the newer state;
nobody has seen the first comparison. A crash loses at most the answer that was about to be released. States hold the
noise of the threshold, which nobody may know, so they are sealed with a key that is made of the curator's secret.

A question that fails ends its stream: that is a state, too, and the last one. Whether a question fails is no answer
that the stream's charge covers, so it is released once, and each later question of the stream, whoever asks it, fails
without being computed. To go on is to begin, and pay for, a stream with another name.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NoReturn, Protocol

from noisette.curator.answer_cache import attempted, key_of
from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError
from noisette.exact.number import Number, level_of
from noisette.ledger import Ledger
from noisette.mechanisms import SparseVector
from noisette.mechanisms.sparse_vector.stream import State
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
    """Takes questions one at a time and ends after a given number that are above; `curator.stream` makes one.

    >>> from noisette.curator.demo import hospital
    >>> from noisette.questions.above import Above
    >>> many = hospital().stream(Above(1000, positives=3), spend=1)
    >>> many.ask("SELECT count(DISTINCT patient_id) FROM visits WHERE age > 90") is None
    True
    >>> many
    <stream above 1,000: 3 of 3 left>
    """

    def __init__(
        self, offer: Watching, line: Line, read: Callable[[Watching, Any], tuple[Exactly, Callable[[], int]]]
    ) -> None:
        self._offer, self._line, self._read = offer, line, read

    @property
    def left(self) -> int:
        """How many positives may still come."""
        return self._line.left

    def ask(self, question: Any, *, threshold: Number | None = None, level: float = 0.95) -> Alert | None:
        """Release about how much a COUNT or SUM is, if it is above the stream's threshold or one of its own: else None.

        To ask the same again is to ask one more question: it is compared anew.
        """
        level_of(level)
        above = self._offer.above
        t = above.steps(above.threshold if threshold is None else threshold)
        exactly, compute = self._read(self._offer, question)
        gap, number = self._line.ask(compute, t)
        if gap is None:
            return None
        return replace(self._offer.alert(gap, number, t, exactly.rounded, level), caveats=exactly.caveats)

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
    """Charge for a stream and begin it, or go on with it if the ledger knows it."""
    seal = _Seal(secret, key)
    ledger.charge(offer.text, offer.guarantee, offer.parts, analyst=analyst, key=seal.key)
    return _Kept(ledger, offer.mechanism, seal, offer.above.steps(offer.above.threshold))


class _Kept:
    """The stream of all who share a ledger; what it holds itself may be out of date, and is then refused."""

    def __init__(self, ledger: Ledger, mechanism: SparseVector, seal: "_Seal", start: int) -> None:
        self._ledger, self._mechanism, self._seal = ledger, mechanism, seal
        if _well(lambda: ledger.latest(seal.key)) is None:
            mechanism.begin(start, keep=self._advanced)  # where somebody else was first, that one is the beginning
        self._last = self._latest()

    @property
    def left(self) -> int:
        """How many positives may still come, by the ledger."""
        self._last = self._latest()
        return max(0, self._mechanism.positives - self._last.given)

    def ask(self, compute: Callable[[], int], threshold: int) -> tuple[int | None, int]:
        """Compare from the last state, or from a newer one if this is not the last."""
        self._check_open(self._last)
        query = attempted(compute)
        while True:
            last = self._last
            self._check_open(last)
            released, after = self._compared(last, query, threshold)
            if self._advanced(after):
                break
            self._last = self._newer(last)
        self._check_failed(after)
        return released, after.asked

    def _compared(self, last: State, query: int | None, threshold: int) -> tuple[Any, State]:
        """What is released of a question and the state after it; a failed one releases nothing and is the last."""
        states: list[State] = []
        if query is not None:
            stream = self._mechanism.resume(last, keep=states.append)
            released = attempted(lambda: (stream.ask(query, threshold),))
            if released is not None:
                return released[0], states[-1]
        return None, replace(last, asked=last.asked + 1, given=self._mechanism.positives + 1)

    def _check_open(self, state: State) -> None:
        self._check_failed(state)
        if state.given == self._mechanism.positives:
            raise BudgetError(
                f"This stream has ended with positive number {state.given}: begin one with another name, at the same "
                "price."
            )

    def _check_failed(self, state: State) -> None:
        """More positives than there can be stand for a failure."""
        if state.given > self._mechanism.positives:
            raise FailedError

    def _advanced(self, state: State) -> bool:
        """Keep a state; False if somebody else has gone on from the same one."""
        kept: bool = _well(lambda: self._ledger.advance(self._seal.key, state.asked, self._seal.closed(state)))
        if kept:
            self._last = state
        return kept

    def _newer(self, last: State) -> State:
        newer = self._latest()
        if newer.asked <= last.asked:
            raise PrivacyError(_CHANGED)
        return newer

    def _latest(self) -> State:
        found = _well(lambda: self._ledger.latest(self._seal.key))
        if found is None:
            raise PrivacyError(_CHANGED)
        return self._seal.opened(*found)


def _well(use: Callable[[], Any]) -> Any:
    """Use the ledger; where it fails in a way that it has no sentence for, nothing is released."""
    try:
        return use()
    except NoisetteError:
        raise
    except Exception:
        pass
    raise PrivacyError("The ledger could not keep this, so nothing is released: ask again when it works.")


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
