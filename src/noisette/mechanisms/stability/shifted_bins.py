"""What robust statistics share that are released by the bin: two partitions, one half a bin from the other.

A statistic next to an edge of one partition lies inside a bin of the other. Each bin is tested for itself by how many
changes it takes until the statistic leaves it (see `stability`), and released or not: two tests, whose costs add up.
[Dwork-Lei 2009]
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.stability.stability import Counted

__all__ = ["Bin", "ShiftedBins"]

Bin = tuple[int, int]
"""The lowest and the highest whole number in it."""

_LARGEST = 2**60


@dataclass(frozen=True, init=False)
class ShiftedBins(Counted):
    """A pair of bins that hold the statistic, each of which may be None."""

    tests: ClassVar[int] = 2

    def _bins(self, values: NDArray[np.int64]) -> Sequence[tuple[Bin, int]]:
        """The bin of either partition, and how many changes it takes to leave it, for sorted values."""
        raise NotImplementedError

    def _both(self, x: Any) -> Sequence[tuple[Bin, int]]:
        values = integer_answer(x)
        if values.ndim != 1 or abs(int(values.min())) >= _LARGEST or abs(int(values.max())) >= _LARGEST:
            raise InputError("The values must be a list of whole numbers between -2^60 and 2^60: use a coarser unit.")
        return self._bins(np.sort(values.astype(np.int64)))

    def __call__(self, x: Any, rng: Random = SYSTEM) -> tuple[Bin | None, Bin | None]:
        """Release bins (lowest, highest) that hold the statistic, or None for each."""
        (a, changes), (b, more) = self._both(x)
        return (a if self._passes(changes, rng) else None), (b if self._passes(more, rng) else None)

    def outcomes(self, x: Any) -> Mapping[Hashable, float]:
        """Return the probabilities of both bins, of one and of none: a product."""
        (a, changes), (b, more) = self._both(x)
        first, second = (dict(zip((v, None), self._odds(c), strict=True)) for v, c in ((a, changes), (b, more)))
        return {(v, w): p * q for v, p in first.items() for w, q in second.items()}

    def error(self, y: Any, x: Any) -> float:
        """0 for a bin, which is right; if there is none, the changes that the better of both would have taken."""
        return float(max(c for _, c in self._both(x))) if y == (None, None) else 0.0

    @property
    def tightness(self) -> float:
        """Half of delta, at 2 epsilon; all of it is attained, at every epsilon, where one person alters both bins."""
        return 0.5
