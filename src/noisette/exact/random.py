"""The one door for randomness.

Every random bit in Noisette comes from an AES-256-CTR keystream whose key the operating system gives. Each thread has a
keystream of its own; a forked child forgets its parent's; a fresh key is drawn every 64 MiB. Nobody can set a seed.
Tasks that an engine may run twice derive their keys from one that was drawn here (`keyed`).

`Random` is the seam: a test may pass coins of its own (a tape to walk), which say `secure = False`.
"""

import io
import os
import threading
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError

__all__ = ["SYSTEM", "Random", "SystemRandom"]

_BUFFER = bytes(4096)
_BLOCK = bytes(1 << 20)
_KEY_LIFE = 1 << 26


class Random(Protocol):
    """Where samplers get their coins; `secure` is False for anything but the system's keystream."""

    secure: bool

    def bits(self, count: int) -> int:
        """Return a uniform whole number below 2^count."""
        ...

    def below(self, n: int) -> int:
        """Return a uniform whole number in 0 .. n-1."""
        ...

    def flip(self, numerator: int, denominator: int) -> bool:
        """Return True with probability numerator / denominator."""
        ...

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return `count` uniform unsigned words."""
        ...


class _Keystream:
    """AES-CTR over zeros; every method that hands out bytes does so in one call into C, so signals cannot split it."""

    def __init__(self) -> None:
        self._rekey()
        self._small = io.BytesIO()

    def _rekey(self) -> None:
        self._use(os.urandom(32), os.urandom(16))

    def _use(self, key: bytes, nonce: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encrypt = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor().update
        self._left = _KEY_LIFE

    def small(self, count: int) -> bytes:
        data = self._small.read(count)
        while len(data) < count:  # what is left of the old buffer is dropped, never used twice
            self._small = io.BytesIO(self.large(max(len(_BUFFER), count)))
            data = self._small.read(count)
        return data

    def large(self, count: int) -> bytes:
        if count > len(_BLOCK):
            return b"".join(self.large(min(len(_BLOCK), count - i)) for i in range(0, count, len(_BLOCK)))
        if self._left < count:
            self._rekey()
        self._left -= count
        return self._encrypt(memoryview(_BLOCK)[:count])


_local = threading.local()


def _forget() -> None:
    global _local
    _local = threading.local()


if hasattr(os, "register_at_fork"):  # not on systems without fork
    os.register_at_fork(after_in_child=_forget)


def _keystream() -> _Keystream:
    try:
        return _local.keystream  # type: ignore[no-any-return]
    except AttributeError:
        _local.keystream = _Keystream()
        return _local.keystream  # type: ignore[no-any-return]


class SystemRandom:
    """The operating system's entropy, stretched by AES-CTR; a handle without state, safe to share and to pickle."""

    secure = True

    def bits(self, count: int) -> int:
        """Return a uniform whole number below 2^count."""
        size = (count + 7) >> 3
        return int.from_bytes(_keystream().small(size), "little") >> (8 * size - count)

    def below(self, n: int) -> int:
        """Return a uniform whole number in 0 .. n-1, by rejection."""
        if n < 1:
            raise InputError("There is no whole number from 0 to below n for n < 1.")
        count = (n - 1).bit_length()
        value = self.bits(count)
        while value >= n:
            value = self.bits(count)
        return value

    def flip(self, numerator: int, denominator: int) -> bool:
        """Return True with probability numerator / denominator."""
        return self.below(denominator) < numerator

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return `count` uniform unsigned words (read-only)."""
        return np.frombuffer(_keystream().large(count * np.dtype(dtype).itemsize), dtype=dtype)


SYSTEM = SystemRandom()
"""The door: what every public call draws from."""
