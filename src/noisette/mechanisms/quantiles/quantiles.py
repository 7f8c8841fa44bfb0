"""Many quantiles at once: split the table at the middle one, then each half at the middle of its own.

Quantiles q_1 < … < q_m of values in cells 0 .. cells-1. The values of a cell are spread evenly over it, so M(u), how
many lie below a place u of the line, is piecewise linear. The middle quantile of a part (u, w) aims at the rank
T = M(u) + q (M(w) - M(u)), q relative to the part, and releases a place v with probability proportional to
e^(-g |M(v) - T|): the exponential mechanism. Then (u, v) and (v, w) are split alike, for the quantiles on each side.
There are floor(log2 m) + 1 levels. A part with one quantile left is not split any more: it releases a whole cell with
e^(-g S), S = max(L - T, T - R) for its ranks L .. R.   [Kaplan-Schnapp-Stemmer 2022, for distinct values]

A record spread evenly lies in several parts, with weights that sum to 1 on each level. In a part it moves distances
by at most its weight, within a range of r = 2 max(q, 1 - q) weights (r = 1 if q is 0 or 1). With g = epsilon/(levels r)
that part loses at most weight epsilon/levels, a level epsilon/levels, whatever its number of parts, and in all

    epsilon for each record that is added or removed, twice that for one that is replaced (one removed, one added),

and no less for some tables. The losses of a level lie within a range of epsilon/levels, so it is
epsilon^2/(8 levels)-zCDP as well.   [Dong-Durfee-Rogers 2020, Cesar-Rogers 2021]

With a `shift` for each quantile its target is q n + shift: T moves by that, less what the ends of the part have moved,
a public number. It may lie beyond an end, and distances still move by at most the weight (within 2 of it if q is 0 or
1, unless that end is the one). The ends of error bars are drawn so.

So ties do no harm: a cell that holds several quantiles is split within, at one of `ties` places. What is released does
not decrease, because parts keep the place they were split at. Proofs, also of `interval`: docs/proofs/quantiles.md

When: several quantiles of the same values, such as nine deciles: the price grows with the logarithm of their number.
Textbook: Cormode's median by the exponential mechanism is one part of it.

Vocabulary: `place` the middle of one of `ties` parts of a cell, numbered along the line · `mass` M, at a place.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, Positive, Read, Whole, default, frozen, set_fields
from noisette.exact.number import Number, fraction, level_of, nearest_float, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import ln_bounds, sqrt_down
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_distance, read_sensitivity
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.quantiles.quantile import read_histograms
from noisette.mechanisms.quantiles.spread_ties import Cells, Side, TieSpread, choose_cell, choose_place
from noisette.privacy import ZCDP, Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.ranges import BoundedRange

__all__ = ["Quantiles"]

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
_BITS = 96
_ENUMERATED = 2**21
_BEHIND = 20  # ranks times g, all levels together


@dataclass(frozen=True)
class _Part:
    """The quantile `which` that splits a part, relative to it, and what is left to find on either side.

    Its target lies `move` ranks off.
    """

    which: int
    q: Fraction
    move: Fraction
    below: "_Part | None"
    above: "_Part | None"

    @property
    def last(self) -> bool:
        return self.below is None and self.above is None

    @cached_property
    def range(self) -> Fraction:
        """Within which a record moves the distances."""
        at_an_end = (self.q == 0 and self.move <= 0) or (self.q == 1 and self.move >= 0)
        return Fraction(1) if at_an_end else 2 * max(self.q, 1 - self.q)


@lru_cache(maxsize=256)
def _parts(at: tuple[Fraction, ...], shift: tuple[Fraction, ...], first: int, end: int) -> _Part | None:
    """The parts for the quantiles first .. end-1; those before and after them are at the part's ends."""
    if first == end:
        return None
    low, s_low = (at[first - 1], shift[first - 1]) if first else (Fraction(0), Fraction(0))
    high, s_high = (at[end], shift[end]) if end < len(at) else (Fraction(1), Fraction(0))
    middle = (first + end - 1) // 2
    q = (at[middle] - low) / (high - low)
    below, above = _parts(at, shift, first, middle), _parts(at, shift, middle + 1, end)
    return _Part(middle, q, shift[middle] - (1 - q) * s_low - q * s_high, below, above)


