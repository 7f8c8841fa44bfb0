"""The K-norm mechanism: noise with probability proportional to e^(-||z||/scale), for the norms l1, l2 and l∞.

For vectors at distance d in that norm it is ((d + grid)/scale)-DP, by the triangle inequality and because every shift
of the law has the same normaliser.   [Hardt-Talwar 2010]
With l∞ the largest error over d queries of sensitivity 1 grows as d/epsilon, where Laplace needs d ln(d)/epsilon.
[Steinke-Ullman 2017]

When: the largest error of many queries matters, or their sensitivity is best bounded in l2 or l∞.
Textbook: lecture on workloads of counting queries, the K-norm mechanism.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Whole, default, frozen, readable, set_fields
from noisette.exact.number import Number, level_of
from noisette.exact.random import SYSTEM, Random
from noisette.laws import NormBall
from noisette.laws.law import smallest
from noisette.laws.norm_ball import Norm
from noisette.mechanisms import calibration as base
from noisette.mechanisms.additive.lattice import (
    integer_answer,
    lattice_pairs,
    lattice_point,
    lattice_step,
    real_answer,
    release_integers,
    release_reals,
)
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import Promise, Pure

__all__ = ["KNorm"]


@frozen
class KNorm(Mechanism):
    """A vector of `dimension` numbers plus noise of a norm (1, 2 or math.inf); with `grid=1`, whole numbers.

    >>> m = KNorm(math.inf, scale=2, dimension=4)
    >>> m([0.5, 1, 2, 3]).shape, round(float(m.guarantee(1).epsilon), 6)
    ((4,), 0.5)
    """

    __repr__ = readable
    kind = Output.VECTOR
    norm: Norm
    scale: Positive
    _: KW_ONLY
    dimension: Whole
    grid: base.Grid = default(None)

    def __post_init__(self) -> None:
        set_fields(self, grid=base.read_grid(self.grid, self.scale))

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        norm: float | str = math.inf,
        dimension: int,
        grid: Number | None = None,
    ) -> "KNorm":
        """Return the least noise of a norm that keeps the guarantee for a sensitivity in that norm."""
        base.agreed(guarantee, sensitivity)
        size = base.read_sensitivity(sensitivity, math.inf if norm == "inf" else norm)  # type: ignore[arg-type]
        epsilon = base.pure_epsilon(guarantee)
        step = base.read_grid(grid, min(size, size / epsilon))
        return cls(norm, (size + base.slack(step)) / epsilon, dimension=dimension, grid=step)

    def _law(self, step: Fraction) -> NormBall:
        return NormBall(self.norm, self.scale / step, dimension=self.dimension)

    @property
    def step(self) -> Fraction:
        """The lattice's step, fine enough that rounding all coordinates costs at most one grid."""
        return self.grid if self.grid == 1 else lattice_step(self.grid, self.dimension, self.norm)

    @property
    def law(self) -> NormBall:
        """The law of the noise, in units of `step`."""
        return self._law(self.step)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Release a private version of a vector."""
        answer = integer_answer(x) if self.grid == 1 else real_answer(x)
        if answer.size != self.dimension:
            raise InputError(f"This mechanism is for {self.dimension} numbers at a time: pass that many.")

        def noise(step: Fraction, shape: tuple[int, ...] | None) -> Any:
            z = self._law(step).sample(rng)
            return int(z[0]) if shape is None else z.reshape(shape)

        return release_integers(x, noise) if self.grid == 1 else release_reals(x, self.grid, self.norm, noise)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure((distance + grid) / scale); with grid = 1, Pure(distance / scale)."""
        d, neighbours = base.read_distance(distance, self.norm)
        return Pure((d + base.slack(self.grid)) / self.scale if d else 0, neighbours=neighbours)

    def pmf(self, y: Any, x: Any) -> Any:
        """P(the vector x is released as y), for one y or for each row of a matrix: 0 off the lattice."""
        step = float(self.step)
        places = np.asarray(y, dtype=float) / step
        centre = np.array([lattice_point(v, self.step) for v in np.ravel(x)])
        on_grid = (np.abs(places - np.rint(places)) <= 1e-9 * np.maximum(1, np.abs(places))).all(axis=-1)
        return np.where(on_grid, self.law.pmf(np.rint(places) - centre), 0.0)[()]

    def variance(self) -> float:
        """The variance of one coordinate's noise; rounding adds at most step^2 / 4."""
        return self.law.variance() * float(self.step) ** 2

    def interval(self, level: float = 0.95) -> float:
        """Return a t with P(|error of one coordinate| <= t) >= level."""
        return self._width(lambda t: float(self.law.tail(t)), level)

    def largest_error(self, level: float = 0.95) -> float:
        """Return a t with P(all errors <= t) >= level: exact for l1 and l∞, a union bound for l2."""
        return self._width(self.law.largest_tail, level)

    def _width(self, tail: Any, level: float) -> float:
        level_of(level)
        cells = smallest(lambda t: tail(t) <= 1 - level)
        return float(cells * self.step + base.slack(self.grid) / self.grid * self.step / 2)

    def pairs(self) -> Sequence[tuple[Any, Any, Fraction]]:
        """The origin and a vector that rounding moves furthest for its length."""
        along_one = [0] * (self.dimension - 1)
        if self.grid == 1:
            return [([0, *along_one], [2, *along_one], Fraction(2))]
        (a, b, distance), *_ = lattice_pairs(self.step, [2])
        if self.norm == math.inf:
            return [([a] * self.dimension, [b] * self.dimension, distance)]
        return [([a, *along_one], [b, *along_one], distance)]

    def support(self, x: Any) -> Any:
        """The lattice points of a cube around x with all but 1e-14 of the probability (small dimensions only)."""
        reach = smallest(lambda t: self.dimension * float(self.law.tail(t)) <= 1e-14)
        centre = [lattice_point(v, self.step) for v in np.ravel(x)]
        axes = [range(c - reach, c + reach + 1) for c in centre]
        return np.array(list(itertools.product(*axes))) * float(self.step)


examples = [
    KNorm(1, scale=1, dimension=2, grid=1),
    KNorm(2, scale="3/2", dimension=2, grid=1),
    KNorm(math.inf, scale=2, dimension=2, grid=1),
    KNorm(math.inf, scale="1/2", dimension=3, grid=1),
    KNorm(2, scale=1, dimension=2, grid="1/2"),
]
