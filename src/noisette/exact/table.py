"""Draw from a law on consecutive integers by table lookup, exactly.

A uniform real U picks the atom i with F(i-1) <= U < F(i). The first 16 bits of U name one of 65 536 cells. A cell that
holds no CDF point decides at once; in the others 48 more bits are drawn and compared with the CDF to 64 places; where
even those tie, both sides are refined until they part. So the law is the CDF's own, to the last digit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random

__all__ = ["Cumulative", "Table", "Tail"]

Cumulative = Callable[[int], tuple[list[int], int]]
"""bits -> (c, error): 2^bits F(i) lies within `error` of c[i], for every atom but the last, whose F is 1."""

Tail = Callable[[bool, Random], int]
"""(upper, rng) -> a value of the law given that it is at or beyond the last (upper) or at or below the first atom."""

CELLS = 1 << 16
CHUNK = 1 << 15
TAIL_BITS = 32  # where the rest of a law has probability 2^-32 its table ends
_PLACES = 64
_ALL_ONES = (1 << _PLACES) - 1


class Table:
    """A law on first, first + 1, … ready to be drawn; with `tail`, its end atoms stand for all that lies beyond."""

    def __init__(self, cumulative: Cumulative, first: int, tail: Tail | None = None) -> None:
        self.cumulative, self.first, self.tail = cumulative, first, tail
        self.cut = np.array([*self._certain_cuts(), _ALL_ONES], dtype=np.uint64)
        self.last = len(self.cut) - 1
        edge = (self.cut >> np.uint64(48)).astype(np.int64)
        cells = np.arange(CELLS)
        self.lowest = np.searchsorted(edge, cells, side="left").astype(np.int32)
        narrow = max(abs(first), abs(first + self.last)) < 2**15 - 1
        self.dtype = np.dtype(np.int16 if narrow else np.int32)
        self.crowded = int(np.iinfo(self.dtype).min)
        self.value = (first + self.lowest).astype(self.dtype)
        self.value[edge[self.lowest] == cells] = self.crowded

    def _certain_cuts(self) -> list[int]:
        """floor(2^64 F(i)) for all atoms but the last, with as much precision as makes every floor certain."""
        bits = _PLACES + 48
        while True:
            points, error = self.cumulative(bits)
            shift = bits - _PLACES
            cuts = [(c - error) >> shift for c in points]
            if all(cut == (c + error) >> shift for cut, c in zip(cuts, points, strict=True)):
                return cuts
            bits += 64

    def one(self, rng: Random) -> int:
        """Draw one value, with as little overhead as Python allows."""
        cell = rng.bits(16)
        value: int = self.value.item(cell)
        if value != self.crowded:
            return value
        values, far = self._settled(np.array([cell], dtype=np.uint16), rng)
        return far.get(0, int(values[0]))

    def fill(self, out: NDArray[np.int64], rng: Random) -> dict[int, int]:
        """Fill a chunk; draws from beyond the ends are left 0 in `out` and returned as {position: value}."""
        cells = rng.words(len(out), np.uint16)
        values = self.value.take(cells)
        out[:] = values
        at = np.flatnonzero(values == self.crowded)
        if not at.size:
            return {}
        out[at], far = self._settled(cells[at], rng)
        return {int(at[i]): value for i, value in far.items()}

    def _settled(self, cells: NDArray[Any], rng: Random) -> tuple[NDArray[np.int64], dict[int, int]]:
        """Decide crowded cells with 48 more bits; return the values, and apart those from beyond the ends."""
        word = (cells.astype(np.uint64) << np.uint64(48)) | (rng.words(len(cells), np.uint64) >> np.uint64(16))
        atom = self.lowest[cells].astype(np.int64)
        atom += word > self.cut[atom]  # most crowded cells hold a single CDF point
        beyond = np.flatnonzero(word > self.cut[atom])
        atom[beyond] = np.searchsorted(self.cut, word[beyond], side="left")
        for i in np.flatnonzero(word == self.cut[atom]):
            atom[i] = self._parted(int(word[i]), int(atom[i]), rng)
        values = atom + self.first
        if self.tail is None:
            return values, {}
        ends = np.flatnonzero((atom == 0) | (atom == self.last))
        far = {int(i): self.tail(bool(atom[i]), rng) for i in ends}
        values[ends] = 0
        return values, far

    def _parted(self, prefix: int, atom: int, rng: Random) -> int:
        """Settle a tie: U begins with the 64 bits `prefix`, and so does F(atom)."""
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
