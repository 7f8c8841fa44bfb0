"""What every noise law can tell about itself."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.noise import Integers
from noisette.exact.random import Random

__all__ = ["Law"]

Floats = NDArray[np.float64]


class Law(Protocol):
    """A symmetric law on the integers (grid units).

    Probabilities are floats, good to about 1e-12 relative, for arrays as well as for single integers: they serve
    accuracy and audits. What privacy rests on, `sample`, is exact.
    """

    def pmf(self, z: Any) -> Any:
        """P(Z = z)."""
        ...

    def cdf(self, z: Any) -> Any:
        """P(Z <= z)."""
        ...

    def tail(self, t: Any) -> Any:
        """P(|Z| > t), t >= 0."""
        ...

    def quantile(self, p: float) -> int:
        """Return the smallest z with P(Z <= z) >= p."""
        ...

    def variance(self) -> float:
        """E Z^2."""
        ...

    def mean_absolute(self) -> float:
        """E |Z|."""
        ...

    def sample(self, size: int | tuple[int, ...] | None, rng: Random) -> int | Integers:
        """Draw exactly: one integer, or noise of a shape."""
        ...


def half_width(law: Law, level: float) -> int:
    """Return the smallest t with P(|Z| <= t) >= level.

    >>> from noisette.laws import DiscreteLaplace
    >>> half_width(DiscreteLaplace(1), 0.95)
    3
    """
    if not 0 < level < 1:
        raise InputError("level must lie strictly between 0 and 1: a usual one is 0.95.")
    return smallest(lambda t: law.tail(t) <= 1 - level)


def quantile(law: Law, p: float) -> int:
    """Return the smallest z with P(Z <= z) >= p, by bisection."""
    if not 0 < p < 1:
        raise InputError("p must lie strictly between 0 and 1.")
    if law.cdf(-1) < p:
        return smallest(lambda z: law.cdf(z) >= p)
    return -smallest(lambda t: law.cdf(-t - 1) < p)


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
