"""Gap-max: release the best candidate itself if it leads by enough, and None if not.

A person moves the scores within a range r: r = 2 d if each moves by at most d, r = d if all move in one direction. The
lead of the best candidate b is the least q_b - q_j + [j > b] over the others, at least 1: equal scores favour the lower
candidate. A person changes it by at most r, and can change who is best only where it is at most r, on both sides. So

    n = ceil(lead / r)

moves by at most one with a person, and is 1 wherever another candidate may be best. The best one is released with p_n,
the largest sequence with which that is (epsilon, delta)-DP: p_1 = delta, and on as in `Keep`. No noise on the lead does
better; neither epsilon nor delta can be smaller.   (proof note: docs/proofs/selection.md)
[after Chaudhuri-Hsu-Song 2014, Bun-Dwork-Rothblum-Steinke 2018; the curve of Desfontaines-Voss-Gipson-Mandayam 2022]

At (1, 1e-6) a lead of 27 is released in half of all cases, and one of 55 always; of counts under add/remove, 14 and 28.
How many candidates there are does not matter. The lead itself is not released.

When: only the best candidate will do, and it is likely to lead by far. Use `PermuteAndFlip` where some good candidate
is enough: it needs no lead and no delta, and always releases one.
Textbook: Smith, the exponential mechanism with gaps, and the stability-based mode .

Vocabulary: `reach` r · `lead` of the best candidate · `steps` n.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Read, default, frozen, optional, set_fields
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.partitions.keep import Delta0, Keep
from noisette.mechanisms.partitions.per_partition import read_promise
from noisette.mechanisms.selection.exponential import Candidates, Exponential, Monotone
from noisette.privacy import Approx, Promise
from noisette.privacy.convert import group_delta
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import Response

__all__ = ["GapMax"]


@frozen
class GapMax(Mechanism):
    """The best of the candidates 0 .. candidates-1, or None, given their whole scores.

    >>> m = GapMax.calibrated(Approx(1, "1e-6"), candidates=3)
    >>> m([10, 100, 20]), m([10, 100, 100]) in (None, 1), round(m.chance([10, 40, 15]), 3)
    (1, True, 0.257)
    >>> m.guarantee(), m.interval(0.95)
    (Approx('1', '1/1000000'), 30.0)
    """

    kind = Output.OUTCOME
    sized_by = "epsilon"
    tightness = 0.999  # neighbours on either half of the curve use all of epsilon and delta, up to rounding
    epsilon: Positive
    delta0: Delta0
    _: KW_ONLY
    candidates: Candidates
    monotone: Monotone = False
    reach: Annotated[Read[int | None, int], optional(whole)] = default(None)

    def __post_init__(self) -> None:
        Keep(self.epsilon, self.delta0)  # which refuses what is too small or too large
        set_fields(self, reach=(1 if self.monotone else 2) if self.reach is None else self.reach)

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int, monotone: bool = False
    ) -> "GapMax":
        """Return the rule that keeps the promise, for scores that move by at most the sensitivity each.

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.
        """
        if not isinstance(guarantee, Approx) or not guarantee.delta:
            raise InputError("The best candidate itself needs a delta above 0: ask for Approx(epsilon, delta).")
        promise = read_promise(guarantee)
        moves = Exponential._kept(promise, sensitivity, Fraction(1), monotone, candidates=candidates)
        reach = max(1, math.floor(moves.scale))  # scores are whole, so a part of one is no move
        return cls(promise.epsilon, promise.delta, candidates=candidates, monotone=monotone, reach=reach)

    @property
    def _keep(self) -> Keep:
        return Keep(self.epsilon, self.delta0)

    @property
    def _scores(self) -> Exponential:
        return Exponential(1, candidates=self.candidates, monotone=self.monotone)

    def guarantee(self, distance: Distance = 1) -> Approx:
        """Return what holds for scores that move by at most `distance` each: as for a group of that many steps."""
        moves, neighbours = self._scores._epsilon(distance)
        steps = math.ceil(Fraction(math.floor(moves), self.reach))
        delta = min(group_delta(self.epsilon, self.delta0, steps), Fraction(1) - Fraction(1, 2**99))
        known = once(Response(steps * self.epsilon, delta) if steps else None)
        return Approx(steps * self.epsilon, delta, neighbours=neighbours, losses=known)

    # What it releases

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> int | None:
        """Release the best candidate, or None."""
        best, lead = _best(self._scores._read(scores))
        return best if self._keep(self._steps(lead), rng) else None

    def _steps(self, lead: int) -> int:
        return -(-lead // self.reach)

    def chance(self, scores: Any) -> float:
        """Return the probability that the best candidate is released."""
        return float(self._keep.chance(self._steps(_best(self._scores._read(scores))[1])))

    def outcomes(self, x: Any) -> dict[int | None, float]:
        """Return the probabilities of the best candidate and of None."""
        best, lead = _best(self._scores._read(x))
        kept, suppressed = (float(self._keep.pmf(bit, self._steps(lead))) for bit in (True, False))
        return {best: kept, None: suppressed}

    # What to expect

    def error(self, y: int | None, x: Any) -> float:
        """Return the lead that goes unreleased; a released candidate is the best one."""
        return float(_best(self._scores._read(x))[1]) if y is None else 0.0

    def interval(self, level: float = 0.95) -> float:
        """Return the largest lead that may go unreleased with more than 1 - level: from there on, it is released."""
        return float(self.reach * (self._keep.least(level) - 1))

    # For audits

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """The first of equal candidates leads by enough for half of all cases, or by a step less, or more."""
        half = self._keep.least(0.5)
        return [(self._leading(n), self._leading(n + 1), self._distance) for n in (half - 1, half) if n > 0]

    @property
    def _distance(self) -> int:
        return self.reach if self.monotone else -(-self.reach // 2)

    def _leading(self, steps: int) -> list[int]:
        """Scores of that many steps; of these, the leader rises with a step, and the others fall if they may."""
        lead = steps * self.reach - 1
        fall = 0 if self.monotone else lead // 2
        return [lead - fall] + [-fall] * (self.candidates - 1)


def _best(q: NDArray[np.int64]) -> tuple[int, int]:
    """The first candidate with the largest score, and its lead."""
    best = int(np.argmax(q))
    before = int(q[:best].max()) if best else None
    after = int(q[best + 1 :].max()) - 1 if best + 1 < len(q) else None
    return best, int(q[best]) - max(score for score in (before, after) if score is not None)


examples = [
    GapMax(1, "1e-6", candidates=4),
    GapMax("1/2", "1/50", candidates=3, monotone=True),
    GapMax(2, "1e-3", candidates=2, reach=6),
    GapMax("1/10", "1e-4", candidates=5),
]
