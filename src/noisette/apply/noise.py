"""Noise on the sums of several numbers of which one block can change each by up to STEPS; and what shares of a promise.

One unit is in one block, so neighbouring tables, under add/remove or replace, differ by the output of one block of a
public number of them: by one replaced record. Whatever is stated for that holds for both relations (`for_units`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from noisette.exact.number import floor_log2
from noisette.exact.random import Random
from noisette.mechanisms import Gaussian, Geometric, calibrate
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["BLOCK", "STEPS", "Noise", "for_units", "noise", "part", "recorded"]

STEPS = 2**24
"""Numbers are rounded to so many steps between their bounds."""

BLOCK = Sensitivity(2, 2, 1, 2, neighbours=Neighbours.REPLACE)
"""One block of many gives something else: in a histogram of what they give, one count falls and another one grows."""

Noisy: TypeAlias = Geometric | Gaussian


def part(promise: Promise, share: Fraction, *, pure: bool = False) -> Promise:
    """A share of a promise, with all of its delta or, if it is to be pure, with none."""
    match promise:
        case Pure(eps):
            return Pure(eps * share)
        case Approx(eps, delta):
            return Pure(eps * share) if pure else Approx(eps * share, delta)
        case ZCDP(rho):
            return ZCDP(rho * share)


def for_units(guarantee: Any, neighbours: Neighbours) -> Guarantee:
    """What holds for one block that gives something else, stated for one unit."""
    match guarantee:
        case Pure(eps):
            return Pure(eps, neighbours=neighbours, ledger=guarantee.ledger)
        case Approx(eps, delta):
            return Approx(eps, delta, neighbours=neighbours, ledger=guarantee.ledger)
        case _:
            return ZCDP(guarantee.rho, neighbours=neighbours, ledger=guarantee.ledger)


def recorded(mechanism: Any, measure: str, reach: Sensitivity) -> dict[str, Any]:
    """A mechanism with what it is applied to, for the record; sensitivities are those of one replaced block."""
    return {
        "mechanism": type(mechanism).__name__,
        "parameters": {name: str(value) for name, value in vars(mechanism).items() if name[0] != "_"},
        "measure": measure,
        "grid": "1",
        "relation": str(reach.neighbours),
        "sensitivity": {
            "l0": reach.l0,
            "l1": str(reach.l1),
            "l2_squared": str(reach.l2_squared),
            "linf": str(reach.linf),
        },
    }


@dataclass(frozen=True)
class Noise:
    """The noise on `count` sums, Laplace noise on each by itself or Gaussian noise on all together."""

    mechanism: Noisy
    count: int

    @property
    def _reach(self) -> Sensitivity:
        k = 1 if isinstance(self.mechanism, Geometric) else self.count
        return Sensitivity(k * STEPS, k * STEPS**2, STEPS, k, neighbours=Neighbours.REPLACE)

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


def noise(promise: Promise, count: int) -> Noise:
    """The noise of least variance that keeps a promise for so many sums."""
    base = calibrate(Geometric, promise, sensitivity=1, times=count)
    laplace = Noise(Geometric(base.scale * STEPS), count)
    if isinstance(promise, Pure) or (isinstance(promise, Approx) and not promise.delta0):
        return laplace
    gaussian = Noise(_gaussian(promise, count), count)
    return min((laplace, gaussian), key=lambda one: one.mechanism.variance())


def _gaussian(promise: Promise, count: int) -> Gaussian:
    """Calibrated at distance 1 and stretched, lattice and all: what it costs is the same."""
    base = calibrate(Gaussian, promise, sensitivity=1)
    size = Sensitivity(count * STEPS, count * STEPS**2, STEPS, count, neighbours=Neighbours.REPLACE).l2
    return Gaussian(base.sigma * size, grid=base.grid * Fraction(2) ** floor_log2(size))
