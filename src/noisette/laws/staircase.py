"""The discrete staircase law: flat steps whose height falls by e^-epsilon, in periods of a given width."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Positive, Whole, frozen
from noisette.exact.integers import Integers, added, multiplied, placed
from noisette.exact.random import SYSTEM, Random
from noisette.laws.law import Law

__all__ = ["DiscreteStaircase"]


@frozen
class DiscreteStaircase(Law):
    """P(z) = c e^(-epsilon k) on the inner part of step k of |z|, c e^(-epsilon (k+1)) on the rest of it.

    Step k holds the `width` integers from k width on; its inner part are the first `inner` of them.
    [Geng-Viswanath 2014, discrete setting]

    >>> noise = DiscreteStaircase(1, width=4, inner=2)
    >>> [round(float(noise.pmf(1) / noise.pmf(z)), 6) for z in (2, 5)]
    [2.718282, 2.718282]
    """

    epsilon: Positive
    _: KW_ONLY
    width: Whole
    inner: Whole

    def __post_init__(self) -> None:
        if self.inner > self.width:
            raise InputError("inner must be at most width: it is the inner part of a step.")

    @property
    def _drop(self) -> float:
        return math.exp(-float(self.epsilon))

    @property
    def _mass(self) -> float:
        """Weight of step 0 on one side: inner + (width - inner) e^-epsilon."""
        return self.inner + (self.width - self.inner) * self._drop

    @property
    def _top(self) -> float:
        """P(0): one side's weights sum to mass / (1 - e^-epsilon), and zero belongs to both sides."""
        rise = -math.expm1(-float(self.epsilon))
        return rise / (2 * self._mass - rise)

    def pmf(self, z: Any) -> Any:
        """P(Z = z)."""
        step, place = np.divmod(np.abs(np.asarray(z)), self.width)
        return self._top * np.exp(-float(self.epsilon) * (step + (place >= self.inner)))

    def upper(self, z: Any) -> Any:
        """P(Z >= z), z >= 0: the rest of z's step, and all later steps."""
        step, place = np.divmod(np.asarray(z), self.width)
        inner_left = np.maximum(self.inner - place, 0)
        outer_left = self.width - np.maximum(place, self.inner)
        later = self._mass * self._drop / -math.expm1(-float(self.epsilon))
        return self._top * np.exp(-float(self.epsilon) * step) * (inner_left + outer_left * self._drop + later)

    def _moment(self, power: int) -> float:
        """E |Z|^power, power 1 or 2: sum over steps k of e^(-epsilon k) sum_j w_j (k width + j)^power."""
        places = [_power_sums(0, self.inner, power), _power_sums(self.inner, self.width, power)]
        sums = [float(a + b * Fraction(self._drop)) for a, b in zip(*places, strict=True)]  # sum w_j j^i, i = 0 …
        b, w = self._drop, self.width
        geometric = [1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3]  # sum_k b^k k^i
        total = sum(math.comb(power, i) * w ** (power - i) * geometric[power - i] * sums[i] for i in range(power + 1))
        return float(2 * self._top * total)

    def variance(self) -> float:
        """E Z^2."""
        return self._moment(2)

    def mean_absolute(self) -> float:
        """E |Z|."""
        return self._moment(1)

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Random = SYSTEM) -> int | Integers:
        """Draw exactly: the step is geometric, its part a logistic coin, the place uniform, the sign fair."""
        if size is None:
            return samplers.retry(self._attempt, rng)
        return self._array(math.prod(size) if isinstance(size, tuple) else size, rng).reshape(size)

    @property
    def _outer_weight(self) -> Fraction:
        return Fraction(self.width - self.inner, self.inner)

    def _attempt(self, rng: Random) -> int | None:
        step = samplers.geometric(1 / self.epsilon, rng)
        inner = self.inner == self.width or samplers.logistic(self.epsilon, self._outer_weight, rng)
        place = rng.below(self.inner) if inner else self.inner + rng.below(self.width - self.inner)
        z = step * self.width + place
        if rng.flip(1, 2):
            return -z if z else None  # zero must not be counted twice
        return z

    def _array(self, count: int, rng: Random) -> Integers:
        step = np.asarray(vector.geometric_noise(1 / self.epsilon, count, rng))
        place = vector.uniform(self.inner, count, rng=rng)
        if self.inner < self.width:
            outer = np.flatnonzero(~vector.logistic(self.epsilon, count, weight=self._outer_weight, rng=rng))
            place[outer] = self.inner + vector.uniform(self.width - self.inner, outer.size, rng=rng)
        z = added(multiplied(step, self.width), place)
        negative = (rng.words(count, np.uint8) & 1).astype(bool)
        twice = np.flatnonzero(negative & (z == 0))
        z = np.where(negative, -z, z)
        if twice.size:  # zero must not be counted twice
            z = placed(z, dict(zip(twice.tolist(), map(int, self._array(twice.size, rng)), strict=True)))
        return z


def _power_sums(start: int, stop: int, power: int) -> list[Fraction]:
    """sum of j^i for j = start .. stop-1, i = 0 .. power (power at most 2)."""

    def below(n: int) -> list[Fraction]:
        return [Fraction(n), Fraction(n * (n - 1), 2), Fraction((n - 1) * n * (2 * n - 1), 6)]

    return [b - a for a, b in zip(below(start), below(stop), strict=True)][: power + 1]
