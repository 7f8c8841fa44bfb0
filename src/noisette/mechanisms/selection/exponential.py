"""The exponential mechanism: choose one of k candidates, the likelier the higher its score.

Candidate i is released with probability proportional to m_i e^(q_i/scale), for whole scores q and a public measure m
(even, if none is given). If a person moves the scores within a range r = max_i D_i - min_i D_i, D_i what q_i moves by,

    epsilon = r / scale,

and no smaller epsilon holds for all scores: a candidate far behind gains r on all others. If each score moves by at
most d, r = 2 d; if all move in one direction (monotone scores, such as counts of added or removed records), r = d.
[McSherry-Talwar 2007; Dong-Durfee-Rogers 2020 for ranges]
The losses of a pair of tables lie within epsilon, so it is epsilon^2/8-zCDP as well.   [Cesar-Rogers 2021]

With probability at least 1 - e^-t the released score is above max q - scale (ln k + t), without a measure.

When: one of several candidates is to be released, and many such choices are composed or some are likelier beforehand
(`measure`).
Textbook: Cormode and the lecture notes, the exponential mechanism, which is not report noisy max with Laplace noise.

Vocabulary: `loss` of a candidate, max q - q_i · `stray` to release another candidate than the best.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, Positive, Read, default, frozen, set_fields
from noisette.exact.number import Number, level_of, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.samplers import Bounds, odds_real
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.calibration import agreed, pure_epsilon, range_epsilon, read_distance
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import Neighbours, Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.ranges import BoundedRange
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Exponential", "Selection", "unit_rule"]

Scores = NDArray[np.int64]
_MOST = 2**62
_LEAST_SCALE = Fraction(1, 2**100)
_BEHIND = 36  # scales: the chance of e^-36 is lost in the rounding of floats


def _few(given: int, name: str) -> int:
    if whole(given, name, least=2) > choice.LARGEST:
        raise InputError(f"{name} must be at most {choice.LARGEST:,}: choose among fewer.")
    return int(given)


def _truth(given: bool, name: str) -> bool:
    if not isinstance(given, bool):
        raise InputError(f"{name} must be True, if all scores move in one direction, or False.")
    return given


ChoiceScale: TypeAlias = Annotated[Positive, partial(positive, least=_LEAST_SCALE)]
Candidates: TypeAlias = Annotated[int, _few]
Monotone: TypeAlias = Annotated[bool, _truth]


@frozen
class Selection(Mechanism):
    """What mechanisms that choose by scores share: how scores are read, what a move of them costs, what to expect."""

    kind = Output.CHOICE
    scale: ChoiceScale
    _: KW_ONLY
    candidates: Candidates
    monotone: Monotone = False

    @property
    def norm(self) -> float:
        """What a distance counts: the largest move of a score, or of monotone ones those up and down together."""
        return 1 if self.monotone else math.inf

    # What it promises

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int, monotone: bool = False
    ) -> Self:
        """Return the least scale that keeps the guarantee, for scores that move by at most the sensitivity each.

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.
        """
        return cls._kept(guarantee, sensitivity, pure_epsilon(guarantee), monotone, candidates=candidates)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(range / scale) for scores that move by at most `distance` each."""
        epsilon, neighbours = self._epsilon(distance)
        return Pure(epsilon, neighbours=neighbours)

    @classmethod
    def _kept(
        cls, guarantee: Promise, sensitivity: Distance, epsilon: Fraction, monotone: bool, **options: Any
    ) -> Self:
        """The mechanism that is worth epsilon for a sensitivity."""
        agreed(guarantee, sensitivity)
        reach, _ = _range(sensitivity, monotone, guarantee.neighbours)
        return cls(positive(reach, "sensitivity") / epsilon, monotone=monotone, **options)

    def _epsilon(self, distance: Distance) -> tuple[Fraction, Neighbours | None]:
        reach, neighbours = _range(distance, self.monotone, None)
        return reach / self.scale, neighbours

    # What it releases

    def _read(self, scores: Any) -> Scores:
        answer = integer_answer(scores)
        if answer.shape != (self.candidates,):
            raise InputError(f"The scores must be {self.candidates} whole numbers, one for each candidate.")
        if answer.min() <= -_MOST or answer.max() >= _MOST:
            raise InputError("The scores must lie between -2^62 and 2^62: use a coarser unit.")
        return answer.astype(np.int64)

    def _near(self, losses: Scores) -> NDArray[np.float64]:
        """loss/scale in floats, to a few units in the last place."""
        return np.asarray(losses * float(1 / self.scale))

    def pmf(self, y: Any, x: Any) -> Any:
        """P(the scores x release candidate y), for single candidates or arrays of them."""
        law, y = self._law(np.asarray(x, np.int64)), np.asarray(y)
        inside = (y >= 0) & (y < self.candidates) & (y == np.floor(y))
        return np.where(inside, law[np.where(inside, y, 0).astype(np.int64)], 0.0)[()]

    def _law(self, scores: Scores) -> NDArray[np.float64]:
        raise NotImplementedError

    # What to expect

    def _strays(self, loss: int) -> float:
        """P(not the best) at worst, if all others lose that much."""
        raise NotImplementedError

    def _reach(self) -> int:
        """A loss that is next to impossible."""
        return math.ceil(self.scale * Fraction(50 + math.log(self._others)))

    @property
    def _others(self) -> float:
        """How much measure the others have, in units of that of the best."""
        return self.candidates - 1.0

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest whole t for which the score is within t of the best with that probability, at worst.

        The worst that scores can do is that one is best and all others lose t + 1.
        """
        level_of(level)
        return float(_first(lambda t: self._strays(t + 1) * (1 + 1e-13) <= 1 - level, self._reach()))

    def variance(self) -> float:
        """Mean squared loss of score at worst: the largest v^2 P(stray) if all but the best lose v."""

        def square(v: int) -> float:
            return v**2 * self._strays(v)

        return square(_first(lambda v: square(v + 1) <= square(v), self._reach()))

    # For audits

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """The first candidate is far behind and gains; if scores need not be monotone, all others fall back."""
        return [self._worst_pair(d) for d in (1, 2)]

    def _worst_pair(self, d: int) -> tuple[list[int], list[int], int]:
        behind, others = self._behind() + 2 * d, self.candidates - 1
        return [-behind] + [0] * others, [d - behind] + [0 if self.monotone else -d] * others, d

    def _behind(self) -> int:
        return math.ceil(_BEHIND * self.scale)

    def support(self, x: Any) -> Any:
        """All candidates."""
        return np.arange(self.candidates)


@frozen
class Exponential(Selection):
    """One of the candidates 0 .. candidates-1, given their whole scores.

    >>> m = Exponential.calibrated(Pure(1), candidates=4)
    >>> m, m.guarantee(1), m([0, 1, 3, 2]) in range(4)
    (Exponential(scale=Fraction(2, 1), candidates=4, monotone=False, measure=None), Pure('1'), True)
    >>> m.pmf(range(4), [0, 1, 3, 2]).round(4).tolist(), m.interval(0.95)
    ([0.1015, 0.1674, 0.4551, 0.276], 8.0)
    """

    _: KW_ONLY
    measure: Read[Sequence[Number] | None, tuple[int, ...] | None] = default(None)

    def __post_init__(self) -> None:
        if self.measure is not None:
            set_fields(self, measure=_proportions(self.measure, self.candidates))

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        candidates: int,
        monotone: bool = False,
        measure: Sequence[Number] | None = None,
    ) -> Self:
        """Return the least scale that keeps the guarantee, for scores that move by at most the sensitivity each.

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.
        """
        epsilon = range_epsilon(guarantee)
        return cls._kept(guarantee, sensitivity, epsilon, monotone, candidates=candidates, measure=measure)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(range / scale) for scores that move by at most `distance` each, with the rho of that range."""
        epsilon, neighbours = self._epsilon(distance)
        return Pure(epsilon, neighbours=neighbours, losses=once(BoundedRange(epsilon) if epsilon else None))

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> int:
        """Release a candidate."""
        q = self._read(scores)
        best = int(np.argmin(self._exponents(q, int(np.argmax(q)))))

        def weight(i: int) -> Bounds:
            return odds_real((int(q[i]) - int(q[best])) / self.scale, self._odds(i, best))

        return choice.choose(np.maximum(self._exponents(q, best), 0.0), weight, rng)

    def _exponents(self, q: Scores, to: int) -> NDArray[np.float64]:
        """The y for which a candidate has e^-y times the probability of the candidate `to`."""
        y = self._near(q[to] - q)
        if self.measure is None:
            return y
        logs = _logs(self.measure)
        return np.asarray(y - (logs - logs[to]))

    def _odds(self, i: int, best: int) -> Fraction:
        return Fraction(1) if self.measure is None else Fraction(self.measure[i], self.measure[best])

    def _law(self, scores: Scores) -> NDArray[np.float64]:
        y = self._exponents(scores, int(np.argmax(scores)))
        weights = np.exp(y.min() - y)
        return np.asarray(weights / math.fsum(weights))

    def _strays(self, loss: int) -> float:
        return 1 / (1 + math.exp(min(float(loss / self.scale), 700.0)) / self._others)

    @property
    def _others(self) -> float:
        if self.measure is None:
            return super()._others
        return float(Fraction(sum(self.measure), min(self.measure)) - 1)

    def _behind(self) -> int:
        return math.ceil(self.scale * (_BEHIND + Fraction(math.log(self._others + 1))))


