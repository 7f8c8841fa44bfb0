"""The Laplace mechanism on a grid: round real answers to a fine lattice, add discrete Laplace noise there.

For answers at l1 distance d it is ((d + grid)/scale)-DP: rounding moves the answers apart by at most one grid in all
(see `lattice`), and discrete Laplace noise of that scale hides a distance of d' in d'/scale.   [Dwork-McSherry-Nissim-
Smith 2006; on a grid because floating-point noise leaks: Mironov 2012]

With `grid=1` the answers must be whole numbers, nothing is rounded, and it is the geometric mechanism.

When: real numbers with a pure epsilon; for whole ones `Geometric` says the same with less to choose.
Textbook: lecture notes and Smith, the Laplace mechanism, which hides an l1 and not an l2 sensitivity.
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

from noisette.exact.frozen import KW_ONLY, Positive, default, frozen, readable, set_fields
from noisette.exact.number import Number
from noisette.exact.random import SYSTEM, Random
from noisette.laws import DiscreteLaplace
from noisette.mechanisms import calibration as base
from noisette.mechanisms.additive.lattice import OnLattice, drawable, release_integers, release_reals
from noisette.mechanisms.contract import Distance
from noisette.privacy import Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import LatticeLaplace

__all__ = ["Laplace"]


@frozen
class Laplace(OnLattice):
    """Real numbers plus Laplace noise of a scale, on a grid about 2^-30 of it unless you choose one.

    >>> m = Laplace(2)
    >>> round(m.interval(0.95), 4), round(m.variance(), 4), type(m(0.5)).__name__
    (5.9915, 8.0, 'float')
    >>> float(m.guarantee(1).epsilon)
    0.5000000009313226
    """

    __repr__ = readable
    scale: Positive
    _: KW_ONLY
    grid: base.Grid = default(None)
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        set_fields(self, grid=base.read_grid(self.grid, self.scale))

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, grid: Number | None = None) -> "Laplace":
        """Return the least noise that keeps the guarantee; the sensitivity is rounded up for the grid."""
        base.agreed(guarantee, sensitivity)
        size, epsilon = base.read_sensitivity(sensitivity, cls.norm), base.pure_epsilon(guarantee)
        # never so fine that long answers have no sampler; the rounding costs at most 2^-20 of the sensitivity
        step = base.read_grid(grid, max(min(size, size / epsilon), min(size / epsilon / 64, 1024 * size)))
        return cls((size + base.slack(step)) / epsilon, grid=step)

    @property
    def law(self) -> DiscreteLaplace:
        """The law of the noise on a single number, in grid units."""
        return DiscreteLaplace(self.scale / self.grid)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Release a private version of one real number or an array of them."""

        def noise(step: Fraction, shape: tuple[int, ...] | None) -> Any:
            return DiscreteLaplace(drawable(self.scale / step, self.grid, shape)).sample(shape, rng)

        return release_integers(x, noise) if self.grid == 1 else release_reals(x, self.grid, self.norm, noise)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure((distance + grid) / scale); with grid = 1, Pure(distance / scale)."""
        d, neighbours = base.read_distance(distance, self.norm)
        if not d:
            return Pure(0, neighbours=neighbours)
        moved = d + base.slack(self.grid)
        steps = math.ceil(moved / self.grid)  # a coarser lattice dominates the finer ones of longer answers
        loss = LatticeLaplace(steps * self.grid / self.scale, steps)
        return Pure(moved / self.scale, neighbours=neighbours, losses=once(loss))


examples = [Laplace(1, grid="1/8"), Laplace("5/2", grid="1/10"), Laplace(3, grid=1)]
