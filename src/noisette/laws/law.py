"""What a noise law is, and what it derives from its upper tail."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from noisette.errors import InputError
from noisette.exact.integers import Integers
from noisette.exact.number import level_of
from noisette.exact.random import Random

__all__ = ["Law", "half_width", "smallest"]


class Law(Protocol):
    """A symmetric law on the integers (grid units): cdf, tail and quantile follow from `upper`.

    Probabilities are floats with a relative error of about 1e-12, for arrays and for single integers; they serve
    accuracy and audits. Privacy rests on `sample`, which is exact.
    """

    def pmf(self, z: Any) -> Any:
        """P(Z = z)."""
        ...

    def upper(self, z: Any) -> Any:
        """P(Z >= z), z >= 0."""
        ...

    def variance(self) -> float:
        """E Z^2."""
        ...

    def mean_absolute(self) -> float:
        """E |Z|."""
        ...

    def sample(self, size: int | tuple[int, ...] | None, rng: Random) -> int | Integers:
        """Draw exactly: one integer, or an array of the given shape."""
        ...

    def cdf(self, z: Any) -> Any:
        """P(Z <= z)."""
        z = np.asarray(z)
        share = self.upper(np.where(z >= 0, z + 1, -z))
        return np.where(z >= 0, 1 - share, share)[()]

    def tail(self, t: Any) -> Any:
        """P(|Z| > t), t >= 0."""
        return 2 * self.upper(np.asarray(t) + 1)

    def quantile(self, p: float) -> int:
        """Return the smallest z with P(Z <= z) >= p."""
        if not 0 < p < 1:
            raise InputError("p must lie strictly between 0 and 1.")
        if self.cdf(-1) < p:
            return smallest(lambda z: bool(self.cdf(z) >= p))
        return -smallest(lambda t: bool(self.cdf(-t - 1) < p))


def half_width(law: Law, level: float) -> int:
    """Return the smallest t with P(|Z| <= t) >= level.

    >>> from noisette.laws import DiscreteLaplace
    >>> half_width(DiscreteLaplace(1), 0.95)
    3
    """
    level_of(level)
    return _half_width(law, level)  # type: ignore[arg-type]  # laws are frozen values


@lru_cache(maxsize=256)
def _half_width(law: Law, level: float) -> int:
    """The same, found once for each noise: a question needs it before the draw and after it."""
    return smallest(lambda t: law.tail(t) <= 1 - level)


def smallest(holds: Callable[[int], bool]) -> int:
    """Return the smallest t >= 0 from which on a monotone condition holds, in about 2 log2(t) steps."""
    if holds(0):
        return 0
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
