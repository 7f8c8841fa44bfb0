"""The geometric mechanism: add two-sided geometric noise to whole numbers.

For answers at l1 distance d it is (d/scale)-DP, and no smaller epsilon holds, since
P(y|x)/P(y|x') = e^((|y-x'| - |y-x|)/scale).
For a single count it is optimal for every Bayesian analyst and every loss that grows with the error.
[Ghosh-Roughgarden-Sundararajan 2009]

When: a count, or a few whole numbers, with a pure epsilon; nothing is more accurate for a single count.
Textbook: Cormode, the geometric mechanism, where alpha should be e^-epsilon.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from noisette.exact.frozen import frozen, readable
from noisette.exact.random import SYSTEM, Random
from noisette.exact.vector import Scale
from noisette.laws import DiscreteLaplace
from noisette.laws.law import half_width
from noisette.mechanisms.additive.lattice import release_integers
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_distance, read_sensitivity
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import LatticeLaplace

__all__ = ["Geometric"]


@frozen
class Geometric(Mechanism):
    """Whole numbers plus noise z with P(z) = (1-a)/(1+a) a^|z|, a = e^(-1/scale).

    >>> m = Geometric(2)
    >>> m.guarantee(1), round(m.variance(), 4), m.interval(0.95)
    (Pure('1/2'), 7.8354, 6.0)
    >>> type(m(42)).__name__, m([1, 2, 3]).shape
    ('int', (3,))
    """

    __repr__ = readable
    kind = Output.NUMBERS
    grid: ClassVar[Fraction] = Fraction(1)
    scale: Scale
    norm: ClassVar[float] = 1

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1) -> "Geometric":
        """Return the least noise that keeps the guarantee."""
        agreed(guarantee, sensitivity)
        return cls(read_sensitivity(sensitivity, cls.norm) / pure_epsilon(guarantee))

    @property
    def law(self) -> DiscreteLaplace:
        """The law of the noise."""
        return DiscreteLaplace(self.scale)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Release a private version of whole numbers."""
        return release_integers(x, lambda _, shape: self.law.sample(shape, rng))

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(distance / scale)."""
        d, neighbours = read_distance(distance, self.norm)
        return Pure(d / self.scale, neighbours=neighbours, losses=once(self._loss(math.ceil(d))))

    def _loss(self, steps: int) -> LatticeLaplace | None:
        return LatticeLaplace(steps / self.scale, steps) if steps else None

    def pmf(self, y: Any, x: Any) -> Any:
        """P(x is released as y), for single numbers or arrays of them."""
        return self.law.pmf(np.subtract(y, x))

    def variance(self) -> float:
        """2a / (1-a)^2."""
        return self.law.variance()

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest t with P(|error| <= t) >= level."""
        return float(half_width(self.law, level))

    def pairs(self) -> Sequence[tuple[int, int, int]]:
        """Any two neighbours are worst: the loss is d/scale on one side of both."""
        return [(0, 1, 1), (5, 2, 3)]

    def support(self, x: int) -> Any:
        """Outputs within the noise's 1e-14 quantiles."""
        reach = half_width(self.law, 1 - 1e-14)
        return np.arange(x - reach, x + reach + 1)


examples = [Geometric(1), Geometric("5/2"), Geometric("1/3"), Geometric(40)]
