"""Noisy counts of the groups that are large enough, if their keys are not known in advance.

Noise is added to the number of units in each group that has any, and what reaches the threshold t is released. A unit
in up to C = `groups` groups moves old counts by one, which noise hides, and starts j <= C groups that nobody held; each
of these is seen with d = P(1 + Z >= t), so all stay unseen with p = (1 - d)^j.   (proof note: docs/proofs/keys.md)
 - geometric noise: (C/scale, 1 - (1 - d)^C)-DP, and no less;   [Korolova-Kenthapadi-Mishra-Ntoulas 2009, corrected]
 - Gaussian noise: (e, delta)-DP with delta the largest over j of 1 - p (1 - D(e)), D(e) the delta of discrete Gaussian
   noise on C - j counts.   [after Karrer-Kifer-Wilkins-Zhang 2021; Canonne-Kamath-Steinke 2020, Theorem 7]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.number import Number, nearest_float, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_down, exp_up
from noisette.laws import DiscreteGaussian, DiscreteLaplace
from noisette.laws.law import half_width, smallest
from noisette.mechanisms.answers import integer_answer, release_integers
from noisette.mechanisms.mechanism import Distance, agreed
from noisette.mechanisms.unknown import all_but, moved, read_promise
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import zcdp_delta
from noisette.privacy.guarantee import Ledger
from noisette.privacy.loss import LatticeLaplace, LatticeNormal, Response
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Threshold"]

Noise: TypeAlias = Literal["geometric", "gaussian"]

_UP = 1 + 1e-9  # covers the rounding of sums of floats
_ROOM = 1 + 1e-8  # left to the threshold by calibration
_SURELY = 4  # from this sigma on a sum of discrete Gaussians is one but for 1e-67


@dataclass(frozen=True)
class Threshold:
    """Counts of units plus noise where that is at least `threshold`, and 0 elsewhere; `scale` is sigma if Gaussian.

    Publish the keys of the released groups alone, sorted: the array has an entry for every group. What is tested is
    always the number of units; sums over the same groups are further releases, about the released keys.

    >>> m = Threshold.calibrated(Approx(1, "1e-6"))
    >>> m.scale, m.threshold, m([0, 1000]).tolist()[0], m.release(0) is None
    (Fraction(1, 1), 15, 0, True)
    >>> kept, noisy = m.release([0, 1000])
    >>> kept.tolist(), m.interval(0.95)
    ([False, True], 3.0)
    """

    scale: Fraction
    threshold: int
    groups: int
    noise: Noise
    epsilon: Fraction | None
    norm: ClassVar[float] = 1

    def __init__(
        self,
        scale: Number,
        threshold: int,
        *,
        groups: int = 1,
        noise: Noise = "geometric",
        epsilon: Number | None = None,
    ) -> None:
        if noise not in ("geometric", "gaussian"):
            raise InputError("noise must be 'geometric' or 'gaussian'.")
        if (epsilon is None) == (noise == "gaussian"):
            raise InputError("Give epsilon with Gaussian noise, whose delta depends on it, and with no other.")
        size = positive(scale, "scale", most=vector.LARGEST_SCALE, least=vector.SMALLEST_SCALE)
        object.__setattr__(self, "scale", size)
        object.__setattr__(self, "threshold", whole(threshold, "threshold"))
        object.__setattr__(self, "groups", whole(groups, "groups"))
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "epsilon", None if epsilon is None else positive(epsilon, "epsilon"))

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, groups: int = 1, noise: Noise = "geometric"
    ) -> "Threshold":
        """Return the least noise, and then the least threshold, with which the promise is kept.

        The threshold costs Gaussian noise nothing: at the least sigma all of delta goes to a unit whose groups are all
        old, and the threshold alone decides about one whose groups are all new.

        >>> m = Threshold.calibrated(Approx(1, "1e-6"), groups=10, noise="gaussian")
        >>> round(float(m.scale), 2), m.threshold
        (13.36, 71)
        """
        agreed(guarantee, sensitivity)
        promise = read_promise(guarantee)
        move = moved(sensitivity, whole(groups, "groups"), promise.neighbours or Neighbours.ADD_REMOVE)
        if not isinstance(sensitivity, Sensitivity):
            keys = groups
        else:
            keys = (move.l0 + 1) // 2 if move.neighbours is Neighbours.REPLACE else move.l0
        positive(move.l1, "sensitivity")

        def made(scale: Fraction, threshold: int) -> "Threshold":
            return cls(scale, threshold, groups=keys, noise=noise, epsilon=promise.eps if noise == "gaussian" else None)

        scale = move.l1 / promise.eps if noise == "geometric" else _least_sigma(promise, move)

        def unseen(above: int) -> bool:  # what any threshold must do, quick to tell
            return all_but(made(scale, above + 1)._seen(move), _keys(move)) <= promise.delta0

        threshold = smallest(unseen) + 1
        while made(scale, threshold)._delta(move) > promise.delta0:
            threshold += 1
        return made(scale, threshold)

    @property
    def law(self) -> DiscreteLaplace | DiscreteGaussian:
        """The law of the noise."""
        return DiscreteLaplace(self.scale) if self.noise == "geometric" else DiscreteGaussian(self.scale**2)

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> Any:
        """Release noisy counts, 0 for a suppressed group: a released one is at least the threshold."""
        units = integer_answer(counts)
        if units.min() < 0:
            raise InputError("Counts must be at least 0: they are numbers of units.")
        y = release_integers(units if np.ndim(counts) else units.item(), lambda _, shape: self.law.sample(shape, rng))
        if not np.ndim(counts):
            return y if units > 0 and y >= self.threshold else 0
        y[(y < self.threshold) | (units == 0)] = 0
        return y

    def release(self, counts: Any, rng: Random = SYSTEM) -> Any:
        """Release (which groups are named, their noisy counts); of a single count the noisy one, or None."""
        y = self(counts, rng)
        return (y > 0, y) if np.ndim(counts) else y or None

    def guarantee(self, distance: Distance = 1, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Approx:
        """Return what holds for so many units in up to `groups` groups each, or for counts that a `Sensitivity` moves.

        Delta is rounded up. Gaussian noise states it at `epsilon`.
        """
        move = moved(distance, self.groups, neighbours)
        if not move.l0:
            return Approx(0, 0, neighbours=move.neighbours)
        epsilon = move.l1 / self.scale if self.epsilon is None else self.epsilon
        return Approx(epsilon, self._delta(move), neighbours=move.neighbours, ledger=self._ledger(move))

    def _delta(self, move: Sensitivity) -> Fraction:
        new = self._seen(move)
        if self.epsilon is None:
            return all_but(new, _keys(move))
        s2, keys = self.scale**2, _keys(move)
        if _is_plain(move, self.scale):
            return Fraction(_gaussian_delta(s2, keys, nearest_float(new, up=True), self.epsilon))
        old = Fraction(zcdp_delta(move.l2_squared / (2 * s2), self.epsilon))
        return 1 - (1 - old) * (1 - all_but(new, keys))

    def _seen(self, move: Sensitivity) -> Fraction:
        """P(w + Z >= threshold), rounded up, for groups that grow from 0 to w."""
        return _tail(self.law, self.threshold - math.floor(move.linf))

    def _ledger(self, move: Sensitivity) -> Ledger | None:
        """The loss of old counts and, as if they came on top, the chance that new groups are seen."""
        keys = _keys(move)
        new = Response(Fraction(0), all_but(self._seen(move), keys))
        if self.epsilon is None:
            old = LatticeLaplace(math.ceil(move.l1) / self.scale, math.ceil(move.l1))
            return Ledger(((old, 1), (new, 1)))
        if _is_plain(move, self.scale) and (keys == 1 or self.scale >= _SURELY):
            return Ledger(((LatticeNormal(keys * self.scale**2, keys), 1), (new, 1)))
        return None

    def pmf(self, y: Any, x: Any) -> Any:
        """P(a group of x units is released as y; suppressed if y is 0)."""
        y, x = np.asarray(y), np.asarray(x)
        suppressed = np.where(x > 0, self.law.cdf(self.threshold - 1 - x), 1.0)
        released = np.where((x > 0) & (y >= self.threshold), self.law.pmf(y - x), 0.0)
        return np.where(y == 0, suppressed, released)[()]

    def chance(self, counts: Any) -> Any:
        """Return the probability that groups with these numbers of units are released."""
        x = integer_answer(counts)
        return np.where(x > 0, self.law.cdf(x - self.threshold), 0.0)[()]

    def variance(self) -> float:
        """The noise's variance; selection is not in it, and biases what is released near the threshold upwards."""
        return self.law.variance()

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest t with P(|noise| <= t) >= level; near the threshold, what is released errs upwards."""
        return float(half_width(self.law, level))

    def pairs(self) -> Sequence[tuple[int, int, int]]:
        """Large groups, where noise hides a unit, and a group that only one unit holds."""
        return [(self.threshold, self.threshold + 1, 1), (0, 1, 1), (self.threshold + 2, self.threshold + 1, 1)]

    def support(self, x: int) -> Any:
        """0 and, from the threshold on, outputs within the noise's 1e-14 quantiles."""
        reach = half_width(self.law, 1 - 1e-14) if x else -1
        return np.append(0, np.arange(max(self.threshold, x - reach), x + reach + 1))


