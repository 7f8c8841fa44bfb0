"""Release the cells whose noisy count reaches a threshold.

Of n0 zero cells, each reaches it with the same chance p = a^t / (1 + a), a = e^(-1/scale) (twice that for |v| >= t), so
their number is Binomial(n0, p), drawn exactly; which cells they are is uniform; and by memorylessness a noisy count
above the threshold exceeds it by a geometric variable. So the law is that of the filtered full release.
[Cormode-Procopiuc-Srivastava-Tran 2012]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact import vector
from noisette.exact.integers import Integers, added
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds
from noisette.exact.samplers import Bounds, binomial
from noisette.mechanisms import Geometric
from noisette.releases.sparse.zeros import Codes, distinct, placed

__all__ = ["Filter", "in_units", "noised"]

_STEP = 256


@dataclass(frozen=True)
class Filter:
    """Release v where v >= threshold, or where |v| >= threshold if `both` sides count.

    >>> Filter(5).chance(1.0) == math.exp(-5) / (1 + math.exp(-1))
    True
    """

    threshold: int
    both: bool = False

    def __post_init__(self) -> None:
        whole(self.threshold, "threshold")

    @staticmethod
    def sized(scale: float, cells: int, size: float, *, both: bool = False) -> "Filter":
        """The least threshold that at most `size` of `cells` empty cells are expected to reach.

        >>> Filter.sized(1.0, 10**15, 100)
        Filter(threshold=30, both=False)
        """
        sides = 2 if both else 1
        least = scale * (math.log(cells) + math.log(sides / size) - math.log1p(math.exp(-1 / scale)))
        return Filter(max(1, math.ceil(least)), both)

    def chance(self, scale: float) -> float:
        """The chance that an empty cell is released."""
        return (2 if self.both else 1) * math.exp(-self.threshold / scale) / (1 + math.exp(-1 / scale))

    def bounds(self, scale: Fraction) -> Bounds:
        """The same as a number to be enclosed."""
        return _chance(self.threshold, 2 if self.both else 1, scale)

    def kept(self, v: Any) -> NDArray[np.bool_]:
        """Whether a noisy count is released."""
        return np.asarray((np.abs(v) if self.both else v) >= self.threshold, bool)

    def draw(
        self, noise: Geometric, cells: int, codes: Codes, counts: Integers, rng: Random
    ) -> tuple[Codes, Integers, float]:
        """Cells and their noisy counts, in any order, and a sampling threshold of 0."""
        v = noised(noise, counts, rng)
        kept = self.kept(v)
        found = binomial(cells - codes.size, self.bounds(noise.scale), rng)
        new = placed(distinct(cells - codes.size, found, rng), codes)
        above = added(np.full(found, self.threshold), np.asarray(vector.geometric_noise(noise.scale, found, rng)))
        if self.both:
            above = np.where(rng.words(found, np.uint8) & 1, above, -above)
        return np.concatenate([codes[kept], new]), np.concatenate([v[kept], above]), 0.0


def noised(noise: Geometric, counts: Integers, rng: Random) -> Integers:
    """Noisy counts of the filled cells, of which there may be none."""
    return np.asarray(noise(counts, rng)) if counts.size else counts


@lru_cache(maxsize=64)
def _chance(threshold: int, sides: int, scale: Fraction) -> Bounds:
    def enclosed(bits: int) -> tuple[Fraction, Fraction]:
        above, below = exp_bounds(-threshold / scale, bits + 4), exp_bounds(-1 / scale, bits + 4)
        one = 1 << (bits + 4)
        return Fraction(sides * above[0], one + below[1]), Fraction(sides * above[1], one + below[0])

    return in_units(enclosed)


def in_units(enclosed: Callable[[int], tuple[Fraction, Fraction]]) -> Bounds:
    """A probability between two fractions as a number to be enclosed; each is computed for many precisions at once."""

    @cache
    def fine(bits: int) -> tuple[int, int]:
        low, high = enclosed(bits)
        return math.floor(low * (1 << bits)), min(1 << bits, math.ceil(high * (1 << bits)))

    def bounds(bits: int) -> tuple[int, int]:
        more = -bits % _STEP
        low, high = fine(bits + more)
        return low >> more, -(-high >> more)

    return bounds
