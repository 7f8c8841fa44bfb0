"""Quantiles with error bars: the two ends are drawn by ranks, and the quantile is the cell between them.

Here are one or two quantiles in the middle, and the least and the largest value; all others, and three and more of the
same values, are read off a tree of counts (`query.rank_tree`).

The ends aim at ranks t below and above, where t is what an end errs by at most at the level, whatever the values
(`Quantile.rank_error`). So the upper end lies below the quantile, or the lower one above it, with a probability of
1 - level at most: ties, gaps and clusters do no harm. This asks for t rows on each side of the quantile, which a noisy
number of rows vouches for; where it does not there is no number.

An end strays among the cells of one side only, those below or those above the quantile. The chance to stray is concave
in the number N of such cells, E[K/(K + 1)] for a binomial K or N p/(1 + N p), so that of both together is largest if
each side has half of them.

The privacy budget goes to the ends alone, a half each. A bar that holds for all values has to be that long: if it spans
k ranks to each side, it is {x} for 2 k + 1 rows of value x, with probability `level`. Without rows it is then {x} with
e^(-epsilon (2 k + 1)) times that, for each of the cells, so 2 k + 1 >= ln(level cells)/epsilon.
[packing: Hardt-Talwar 2010]

A quantile is drawn by permute and flip where an epsilon is to be kept and it errs less, as it does at all usual levels,
else by the exponential mechanism, whose rho is smaller.

Beyond the minimum and the maximum lie cells without values that are all as good, so these aim at a rank t within, where
t = ln(cells / (1 - level))/g leaves all those cells together a chance of 1 - level. Their bar goes from what is drawn
to the public bound, and holds where there are t rows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.mechanisms import FlippedQuantile, Quantile
from noisette.privacy import ZCDP, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Measure
from noisette.query.rank_tree import Ends, RankTree, bars, rank_tree

__all__ = ["Ranks", "apart", "ranked", "ranks"]

One: TypeAlias = Quantile | FlippedQuantile
Cells: TypeAlias = NDArray[np.int64]

_END = Fraction(1, 2)  # of the share, for each end
_APART, _MIDDLE = 2, Fraction(1, 5)  # as many quantiles at most, and how far from 0 and 1


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
        """What is drawn from."""
        return self.ends

    def moved(self, change: Sensitivity) -> Sensitivity:
        """How far one unit moves the histogram that is ranked."""
        return change

    @property
    def description(self) -> str:
        """The mechanism in words."""
        flipped = isinstance(self.ends[0], FlippedQuantile)
        return f"{'permute and flip' if flipped else 'exponential mechanism'} on ranks"

    @property
    def rows(self) -> int:
        """How many rows a group has at least if the bar holds: t on each side of the quantile, where both ends aim."""
        q, t = self.ends[-1].q, abs(self.ends[-1].shift)
        return math.ceil(t if q in (0, 1) else t / min(q, 1 - q))

    def rank_error(self, level: float) -> float:
        """By how many ranks the quantile is off at most, at that level and whatever the values.

        It lies between the ends, so that it is no further above than the upper one, and no further below than the
        lower one.
        """
        if len(self.ends) == 1:
            return self.ends[0].rank_error(level) + float(abs(self.ends[0].shift))
        return max(_astray(end, level) + float(abs(end.shift)) for end in self.ends)

    def draw(self, counts: Cells, measure: Measure, rng: Random) -> Ends:
        """The quantile of each group and the ends of its error bar, in natural units."""
        if not len(counts):
            return np.zeros(0), np.zeros(0), np.zeros(0)
        counts = _wide(counts)
        first, last = np.asarray(self.ends[0](counts, rng)), self.ends[-1]
        if last.q == 0:
            return bars(first, np.zeros_like(first), first, measure)
        if last.q == 1:
            return bars(first, first, np.full_like(first, measure.cells - 1), measure)
        return _between(first, np.asarray(last(counts, rng)), measure)


def _astray(end: One, level: float) -> float:
    """By how many ranks an end strays to its wrong side at most, if both do so with probability 1 - level together."""
    return replace(end, cells=end.cells // 2 + 1).rank_error((1 + level) / 2)


def _wide(counts: Cells) -> Cells:
    """At least two cells, as mechanisms want them: beside the only possible value one that stands for no value."""
    return np.pad(counts, ((0, 0), (0, 1))) if counts.shape[1] == 1 else counts


def _between(one: Cells, other: Cells, measure: Measure) -> Ends:
    """The bar spans both draws, in whatever order they come; the quantile is the cell halfway."""
    return bars(np.rint((one + other) / 2), np.minimum(one, other), np.maximum(one, other), measure)


# Which mechanisms


def apart(at: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """The quantiles of the same values that are drawn by themselves, ascending; the others are read off a tree.

    >>> apart([Fraction(1, 2), Fraction(0)]), apart([Fraction(9, 10), Fraction(1)])
    ((Fraction(0, 1), Fraction(1, 2)), (Fraction(1, 1),))
    """
    ends, inner = {q for q in at if q in (0, 1)}, {q for q in at if q not in (0, 1)}
    alone = len(inner) <= _APART and all(_MIDDLE <= q <= 1 - _MIDDLE for q in inner)
    return tuple(sorted(ends | inner if alone else ends))


def ranked(
    measure: Measure, at: Sequence[Fraction], share: Promise, change: Sensitivity, level: float
) -> list[Ranks | RankTree]:
    """What quantiles of the same values are drawn by, each of which has that share of a promise."""
    alone = apart(at)
    rest = sorted(set(at) - set(alone))
    tree = [rank_tree(measure, rest, share.share(len(rest), delta=0), change, level)] if rest else []
    return [*(ranks(measure, q, share, change, level) for q in alone), *tree]


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

    if at in (0, 1):
        misses = (1 - level) / cells
        inward = _ranks(max(-math.log(misses), 0.01) / made(Fraction(1), Fraction(1)).rate)
        return Ranks((made(Fraction(1), inward if at == 0 else -inward),))
    t = _ranks(_astray(made(_END, Fraction(1)), level))
    return Ranks((made(_END, -t), made(_END, t)))


def _exponential(
    measure: Measure, at: Fraction, promise: Promise, change: Sensitivity, shift: Fraction = Fraction(0)
) -> Quantile:
    return Quantile.calibrated(promise, change, q=at, cells=max(2, measure.cells), shift=shift)


def _ranks(number: float) -> Fraction:
    return Fraction(number).limit_denominator(2**20)
