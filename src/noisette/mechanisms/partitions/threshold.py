"""Noisy counts of the groups that are large enough, if their keys are not known in advance.

Noise is added to the count of each group that has any, and what reaches the threshold t is released. A unit adds up to
w = `weight` (1: it is counted) to each of up to C = `groups` groups. That moves old counts, which noise hides, and
starts j <= C groups that nobody held; each of these is seen with d = P(w + Z >= t).   (proof note: docs/proofs/keys.md)
 - truncated noise, geometric within ±(t - 1): (C w/scale, 1 - (1 - d)^C)-DP, and no less. Its threshold and its error
   are never above those of geometric noise.   [Desfontaines-Voss-Gipson-Mandayam 2022]
 - geometric noise: the same words, a larger d;   [Korolova-Kenthapadi-Mishra-Ntoulas 2009, corrected]
 - Gaussian noise: (e, delta)-DP with delta the largest over j of 1 - (1 - d)^j (1 - D(e)), D(e) the delta of discrete
   Gaussian noise on C - j counts.   [after Karrer-Kifer-Wilkins-Zhang 2021; Canonne-Kamath-Steinke 2020, Theorem 7]

When: keys are unknown and their counts are to be released as well.
Textbook: Smith, the truncated histogram, whose threshold misses its delta by a factor e^epsilon/2.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, Read, Whole, default, frozen, optional
from noisette.exact.integers import CHUNK, Integers, added
from noisette.exact.number import Number, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.laws import DiscreteGaussian, DiscreteLaplace
from noisette.laws.law import half_width, smallest
from noisette.mechanisms.additive.lattice import integer_answer, release_integers
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.partitions.bounded_laplace import BoundedLaplace, reaching
from noisette.mechanisms.partitions.per_partition import all_but, moved, read_promise
from noisette.mechanisms.partitions.threshold_cost import (
    gaussian_delta,
    is_plain,
    keys_of,
    least_sigma,
    old_loss,
    tail,
    weight_of,
)
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import zcdp_delta
from noisette.privacy.guarantee import Losses, once
from noisette.privacy.pld.loss import LatticeLaplace, Response
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Threshold"]

Noise: TypeAlias = Literal["geometric", "truncated", "gaussian"]

_NOISES = ("geometric", "truncated", "gaussian")
_SURELY = 4  # from this sigma on a sum of discrete Gaussians is one up to 1e-67
_RARE = 5  # noise of that many scales is rare


def _whole_weight(weight: Number, name: str) -> int:
    given = positive(weight, name)
    if given.denominator != 1:
        raise InputError(f"{name} must be a whole number: count real weights in steps.")
    return int(given)


@frozen
class Threshold(Mechanism):
    """Counts plus noise where that is at least `threshold`, and 0 elsewhere; `scale` is sigma if Gaussian.

    Publish the keys of the released groups alone, sorted: the array has an entry for every group. What is tested is
    the number of units, or a sum to which a unit adds at most `weight`, a whole number: real weights in steps, each
    unit's rounded by itself. Other sums over the same groups are further releases, about the released keys.

    >>> m = Threshold.calibrated(Approx(1, "1e-6"))
    >>> m.scale, m.threshold, m([0, 1000]).tolist()[0], m.release(0) is None
    (Fraction(1, 1), 15, 0, True)
    >>> kept, noisy = m.release([0, 1000])
    >>> kept.tolist(), m.interval(0.95)
    ([False, True], 3.0)
    >>> [Threshold.calibrated(Approx("0.1", "1e-6"), noise=n).threshold for n in ("geometric", "truncated")]
    [133, 110]
    """

    kind = Output.GROUPS
    scale: vector.Scale
    threshold: Whole
    _: KW_ONLY
    groups: Whole = 1
    noise: Noise = "geometric"
    epsilon: Annotated[Read[Number | None, Fraction | None], optional(positive)] = default(None)
    weight: Annotated[Read[Number, int], _whole_weight] = default(1)
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        if self.noise not in _NOISES:
            raise InputError("noise must be 'geometric', 'truncated' or 'gaussian'.")
        if (self.epsilon is None) == (self.noise == "gaussian"):
            raise InputError("Give epsilon with Gaussian noise, whose delta depends on it, and with no other.")
        _ = self.law  # refuses a threshold that truncated noise cannot have

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        groups: int = 1,
        noise: Noise = "geometric",
        weight: Number = 1,
    ) -> "Threshold":
        """Return the least noise, and then the least threshold, with which the promise is kept.

        The threshold costs Gaussian noise nothing: at the least sigma all of delta goes to a unit whose groups are all
        old, and the threshold alone decides about one whose groups are all new.

        >>> m = Threshold.calibrated(Approx(1, "1e-6"), groups=10, noise="gaussian")
        >>> round(float(m.scale), 2), m.threshold
        (13.36, 71)
        """
        agreed(guarantee, sensitivity)
        promise, most = read_promise(guarantee), _whole_weight(weight, "weight")
        move = moved(sensitivity, whole(groups, "groups"), promise.neighbours or Neighbours.ADD_REMOVE, most)
        if isinstance(sensitivity, Sensitivity):
            groups = (move.l0 + 1) // 2 if move.neighbours is Neighbours.REPLACE else move.l0
            most = max(1, weight_of(move))
        positive(move.l1, "sensitivity")
        scale = least_sigma(promise, move) if noise == "gaussian" else move.l1 / promise.epsilon
        epsilon = promise.epsilon if noise == "gaussian" else None

        def made(threshold: int) -> "Threshold":
            return cls(scale, threshold, groups=groups, noise=noise, epsilon=epsilon, weight=most)

        first = 1 + (BoundedLaplace.least_reach(scale) if noise == "truncated" else 0)

        def unseen(above: int) -> bool:  # what any threshold must do, quick to compute
            return all_but(made(first + above)._seen(move), keys_of(move)) <= promise.delta

        least = first + smallest(unseen)

        def keeps(above: int) -> bool:
            return made(least + above)._delta(move) <= promise.delta

        threshold = least + smallest(keeps)
        return made(threshold)

    @property
    def law(self) -> DiscreteLaplace | BoundedLaplace | DiscreteGaussian:
        """The law of the noise."""
        match self.noise:
            case "geometric":
                return DiscreteLaplace(self.scale)
            case "truncated":
                return BoundedLaplace(self.scale, self.threshold - 1)
            case _:
                return DiscreteGaussian(self.scale**2)

    def __call__(self, counts: Any, rng: Random = SYSTEM) -> Any:
        """Release noisy counts, 0 for a suppressed group: a released one is at least the threshold."""
        units = integer_answer(counts)
        if units.min() < 0:
            raise InputError("Counts must be at least 0: a group has units or it has none.")
        if not np.ndim(counts):
            y = release_integers(units.item(), lambda _, shape: self.law.sample(shape, rng))
            return y if units > 0 and y >= self.threshold else 0
        flat = units.ravel()
        at, z = self._drawn(flat, rng)
        noisy = added(flat[at], z)
        released = np.flatnonzero(noisy >= self.threshold)
        y = np.zeros(flat.size, noisy.dtype)
        y[at[released]] = noisy[released]
        return y.reshape(units.shape)

    def _drawn(self, units: Integers, rng: Random) -> tuple[Integers, Integers]:
        """Places that hold all groups to be released, and their noise.

        Of many groups those are left out, before their noise is drawn in full, that only rare noise would lift to the
        threshold and that have not got it: `reaching` draws whether they have.
        """
        law, rare = self.law, math.ceil(_RARE * self.scale)
        if isinstance(law, DiscreteGaussian) or units.size < CHUNK or not 0 < rare < self.threshold:
            at = np.flatnonzero(units)
            return at, np.asarray(law.sample(at.size, rng))
        high = np.flatnonzero(units > self.threshold - rare)
        at, z = reaching(law, rare, units.size, rng)
        low = (units[at] > 0) & (units[at] <= self.threshold - rare)
        noise = np.asarray(law.sample(high.size, rng)), z[low]
        return np.concatenate([high, at[low]]), np.concatenate(noise)

    def release(self, counts: Any, rng: Random = SYSTEM) -> Any:
        """Release (which groups are named, their noisy counts); of a single count the noisy one, or None."""
        y = self(counts, rng)
        return (y > 0, y) if np.ndim(counts) else y or None

    def guarantee(self, distance: Distance = 1, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Approx:
        """Return what holds for `distance` units in up to `groups` groups each, or for counts moved by a `Sensitivity`.

        Delta is rounded up. Gaussian noise states it at `epsilon`.
        """
        move = moved(distance, self.groups, neighbours, self.weight)
        if not move.l0:
            return Approx(0, 0, neighbours=move.neighbours)
        epsilon, delta = move.l1 / self.scale if self.epsilon is None else self.epsilon, self._delta(move)
        if delta >= 1:
            raise InputError("Counts that move so far are always seen, which no guarantee allows: raise the threshold.")
        return Approx(epsilon, delta, neighbours=move.neighbours, losses=self._losses(move))

    def _delta(self, move: Sensitivity) -> Fraction:
        new, keys = self._seen(move), keys_of(move)
        if self.epsilon is None:
            return all_but(new, keys)
        s2 = self.scale**2
        if is_plain(move, self.scale):
            return Fraction(gaussian_delta(s2, move, new, self.epsilon))
        old = Fraction(zcdp_delta(move.l2_squared / (2 * s2), self.epsilon))
        return 1 - (1 - old) * (1 - all_but(new, keys))

    def _seen(self, move: Sensitivity) -> Fraction:
        """P(w + Z >= threshold), rounded up, for groups that grow from 0 to w."""
        return tail(self.law, self.threshold - weight_of(move))

    def _losses(self, move: Sensitivity) -> Losses | None:
        """The loss of old counts and, as if they came on top, the chance that new groups are seen."""
        keys, weight, seen = keys_of(move), weight_of(move), self._seen(move)
        new = Response(Fraction(0), all_but(seen, keys))
        match self.noise:
            case "truncated" if keys * weight <= move.l1:  # each count, old or new, is released as by such a response
                return Losses(((Response(weight / self.scale, seen), keys),))
            case "truncated":
                return once(Response(move.l1 / self.scale, new.delta))
            case "geometric":
                old = LatticeLaplace(math.ceil(move.l1) / self.scale, math.ceil(move.l1))
                return Losses(((old, 1), (new, 1)))
            case _ if is_plain(move, self.scale) and (keys == 1 or self.scale >= _SURELY):
                return Losses(((old_loss(keys * self.scale**2, keys * weight), 1), (new, 1)))
        return None

    def pmf(self, y: Any, x: Any) -> Any:
        """P(a count x is released as y; suppressed if y is 0)."""
        y, x = np.asarray(y), np.asarray(x)
        suppressed = np.where(x > 0, self.law.cdf(self.threshold - 1 - x), 1.0)
        released = np.where((x > 0) & (y >= self.threshold), self.law.pmf(y - x), 0.0)
        return np.where(y == 0, suppressed, released)[()]

    def chance(self, counts: Any) -> Any:
        """Return the probability that groups with these counts are released."""
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
        t, w = self.threshold, self.weight
        return [(t, t + w, 1), (0, w, 1), (t + w + 1, t + 1, 1)]

    def worst(self) -> Sequence[int]:
        """A count so far above the threshold that selection does not touch it: noise is what is stated."""
        return [self.threshold + half_width(self.law, 1 - 1e-14)]

    def error(self, y: Any, x: int) -> Any:
        """Return how far a released count is off."""
        return np.abs(np.subtract(y, x))

    def support(self, x: int) -> Any:
        """0 and, from the threshold on, outputs within the noise's 1e-14 quantiles."""
        reach = half_width(self.law, 1 - 1e-14) if x else -1
        return np.append(0, np.arange(max(self.threshold, x - reach), x + reach + 1))


examples = [
    Threshold(1, 15),
    Threshold("5/2", 20, groups=1),
    Threshold("1/3", 4),
    Threshold(3, 13, noise="gaussian", epsilon=1),
    Threshold(2, 12, noise="truncated"),
    Threshold("2/3", 6, noise="truncated"),
]
