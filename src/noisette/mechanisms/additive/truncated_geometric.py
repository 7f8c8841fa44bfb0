"""The truncated geometric mechanism: geometric noise, clamped to a public range.

P(0|x) = a^x/(1+a), P(n|x) = a^(n-x)/(1+a) at the ends, (1-a)/(1+a) a^|y-x| between, for the range 0 .. n.
Clamping is post-processing of the geometric mechanism, so it is (d/scale)-DP as well, and no less.
Clamped counts are biased: for sums of many cells release them unclamped.   [Ghosh-Roughgarden-Sundararajan 2009]

When: a single count must lie in its range, for a form or a table that allows no -3; not for cells to be added up.
Textbook: Cormode, the truncated geometric mechanism, where alpha should be e^-epsilon.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, frozen, readable
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.vector import Scale
from noisette.laws.law import half_width
from noisette.mechanisms.additive.geometric import Geometric
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_sensitivity
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import Promise

__all__ = ["TruncatedGeometric"]


@frozen
class TruncatedGeometric(Mechanism):
    """Geometric noise on a count that is publicly known to lie in low .. high.

    >>> m = TruncatedGeometric(1, low=0, high=10)
    >>> round(float(m.pmf(0, 3)), 6), round(float(m.pmf(10, 3)), 6), 0 <= m(3) <= 10
    (0.036397, 0.000667, True)
    """

    __repr__ = readable
    kind = Output.CLAMPED
    scale: Scale
    _: KW_ONLY
    low: Annotated[int, partial(whole, least=-(2**62))] = 0
    high: Annotated[int, partial(whole, least=-(2**62))]
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        if not self.low < self.high <= 2**62:
            raise InputError("low must be below high, and both within 2^62: give the public range of the count.")

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, low: int = 0, high: int
    ) -> "TruncatedGeometric":
        """Return the least noise that keeps the guarantee."""
        agreed(guarantee, sensitivity)
        return cls(read_sensitivity(sensitivity, cls.norm) / pure_epsilon(guarantee), low=low, high=high)

    @property
    def unclamped(self) -> Geometric:
        """What adds the noise before the range clamps it."""
        return Geometric(self.scale)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Release a private version; an answer outside the range is first put at its end."""
        inside = np.clip(integer_answer(x), self.low, self.high)
        y = np.clip(self.unclamped(inside, rng), self.low, self.high)
        return y if np.ndim(x) else int(y)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(distance / scale): the end points see the full loss, so nothing is gained by truncation."""
        return self.unclamped.guarantee(distance)

    def pmf(self, y: Any, x: Any) -> Any:
        """P(x is released as y), by the closed form."""
        x, y = np.clip(x, self.low, self.high), np.asarray(y)
        law = self.unclamped.law
        at_end = np.where(y == self.low, law.cdf(self.low - x), law.cdf(x - self.high))
        inside = np.where((y == self.low) | (y == self.high), at_end, law.pmf(y - x))
        return np.where((y < self.low) | (y > self.high), 0.0, inside)[()]

    def variance(self) -> float:
        """Mean squared error at worst over x, the middle of the range (over 2^20 values: that without truncation)."""
        if self.high - self.low > 2**20:
            return self.unclamped.variance()
        y = np.arange(self.low, self.high + 1)
        middle = (self.low + self.high) // 2
        return float(max(np.sum(self.pmf(y, x) * (y - x) ** 2) for x in (self.low, middle)))

    def interval(self, level: float = 0.95) -> float:
        """Return a t with P(|error| <= t) >= level for every x: clamping only brings the release nearer."""
        return float(min(half_width(self.unclamped.law, level), self.high - self.low))

    def pairs(self) -> Sequence[tuple[int, int, int]]:
        """Neighbours at an end and within."""
        return [(self.low, self.low + 1, 1), (self.high, self.high - 1, 1)]

    def support(self, x: int) -> Any:
        """The whole range (or the part that noise reaches)."""
        reach = half_width(self.unclamped.law, 1 - 1e-14)
        inner = np.arange(max(self.low, x - reach), min(self.high, x + reach) + 1)
        return np.unique(np.concatenate([inner, [self.low, self.high]]))


examples = [TruncatedGeometric(1, high=10), TruncatedGeometric("5/2", low=-3, high=4), TruncatedGeometric(10, high=1)]
