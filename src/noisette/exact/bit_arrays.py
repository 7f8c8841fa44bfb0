"""Many independent coins of one probability, 64 to a word, exactly; and sums of columns of packed bits.

The uniform behind each coin is compared with the probability bit by bit, for all 64 coins of a word at once: where the
probability has a 1, uniforms with a 0 are below it; where it has a 0, uniforms with a 1 are above it. Half of the coins
are decided at each place, and words are dropped once all of theirs are.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds
from noisette.exact.samplers import Bounds, binary_place

__all__ = ["Places", "coin_words", "column_sums", "even", "lie_places", "row_sums"]

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_CHUNK = 1 << 14  # words: they stay in the processor's cache
_ALL_ROUNDS = 6  # before that, hardly any word is decided


@lru_cache(maxsize=32)
def lie_places(g: Fraction) -> "Places":
    """Return the binary places of 1 / (1 + e^g), which is the chance to lie of randomized response.

    >>> [lie_places(Fraction(1))(place) for place in range(1, 7)]
    [0, 1, 0, 0, 0, 1]
    """

    def bounds(bits: int) -> tuple[int, int]:
        lo, hi = exp_bounds(-g, bits + 2)
        one = 4 << bits
        return (lo << bits) // (one + lo), -((-hi << bits) // (one + hi))

    return Places(bounds)


class Places:
    """The binary places of a real number in (0, 1), found as they are needed."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.known = bounds, dict[int, int]()

    def __call__(self, place: int) -> int:
        """Return the place after the point, counted from 1."""
        if place not in self.known:
            self.known[place] = binary_place(self.bounds, place)
        return self.known[place]


def coin_words(places: Places, words: int, rng: Random = SYSTEM) -> Words:
    """Draw `words` words of 64 independent coins, each of them 1 with the probability that the places spell.

    >>> coin_words(lie_places(Fraction(1)), 3).shape
    (3,)
    """
    out = np.empty(words, np.uint64)
    for start in range(0, words, _CHUNK):
        _fill(out[start : start + _CHUNK], places, rng)
    return out


def _fill(out: Words, places: Places, rng: Random) -> None:
    below, undecided = np.zeros_like(out), np.full_like(out, np.iinfo(np.uint64).max)
    todo: NDArray[np.intp] | None = None  # all words, to begin with
    for place in count(1):
        drawn = rng.words(undecided.size, np.uint64)
        if places(place):
            below |= undecided & ~drawn
            undecided &= drawn
        else:
            undecided &= ~drawn
        if place < _ALL_ROUNDS:
            continue
        if todo is None:
            out[:], todo = below, np.arange(out.size)
        else:
            out[todo] = below
        left = np.flatnonzero(undecided)
        if not left.size:
            return
        below, undecided, todo = below[left], undecided[left], todo[left]


_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


def row_sums(packed: Bytes) -> NDArray[np.int64]:
    """Add up the bits of each row of bytes.

    >>> row_sums(np.array([[255, 1], [0, 6]], np.uint8)).tolist()
    [9, 2]
    """
    return np.asarray(_ONES[packed].sum(axis=1, dtype=np.int64))


def even(x: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each whole number, at least 0, has an even number of ones.

    >>> even(np.array([0, 1, 3, 2**40])).tolist()
    [True, False, True, False]
    """
    for shift in (32, 16, 8, 4, 2, 1):
        x = x ^ (x >> shift)
    return np.asarray(x & 1 == 0)


_ROWS = 255  # that many bits add up within a byte


def column_sums(packed: Bytes, columns: int) -> NDArray[np.int64]:
    """Add up the bits of each column of rows packed as `np.packbits(rows, axis=1, bitorder="little")`.

    >>> column_sums(np.packbits([[1, 0, 1], [1, 1, 0]], axis=1, bitorder="little"), 3).tolist()
    [2, 1, 1]
    """
    total = np.zeros(8 * packed.shape[1], np.int64)
    for start in range(0, len(packed), _ROWS):
        bits = np.unpackbits(packed[start : start + _ROWS], axis=1, bitorder="little")
        total += bits.view(np.uint64).sum(axis=0, dtype=np.uint64).view(np.uint8)  # eight columns to a word
    return total[:columns]
