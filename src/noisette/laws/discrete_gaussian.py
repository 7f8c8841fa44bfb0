"""The discrete Gaussian law: P(z) proportional to e^(-z^2 / (2 sigma2)) on the integers."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from noisette.exact import vector
from noisette.exact.frozen import frozen
from noisette.exact.integers import Integers
from noisette.exact.random import SYSTEM, Random
from noisette.laws.law import Law

__all__ = ["DiscreteGaussian"]

_SMOOTH = 256**2  # from this sigma2 on, sums are integrals with a correction, to a relative 1e-12


@frozen
class DiscreteGaussian(Law):
    """Gaussian noise on the integers.   [Canonne-Kamath-Steinke 2020]

    Its variance is a little below sigma2, and indistinguishable from it for sigma2 > 2.

    >>> noise = DiscreteGaussian("1/4")
    >>> round(float(noise.pmf(0)), 6), round(noise.variance(), 6)
    (0.786571, 0.215013)
    """

    sigma2: vector.Variance

    @property
    def _sigma(self) -> float:
        return math.sqrt(self.sigma2)

    def pmf(self, z: Any) -> Any:
        """P(Z = z)."""
        return np.exp(-(np.asarray(z, dtype=float) ** 2) / (2 * float(self.sigma2))) / _normaliser(self.sigma2)

    def upper(self, z: Any) -> Any:
        """P(Z >= z) for z >= 0."""
        if self.sigma2 < _SMOOTH:
            sums = _tail_sums(self.sigma2)
            return sums[np.minimum(np.asarray(z), len(sums) - 1).astype(np.int64)]
        from scipy.special import ndtr

        # midpoint rule: sum_{y >= z} f(y) = integral from z - 1/2, + f'(z - 1/2)/24, f' = -x f / sigma^2
        x = (np.asarray(z, dtype=float) - 0.5) / self._sigma
        density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return ndtr(-x) - x * density / (24 * float(self.sigma2))

    def variance(self) -> float:
        """E Z^2, at most sigma2."""
        if self.sigma2 >= _SMOOTH:
            return float(self.sigma2)
        z = np.arange(1, len(_tail_sums(self.sigma2)))
        return float(2 * np.sum(z * z * self.pmf(z)))

    def mean_absolute(self) -> float:
        """E |Z|: summed, or sigma sqrt(2/pi) (1 - 1/(12 sigma2)) for large sigma."""
        if self.sigma2 >= _SMOOTH:
            return self._sigma * math.sqrt(2 / math.pi) * (1 - 1 / (12 * float(self.sigma2)))
        return float(2 * np.sum(_tail_sums(self.sigma2)[1:]))

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Random = SYSTEM) -> int | Integers:
        """Draw exactly."""
        return vector.gaussian_noise(self.sigma2, size, rng)


@lru_cache(maxsize=64)
def _normaliser(sigma2: Fraction) -> float:
    """sum_z e^(-z^2 / 2 sigma2); by Poisson summation sigma sqrt(2 pi) (1 + 2 e^(-2 pi^2 sigma2) + …)."""
    variance = float(sigma2)
    if variance > 1:
        return math.sqrt(2 * math.pi * variance) * (1 + 2 * math.exp(-2 * math.pi**2 * variance))
    z = np.arange(1, 40)
    return 1 + 2 * float(np.sum(np.exp(-z * z / (2 * variance))))


@lru_cache(maxsize=64)
def _tail_sums(sigma2: Fraction) -> Any:
    """P(Z >= z), z = 0, 1, … until it vanishes; summed from the far end, so that small terms keep their digits."""
    z = np.arange(0, math.ceil(39 * math.sqrt(sigma2)) + 2)
    weights = np.exp(-(z * z) / (2 * float(sigma2)))
    return np.append(np.cumsum(weights[::-1])[::-1] / _normaliser(sigma2), 0.0)
