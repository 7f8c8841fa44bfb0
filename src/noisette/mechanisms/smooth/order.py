"""Order statistics, and what trimmed sums share with them: sorted values between public bounds."""

import math
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import Exact, frozen, set_fields
from noisette.exact.integers import Int64Array
from noisette.exact.number import Number, whole
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.smooth.statistic import Fall, Pairs, ceilings, steepest
from noisette.privacy import Neighbours
from noisette.privacy.neighbours import Relation

__all__ = ["MOST", "Order", "Ranked"]

MOST = 2**60


@frozen
class Ranked:
    """Values within public bounds; those outside are moved to the nearest bound."""

    low: Annotated[int, partial(whole, least=-MOST)]
    high: Annotated[int, partial(whole, least=-MOST)]

    def __post_init__(self) -> None:
        if not self.low < self.high < MOST:
            raise InputError("low must be below high, and both within 2^60.")

    @property
    def furthest(self) -> int:
        """From one bound to the other."""
        return self.high - self.low

    def ranks(self, n: int) -> tuple[int, int]:
        """The first and last rank that count."""
        raise NotImplementedError

    def padded(self, x: Any) -> Int64Array:
        """The sorted values between their bounds."""
        empty = isinstance(x, list | tuple | np.ndarray) and len(x) == 0
        values = np.array([], np.int64) if empty else integer_answer(x)
        if values.ndim != 1:
            raise InputError("The table must be a list of whole numbers, one for each record.")
        clamped = np.clip(values, self.low, self.high).astype(np.int64)
        return np.concatenate([[self.low], np.sort(clamped), [self.high]])

    def value(self, table: Int64Array) -> int:
        """The sum of the values that count."""
        first, last = self.ranks(len(table) - 2)
        return int(table[first : last + 1].sum())

    def smooth(self, table: Int64Array, beta: Fraction) -> Fall:
        """A_k is the largest x_j - x_i, i <= first, j >= last, with k more values between them than need be.

        The best j does not fall as i grows, so halving the rows leaves little to look at.
        """
        first, last = self.ranks(len(table) - 2)
        return steepest(table, first, last, beta)


@frozen
class Order(Ranked):
    """The value at rank q n, rounded up: 1/2 for the (lower) median, 1 for the maximum; `low` for an empty table.

    >>> median = Order("1/2", 0, 10, neighbours=Neighbours.REPLACE)
    >>> table = median.read([7, 3, 0, 10, 4])
    >>> median.value(table), median.smooth(table, Fraction(1, 10))
    (4, Fall(gap=10, changes=3))
    >>> [reach.tolist() for reach in median.reaches(table)]
    [[1, 4, 4], [3, 6, 6]]
    """

    q: Exact
    neighbours: Relation

    def __init__(self, q: Number, low: int, high: int, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> None:
        set_fields(self, q=q, neighbours=neighbours)
        super().__init__(low, high)

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise InputError("q must be above 0 and at most 1 (the maximum): the median is 1/2.")

    @property
    def span(self) -> tuple[int, int]:
        """The bounds."""
        return self.low, self.high

    def ranks(self, n: int) -> tuple[int, int]:
        """q n, rounded up."""
        m = math.ceil(self.q * n)
        return m, m

    def read(self, x: Any) -> Int64Array:
        """The sorted values between their bounds; there must be one if their number is public."""
        table = self.padded(x)
        if len(table) == 2 and self.neighbours is Neighbours.REPLACE:
            raise InputError("The table must have at least one record.")
        return table

    def reaches(self, table: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Down to the value t steps of rank below, up to that above: steps of 1, or of max(q, 1 - q) if n moves.

        No t changes bring it further. Records that are replaced bring it to every point up to there, and for the median
        so do those that come or go; for other q a point that no record has may take one more than t.
        """
        n, at = len(table) - 2, self.q * (len(table) - 2)
        step = Fraction(1) if self.neighbours is Neighbours.REPLACE else max(self.q, 1 - self.q)
        value = int(table[math.ceil(at)])
        down = ceilings(at, -step, max(1, math.ceil(at / step)))
        up = ceilings(at, step, math.floor((n - at) / step) + 1)
        return value - table[np.maximum(down, 0)], table[np.minimum(up, n + 1)] - value

    def pairs(self, beta: Fraction) -> Pairs:
        """The answer jumps to the top; S falls by e^beta and the answer moves by as much as S; ranks drift apart.

        A record at the bottom is replaced by one elsewhere, or one is added there.
        """
        near = self.low + math.floor(Fraction(math.exp(-beta)) * self.furthest)
        removed = 1 if self.neighbours is Neighbours.REPLACE else 0
        m, n = next((m, n) for m, n in map(self._wide, range(2, 999)) if removed or self.ranks(n + 1)[0] > m)
        x, z = [self.low] * m + [self.high] * (n - m), [self.low] * (m - 1) + [self.high - 1] + [self.high] * (n - m)
        return [(x, [*x[removed:], self.high], 1), (x, [*x[removed:], near], 1), (z, [*z[removed:], self.high], 1)]

    def _wide(self, least: int) -> tuple[int, int]:
        """A rank of at least that, and the size of a table that has it and about as many above."""
        n = math.ceil(least / self.q)
        return self.ranks(n)[0], n
