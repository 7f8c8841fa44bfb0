"""What mechanisms on a lattice share: integer noise on the multiples of a public grid."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.laws.law import Law, half_width
from noisette.mechanisms.calibration import slack
from noisette.mechanisms.contract import Mechanism, Output

__all__ = ["OnLattice", "lattice_pairs", "lattice_point"]


def lattice_point(x: Any, grid: Fraction) -> int:
    """Return the multiple of the grid to which a single number is rounded."""
    return round(Fraction(x) / grid)


def lattice_pairs(grid: Fraction, steps: Sequence[int]) -> list[tuple[Any, Any, Fraction]]:
    """Return answers whose lattice points are `steps` apart although they are hardly one grid less apart themselves."""
    if grid == 1:
        return [(0, n, Fraction(n)) for n in steps]
    hair = grid / 2**40
    return [(grid / 2 - hair, (n - 1) * grid + grid / 2 + hair, (n - 1) * grid + 2 * hair) for n in steps]


class OnLattice(Mechanism):
    """A mechanism with a `grid` and, in its units, the `law` of the noise on a single number."""

    kind = Output.NUMBERS
    grid: Fraction

    @property
    def law(self) -> Law:
        """The law of the noise on a single number, in grid units."""
        raise NotImplementedError

    def pmf(self, y: Any, x: Any) -> Any:
        """P(the single number x is released as y), for one y or an array of them: 0 off the grid."""
        places = np.vectorize(lambda v: float(Fraction(v) / self.grid), [float])(y)
        nearest = np.rint(places)
        on_grid = np.abs(places - nearest) <= 1e-9 * np.maximum(1, np.abs(places))
        return np.where(on_grid, self.law.pmf(nearest - lattice_point(x, self.grid)), 0.0)[()]

    def variance(self) -> float:
        """The noise's variance; rounding adds at most grid^2 / 4."""
        return self.law.variance() * float(self.grid) ** 2

    def interval(self, level: float = 0.95) -> float:
        """Return a t with P(|error| <= t) >= level: the noise's half-width, and half a grid for rounding."""
        return float((half_width(self.law, level) + slack(self.grid) / self.grid / 2) * self.grid)

    def pairs(self) -> Sequence[tuple[Any, Any, Fraction]]:
        """Neighbours that rounding moves one grid further apart."""
        return lattice_pairs(self.grid, [1, 3])

    def support(self, x: Any) -> Any:
        """Lattice points within the noise's 1e-14 quantiles."""
        reach, centre = half_width(self.law, 1 - 1e-14), lattice_point(x, self.grid)
        return np.array([float(k * self.grid) for k in range(centre - reach, centre + reach + 1)])
