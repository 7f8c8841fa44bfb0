"""Random projections of counts: inner products, lengths and distances of private vectors (Johnson-Lindenstrauss).

x has a number of rows for each value, of any set of values. y_j = sum over values v of S_jv x_v, j = 1 .. d, with
public signs S_jv = 1 or -1 from a keyed hash, is whole and exact. E over the signs of y_j y'_j is the inner product of
x and x'.   [Alon-Matias-Szegedy 1999; Johnson-Lindenstrauss 1984; Achlioptas 2003]

**Sensitivity.** Each column of S has d entries of size 1: a unit with k rows moves y by d k in l1 and d k^2 in squared
l2, exactly, and by twice as much in each entry under replace (4 d k^2), since another's rows may have other signs. This
holds for the sum of several parties' projections as well, for units with k rows in all of them together. Privacy comes
from noise alone, never from the projection.

**Estimates** of products of two projections are unbiased, since their noises are independent; of squares, the known
variance of the noise is taken off. Error bars take entries for normal: right for many values of similar size.

When: distances between two parties' tables of values, or directions that are fixed later. For a plain histogram other
releases err less: counts above a threshold, or all cells with noise where keys are declared. `recovered` finds a few
large counts among many candidates (orthogonal matching pursuit, Tropp-Gilbert 2007), and is dominated by these as well.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Noise
from noisette.releases.sketches.cells import moved_cells
from noisette.releases.sketches.hashing import fingerprints, signs
from noisette.releases.sketches.noise import least_noise

if TYPE_CHECKING:
    import pyarrow

    from noisette.charts import Chart

__all__ = ["Projection"]

Floats = NDArray[np.float64]

_MOST = 2**16


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """d signed sums of counts under a public hash; `noises` are those that were added to all of them.

    >>> x, y = (Projection.of(range(n), dimension=256) for n in (1000, 1100))
    >>> x.distance(x), 50 < x.distance(y)[0] < 150
    ((0.0, 0.0, 0.0), True)
    >>> x.noised(1)
    Projection(dimension=256, key=0, with noise)
    """

    dimension: int
    key: int
    sums: NDArray[np.int64]
    noises: tuple[Noise, ...] = ()

    @classmethod
    def of(cls, values: Iterable[Any], counts: Any = None, *, dimension: int = 256, key: int = 0) -> "Projection":
        """The exact projection of values, each with its number of rows (1 if none is given)."""
        if whole(dimension, "dimension", least=2) > _MOST:
            raise InputError(f"dimension must be at most {_MOST:,}.")
        prints = fingerprints(values, key)
        rows = np.ones(prints.size, np.int64) if counts is None else np.asarray(counts)
        if rows.shape != prints.shape or rows.dtype.kind not in "iu":
            raise InputError("There must be one whole number of rows for each value.")
        return cls(dimension, key, np.array([int(signs(prints, j) @ rows) for j in range(dimension)], np.int64))

    def merge(self, other: "Projection") -> "Projection":
        """The projection of the rows of both; noise that is in them adds up."""
        self._same(other)
        return replace(self, sums=self.sums + other.sums, noises=self.noises + other.noises)

    def sensitivity(self, part: Contribution = ONE_ROW, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Sensitivity:
        """What one unit moves, of one projection or of merged ones."""
        moved = moved_cells(self.dimension, part, neighbours, signed=True)
        return Sensitivity(moved.l1, moved.l2_squared, moved.linf, self.dimension, neighbours=neighbours)

    def noised(
        self,
        spend: Spend,
        *,
        part: Contribution = ONE_ROW,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rng: Random = SYSTEM,
    ) -> "Projection":
        """The projection with the least noise that keeps a promise for one unit; Gaussian noise is far less here."""
        noise = least_noise(as_promise(spend), self.sensitivity(part, neighbours))
        return replace(self, sums=np.asarray(noise(self.sums, rng)), noises=(*self.noises, noise))

    @property
    def variance(self) -> float:
        """The variance of the noise of each entry."""
        return math.fsum(noise.variance() for noise in self.noises)

    # Estimates

    def inner(self, other: "Projection", *, level: float = 0.95) -> tuple[float, float, float]:
        """The inner product with another vector, and the ends of its error bar; their noises must be independent."""
        self._same(other)
        products = np.asarray(self.sums, float) * np.asarray(other.sums, float)
        return _mean(products, level)

    def squared_norm(self, *, level: float = 0.95) -> tuple[float, float, float]:
        """The sum of squared counts, and the ends of its error bar."""
        return self._squares(np.asarray(self.sums, float), self.variance, level)

    def distance(self, other: "Projection", *, level: float = 0.95) -> tuple[float, float, float]:
        """The squared distance of both vectors, and the ends of its error bar."""
        self._same(other)
        apart = np.asarray(self.sums, float) - np.asarray(other.sums, float)
        return self._squares(apart, self.variance + other.variance, level)

    def _squares(self, entries: Floats, noise: float, level: float) -> tuple[float, float, float]:
        """mean of squares - noise; their sum is chi-squared, times the squared length with noise."""
        from scipy.stats import chi2

        total, tail = float((entries**2).sum()), (1 - level_of(level)) / 2
        low, high = (total / float(chi2.isf(p, self.dimension)) for p in (tail, 1 - tail))
        return max(0.0, total / self.dimension - noise), max(0.0, low - noise), max(0.0, high - noise)

    def recovered(self, candidates: Iterable[Any], few: int) -> "pyarrow.Table":
        """At most `few` of public candidates with their counts, such that they explain the projection best."""
        import pyarrow

        keys = list(candidates)
        columns = self._columns(keys).astype(float)
        rest, chosen = np.asarray(self.sums, float), list[int]()
        fitted = np.zeros(0)
        for _ in range(min(whole(few, "few"), len(keys), self.dimension)):
            gains = np.abs(columns.T @ rest)
            gains[chosen] = -1
            chosen.append(int(gains.argmax()))
            fitted = np.linalg.lstsq(columns[:, chosen], np.asarray(self.sums, float), rcond=None)[0]
            rest = np.asarray(self.sums, float) - columns[:, chosen] @ fitted
        return pyarrow.table({"key": pyarrow.array([keys[i] for i in chosen]), "count": fitted})

    def _columns(self, keys: list[Any]) -> NDArray[np.int64]:
        prints = fingerprints(keys, self.key)
        return np.array([signs(prints, j) for j in range(self.dimension)])

    def _same(self, other: "Projection") -> None:
        if (self.dimension, self.key) != (other.dimension, other.key):
            raise InputError("Projections go together if they have the same dimension and key: make them alike.")

    def to_arrow(self) -> "pyarrow.Table":
        """All entries."""
        import pyarrow

        return pyarrow.table({"entry": np.arange(self.dimension), "sum": np.asarray(self.sums).astype(np.int64)})

    def chart(self, *, note: str = "") -> "Chart":
        """The entries with the spread of their noise."""
        from noisette.charts import columns

        half, values = 2 * math.sqrt(self.variance), np.asarray(self.sums, float)[:240]
        number = values.tolist(), (values - half).tolist(), (values + half).tolist()
        return columns(list(range(len(values))), {"sum": number}, name="entry", title="A random projection", note=note)

    def __repr__(self) -> str:
        with_noise = "with noise" if self.noises else "exact"
        return f"Projection(dimension={self.dimension}, key={self.key}, {with_noise})"


def _mean(products: Floats, level: float) -> tuple[float, float, float]:
    """The mean of independent numbers, and Student's error bar."""
    from scipy.stats import t

    middle = float(products.mean())
    half = float(t.isf((1 - level_of(level)) / 2, products.size - 1) * products.std(ddof=1) / math.sqrt(products.size))
    return middle, middle - half, middle + half
