"""A line of states in a ledger, each sealed and kept before anything is released: what every stream goes on from.

    begin:  charge all of it  ->  draw the first state  ->  keep it
    ask:    compute  ->  step from the last state  ->  keep the next one  ->  release

The ledger keeps each state under its number, and no number twice: there is one line of answers, whoever asks. Who was
overtaken steps again from the newer state; nobody has seen the first outcome. A crash loses at most the answer that was
about to be released. States may hold noise that nobody may know, so they are sealed with a key that is made of the
curator's secret.

A question that fails ends its stream: that is a state, too, and the last one. Whether a question fails is no answer
that the stream's charge covers, so it is released once, and each later question of the stream, whoever asks it, fails
without being computed. To go on is to begin, and pay for, a stream with another name.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from noisette.curator.answer_cache import attempted, key_of
from noisette.errors import NoisetteError, PrivacyError
from noisette.ledger import Ledger
from noisette.ledger.pins import State
from noisette.questions.contract import Machine, Numbered, StreamOffer

__all__ = ["KeptLine", "Seal", "begun"]

_BLOCK = 512  # states are filled up to it, or to twice that, four times …: their length says next to nothing
_CHANGED = "What was kept of this stream was changed: restore a backup of the ledger."


S = TypeVar("S", bound=Numbered)


def begun(
    ledger: Ledger,
    offer: StreamOffer[S],
    key: str,
    secret: bytes,
    *,
    analyst: str | None,
    about: State | None = None,
) -> "KeptLine[S]":
    """Charge for a stream and begin it, or go on with it if the ledger knows it."""
    seal = Seal(secret, key)
    ledger.charge(offer.text, offer.guarantee, offer.parts, analyst=analyst, key=seal.key, about=about)
    return KeptLine(ledger, offer.machine, seal)


class KeptLine(Generic[S]):
    """The stream of all who share a ledger; what it holds itself may be out of date, and is then refused."""

    def __init__(self, ledger: Ledger, machine: Machine[S], seal: "Seal") -> None:
        self._ledger, self._machine, self._seal = ledger, machine, seal
        if _well(lambda: ledger.latest(seal.key)) is None:
            self._advanced(machine.begin())  # where somebody else was first, that one is the beginning
        self._last = self._latest()

    @property
    def last(self) -> S:
        """The newest state, by the ledger."""
        self._last = self._latest()
        return self._last

    def ask(self, compute: Callable[[], Any], after: int | None = None) -> tuple[Any, S]:
        """What is released of a question and the state after it, from the last state or a newer one.

        A question that makes sense only `after` a number of others is not asked if somebody else was first.
        """
        self._machine.check(self._last)
        computed = attempted(lambda: (compute(),))
        while True:
            last = self._last
            if after is not None and last.asked != after:
                return None, last
            self._machine.check(last)
            released, state, well = self._stepped(last, computed)
            if self._advanced(state):
                break
            self._last = self._newer(last)
        if not well:
            self._machine.check(state)
        return released, state

    def _stepped(self, last: S, computed: tuple[Any] | None) -> tuple[Any, S, bool]:
        """What is released and the next state; of a question that failed nothing, and the last one."""
        if computed is not None:
            stepped = attempted(lambda: self._machine.step(last, computed[0]))
            if stepped is not None:
                return *stepped, True
        return None, self._machine.failed(last), False

    def _advanced(self, state: S) -> bool:
        """Keep a state; False if somebody else has gone on from the same one."""
        sealed = self._seal.closed(asdict(state), state.asked)  # type: ignore[call-overload]
        kept: bool = _well(lambda: self._ledger.advance(self._seal.key, state.asked, sealed))
        if kept:
            self._last = state
        return kept

    def _newer(self, last: S) -> S:
        newer = self._latest()
        if newer.asked <= last.asked:
            raise PrivacyError(_CHANGED)
        return newer

    def _latest(self) -> S:
        found = _well(lambda: self._ledger.latest(self._seal.key))
        if found is None:
            raise PrivacyError(_CHANGED)
        number, sealed = found
        stored = self._seal.opened(number, sealed)
        try:
            return self._machine.read(stored)
        except (TypeError, ValueError, KeyError):
            pass
        raise PrivacyError(_CHANGED)


def _well(use: Callable[[], Any]) -> Any:
    """Use the ledger; where it fails in a way that it has no sentence for, nothing is released."""
    try:
        return use()
    except NoisetteError:
        raise
    except Exception:
        pass
    raise PrivacyError("The ledger could not keep this, so nothing is released: ask again when it works.")


class Seal:
    """Encrypts the states of one stream; `key` is the ledger's, which differs where the secret does."""

    def __init__(self, secret: bytes, key: str) -> None:
        self.key = key_of(key, _derived(secret, "which", key).hex())
        self._cipher_key = _derived(secret, "seal", self.key)

    def closed(self, stored: dict[str, Any], number: int) -> bytes:
        """A state that nobody can read."""
        text = json.dumps(stored).encode()
        nonce, filled = secrets.token_bytes(12), text.ljust(_BLOCK << ((len(text) - 1) // _BLOCK).bit_length())
        sealed: bytes = self._cipher.encrypt(nonce, filled, str(number).encode())
        return nonce + sealed

    def opened(self, number: int, sealed: bytes) -> dict[str, Any]:
        """The state with that number."""
        from cryptography.exceptions import InvalidTag

        try:
            stored: dict[str, Any] = json.loads(self._cipher.decrypt(sealed[:12], sealed[12:], str(number).encode()))
            return stored
        except (InvalidTag, ValueError):
            pass
        raise PrivacyError(_CHANGED)

    @property
    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._cipher_key)


def _derived(secret: bytes, purpose: str, key: str) -> bytes:
    return hmac.new(secret, f"noisette stream {purpose} {key}".encode(), hashlib.sha256).digest()
