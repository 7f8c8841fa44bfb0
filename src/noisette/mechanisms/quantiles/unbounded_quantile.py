"""A quantile of values without an upper bound: search upwards until enough of them lie below.

The thresholds t_i = low + unit (base^i - 1), i = 0 .. steps-1, are public. Query i is f_i = #{x < t_i} - q n. All
queries get one-sided noise, and so does what they are compared with; the first i is released with

    f_i + N_i >= Z + centre,   P(N = k/b) = (1 - a) a^k, a = e^(-rate/b), and Z alike with the `threshold_rate`

(b the denominator of q, so that b f is whole), or None if there is none: the quantile is then likely between t_(i-1)
and t_i, or from the last threshold on. It is a sparse vector with one positive answer.   [Durfee 2023]

A record that is added moves the queries by -q up to its value and by 1 - q from there on, one that is removed by q and
then -(1 - q). As the order of the steps is the order of the values, not both directions need be paid for in full:

    epsilon = max(q threshold_rate + rate, (1 - q) threshold_rate)   for a record that is added or removed,
    epsilon = threshold_rate + rate                                  for one that is replaced,

where the general theorem says max(q, 1 - q) (threshold_rate + 2 rate). Many steps come close to it. Proofs:
docs/proofs/quantiles.md

`centre` is the whole number of b-ths next to E N - E Z, so that noise alone stops it neither too early nor too late. It
is public, being a function of the rates alone, and so nothing but a part of the threshold.

Values on both sides of `low`: search x upwards, and if step 0 is released the mirrored values 2 low - x with 1 - q.
Each search costs its epsilon. Both ends of values are found by `Extent`, for less. Once bounds are found, `Quantile` is
more precise within them.

When: nobody can name bounds: a high quantile, once, gives them.
Textbook: not in the textbooks; it is the sparse vector technique of the lecture notes.

Vocabulary: `step` i holds the values from t_(i-1) to below t_i · `rate` 1/scale of a noise, for each record.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, Exact, Positive, Whole, default, frozen
from noisette.exact.integers import added
from noisette.exact.number import Number, level_of, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.calibration import agreed_records, pure_epsilon, whole_records
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.quantiles.grid import numbers
from noisette.mechanisms.quantiles.quantile import read_histograms
from noisette.privacy import Neighbours, Promise, Pure
from noisette.privacy.neighbours import Relation

__all__ = ["FirstAbove", "UnboundedQuantile"]

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
_THRESHOLD = Fraction(2, 5)  # of epsilon: near the least variance of N - Z for all but small q
_MOST_STEPS = 2**20
_FINEST = 2**20
_RECORDS = 2**40


# A search along a line: the first i with f_i + N_i >= Z + limit, where Z and all N_i are one-sided geometric noise with
# P(k) = (1 - a) a^k, a = e^(-1/scale).


_ENUMERATED = 2**24


@frozen
class FirstAbove:
    """Noise for the threshold and for the queries, and the limit that both are compared at."""

    threshold_scale: Fraction
    scale: Fraction
    limit: int

    def __call__(self, queries: NDArray[np.int64], rng: Random = SYSTEM) -> int | None:
        """Draw which query is the first; noise is drawn for all of them, however early it ends."""
        over = self.limit + int(vector.geometric_noise(self.threshold_scale, None, rng))
        noise = np.asarray(vector.geometric_noise(self.scale, len(queries), rng))
        above = np.flatnonzero(added(queries, noise) >= over)
        return int(above[0]) if len(above) else None

    def chances(self, queries: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that each is the first, and last that none is."""
        over, rate = float(1 / self.threshold_scale), float(1 / self.scale)
        highest = int(queries.max(initial=self.limit))
        z = np.arange(math.ceil(max(0, highest - self.limit) + 80 / over))  # so that rare ones are right as well
        if len(z) * max(1, len(queries)) > _ENUMERATED:
            raise InputError("The law is enumerated for few steps and simple q only: choose fewer of them.")
        missing = np.add.outer(self.limit - queries, z)
        logs = -rate * np.maximum(missing, 0)  # ln P(N >= what is missing), of query and z
        passed = np.cumprod(np.vstack([np.ones(len(z)), -np.expm1(logs)]), axis=0)
        stopped = np.vstack([passed[:-1] * np.exp(logs), passed[-1:]])
        chances: Any = stopped @ (-np.expm1(-over) * np.exp(-over * z))
        return np.asarray(chances)

    def strays(self, steps: int, below: int) -> float:
        """Return a bound of the chance that one of several queries is above, all of them that far below the limit."""
        over, rate = float(1 / self.threshold_scale), float(1 / self.scale)
        return steps * math.exp(-rate * below) * math.expm1(-over) / math.expm1(-over - rate)


