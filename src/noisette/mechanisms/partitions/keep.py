"""Partition selection: which groups may be named, if their keys are not known in advance.

A group of n units (people, say) is kept with probability p_n; no (epsilon, delta)-DP rule keeps any group more often:
p_0 = 0,   p_(n+1) = min(e^epsilon p_n + delta, 1 - e^-epsilon (1 - p_n - delta), 1).
[Desfontaines-Voss-Gipson-Mandayam 2022, "Differentially private partition selection"]
The table is rounded down to 128 binary places, step by step, so both inequalities hold for what is drawn. A unit in up
to `groups` groups moves as many counts by one each, and their bits compose.   (proof note: docs/proofs/keys.md)

When: only the keys themselves are to be released, without their numbers of units; wherever a single bit decides.
Textbook: Smith, stability and truncated histograms, where Laplace noise on a count decides; its threshold misses delta.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Read, Whole, frozen
from noisette.exact.integers import CHUNK, Integers
from noisette.exact.number import Number, fraction, level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.partitions.per_partition import all_but, moved, read_promise, share
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import group_delta, powers_up
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import Response
from noisette.privacy.pld.tight import optimal_delta

__all__ = ["Keep"]

_BITS = 128
_ONE = 1 << _BITS
_STEEPEST = Fraction(80)  # a larger epsilon changes nothing that 128 binary places can show
_LONGEST = 1 << 22
_PLANNED = 1 << 18  # a table of that many steps is made in a fraction of a second
_LEAST = Fraction(1, 1 << 112)  # for each group: a share of 1e-30
_MANY = 10**7  # for more groups only the even split is tried
_LEVELS = (1, Fraction(19, 20), Fraction(9, 10), Fraction(3, 4), Fraction(1, 2))


Delta0: TypeAlias = Annotated[Read[Number, Fraction], lambda given, _: fraction(given, "delta")]


@frozen
class Keep(Mechanism):
    """One bit for each group, from the number of its units; `epsilon` and `delta0` are what each group costs.

    The array of bits has an entry for every group, so publish the keys of the kept groups alone, sorted.

    >>> m = Keep.calibrated(Approx(1, "1e-6"))
    >>> m.least(0.5), m.certain, m([0, 100, 28]).tolist()
    (14, 28, [False, True, True])
    >>> m.guarantee()
    Approx('1', '1/1000000', neighbours=ADD_REMOVE)
    """

    kind = Output.GROUPS
    sized_by = "epsilon"
    epsilon: Positive
    delta0: Delta0
    _: KW_ONLY
    groups: Whole = 1
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        if not _LEAST <= self.delta0 < 1:
            raise InputError("delta must lie between 1e-30 and 1: a usual one is '1e-6'.")
        if 2 * _halfway(self.epsilon, self.delta0) > _LONGEST:
            raise InputError("epsilon must be larger: every group of fewer than a million units would be suppressed.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, groups: int = 1) -> "Keep":
        """Return the rule that keeps the promise for `sensitivity` units in up to `groups` groups each.

        Under replace twice as many groups change. For many groups a part of delta buys a larger epsilon for each: of
        a few such splits the one is taken that keeps half of the smallest groups.   [Kairouz-Oh-Viswanath 2015]

        >>> Keep.calibrated(Approx(1, "1e-6"), groups=2).epsilon
        Fraction(1, 2)
        >>> Keep.calibrated(Approx(1, "1e-6"), groups=100).epsilon > Fraction(2, 100)
        True
        """
        agreed(guarantee, sensitivity)
        promise = read_promise(guarantee)
        groups, units, keys = _sizes(promise, sensitivity, groups)
        spread = powers_up(promise.epsilon / keys / units, units)
        best = min(
            (_split(promise, keys, part) for part in (_LEVELS if 1 < keys <= _MANY and units == 1 else (1,))),
            key=lambda pair: _halfway(*pair),
        )
        epsilon, delta = best[0] / units, _down(best[1] / spread)
        if delta >= _LEAST and 2 * _halfway(epsilon, delta) > _PLANNED:
            raise InputError(
                "epsilon and delta are too small to name any group of fewer than 100,000 units: spend more of either."
            )
        return cls(epsilon, delta, groups=groups)

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> Any:
        """Keep (True) or suppress (False) groups with these numbers of units; one without units is never kept."""
        table = _table(self.epsilon, self.delta0)
        at = self._places(counts)
        if not np.ndim(counts):
            return rng.bits(_BITS) < table[int(at)]
        flat, high = at.ravel(), _high(self.epsilon, self.delta0)
        kept = np.empty(flat.size, bool)
        for start in range(0, flat.size, CHUNK):
            part = slice(start, start + CHUNK)
            kept[part] = _drawn(flat[part], high, table, rng)
        return kept.reshape(at.shape)

    def _places(self, counts: Any) -> Integers:
        units = integer_answer(counts)
        if units.min() < 0:
            raise InputError("Counts must be at least 0: they are numbers of units.")
        return np.asarray(np.minimum(units, self.certain), np.int64)

    @property
    def certain(self) -> int:
        """The number of units from which every group is kept."""
        return len(_table(self.epsilon, self.delta0)) - 1

    def chance(self, counts: Any) -> Any:
        """Return the probability that groups with these numbers of units are kept.

        >>> Keep(1, "1e-6").chance([0, 1, 28]).tolist()
        [0.0, 1e-06, 1.0]
        """
        return _floats(self.epsilon, self.delta0)[0][self._places(counts)]

    def least(self, level: float = 0.5) -> int:
        """Return the least number of units with which a group is kept with at least that probability."""
        level_of(level)
        return int(np.searchsorted(_floats(self.epsilon, self.delta0)[0], level))

    def guarantee(self, distance: Distance = 1, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Approx:
        """Return what holds for `distance` units in up to `groups` groups each, or for counts moved by a `Sensitivity`.

        k groups that move by w each: (k w epsilon, 1 - (1 - delta_w)^k), delta_w = delta (1 + … + e^((w-1) epsilon)),
        rounded up. It knows that bits of several groups compose better than that.
        """
        move = moved(distance, self.groups, neighbours)
        w = math.floor(move.linf)
        if not w:
            return Approx(0, 0, neighbours=move.neighbours)
        steps = math.floor(min(move.l1, Fraction(w * move.l0)))
        keys, delta = math.ceil(Fraction(steps, w)), group_delta(self.epsilon, self.delta0, w)
        if delta >= 1:
            raise InputError(
                f"A group of {w} units is always seen here, which no guarantee allows: "
                "calibrate for as many units of one person."
            )
        known = once(Response(w * self.epsilon, delta))
        return Approx(
            steps * self.epsilon, all_but(delta, keys), neighbours=move.neighbours, losses=known and known * keys
        )

    def pmf(self, y: Any, x: Any) -> Any:
        """P(a group of x units is kept, or suppressed: y is True or False)."""
        kept, suppressed = (chances[self._places(x)] for chances in _floats(self.epsilon, self.delta0))
        y = np.asarray(y)
        return np.where(y == 1, kept, np.where(y == 0, suppressed, 0.0))[()]

    def variance(self) -> float:
        """Mean squared number of units that go unnamed, at worst over n: n^2 (1 - p_n)."""
        suppressed = _floats(self.epsilon, self.delta0)[1]
        return float(np.max(suppressed * np.arange(len(suppressed)) ** 2))

    def interval(self, level: float = 0.95) -> float:
        """Return the largest number of units that may go unnamed with more than 1 - level: larger groups are kept."""
        return float(self.least(level) - 1)

    def pairs(self) -> Sequence[tuple[int, int, int]]:
        """Neighbours on either half of the curve, and a group that only one unit holds."""
        half = self.least(0.5)
        return [(half - 1, half, 1), (0, 1, 1), (half, half + 1, 1)] if half > 1 else [(0, 1, 1)]

    def worst(self) -> Sequence[int]:
        """All numbers of units for which a group may be suppressed: the largest of their errors is stated."""
        return range(self.certain + 1)

    def error(self, y: Any, x: int) -> Any:
        """Return how many units go unnamed."""
        return np.where(y, 0, x)

    def support(self, x: int) -> Any:
        """Kept and suppressed."""
        return np.array([False, True])


def _sizes(promise: Approx, sensitivity: Distance, groups: int) -> tuple[int, int, int]:
    """How many groups a unit is in, how many units are protected together, and how many counts they move."""
    move = moved(sensitivity, whole(groups, "groups"), promise.neighbours or Neighbours.ADD_REMOVE)
    units = whole(math.floor(move.linf), "sensitivity")
    keys = math.ceil(Fraction(math.floor(min(move.l1, Fraction(units * move.l0))), units))
    return (keys + 1) // 2 if move.neighbours is Neighbours.REPLACE else keys, units, keys


def _halfway(epsilon: Fraction, delta: Fraction) -> float:
    """The n, not whole, with p_n = 1/2: delta (e^(n epsilon) - 1)/(e^epsilon - 1) = 1/2."""
    e = float(min(epsilon, _STEEPEST))
    return math.log1p(math.expm1(e) / (2 * float(delta))) / e


def _split(promise: Approx, keys: int, part: Fraction | int) -> tuple[Fraction, Fraction]:
    """The epsilon and delta of each of `keys` groups if a part of delta goes to what only one unit holds."""
    delta, low = share(part * promise.delta, keys), promise.epsilon / keys
    if part == 1:
        return low, delta

    def kept(epsilon: Fraction) -> bool:
        return Fraction(optimal_delta(epsilon, delta, keys, promise.epsilon)) <= promise.delta

    high = 2 * low
    while kept(high):
        low, high = high, 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low, delta


def _down(value: Fraction) -> Fraction:
    """The value, or where it is long one a little below it."""
    unit = 1 << 160
    return value if value.denominator < unit else Fraction(math.floor(value * unit), unit)


@lru_cache(maxsize=16)
def _table(epsilon: Fraction, delta: Fraction) -> list[int]:
    """2^128 p_n, n = 0, 1, … until it is certain: each rounded down from the one before it as it was rounded."""
    e, places = min(epsilon, _STEEPEST), _BITS + 64
    grow, shrink = exp_bounds(e, places)[0], exp_bounds(-e, places)[1]
    gift = math.floor(delta * _ONE)
    table = [0]
    while table[-1] < _ONE:
        p = table[-1]
        rest = max(0, _ONE - p - gift) * shrink
        table.append(min((p * grow >> places) + gift, _ONE + (-rest >> places), _ONE))
    return table


@lru_cache(maxsize=16)
def _high(epsilon: Fraction, delta: Fraction) -> NDArray[np.uint64]:
    """The first 64 binary places; where it is certain, all of them ones."""
    return np.array([min(p >> 64, 2**64 - 1) for p in _table(epsilon, delta)], np.uint64)


@lru_cache(maxsize=16)
def _floats(epsilon: Fraction, delta: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p_n and 1 - p_n."""
    table = _table(epsilon, delta)
    return np.array([p / _ONE for p in table]), np.array([(_ONE - p) / _ONE for p in table])


def _drawn(at: NDArray[np.int64], high: NDArray[np.uint64], table: list[int], rng: Random) -> NDArray[np.bool_]:
    """Compare 64 bits with the first places of p_n, and 64 more where they are equal."""
    word, cut = rng.words(at.size, np.uint64), high.take(at)
    kept = word < cut
    for i in np.flatnonzero(word == cut):
        kept[i] = (int(word[i]) << 64 | rng.bits(64)) < table[int(at[i])]
    return np.asarray(kept)


examples = [Keep(1, "1e-6"), Keep("1/10", "1e-4"), Keep("1/2", "1/50"), Keep(3, "1e-12")]