def _ascending(at: Iterable[Number], name: str) -> tuple[Fraction, ...]:
    if isinstance(at, str) or not isinstance(at, Iterable):
        raise InputError(f"{name} must be the quantiles asked for, such as ('1/4', '1/2', '3/4').")
    quantiles = tuple(fraction(q, name) for q in at)
    if not quantiles or not all(0 <= q <= 1 for q in quantiles):
        raise InputError(f"{name} must have quantiles between 0 (the minimum) and 1 (the maximum): the median is 1/2.")
    if any(a >= b for a, b in pairwise(quantiles)):
        raise InputError(f"{name} must have quantiles in ascending order, each of them once.")
    return quantiles


@frozen
class Quantiles(Mechanism):
    """The cells of the quantiles `at`, ascending, given how many values each cell has.

    `epsilon` is what a record is worth that is added or removed. Cells with up to `ties` records are split to within
    half a record; with more of them privacy is the same, and quantiles may lie by more ranks apart. With a `shift`, for
    all or for each, the ranks q n + shift are aimed at.

    >>> from noisette import Neighbours, sensitivity
    >>> m, counts = Quantiles(2, at=("1/4", "1/2", "3/4"), cells=8), [0, 500, 900, 4000, 1200, 300, 0, 100]
    >>> m.guarantee(1), m.levels, m(counts)
    (Pure('2'), 2, (3, 3, 3))
    >>> m.guarantee(sensitivity.histogram(neighbours=Neighbours.REPLACE))
    Pure('4', neighbours=REPLACE)
    """

    kind = Output.OUTCOME
    sized_by = "epsilon"
    epsilon: Annotated[Positive, partial(positive, most=1000)]
    _: KW_ONLY
    at: Annotated[Read[Iterable[Number], tuple[Fraction, ...]], _ascending] = default(DECILES)
    cells: Annotated[int, partial(whole, least=2)]
    ties: Whole = 2**20
    shift: Read[Number | Iterable[Number], tuple[Fraction, ...]] = default(0)
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        set_fields(self, shift=_shifts(self.shift, len(self.at)))
        if self.cells > choice.LARGEST // 2:
            raise InputError(f"cells must be at most {choice.LARGEST // 2:,}: choose a coarser grid.")
        if self.ties > 2**40:
            raise InputError("ties must be at most 2^40: ranks do not get any better.")

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        at: Iterable[Number] = DECILES,
        cells: int,
        ties: int = 2**20,
        shift: Number | Iterable[Number] = 0,
    ) -> "Quantiles":
        """Return the most accurate one for a histogram's sensitivity, or for that many records of one person."""
        agreed(guarantee, sensitivity)
        records, one = read_sensitivity(sensitivity, 1), cls(1, at=at, cells=cells, ties=ties, shift=shift)
        epsilon = pure_epsilon(guarantee)
        if isinstance(guarantee, ZCDP):
            epsilon = sqrt_down(8 * one.levels * guarantee.rho)
        return cls(epsilon / records, at=one.at, cells=cells, ties=ties, shift=one.shift)

    # What it promises

    @property
    def levels(self) -> int:
        """How often a record is looked at: floor(log2 m) + 1 times."""
        return len(self.at).bit_length()

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(epsilon distance), the distance in records added or removed, with what its levels compose to."""
        records, neighbours = read_distance(distance, self.norm)
        each = self.epsilon * records / self.levels
        known = once(BoundedRange(each)) if records else None
        return Pure(self.epsilon * records, neighbours=neighbours, losses=known and known * self.levels)

    def _rate(self, part: _Part) -> Fraction:
        """g."""
        return self.epsilon / (self.levels * part.range)

    @property
    def _root(self) -> _Part:
        root = _parts(self.at, self.shift, 0, len(self.at))
        assert root is not None
        return root

    # What it releases

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Release the cells for the counts of one histogram."""
        return tuple(self._found(read_histograms(counts, self.cells, rows=False), rng))

    def release(self, counts: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Release the cells for one histogram in each row; a record that is added or removed is in one of them."""
        return np.array([self._found(row, rng) for row in np.atleast_2d(read_histograms(counts, self.cells))])

    def _found(self, counts: NDArray[np.int64], rng: Random) -> list[int]:
        spread, found = TieSpread(counts, np.cumsum(counts), self.ties), [0] * len(self.at)
        left = [(self._root, spread.line)]
        while left:
            part, side = left.pop()
            target = side.target(part.q, part.move)
            if part.last:
                found[part.which] = choose_cell(spread, side, target, self._rate(part), rng)
                continue
            place = choose_place(spread, side, target, self._rate(part), rng)
            found[part.which] = place // self.ties
            halves = zip((part.below, part.above), side.split(place, spread.mass(place)), strict=True)
            left += [(half, its) for half, its in halves if half]
        return found

    # What to expect

    def error(self, y: Sequence[int], x: Any) -> float:
        """Return the largest rank error: how far q n + shift is from the ranks of the cell released for it."""
        upto = [0, *np.cumsum(np.asarray(x, dtype=np.int64)).tolist()]
        targets = [q * upto[-1] + shift for q, shift in zip(self.at, self.shift, strict=True)]
        return max(float(max(upto[i] - t, t - upto[i + 1], 0)) for t, i in zip(targets, y, strict=True))

    def scales(self) -> NDArray[np.float64]:
        """Return in row j of which scales the independent Laplace noises are that quantile j's rank errs by in sum.

        It is so where values lie evenly around: a part errs with scale 1/g, and the parts below it inherit that.
        """
        found, none = np.zeros((len(self.at), len(self.at))), np.zeros(len(self.at))
        left: list[tuple[_Part | None, NDArray[np.float64], NDArray[np.float64]]] = [(self._root, none, none)]
        while left:
            part, low, high = left.pop()
            if part:
                own = found[part.which]
                own += float(1 - part.q) * low + float(part.q) * high
                own[part.which] = 1 / float(self._rate(part))
                left += [(part.below, low, own), (part.above, own, high)]
        return found

    def interval(self, level: float = 0.95) -> float:
        """Return a t, rounded up, with P(error <= t) >= level for every table of at most `ties` records in a cell.

        The errors of the parts that a quantile lies in add up at most; each exceeds its bound with (1 - level)/m.
        """
        level_of(level)
        return _interval(self, level)

    def _worst(self, part: _Part | None, miss: Fraction) -> Fraction:
        """The bound of a part with the largest of those within it."""
        if part is None:
            return Fraction(0)
        others, room = (self.cells - 1, 0) if part.last else (self.cells * self.ties, Fraction(1, 2))
        odds = max(Fraction(1), others * (1 - miss) / miss)
        own = abs(part.move) + room + Fraction(ln_bounds(odds, _BITS)[1], 1 << _BITS) / self._rate(part)
        return own + max(self._worst(part.below, miss), self._worst(part.above, miss))

    # For audits

    def outcomes(self, x: Any) -> dict[tuple[int, ...], float]:
        """Return the probability of every tuple of cells that can be released, for few cells and ties."""
        counts = read_histograms(x, self.cells, rows=False)
        return dict(_law(self, tuple(counts.tolist())))

    def _enumerated(self, counts: NDArray[np.int64]) -> dict[tuple[int, ...], float]:
        if (self.cells * self.ties) ** (self.levels - 1) * self.cells > _ENUMERATED:
            raise InputError("The law is enumerated for few cells and ties only: choose fewer of them.")
        spread = TieSpread(counts, np.cumsum(counts), self.ties)
        return self._of_part(self._root, spread, spread.line)

    def _of_part(self, part: _Part | None, spread: TieSpread, side: Side) -> dict[tuple[int, ...], float]:
        if part is None:
            return {(): 1.0}
        target, rate = side.target(part.q, part.move), float(self._rate(part))
        if part.last:
            cells = Cells(spread, side, target)
            chances = _chances(cells.depths() * rate)
            return {(cells.first + i,): p for i, p in enumerate(chances.tolist())}
        law: dict[tuple[int, ...], float] = defaultdict(float)
        masses = [spread.mass(place) for place in range(side.first, side.last + 1)]
        chances = _chances(np.array([float(abs(mass - target)) for mass in masses]) * rate)
        for place, (mass, p) in enumerate(zip(masses, chances.tolist(), strict=True), start=side.first):
            below, above = side.split(place, mass)
            highs = self._of_part(part.above, spread, above).items()
            for low, p_low in self._of_part(part.below, spread, below).items():
                for high, p_high in highs:
                    law[*low, place // self.ties, *high] += p * p_low * p_high
        return dict(law)

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """Tables in which each target on a path through the parts lies in empty cells, and one has a record more."""
        reach = math.ceil(_BEHIND / self.levels / self._rate(self._root))
        up = telling_tables(self._path(up=True), self.cells, reach, self._empty)
        down = telling_tables([1 - q for q in self._path(up=False)], self.cells, reach, self._empty)
        even = even_table(self.cells, self._rate(self._root))
        return [(*up, 1), (down[0][::-1], down[1][::-1], 1), (even, [even[0] + 1, *even[1:]], 1)]

    def _path(self, *, up: bool) -> list[Fraction]:
        """The relative quantiles of the parts at the upper or lower end, as many as the cells have room for."""
        part: _Part | None = self._root
        path: list[Fraction] = []
        while part and part.q != int(up) and (self._empty + 3) * (len(path) + 1) < self.cells:
            path.append(part.q)
            part = part.above if up else part.below
        return path

    @property
    def _empty(self) -> int:
        return max(1, self.cells // (8 * self.levels))

    @property
    def tightness(self) -> float:
        """How much of epsilon the pairs lose: on the last level all but what few empty cells leave, else 0.8.

        With a shift the targets lie elsewhere, and nothing is claimed.
        """
        if any(self.shift):
            return 0.0
        return max(self._reached(self._path(up=True)), self._reached([1 - q for q in self._path(up=False)]))

    def _reached(self, path: list[Fraction]) -> float:
        lost, n = 0.0, self._empty + 2  # cells with S = 0; with a record more one has S = -q, the others S = q
        for level, q in enumerate(path, start=1):
            most = 2 * max(q, 1 - q)
            t = float(self.epsilon / self.levels * q / most)
            last = t + math.log(n / (math.exp(t) + (n - 1) * math.exp(-t)))
            early = 0.8 * float(self.epsilon / self.levels * (q + max(q, 1 - q)) / most)
            lost += (last * (1 - 1e-6) if level == self.levels else early) / float(self.epsilon)
        return lost


@lru_cache(maxsize=64)
def _interval(m: Quantiles, level: float) -> float:
    return nearest_float(m._worst(m._root, (1 - Fraction(level)) / len(m.at)), up=True)


@lru_cache(maxsize=64)
def _law(m: Quantiles, counts: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    return m._enumerated(np.array(counts, np.int64))


def telling_tables(path: Sequence[Fraction], cells: int, reach: int, empty: int) -> tuple[list[int], list[int]]:
    """Return a table, and another with a record more in the last cell, which moves all targets away from most cells.

    On each level of the path: all up to the target, `empty` cells, at least `reach` ranks, an empty cell.
    """
    counts, total = [1], 1
    for q in reversed(path):
        k = math.ceil((total + reach) / (1 - q) / q.denominator)
        above = int((1 - q) * q.denominator * k)
        counts = [int(q * q.denominator * k), *([0] * empty), above - total, 0, *counts]
        total = q.denominator * k
    first, room = divmod(counts[0], cells + 1 - len(counts))
    spread = [first + (i < room) for i in range(cells + 1 - len(counts))]
    table = [*spread, *counts[1:]]
    return table, [*table[:-1], table[-1] + 1]


def even_table(cells: int, rate: Fraction) -> list[int]:
    """Return a table whose law shows the rate: as many values in each cell as leave the ends a weight of e^-3."""
    return [max(1, round(6 / (cells * rate)))] * cells


def _shifts(shift: Number | Iterable[Number], size: int) -> tuple[Fraction, ...]:
    each = [shift] * size if isinstance(shift, str) or not isinstance(shift, Iterable) else list(shift)
    if len(each) != size:
        raise InputError("shift must be one number, or one for each quantile.")
    return tuple(fraction(ranks, "shift") for ranks in each)


def _chances(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(exponents.min() - exponents)
    return np.asarray(weights / math.fsum(weights))


examples = [
    Quantiles(2, at=("1/2", "3/4"), cells=16, ties=12),
    Quantiles("1/5", at=["1/2"], cells=40),
    Quantiles(3, at=("1/4", "1/2", "3/4"), cells=12, ties=12),
    Quantiles(4, at=(0, "1/2", 1), cells=9, ties=12),
]
