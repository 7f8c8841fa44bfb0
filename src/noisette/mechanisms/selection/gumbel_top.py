"""The top k: add Gumbel noise to all scores once, and release which k are the largest, in order.

It is k rounds of the exponential mechanism, each among the candidates that are left: P(y_1 .. y_k) is the product of
e^(q_y/scale) / (the sum of those that are left).   [Durfee-Rogers 2019]
If a person moves the scores within a range r, each round is (r/scale)-DP, and its losses lie within a range of r/scale:

    epsilon = R r / scale,   rho = R (r/scale)^2 / 8,   R = min(k, candidates - 1),

since the last of all candidates is no choice. No smaller epsilon holds for all scores: k that are far behind gain r on
all others. r = 2 d if each score moves by at most d, r = d if all move in one direction (counts of added or removed
records). Several rounds together cost less with a delta: they are composed as adaptive choices of one range, or by rho.
[Dong-Durfee-Rogers 2020]

When: several candidates are to be released at once; for few of them, or with a delta, better than `JointTop`.
Textbook: not in the textbooks; peeling with report noisy max needs more noise.

Vocabulary: `loss` of a candidate, max q - q_i · `key` its noisy score, in units of scale · `rounds` R.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, cmp_to_key
from itertools import permutations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import real
from noisette.exact.frozen import KW_ONLY, Whole, frozen
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.laws.law import smallest
from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.exponential import Candidates, ChoiceScale, Exponential, Monotone, Scores
from noisette.privacy import Promise, Pure
from noisette.privacy.guarantee import Losses
from noisette.privacy.pld.ranges import BoundedRange

__all__ = ["GumbelTop", "Ranking", "draw_top"]

Floats = NDArray[np.float64]

_LARGEST_LAW = 50_000


@frozen
class Ranking(Mechanism):
    """What mechanisms that release k candidates in order share: how scores are read, what an order loses."""

    kind = Output.OUTCOME
    scale: ChoiceScale
    _: KW_ONLY
    candidates: Candidates
    k: Whole
    monotone: Monotone = False

    def __post_init__(self) -> None:
        _order(self.k, self.candidates)

    @cached_property
    def _one(self) -> Exponential:
        """What releases one of the candidates with this noise."""
        return Exponential(self.scale, candidates=self.candidates, monotone=self.monotone)

    @property
    def norm(self) -> float:
        """What a distance counts, as for one candidate."""
        return self._one.norm

    def _orders(self, x: Any) -> tuple[Scores, list[tuple[int, ...]]]:
        """The scores, and all orders, of which there must be few."""
        if math.perm(self.candidates, self.k) > _LARGEST_LAW:
            raise InputError(f"Probabilities are computed for at most {_LARGEST_LAW:,} orders: choose among fewer.")
        return self._one._read(x), list(permutations(range(self.candidates), self.k))

    def error(self, y: Sequence[int], x: Any) -> float:
        """Return the largest difference between the i-th best score and that of the i-th released candidate."""
        scores = self._one._read(x)
        best = -np.sort(-scores)[: self.k]
        return float((best - scores[list(y)]).max())


def _order(k: int, candidates: int) -> int:
    if whole(k, "k") > candidates:
        raise InputError("k must be at most the number of candidates: ask for fewer.")
    return k


@frozen
class GumbelTop(Ranking):
    """k of the candidates 0 .. candidates-1, in order, given their whole scores.

    >>> m = GumbelTop.calibrated(Pure(1), candidates=4, k=2)
    >>> m, m.guarantee(1), m([0, 100, 30, 200])
    (GumbelTop(scale=Fraction(4, 1), candidates=4, k=2, monotone=False), Pure('1'), (3, 1))
    >>> round(m.outcomes([0, 1, 2, 3])[3, 2], 4), m.interval(0.95)
    (0.1467, 18.0)
    """

    tightness = 0.99  # all of epsilon, except for what is not far enough behind

    @property
    def rounds(self) -> int:
        """How many choices there are to make."""
        return min(self.k, self.candidates - 1)

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int, k: int, monotone: bool = False
    ) -> Self:
        """Return the least scale that keeps the guarantee (with a delta to 1e-4, rounded up).

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.

        >>> from noisette.privacy import Approx
        >>> [round(float(GumbelTop.calibrated(p, candidates=99, k=20).scale), 2) for p in (Pure(1), Approx(1, "1e-6"))]
        [40.0, 18.75]
        """
        rounds = min(_order(k, candidates), whole(candidates, "candidates", least=2) - 1)
        kind: Any = Exponential
        one = calibrate(
            kind, guarantee, sensitivity=sensitivity, times=rounds, candidates=candidates, monotone=monotone
        )
        return cls(one.scale, candidates=candidates, k=k, monotone=monotone)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(rounds * range / scale) for scores that move by at most `distance` each, with its rounds."""
        epsilon, neighbours = self._one._epsilon(distance)
        losses = Losses(((BoundedRange(epsilon), self.rounds),)) if epsilon else None
        return Pure(self.rounds * epsilon, neighbours=neighbours, losses=losses)

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Release k candidates, the one with the largest noisy score first."""
        q = self._one._read(scores)
        return draw_top(q.max() - q, self.scale, self.k, rng)

    def outcomes(self, x: Any) -> Mapping[tuple[int, ...], float]:
        """Return the probability of every order."""
        scores, orders = self._orders(x)
        rate = float(1 / self.scale)
        return {order: math.exp(_log_chance(np.asarray(scores * rate), order)) for order in orders}

    def interval(self, level: float = 0.95) -> float:
        """Return a t for which error <= t with at least that probability, whatever the scores.

        Round i chooses among candidates of which one has at least the i-th best score, and n - i may have t + 1 less.
        """
        level_of(level)
        worse = self.candidates - 1.0 - np.arange(self.k)

        def kept(t: int) -> bool:
            odds = math.exp(-min(float((t + 1) / self.scale), 700.0))
            return math.fsum(np.log1p(worse * odds)) * (1 + 1e-13) <= -math.log(level)

        return float(smallest(kept))

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """As many candidates as there are rounds are far behind and gain; one far ahead gains; every other one does."""
        far, n, back = math.ceil(6 * self.scale), self.candidates, 0 if self.monotone else -1
        slope = [math.ceil(self.scale) * i for i in range(n)]
        behind = [score - (i < self.rounds) * far for i, score in enumerate(slope)]
        ahead = [score + (i == 0) * (far + slope[-1]) for i, score in enumerate(slope)]
        gaining = range(self.rounds), range(1), range(1, n, 2)
        return [
            (x, [score + (1 if i in gains else back) for i, score in enumerate(x)], 1)
            for x, gains in zip((behind, ahead, slope), gaining, strict=True)
        ]


def _log_chance(logs: Floats, order: tuple[int, ...]) -> float:
    """The sum over rounds of ln(e^q_y / the sum of those that are left)."""
    left, total = logs.astype(float), 0.0
    for i in order:
        total += float(left[i] - left.max()) - math.log(math.fsum(np.exp(left - left.max())))
        left[i] = -np.inf
    return total


# The sampler: floats decide which candidates are close, and lazily refined reals decide among them. Vocabulary: `loss`
# of a candidate, max q - q_i · `key` its noisy score, in units of scale.


def draw_top(losses: Scores, scale: Fraction, k: int, rng: Random) -> tuple[int, ...]:
    """Draw the k largest of -loss/scale + Gumbel noise, in order."""
    words, near = rng.words(losses.size, np.uint64), np.asarray(losses * float(1 / scale))
    key = _keys(near, words)
    low, high = _around(key, near, words)
    alive = np.flatnonzero(high >= np.partition(low, -k)[-k])
    order: Any = alive[np.argsort(-key[alive])]
    if len(order) > k or (low[order[:-1]] <= high[order[1:]]).any():
        order = _settled(order, losses, scale, words, rng)
    return tuple(int(i) for i in order[:k])


def _keys(near: Floats, words: NDArray[np.uint64]) -> Floats:
    """-loss/scale - ln(-ln U), U within word' .. word' + 1 in units of 2^-64, word' = 2^64 - 1 - word."""
    key = (~words).astype(float)
    key += 0.5
    key *= 2.0**-64
    np.log(key, out=key)
    np.minimum(key, -(2.0**-64), out=key)
    np.log(np.negative(key, out=key), out=key)
    key += near
    return -key


def _around(key: Floats, near: Floats, words: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    """Between what a key surely lies: floats round, and U is still open, which matters close to 1 and to 0."""
    with np.errstate(divide="ignore"):
        off = 2.0**-40 + near * 2.0**-48 + 2.0**16 / words + 1.0 / ~words
    return np.asarray(key - off), np.asarray(key + off)


def _settled(order: Any, losses: Scores, scale: Fraction, words: NDArray[np.uint64], rng: Random) -> list[int]:
    """Sort by as many digits of the noise as that takes."""
    noisy = {
        int(i): real.Gumbel(-int(losses[i]) / scale, Fraction(1), real.Uniform(rng, 2**64 - 1 - int(words[i]), 64))
        for i in order
    }

    def compared(i: int, j: int) -> int:
        return 1 if real.less(noisy[i], noisy[j]) else -1

    return sorted(noisy, key=cmp_to_key(compared))


examples = [
    GumbelTop(2, candidates=4, k=2),
    GumbelTop(1, candidates=4, k=3, monotone=True),
    GumbelTop(20, candidates=3, k=3),
    GumbelTop("5/2", candidates=5, k=1),
]
