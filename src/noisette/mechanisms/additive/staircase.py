"""The staircase mechanism: the least expected error that pure differential privacy allows one real number.

Noise density falls by e^-epsilon from step to step, each step as wide as the sensitivity, so two answers that far apart
see densities at most e^epsilon apart: it is epsilon-DP, and no less however small their distance, because the steps
have edges. Best for one release with epsilon of 2 or more; it composes badly.   [Geng-Viswanath 2014]

The part of a step that stays high is gamma = 1/(1 + e^(epsilon/2)), which minimises E|error| = sensitivity
e^(epsilon/2)/(e^epsilon - 1). On the lattice it is rounded to whole cells, which costs no privacy.

When: one real number with an epsilon of 2 or more; below that Laplace noise is as good.
Textbook: not in the textbooks.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Read, default, frozen, readable, set_fields
from noisette.exact.number import Number, fraction, positive
from noisette.exact.random import SYSTEM, Random
from noisette.laws import DiscreteStaircase
from noisette.mechanisms import calibration as base
from noisette.mechanisms.additive.lattice import OnLattice, lattice_pairs, release_integers, release_reals
from noisette.mechanisms.contract import Distance
from noisette.privacy import Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Staircase"]


@frozen
class Staircase(OnLattice):
    """Numbers of which one person moves a single one, by at most `sensitivity`, plus staircase noise.

    >>> m = Staircase(2, sensitivity=1)
    >>> m.guarantee(), round(m.law.mean_absolute() * float(m.grid), 5)
    (Pure('2'), 0.42546)
    """

    __repr__ = readable
    sized_by = "epsilon"
    epsilon: Annotated[Positive, partial(positive, most=1000)]
    _: KW_ONLY
    sensitivity: Positive = default(1)
    grid: base.Grid = default(None)
    gamma: Read[Number | None, Fraction] = default(None)
    norm: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        best = 1 / (1 + math.exp(float(self.epsilon) / 2))
        gamma = fraction(best if self.gamma is None else self.gamma, "gamma")
        set_fields(self, grid=base.read_grid(self.grid, self.sensitivity), gamma=gamma)
        if not 0 <= self.gamma <= 1:
            raise InputError("gamma must lie between 0 and 1: it is the part of a step that stays high.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, grid: Number | None = None) -> "Staircase":
        """Return the mechanism that keeps the guarantee; each number that one person can move costs its share."""
        base.agreed(guarantee, sensitivity)
        moved = max(1, sensitivity.l0) if isinstance(sensitivity, Sensitivity) else 1
        size = base.read_sensitivity(sensitivity, cls.norm)
        return cls(base.pure_epsilon(guarantee) / moved, sensitivity=size, grid=grid)

    @property
    def law(self) -> DiscreteStaircase:
        """The law of the noise in grid units; a step is as wide as rounded answers can be apart."""
        width = math.floor((self.sensitivity + base.slack(self.grid)) / self.grid)
        inner = min(width, max(1, round(self.gamma * width)))
        return DiscreteStaircase(self.epsilon, width=max(1, width), inner=inner)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Release a private version of one number or of an array of them."""

        def noise(_: Fraction, shape: tuple[int, ...] | None) -> Any:
            return self.law.sample(shape, rng)

        return release_integers(x, noise) if self.grid == 1 else release_reals(x, self.grid, self.norm, noise)

    def guarantee(self, distance: Distance | None = None) -> Promise:
        """Return Pure(epsilon) for each started `sensitivity` of distance, times the numbers that one person moves."""
        if distance is None:
            distance = self.sensitivity
        d, neighbours = base.read_distance(distance, self.norm)
        moved = distance.l0 if isinstance(distance, Sensitivity) else 1
        cells = math.floor((d + base.slack(self.grid)) / self.grid) if d else 0
        return Pure(self.epsilon * moved * -(-cells // self.law.width), neighbours=neighbours)

    def pairs(self) -> Sequence[tuple[Any, Any, Fraction]]:
        """Neighbours one cell, one step, and a little more than one step apart."""
        return lattice_pairs(self.grid, [1, self.law.width, self.law.width + 1])


examples = [Staircase(1, grid="1/8"), Staircase(4, sensitivity="5/2", grid="1/10"), Staircase(2, sensitivity=3, grid=1)]
