"""Distinct counts of several parties: bitmaps whose bits are flipped before they leave, and merge afterwards.

Each value sets one of m bits, by a public hash. A unit that holds at most k values changes at most k bits (2 k under
replace), so each bit is reported by randomized response with epsilon/k, and nobody else sees exact bitmaps.
[Warner 1965; sketch, flip, merge: Hehir-Ting-Cormode 2023]

**Estimate.** z = 1 where a bit is not set. A report y has E (1 - y - q)/(1 - 2q) = z, q the chance of a flip. A bit is
not set in the union of all parties if it is set in none, and flips are independent, so the product over the parties of
these numbers has the mean z of the union, whichever values they share. The product depends on how many parties
reported 1, so merged bitmaps are sums of bits. From V zero bits, N = ln(V/m)/ln(1 - 1/m) values are estimated (linear
counting, Whang-Vander-Zanden-Taylor 1990).

**Sensitivity of merged bitmaps**: flips come before merging, so each party's promise holds whatever is merged. A unit
whose values are with several parties pays to each. The variance grows by a factor of at least 1/(1 - 2q)^2 a party.

**Error bars** take V for normal: sums of m bits, with the variance of flips (from the products themselves) and that of
the hash. With 1,024 bits and more that is right to a few parts in a hundred. When: parties cannot pool their tables.
With one table, `Distinct` errs far less.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import RandomizedResponse
from noisette.mechanisms.calibration import pure_epsilon
from noisette.privacy import Guarantee, Neighbours, Pure, Spend, as_promise
from noisette.releases.sketches.hashing import buckets, fingerprints

if TYPE_CHECKING:
    import pyarrow

    from noisette.charts import Chart

__all__ = ["Bitmap"]

_MOST = 2**24


@dataclass(frozen=True, eq=False, repr=False)
class Bitmap:
    """How many of `parties` reported each bit as set; `epsilon` is that of one bit, None before bits are flipped.

    >>> exact = Bitmap.of(range(500), bits=4096)
    >>> noisy = exact.flipped(2, values=1)
    >>> noisy, noisy.merge(noisy).parties, noisy.guarantee(values=3)
    (Bitmap(bits=4096, key=0, 1 parties, epsilon 2 for each bit), 2, Pure('6', neighbours=ADD_REMOVE))
    >>> value, low, high = exact.flipped(20).estimate()
    >>> low < 500 < high
    True
    """

    bits: int
    key: int
    set_bits: NDArray[np.int64]
    parties: int = 1
    epsilon: Fraction | None = None

    @classmethod
    def of(cls, values: Iterable[Any], *, bits: int = 4096, key: int = 0) -> "Bitmap":
        """The exact bitmap of values; each unit must hold at most the number of values that `flipped` is given."""
        if whole(bits, "bits", least=2) > _MOST:
            raise InputError(f"bits must be at most {_MOST:,}.")
        found = np.zeros(bits, np.int64)
        found[buckets(fingerprints(values, key), 0, bits)] = 1
        return cls(bits, key, found)

    def flipped(
        self,
        spend: Spend,
        *,
        values: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rng: Random = SYSTEM,
    ) -> "Bitmap":
        """The bitmap with each bit flipped by randomized response, for units that hold at most that many values."""
        if self.epsilon is not None:
            raise InputError("These bits are flipped already: flip an exact bitmap, once.")
        epsilon = pure_epsilon(as_promise(spend)) / changed_bits(values, neighbours)
        reported = np.asarray(RandomizedResponse(epsilon)(self.set_bits, rng))
        return replace(self, set_bits=reported, epsilon=epsilon)

    def guarantee(self, *, values: int = 1, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Guarantee:
        """What one party's flipped bitmap promises to a unit that holds at most that many values."""
        if self.epsilon is None:
            raise InputError("An exact bitmap promises nothing: flip it first.")
        return Pure(self.epsilon * changed_bits(values, neighbours), neighbours=neighbours)

    def merge(self, other: "Bitmap") -> "Bitmap":
        """The bitmaps of both parties; both must be flipped, with the same epsilon for each bit."""
        if (self.bits, self.key, self.epsilon) != (other.bits, other.key, other.epsilon) or self.epsilon is None:
            raise InputError("Bitmaps merge when both are flipped, with the same bits, key and epsilon of a bit.")
        return replace(self, set_bits=self.set_bits + other.set_bits, parties=self.parties + other.parties)

    def zeros(self) -> tuple[float, float]:
        """The estimated number of bits that nobody set, without bias, and the variance of it by flips."""
        if self.epsilon is None:
            return float((self.set_bits == 0).sum()), 0.0
        q = 1 / (1 + math.exp(float(self.epsilon)))
        clear, is_set = (1 - q) / (1 - 2 * q), -q / (1 - 2 * q)
        each = clear ** (self.parties - self.set_bits) * is_set**self.set_bits
        return float(each.sum()), max(0.0, float((each**2 - each).sum()))  # E each^2 = variance + z, since z^2 = z

    def estimate(self, *, level: float = 0.95) -> tuple[float, float, float]:
        """The number of different values of all parties together, and the ends of its error bar."""
        zeros, by_flips = self.zeros()
        load = max(0.0, self._values(zeros)) / self.bits
        empty = math.exp(-min(load, 700.0))
        by_hash = self.bits * empty * max(0.0, 1 - (1 + min(load, 700.0)) * empty)
        half = NormalDist().inv_cdf((1 + level_of(level)) / 2) * math.sqrt(by_flips + by_hash) + 0.5
        return self._values(zeros), self._values(zeros + half), self._values(zeros - half)

    def _values(self, zeros: float) -> float:
        """How many values leave that many bits empty."""
        if zeros <= 0:
            return math.inf
        return max(0.0, math.log(zeros / self.bits) / math.log1p(-1 / self.bits))

    def to_arrow(self) -> "pyarrow.Table":
        """The bits: how many parties reported each as set."""
        import pyarrow

        return pyarrow.table({"bit": np.arange(self.bits), "parties": self.set_bits})

    def chart(self, *, note: str = "") -> "Chart":
        """How many bits were reported as set by how many parties."""
        from noisette.charts import bars

        counts = np.bincount(self.set_bits, minlength=self.parties + 1).tolist()
        names = [f"set by {n}" for n in range(len(counts))]
        return bars(names, {"bits": (counts, None, None)}, title="Bits by the parties that set them", note=note)

    def __repr__(self) -> str:
        flips = "exact" if self.epsilon is None else f"{self.parties} parties, epsilon {self.epsilon} for each bit"
        return f"Bitmap(bits={self.bits}, key={self.key}, {flips})"


def changed_bits(values: int, neighbours: Neighbours) -> int:
    """How many bits one unit can change."""
    return whole(values, "values") * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
