"""Shared by mechanisms that release a value only where it is stable: the test, its price, and checks of distances.

A value takes c changes to alter: c = d + 1 if it withstands any d of them. It is released with probability p_c, the
largest that (epsilon, delta)-DP allows (see `keep`). Two tables that differ by L people either have the same value,
with c that differ by at most L, or different ones, with c of at most L each: both cost what L steps along p cost.
(proof note: docs/proofs/stability.md)

Vocabulary: `changes` c · `steps` L · `tests` how many such bits are drawn for one table.
"""

import math
import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.exact.frozen import KW_ONLY, Exact, Positive, frozen
from noisette.exact.number import Number, fraction
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.additive.lattice import integer_answer, real_answer
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.partitions.keep import Keep
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.neighbours import Relation
from noisette.privacy.sensitivity import Sensitivity

__all__ = [
    "Bin",
    "Counted",
    "ShiftedBins",
    "Stability",
    "approximate",
    "check_distance",
    "distance_steps",
    "kept_by",
    "moves",
    "read_distance",
    "read_pair",
    "relation_of",
]

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


@frozen
class Stability(Mechanism):
    """A value or None; `epsilon` and `delta` are what each test of it costs."""

    kind = Output.OUTCOME
    sized_by = "epsilon"
    epsilon: Positive
    delta: Exact
    tests: ClassVar[int] = 1
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        if self.delta <= 0:
            raise InputError("delta must be above 0, as no exact value can be released without one: use '1e-6', say.")
        assert self._keep  # which refuses what is too small or too large

    @cached_property
    def _keep(self) -> Keep:
        return Keep(self.epsilon, self.delta)

    # What it promises

    def guarantee(self, distance: Distance = 1) -> Approx:
        """Return (tests steps epsilon, delta of as many steps), rounded up."""
        steps, neighbours = self._steps(distance)
        kept = self._keep.guarantee(moves(steps, self.tests))
        return Approx(kept.epsilon, kept.delta, neighbours=neighbours, losses=kept.losses)

    def _steps(self, distance: Distance) -> tuple[int, Neighbours | None]:
        """How far c can move, and the relation if one is named."""
        return distance_steps(distance)

    # What it releases

    def _stable(self, x: Any) -> tuple[Hashable, int]:
        """The value and how many changes it takes to alter it."""
        raise NotImplementedError

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Hashable:
        """Release the value, exactly, or None."""
        value, changes = self._stable(x)
        return value if self._passes(changes, rng) else None

    def _passes(self, changes: int, rng: Random) -> bool:
        """Draw the bit of one test."""
        return bool(self._keep(min(changes, self.certain), rng))

    def outcomes(self, x: Any) -> Mapping[Hashable, float]:
        """Return the probabilities of the value and of None."""
        value, changes = self._stable(x)
        kept, suppressed = self._odds(changes)
        return {value: kept, None: suppressed} if kept else {None: 1.0}

    def _odds(self, changes: int) -> tuple[float, float]:
        at = min(changes, self.certain)
        return float(self._keep.pmf(True, at)), float(self._keep.pmf(False, at))

    # What to expect

    def least(self, level: float = 0.5) -> int:
        """Return how many changes a value must take to alter, to be released with at least that probability."""
        return self._keep.least(level)

    @property
    def certain(self) -> int:
        """The number of changes from which on every value is released."""
        return self._keep.certain

    def error(self, y: Any, x: Any) -> float:
        """0 for a value, which is right; for None the number of changes that the value would have taken."""
        return float(self._stable(x)[1]) if y is None else 0.0

    def interval(self, level: float = 0.95) -> float:
        """Return the largest number of changes with which a value is suppressed with more than 1 - level."""
        return self._keep.interval(level)

    @property
    def _halves(self) -> tuple[int, int]:
        """Neighbouring numbers of changes between which the chance of a release passes one half."""
        half = max(2, self.least(0.5))
        return half - 1, half

    @property
    def tightness(self) -> float:
        """Delta is attained at epsilon all along the curve; where one person alters the value, at every epsilon."""
        return 1.0


