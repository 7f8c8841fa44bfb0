"""A range for the interquartile range, released exactly if it is stable; values need no bounds.

With s = floor(n/4) + 1, the interquartile range is the s-th largest value minus the s-th smallest. The powers of a
`base` part all scales into bins, and so do the powers that lie half a step in between. The bins that hold it are
released if they are stable: two tests of (epsilon, delta) each, (2 epsilon, 1 - (1 - delta)^2)-DP together. All of
delta is attained where one person changes the scale.   [Dwork-Lei 2009; proof note: docs/proofs/stability.md]

How many changes it takes to leave a bin is read off the sorted values. With i of them replaced by larger and j by
smaller ones the range grows to that of ranks s - i and s - j; replaced by values in the middle, it shrinks to s + i and
s + j. If values are added and removed, s moves as well. Only as many ranks are looked at as a certain release takes.

When: nobody knows how widely values are spread. For bounded ones two calls of `Quantile`, an inverse-sensitivity
mechanism, give both quartiles, and without a delta.
Textbook: not in the textbooks; it is the first use of propose-test-release.

Vocabulary: `top`, `low` the ranks from either end · `cell` a bin (lowest, highest) · `most` changes worth counting.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Exact, default, frozen
from noisette.exact.number import Number
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import ADD_REMOVE, Bin, ShiftedBins
from noisette.privacy import Neighbours, Promise

__all__ = ["StableScale"]

Values = NDArray[np.int64]
_LARGEST = 2**61


@frozen
class StableScale(ShiftedBins):
    """Two bins (lowest, highest) that hold the interquartile range, or None, given whole values.

    >>> m = StableScale(1, "1e-6", base=2)
    >>> m(range(400))                                   # the interquartile range is 199
    ((128, 255), (182, 362))
    >>> m.guarantee(1).epsilon, m.certain
    (Fraction(2, 1), 28)
    """

    _: KW_ONLY
    base: Exact = default(2)

    def __post_init__(self) -> None:
        if not Fraction(9, 8) <= self.base <= 16:
            raise InputError("base must lie between 9/8 and 16: it is the ratio of a bin's ends.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, base: Number = 2) -> "StableScale":
        """Return the one that keeps the promise for a histogram's sensitivity, or for that many people."""
        return cls._kept(guarantee, sensitivity, base=base)

    def _replacements(self, records: int, relation: Neighbours) -> int:
        """A record that is added or removed can move s, and both quartiles: as far as two replacements."""
        return 2 * records if relation is ADD_REMOVE else super()._replacements(records, relation)

    def _bins(self, values: Values) -> Sequence[tuple[Bin, int]]:
        s = _rank(len(values))
        spread = int(values[-s] - values[s - 1])
        return [(cell, self._changes(values, cell)) for cell in (_cell(spread, self.base, odd) for odd in (0, 1))]

    def _changes(self, values: Values, cell: Bin) -> int:
        """How many changes it takes to leave the cell, or `certain` if it takes more."""
        count = _replaced if self.neighbours is not ADD_REMOVE else _added_or_removed
        return min(count(values, cell, self.certain), self.certain)

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """A record more in the middle of the curve."""
        high = self._halves[1]
        if self.neighbours is not ADD_REMOVE:
            zeros = [0] * (4 * high - 5)
            return [([*zeros, 1000], [*zeros, 0], 1)]
        size = next(n for n in range(1, 4 * high) if self._both([0] * (n + 1))[0][1] == high)
        return [([0] * size, [0] * (size + 1), 1)]


def _rank(n: int) -> int:
    return n // 4 + 1


@lru_cache(maxsize=64)
def _edges(base: Fraction, odd: int) -> list[int]:
    """The least whole number of each bin: at least 1 and base^k, k whole, or half of an odd number."""
    edges, square = [1], base**odd
    while edges[-1] < _LARGEST:
        root = math.isqrt(math.ceil(square) - 1) + 1 if square > 1 else 1  # of whole numbers v: v^2 >= square
        edges = edges if root == edges[-1] else [*edges, root]
        square *= base * base
    return edges


def _cell(spread: int, base: Fraction, odd: int) -> Bin:
    if not spread:
        return 0, 0
    edges = _edges(base, odd)
    at = bisect_right(edges, spread)
    return edges[at - 1], min(edges[at], _LARGEST) - 1


def _outward(values: Values, s: int, high: int, most: int) -> int:
    """The least i + j for which ranks s - i from the top and s - j from the bottom are more than `high` apart.

    A rank below 1 is as far out as one likes.
    """
    tops = values[len(values) - s :][:most]
    below = np.searchsorted(values, tops - high)
    return min(s, int(np.min(np.arange(len(tops)) + np.maximum(0, s - below))))


def _inward(values: Values, s: int, low: int, most: int) -> int:
    """The least i + j for which ranks s + i from the top and s + j from the bottom are less than `low` apart."""
    tops = values[: len(values) - s + 1][::-1][:most]
    upto = np.searchsorted(values, tops - low, side="right")
    return int(np.min(np.arange(len(tops)) + np.maximum(0, upto + 1 - s)))


def _replaced(values: Values, cell: Bin, most: int) -> int:
    s = _rank(len(values))
    return min(_outward(values, s, cell[1], most), _inward(values, s, cell[0], most) if cell[0] else most)


def _added_or_removed(values: Values, cell: Bin, most: int) -> int:
    """Records that are added push outward and those that are removed inward, the others set n, and so the rank s."""
    n, best = len(values), most
    for s in range(max(1, _rank(n) - most // 4 - 1), min(n, _rank(n) + most // 4 + 1) + 1):
        added = _outward(values, s, cell[1], most)
        best = min(best, _with_rank(n + added, s, added))
        if cell[0]:
            removed = _inward(values, s, cell[0], most)
            best = min(best, _with_rank(n - removed, s, removed))
    return best


def _with_rank(n: int, s: int, changes: int) -> int:
    """How many changes it takes in all until as many records have the rank s, which are 4 (s - 1) to 4 s - 1."""
    return changes + max(0, 4 * (s - 1) - n, n - (4 * s - 1))


examples = [
    StableScale(1, "1/100"),
    StableScale("1/2", "1/50", base="5/4", neighbours=Neighbours.REPLACE),
    StableScale(2, "1e-3", base=4),
]
