"""Quantiles with error bars: the two ends are drawn by ranks, and the quantile is the cell between them.

The ends aim at ranks t below and above. Where values lie evenly around, a drawn rank errs like Laplace noise of scale
1/g (`Quantile.rate`), so an end is beyond the quantile with probability e^(-g t)/2. The bar spans both draws, and
t = -ln(1 - level)/g leaves the two ends together 1 - level. This asks only that ranks err so, not that values have the
same density below and above: a bar that is a part or a multiple of what is drawn would.

The privacy budget goes to the ends alone, a half each. In units of 1/G, the scale with the whole of an epsilon, the bar
is then 2 ln(20) = 6.0 to each side at a level of 95 %, and the quantile errs by 4.1 (half a sum of two noises). With a
draw for the quantile as well, of half the budget, they were 9.2 and 6.0.

A quantile alone is drawn by permute and flip where an epsilon is to be kept and it errs less, as it does at all usual
levels, else by the exponential mechanism, whose rho is smaller.

Three and more of the same values are drawn together by `Quantiles` (the middle one, then those of each half), where
that makes the product of their errors less. Then an error is a sum of Laplace noises of different scales b_k,

    P(|error| > t) = sum_k c_k e^(-t/b_k),   c_k = prod_(l != k) b_k^2/(b_k^2 - b_l^2),

and t leaves this at 1 - level; for each quantile it is another one. How far ranks can be off whatever the values is
what `rank_error` returns: other cells than those around may be many, and each has only e^(-g t) less weight. A bar that
holds for all values is as long as that, and with an epsilon it has to grow with ln(cells): if it spans k ranks to each
side, it is {x} for 2 k + 1 rows of value x, with probability `level`. Without rows it is then {x} with e^(-epsilon (2 k
+ 1)) times that, for each of the cells, so 2 k + 1 >= ln(level cells)/epsilon.   [packing: Hardt-Talwar 2010]

Beyond the minimum and the maximum lie cells without values that are all as good, so these aim at a rank t within, where
t = ln(cells / (1 - level))/g leaves all those cells together a chance of 1 - level. Their bar goes from what is drawn
to the public bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.mechanisms import FlippedQuantile, Quantile, Quantiles
from noisette.privacy import ZCDP, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Measure

__all__ = ["Ends", "Ranks", "RanksTogether", "ranked", "ranks"]

Ends: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""A quantile of each group, and the ends of its error bar."""

One: TypeAlias = Quantile | FlippedQuantile
Cells: TypeAlias = NDArray[np.int64]

_END = Fraction(1, 2)  # of the share, for each end
_MANY = 3  # quantiles that are drawn together
_APART = 1.02  # scales are taken for at least that much apart, the larger ones for larger


