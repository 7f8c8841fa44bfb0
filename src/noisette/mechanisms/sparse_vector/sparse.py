"""The textbook's sparse vector algorithms: AboveThreshold, Sparse and NumericSparse, with whole noise.

Queries, their thresholds subtracted, get two-sided noise of scale 2 s (s = `scale`), zero gets such noise of scale s,
drawn anew after every positive. AboveThreshold ends with the first; Sparse is c of them one after the other, and
NumericSparse releases the query of each positive with noise of its own. If a person moves each query by at most d,

    epsilon_0 = 2 d/s   (and d/value_scale for the value)

is what a run is worth, however long; c = `positives` runs compose: c epsilon_0, or what is known of c adaptive
epsilon_0-DP releases together, exactly.   [Dwork-Naor-Reingold-Rothblum-Vadhan 2009; Dwork-Roth 2014, chapter 3;
Kairouz-Oh-Viswanath 2015]
A run is worth no less: epsilon_0 is approached where many queries stay below that rise, and one is above that falls.

AboveThreshold: with probability 1 - beta no report on k queries is wrong by more than 8 (ln k + ln(2/beta)) d/epsilon
(Dwork-Roth 2014, Theorem 3.24); `interval` is sharper.

When: many positives with a delta, for which fresh thresholds compose well; else `SparseVector` has less noise.
Textbook: Bassi, AboveThreshold and Sparse, which stops one answer too late there.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.integers import Integers
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.exact.rational import sqrt_down
from noisette.exact.vector import Scale
from noisette.laws import DiscreteLaplace
from noisette.laws.law import half_width
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_distance, read_sensitivity
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.sparse_vector.transcripts import BEYOND, Floats, ThresholdQueries
from noisette.privacy import ZCDP, Approx, Guarantee, Promise, Pure, theorems

__all__ = ["AboveThreshold", "NumericSparse", "Sparse"]

_MOST = 1_000_000  # runs whose composition is computed in about a second


def _few(value: int, name: str) -> int:
    if whole(value, name) > _MOST:
        raise InputError(f"{name} must be at most {_MOST:,}: begin a new run for more.")
    return int(value)


@frozen
class Sparse(ThresholdQueries):
    """True for a query above its threshold, None for one below, until `positives` were above.

    >>> m = Sparse.calibrated(Approx(1, "1e-6"), positives=100)
    >>> round(float(m.scale), 1), round(m.guarantee(1).epsilon_at("1e-6"), 6)             # 200 by plain addition
    (83.3, 1.0)
    >>> Sparse("1/100", positives=2)([-3, 5, -1, 2, 7])                                # next to no noise
    (None, True, None, True)
    """

    tightness = 0.98  # it is approached, the nearer the more queries stay below
    scale: Scale
    _: KW_ONLY
    positives: Annotated[int, _few]
    refreshed: ClassVar[bool] = True
    norm: ClassVar[float] = math.inf

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, positives: int) -> Self:
        """Return the least noise for which `positives` runs together keep the guarantee."""
        return cls(2 * _unit(guarantee, sensitivity, positives), positives=positives)

    def guarantee(self, distance: Distance = 1) -> Guarantee:
        """Return Pure(c epsilon_0), which knows how c runs compose."""
        d, neighbours = read_distance(distance, self.norm)
        return self.positives * self._run(d, Pure(2 * d / self.scale, neighbours=neighbours))

    def _run(self, d: Fraction, comparing: Pure) -> Guarantee:
        return comparing

    @cached_property
    def threshold_noise(self) -> DiscreteLaplace:
        """The law of Z."""
        return DiscreteLaplace(self.scale)

    @cached_property
    def query_noise(self) -> DiscreteLaplace:
        """The law of each N."""
        return DiscreteLaplace(2 * self.scale)

    def report(self, query: int, gap: int, rng: Random) -> Hashable:
        """Tell no more."""
        return True

    def _rises(self, n: int) -> float:
        """P(N - Z >= n), n > 0; a and b are e^(-1/scale) of Z and N, so that a = b^2.

        Of the sum over z of a^|z| b^|w - z| the terms with z < 0, 0 <= z <= w and w < z are geometric series.
        """
        rate = float(1 / self.query_noise.scale)
        b, rest = math.exp(-rate), -math.expm1(-rate)
        outside = b**3 / (rest * (1 + b + b * b))
        slow = b**n / rest * (outside + 1 / rest)
        fast = b ** (2 * n) / (rest * (1 + b)) * (outside - b / rest)
        return rest * rest / (1 + b * b) * (slow + fast)

    def _falls(self, n: int) -> float:
        return self._rises(n + 1)

    @property
    def _reach(self) -> int:
        return math.ceil(BEYOND * self.scale)

    def _telling(self, query: int, z: Integers, top: int) -> tuple[list[Any], Floats]:
        return [True], np.asarray(self.query_noise.cdf(query - z), float)[None]

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """Six queries rise, which all stay below only if Z is large, then one falls; once for each positive."""
        high = math.ceil(2 * self.scale)
        return [(([high] * 6 + [0]) * self.positives, ([high + d] * 6 + [-d]) * self.positives, d) for d in (1, 2)]


@frozen
class AboveThreshold(Sparse):
    """None for each query below its threshold, True for the first above, and then nothing more.

    >>> m = AboveThreshold.calibrated(Pure(1))
    >>> m, m.guarantee(1), m.interval(0.95, queries=100)
    (AboveThreshold(scale=Fraction(2, 1)), Pure('1'), 29.0)
    """

    positives: int = field(default=1, init=False, repr=False)

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1) -> Self:  # type: ignore[override]
        """Return the least noise that keeps the guarantee: scales 2 d/epsilon and 4 d/epsilon."""
        return cls(2 * _unit(guarantee, sensitivity, 1))


@frozen
class NumericSparse(Sparse):
    """A noisy value for a query above its threshold, None for one below, until `positives` were above.

    >>> m = NumericSparse.calibrated(Pure(1), positives=2)
    >>> m.guarantee(1), [str(s) for s in (m.scale, m.value_scale)]
    (Pure('1'), ['9/2', '18'])
    """

    _: KW_ONLY
    value_scale: Scale

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, positives: int) -> Self:
        """Return the textbook's split: 8/9 of each run's epsilon to compare, 1/9 for the value."""
        unit = _unit(guarantee, sensitivity, positives)
        return cls(unit * 9 / 4, value_scale=unit * 9, positives=positives)

    @cached_property
    def _values(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.value_scale)

    def _run(self, d: Fraction, comparing: Pure) -> Guarantee:
        return comparing + Pure(d / self.value_scale, neighbours=comparing.neighbours)

    def report(self, query: int, gap: int, rng: Random) -> int:
        """Tell the query with noise of its own."""
        return query + int(self._values.sample(None, rng))

    def error(self, y: Any, x: Any) -> float:
        """How far a query was on the wrong side of its report, or a value off, at most."""
        off = (abs(released - int(q)) for released, q in zip(y, x, strict=False) if released is not None)
        return float(max(super().error(y, x), 0, *off))

    def _misses(self, t: int, queries: int, positives: int) -> float:
        return super()._misses(t, queries, positives) + positives * float(self._values.tail(t))

    def _telling(self, query: int, z: Integers, top: int) -> tuple[list[Any], Floats]:
        """Values, from and to multiples of 16 so that close lists have the same ones."""
        reach, middle = half_width(self._values, 1 - 1e-14) + 8, (query + 8) // 16 * 16
        values = np.arange(middle - reach, middle + reach + 1)
        _, above = super()._telling(query, z, top)
        return values.tolist(), np.multiply.outer(self._values.pmf(values - query), above[0])


def _unit(guarantee: Promise, sensitivity: Distance, runs: int) -> Fraction:
    """d/epsilon_0 for the largest epsilon_0 for which that many adaptive releases keep the guarantee."""
    agreed(guarantee, sensitivity)
    return read_sensitivity(sensitivity, math.inf) / _each(guarantee, whole(runs, "positives"))


def _each(guarantee: Promise, runs: int) -> Fraction:
    match guarantee:
        case Approx() if runs > 1 and guarantee.delta:
            return Fraction(theorems.each(runs, guarantee.epsilon, guarantee.delta))
        case ZCDP() if runs > 1:
            return max(sqrt_down(2 * guarantee.rho / runs), pure_epsilon(guarantee) / runs)
        case _:
            return pure_epsilon(guarantee) / runs


examples = [
    AboveThreshold(2),
    Sparse("3/2", positives=2),
    NumericSparse(1, value_scale=2, positives=1),
    NumericSparse("3/2", value_scale="2/3", positives=1),
]
