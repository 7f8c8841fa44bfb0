"""Coins that follow from a key: who draws again with the same key draws the same.

An engine that may run a task twice must not draw its noise twice. It gives the task a secret key, and the task derives
its coins from the key and from all it computes with, so that a repeated task repeats its noise and a task that met
other values has coins of its own. Only an engine calls this: in public calls nobody can choose coins.

The coins are an AES-256-CTR keystream. Its keys are the output of keyed BLAKE2b, taken as a pseudorandom function: the
stated laws then hold against everybody who can do no more than 2^100 steps (docs/proofs/noised-once.md).
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random, SystemRandom, _Keystream

__all__ = ["KeyedRandom", "keyed_digest", "new_key"]

_SIZE = 32
_COINS = b"noisette coins"


def new_key(rng: Random = SYSTEM) -> bytes:
    """A fresh secret of 256 bits.

    >>> len(new_key()), new_key() == new_key()
    (32, False)
    """
    return rng.bits(8 * _SIZE).to_bytes(_SIZE, "little")


def keyed_digest(key: bytes, parts: Iterable[bytes | memoryview], purpose: bytes = b"") -> bytes:
    """A keyed hash of 256 bits of a list of byte strings; each enters with its length before it.

    So two lists enter as the same bytes only if they are equal, and ("ab", "c") is another list than ("a", "bc").

    >>> keyed_digest(bytes(32), [b"ab", b"c"]) == keyed_digest(bytes(32), [b"a", b"bc"])
    False
    """
    if len(key) != _SIZE:
        raise InputError("A key for coins has 32 bytes: make it with new_key().")
    state = hashlib.blake2b(key=key, person=purpose, digest_size=_SIZE)
    for part in parts:
        state.update(memoryview(part).nbytes.to_bytes(8, "little"))
        state.update(part)
    return state.digest()


class _KeyedStream(_Keystream):
    """A keystream whose keys follow from one key: the first, the second and so on."""

    def __init__(self, key: bytes) -> None:
        self._key, self._used = key, 0
        super().__init__()

    def _rekey(self) -> None:
        self._used += 1
        self._use(keyed_digest(self._key, [self._used.to_bytes(8, "little")], _COINS), bytes(16))


class KeyedRandom(SystemRandom):
    """The coins of one key, for one task in one thread; two with the same key give the same coins.

    >>> key = new_key()
    >>> KeyedRandom(key).bits(64) == KeyedRandom(key).bits(64)
    True
    >>> KeyedRandom(key).bits(64) == KeyedRandom(new_key()).bits(64)
    False
    """

    def __init__(self, key: bytes) -> None:
        self._stream = _KeyedStream(key)

    def __reduce__(self) -> NoReturn:
        raise InputError("Coins of a key are not copied, since a copy repeats them: derive a key for each use.")

    def bits(self, count: int) -> int:
        """Return a uniform whole number below 2^count."""
        size = (count + 7) >> 3
        return int.from_bytes(self._stream.small(size), "little") >> (8 * size - count)

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return `count` uniform unsigned words (read-only)."""
        return np.frombuffer(self._stream.large(count * np.dtype(dtype).itemsize), dtype=dtype)
