"""A bin that contains the median, released exactly if the median is well inside it; values need no bounds.

Bins of a public width cover all whole numbers in two partitions, half a width apart, and the median's bins are released
if they are stable: two tests of (epsilon, delta) each, (2 epsilon, 1 - (1 - delta)^2)-DP together. All of delta is
attained where one person moves the median far.   [Dwork-Lei 2009, for a known scale; proof note:
docs/proofs/stability.md]

The median is the lower one of n values. If n_below of them lie below a bin and n_up to its end, it leaves the bin after

    add/remove:  c = min(2 n_up + 1 - n, n - 2 n_below) changes,      replace:  half of that, rounded up.

When: nobody knows where values lie; the width is a known scale, or what `StableScale` released. For bounded values use
`Quantile`, or another inverse-sensitivity mechanism: it always answers, and without a delta.
Textbook: not in the textbooks; it is the first use of propose-test-release.

Vocabulary: `width` of a bin, in units of the data.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.number import whole
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import ADD_REMOVE, Bin, ShiftedBins
from noisette.privacy import Neighbours, Promise

__all__ = ["StableLocation"]


@frozen
class StableLocation(ShiftedBins):
    """Two bins (lowest, highest) that hold the median, or None, given whole values.

    >>> m = StableLocation(1, "1e-6", width=10)
    >>> m([22] * 50 + [23] * 50)
    ((20, 29), (15, 24))
    >>> m.guarantee(1).epsilon, m.certain
    (Fraction(2, 1), 28)
    """

    _: KW_ONLY
    width: Annotated[int, partial(whole, least=2)]

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, width: int) -> "StableLocation":
        """Return the one that keeps the promise for a histogram's sensitivity, or for that many people."""
        return cls._kept(guarantee, sensitivity, width=width)

    def _bins(self, values: NDArray[np.int64]) -> Sequence[tuple[Bin, int]]:
        return [(cell, self._counted(_records(values, cell))) for cell in self._cells(values)]

    def _cells(self, values: NDArray[np.int64]) -> Iterator[Bin]:
        median = int(values[(len(values) - 1) // 2])
        for offset in (0, self.width // 2):
            low = (median - offset) // self.width * self.width + offset
            yield low, low + self.width - 1

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """A record more in the middle of the curve."""
        low, high = self._halves
        if self.neighbours is ADD_REMOVE:
            return [([0] * low, [0] * high, 1)]
        zeros = [0] * (2 * high - 2)
        return [([*zeros, 10 * self.width], [*zeros, 0], 1)]


def _records(values: NDArray[np.int64], cell: Bin) -> int:
    """How many records must be added or removed until the median leaves the cell."""
    n, (below, upto) = len(values), (int(k) for k in np.searchsorted(values, [cell[0], cell[1] + 1]))
    return min(2 * upto + 1 - n, n - 2 * below)


examples = [
    StableLocation(1, "1e-4", width=10),
    StableLocation("1/2", "1/50", width=2, neighbours=Neighbours.REPLACE),
    StableLocation(2, "1e-3", width=5),
]