def _range(distance: Distance, monotone: bool, relation: Neighbours | None) -> tuple[Fraction, Neighbours | None]:
    """How far two scores can move apart, and the relation if one is named: scores are monotone for add/remove only."""
    if isinstance(distance, Sensitivity):
        one_way = monotone and distance.neighbours is Neighbours.ADD_REMOVE
        return distance.linf if one_way else min(2 * distance.linf, distance.l1), distance.neighbours
    d, _ = read_distance(distance, math.inf)
    return d if monotone and relation is not Neighbours.REPLACE else 2 * d, None


def _proportions(measure: Sequence[Number], count: int) -> tuple[int, ...]:
    """Read a measure as whole numbers without a common factor: only its proportions matter."""
    parts = [positive(part, "measure") for part in measure]
    if len(parts) != count:
        raise InputError(f"The measure must have {count} numbers, one for each candidate.")
    unit = math.lcm(*{part.denominator for part in parts})
    numbers = [int(part * unit) for part in parts]
    common = math.gcd(*numbers)
    if sum(numbers) // common >= 10**300:
        raise InputError("The measure must have proportions of fewer than 300 digits: round it.")
    return tuple(number // common for number in numbers)


@lru_cache(maxsize=8)
def _logs(measure: tuple[int, ...]) -> NDArray[np.float64]:
    return np.asarray(np.log(np.array(measure, float)))


def _first(holds: Callable[[int], bool], most: int) -> int:
    """The least whole number from 0 on for which something holds that stays true from there on."""
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# Integrals over 0 .. 1 of polynomials, which the laws of other selections need


@lru_cache(maxsize=64)
def unit_rule(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss and Legendre, exact up to the degree 2 count - 1.

    >>> nodes, weights = unit_rule(3)
    >>> round(float(weights @ nodes**5), 12) == round(1 / 6, 12)
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


examples = [
    Exponential(2, candidates=4),
    Exponential("1/3", candidates=3, monotone=True),
    Exponential(40, candidates=12),
    Exponential("5/2", candidates=5, measure=(1, 2, "1/2", 7, 1)),
]
