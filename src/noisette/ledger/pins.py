"""Pins: what says in which state the data were when a question was charged, for the owner; a keyed name for others.

A pin is a text, such as the files with their sizes and times, or what a server has counted of changes. It may tell how
many rows there are, so it stays in the ledger. Analysts see its name, HMAC-SHA256 under a key that the ledger holds:
equal pins have equal names, and to who lacks the key a name says nothing else.

A record also shows hashes of entries, and somebody could try all sizes of a file until one of them has the hash. So
each entry that holds a pin holds 256 random bits beside it.
"""

import hashlib
import hmac
from typing import Any, NamedTuple

from noisette.exact.random import SYSTEM

__all__ = ["UNPINNED", "State", "new_pin_key", "state_fields", "state_name"]

UNPINNED = "unpinned"
"""The name of the state of data that nothing pins."""


class State(NamedTuple):
    """The name of a state, and the pin that only the owner sees; no pin where nothing pins the data."""

    name: str
    pin: str | None


def new_pin_key() -> str:
    """A key for the names of states."""
    return f"{SYSTEM.bits(256):064x}"


def state_name(key: str, pin: str | None) -> str:
    """The name of a state, for analysts.

    >>> state_name("ab" * 32, "visits.csv, 120 bytes") == state_name("ab" * 32, "visits.csv, 121 bytes")
    False
    >>> state_name("ab" * 32, None)
    'unpinned'
    """
    return UNPINNED if pin is None else hmac.new(bytes.fromhex(key), pin.encode(), hashlib.sha256).hexdigest()


def state_fields(name: str, pin: str | None, last: str) -> dict[str, Any]:
    """What a charge says of the state: its name, and the pin unless the last charge was about the same state."""
    hidden = {} if pin is None or name == last else {"pin": pin, "salt": new_pin_key()}
    return {"state": name, **hidden}
