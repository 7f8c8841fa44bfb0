"""Public keyed hashes of values: the same for everybody who knows the key, so that sketches of several parties merge.

A value has canonical bytes, a letter for its type and its contents; a keyed BLAKE2 hash turns them into 64 bits, and
each row of a sketch mixes these with its own number (the finaliser of splitmix64). Privacy never rests on a hash: what
one unit can change is bounded for every hash, also for one whose values collide. Error bars do: they hold for values
whose hash behaves like a random one.
"""

import datetime
import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole

__all__ = ["buckets", "canonical_bytes", "fingerprints", "public_order", "signs"]

Words = NDArray[np.uint64]

_EPOCH, _MICROSECOND = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
_ODD, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def canonical_bytes(value: Any) -> bytes:
    """The bytes of one value: equal values have equal bytes, others have not.

    >>> canonical_bytes("oak"), canonical_bytes(None), canonical_bytes(1.0) == canonical_bytes(1)
    (b'toak', b'n', True)
    """
    match value:
        case None:
            return b"n"
        case bool():
            return b"b1" if value else b"b0"
        case int() | np.integer():
            return b"i%d" % int(value)
        case float() | np.floating():
            number = float(value)
            return b"i%d" % int(number) if number.is_integer() else b"f" + struct.pack("<d", number)
        case str():
            return b"t" + value.encode("utf-8", "surrogatepass")
        case datetime.datetime():
            return b"m%d" % ((value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
        case datetime.date():
            return b"d%d" % value.toordinal()
        case _:
            raise InputError("A key must be a text, a number, a truth value, a date, a timestamp or NULL.")


def fingerprints(values: Iterable[Any], key: int) -> Words:
    """64 bits for each value, under a public key.

    >>> fingerprints(["oak", "ash", "oak"], 7).tolist()[0] == fingerprints(["oak"], 7).tolist()[0]
    True
    """
    secret = whole(key, "key", least=0).to_bytes(16, "little")
    found = (hashlib.blake2b(canonical_bytes(value), digest_size=8, key=secret).digest() for value in values)
    return np.frombuffer(b"".join(found), "<u8").astype(np.uint64)


def public_order(values: Sequence[Any]) -> list[int]:
    """The places of different values by fingerprint, and by their bytes where those are equal.

    Of two values the same one is first in every table, however an engine orders them.

    >>> trees = ["oak", "ash", "elm"]
    >>> [trees[i] for i in public_order(trees)] == [trees[::-1][i] for i in public_order(trees[::-1])]
    True
    """
    prints = fingerprints(values, 0)
    order = np.argsort(prints, kind="stable")
    sorted_prints = prints[order]
    if (sorted_prints[1:] != sorted_prints[:-1]).all():
        return [int(i) for i in order]
    return sorted(range(len(values)), key=lambda i: (int(prints[i]), canonical_bytes(values[i])))


def buckets(prints: Words, row: int, width: int) -> NDArray[np.int64]:
    """Which of `width` cells each fingerprint falls into, in one row of a sketch."""
    return np.asarray(_mixed(prints, 2 * row) % np.uint64(width)).astype(np.int64)


def signs(prints: Words, row: int) -> NDArray[np.int64]:
    """1 or -1 for each fingerprint, in one row of a sketch."""
    return np.where(_mixed(prints, 2 * row + 1) >> np.uint64(63), 1, -1).astype(np.int64)


def _mixed(prints: Words, number: int) -> Words:
    """64 bits that depend on the fingerprint and on a number."""
    with np.errstate(over="ignore"):
        x = prints + _ODD * np.uint64(number + 1)
        x = (x ^ (x >> np.uint64(30))) * _FIRST
        x = (x ^ (x >> np.uint64(27))) * _SECOND
        return np.asarray(x ^ (x >> np.uint64(31)))
