"""Release how stable a value is, with noise, and the value itself where that is enough.

Given f(x) and its distance to instability d(x), release d + Z with two-sided geometric noise of a scale, and f(x) if
d + Z >= threshold. With a = e^(-1/scale) it is (epsilon, delta)-DP,

    epsilon = 1/scale + ln(1 - a^threshold),   delta = P(Z >= threshold) = a^threshold / (1 + a),

and both are attained, by neighbours with one value; those with two both have d = 0 and show delta at every epsilon.
(The logarithm is what delta, once it is paid, saves for the noise: next to nothing if it is small.)
[Smith-Thakurta 2013, with the threshold corrected; proof note: docs/proofs/stability.md]

When: the distance is wanted as well; where it is not, `Stable` releases the value more often.
Textbook: Smith, stability, whose threshold misses its delta by a factor e^epsilon/2.

Vocabulary: `changes` d + 1, what it takes to alter the value.
"""

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar

from noisette.exact.frozen import frozen
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_down, ln_bounds
from noisette.exact.vector import Scale
from noisette.laws import DiscreteLaplace
from noisette.laws.law import half_width
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.partitions.threshold import Threshold
from noisette.mechanisms.stability.stability import approximate, distance_steps, moves, read_pair
from noisette.privacy import Approx, Promise

__all__ = ["StableDistance"]

_BITS = 96


@frozen
class StableDistance(Mechanism):
    """(The value or None, the noisy distance), given a pair (value, distance to instability).

    >>> m = StableDistance.calibrated(Approx(1, "1e-6"))
    >>> m.scale, m.threshold, m(("north", 1000))[0]
    (Fraction(1, 1), 14, 'north')
    >>> round(m.guarantee(1).delta_at(1) * 1e6, 3)
    0.608
    """

    kind = Output.OUTCOME
    tightness = 1.0
    """Delta is attained at epsilon by all distances; where one person alters the value, at every epsilon."""

    scale: Scale
    threshold: Annotated[int, partial(whole, least=0)]
    norm: ClassVar[float] = 1

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1) -> "StableDistance":
        """Return the least noise and threshold that keep the promise, if the distance moves by at most `sensitivity`.

        Where the value can change, the distance must then be below the sensitivity.
        """
        agreed(guarantee, sensitivity)
        steps, _ = distance_steps(sensitivity)
        made = Threshold.calibrated(approximate(guarantee, steps), moves(steps))
        return cls(made.scale, made.threshold - 1)

    @property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise on the distance."""
        return DiscreteLaplace(self.scale)

    def guarantee(self, distance: Distance = 1) -> Approx:
        """Return (steps/scale + ln(1 - a^least), P(Z >= least)), least = threshold + 1 - steps, rounded up."""
        steps, neighbours = distance_steps(distance)
        counted = Threshold(self.scale, self.threshold + 1).guarantee(moves(steps))  # of d + 1 changes
        epsilon = counted.epsilon - self._saved(self.threshold + 1 - steps) if steps else Fraction(0)
        return Approx(epsilon, counted.delta, neighbours=neighbours, losses=counted.losses)

    def _saved(self, least: int) -> Fraction:
        """-ln(1 - a^least), rounded down, but no more than one step costs."""
        if least <= 0:
            return 1 / self.scale
        log = ln_bounds(1 - exp_down(-least / self.scale), _BITS)[1]
        return min(1 / self.scale, Fraction(-log, 1 << _BITS))

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Hashable:
        """Release (the value or None, the noisy distance)."""
        value, distance = read_pair(x)
        noisy = distance + int(self.noise.sample(None, rng))
        return (value if noisy >= self.threshold else None), noisy

    def outcomes(self, x: Any) -> Mapping[Hashable, float]:
        """Return the probabilities of outcomes within the noise's 1e-14 quantiles."""
        value, distance = read_pair(x)
        reach = half_width(self.noise, 1 - 1e-14)
        return {
            (value if distance + z >= self.threshold else None, distance + z): float(self.noise.pmf(z))
            for z in range(-reach, reach + 1)
        }

    def least(self, level: float = 0.5) -> int:
        """Return the least distance at which the value is released with at least that probability."""
        return max(0, self.threshold + self.noise.quantile(level))

    def error(self, y: Any, x: Any) -> float:
        """|noisy distance - distance|; a value that is released is right."""
        return float(abs(y[1] - read_pair(x)[1]))

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest t with P(|error| <= t) >= level."""
        return float(half_width(self.noise, level))

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """Distances at the threshold, and far below it."""
        t = self.threshold
        return [((7, t), (7, t + 1), 1), ((7, 1), (7, 0), 1)]


examples = [StableDistance(1, 4), StableDistance("5/2", 12), StableDistance("1/2", 2)]
