"""Noise on the sums over blocks of several numbers, each of which a block can change by up to STEPS."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from noisette.exact.number import floor_log2
from noisette.exact.random import Random
from noisette.mechanisms import Gaussian, Geometric, calibrate
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.blocks.terms import recorded

__all__ = ["STEPS", "Noise", "noise"]

STEPS = 2**24
"""Numbers are rounded to so many steps between their bounds."""

Noisy: TypeAlias = Geometric | Gaussian


@dataclass(frozen=True)
class Noise:
    """The noise on `count` sums, Laplace noise on each by itself or Gaussian noise on all together.

    A unit is in `each` blocks, so it can change each sum by as many times STEPS.
    """

    mechanism: Noisy
    count: int
    each: int

    @property
    def _reach(self) -> Sensitivity:
        return _moves(1 if isinstance(self.mechanism, Geometric) else self.count, self.each)

    @property
    def _times(self) -> int:
        return self.count if isinstance(self.mechanism, Geometric) else 1

    @property
    def guarantee(self) -> Guarantee:
        """What all of it is worth."""
        return self.mechanism.guarantee(self._reach) * self._times

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        return [recorded(self.mechanism, "sum over blocks", self._reach)] * self._times

    @property
    def name(self) -> str:
        """What it is called."""
        return "Laplace" if isinstance(self.mechanism, Geometric) else "Gaussian"

    def steps(self, level: float) -> float:
        """By how many steps a sum is off at most, at that level; half a step for each block's rounding comes to it."""
        return self.mechanism.interval(level)

    def __call__(self, sums: Sequence[int], rng: Random) -> list[Fraction]:
        """Noised sums; Gaussian noise may lie on a finer grid."""
        return [Fraction(one) for one in np.atleast_1d(self.mechanism(np.array(sums, np.int64), rng)).tolist()]


def noise(promise: Promise, count: int, each: int) -> Noise:
    """The noise of least variance that keeps a promise for so many sums."""
    base = calibrate(Geometric, promise, sensitivity=1, times=count)
    laplace = Noise(Geometric(base.scale * each * STEPS), count, each)
    if promise.is_pure:
        return laplace
    gaussian = Noise(_gaussian(promise, count, each), count, each)
    return min((laplace, gaussian), key=lambda one: one.mechanism.variance())


def _gaussian(promise: Promise, count: int, each: int) -> Gaussian:
    """Calibrated at distance 1 and stretched, lattice and all: what it costs is the same."""
    base, size = calibrate(Gaussian, promise, sensitivity=1), _moves(count, each).l2
    return Gaussian(base.sigma * size, grid=base.grid * Fraction(2) ** floor_log2(size))


def _moves(count: int, each: int) -> Sensitivity:
    """How far so many sums can move if `each` blocks give something else."""
    most = each * STEPS
    return Sensitivity(count * most, count * most**2, most, count, neighbours=Neighbours.REPLACE)
