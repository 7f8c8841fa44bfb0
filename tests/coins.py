"""Fixed coins: what a test of the plumbing draws is the same at every run, so that its outcome is no chance.

Each test has a tape of its own, from its name. `NOISETTE_COINS=7 make test` gives it another one, which must do too.
A forked child draws from the system again: two children with one tape would be no two children.
"""

import hashlib
import os
from typing import Any

from noisette.exact import random

# Their subject is chance itself: they draw from the system and state how often a sound tree fails them.
CHANCE = {"accuracy", "attack", "attacks", "audit", "contracts", "errata", "exact", "laws", "mechanisms"}

_system = random._Keystream._rekey


class _Tape:
    """Keys that follow from a name, one after the other."""

    def __init__(self, name: str) -> None:
        self.name, self.home, self.used = f"{os.environ.get('NOISETTE_COINS', '')} {name}", os.getpid(), 0

    def rekey(self, stream: Any) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if os.getpid() != self.home:
            return _system(stream)
        self.used += 1
        key = hashlib.sha512(f"{self.name} {self.used}".encode()).digest()
        stream._encrypt = Cipher(algorithms.AES(key[:32]), modes.CTR(key[32:48])).encryptor().update
        stream._left = random._KEY_LIFE
        return None


def fix(name: str) -> None:
    """Draw from the tape of this name from now on."""
    tape = _Tape(name)
    random._Keystream._rekey = lambda stream: tape.rekey(stream)  # type: ignore[method-assign]
    random._forget()


def free() -> None:
    """Draw from the system again."""
    random._Keystream._rekey = _system  # type: ignore[method-assign]
    random._forget()
