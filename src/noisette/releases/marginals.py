"""Marginals of a table with noise: unbiased, consistent with each other, with the exact variance of every count.

`residual.py` (Gaussian noise) and `marginal_cells.py` (Laplace noise) say which numbers are measured. Noise is added
once to all of them, and every marginal, count and difference of counts within the measured sets is a sum of the same
numbers. Only the cells of the marginals are ever there: the table may have a hundred attributes.

Vocabulary: `tables` exact counts of each base's marginal · `y` noisy numbers · `box` a conjunction: for each of some
attributes, which values are meant · `terms` boxes with factors, to be summed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.exact.random import SYSTEM, Random
from noisette.exact.vector import LARGEST_SCALE
from noisette.mechanisms import Gaussian, Laplace, calibrate
from noisette.mechanisms.additive.lattice import lattice_step
from noisette.mechanisms.calibration import pure_epsilon
from noisette.privacy import Guarantee, Neighbours, Promise, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.laplace_sums import half_width
from noisette.releases.marginal_cells import Box, Cells
from noisette.releases.residual import MOST_NUMBERS, Contrasts, Subset, Workload, subsets

__all__ = ["Estimate", "Marginals", "Terms", "up_to"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Terms: TypeAlias = Sequence[tuple[float, Box]]

_GRID_BITS = {Gaussian: (28, 22, 16, 10), Laplace: (16, 13, 10, 7)}
"""Grids are 2^-bits of the sensitivity: noise on them is nearly continuous. The first one that can be drawn is used."""


def up_to(sizes: Sequence[int], ways: int) -> Workload:
    """All marginals of up to `ways` attributes; the mean variance of a cell counts the same for each of them.

    >>> [b for b, _ in up_to((2, 3), 1).weights]
    [(), (0,), (1,)]
    """
    asked = [b for size in range(ways + 1) for b in combinations(range(len(sizes)), size)]
    return Workload(tuple(sizes), tuple((b, 1 / math.prod(sizes[i] for i in b)) for b in asked))


@dataclass(frozen=True)
class Marginals:
    """Marginals by a strategy, with the noise on all of its numbers.

    >>> made = Marginals.calibrated(1, up_to((2, 3), 2))
    >>> type(made.strategy).__name__, made.moved.l1 <= 1, made.guarantee() <= as_promise(1)
    ('Cells', True, True)
    >>> x = np.arange(6).reshape(2, 3)
    >>> tables = {(): x.sum(), (0,): x.sum(axis=1), (1,): x.sum(axis=0), (0, 1): x}
    >>> released = made(tables)
    >>> bool(np.allclose(released.marginal((0, 1)).sum(axis=1), released.marginal((0,))))
    True
    """

    strategy: Contrasts | Cells
    noise: Gaussian | Laplace
    moved: Sensitivity

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        workload: Workload,
        *,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
    ) -> "Marginals":
        """The least noise that keeps a promise for one unit with some rows: Laplace or Gaussian, which errs less."""
        promise = as_promise(spend)
        kinds: list[type[Gaussian] | type[Laplace]] = [Laplace] if promise.is_pure else [Laplace, Gaussian]
        if gaussian is not None:
            kinds = [Gaussian] if gaussian else [Laplace]
        made = []
        for kind in kinds:
            strategy = Contrasts(workload) if kind is Gaussian else Cells(workload)
            moved = strategy.sensitivity(rows, neighbours)
            made.append(cls(strategy, _noise(kind, promise, moved, strategy.numbers), moved))
        kept = [one for one in made if one.guarantee() <= promise]
        if not kept:
            raise InputError("No noise keeps this promise for marginals: choose a delta far below 1.")
        found = min(kept, key=lambda one: one.loss)
        if found.strategy.numbers > MOST_NUMBERS:
            raise InputError(f"These marginals need more than {MOST_NUMBERS:,} numbers: ask for fewer attributes.")
        return found

    @property
    def workload(self) -> Workload:
        """The marginals that can be asked for, and how many values attributes have."""
        return self.strategy.workload

    def guarantee(self) -> Guarantee:
        """What holds for one unit."""
        return self.noise.guarantee(self.moved)

    @property
    def loss(self) -> float:
        """The weighted sum of the variances of all cells."""
        spread = sum(v * self.strategy.spreads[a] for a, v in self.workload.losses.items())
        return spread * self.noise.variance()

    def __call__(self, tables: Mapping[Subset, Any], rng: Random = SYSTEM) -> "Estimate":
        """Release all marginals."""
        return self.infer(self.measure(tables, rng))

    def measure(self, tables: Mapping[Subset, Any], rng: Random = SYSTEM) -> Floats:
        """Noisy numbers: all that reads the data."""
        exact = {a: self._counts(a, tables) for a in self.workload.bases}
        return np.asarray(self.noise(self.strategy.measure(exact), rng), float)

    def _counts(self, attributes: Subset, tables: Mapping[Subset, Any]) -> Counts:
        found = np.asarray(tables[attributes])
        if found.shape != self.workload.shape(attributes) or found.dtype.kind not in "iu":
            raise InputError("Each table must have one whole number for each cell of its marginal.")
        return found.astype(np.int64)

    def infer(self, y: Floats) -> "Estimate":
        """The estimate of all marginals from noisy numbers."""
        return Estimate(self, self.strategy.infer(np.asarray(y, float)))

    # Errors, before anything is measured

    def variance(self, terms: Terms) -> float:
        """The variance of a weighted sum of the rows in boxes."""
        pairs = [(f * g, one, other) for f, one in terms for g, other in terms]
        spread = math.fsum(factor * self._covariance(one, other) for factor, one, other in pairs)
        return max(spread, 0.0) * self.noise.variance()

    def _covariance(self, one: Box, other: Box) -> float:
        """sum over A of s_A prod_A (|S & T| - |S||T|/n) prod_rest |S||T|/n^2, for boxes S and T."""
        shared = sorted(set(one) & set(other))
        for box in (one, other):
            self.within(box)
        apart = math.prod(float(box[i].mean()) for box in (one, other) for i in box if i not in shared)
        means = {i: float(one[i].mean() * other[i].mean()) for i in shared}
        inner = {i: float((one[i] & other[i]).sum()) - means[i] * len(one[i]) for i in shared}
        parts = [
            self.strategy.spreads[a] * math.prod(inner[i] if i in a else means[i] for i in shared)
            for a in self.within(shared)
        ]
        return apart * math.fsum(parts)

    def half_width(self, terms: Terms, level: float) -> float:
        """Half the width of the error bar that holds a weighted sum of boxes with the probability `level`, at least."""
        if isinstance(self.strategy, Contrasts):
            return math.sqrt(self.variance(terms)) * NormalDist().inv_cdf((1 + level) / 2)
        scales, times = self.strategy.coefficients(terms)
        return half_width(scales * math.sqrt(self.noise.variance() / 2), times, level)

    def cell_width(self, attributes: Subset, level: float) -> float:
        """The same for any cell of a marginal: they all have the same."""
        key = (attributes, level)
        if key not in self._widths:
            self._widths[key] = self.half_width(self.first_cell(attributes), level)
        return self._widths[key]

    @cached_property
    def _widths(self) -> dict[tuple[Subset, float], float]:
        return {}

    def first_cell(self, attributes: Subset) -> Terms:
        """The first cell of a marginal, as a sum of boxes."""
        return [(1.0, {i: np.arange(self.workload.sizes[i]) == 0 for i in attributes})]

    def within(self, attributes: Iterable[int]) -> list[Subset]:
        """The bases that add up to a marginal, if they were all measured."""
        found = subsets(i for i in sorted(attributes) if self.workload.sizes[i] > 1)
        if any(a not in self.workload.costs for a in found):
            raise InputError("Nothing was measured of these attributes together: name fewer of them.")
        return found


def _noise(
    kind: type[Gaussian] | type[Laplace], promise: Promise, moved: Sensitivity, numbers: int
) -> Gaussian | Laplace:
    """Noise on the finest of some grids on which it can be drawn; a coarser one costs a little of the promise."""
    size = moved.norm(kind.norm)
    near = size if kind is Gaussian else min(size, size / pure_epsilon(promise))  # never coarser than the noise
    for bits in _GRID_BITS[kind]:
        made = calibrate(kind, promise, sensitivity=moved, grid=Fraction(2) ** (floor_log2(near) - bits))
        wide = made.sigma if isinstance(made, Gaussian) else made.scale
        if wide / lattice_step(made.grid, numbers, kind.norm) <= LARGEST_SCALE:
            return made
    raise InputError("This much noise on this many numbers cannot be drawn: spend more, or ask for fewer marginals.")


@dataclass(frozen=True)
class Estimate:
    """Unbiased estimates of all marginals; what is stated of their errors follows from `made`, before any data."""

    made: Marginals
    residuals: Mapping[Subset, Floats]

    def marginal(self, attributes: Subset) -> Floats:
        """The estimated number of rows in each cell of a marginal."""
        workload = self.made.workload
        found = np.zeros(workload.shape(attributes))
        for a in self.made.within(attributes):
            spread = self.residuals[a].reshape([workload.sizes[i] if i in a else 1 for i in attributes])
            found += spread / workload.cells(tuple(i for i in attributes if i not in a))
        return found

    def count(self, terms: Terms) -> float:
        """The estimate of a weighted sum of the rows in boxes."""
        return float(sum(factor * self._inside(box) for factor, box in terms))

    def _inside(self, box: Box) -> float:
        attributes = tuple(sorted(box))
        return float(self.marginal(attributes)[np.ix_(*(box[i] for i in attributes))].sum())