@frozen
class UnboundedQuantile(Mechanism):
    """The step of the q-quantile, or None beyond the last, given how many values lie in each step and beyond.

    `epsilon` is what one record is worth under the relation `neighbours`.

    >>> m = UnboundedQuantile(1, q="9/10", steps=1500, base="1.01")
    >>> m.guarantee(1), m.threshold(700), m.centre
    (Pure('1', neighbours=ADD_REMOVE), 1058.16..., -6)
    >>> counts = m.count(range(10_000))
    >>> abs(m(counts) - 915) < 5
    True
    """

    kind = Output.OUTCOME
    sized_by = "epsilon"
    own_relation = True
    tightness = 0.99  # all of epsilon, nearly, if there are twenty steps and it is at most 1
    epsilon: Annotated[Positive, partial(positive, most=1000, least=Fraction(1, 10**9))]
    _: KW_ONLY
    q: Exact
    steps: Whole = 2000
    base: Positive = default("1.01")
    low: Exact = default(0)
    unit: Positive = default(1)
    neighbours: Relation = ADD_REMOVE

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1 or self.q.denominator > _FINEST:
            raise InputError("q must lie between 0 and 1, with a denominator of at most 2^20: the median is 1/2.")
        if self.base <= 1 or self.steps > _MOST_STEPS or not np.isfinite(self._thresholds[-1]):
            raise InputError("base must be above 1, and steps so few that the last threshold is a number.")

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, q: Number, **options: Any
    ) -> "UnboundedQuantile":
        """Return the most accurate one for a histogram's sensitivity, or for that many records of one person."""
        records, relation = agreed_records(guarantee, sensitivity)
        return cls(pure_epsilon(guarantee) / records, q=q, neighbours=relation, **options)

    # What it promises

    @property
    def threshold_rate(self) -> Fraction:
        """That of Z."""
        if self.neighbours is REPLACE:
            return _THRESHOLD * self.epsilon
        most = [_THRESHOLD * self.epsilon / self.q] if self.q else []
        return min([*most, self.epsilon / (1 - self.q)] if self.q < 1 else most)

    @property
    def rate(self) -> Fraction:
        """That of the N."""
        return self.epsilon - self.threshold_rate * (1 if self.neighbours is REPLACE else self.q)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(epsilon) for each record that differs, and what it is under the other relation."""
        records, named = whole_records(distance)
        relation = named or self.neighbours
        over, queries = self.threshold_rate, self.rate
        together = over + queries if relation is REPLACE else max(self.q * over + queries, (1 - self.q) * over)
        return Pure(records * together, neighbours=relation)

    # The steps

    @cached_property
    def _thresholds(self) -> NDArray[np.float64]:
        """In floats: they are public, and the same for all tables."""
        with np.errstate(over="ignore"):
            grown = np.expm1(np.arange(self.steps) * math.log1p(float(self.base - 1)))
            return np.asarray(float(self.low) + float(self.unit) * grown)

    def threshold(self, step: int) -> float:
        """Return t of a step: the quantile is likely below it, and not below that of the step before."""
        return float(self._thresholds[whole(step, "step", least=0)])

    def count(self, values: Any) -> NDArray[np.int64]:
        """Count the values of each step, and last those from the last threshold on; NaN is left out."""
        array = numbers(values).astype(float)
        steps = np.searchsorted(self._thresholds, array[~np.isnan(array)], side="right")
        return np.bincount(steps, minlength=self.steps + 1).astype(np.int64)

    # What it releases

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> int | None:
        """Release a step, or None."""
        return self._search(self._queries(read_histograms(counts, self.steps + 1, rows=False)), rng)

    @property
    def _search(self) -> FirstAbove:
        return FirstAbove(*self._scales, self.centre)

    def _queries(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """b f."""
        upto = np.cumsum(counts)
        if upto[-1] >= _RECORDS:
            raise InputError("The counts must add up to less than 2^40.")
        return np.asarray(self.q.denominator * upto[:-1] - self.q.numerator * upto[-1])

    @property
    def _scales(self) -> tuple[Fraction, Fraction]:
        """Of Z and N, in b-ths."""
        return self.q.denominator / self.threshold_rate, self.q.denominator / self.rate

    @cached_property
    def centre(self) -> int:
        """In b-ths of a record."""
        z, n = (1 / math.expm1(float(1 / scale)) for scale in self._scales)
        return round(n - z)

    # What to expect

    def error(self, y: int | None, x: Any) -> float:
        """Return how far q n is from the ranks of the released step."""
        counts = np.asarray(x, dtype=np.int64)
        upto, step = np.cumsum(counts), self.steps if y is None else y
        target, high = self.q * int(upto[-1]), int(upto[step])
        return float(max(target - high, high - int(counts[step]) - target, Fraction(0)))

    def interval(self, level: float = 0.95) -> float:
        """Return a t with P(error <= t) >= level for every table.

        It ends t too early if one of the N is that large, and t too late only if Z is.
        """
        level_of(level)
        low, high = -1, 2 * abs(self.centre) + math.ceil((50 + math.log(self.steps)) * float(sum(self._scales)))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._misses(middle) * (1 + 1e-12) <= 1 - level else (middle, high)
        return high / self.q.denominator

    def _misses(self, t: int) -> float:
        """A bound of P(error > t b-ths)."""
        z, n = (float(1 / scale) for scale in self._scales)
        early = self.steps * math.exp(min(0.0, -n * (t + 1 + self.centre)))
        return early + math.exp(min(0.0, -z * (t + 2 - self.centre)))

    # For audits

    def outcomes(self, x: Any) -> dict[int | None, float]:
        """Return the probability of every step."""
        chances = self._search.chances(self._queries(read_histograms(x, self.steps + 1, rows=False)))
        return dict(zip([*range(self.steps), None], chances.tolist(), strict=True))

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """The record lies in the last step: without it all before are nearer to an end, and only that one further.

        Replaced, it comes from there to the first step.
        """
        a, b, last = self.q.numerator, self.q.denominator, self.steps
        first = max(0, -(-(max(0, self.centre) + 2 * a) // max(1, b - a)))
        x = [first] + [0] * (last - 2) + [1, 0] if last > 1 else [first, 1]
        gone = list(x)
        gone[-2] -= 1
        if self.neighbours is REPLACE:
            gone[0] += 1
        even = [max(1, round(6 / (self.steps * self.rate)))] * (last + 1)
        moved = [even[0] + (self.neighbours is REPLACE), *even[1:-1], even[-1] - 1]
        return [(x, gone, 1), (even, moved, 1)]


examples = [
    UnboundedQuantile(1, q="1/2", steps=24, base=2),
    UnboundedQuantile("1/2", q="9/10", steps=30, base=2, low=-5, unit="1/8"),
    UnboundedQuantile(1, q=1, steps=20, base="3/2"),
    UnboundedQuantile(1, q="1/4", steps=24, base=2, neighbours=REPLACE),
]
