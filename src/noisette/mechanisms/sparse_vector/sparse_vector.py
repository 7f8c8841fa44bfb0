"""The sparse vector technique: which of many queries are above a threshold, at the price of those that are.

Whole queries, their thresholds subtracted, get one-sided noise N_i, and so does zero, once for all of them:

    gap_i = q_i + N_i - (centre + Z),   P(N = n) = (1 - a) a^n, a = e^(-1/scale), and Z alike with `threshold_scale`.

A gap of at least 0 is released, else None; after c = `positives` gaps nothing more. If a person moves each query by at
most d, be the queries chosen after the answers so far or not, and however many there are,

    epsilon = d/threshold_scale + 2 c d/scale,   or d/threshold_scale + c d/scale

if all move in one direction (monotone queries, such as counts of added or removed records), and also if all moves
together add up to d, as in a histogram. No smaller epsilon holds: the (None, gap, …, gap) of `pairs` reach it.
[Lyu-Su-Li 2017 for Laplace noise; Ding et al. 2019 for the gap; proof for this law: docs/proofs/sparse-vector.md]

The gap is free: q is about threshold + gap. `centre` is the whole number next to E N - E Z and makes it fair: it is
public, and so it may as well be thought of as part of the thresholds.

When: many queries, chosen one after the other, and few of them are above; where all are known in
advance, `GumbelTop` misses fewer.
Textbook: Cormode, the sparse vector technique, one variant of which is not private at all; Bassi, Sparse.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, Whole, frozen
from noisette.exact.integers import Integers
from noisette.exact.number import positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_distance
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.sparse_vector.transcripts import BEYOND, Floats, ThresholdQueries
from noisette.privacy import Neighbours, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["SparseVector"]

_DIGITS = 10**7


@frozen
class _OneSided:
    """centre + n, n >= 0, with probability (1 - a) a^n, a = e^(-1/scale)."""

    scale: Fraction
    centre: int = 0

    @cached_property
    def rate(self) -> float:
        """1/scale."""
        return float(1 / self.scale)

    def pmf(self, z: Any) -> Any:
        n = np.asarray(z) - self.centre
        return np.where(n >= 0, -math.expm1(-self.rate) * np.exp(-self.rate * np.maximum(n, 0)), 0.0)

    def cdf(self, z: Any) -> Any:
        return -np.expm1(-self.rate * np.maximum(np.asarray(z) - self.centre + 1, 0))

    def mean(self) -> float:
        return 1 / math.expm1(min(self.rate, 700))

    def power(self, n: int) -> float:
        """a^n."""
        return math.exp(min(-self.rate * n, 700))

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Random = SYSTEM) -> int | Integers:
        return self.centre + vector.geometric_noise(self.scale, size, rng)


@frozen
class SparseVector(ThresholdQueries):
    """None for a query below its threshold, a gap for one above, until there are `positives` gaps.

    >>> m = SparseVector.calibrated(Pure(1), positives=4)
    >>> m.guarantee(1), [round(float(s), 2) for s in (m.threshold_scale, m.scale)], m.centre, m.interval(0.95)
    (Pure('1'), [5.0, 10.0], 5, 90.0)
    >>> SparseVector("1/100", "1/100", positives=2)([-3, 5, -1, 0, 7])                  # next to no noise
    (None, 5, None, 0)
    """

    tightness = 1 - 1e-9  # all of epsilon, up to rounding
    threshold_scale: vector.Scale
    scale: vector.Scale
    _: KW_ONLY
    positives: Whole = 1
    monotone: bool = False
    refreshed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.monotone, bool):
            raise InputError("monotone must be True, if all queries move in one direction, or False.")

    # What it promises

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, positives: int = 1, monotone: bool = False
    ) -> "SparseVector":
        """Return the scales that keep the guarantee with the least variance of N - Z, nearly.

        The queries' share of epsilon is to the threshold's as (2c)^(2/3) to 1.   [Lyu-Su-Li 2017]
        Under replace queries move in both directions, whatever `monotone` says of added and removed records.
        """
        agreed(guarantee, sensitivity)
        d, most, _ = _moves(sensitivity, whole(positives, "positives"), monotone, guarantee.neighbours)
        share = Fraction(float(most / positive(d, "sensitivity")) ** (2 / 3)).limit_denominator(_DIGITS)
        unit = (1 + share) / pure_epsilon(guarantee)
        return cls(d * unit, most * unit / share, positives=positives, monotone=monotone)

    def guarantee(self, distance: Distance = 1) -> Pure:
        """Return what holds if each query moves by at most `distance`, of the whole stream, whatever its length."""
        d, most, neighbours = _moves(distance, self.positives, self.monotone, None)
        return Pure(d / self.threshold_scale + most / self.scale, neighbours=neighbours)

    # What it releases

    @cached_property
    def centre(self) -> int:
        """The whole number next to E N - E Z."""
        return round(_OneSided(self.scale).mean() - _OneSided(self.threshold_scale).mean())

    @cached_property
    def threshold_noise(self) -> _OneSided:
        """The law of centre + Z."""
        return _OneSided(self.threshold_scale, self.centre)

    @cached_property
    def query_noise(self) -> _OneSided:
        """The law of each N."""
        return _OneSided(self.scale)

    def report(self, query: int, gap: int, rng: Random) -> int:
        """Tell the gap."""
        return gap

    # What to expect: P(N >= n + Z) = a^n E a^Z for n >= 0, and a bound for others

    def _rises(self, n: int) -> float:
        return self.query_noise.power(n + self.centre) * self._meet(self.threshold_noise)

    def _falls(self, n: int) -> float:
        return self.threshold_noise.power(n + 1 - self.centre) * self._meet(self.query_noise)

    def _meet(self, noise: _OneSided) -> float:
        """E a^n for noise n with b, a that of the other: (1 - b)/(1 - a b)."""
        return math.expm1(-noise.rate) / math.expm1(-self.query_noise.rate - self.threshold_noise.rate)

    def gap_ends(self, gap: int, number: int, level: float) -> tuple[int, int]:
        """From where to where threshold + gap may be off if it was query number `number`: (low, high), to be added.

            g - u (if g > u; else g - w)  <=  q - threshold - centre  <=  g + v

        with P(N > u) <= r, P(Z - N > v) <= r, P(N > w) <= r'/(i (i + 1)) fails with a chance of at most 2 r + r', for
        each positive by itself, whatever was asked before and why. For the middle is g + Z - N. Let G be what is left
        of the N of a positive after all that it needed to be above: N has no memory, so G has the law of N again,
        whatever Z is. If something was needed then g = G, and else N = G. So G <= u, except with probability r, gives
        the left side where g > u; elsewhere N <= w does, for all queries together, except with probability r'. And
        Z - N <= Z - G, which exceeds v with a chance of at most r, since a positive at Z = z comes with a chance of at
        most P(Z = z).
        """
        chance = 1 - float(level)
        share, for_all = 0.45 * chance, 0.1 * chance
        least = _exceeded(self.scale, share)
        far = least if gap > least else _exceeded(self.scale, for_all / (number * (number + 1)))
        met = self._meet(self.query_noise)  # P(Z - N > v) = P(Z > v) met
        return self.centre - far, self.centre + _exceeded(self.threshold_scale, share / met)

    def silent_end(self, level: float) -> int:
        """How far above their thresholds queries that were not reported may be, all of them together.

        None is reported if q - threshold + N < centre + Z, and N is at least 0; so q - threshold < centre + Z.
        """
        return max(0, self.centre + _exceeded(self.threshold_scale, 1 - float(level)))

    # For audits

    @property
    def _reach(self) -> int:
        return math.ceil(BEYOND * self.threshold_scale) + abs(self.centre)

    def _telling(self, query: int, z: Integers, top: int) -> tuple[list[Any], Floats]:
        """Gaps, as many for all queries, and in steps of 8 so that close lists have the same ones."""
        gaps = np.arange(max(0, top - self.centre) // 8 * 8 + 8 + math.ceil(32 * self.scale))
        return gaps.tolist(), np.asarray(self.query_noise.pmf(np.add.outer(gaps - query, z)))

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """The first query rises; it stays below only if Z is large. The others fall unless they are monotone."""
        return [self._worst_pair(d) for d in (1, 2)]

    def _worst_pair(self, d: int) -> tuple[list[int], list[int], int]:
        at, c = self.centre, self.positives
        return [at] * (c + 1), [at + d] + [at if self.monotone else at - d] * c, d


def _exceeded(scale: Fraction, chance: float) -> int:
    """The least n >= 0 that one-sided noise exceeds with at most that chance: e^(-(n + 1)/scale).

    >>> _exceeded(Fraction(1), 0.05), _exceeded(Fraction(1, 100), 0.05)
    (2, 0)
    """
    return max(0, math.ceil(-float(scale) * math.log(min(1, chance))) - 1)


def _moves(
    distance: Distance, c: int, monotone: bool, relation: Neighbours | None
) -> tuple[Fraction, Fraction, Neighbours | None]:
    """How far the threshold is shifted in the proof, how far the noises of c positives together, and the relation."""
    if isinstance(distance, Sensitivity):
        d, relation = distance.linf, distance.neighbours
        one_way = monotone and relation is Neighbours.ADD_REMOVE
        return d, c * d + (0 if one_way else min(c * d, distance.l1 - d)), relation
    d, _ = read_distance(distance, math.inf)
    return d, c * d if monotone and relation is not Neighbours.REPLACE else 2 * c * d, None


examples = [
    SparseVector(2, 4),
    SparseVector("3/2", "3/2", monotone=True),
    SparseVector(2, 1, positives=2),
    SparseVector("1/2", "4/3", positives=2, monotone=True),
]
