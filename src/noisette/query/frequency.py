"""Minimum frequency: a group is shown only if enough units stand behind it, by a noisy number of them alone.

A group of n units has the noisy number n + Z, rounded to a whole one, and is shown if that is at least t. Noise hides
n, so t is the least whole number with P(k - 1 + Z rounds to t or more) <= `failure`: then every group of fewer than
k = `units` is shown with probability at most `failure`, since P(n + Z >= t) grows with n. The tail is that of the noise
that is drawn, rounded up. Statistics offices ask for such rules, and so does DPSQL+ (arXiv 2602.22699).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from noisette.errors import InputError
from noisette.laws.law import smallest
from noisette.mechanisms import Gaussian, Geometric, Threshold
from noisette.mechanisms.partitions.threshold_cost import tail

__all__ = ["MinimumFrequency"]

_LEAST = Fraction(1, 10**30)
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class MinimumFrequency:
    """At least `units` behind every group that is shown; fewer are shown with probability at most `failure`.

    >>> rule = MinimumFrequency(10, Fraction(1, 10**6))
    >>> rule.threshold(Geometric(1)), float(rule.chance(Geometric(1), 9, 23)) <= 1e-6 < rule.chance(Geometric(1), 9, 22)
    (23, True)
    """

    units: int
    failure: Fraction = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        if not _LEAST <= self.failure < 1:
            raise InputError("failure must lie between 1e-30 and 1: a usual one is '1e-6'.")

    def chance(self, noise: Geometric | Gaussian, units: int, threshold: int) -> Fraction:
        """The probability that a group of `units` is shown, rounded up."""
        return tail(noise.law, math.ceil((threshold - units - _HALF) / noise.grid))

    def threshold(self, noise: Geometric | Gaussian) -> int:
        """The least noisy number of units, a whole one, with which a group is shown."""
        below = self.units - 1
        return below + smallest(lambda above: self.chance(noise, below, below + above) <= self.failure)

    def raised(self, rule: Threshold) -> Threshold:
        """The rule for unknown keys with a threshold that also keeps the minimum frequency; it costs no more."""

        def made(above: int) -> Threshold:
            return replace(rule, threshold=rule.threshold + above)

        def kept(above: int) -> bool:
            higher = made(above)
            return self.units == 1 or tail(higher.law, higher.threshold - self.units + 1) <= self.failure

        return made(smallest(kept))