@dataclass(frozen=True)
class Ranks:
    """The mechanisms for the ends of a quantile's error bar, lower first; minimum and maximum have one alone."""

    ends: tuple[One, ...]

    @property
    def at(self) -> tuple[Fraction, ...]:
        """Which quantile."""
        return (self.ends[0].q,)

    @property
    def mechanisms(self) -> tuple[One, ...]:
        """All that are drawn from."""
        return self.ends

    @property
    def description(self) -> str:
        """The mechanism in words."""
        flipped = isinstance(self.ends[0], FlippedQuantile)
        return f"{'permute and flip' if flipped else 'exponential mechanism'} on ranks"

    @property
    def assumed(self) -> str:
        """What the error bar takes for granted."""
        return "" if len(self.ends) == 1 else _around(self.ends[1].shift)

    def rank_error(self, level: float, at: Fraction | None = None) -> float:
        """By how many ranks the quantile is off at most, at that level and whatever the values.

        It lies between the ends, so that it is no further above than the upper one, and no further below than the
        lower one. So one end strays among the cells above only, and the other among those below. The chance to stray
        is concave in the number N of such cells, E[K/(K + 1)] for a binomial K or N p/(1 + N p), so that together it is
        largest if each has half of them.
        """
        if len(self.ends) == 1:
            return self.ends[0].rank_error(level) + float(abs(self.ends[0].shift))
        halves = (replace(end, cells=end.cells // 2 + 1) for end in self.ends)
        return max(end.rank_error((1 + level) / 2) + float(abs(end.shift)) for end in halves)

    def draw(self, counts: Cells, measure: Measure, rng: Random) -> Ends:
        """The quantile of each group and the ends of its error bar, in natural units."""
        if not len(counts):
            return np.zeros(0), np.zeros(0), np.zeros(0)
        counts = _wide(counts)
        first, last = np.asarray(self.ends[0](counts, rng)), self.ends[-1]
        if last.q == 0:
            return _bars(first, np.zeros_like(first), first, measure)
        if last.q == 1:
            return _bars(first, first, np.full_like(first, measure.cells - 1), measure)
        return _between(first, np.asarray(last(counts, rng)), measure)


@dataclass(frozen=True)
class RanksTogether:
    """The mechanisms for the ends of the error bars of several quantiles of the same values."""

    low: Quantiles
    high: Quantiles

    @property
    def at(self) -> tuple[Fraction, ...]:
        """Which quantiles, in ascending order."""
        return self.low.at

    @property
    def mechanisms(self) -> tuple[Quantiles, ...]:
        """All that are drawn from."""
        return self.low, self.high

    @property
    def description(self) -> str:
        """The mechanism in words."""
        return f"exponential mechanism on ranks, {len(self.at)} quantiles together"

    @property
    def assumed(self) -> str:
        """What the ranks and the error bars take for granted."""
        return f"no more rows than these ranks share a value; {_around(max(self.high.shift))}"

    def rank_error(self, level: float, at: Fraction) -> float:
        """By how many ranks t that quantile is off at most, at that level, where up to t rows are in a cell.

        As in `Ranks`, by no more than the ends. A part that is split errs by more than t with a chance of at most
        N e^(-g t), N = cells g t + 1: its places that are off by more are at most `ties` in each cell, and towards them
        the others lie with at least ties/t to a rank, so their weights sum to at least ties (1 - e^(-g t))/(g t). One
        that is not split has N = cells - 1 others. So errors are at most ln(N)/g and a noise with the tail e^(-g t),
        and with their weights these add up.
        """
        scales, which = self.high.scales(), self.at.index(at)
        own, split = scales[which], (scales > 0).sum(axis=0) > 1
        tail, t = _beyond(own, (1 - level) / 2, one_sided=True), float(own.sum())
        for _ in range(50):  # it grows to where it stays
            others = np.where(split, self.high.cells * t / scales.diagonal() + 1, self.high.cells - 1)
            t = float(own @ np.log(others)) + tail
        return t * (1 + 1e-3) + float(self.high.shift[which])

    def draw(self, counts: Cells, measure: Measure, rng: Random) -> Ends:
        """Of each quantile what `Ranks` has: it comes first, then the group."""
        if not len(counts):
            return (np.zeros((len(self.at), 0)),) * 3
        low, high = (one.release(_wide(counts), rng).T for one in self.mechanisms)
        return _between(low, high, measure)


def _wide(counts: Cells) -> Cells:
    """At least two cells, as mechanisms want them: beside the only possible value one that stands for no value."""
    return np.pad(counts, ((0, 0), (0, 1))) if counts.shape[1] == 1 else counts


def _around(away: Fraction) -> str:
    return f"the error bar needs {math.ceil(away):,} rows on each side of the quantile, without wide gaps"


def _between(one: Cells, other: Cells, measure: Measure) -> Ends:
    """The bar spans both draws, in whatever order they come; the quantile is the cell halfway."""
    return _bars(np.rint((one + other) / 2), np.minimum(one, other), np.maximum(one, other), measure)


def _bars(value: NDArray[Any], low: Cells, high: Cells, measure: Measure) -> Ends:
    """From cells to values."""
    cell = 0.0 if measure.grid == 1 else 0.5  # a cell stands for all values that are rounded to it
    parts = (np.clip(end, 0, measure.cells - 1) for end in (value, low - cell, high + cell))
    found, lowest, highest = ((part.astype(float) + measure.low) * float(measure.grid) for part in parts)
    return found, lowest, highest


# Which mechanisms


def ranked(
    measure: Measure, at: Sequence[Fraction], share: Promise, change: Sensitivity, level: float
) -> list[Ranks | RanksTogether]:
    """The mechanisms for quantiles of a measure, each of which has that share of a promise."""
    inner = sorted(q for q in at if q not in (0, 1))
    together = _together(measure, inner, share, change, level) if len(inner) >= _MANY else None
    if together is None or _log_errors(together) > sum(_log_error(measure, q, share, change) for q in inner):
        return [ranks(measure, q, share, change, level) for q in sorted(at)]
    return [*(ranks(measure, q, share, change, level) for q in sorted(set(at) - set(inner))), together]


def ranks(measure: Measure, at: Fraction, share: Promise | None, change: Sensitivity, level: float) -> Ranks:
    """The mechanisms for one quantile that keep a share of a promise together."""
    assert share is not None
    cells = max(2, measure.cells)

    def made(part: Fraction, shift: Fraction = Fraction(0)) -> One:
        promise = share.share(part, delta=0)
        exponential = _exponential(measure, at, promise, change, shift)
        if isinstance(promise, ZCDP) or at in (0, 1):
            return exponential
        flipped = FlippedQuantile.calibrated(promise, change, q=at, cells=cells, shift=shift)
        return flipped if flipped.rank_error(level) <= exponential.rank_error(level) else exponential

    def away(part: Fraction, misses: float) -> Fraction:
        """The t with which e^(-g t) is so small, a little above 0 at least."""
        return _ranks(max(-math.log(misses), 0.01) / made(part, Fraction(1)).rate)

    if at in (0, 1):
        inward = away(Fraction(1), (1 - level) / cells)
        return Ranks((made(Fraction(1), inward if at == 0 else -inward),))
    t = away(_END, 1 - level)
    return Ranks((made(_END, -t), made(_END, t)))


def _exponential(
    measure: Measure, at: Fraction, promise: Promise, change: Sensitivity, shift: Fraction = Fraction(0)
) -> Quantile:
    return Quantile.calibrated(promise, change, q=at, cells=max(2, measure.cells), shift=shift)


def _together(
    measure: Measure, at: Sequence[Fraction], share: Promise, change: Sensitivity, level: float
) -> RanksTogether:
    """The shares of all of them for one mechanism: the product of errors is least if each part has as much."""

    def made(part: Fraction, shift: Sequence[Fraction] | int = 0) -> Quantiles:
        promise = share.share(part * len(at), delta=0)
        return Quantiles.calibrated(promise, change, at=at, cells=max(2, measure.cells), shift=shift)

    away = [_ranks(_beyond(scales, 1 - level)) for scales in made(_END).scales()]
    return RanksTogether(made(_END, [-t for t in away]), made(_END, away))


def _log_errors(together: RanksTogether) -> float:
    """The logarithm of the product of what ends err by, in standard deviations."""
    return float(np.log(2 * (together.high.scales() ** 2).sum(axis=1)).sum()) / 2


def _log_error(measure: Measure, at: Fraction, share: Promise, change: Sensitivity) -> float:
    """That of the ends of one quantile alone."""
    return math.log(2) / 2 - math.log(_exponential(measure, at, share.share(_END, delta=0), change).rate)


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