@frozen
class Counted(Stability):
    """A stable value whose changes are counted in the table itself, under a relation."""

    own_relation = True
    _: KW_ONLY
    neighbours: Relation = ADD_REMOVE

    @classmethod
    def _kept(cls, guarantee: Promise, sensitivity: Distance, **options: Any) -> Self:
        """The one that keeps the promise for a histogram's sensitivity, or for that many people."""
        options["neighbours"] = relation_of(guarantee, sensitivity)
        steps, _ = cls(1, "1e-6", **options)._steps(sensitivity)
        keep = kept_by(guarantee, steps, cls.tests)
        return cls(keep.epsilon, keep.delta0, **options)

    def _steps(self, distance: Distance) -> tuple[int, Neighbours | None]:
        """A number of people, or the records by which a histogram's sensitivity counts: a replaced one is two."""
        if not isinstance(distance, Sensitivity):
            return whole_steps(distance), self.neighbours
        records = math.floor(distance.l1)
        steps = records if self.neighbours is ADD_REMOVE else self._replacements(records, distance.neighbours)
        return steps, distance.neighbours

    def _replacements(self, records: int, relation: Neighbours) -> int:
        """How far the number of replacements that it takes can move, if that many records come or go."""
        return -(-records // 2)

    def _counted(self, changes: int) -> int:
        """Changes under its relation, given how many records must be added or removed."""
        return changes if self.neighbours is ADD_REMOVE else -(-changes // 2)


def whole_steps(distance: Number) -> int:
    """Read how many people two tables differ by."""
    number = fraction(distance, "distance")
    if number.denominator != 1 or number < 0:
        raise InputError("distance must be a whole number of people, at least 0.")
    return int(number)


def distance_steps(distance: Distance) -> tuple[int, Neighbours | None]:
    """Read how far a distance can move, and the relation if one is named."""
    if isinstance(distance, Sensitivity):
        return math.floor(distance.l1), distance.neighbours
    return whole_steps(distance), None


def moves(steps: int, tests: int = 1) -> Sensitivity:
    """Return the move of as many numbers of changes, by that many steps each."""
    return Sensitivity(tests * steps, tests * steps**2, steps, tests if steps else 0, neighbours=ADD_REMOVE)


def approximate(guarantee: Promise, steps: int) -> Approx:
    """Return the (epsilon, delta) that is to be kept for that many steps; nothing exact is released without a delta."""
    if not isinstance(guarantee, Approx) or not guarantee.delta:
        raise InputError("Releasing what is stable needs a delta above 0: ask for Approx(epsilon, delta).")
    if not steps:
        raise InputError("sensitivity must be at least 1: one person can move the distance.")
    return Approx(guarantee.epsilon, guarantee.delta)


def kept_by(guarantee: Promise, steps: int, tests: int = 1) -> Keep:
    """Return the rule by which as many tests keep the guarantee for that many steps."""
    return Keep.calibrated(approximate(guarantee, steps), moves(steps, tests))


def relation_of(guarantee: Promise, sensitivity: Distance) -> Neighbours:
    """Return the relation that a guarantee or a sensitivity names; add/remove if neither does."""
    agreed(guarantee, sensitivity)
    named = sensitivity.neighbours if isinstance(sensitivity, Sensitivity) else None
    return named or guarantee.neighbours or ADD_REMOVE


# Distances that people compute themselves


def read_distance(distance: Any) -> int:
    """Read a distance to instability: a whole number, at least 0."""
    if isinstance(distance, bool) or not isinstance(distance, numbers.Integral) or distance < 0:
        raise InputError("The distance must be a whole number, at least 0: how many changes the value withstands.")
    return int(distance)


def read_pair(x: Any) -> tuple[Any, int]:
    """Read (value, distance); a value is hashable, equal to itself, and not None.

    >>> read_pair(("north", 12))
    ('north', 12)
    """
    if not isinstance(x, tuple) or len(x) != 2:
        raise InputError("The input must be a pair (value, distance).")
    return checked_key(x[0]), read_distance(x[1])


def checked_key(value: Any) -> Any:
    """Return a value that can be released; None is what stands for no value."""
    try:
        usable = value is not None and hash(value) is not None and bool(value == value)
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise InputError("A value must be hashable, equal to itself and not None, such as a text or a tuple.")
    return value


def check_distance(
    distance: Callable[[Any], int],
    pairs: Iterable[tuple[Any, Any]],
    *,
    answer: Callable[[Any], Any] | None = None,
    bound: Number = 0,
) -> int:
    """Check a distance on pairs of neighbouring tables, drawn at random say; return how many were checked.

    It must be whole, at least 0, move by at most 1, and be 0 for neighbours whose answers differ (by more than the
    bound). That is what a guarantee rests on; pairs that pass prove nothing about other pairs.

    >>> check_distance(lambda x: max(0, x - 3), [(n, n + 1) for n in range(9)])
    9
    """
    most, count = fraction(bound, "bound"), 0
    for x, y in pairs:
        d, d_prime = (read_distance(distance(table)) for table in (x, y))
        if abs(d - d_prime) > 1:
            raise PrivacyError("The distance moves by more than 1 between neighbours: nothing holds for such a one.")
        if answer is not None and max(d, d_prime) > 0 and _apart(answer(x), answer(y), most):
            raise PrivacyError("The distance is above 0 though a neighbour's answer is too far: it must be 0 there.")
        count += 1
    return count


def _apart(a: Any, b: Any, bound: Fraction) -> bool:
    if not bound:
        return bool(a != b)
    return abs(Fraction(real_answer(a).item()) - Fraction(real_answer(b).item())) > bound


# Statistics that are released by the bin, in two partitions: one is shifted by half a bin, so that a statistic next to
# an edge of one lies inside a bin of the other. Each bin is tested for itself by how many changes it takes until the
# statistic leaves it, and released or not: two tests, whose costs add up.   [Dwork-Lei 2009]


Bin = tuple[int, int]
"""The lowest and the highest whole number in it."""

_LARGEST = 2**60


@frozen
class ShiftedBins(Counted):
    """A pair of bins that hold the statistic, each of which may be None."""

    tightness = 0.5
    """Half of delta, at 2 epsilon; all of it is attained, at every epsilon, where one person alters both bins."""

    tests: ClassVar[int] = 2

    def _bins(self, values: NDArray[np.int64]) -> Sequence[tuple[Bin, int]]:
        """The bin of either partition, and how many changes it takes to leave it, for sorted values."""
        raise NotImplementedError

    def _both(self, x: Any) -> Sequence[tuple[Bin, int]]:
        values = integer_answer(x)
        if values.ndim != 1 or abs(int(values.min())) >= _LARGEST or abs(int(values.max())) >= _LARGEST:
            raise InputError("The values must be a list of whole numbers between -2^60 and 2^60: use a coarser unit.")
        return self._bins(np.sort(values.astype(np.int64)))

    def __call__(self, x: Any, rng: Random = SYSTEM) -> tuple[Bin | None, Bin | None]:
        """Release bins (lowest, highest) that hold the statistic, or None for each."""
        (a, changes), (b, more) = self._both(x)
        return (a if self._passes(changes, rng) else None), (b if self._passes(more, rng) else None)

    def outcomes(self, x: Any) -> Mapping[Hashable, float]:
        """Return the probabilities of both bins, of one and of none: a product."""
        (a, changes), (b, more) = self._both(x)
        first, second = (dict(zip((v, None), self._odds(c), strict=True)) for v, c in ((a, changes), (b, more)))
        return {(v, w): p * q for v, p in first.items() for w, q in second.items()}

    def error(self, y: Any, x: Any) -> float:
        """0 for a bin, which is right; if there is none, the changes that the better of both would have taken."""
        return float(max(c for _, c in self._both(x))) if y == (None, None) else 0.0
