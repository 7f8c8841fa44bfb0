"""Propose, test, release: noise for a proposed local sensitivity, where the table is far from exceeding it.

Propose a bound b on how far one person can move the answer f(x). Let the distance d(x) be 0 where somebody can move it
further, and let it move by at most 1 between neighbours: the number of changes to the nearest such table, or any lower
bound of it. With probability p_(d+1) (see `stable`) f(x) + discrete Laplace noise is released, and None otherwise:

    epsilon = epsilon of the test + b/scale,   delta = delta of the test,

and delta is attained. Neighbours whose answers are more than b apart both have d = 0, so that each answer shows with
probability delta; all others are hidden by both noises.   [Dwork-Lei 2009; Smith-Thakurta 2013; proof
note: docs/proofs/stability.md, which also has the price of a release that has a delta itself: it adds up]

Real answers are rounded to a `grid` first, which may move them apart by one grid more: b + grid for b.

When: one person can move the answer far on few tables only, and how far a table is from those can be computed. Where
the answer is a quantile of bounded values, `Quantile` needs neither a proposal nor a delta.
Textbook: Smith, propose-test-release, where the test and the answer must both be paid for.

Vocabulary: `bound` b · `distance` d · `epsilon`, `delta` of the test · `scale` of the noise on the answer.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, default, frozen, set_fields
from noisette.exact.number import Number, fraction, positive
from noisette.exact.random import SYSTEM, Random
from noisette.laws.law import half_width
from noisette.mechanisms.additive.laplace import Laplace
from noisette.mechanisms.additive.lattice import integer_answer, lattice_point, real_answer
from noisette.mechanisms.calibration import Grid, agreed, read_grid
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import Stability, distance_steps, kept_by, read_distance
from noisette.privacy import Approx, Promise, Pure
from noisette.privacy.convert import group_delta
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import Response

__all__ = ["ProposeTestRelease"]


@frozen
class ProposeTestRelease(Stability):
    """The noisy answer of a pair (answer, distance), or None; whole numbers, or reals on a grid.

    >>> m = ProposeTestRelease.calibrated(Approx(2, "1e-6"), bound=5)
    >>> m.epsilon, m.scale, m.guarantee(1)
    (Fraction(1, 1), Fraction(5, 1), Approx('2', '1/1000000'))
    >>> type(m((120, 40))).__name__, m.interval(0.95), m.certain
    ('int', 15.0, 28)
    """

    sized_by = "scale"
    _: KW_ONLY
    scale: Positive
    bound: Positive
    grid: Grid = default(1)

    def __post_init__(self) -> None:
        set_fields(self, grid=read_grid(self.grid, self.scale))
        if self.grid == 1 and self.bound.denominator != 1:
            raise InputError("bound must be a whole number, as the answers are: give a grid for real ones.")

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        bound: Number,
        grid: Number | None = 1,
        test: Number = "1/2",
    ) -> "ProposeTestRelease":
        """Return one that keeps the promise for `sensitivity` people; the test gets the share `test` of epsilon."""
        agreed(guarantee, sensitivity)
        part = fraction(test, "test")
        if not 0 < part < 1:
            raise InputError("test must lie strictly between 0 and 1: it is the part of epsilon for the test.")
        one = kept_by(guarantee, distance_steps(sensitivity)[0])
        noise = Laplace.calibrated(Pure(one.epsilon * (1 - part)), positive(bound, "bound"), grid=grid)
        return cls(one.epsilon * part, one.delta0, scale=noise.scale, bound=bound, grid=noise.grid)

    @property
    def _noise(self) -> Laplace:
        return Laplace(self.scale, grid=self.grid)

    def guarantee(self, distance: Distance = 1) -> Approx:
        """Return (epsilon of test and answer, delta) for one person, and for more what holds for groups."""
        people, neighbours = distance_steps(distance)
        noise = self._noise.guarantee(self.bound)
        assert isinstance(noise, Pure)
        total = Approx(self.epsilon + noise.epsilon, self.delta)
        if people == 1:
            test = once(Response(self.epsilon, self.delta))
            known = test + noise.losses if test and noise.losses else None
            return Approx(total.epsilon, total.delta, neighbours=neighbours, losses=known)
        return Approx(people * total.epsilon, group_delta(total.epsilon, total.delta, people), neighbours=neighbours)

    def _read(self, x: Any) -> tuple[Any, int]:
        """(answer, changes)."""
        if not isinstance(x, tuple) or len(x) != 2 or np.ndim(x[0]):
            raise InputError("The input must be a pair (answer, distance) of a single answer.")
        answer = (integer_answer if self.grid == 1 else real_answer)(x[0]).item()
        return answer, read_distance(x[1]) + 1

    def _stable(self, x: Any) -> tuple[Hashable, int]:
        return self._read(x)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Hashable:
        """Release a noisy answer or None."""
        answer, changes = self._read(x)
        released: Hashable = self._noise(answer, rng) if self._passes(changes, rng) else None
        return released

    def outcomes(self, x: Any) -> Mapping[Hashable, float]:
        """Return the probabilities of None and of answers within the noise's 1e-14 quantiles."""
        answer, changes = self._read(x)
        kept, suppressed = self._odds(changes)
        noise, centre = self._noise.law, lattice_point(answer, self.grid)
        reach = half_width(noise, 1 - 1e-14)
        places = np.arange(-reach, reach + 1)
        law: dict[Hashable, float] = {None: suppressed}
        for z, p in zip(places.tolist(), noise.pmf(places).tolist(), strict=True):
            law[self._shown(centre + z)] = kept * p
        return law

    def _shown(self, place: int) -> int | float:
        return place if self.grid == 1 else float(place * self.grid)

    def error(self, y: Any, x: Any) -> float:
        """|released - answer|; None is no wrong answer."""
        return 0.0 if y is None else float(abs(Fraction(y) - Fraction(self._read(x)[0])))

    def interval(self, level: float = 0.95) -> float:
        """Return a t for which no answer is released that is further off, with at least that probability."""
        return self._noise.interval(level)

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """Both halves of the curve and its end, with answers a bound apart that rounding moves further apart."""
        low, high = self._halves
        x = 0 if self.grid == 1 else float(self.grid / 2)
        y = int(self.bound) if self.grid == 1 else float(self.grid / 2 + self.bound)
        places = (max(0, low - 2), max(1, low - 1)), (high, high - 1), (self.certain, self.certain)
        return [((x, d), (y, d_prime), 1) for d, d_prime in places]

    @property
    def tightness(self) -> float:
        """The chance of noise that shows all of its epsilon, if the bound is an odd number of grids.

        Where answers are further apart, at distance 0, all of delta is attained, at every epsilon.
        """
        odd = self.grid == 1 or (self.bound / self.grid) % 2 == 1
        return 1 / (1 + math.exp(-float(self.grid / self.scale))) if odd else 0.0


examples = [
    ProposeTestRelease(1, "1e-6", scale=3, bound=3),
    ProposeTestRelease("1/2", "1/50", scale=1, bound=2),
    ProposeTestRelease(1, "1e-4", scale=1, bound="1/2", grid="1/2"),
]
