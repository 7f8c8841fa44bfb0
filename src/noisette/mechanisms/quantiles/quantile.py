"""The quantile mechanism: choose a cell of a public grid, the likelier the nearer its ranks are to the quantile's.

A cell with L values below it and R up to it spans the ranks L .. R. Its rank error D is the distance of q n from there:
0 for a cell that holds the quantile, whatever its ties. A cell is released with probability proportional to e^(-g D):
the exponential mechanism.   [McSherry-Talwar 2007; Smith 2011 for quantiles]

One record moves each D by at most s: L - q n and q n - R move by q or 1 - q if it is added or removed, so
s = max(q, 1 - q), and by up to 1 if it is replaced, so s = 1. As D = 0 for some cell, d records are worth

    epsilon = t + ln((cells - 1) / (1 + (cells - 2) e^-t)),   t = g s d,

and no less: t for two cells, and for many nearly 2 t, which the general theorem gives. The losses of a pair of tables
lie within 2 t (t for two cells), so it is (2 t)^2/8-zCDP as well.   [Cesar-Rogers 2021, for bounded ranges]
For q = 0 and q = 1 all D move the same way: epsilon = t = g d, which is also the range.

A target q n + shift may lie outside of 0 .. n, so that no cell has D = 0; each D still moves by at most s, and the
general bound 2 t is what holds.

Among several groups, what each is worth adds up. It is worst to spread the records evenly, because epsilon is concave
in t; a record that is replaced may leave one group for another, and then moves D in both.

When: one quantile of values in known bounds, of each of many groups, or among other releases.
Textbook: Cormode, the median by the exponential mechanism; its score moves by 1/2 under add/remove and 1 under replace.

Vocabulary: `records` that differ, d · `total` the most that D can move, summed over groups · `parts` how many of them.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, Exact, Positive, Whole, default, frozen, optional
from noisette.exact.number import Number, level_of, nearest_float, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds, ln_bounds, sqrt_down
from noisette.exact.samplers import Bounds
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.calibration import agreed_records, pure_epsilon, range_epsilon, whole_records
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.neighbours import Relation
from noisette.privacy.pld.ranges import BoundedRange

__all__ = ["Quantile", "RankChoice"]

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
_BITS = 96
_LARGEST = 1000
_MOST = 2**62


@frozen
class RankChoice(Mechanism):
    """What mechanisms that choose a cell by rank errors share: their parameters, what records move, what to expect."""

    sized_by = "epsilon"
    own_relation = True
    epsilon: Annotated[Positive, partial(positive, most=_LARGEST)]
    _: KW_ONLY
    q: Exact
    cells: Annotated[int, partial(whole, least=2)]
    rows: Whole = 1
    groups: Annotated[int | None, optional(whole)] = None
    neighbours: Relation = ADD_REMOVE
    shift: Exact = default(0)

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise InputError("q must lie between 0 (the minimum) and 1 (the maximum): the median is 1/2.")
        if self.cells > choice.LARGEST:
            raise InputError(f"cells must be at most {choice.LARGEST:,}: choose a coarser grid.")

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        q: Number,
        cells: int,
        groups: int | None = None,
        shift: Number = 0,
    ) -> Self:
        """Return the most accurate one for a histogram's sensitivity, or for that many records of one person."""
        rows, relation = agreed_records(guarantee, sensitivity)
        one = cls(1, q=q, cells=cells, rows=rows, groups=groups, neighbours=relation, shift=shift)
        epsilon = one._within(guarantee)
        return cls(epsilon, q=q, cells=cells, rows=rows, groups=groups, neighbours=relation, shift=shift)

    @property
    def norm(self) -> float:
        """What a distance counts, records: l1 of the histogram under add/remove, its largest move under replace."""
        return 1 if self.neighbours is ADD_REMOVE else math.inf

    # What it promises

    @property
    def _step(self) -> Fraction:
        """How far a record that is added or removed can move a D."""
        return max(self.q, 1 - self.q)

    @property
    def _sides(self) -> int:
        """In how many directions the D can move at once: in one if q is 0 or 1, or if there are but two cells."""
        return 1 if not self.shift and (self.q in (0, 1) or self.cells == 2) else 2

    @property
    def _general(self) -> bool:
        """Whether the general bound is what holds."""
        return bool(self.shift)

    def _moves(self, records: int, relation: Neighbours) -> tuple[Fraction, int]:
        """(total, parts)."""
        if relation is REPLACE and self.groups == 1:
            return Fraction(records), 1
        moved = records if relation is ADD_REMOVE else 2 * records
        return self._step * moved, min(moved, self.groups or moved)

    def _square(self, records: int, relation: Neighbours) -> Fraction:
        """The largest sum of squares of what the D of each group move: all in one, or out of one into another."""
        if relation is ADD_REMOVE:
            return (self._step * records) ** 2
        return records**2 * (Fraction(1) if self.groups == 1 else max(Fraction(1), 2 * self._step**2))

    def _loss(self, rate: Fraction, records: int, relation: Neighbours, *, up: bool) -> Fraction:
        total, parts = self._moves(records, relation)
        if self._general:
            return self._sides * rate * total
        return parts * choice.loss(rate * total / parts, self.cells if self._sides == 2 else 2, up=up)

    def _rho(self, rate: Fraction, records: int, relation: Neighbours) -> Fraction:
        return (self._sides * rate) ** 2 * self._square(records, relation) / 8

    def _within(self, guarantee: Promise) -> Fraction:
        """The largest epsilon, rounded down, that keeps a guarantee."""
        here, least = (self.rows, self.neighbours), pure_epsilon(guarantee)
        match guarantee:
            case Pure():
                return least
            case Approx():
                return self._within_approx(guarantee, least)
            case ZCDP():
                rate = sqrt_down(guarantee.rho / self._rho(Fraction(1), *here))
                return self._loss(rate * (1 - Fraction(1, 1 << 40)), *here, up=False)

    def _within_approx(self, guarantee: Approx, least: Fraction) -> Fraction:
        """At least what every epsilon-DP mechanism may have; more by its range, or by its rho, to 1e-4."""
        known = {key: getattr(self, key) for key in ("q", "cells", "rows", "groups", "neighbours", "shift")}

        def keeps(epsilon: Fraction) -> bool:
            return type(self)(epsilon, **known).guarantee(self.rows) <= guarantee

        most = range_epsilon(guarantee) * Fraction(10001, 10000)
        while most <= _LARGEST and keeps(most):
            least, most = most, 2 * most
        while most > least * Fraction(10001, 10000):
            middle = (least + most) / 2
            least, most = (middle, most) if middle <= _LARGEST and keeps(middle) else (least, middle)
        return least

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(epsilon) for `rows` records of one person; for other numbers of them it is in proportion.

        It is less than that, and rounded up, for more records in few `groups`, and for the other relation.
        """
        records, named = whole_records(distance)
        relation, rate = named or self.neighbours, _rate(self, _BITS)[1]
        if not records:
            return Pure(0, neighbours=relation)
        (total, parts), (known, own) = self._moves(records, relation), self._moves(self.rows, self.neighbours)
        if total * own == known * parts:  # each part moves as far as those that epsilon is for
            epsilon = self.epsilon * parts / own
        else:
            epsilon = self._loss(rate, records, relation, up=True)
        loss = BoundedRange(epsilon, self._sides * rate * total, concentrated=self._rho(rate, records, relation))
        return Pure(epsilon, neighbours=relation, losses=once(loss))

    @property
    def rate(self) -> float:
        """g, by which a rank counts: where values lie evenly, ranks err like Laplace noise of scale 1/g."""
        return float(_rate(self, _BITS)[0])

    # What it releases

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> Any:
        """Release a cell for the counts of one histogram, or an array of cells for one histogram in each row."""
        histograms = self._histograms(counts)
        if histograms.ndim == 1:
            return self._released(histograms, rng)
        return np.array([self._released(histogram, rng) for histogram in histograms])

    def _histograms(self, counts: Any) -> NDArray[np.int64]:
        answer = read_histograms(counts, self.cells)
        if answer.ndim == 2 and self.groups and len(answer) > self.groups:
            raise InputError(f"The guarantee is for at most {self.groups} groups: make a mechanism for more of them.")
        return answer

    def _released(self, counts: NDArray[np.int64], rng: Random) -> int:
        upto = np.cumsum(counts)
        target = self.q * int(upto[-1]) + self.shift

        def distance(cell: int) -> Fraction:
            return self._distance(int(upto[cell] - counts[cell]) - target, target - int(upto[cell]))

        errors = self._distances(counts, upto, target)
        least = min(distance(cell) for cell in _nearest(errors, counts, upto))  # the best cell has a weight of 1
        near = (errors - errors.min()) * float(_rate(self, _BITS)[0])
        return self._drawn(near, lambda cell: self._weight(distance(cell) - least), rng)

    def _distances(self, counts: NDArray[np.int64], upto: NDArray[np.int64], target: Fraction) -> NDArray[np.float64]:
        """D of each cell, in floats."""
        return np.maximum(depths(counts, upto, target), 0.0)

    def _distance(self, above: Fraction, below: Fraction) -> Fraction:
        """D of a cell whose ranks begin that much above the target and end that much below it."""
        return max(above, below, Fraction(0))

    def _drawn(self, near: NDArray[np.float64], weight: Callable[[int], Bounds], rng: Random) -> int:
        """A cell, given how e^-near is less likely, and e^-y exactly."""
        raise NotImplementedError

    def _exponents(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        upto = np.cumsum(counts)
        errors = self._distances(counts, upto, self.q * int(upto[-1]) + self.shift)
        return np.asarray((errors - errors.min()) * float(_rate(self, _BITS)[0]))

    def _weight(self, rank_error: Fraction) -> Bounds:
        """e^(-g D) as a number to be enclosed."""

        def bounds(bits: int) -> tuple[int, int]:
            fine = -(-(bits + rank_error.numerator.bit_length() + 8) // 64) * 64
            lo, hi = _rate(self, fine)
            return exp_bounds(-rank_error * hi, bits)[0], exp_bounds(-rank_error * lo, bits)[1]

        return bounds

    # What to expect

    def rank_error(self, level: float = 0.95) -> float:
        """Return a t, rounded up, with P(D <= t) >= level for every table: ln((cells - 1) level/(1 - level)) / g.

        The worst that the cells can do is that one has D = 0 and all others a D just above t.
        """
        level_of(level)
        odds = (self.cells - 1) * Fraction(level) / (1 - Fraction(level))
        bound = Fraction(ln_bounds(odds, _BITS)[1], 1 << _BITS) / _rate(self, _BITS)[0]
        return nearest_float(max(Fraction(0), bound), up=True)

    def interval(self, level: float = 0.95) -> float:
        """Return the rank error at that level: how many values too far up or down the released cell may lie."""
        return self.rank_error(level)

    def variance(self) -> float:
        """Mean squared rank error at worst over all tables: the largest v^2 / (1 + e^v/(cells - 1)), over g^2.

        It is largest where (v - 2) e^v = 2 (cells - 1).
        """
        others, v = self.cells - 1, 2.0
        for _ in range(60):  # Newton's steps, from below
            v -= (v - 2 - 2 * others * math.exp(-v)) / (1 + 2 * others * math.exp(-v))
        return v**2 / (1 + math.exp(v) / others) / float(_rate(self, _BITS)[0]) ** 2

    # For audits

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """Tables of one group at which the theorem is tight, for one record and, if no other group is there, for two.

        (A record that is replaced across groups costs more than one that is replaced within a group.)
        """
        return [self._worst_pair(d) for d in (1, 2)[: 2 if self.groups == 1 else 1]]

    def _worst_pair(self, d: int) -> tuple[list[int], list[int], int]:
        """For 1/2 <= q < 1: all cells but two have ranks up to q n, and what comes last moves that away from them."""
        q, last, extreme = self._step, self.cells - 1, self._step == 1
        reach = math.ceil(36 / _rate(self, _BITS)[0]) + 2 * d
        n = reach if extreme else q.denominator * math.ceil(reach / (1 - q) / q.denominator)
        x = [0] * self.cells
        for cell, count in ((0, int(q * n)), (last - 1, reach), (last, int((1 - q) * n) - reach)):
            x[last if extreme else cell] += count
        moved = list(x)
        moved[0 if extreme and self.neighbours is REPLACE else last] += d
        moved[last if extreme else 0] -= d if self.neighbours is REPLACE else 0
        return (x, moved, d) if self.q >= Fraction(1, 2) else (x[::-1], moved[::-1], d)


@frozen
class Quantile(RankChoice):
    """The q-quantile of values on the grid 0 .. cells-1, given how many values each cell has.

    `epsilon` is what `rows` records of one person are worth, spread over any number of groups or over at most `groups`.
    With a `shift` the rank q n + shift is aimed at, for the ends of an error bar.

    >>> m, counts = Quantile(1, q="1/2", cells=8), [0, 5, 9, 40, 12, 3, 0, 1]
    >>> m.guarantee(1), 0 <= m(counts) < 8, m([counts, counts]).shape
    (Pure('1', neighbours=ADD_REMOVE), True, (2,))
    >>> float(m.pmf(3, counts).round(4)), round(m.rank_error(0.95), 2)
    (1.0, 4.45)
    """

    kind = Output.TABLE

    def _drawn(self, near: NDArray[np.float64], weight: Callable[[int], Bounds], rng: Random) -> int:
        return choice.choose(near, weight, rng)

    def pmf(self, y: Any, x: Any) -> Any:
        """P(the histogram x is released as cell y), for single cells or arrays of them."""
        law, y = self._law(self._exponents(np.asarray(x, dtype=np.int64))), np.asarray(y)
        inside = (y >= 0) & (y < self.cells) & (y == np.floor(y))
        return np.where(inside, law[np.where(inside, y, 0).astype(np.int64)], 0.0)[()]

    def _law(self, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.exp(-exponents)
        return np.asarray(weights / math.fsum(weights))

    def support(self, x: Any) -> Any:
        """All cells."""
        return np.arange(self.cells)


@lru_cache(maxsize=1024)
def _rate(m: RankChoice, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose g, for which `rows` records are worth epsilon."""
    total, parts = m._moves(m.rows, m.neighbours)
    if m._general:
        return m.epsilon / (m._sides * total), m.epsilon / (m._sides * total)
    lo, hi = choice.move(m.epsilon / parts, m.cells if m._sides == 2 else 2, bits)
    return lo * parts / total, hi * parts / total


