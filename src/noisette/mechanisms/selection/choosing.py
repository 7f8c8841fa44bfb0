"""The choosing mechanism: choose a candidate of a high score, with an error that does not depend on how many there are.

Scores are whole, 0 for an empty table, and one record raises at most k = `growth` of them, by one each. The largest
score is tested: with geometric noise Z it must reach the threshold, max q + Z >= t, or None is released. If so, one of
the candidates with a score above 0 is released, with probability proportional to e^(q/scale).
[Beimel-Nissim-Stemmer 2013, "Private learning and sanitization"]

With both noises of the same scale, and a = e^(-1/scale), one record more or less is worth

    epsilon = 2 / scale,   delta = a^(t-1)/(1 + a) max(1, k/(1 + k a^(t-1))),

and neither can be smaller: delta is what candidates get that had a score of 0. It holds for k a^t <= 1 - a, which is
asked of every threshold.   (proof note: docs/proofs/selection.md)

At (1, 1e-6) the threshold is 28 for k = 1, 30 for 3, 33 for 10, 37 for 100. `Keep` names half of all
groups of 14, 40, 132, 630 units and `Threshold` (with the better noise) such of 15, 38, 71, 239, because every group a
record touches costs them. For k = 1 the error is at most 32 with 95 % among 10^4 positives; the constants of the paper
promise 438 for 10^4 records.

When: one value is picked from a very large set, and each person may support three or more. For k = 1 prefer `Keep` and
`Threshold`: they need half as much, and name all large groups at once. `GapMax` needs a lead instead of a high score.
Textbook: not in the textbooks; Smith's point functions and truncated histogram serve the same purpose.

Vocabulary: `best` max q · `pass` the test, P = r(best) · `positives` candidates with a score above 0.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Whole, frozen
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_down, exp_up
from noisette.exact.vector import Scale
from noisette.laws import DiscreteLaplace
from noisette.laws.law import smallest
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.partitions.per_partition import moved, read_promise
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.sparse_exponential import SparseScores, read_sparse_scores
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import group_delta
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Choosing"]

REPLACE = Neighbours.REPLACE


@frozen
class Choosing(Mechanism):
    """A candidate of 0 .. candidates-1, or None, given the whole scores of those whose score is not 0.

    >>> m = Choosing.calibrated(Approx(1, "1e-6"), candidates=2**64, growth=10)
    >>> m.scale, m.threshold, m.guarantee() <= Approx(1, "1e-6")
    (Fraction(2, 1), 33, True)
    >>> m({2**63: 200, 17: 30}), m({17: 1})
    (9223372036854775808, None)
    """

    kind = Output.OUTCOME
    tightness = 0.999  # delta is what the second pair shows, up to rounding
    scale: Scale
    threshold: Whole
    _: KW_ONLY
    candidates: Annotated[int, partial(whole, least=2)]
    growth: Whole = 1

    def __post_init__(self) -> None:
        if not self._is_high():
            raise InputError("threshold must be larger: growth e^(-threshold/scale) must not exceed 1 - e^(-1/scale).")

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int, growth: int = 1
    ) -> "Choosing":
        """Return the least scale and threshold with which the promise is kept for `sensitivity` records."""
        agreed(guarantee, sensitivity)
        promise = read_promise(guarantee)
        steps = whole(_steps(sensitivity, whole(growth, "growth"), promise.neighbours), "sensitivity")
        scale = 2 * steps / promise.epsilon
        most = promise.delta / group_delta(2 / scale, Fraction(1), steps)

        def kept(threshold: int) -> bool:
            try:
                return threshold > 0 and cls(scale, threshold, candidates=candidates, growth=growth)._delta <= most
            except InputError:
                return False

        cls(scale, _certainly(scale, growth), candidates=candidates, growth=growth)  # refuses what no threshold mends
        return cls(scale, smallest(kept), candidates=candidates, growth=growth)

    # What it promises

    def guarantee(self, distance: Distance = 1, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Approx:
        """Return what holds for `distance` records added or removed, or for scores that a `Sensitivity` moves.

        One that is replaced is removed and another one added. Delta is rounded up.
        """
        steps, relation = _steps(distance, self.growth, neighbours), _relation(distance, neighbours)
        delta = group_delta(2 / self.scale, self._delta, steps)
        return Approx(2 * steps / self.scale, min(delta, Fraction(1) - Fraction(1, 2**99)), neighbours=relation)

    @property
    def _delta(self) -> Fraction:
        """Of one step, rounded up: what goes to new candidates if all are new, or if one of score t is not."""
        far = exp_up((1 - self.threshold) / self.scale)
        k = min(self.growth, self.candidates - 1)
        return far / (1 + exp_down(-1 / self.scale)) * max(Fraction(1), k / (1 + k * far))

    def _is_high(self) -> bool:
        """Tell whether k a^t <= 1 - a: no best score then gives new candidates more than the threshold itself."""
        return self.growth * exp_up(-self.threshold / self.scale) <= 1 - exp_up(-1 / self.scale)

    # What it releases

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> int | None:
        """Release a candidate, or None if the best score does not pass the test."""
        positive = self._read(scores)
        noise = int(DiscreteLaplace(self.scale).sample(None, rng))
        if not len(positive) or int(positive.scores.max()) + noise < self.threshold:
            return None
        count = len(positive)
        chosen = Exponential(self.scale, candidates=count)(positive.scores, rng) if count > 1 else 0
        return int(positive.candidates[chosen])

    def _read(self, scores: Any) -> SparseScores:
        listed = read_sparse_scores(scores, self.candidates)
        if (listed.scores < 0).any():
            raise InputError("The scores must be at least 0: they grow from 0 as records are added.")
        above = listed.scores > 0
        return SparseScores(listed.candidates[above], listed.scores[above], listed.ordered)

    def passes(self, best: int) -> float:
        """Return the probability that the test is passed, for a best score."""
        return float(DiscreteLaplace(self.scale).cdf(best - self.threshold)) if best > 0 else 0.0

    def outcomes(self, x: Any) -> dict[int | None, float]:
        """Return the probabilities of None and of the candidates with a score above 0."""
        positive = self._read(x)
        if not len(positive):
            return {None: 1.0}
        best = int(positive.scores.max())
        weights = np.exp((positive.scores - best) * float(1 / self.scale))
        shares = self.passes(best) * weights / math.fsum(weights)
        return {None: 1 - self.passes(best), **dict(zip(positive.candidates.tolist(), shares.tolist(), strict=True))}

    # What to expect

    def error(self, y: int | None, x: Any) -> float:
        """Return by how much the score of a candidate is below the best; of None, how high the best is."""
        positive = self._read(x)
        best = int(positive.scores.max()) if len(positive) else 0
        return float(best if y is None else best - positive.of(y))

    def interval(self, level: float = 0.95, *, positives: int | None = None) -> float:
        """Return the smallest whole t for which the error is within t with that probability, at worst.

        `positives` is how many candidates can have a score above 0, by default all: n records have at most n growth.
        """
        level_of(level)
        others = min(whole(self.candidates if positives is None else positives, "positives"), self.candidates) - 1

        def kept(t: int) -> bool:
            strays = others * math.exp(-min(float((t + 1) / self.scale), 700.0))
            return min(self.passes(t + 1), self.passes(t + 2) / (1 + strays)) >= level * (1 + 1e-13)

        return float(smallest(kept))

    # For audits

    def pairs(self) -> Sequence[tuple[dict[int, int], dict[int, int], int]]:
        """Of many that are nearly good enough one is raised; new ones come beside a good one; a good one is raised."""
        t, k, step = self.threshold, min(self.growth, self.candidates - 1), math.ceil(self.scale)
        tied = dict.fromkeys(range(min(self.candidates, self._many())), max(t - 1, 1))
        new = ({}, {1: 1}) if k == 1 else ({0: t}, {0: t, **dict.fromkeys(range(1, k + 1), 1)})
        mixed = {i: t + step if i else t + 2 * step for i in range(min(12, self.candidates))}
        return [(one, other, 1) for one, other in ((tied, _raised(tied)), new, (mixed, _raised(mixed)))]

    def _many(self) -> int:
        """So many ties that one of them hardly matters."""
        return 2 + math.ceil(25 * math.expm1(min(float(1 / self.scale), 5.0)) * float(self.scale) / 2)


def _raised(scores: dict[int, int]) -> dict[int, int]:
    return {**scores, 0: scores[0] + 1}


def _certainly(scale: Fraction, growth: int) -> int:
    """A threshold that is high enough for any delta."""
    return math.ceil(scale * (200 + growth.bit_length()))


def _relation(distance: Distance, neighbours: Neighbours | None) -> Neighbours | None:
    return distance.neighbours if isinstance(distance, Sensitivity) else neighbours


def _steps(distance: Distance, growth: int, neighbours: Neighbours | None) -> int:
    """How many records, added or removed, make the same move of the scores."""
    relation = _relation(distance, neighbours) or Neighbours.ADD_REMOVE
    if not isinstance(distance, Sensitivity):
        units = math.floor(moved(distance, 1, relation).linf)
        return 2 * units if relation is REPLACE else units
    up_and_down = relation is REPLACE and distance.l0 > 1
    once = 2 + (distance.l0 - 2) // growth if up_and_down else math.ceil(distance.l0 / growth)
    return math.floor(distance.linf) * once


examples = [
    Choosing(2, 30, candidates=2**64),
    Choosing("3/2", 12, candidates=50, growth=3),
    Choosing("1/2", 5, candidates=300),
    Choosing(6, 60, candidates=10**6, growth=20),
]