def _keys(move: Sensitivity) -> int:
    return math.floor(min(move.l1, Fraction(move.l0)))


def _is_plain(move: Sensitivity, sigma: Fraction) -> bool:
    """Tell whether counts move by one each, and noise is wide enough for sums of it to be told."""
    return math.floor(move.linf) <= 1 and (_keys(move) == 1 or sigma >= 1)


@lru_cache(maxsize=1024)
def _tail(law: DiscreteLaplace | DiscreteGaussian, least: int) -> Fraction:
    """P(Z >= least), rounded up."""
    if isinstance(law, DiscreteLaplace):
        if least > 0:
            return exp_up(-least / law.scale) / (1 + exp_down(-1 / law.scale))
        return 1 - exp_down((least - 1) / law.scale) / (1 + exp_up(-1 / law.scale))
    if least > 0:
        return min(Fraction(1), Fraction(float(law.upper(least)) * _UP + 1e-300))
    return min(Fraction(1), Fraction((1 - float(law.upper(1 - least))) * _UP))


@lru_cache(maxsize=4096)
def _gaussian_delta(s2: Fraction, keys: int, new: float, epsilon: Fraction) -> float:
    """The largest delta over j new groups among `keys`, rounded up: each j, from 30 on bounded for ranges a .. b."""
    if new >= 1:
        return 1.0
    e, log_p = nearest_float(epsilon, up=False), math.log1p(-new)
    starts = sorted({*range(30), *(math.ceil(30 * 1.1**i) for i in range(500))})
    starts = [j for j in starts if j <= keys]
    worst = 0.0
    for a, b in zip(starts, [*(j - 1 for j in starts[1:]), keys], strict=True):
        unseen = math.exp(b * log_p)
        worst = max(worst, -math.expm1(b * log_p) + unseen * _old_delta(s2, keys - a, e))
    return min(1.0, worst * _UP)


