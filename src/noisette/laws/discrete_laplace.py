"""The discrete Laplace (two-sided geometric) law: P(z) = (1 - a)/(1 + a) a^|z|, a = e^(-1/scale)."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from noisette.exact import vector
from noisette.exact.frozen import frozen
from noisette.exact.integers import Integers
from noisette.exact.random import SYSTEM, Random
from noisette.laws.law import Law

__all__ = ["DiscreteLaplace"]


@frozen
class DiscreteLaplace(Law):
    """Two-sided geometric noise on the integers.   [Ghosh-Roughgarden-Sundararajan 2009]

    >>> noise = DiscreteLaplace(1)
    >>> round(float(noise.pmf(0)), 6), round(noise.variance(), 6), round(noise.mean_absolute(), 6)
    (0.462117, 1.841347, 0.850918)
    """

    scale: vector.Scale

    @cached_property
    def _rate(self) -> float:
        return float(1 / self.scale)

    def pmf(self, z: Any) -> Any:
        """P(Z = z) = tanh(1 / (2 scale)) a^|z|."""
        return math.tanh(self._rate / 2) * np.exp(-self._rate * np.abs(z))

    def upper(self, z: Any) -> Any:
        """P(Z >= z) = a^z / (1 + a), z >= 0."""
        return np.exp(-self._rate * np.asarray(z)) / (1 + math.exp(-self._rate))

    def variance(self) -> float:
        """2 a / (1 - a)^2 = 1 / (2 sinh^2(1 / (2 scale)))."""
        return 0.5 / math.sinh(min(self._rate / 2, 350)) ** 2

    def mean_absolute(self) -> float:
        """2 a / (1 - a^2) = 1 / sinh(1 / scale)."""
        return 1 / math.sinh(min(self._rate, 700))

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Random = SYSTEM) -> int | Integers:
        """Draw exactly."""
        return vector.laplace_noise(self.scale, size, rng)
