"""The size of noise that is not one plain law: a coordinate of K-norm noise, and noise on a clamped count.

Vocabulary: `t` cells of the lattice · `s` scale in cells · `x` = t/s · `d` dimension · `a` = e^(-1/s).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from noisette.laws import DiscreteLaplace, NormBall

__all__ = ["Clamped", "Coordinate", "IntegerNoise"]

_FINE = 2**20  # from this scale on, a lattice is as good as the continuum (relative error of widths below 1e-6)


class IntegerNoise(Protocol):
    """Integer noise Z, as far as accuracy needs to know it."""

    def tail(self, t: Any) -> Any:
        """P(|Z| > t)."""
        ...

    def mean_absolute(self) -> float:
        """E |Z|."""
        ...


@dataclass(frozen=True)
class Clamped:
    """Discrete Laplace noise on a count that is then put into a public range of `span` + 1 values, at its worst.

    A true value u above the low end errs by more than t on that side only if t < u; the middle errs most.

    >>> round(Clamped(DiscreteLaplace(1), 4).mean_absolute(), 6), float(Clamped(DiscreteLaplace(1), 4).tail(4))
    (0.735759, 0.0)
    """

    law: DiscreteLaplace
    span: int

    def tail(self, t: Any) -> Any:
        """The largest P(|error| > t) over the range: both sides up to its half, one side beyond."""
        sides = np.where(np.asarray(t) < self.span // 2, 1.0, np.where(np.asarray(t) < self.span, 0.5, 0.0))
        return (sides * self.law.tail(t))[()]

    def mean_absolute(self) -> float:
        """The largest E|error|: a/(1-a^2) (2 - a^u - a^v) with u + v = span, u and v as equal as can be."""
        rate, u = float(1 / self.law.scale), self.span // 2
        return self.law.mean_absolute() * (-math.expm1(-rate * u) - math.expm1(-rate * (self.span - u))) / 2

    def mean_above(self) -> float:
        """E(error) of a true value at the low end, where noise can only raise it: a/(1-a^2) (1 - a^span)."""
        return self.law.mean_absolute() * -math.expm1(-float(1 / self.law.scale) * self.span) / 2


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of K-norm noise; `largest_tail` is about all of them. Fine lattices use the continuous law.

    >>> one = Coordinate(NormBall(math.inf, 2**30, dimension=20))
    >>> one.largest_width(0.05) / 2**30, one.mean_absolute() / 2**30   # a gamma quantile; (d + 1)/2
    (27.879..., 10.5)
    """

    ball: NormBall

    @property
    def _scale(self) -> float:
        return float(self.ball.scale)

    def tail(self, t: Any) -> Any:
        """P(|Z_1| > t)."""
        if self._scale < _FINE:
            return self.ball.tail(np.asarray(t, dtype=float))
        return np.vectorize(lambda u: _tail(self.ball.norm, self.ball.dimension, (u + 0.5) / self._scale))(t)[()]

    def largest_tail(self, t: float) -> float:
        """P(max_i |Z_i| > t): exact for l1 and l∞, the union bound for l2."""
        if self._scale < _FINE:
            return self.ball.largest_tail(float(t))
        return _largest_tail(self.ball.norm, self.ball.dimension, (t + 0.5) / self._scale)

    def width(self, share: float) -> int:
        """Return the smallest t with P(|Z_1| > t) <= share."""
        return self._search(lambda t: float(self.tail(t)) <= share, _tail, share)

    def largest_width(self, share: float) -> int:
        """Return the smallest t with P(max_i |Z_i| > t) <= share."""
        return self._search(lambda t: self.largest_tail(t) <= share, _largest_tail, share)

    def _search(self, holds: Callable[[int], bool], continuous: Callable[..., float], share: float) -> int:
        x = _inverse(lambda x: continuous(self.ball.norm, self.ball.dimension, x), share)
        return _least(holds, max(0, math.ceil(x * self._scale - 0.5)))

    def mean_absolute(self) -> float:
        """E |Z_1|: s, 2s Gamma(d/2 + 1) / (sqrt(pi) Gamma((d+1)/2)), (d+1)s/2 on fine lattices."""
        d, s = self.ball.dimension, self._scale
        if self.ball.norm == 1:
            return DiscreteLaplace(self.ball.scale).mean_absolute()
        if s < _FINE:
            return self._cube_mean() if self.ball.norm == math.inf and d <= 200 else _summed(self.tail, s * d)
        if self.ball.norm == 2:
            return 2 * s / math.sqrt(math.pi) * math.exp(math.lgamma(d / 2 + 1) - math.lgamma((d + 1) / 2))
        return (d + 1) * s / 2

    def _cube_mean(self) -> float:
        """E|Z_1| for l∞: Z is uniform in a cube of side 2m + 1 with P(m) prop. to (2m+1)^d a^m, so that
        E|Z_1| = E m(m+1)/(2m+1) = E (2m+1)/4 - E 1/(2m+1)/4, and both are ratios of normalisers.
        """
        d = self.ball.dimension
        below, here, above = (
            NormBall(math.inf, self.ball.scale, dimension=n).log_normaliser() if n else 0.0 for n in (d - 1, d, d + 1)
        )
        return (math.exp(above - here) - math.exp(below - here)) / 4