def _old_delta(s2: Fraction, n: int, e: float) -> float:
    """delta(e) of discrete Gaussian noise on n counts that move by one each, rounded up.

    The loss is (2Y + n)/(2 s2), Y the sum of n noises, which is discrete Gaussian with n s2 but for a factor e^±t,
    t = 5 (n-1) e^(-pi^2 s2), by Poisson summation (proof note).
    """
    if n == 0:
        return 0.0
    variance = float(n * s2)
    first, reach = math.floor(e * float(s2) - n / 2), math.ceil(20 * math.sqrt(variance)) + 20
    y = np.arange(max(first, -reach), max(first, 0) + reach)
    loss = (2 * y + n) / float(2 * s2) - e
    terms = DiscreteGaussian(n * s2).pmf(y) * -np.expm1(-np.maximum(loss, 0))
    mixed = math.exp(5 * (n - 1) * math.exp(-(math.pi**2) * float(s2)))
    return min(1.0, float(terms.sum()) * mixed * _UP + 1e-80)


def _least_sigma(promise: Approx, move: Sensitivity) -> Fraction:
    """Bisect for the least sigma with which old counts alone keep the promise, rounded up."""

    def kept(sigma: Fraction) -> bool:
        if _is_plain(move, sigma):
            return Fraction(_old_delta(sigma**2, _keys(move), float(promise.eps)) * _ROOM) <= promise.delta0
        return Fraction(zcdp_delta(move.l2_squared / (2 * sigma**2), promise.eps)) < promise.delta0

    high = Fraction(1)
    while not kept(high):
        high *= 2
    low = high / 2
    while kept(low):
        low, high = low / 2, low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


examples = [
    Threshold(1, 15),
    Threshold("5/2", 20, groups=1),
    Threshold("1/3", 4),
    Threshold(3, 13, noise="gaussian", epsilon=1),
]
