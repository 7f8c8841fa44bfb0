"""The error of a mechanism's answers, before anything is released.

An error is |released - true|, rounding to the grid included and at its worst over true answers; it does not depend on
the data. For several answers the errors are independent, except under K-norm noise, which knows its own joint law.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.accuracy.noise import Clamped, Coordinate, IntegerNoise
from noisette.errors import InputError
from noisette.exact.number import level_of, whole
from noisette.laws.law import smallest
from noisette.mechanisms.additive.answers import lattice_step
from noisette.mechanisms.contract import Mechanism, Output

__all__ = ["ErrorLaw", "chance_above", "clamping_bias", "error_law", "expected_error", "largest_error"]


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
        share = -math.expm1(math.log(_level(level)) / answers)
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
        return law.width_of(law.noise.largest_width(1 - _level(level)))
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


def _level(level: float) -> float:
    level_of(level)
    return level
