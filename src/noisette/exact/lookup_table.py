"""Draw from a law on consecutive integers by inversion of its CDF, exactly, with a lookup table for speed.

A uniform real U picks the atom i with F(i-1) <= U < F(i). For large arrays the first 16 bits of U name one of 65 536
cells. A cell that holds no CDF point decides at once; in a crowded cell 48 more bits are drawn and compared with the
CDF to 64 places; if even those tie, both sides are refined until they differ. So the law is exactly the CDF's.

A crowded cell takes longer, and rare values lie in crowded cells. In single draws and small arrays an observer could
time that, so there all 64 bits are compared at once: the same work for every value. A single draw is compared with
every point.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random

__all__ = ["Cumulative", "LookupTable", "Tail"]

Cumulative = Callable[[int], tuple[list[int], int]]
"""bits -> (c, error): 2^bits F(i) lies within `error` of c[i], for every atom except the last, whose F is 1.

F must not be a multiple of 2^-64 (unless error is 0): no precision would make its floor certain."""

Tail = Callable[[bool, Random], int]
"""(upper, rng) -> a value of the law given that it is at or beyond the last (upper) or at or below the first atom."""

CELLS = 1 << 16
TAIL_BITS = 32  # a table ends where the rest of its law has probability 2^-32
_FEW = 1 << 11  # up to this many draws each is compared with the CDF: the same work for all, and no cells to build
_PLACES = 64
_ALL_ONES = (1 << _PLACES) - 1


class LookupTable:
    """A law on first, first + 1, … ready to be drawn; with a `tail`, the end atoms stand for everything beyond them."""

    def __init__(self, cumulative: Cumulative, first: int, tail: Tail | None = None) -> None:
        self.cumulative, self.first, self.tail = cumulative, first, tail
        self.cuts = [*self._certain_cuts(), _ALL_ONES]
        self.last = len(self.cuts) - 1
        self.lowest = 0 if first < 0 else -1  # nothing lies below a first atom of 0

    def _certain_cuts(self) -> list[int]:
        """floor(2^64 F(i)) for all atoms except the last, at a precision that makes every floor certain."""
        bits = _PLACES + 48
        while True:
            points, error = self.cumulative(bits)
            shift, most = bits - _PLACES, (1 << bits) - 1  # 0 < F < 1, however near
            cuts = [max(0, c - error) >> shift for c in points]
            if cuts == [min(c + error, most) >> shift for c in points]:
                return cuts
            bits += 64

    @cached_property
    def _cut(self) -> NDArray[np.uint64]:
        return np.array(self.cuts, dtype=np.uint64)

    @cached_property
    def _cells(self) -> tuple[NDArray[np.int32], NDArray[Any], int]:
        """For each cell the first atom in it and the value it decides on, or the mark `crowded`; then that mark."""
        edge = (self._cut >> np.uint64(48)).astype(np.int64)
        points = np.bincount(edge, minlength=CELLS)
        lowest = (np.cumsum(points) - points).astype(np.int32)
        narrow = max(abs(self.first), abs(self.first + self.last)) < 2**15 - 1
        kind = np.int16 if narrow else np.int32
        crowded = int(np.iinfo(kind).min)
        value = np.where(points == 0, self.first + lowest, crowded).astype(kind)
        return lowest, value, crowded

    def one(self, rng: Random) -> int:
        """Draw one value; every value takes the same path, except for ties and ends.

        All cuts are compared, because a binary search is faster on the paths it takes often, which an observer could
        time to distinguish small noise from large.
        """
        word = rng.words(1, np.uint64)
        atom: Any = np.count_nonzero(self._cut < word)
        if self._cut[atom] == word[0]:
            atom = self._resolved(int(word[0]), int(atom), rng)
        if self.tail is not None and (atom == self.lowest or atom == self.last):
            return self.tail(bool(atom > 0), rng)
        return int(self.first + atom)

    def fill(self, out: NDArray[np.int64], rng: Random) -> dict[int, int]:
        """Fill a chunk; draws from beyond the ends are left 0 in `out` and returned as {position: value}."""
        if len(out) <= _FEW:
            word = rng.words(len(out), np.uint64)
            out[:], far = self._values(word, np.searchsorted(self._cut, word, side="left"), rng)
            return far
        lowest, value, crowded = self._cells
        cells = rng.words(len(out), np.uint16)
        values = value.take(cells)
        out[:] = values
        at = np.flatnonzero(values == crowded)
        cells = cells[at]
        word = (cells.astype(np.uint64) << np.uint64(48)) | (rng.words(at.size, np.uint64) >> np.uint64(16))
        atom = lowest[cells].astype(np.int64)
        atom += word > self._cut[atom]  # most crowded cells hold a single CDF point
        beyond = np.flatnonzero(word > self._cut[atom])
        atom[beyond] = np.searchsorted(self._cut, word[beyond], side="left")
        out[at], far = self._values(word, atom, rng)
        return {int(at[i]): value for i, value in far.items()}

    def _values(
        self, word: NDArray[np.uint64], atom: NDArray[np.int64], rng: Random
    ) -> tuple[NDArray[np.int64], dict[int, int]]:
        """Resolve ties and turn atoms into values; values from beyond the ends are returned separately."""
        for i in np.flatnonzero(word == self._cut[atom]):
            atom[i] = self._resolved(int(word[i]), int(atom[i]), rng)
        values = atom + self.first
        if self.tail is None:
            return values, {}
        ends = np.flatnonzero((atom == self.lowest) | (atom == self.last))
        far = {int(i): self.tail(bool(atom[i]), rng) for i in ends}
        values[ends] = 0
        return values, far

    def _resolved(self, prefix: int, atom: int, rng: Random) -> int:
        """Resolve a tie: U and F(atom) begin with the same 64 bits, `prefix`."""
        known = _PLACES
        while atom < self.last:
            points, error = self.cumulative(known + 32)
            if (prefix + 1) << 32 <= points[atom] - error:
                return atom
            if prefix << 32 >= points[atom] + error:
                atom += 1
            else:
                prefix, known = (prefix << 64) | rng.bits(64), known + 64
        return self.last
