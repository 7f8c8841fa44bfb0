"""The top k, chosen as a whole: an exponential mechanism over all orders of k candidates.

An order y is released with probability proportional to e^(-loss/scale), its loss being the largest difference
q_(i) - q_(y_i) between the i-th best score and that of the i-th released candidate.   [Gillenwater et al. 2022]
If a person moves the scores within a range r, no difference moves by more than r, so no loss does, and

    epsilon = 2 r / scale   (r / scale for k = 1, where it is `Exponential`):

some losses may grow while others shrink, even if all scores move in one direction. r = 2 d if each score moves by at
most d, r = d if all move in one direction (counts of added or removed records). No smaller epsilon holds for all
numbers of candidates: most orders lose one more, while one loses one less.

How it is drawn: N(v) orders lose at most v, N(v) = prod_i (a_i(v) - i + 1), a_i(v) the number of candidates whose score
is at least q_(i) - v, because the sets of these candidates contain each other. If a whole v is drawn with a probability
proportional to N(v) e^(-v/scale) and then one of its orders evenly, an order that loses u has e^(-u/scale), up to a
constant. Exact for any size: floats propose a range of v, whole numbers accept.

When: several candidates are to be released at once, with a pure epsilon, and some scores stand out.
Textbook: not in the textbooks.

Vocabulary: `loss` of an order · `within` N(v) · `sizes` a_i(v) · `step` how many v share a proposal.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from noisette.exact import choice, samplers
from noisette.exact.frozen import frozen
from noisette.exact.number import level_of
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds
from noisette.exact.samplers import Bounds
from noisette.laws.law import smallest
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.selection.exponential import Exponential, Scores
from noisette.mechanisms.selection.gumbel_top import Ranking
from noisette.privacy import Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.ranges import BoundedRange

__all__ = ["JointTop"]

_BEYOND = 40  # scales after which orders are next to impossible
_CHUNK = 1 << 20


@frozen
class JointTop(Ranking):
    """k of the candidates 0 .. candidates-1, in order, given their whole scores.

    >>> m = JointTop.calibrated(Pure(1), candidates=4, k=2)
    >>> m, m.guarantee(1), m([0, 100, 30, 200])
    (JointTop(scale=Fraction(4, 1), candidates=4, k=2, monotone=False), Pure('1'), (3, 1))
    >>> round(m.outcomes([0, 1, 2, 3])[3, 2], 4), m.interval(0.95)
    (0.1284, 21.0)
    """

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int, k: int, monotone: bool = False
    ) -> Self:
        """Return the least scale that keeps the guarantee, for scores that move by at most the sensitivity each.

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.
        """
        one = Exponential.calibrated(guarantee, sensitivity, candidates=candidates, monotone=monotone)
        return cls(one.scale * _ways(k), candidates=candidates, k=k, monotone=monotone)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(2 range / scale) for scores that move by at most `distance` each, with the loss of that range."""
        each, neighbours = self._one._epsilon(distance)
        epsilon = _ways(self.k) * each
        return Pure(epsilon, neighbours=neighbours, losses=once(BoundedRange(epsilon) if epsilon else None))

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Release k candidates, the best first."""
        q = self._one._read(scores)
        by_score = np.argsort(-q, kind="stable")
        losses = q.max() - q[by_score]
        proposals = _Proposals(losses, self.k, self.scale)
        sizes = samplers.retry(proposals.attempt, rng)
        return tuple(int(by_score[place]) for place in _even(sizes, rng))

    def outcomes(self, x: Any) -> Mapping[tuple[int, ...], float]:
        """Return the probability of every order."""
        scores, orders = self._orders(x)
        best = -np.sort(-scores)[: self.k]
        weights = np.exp(-(best - scores[np.array(orders)]).max(axis=1) * float(1 / self.scale))
        return dict(zip(orders, (weights / math.fsum(weights)).tolist(), strict=True))

    def interval(self, level: float = 0.95) -> float:
        """Return a t for which error <= t with at least that probability, whatever the scores.

        At worst one order loses nothing and all others lose t + 1.
        """
        level_of(level)
        reach = math.fsum(np.log(self.candidates - np.arange(self.k))) + math.log(level / (1 - level))
        return float(smallest(lambda t: (t + 1) / self.scale >= Fraction(reach) * (1 + Fraction(1, 10**12))))

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """Most orders get worse, because the best score grows, while the one gets better that ends with a low score.

        In a second pair some candidates stand out, by a few scales each, and the best of them grows.
        """
        n, k, back = self.candidates, self.k, 0 if self.monotone else -1
        high = max(1 - back, math.ceil(self.scale))
        far = [math.ceil(2 * self.scale) * max(0, k + 1 - i) for i in range(n)]
        low = [0] * (n - k)
        rising = [1, *(back for _ in low[1:])] if low else []
        return [
            ([2 * high] + [high] * (k - 1) + low, [2 * high + 1] + [high + back] * (k - 1) + rising, 1),
            (far, [far[0] + 1, *(score + back for score in far[1:])], 1),
        ]

    @property
    def tightness(self) -> float:
        """What some pair reaches: the more candidates, the more of epsilon, as fewer orders begin with the best."""
        laws = [(self.outcomes(x), self.outcomes(y)) for x, y, _ in self.pairs()]
        epsilon = float(_ways(self.k) * self._one._epsilon(1)[0])
        return max(abs(math.log(P[y] / Q[y])) for P, Q in laws for y in P) / epsilon * (1 - 1e-9)


def _ways(k: int) -> int:
    """Losses of orders move up and down; with one candidate, the largest score moves along."""
    return 1 if k == 1 else 2


class _Proposals:
    """Ranges of v with upper bounds of N(v) in each: step by step, and all that lies beyond."""

    def __init__(self, losses: Scores, k: int, scale: Fraction) -> None:
        self.losses, self.k, self.scale = losses, k, scale
        self.step = max(1, math.floor(scale / 4))  # N(v) e^(-v/scale) changes little within: most proposals are kept
        orders = math.fsum(np.log(losses.size - np.arange(k)))
        reach = min(int(losses[-1]), math.ceil(scale * Fraction(orders + _BEYOND)))
        self.steps = -(-reach // self.step)
        logs = np.append(self._logs(), orders) - np.arange(self.steps + 1) * float(self.step / scale)
        logs[:-1] += math.log(-math.expm1(-self.step / scale))
        self.unit = math.ceil(logs.max() / math.log(2) + 1e-6)  # no weight is above 2^unit
        self.near = self.unit * math.log(2) - logs

    def sizes(self, v: int) -> NDArray[np.int64]:
        """a_i(v), i = 1 .. k: how many candidates an order that loses at most v may have in place i."""
        return np.asarray(self._sizes(np.array([min(v, int(self.losses[-1]))]))[0])

    def _sizes(self, v: NDArray[np.int64]) -> NDArray[np.int64]:
        first, last = self.losses[: self.k], self.losses[-1]
        return np.asarray(np.searchsorted(self.losses, first + np.minimum(v[:, None], last - first), side="right"))

    def within(self, v: int) -> int:
        """N(v)."""
        return math.prod((self.sizes(v) - np.arange(self.k)).tolist())

    def _logs(self) -> NDArray[np.float64]:
        """ln N at the end of each step."""
        ends = np.minimum((np.arange(self.steps) + 1) * self.step - 1, self.losses[-1])
        parts = np.array_split(ends, -(-ends.size * self.k // _CHUNK) or 1)
        return np.concatenate([np.log(self._sizes(v) - np.arange(self.k)).sum(axis=1) for v in parts])

    def attempt(self, rng: Random) -> NDArray[np.int64] | None:
        """Draw v, and return the a_i(v); None if the proposal is not kept."""
        at = choice.choose(self.near, self._weight, rng)
        further = samplers.geometric(self.scale, rng)
        v = at * self.step + (further if at == self.steps else further % self.step)
        return self.sizes(v) if rng.below(self._most(at)) < self.within(v) else None

    def _most(self, at: int) -> int:
        return self.within(int(self.losses[-1]) if at == self.steps else (at + 1) * self.step - 1)

    def _weight(self, at: int) -> Bounds:
        """N (e^(-from/scale) - e^(-to/scale)) / 2^unit as a number to be enclosed; the last range has no end."""
        most, start, end = self._most(at), -at * self.step / self.scale, -(at + 1) * self.step / self.scale

        def bounds(bits: int) -> tuple[int, int]:
            more = 2 + max(0, most.bit_length() - self.unit)
            lo, hi = exp_bounds(start, bits + more)
            less = (0, 0) if at == self.steps else exp_bounds(end, bits + more)
            shift = more + self.unit
            return most * max(0, lo - less[1]) >> shift, (most * (hi - less[0]) >> shift) + 1

        return bounds


def _even(sizes: NDArray[np.int64], rng: Random) -> list[int]:
    """Draw places evenly from all sequences of different ones with the i-th below sizes[i], which grow with i."""
    drawn: list[int] = []
    for i, size in enumerate(sizes.tolist()):
        place = rng.below(size - i)
        for taken in sorted(drawn):
            place += place >= taken
        drawn.append(place)
    return drawn


examples = [
    JointTop(2, candidates=9, k=2, monotone=True),
    JointTop(9, candidates=7, k=2),
    JointTop(3, candidates=5, k=3, monotone=True),
    JointTop("5/2", candidates=5, k=1),
]
