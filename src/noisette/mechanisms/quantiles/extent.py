"""The range of values without public bounds: sweep upwards until enough values are met, then until few are left.

The line is divided into cells 0 .. cells-1, such as those between powers of two. `low` is the first cell with

    #{values in cells up to low} + N >= Z + within,

about the cell of the value number `within` from below; if there is none, None is released: there are too few values.
Then `high` is the last cell before the first one above `low` with

    #{values from that cell on} - N <= beyond - Z,

or the last of all: about `beyond` values are left above. Every N and Z is new, P(N = k) = (1 - a) a^k with a = e^-rate.
Let p and r be the rates of Z and of the N on the way to `low`, p' and r' those on the way to `high`.

What a record costs. The first search reads no cell above `low`, and the second one no other, so a record counts in one
of them, whichever it is. On the way to `low` counts only grow, on the way to `high` they only fall:

    epsilon = max(p, r, p' + r')                  for a record that is added or removed,
    epsilon = max(p + r, r + r', p + p' + r')     for one that is replaced,

and no less.   [after Durfee 2023 and Lyu-Su-Li 2017; the proof: docs/proofs/quantiles.md]
So both ends together cost what one does, and the noise for `low` has the whole epsilon twice.

On the way to `low` each cell without values may end the search by its noise alone. `calibrated` puts `within` where all
of them together do so with a chance of 1 - level: that many of the smallest values, and a few more, are left outside.
On the way to `high` no cell ends it while many values are still to come, so few of the largest are. A search downwards
for `high`, like that for `low`, leaves about three times as many outside; two that do not share their records have half
of epsilon each.

When: nobody can name bounds: before sums and means, once for all of them.
Textbook: not in the textbooks; it is the sparse vector technique of the lecture notes, twice.

Vocabulary: `within`, `beyond` how many values are aimed at to be left outside, below and above.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Whole, frozen
from noisette.exact.number import level_of, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.calibration import agreed_records, pure_epsilon, whole_records
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.quantiles.quantile import read_histograms
from noisette.mechanisms.quantiles.unbounded_quantile import FirstAbove
from noisette.privacy import Neighbours, Promise, Pure
from noisette.privacy.neighbours import Relation

__all__ = ["Extent"]

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
_SHARES = {  # of epsilon: r needs most, as N are many, and then p', which makes the second search go on above all
    ADD_REMOVE: (Fraction(1), Fraction(1), Fraction(3, 5), Fraction(2, 5)),
    REPLACE: (Fraction(1, 4), Fraction(3, 4), Fraction(1, 2), Fraction(1, 4)),
}
_GOES_ON = 0.1  # the chance that it does
_MOST_CELLS = 2**20


@frozen
class Extent(Mechanism):
    """The cells (low, high) between which values lie, or None for too few values, given how many each cell has.

    `epsilon` is what one record is worth under the relation `neighbours`.

    >>> m = Extent.calibrated(Pure(1), cells=100, level=1 - 1e-9)
    >>> m.within, m.beyond, m.guarantee(1)
    (26, 4, Pure('1', neighbours=ADD_REMOVE))
    >>> m([0] * 40 + [300] * 20 + [0] * 40)[0]
    40
    """

    kind = Output.OUTCOME
    sized_by = "epsilon"
    own_relation = True
    tightness = 1 - 1e-9  # all of epsilon, up to rounding
    epsilon: Annotated[Positive, partial(positive, most=1000, least=Fraction(1, 10**9))]
    _: KW_ONLY
    cells: Annotated[int, partial(whole, least=2)]
    within: Whole
    beyond: Annotated[int, partial(whole, least=0)]
    neighbours: Relation = ADD_REMOVE

    def __post_init__(self) -> None:
        if self.cells > _MOST_CELLS:
            raise InputError(f"cells must be at most {_MOST_CELLS:,}: choose coarser ones.")

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, cells: int, level: float = 0.9999
    ) -> "Extent":
        """Return the one for a histogram's sensitivity whose `low` lies as far out as it can at that level."""
        records, relation = agreed_records(guarantee, sensitivity)
        one = cls(pure_epsilon(guarantee) / records, cells=cells, within=1, beyond=0, neighbours=relation)
        odds = math.log(one._rising.strays(one.cells, 0) / (1 - level_of(level)))
        within, beyond = odds * one._rising.scale, -math.log(_GOES_ON) * one._falling.threshold_scale
        return cls(
            one.epsilon, cells=cells, within=max(1, math.ceil(within)), beyond=math.ceil(beyond), neighbours=relation
        )

    # What it promises

    @property
    def rates(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """p, r, p' and r'."""
        p, r, p_falling, r_falling = (self.epsilon * share for share in _SHARES[self.neighbours])
        return p, r, p_falling, r_falling

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(epsilon) for each record that differs, and what it is under the other relation."""
        records, named = whole_records(distance)
        relation, (p, r, p_falling, r_falling) = named or self.neighbours, self.rates
        falling = p_falling + r_falling
        one = max(p + r, r + r_falling, p + falling) if relation is REPLACE else max(p, r, falling)
        return Pure(records * one, neighbours=relation)

    # What it releases

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> tuple[int, int] | None:
        """Release both cells, or None."""
        values = read_histograms(counts, self.cells, rows=False)
        low = self._rising(np.cumsum(values), rng)
        if low is None:
            return None
        further = self._falling(_left_above(values, low), rng)
        return low, self.cells - 1 if further is None else low + further

    @property
    def _rising(self) -> FirstAbove:
        over, rate, _, _ = self.rates
        return FirstAbove(1 / over, 1 / rate, self.within)

    @property
    def _falling(self) -> FirstAbove:
        _, _, over, rate = self.rates
        return FirstAbove(1 / over, 1 / rate, -self.beyond)

    # What to expect

    def error(self, y: tuple[int, int] | None, x: Any) -> float:
        """Return by how many ranks an end is not where it is aimed at, at most.

        Nothing is missed if there is no value number `within`, or if `low` is `high` and few are left above.
        """
        counts = np.asarray(x, dtype=np.int64)
        if y is None:
            return float(max(0, int(counts.sum()) - self.within))
        low, high = y
        upto, above = np.cumsum(counts), np.append(np.cumsum(counts[::-1])[::-1], 0)
        missed = [int(upto[low] - counts[low]) - self.within, self.within - int(upto[low])]
        missed += [int(above[high + 1]) - self.beyond, self.beyond - int(above[high]) if high > low else 0]
        return float(max(0, *missed))

    def interval(self, level: float = 0.95) -> float:
        """Return a t with P(error <= t) >= level for every table.

        A search ends t too early if the N of one of its cells is that large, and t too late only if its Z is.
        """
        level_of(level)
        low, high = -1, 2 + math.ceil((50 + math.log(self.cells)) * float(sum(1 / rate for rate in self.rates)))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._misses(middle) * (1 + 1e-12) <= 1 - level else (middle, high)
        return float(high)

    def _misses(self, t: int) -> float:
        """A bound of P(error > t)."""
        searches = self._rising, self._falling
        return sum(s.strays(self.cells, t + 1) + math.exp(-(t + 2) / s.threshold_scale) for s in searches)

    # For audits

    def outcomes(self, x: Any) -> dict[tuple[int, int] | None, float]:
        """Return the probability of every pair of cells, and of None."""
        counts = read_histograms(x, self.cells, rows=False)
        *lows, none = self._rising.chances(np.cumsum(counts)).tolist()
        found: dict[tuple[int, int] | None, float] = {None: none}
        for low, chance in enumerate(lows):
            highs = self._falling.chances(_left_above(counts, low)).tolist()
            found |= {(low, low + i): chance * p for i, p in enumerate(highs)}
        return found

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """A record more, or one that goes from the last cell to the first, where enough values are in the first.

        Every cell that is passed needs a larger Z, and one whose values are no more than before a larger N to end it.
        The same for a record less that was left above; and evenly spread values, whose law shows the rates.
        """
        replaced, many, rest = self.neighbours is REPLACE, self.within + 1, [0] * (self.cells - 2)
        x, more = [many, *rest, 1], [many + 1, *rest, 1 - replaced]
        left, less = [many + 9, *rest, self.beyond + 2], [many + 9 + replaced, *rest, self.beyond + 1]
        even = [max(1, self.within // 4)] * self.cells
        moved = [even[0] + 1, *even[1:-1], even[-1] - replaced]
        return [(x, more, 1), (left, less, 1), (even, moved, 1)]


def _left_above(counts: NDArray[np.int64], low: int) -> NDArray[np.int64]:
    """How many values are in each cell above `low` and further up, with a minus: it is to be above -beyond."""
    return np.negative(np.cumsum(counts[:low:-1])[::-1])


examples = [
    Extent(1, cells=8, within=4, beyond=2),
    Extent("1/3", cells=5, within=9, beyond=0),
    Extent(3, cells=12, within=2, beyond=1),
    Extent(1, cells=8, within=6, beyond=3, neighbours=REPLACE),
]
