"""Sorted 64-bit words: runs of equal ones, which are known, and codes as numbers from 0."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MIX", "SPARSE", "Codes", "Mask", "Places", "Words", "dense", "distinct", "firsts", "found", "members", "pieces",
    "repeated", "replaced", "sampled", "starts", "touched",
]  # fmt: skip

Codes: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Mask: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]

SPARSE: Final = 4
"""Codes that span more than this many times their number are numbered anew."""

MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 / golden ratio, odd: to multiply by it permutes the 64-bit words."""

_CHUNK: Final = 1 << 15  # words at a time where an intermediate array should stay in the cache


def pieces(n: int) -> Iterator[slice]:
    """Slices of n words that stay in the cache."""
    return (slice(start, min(n, start + _CHUNK)) for start in range(0, n, _CHUNK))


def dense(codes: Codes) -> tuple[Codes, int]:
    """Number arbitrary codes from 0: return the numbers and how many there may be.

    Equal codes have equal numbers, and different codes different ones. Codes that span at most a few times as many
    values as there are rows, without the last bits that all of them share, are only shifted, which leaves numbers that
    nobody has; others are numbered anew.

    >>> dense(np.array([-3, -1, -3]))
    (array([0, 2, 0]), 3)
    >>> dense(np.array([16, 48, 80])), dense(np.array([10**18, 5, 10**18]))[1]
    ((array([0, 1, 2]), 3), 2)
    """
    if not len(codes):
        return codes, 0
    least, most = int(codes.min()), int(codes.max())
    shared = _shared_bits(codes) if most > least + len(codes) else 0
    span = (most - least) >> shared
    if span < SPARSE * len(codes):
        return (_shifted(codes, least, shared) if least or shared else codes), span + 1
    mixed = _mixed(codes.astype(np.int64, copy=False))
    known = distinct(np.sort(mixed))
    return found(known, mixed), len(known)


def _shifted(codes: Codes, least: int, bits: int) -> Codes:
    """Return how far codes are above the least, without the last bits; the difference may need all 64."""
    above = codes.astype(np.int64, copy=False).view(np.uint64) - np.uint64(least % 2**64)
    above >>= np.uint64(bits)
    return above.view(np.int64)


def _shared_bits(codes: Codes) -> int:
    """Return how many of the last bits are the same in all codes."""
    different = 0
    for piece in pieces(len(codes)):
        different |= int(np.bitwise_or.reduce(codes[piece] ^ codes[0]))
    return (different & -different).bit_length() - 1


def starts(ordered: NDArray[Any]) -> Mask:
    """Return where a run of equal values begins."""
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins


def firsts(numbers: Codes, count: int) -> Places:
    """Return where each of some numbers below `count` comes first, in the order of the numbers.

    >>> firsts(np.array([5, 3, 5, 3, 9]), 10)
    array([1, 0, 4])
    """
    bits = len(numbers).bit_length()
    if count.bit_length() + bits > 63:
        return np.unique(numbers, return_index=True)[1]
    ordered = np.sort((numbers << bits) | np.arange(len(numbers)))  # faster than to carry places along
    return ordered[starts(ordered >> bits)] & ((1 << bits) - 1)


def distinct(ordered: Words) -> Words:
    """Return the distinct values of sorted ones, in their memory."""
    begins = starts(ordered)
    size = 0
    for piece in pieces(len(ordered)):
        part = ordered[piece][begins[piece]]
        ordered[size : size + len(part)] = part
        size += len(part)
    return ordered[:size]


def repeated(ordered: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return, once each, the sorted values that occur more often than the limit."""
    if limit >= len(ordered):
        return ordered[:0]
    often = ordered[np.flatnonzero(ordered[limit:] == ordered[:-limit])]
    return often[starts(often)]


def replaced(ordered: Words, old: Words, new: Words) -> Words:
    """Return sorted values in which the old ones, as often as they are given, give way to new ones.

    >>> replaced(np.array([1, 3, 3, 3, 5]), np.array([3, 3]), np.array([9, 0]))
    array([0, 1, 3, 5, 9])
    """
    old, new = np.sort(old), np.sort(new)
    which = np.arange(len(old)) - np.searchsorted(old, old)
    left = np.delete(ordered, np.searchsorted(ordered, old) + which)
    return np.insert(left, np.searchsorted(left, new), new)


def touched(numbers: Codes, count: int) -> Mask:
    """Return which of the numbers below `count` are there."""
    mask = np.zeros(count, np.bool_)
    mask[numbers] = True
    return mask


def members(known: Codes, values: Codes) -> tuple[Places, Codes]:
    """Return where a value is a known one, and which: a number below `len(known)`."""
    if not len(known):
        return np.empty(0, np.intp), np.empty(0, np.int64)
    words, mixed = np.sort(_mixed(known)), _mixed(values)
    place = found(words, mixed)
    hit = np.flatnonzero(words.take(place, mode="clip") == mixed)
    return hit, place[hit]


def _mixed(codes: Codes) -> Words:
    """Spread codes over the 64-bit words, one to one."""
    return codes.view(np.uint64) * MIX


def sampled(codes: Codes) -> Mask:
    """Return where the code is one of about one in 64, the same ones everywhere."""
    return np.less(_mixed(codes), np.uint64(1 << 58))


def found(known: Words, words: Words) -> Codes:
    """Return `searchsorted(known, words)`, quickly if the known words are spread evenly.

    The top bits of a word point to a bucket of about a quarter of a known word; a binary search within the bucket does
    the rest, so that uneven words cost rounds and nothing else.
    """
    shift = np.uint64(max(0, 64 - (4 * len(known)).bit_length()))
    buckets = 1 << (64 - int(shift))
    size = np.bincount((known >> shift).view(np.int64), minlength=buckets)
    end = np.cumsum(size, dtype=np.int32 if len(known) < 1 << 31 else np.int64)
    rounds = int(size.max()).bit_length()
    place = np.empty(len(words), np.int64)
    for piece in pieces(len(words)):
        place[piece] = _found_in_buckets(known, words[piece], end, shift, rounds)
    return place


def _found_in_buckets(known: Words, words: Words, end: NDArray[Any], shift: np.uint64, rounds: int) -> Codes:
    bucket = (words >> shift).view(np.int64)
    high = end.take(bucket, mode="clip").astype(np.int64)
    low = np.where(bucket > 0, end.take(bucket - 1, mode="clip"), 0).astype(np.int64)
    for _ in range(rounds):
        middle = (low + high) >> 1
        above = (known.take(middle, mode="clip") < words) & (low < high)
        low = np.where(above, middle + 1, low)
        high = np.where(above, high, middle)
    return low
