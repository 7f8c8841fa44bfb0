"""Quantiles with error bars: three draws by ranks, one for each end and one between.

The ends aim at ranks t below and above, and the bar spans all three draws. Where values lie evenly around, a drawn rank
errs like Laplace noise of scale 1/g (`Quantile.rate`). The bar misses on one side if both that end, with probability
e^(-g t)/2, and the middle, with 1/2, err to the other: e^(-g t)/2 on both sides together, so t = -ln(2 (1 - level))/g.

A quantile alone is drawn by permute and flip where an epsilon is to be kept and it errs less, as it does unless there
are few cells, else by the exponential mechanism, whose rho is smaller.

Three and more of the same values are drawn together by `Quantiles` (the middle one, then those of each half), where
that makes the product of their errors less. Then an error is a sum of Laplace noises of different scales b_k,

    P(|error| > t) = sum_k c_k e^(-t/b_k),   c_k = prod_(l != k) b_k^2/(b_k^2 - b_l^2),

and t leaves this at 2 (1 - level); for each quantile it is another one. How far ranks can be off whatever the values is
what `rank_error` tells: other cells than those around may be many, and as good but for e^(-g t).

Beyond the minimum and the maximum lie cells without values that are all as good, so these aim at a rank t within, where
t = ln(cells / (1 - level))/g leaves all those cells together a chance of 1 - level. Their bar goes from what is drawn
to the public bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.mechanisms import FlippedQuantile, Quantile, Quantiles
from noisette.privacy import ZCDP, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Measure

__all__ = ["Ends", "Ranks", "RanksTogether", "ranked", "ranks"]

Ends: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""A quantile of each group, and the ends of its error bar."""

One: TypeAlias = Quantile | FlippedQuantile
Cells: TypeAlias = NDArray[np.int64]

_END = Fraction(1, 4)  # of the share, for each end; the quantile itself gets the rest
_MANY = 3  # quantiles that are drawn together
_APART = 1.02  # scales are taken for at least that much apart, the larger ones for larger


@dataclass(frozen=True)
class Ranks:
    """The mechanisms for a quantile and for the ends of its error bar; minimum and maximum have but the first."""

    middle: One
    low: One | None
    high: One | None

    @property
    def at(self) -> tuple[Fraction, ...]:
        """Which quantile."""
        return (self.middle.q,)

    @property
    def mechanisms(self) -> tuple[One, ...]:
        """All that are drawn from."""
        return tuple(one for one in (self.middle, self.low, self.high) if one is not None)

    @property
    def said(self) -> str:
        """The mechanism in words."""
        return f"{'permute and flip' if isinstance(self.middle, FlippedQuantile) else 'exponential mechanism'} on ranks"

    assumed = ""

    def rank_error(self, level: float, at: Fraction | None = None) -> float:
        """By how many ranks the quantile is off at most, at that level and whatever the values."""
        return self.middle.rank_error(level) + float(abs(self.middle.shift))

    def draw(self, counts: Cells, measure: Measure, rng: Random) -> Ends:
        """The quantile of each group and the ends of its error bar, in natural units."""
        if not len(counts):
            return np.zeros(0), np.zeros(0), np.zeros(0)
        middle = np.asarray(self.middle(counts, rng))
        low, high = (middle if end is None else np.asarray(end(counts, rng)) for end in (self.low, self.high))
        if self.middle.q == 0:
            low = np.zeros_like(middle)
        if self.middle.q == 1:
            high = np.full_like(middle, measure.cells - 1)
        return _bars(middle, low, high, measure)


@dataclass(frozen=True)
class RanksTogether:
    """The mechanisms for several quantiles of the same values, and for the ends of their error bars."""

    middle: Quantiles
    low: Quantiles
    high: Quantiles

    @property
    def at(self) -> tuple[Fraction, ...]:
        """Which quantiles, in ascending order."""
        return self.middle.at

    @property
    def mechanisms(self) -> tuple[Quantiles, ...]:
        """All that are drawn from."""
        return self.middle, self.low, self.high

    @property
    def said(self) -> str:
        """The mechanism in words."""
        return f"exponential mechanism on ranks, {len(self.at)} quantiles together"

    assumed = "no more rows than these ranks share a value"

    def rank_error(self, level: float, at: Fraction) -> float:
        """By how many ranks t that quantile is off at most, at that level, where up to t rows are in a cell.

        A part that is split errs by more than t with a chance of at most N e^(-g t), N = cells g t + 1: its places that
        are off by more are at most `ties` in each cell, and towards them the others lie with at least ties/t to a rank,
        so their weights sum to at least ties (1 - e^(-g t))/(g t). One that is not split has N = cells - 1 others. So
        errors are at most ln(N)/g and a noise with the tail e^(-g t), and with their weights these add up.
        """
        scales = self.middle.scales()
        own, split = scales[self.at.index(at)], (scales > 0).sum(axis=0) > 1
        tail, t = _beyond(own, 1 - level, one_sided=True), float(own.sum())
        for _ in range(50):  # it grows to where it stays
            others = np.where(split, self.middle.cells * t / scales.diagonal() + 1, self.middle.cells - 1)
            t = float(own @ np.log(others)) + tail
        return t * (1 + 1e-3)

    def draw(self, counts: Cells, measure: Measure, rng: Random) -> Ends:
        """Of each quantile what `Ranks` has: it comes first, then the group."""
        if not len(counts):
            return (np.zeros((len(self.at), 0)),) * 3
        middle, low, high = (one.release(counts, rng).T for one in self.mechanisms)
        return _bars(middle, low, high, measure)


