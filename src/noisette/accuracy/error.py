"""The error of a mechanism's answers, before anything is released.

An error is |released - true|, rounding to the grid included and at its worst over true answers; it does not depend on
the data. For several answers the errors are independent, except under K-norm noise, which knows its own joint law.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import level_of, whole
from noisette.laws import DiscreteLaplace, NormBall
from noisette.laws.law import smallest
from noisette.mechanisms.additive.lattice import lattice_step
from noisette.mechanisms.contract import Mechanism, Output

__all__ = [
    "Clamped",
    "Coordinate",
    "ErrorLaw",
    "IntegerNoise",
    "chance_above",
    "clamping_bias",
    "error_law",
    "expected_error",
    "largest_error",
]


# Noise that is not one plain law: a coordinate of K-norm noise, and noise on a clamped count. Vocabulary: `t` cells of
# the lattice · `s` scale in cells · `x` = t/s · `d` dimension · `a` = e^(-1/s).


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


@dataclass(frozen=True)
class ErrorLaw:
    """The law of one error: noise of whole steps, plus at most half a step where real answers are rounded.

    >>> from noisette.mechanisms import Laplace
    >>> law = error_law(Laplace(1))
    >>> round(law.half_width(0.95), 4), round(float(law.cdf(2.9958)), 4), round(law.mean(), 4)
    (2.9957, 0.95, 1.0)
    """

    noise: IntegerNoise
    step: Fraction
    rounding: Fraction

    def tail(self, t: Any) -> Any:
        """P(error > t), for one t or an array of them."""
        places = (np.asarray(t, dtype=float) - float(self.rounding)) / float(self.step)
        cells = np.floor(places + np.abs(places) * 2.0**-50)  # a t that is a whole number of steps stays one
        return np.where(cells < 0, 1.0, self.noise.tail(np.maximum(cells, 0)))[()]

    def cdf(self, t: Any) -> Any:
        """P(error <= t)."""
        return 1 - self.tail(t)

    def half_width(self, level: float = 0.95, *, answers: int = 1) -> float:
        """Return the smallest t with P(all of several independent errors <= t) >= level: 1 - (1 - tail(t))^answers."""
        share = -math.expm1(math.log(level_of(level)) / answers)
        if isinstance(self.noise, Coordinate):
            return self.width_of(self.noise.width(share))
        return self.width_of(smallest(lambda t: bool(self.noise.tail(t) <= share)))

    def width_of(self, cells: int) -> float:
        """Return the largest error that noise of that many steps makes."""
        return float(cells * self.step + self.rounding)

    def mean(self) -> float:
        """E(error), at worst: a symmetric Z has E|Z + u| = E|Z| + |u| P(Z = 0) for |u| <= 1/2."""
        at_zero = 1 - float(self.noise.tail(0)) if self.rounding else 0.0
        return self.noise.mean_absolute() * float(self.step) + at_zero * float(self.rounding)


def error_law(m: Mechanism, *, answers: int = 1) -> ErrorLaw:
    """Return the law of one error where `answers` numbers are released in one call (more of them use a finer lattice).

    >>> from noisette.mechanisms import Geometric
    >>> [round(float(p), 4) for p in error_law(Geometric(1)).cdf([0, 1, 2.5])]
    [0.4621, 0.8021, 0.9272]
    """
    stated: Any = m
    match stated.kind:
        case Output.NUMBERS if stated.grid == 1:
            return ErrorLaw(stated.law, Fraction(1), Fraction(0))
        case Output.NUMBERS:
            step = lattice_step(stated.grid, whole(answers, "answers"), stated.norm)
            return ErrorLaw(replace(stated, grid=step).law, step, step / 2)
        case Output.CLAMPED:
            return ErrorLaw(Clamped(stated.unclamped.law, stated.high - stated.low), Fraction(1), Fraction(0))
        case Output.VECTOR:
            return ErrorLaw(Coordinate(stated.law), stated.step, stated.step * Fraction(stated.grid != 1, 2))
        case _:
            raise InputError(
                f"The error of {type(m).__name__} is not that of one released number: use its own interval()."
            )


def expected_error(m: Mechanism) -> float:
    """Return E|error| of one number: s for Laplace, 1/sinh(1/s) for geometric, sigma sqrt(2/pi) for Gaussian noise.

    Staircase noise has Delta e^(eps/2)/(e^eps - 1), the least that epsilon-DP allows.   [Geng-Viswanath 2014]

    >>> from noisette.mechanisms import Staircase
    >>> [round(expected_error(Staircase(eps)), 5) for eps in (1, 2, 4)]
    [0.95952, 0.42546, 0.13786]
    """
    return error_law(m).mean()


def clamping_bias(m: Mechanism) -> float:
    """Return by how much max(0, release) is too large on average where the true number is 0: E max(0, Z) = E|Z|/2.

    It is a/(1 - a^2) for geometric noise, a = e^(-1/s), and s/2 for Laplace noise. Sums of clamped cells drift by it.

    >>> from noisette.mechanisms import Geometric, Laplace
    >>> round(clamping_bias(Geometric(10)), 4), round(clamping_bias(Laplace(10)), 4)
    (4.9917, 5.0)
    """
    law = error_law(m)
    if isinstance(law.noise, Clamped):
        return law.noise.mean_above()
    return law.noise.mean_absolute() * float(law.step) / 2


def largest_error(m: Mechanism, answers: int | None = None, *, level: float = 0.95) -> float:
    """Return a t with P(all errors <= t) >= level, for `answers` numbers (K-norm: as many as it has dimensions).

    Independent errors have P(all <= t) = (1 - tail(t))^answers exactly; l∞-norm noise its own law, a gamma quantile on
    fine grids; l2-norm noise the union bound.

    >>> from noisette.mechanisms import KNorm, Laplace
    >>> round(largest_error(Laplace(20), 20), 2), round(largest_error(KNorm("inf", 1, dimension=20)), 2)
    (119.34, 27.88)
    """
    number = _answers(m, answers)
    law = error_law(m, answers=number)
    if isinstance(law.noise, Coordinate):
        return law.width_of(law.noise.largest_width(1 - level_of(level)))
    return law.half_width(level, answers=number)


def chance_above(m: Mechanism, error: float, answers: int | None = None) -> float:
    """Return P(some error > `error`) among `answers` numbers: what `largest_error` inverts.

    >>> from noisette.mechanisms import Laplace
    >>> round(chance_above(Laplace(1), 3), 6), round(chance_above(Laplace(1), 3, 10), 6)
    (0.049787, 0.39992)
    """
    number = _answers(m, answers)
    law = error_law(m, answers=number)
    if isinstance(law.noise, Coordinate):
        cells = math.floor((error - float(law.rounding)) / float(law.step) * (1 + 2.0**-50))
        return law.noise.largest_tail(cells) if cells >= 0 else 1.0
    return of_any(float(law.tail(error)), number)


def of_any(chance: float, k: int) -> float:
    """The chance that one of k independent events happens: 1 - (1 - p)^k."""
    return -math.expm1(k * math.log1p(-chance)) if chance < 1 else 1.0


def _answers(m: Mechanism, answers: int | None) -> int:
    stated: Any = m
    if m.kind is Output.VECTOR:
        if answers not in (None, stated.dimension):
            raise InputError(f"This mechanism is for {stated.dimension} answers: leave `answers` out.")
        return int(stated.dimension)
    return 1 if answers is None else whole(answers, "answers")