def _tail(norm: float, d: int, x: float) -> float:
    """P(|Z_1| > x) for continuous noise with density proportional to e^-||z|| in d dimensions.

    l∞: Z_1 = R U with R ~ Gamma(d+1), U uniform. l2: a normal of variance 2 T^2 with T's density prop. to t^d e^(-t^2).
    """
    from scipy.special import erfc, gammaincc

    if norm == 1:
        return math.exp(-x)
    if norm == math.inf:
        return max(0.0, float(gammaincc(d + 1, x) - x / d * gammaincc(d, x)))
    middle = math.sqrt(d / 2)
    t = np.linspace(max(0.0, middle - 8), middle + 8, 2001)[1:]
    weights = np.exp(d * np.log(t / middle) - t * t + middle * middle)
    return float(np.sum(weights * erfc(x / (2 * t))) / np.sum(weights))


def _largest_tail(norm: float, d: int, x: float) -> float:
    """P(max_i |Z_i| > x) for the same noise; for l∞ the largest is Gamma(d).   [Hardt-Talwar 2010]"""
    from scipy.special import gammaincc

    if norm == math.inf:
        return float(gammaincc(d, x))
    tail = _tail(norm, d, x)
    if norm == 2:
        return min(1.0, d * tail)
    return -math.expm1(d * math.log1p(-tail)) if tail < 1 else 1.0


def _inverse(tail: Callable[[float], float], share: float) -> float:
    """Return the x with tail(x) = share, rounded up."""
    high = 1.0
    while tail(high) > share:
        high *= 2
    low = 0.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= share else (middle, high)
    return high


def _least(holds: Callable[[int], bool], guess: int) -> int:
    """Return the smallest t >= 0 from which on a monotone condition holds, in few steps if the guess is near."""
    step, low, high = 1, guess, guess
    if holds(guess):
        while low >= 0 and holds(low):
            low, high, step = low - step, low, 2 * step
        low = max(low, -1)
    else:
        while not holds(high):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _summed(tail: Callable[[Any], Any], size: float) -> float:
    """E |Z| = sum over t >= 0 of P(|Z| > t): term by term up to 24, then as an integral with a correction.

    Good to 1e-8 for l2; to 1e-5 for l∞, whose tail has kinks between whole numbers.
    """
    first = np.asarray(tail(np.arange(24)), dtype=float)
    if first[-1] < 1e-13:
        return math.fsum(first)
    end = 23.5
    reach = max(40.0, 4 * size)
    while float(tail(reach)) > 1e-11:
        reach *= 1.5
    nodes, weights = np.polynomial.legendre.leggauss(48)
    points = end + (reach - end) * (nodes + 1) / 2
    rest = float(np.sum(weights * np.asarray(tail(points), dtype=float))) * (reach - end) / 2
    slope = float(tail(24)) - float(first[-1])
    return math.fsum(first) + rest + slope / 24
