"""One quantile by permute and flip: a cell is likelier, the deeper it lies around the quantile.

A cell with L values below it and R up to it has the score S = max(L + q b - T, T - R + (1 - q) b), T = q n, where b is
1/(2g) or, if less, R - L. But for b this is its rank error, and where it holds the quantile minus how many ranks lie
around it on the nearer side. Each cell flips a coin of probability e^(g (min S - S)), and one is chosen evenly of those
whose coin falls the right way; the best one's always does.

A record that is added or removed moves both sides of S by up to max(q, 1 - q), so S moves within a range of twice that,
and of 2 if it is replaced; if q is 0 or 1 it moves in one direction, by up to 1. For d records, s = max(q, 1 - q) or 1,

    epsilon = 2 g s d   (g d if q is 0 or 1),

nearly reached where there are many cells.   [McKenna-Sheldon 2020 for permute and flip]
By b, cells with few values weigh somewhat less than empty ones. Where the quantile lies in a wide gap, its cells are
empty and those with values are wrong; without b, mean errors were 1 to 3 % larger there, and elsewhere smaller by up
to 0.06/g. The best S is at most max(q, 1 - q)/(2g), by which the bound of rank errors is larger than without b.
Losses range further than epsilon, so for zCDP and for releases that are composed `Quantile` is the better one.

When: one median or quantile, once, with a pure epsilon.
Textbook: Cormode's median by the exponential mechanism, improved.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import frozen
from noisette.exact.random import Random
from noisette.exact.samplers import Bounds
from noisette.mechanisms.calibration import pure_epsilon
from noisette.mechanisms.contract import Distance, Output
from noisette.mechanisms.quantiles.quantile import RankChoice, depths, read_histograms
from noisette.mechanisms.quantiles.quantiles import even_table, telling_tables
from noisette.mechanisms.selection.exponential import unit_rule
from noisette.mechanisms.selection.permute_and_flip import ENUMERATED
from noisette.privacy import Neighbours, Promise, Pure

__all__ = ["FlippedQuantile"]

REPLACE = Neighbours.REPLACE
_BEHIND = 20  # ranks times g


@frozen
class FlippedQuantile(RankChoice):
    """The q-quantile of values on the grid 0 .. cells-1, given how many values each cell has.

    >>> m, counts = FlippedQuantile(1, q="1/2", cells=8), [0, 5, 9, 40, 12, 3, 0, 1]
    >>> m.guarantee(1), 0 <= m(counts) < 8, m([counts, counts]).shape
    (Pure('1', neighbours=ADD_REMOVE), True, (2,))
    >>> ties = [10, 11, 9, 10]                                     # the exponential mechanism: 0.778
    >>> round(FlippedQuantile(1, q="1/2", cells=4).outcomes(ties)[1], 3)
    0.932
    """

    kind = Output.OUTCOME
    _general = True

    @property
    def _sides(self) -> int:
        return 1 if not self.shift and self.q in (0, 1) else 2

    def _within(self, guarantee: Promise) -> Fraction:
        return pure_epsilon(guarantee)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(epsilon) for `rows` records of one person; for other numbers of them it is in proportion."""
        known = super().guarantee(distance)
        assert isinstance(known, Pure)
        return Pure(known.epsilon, neighbours=known.neighbours)

    @property
    def _blunt(self) -> Fraction:
        """The largest b, rounded down to 64ths: scores that differ then do so in doubles too."""
        return Fraction(math.floor(32 * self._sides * self._moves(self.rows, self.neighbours)[0] / self.epsilon), 64)

    def _distances(self, counts: NDArray[np.int64], upto: NDArray[np.int64], target: Fraction) -> NDArray[np.float64]:
        off, q = np.minimum(counts, float(self._blunt)), float(self.q)
        return depths(counts, upto, target, below=q * off, above=(1 - q) * off)

    def _distance(self, above: Fraction, below: Fraction) -> Fraction:
        off = min(-above - below, self._blunt)
        return max(above + self.q * off, below + (1 - self.q) * off)

    def _drawn(self, near: NDArray[np.float64], weight: Callable[[int], Bounds], rng: Random) -> int:
        taken = np.flatnonzero(choice.flips(near, weight, rng))
        return int(taken[rng.below(len(taken))])

    def error(self, y: int, x: Any) -> float:
        """Return the rank error of a cell."""
        counts = np.asarray(x, dtype=np.int64)
        upto = np.cumsum(counts)
        target = self.q * int(upto[-1]) + self.shift
        return float(max(int(upto[y] - counts[y]) - target, target - int(upto[y]), Fraction(0)))

    def rank_error(self, level: float = 0.95) -> float:
        """Return a t, rounded up, with P(rank error <= t) >= level for every table.

        At worst one cell has S = max(q, 1 - q) b and all others are off by just above t. Each of those comes along with
        p = e^(-g (t - max(q, 1 - q) b)), and one of those that did is chosen: a miss has the chance
        1 - (1 - (1 - p)^cells)/(cells p).
        """
        general, low, high = super().rank_error(level), 0.0, 1.0
        for _ in range(60):
            p = (low + high) / 2
            missed = 1 + math.expm1(self.cells * math.log1p(-p)) / (self.cells * p)
            low, high = (p, high) if missed <= 1 - level else (low, p)
        bound = min(-math.log(low) / self.rate * (1 + 1e-6), general) if low else general
        return bound + float(self._step * self._blunt) * (1 + 1e-6)

    # For audits

    def outcomes(self, x: Any) -> dict[int, float]:
        """Return the probability of every cell: an integral of a polynomial, by a rule that is exact for it."""
        if self.cells > ENUMERATED:
            raise InputError(f"Probabilities are computed for at most {ENUMERATED:,} cells: choose fewer of them.")
        p = np.exp(-self._exponents(read_histograms(x, self.cells, rows=False)))
        nodes, weights = unit_rule(-(-self.cells // 2))
        misses = 1 - np.multiply.outer(nodes, p)
        chances = p * (weights @ (misses.prod(axis=1, keepdims=True) / misses))
        return dict(enumerate(chances.tolist()))

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """A record more moves the target away from all cells that hold it but one, and nearer to one far behind."""
        even = even_table(self.cells, Fraction(self.rate))
        more = [even[0] + 1, even[1] - (self.neighbours is REPLACE), *even[2:]]
        return [self._worst_pair(1), (even, more, 1)]

    def _worst_pair(self, d: int) -> tuple[list[int], list[int], int]:
        if self.q in (0, 1) or not self._room:
            return super()._worst_pair(d)
        x, y = telling_tables([self._step], self.cells, math.ceil(_BEHIND / self.rate), self._empty)
        if self.neighbours is REPLACE:
            y[0] -= 1
        return (x, y, d) if self.q >= Fraction(1, 2) else (x[::-1], y[::-1], d)

    @property
    def _empty(self) -> int:
        return max(1, self.cells // 8)

    @property
    def _room(self) -> bool:
        """Whether there are cells enough for the worst table: one with all up to the target, empty ones, three more."""
        return self.cells >= self._empty + 4

    @property
    def tightness(self) -> float:
        """What few empty cells leave, up to an epsilon of about 1.

        If b were 0, n cells would hold the target before, then one does, and the others have v = e^(-g s).
        """
        if self.q in (0, 1):
            return 1 - 1e-9
        if not self._room:
            return 0.0
        t, n = self.rate * float(self._moves(1, self.neighbours)[0]), self._empty + 2
        v = math.exp(-t)
        after = (1 - (1 - (1 - v) ** (n + 1)) / (v * (n + 1))) / (v * n)
        return (t + math.log(after * (n + 1))) / (2 * t) * (1 - 1e-6)


examples = [
    FlippedQuantile("1/6", q="1/2", cells=60),
    FlippedQuantile("1/4", q="9/10", cells=40),
    FlippedQuantile(2, q=0, cells=12),
    FlippedQuantile("1/4", q="1/4", cells=50, neighbours=REPLACE, groups=1),
]
