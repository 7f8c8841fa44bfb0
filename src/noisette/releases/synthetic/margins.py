"""One mass for each bin of each attribute: the mean of all that was measured of it, weighed by precision.

Each measured pair says how many rows each of its bins has, with the noise of the cells that are added up. Pairs are
then moved, as little as possible, such that they agree with the mean: what tables contradict each other by is noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noisette.releases.synthetic.coarsening import Floats, nonnegative
from noisette.releases.synthetic.particles import Measured
from noisette.releases.synthetic.tables import Coarse

__all__ = ["Margins"]


@dataclass
class Margins:
    """Masses of bins and their precisions (inverse variances); both move as pairs are measured."""

    masses: list[Floats]
    precisions: list[Floats]

    @staticmethod
    def of(masses: Sequence[Floats], coarse: Sequence[Coarse], sigmas: Sequence[float]) -> "Margins":
        """What one-way tables say: a bin has the noise of all its values."""
        precisions = [1 / (sigma**2 * one.widths) for one, sigma in zip(coarse, sigmas, strict=True)]
        return Margins(list(masses), precisions)

    @property
    def rows(self) -> float:
        """How many rows there are."""
        return float(np.mean([mass.sum() for mass in self.masses]))

    def add(self, one: Measured) -> None:
        """Take what a pair says of its two attributes into the means."""
        for axis, i in enumerate(one.pair):
            new = 1 / (one.sigma**2 * one.y.shape[1 - axis])
            total = self.precisions[i] + new
            mean = (self.precisions[i] * self.masses[i] + new * one.y.sum(axis=1 - axis)) / total
            self.masses[i], self.precisions[i] = nonnegative(mean, float(self.masses[i].sum())), total

    def product(self, i: int, j: int) -> Floats:
        """A pair as if both attributes were independent."""
        return np.outer(self.masses[i], self.masses[j]) / self.rows

    def agreed(self, one: Measured) -> Floats:
        """The nearest table (in l2) to the measured one whose sums are the masses.

        >>> margins = Margins([np.array([4.0, 6.0]), np.array([5.0, 5.0])], [np.ones(2), np.ones(2)])
        >>> margins.agreed(Measured((0, 1), np.array([[1.0, 2.0], [3.0, 6.0]]), 1.0)).tolist()
        [[2.5, 1.5], [2.5, 3.5]]
        """
        i, j = one.pair
        first, second = self.masses[i] - one.y.sum(axis=1), self.masses[j] - one.y.sum(axis=0)
        rows, columns = one.y.shape
        both = (first.sum() + second.sum()) / 2
        return np.asarray(one.y + first[:, None] / columns + second[None, :] / rows - both / one.y.size)
