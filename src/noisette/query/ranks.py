"""A quantile with an error bar: three draws by the exponential mechanism, one for each end and one between.

The ends aim at ranks t below and above, and the bar spans all three draws. Where values lie evenly around, a drawn rank
errs like Laplace noise of scale 1/g (`Quantile.rate`). The bar misses on one side if both that end, with probability
e^(-g t)/2, and the middle, with 1/2, err to the other: e^(-g t)/2 on both sides together, so t = -ln(2 (1 - level))/g.

Beyond the minimum and the maximum lie cells without values that are all as good, so these aim at a rank t within, where
t = ln(cells / (1 - level))/g leaves all those cells together a chance of 1 - level. Their bar goes from what is drawn
to the public bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.mechanisms import Quantile
from noisette.privacy import ZCDP, Approx, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Measure

__all__ = ["Ranks", "ranks"]

_END = Fraction(1, 4)  # of the share, for each end; the quantile itself gets the rest


@dataclass(frozen=True)
class Ranks:
    """The mechanisms for a quantile and for the ends of its error bar; minimum and maximum have but the first."""

    middle: Quantile
    low: Quantile | None
    high: Quantile | None

    @property
    def mechanisms(self) -> tuple[Quantile, ...]:
        """All that are drawn from."""
        return tuple(one for one in (self.middle, self.low, self.high) if one is not None)

    def rank_error(self, level: float) -> float:
        """By how many ranks the quantile is off at most, at that level and whatever the values."""
        return self.middle.rank_error(level) + float(abs(self.middle.shift))

    def draw(
        self, counts: NDArray[np.int64], measure: Measure, rng: Random
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The quantile of each group and the ends of its error bar, in natural units."""
        if not len(counts):
            return np.zeros(0), np.zeros(0), np.zeros(0)
        middle = np.asarray(self.middle(counts, rng))
        low, high = (middle if end is None else np.asarray(end(counts, rng)) for end in (self.low, self.high))
        if self.middle.q == 0:
            low = np.zeros_like(middle)
        if self.middle.q == 1:
            high = np.full_like(middle, measure.cells - 1)
        cell = 0.0 if measure.grid == 1 else 0.5  # a cell stands for all values that are rounded to it
        ends = np.minimum(low, middle) - cell, np.maximum(high, middle) + cell
        low, high = (np.clip(end, 0, measure.cells - 1) for end in ends)
        value, below, above = ((part + measure.low) * float(measure.grid) for part in (middle, low, high))
        return value, below, above


def ranks(measure: Measure, at: Fraction, share: Promise | None, reach: Sensitivity, level: float) -> Ranks:
    """The mechanisms that keep a share of a promise together."""
    assert share is not None
    promise = Pure(share.eps) if isinstance(share, Approx) else share  # delta belongs to the noise
    cells = max(2, measure.cells)

    def made(part: Fraction, shift: Fraction = Fraction(0)) -> Quantile:
        return Quantile.calibrated(_share(promise, part), reach, q=at, cells=cells, shift=shift)

    def away(part: Fraction, misses: float) -> Fraction:
        """The t with which e^(-g t) is so small, a little above 0 at least."""
        return Fraction(max(-math.log(misses), 0.01) / made(part, Fraction(1)).rate).limit_denominator(2**20)

    if at in (0, 1):
        inward = away(Fraction(1), (1 - level) / cells)
        return Ranks(made(Fraction(1), inward if at == 0 else -inward), None, None)
    t = away(_END, 2 * (1 - level))
    return Ranks(made(1 - 2 * _END), made(_END, -t), made(_END, t))


def _share(promise: Promise, part: Fraction) -> Promise:
    match promise:
        case Pure(eps):
            return Pure(eps * part)
        case ZCDP(rho):
            return ZCDP(rho * part)
        case Approx(eps, delta):
            return Approx(eps * part, delta * part)