def _bars(middle: Cells, low: Cells, high: Cells, measure: Measure) -> Ends:
    """From cells to values: a bar spans all that was drawn for it."""
    cell = 0.0 if measure.grid == 1 else 0.5  # a cell stands for all values that are rounded to it
    ends = np.minimum(low, middle) - cell, np.maximum(high, middle) + cell
    below, above = (np.clip(end, 0, measure.cells - 1) for end in ends)
    value, lowest, highest = (
        (part.astype(float) + measure.low) * float(measure.grid) for part in (middle, below, above)
    )
    return value, lowest, highest


# Which mechanisms


def ranked(
    measure: Measure, at: Sequence[Fraction], share: Promise, reach: Sensitivity, level: float
) -> list[Ranks | RanksTogether]:
    """The mechanisms for quantiles of a measure, each of which has that share of a promise."""
    inner = sorted(q for q in at if q not in (0, 1))
    together = _together(measure, inner, share, reach, level) if len(inner) >= _MANY else None
    if together is None or _log_errors(together) > sum(_log_error(measure, q, share, reach) for q in inner):
        return [ranks(measure, q, share, reach, level) for q in sorted(at)]
    return [*(ranks(measure, q, share, reach, level) for q in sorted(set(at) - set(inner))), together]


def ranks(measure: Measure, at: Fraction, share: Promise | None, reach: Sensitivity, level: float) -> Ranks:
    """The mechanisms for one quantile that keep a share of a promise together."""
    assert share is not None
    cells = max(2, measure.cells)

    def made(part: Fraction, shift: Fraction = Fraction(0)) -> One:
        promise, exponential = _share(share, part), _exponential(measure, at, _share(share, part), reach, shift)
        if isinstance(promise, ZCDP) or at in (0, 1):
            return exponential
        flipped = FlippedQuantile.calibrated(promise, reach, q=at, cells=cells, shift=shift)
        return flipped if flipped.rank_error(level) <= exponential.rank_error(level) else exponential

    def away(part: Fraction, misses: float) -> Fraction:
        """The t with which e^(-g t) is so small, a little above 0 at least."""
        return _ranks(max(-math.log(misses), 0.01) / made(part, Fraction(1)).rate)

    if at in (0, 1):
        inward = away(Fraction(1), (1 - level) / cells)
        return Ranks(made(Fraction(1), inward if at == 0 else -inward), None, None)
    t = away(_END, 2 * (1 - level))
    return Ranks(made(1 - 2 * _END), made(_END, -t), made(_END, t))


def _exponential(
    measure: Measure, at: Fraction, promise: Promise, reach: Sensitivity, shift: Fraction = Fraction(0)
) -> Quantile:
    return Quantile.calibrated(promise, reach, q=at, cells=max(2, measure.cells), shift=shift)


def _together(
    measure: Measure, at: Sequence[Fraction], share: Promise, reach: Sensitivity, level: float
) -> RanksTogether:
    """The shares of all of them for one mechanism: the product of errors is least if each part has as much."""

    def made(part: Fraction, shift: Sequence[Fraction] | int = 0) -> Quantiles:
        promise = _share(share, part * len(at))
        return Quantiles.calibrated(promise, reach, at=at, cells=max(2, measure.cells), shift=shift)

    away = [_ranks(_beyond(scales, 2 * (1 - level))) for scales in made(_END).scales()]
    return RanksTogether(made(1 - 2 * _END), made(_END, [-t for t in away]), made(_END, away))


def _log_errors(together: RanksTogether) -> float:
    """The logarithm of the product of what quantiles err by, in standard deviations."""
    return float(np.log(2 * (together.middle.scales() ** 2).sum(axis=1)).sum()) / 2


def _log_error(measure: Measure, at: Fraction, share: Promise, reach: Sensitivity) -> float:
    """That of one quantile alone."""
    return math.log(2) / 2 - math.log(_exponential(measure, at, _share(share, 1 - 2 * _END), reach).rate)


def _share(promise: Promise, part: Fraction) -> Promise:
    """A part of a promise, without a delta: that belongs to the noise."""
    return ZCDP(promise.rho * part) if isinstance(promise, ZCDP) else Pure(promise.eps * part)


# What to expect


def _ranks(number: float) -> Fraction:
    return Fraction(number).limit_denominator(2**20)


def _beyond(scales: NDArray[np.float64], chance: float, *, one_sided: bool = False) -> float:
    """The t which a sum of Laplace noises exceeds, up or down, with that chance; a little above 0 at least.

    With `one_sided` the same for a sum of exponential noises.
    """
    largest = float(scales.max())
    known = sorted(round(float(scale) / largest, 9) for scale in scales if scale > 0)
    return largest * max(_quantile(tuple(known), chance, 1 if one_sided else 2), 0.01)


@lru_cache(maxsize=1024)
def _quantile(scales: tuple[float, ...], chance: float, power: int) -> float:
    """Scales that lie too near to each other are enlarged, which makes errors larger."""
    apart = [scales[0]]
    for scale in scales[1:]:
        apart.append(max(scale, _APART * apart[-1]))
    b = np.array(apart)
    ratios = 1 - (b / b[:, None]) ** power  # of row k: 1 - b_l^2/b_k^2, or without squares
    np.fill_diagonal(ratios, 1.0)
    weights, low, high = 1 / ratios.prod(axis=1), 0.0, 2.0
    while weights @ np.exp(-high / b) > chance:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if weights @ np.exp(-middle / b) > chance else (low, middle)
    return high
