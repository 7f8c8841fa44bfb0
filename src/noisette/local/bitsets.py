"""Reports that are sets of values: k bits, packed into bytes, the bit v % 8 of byte v // 8 for the value v."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.bit_arrays import Places, coin_words, column_sums
from noisette.exact.random import Random
from noisette.local.contract import Collectable, as_reports, foreign

__all__ = ["Bytes", "all_sets", "checked_sets", "coin_rows", "has", "packed", "set_counts", "width"]

Bytes = NDArray[np.uint8]
MOST = 1 << 16  # values; for more, protocols with short reports are equally accurate


def width(domain: int) -> int:
    """Return the number of bytes of a report."""
    return (domain + 7) // 8


def coin_rows(places: Places, people: int, domain: int, rng: Random) -> Bytes:
    """Draw a row of `domain` independent coins for each person."""
    size = people * width(domain)
    rows = coin_words(places, -(-size // 8), rng).view(np.uint8)[:size].reshape(people, width(domain))
    if domain % 8:
        rows[:, -1] &= (1 << domain % 8) - 1
    return rows


def packed(bits: Iterable[Any]) -> tuple[int, ...]:
    """Return one report from its bits.

    >>> packed([1, 0, 1])
    (5,)
    """
    return tuple(np.packbits(np.array(list(bits), bool), bitorder="little").tolist())


def has(report: tuple[int, ...], value: int) -> bool:
    """Return whether a report contains a value."""
    return bool(report[value // 8] >> value % 8 & 1)


def all_sets(domain: int) -> Iterator[tuple[int, ...]]:
    """Return every set of values, for small domains."""
    return (packed(bits) for bits in product((0, 1), repeat=domain))


def checked_sets(protocol: Collectable, reports: Any) -> Bytes:
    """Read reports that are rows of bytes; rows that no client of the protocol can have made are refused."""
    rows, bits = as_reports(protocol, reports), protocol.bits
    if not rows.size:
        return np.zeros((0, width(bits)), np.uint8)
    shaped = rows.ndim == 2 and rows.dtype.kind in "iu" and rows.shape[1] == width(bits)
    if not (shaped and rows.min() >= 0 and rows.max() < 256 and not (rows[:, -1] >> (bits - 1) % 8 + 1).any()):
        raise foreign(protocol, f"a row of {width(bits)} bytes that holds {bits} bits")
    sets = np.ascontiguousarray(rows, np.uint8)
    if not protocol.possible(sets).all():
        raise foreign(protocol, f"a set of {getattr(protocol, 'size', bits)} values")
    return sets


def set_counts(protocol: Collectable, reports: Any) -> NDArray[np.int64]:
    """Return how many reports contain each value."""
    return column_sums(checked_sets(protocol, reports), protocol.bits)