def _nearest(errors: NDArray[np.float64], counts: NDArray[np.int64], upto: NDArray[np.int64]) -> list[int]:
    """The cells that may have the least distance, as far as doubles tell; one of those with the same ranks."""
    least = float(errors.min())
    cells = np.flatnonzero(errors <= least + 1e-9 * (1 + abs(least)))
    _, first = np.unique(2 * upto[cells] + (counts[cells] > 0), return_index=True)
    return [int(cell) for cell in cells[first]]


def read_histograms(counts: Any, cells: int, *, rows: bool = True) -> NDArray[np.int64]:
    """Read the counts of one histogram or, with `rows`, also of one in each row."""
    answer = integer_answer(counts)
    if answer.ndim not in ((1, 2) if rows else (1,)) or answer.shape[-1] != cells:
        raise InputError(f"The counts must be {cells} numbers, one for each cell{', or rows of that many' * rows}.")
    if answer.min() < 0 or answer.max() >= _MOST or answer.astype(float).sum(axis=-1).max() >= _MOST:
        raise InputError("The counts must be at least 0 and add up to less than 2^62.")
    return answer.astype(np.int64)


def depths(
    counts: NDArray[np.int64], upto: NDArray[np.int64], target: Fraction, *, below: Any = 0.0, above: Any = 0.0
) -> NDArray[np.float64]:
    """max(L + below - target, target - R + above) of each cell; the target's whole part is taken off first."""
    start = math.floor(target)
    rest = float(target - start)
    return np.asarray(np.maximum((upto - counts - start) - rest + below, (start - upto) + rest + above))


examples = [
    Quantile(1, q="1/2", cells=5),
    Quantile("1/3", q="9/10", cells=12),
    Quantile(6, q="1/4", cells=3),
    Quantile(2, q=0, cells=4),
    Quantile("0.7", q="0.123456789", cells=9, rows=2),
]
