"""The discrete Laplace (two-sided geometric) law: P(z) = (1 - a)/(1 + a) a^|z|, a = e^(-1/scale)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.exact import vector
from noisette.exact.noise import Integers
from noisette.exact.number import Number, positive
from noisette.exact.random import SYSTEM, Random
from noisette.laws import law

__all__ = ["DiscreteLaplace"]


@dataclass(frozen=True)
class DiscreteLaplace:
    """Two-sided geometric noise on the integers.   [Ghosh-Roughgarden-Sundararajan 2009]

    >>> noise = DiscreteLaplace(1)
    >>> round(float(noise.pmf(0)), 6), round(noise.variance(), 6), round(noise.mean_absolute(), 6)
    (0.462117, 1.841347, 0.850918)
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(
            self, "scale", positive(scale, "scale", most=vector.LARGEST_SCALE, least=vector.SMALLEST_SCALE)
        )

    @property
    def _rate(self) -> float:
        return float(1 / self.scale)

    def pmf(self, z: Any) -> Any:
        """P(Z = z) = tanh(1 / (2 scale)) a^|z|."""
        return math.tanh(self._rate / 2) * np.exp(-self._rate * np.abs(z))

    def cdf(self, z: Any) -> Any:
        """P(Z <= z): 1 - a^(z+1)/(1+a) for z >= 0, a^-z/(1+a) below."""
        z = np.asarray(z)
        share = np.exp(-self._rate * np.where(z >= 0, z + 1, -z)) / (1 + math.exp(-self._rate))
        return np.where(z >= 0, 1 - share, share)[()]

    def tail(self, t: Any) -> Any:
        """P(|Z| > t) = 2 a^(t+1)/(1+a)."""
        return 2 * np.exp(-self._rate * (np.asarray(t) + 1)) / (1 + math.exp(-self._rate))

    def quantile(self, p: float) -> int:
        """Return the smallest z with P(Z <= z) >= p."""
        return law.quantile(self, p)

    def variance(self) -> float:
        """2 a / (1 - a)^2 = 1 / (2 sinh^2(1 / (2 scale)))."""
        return 0.5 / math.sinh(min(self._rate / 2, 350)) ** 2

    def mean_absolute(self) -> float:
        """2 a / (1 - a^2) = 1 / sinh(1 / scale)."""
        return 1 / math.sinh(min(self._rate, 700))

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Random = SYSTEM) -> int | Integers:
        """Draw exactly."""
        return vector.laplace_noise(self.scale, size, rng)
