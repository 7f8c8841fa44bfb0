"""The distribution of numbers within declared bounds: square wave reports, read by EM with smoothing.

A client's report lies within a window around its number with e^epsilon times the probability of any other place
(`windows.py`; numbers are rounded down to one of `buckets` equal parts of the range). The window has the width with the
largest mutual information, 2b = (epsilon e - e + 1)/(e (e - 1 - epsilon)) of the range.

The collector looks for the distribution that makes the reports most likely, by expectation maximisation, and smooths it
after each step with the kernel (1/4, 1/2, 1/4).   [Li-Wang-Lopuhaa-Zwakenberg-Li-Skoric 2020]

The estimate has a bias, which has no closed form. So its error is simulated: `Distribution.simulated` repeats the
survey with people who have the estimated distribution. What it says is a good guess and no guarantee.

When: quantiles, or the shape of a distribution; for the mean alone `Hybrid` is unbiased.
Textbook: none.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Exact, default, frozen
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import Aggregate, Epsilon, LocalProtocol
from noisette.local.intervals import bars
from noisette.local.means import check_bounds, numbers_within
from noisette.local.windows import Window

__all__ = ["Distribution", "SquareWave"]

Floats = NDArray[np.float64]
MOST_STEPS_OF_EM = 2000


def _window_share(epsilon: float) -> float:
    """2b: the width of the window with the largest mutual information, as part of the range."""
    if epsilon < 1e-3:
        return 1.0  # its limit for small epsilon, where the formula loses its digits
    gain = math.expm1(epsilon)
    return (epsilon - 1 + math.exp(-epsilon)) / (gain - epsilon)


def _smoothed(shares: Floats) -> Floats:
    padded = np.concatenate([shares[:1], shares, shares[-1:]])
    return np.asarray((padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4)


def _bucketed(value: int, name: str) -> int:
    buckets = whole(value, name, least=2)
    if buckets > 1 << 16:
        raise InputError(f"{name} must be at most 65,536: reports cannot tell finer ones apart.")
    return buckets


@frozen
class SquareWave(LocalProtocol):
    """Reports are places of a lattice that reaches half a window beyond the range on either side.

    >>> m = SquareWave(1, low=0, high=100, buckets=256)
    >>> m.window.width, m.cells
    (131, 386)
    >>> found = m.estimate(m.clients([30.0] * 500 + [60.0] * 500))
    >>> 20 < found.quantile(0.25) < 40, 50 < found.quantile(0.75) < 70
    (True, True)
    """

    epsilon: Epsilon
    _: KW_ONLY
    low: Exact = default(0)
    high: Exact = default(1)
    buckets: Annotated[int, _bucketed] = default(256)

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)

    @property
    def window(self) -> Window:
        """The law of the reports; its input is a bucket."""
        width = max(1, round(_window_share(float(self.epsilon)) * self.buckets))
        return Window(self.epsilon, steps=self.buckets - 1, width=width)

    @property
    def cells(self) -> int:
        """One for each place."""
        return self.window.outputs

    def _starts(self, values: Any) -> NDArray[np.int64]:
        parts = numbers_within(values, self.low, self.high)
        return np.minimum((parts * self.buckets).astype(np.int64), self.buckets - 1)

    def client(self, value: Any, rng: Random = SYSTEM) -> int:
        """Return a place, more often one near the number."""
        [start] = self._starts([value]).tolist()
        return self.window.draw(start, rng)

    def clients(self, values: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Return the places of many people."""
        return self.window.draws(self._starts(values), rng)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        [start] = self._starts([value]).tolist()
        return self.window.likelihood(report, start)

    def values(self) -> Iterable[Fraction]:
        """The middle of each bucket: two numbers in one bucket have the same law."""
        return [self.low + (self.high - self.low) * Fraction(2 * i + 1, 2 * self.buckets) for i in range(self.buckets)]

    def estimated(self, aggregate: Aggregate) -> "Distribution":
        """Return the distribution that EM with smoothing finds; it stops when the log-likelihood hardly rises."""
        counts, law = aggregate.counts.astype(float), self.window
        shares, last = np.full(self.buckets, 1 / self.buckets), -math.inf
        for _ in range(MOST_STEPS_OF_EM):
            chances = law.mixed(shares)
            likely = float(counts @ np.log(chances))
            if likely - last < 1e-3:
                break
            shares, last = _smoothed(shares * law.expected(counts / chances)), likely
            shares /= shares.sum()
        return Distribution(self, shares, aggregate)


@dataclass(frozen=True, eq=False)
class Distribution:
    """An estimated distribution; everything here is computed from the reports and costs no privacy."""

    protocol: SquareWave
    shares: Floats
    aggregate: Aggregate

    @property
    def edges(self) -> Floats:
        """The ends of the buckets."""
        return np.linspace(float(self.protocol.low), float(self.protocol.high), self.protocol.buckets + 1)

    @property
    def density(self) -> Floats:
        """The density within each bucket."""
        return self.shares / np.diff(self.edges)

    def below(self, value: Any) -> Any:
        """Return the share of people whose number is below a value, or below each of many."""
        return np.interp(value, self.edges, np.concatenate([[0.0], np.cumsum(self.shares)]))

    def quantile(self, share: Any) -> Any:
        """Return the number below which a share of the people lies, or one for each of many shares."""
        if not ((np.asarray(share) >= 0) & (np.asarray(share) <= 1)).all():
            raise InputError("share must lie between 0 and 1: the median is 0.5.")
        rising = np.concatenate([[0.0], np.cumsum(self.shares)])
        keep = np.concatenate([[True], np.diff(rising) > 0])  # where nobody is, the lower end is the quantile
        found = np.interp(share, rising[keep] / rising[-1], self.edges[keep])
        return float(found) if np.ndim(found) == 0 else found

    def simulated(self, rounds: int = 40, rng: Random = SYSTEM) -> list["Distribution"]:
        """Repeat the survey with people who have the estimated distribution, and estimate again each time."""
        people = self.aggregate.people
        numbers = self.quantile((np.arange(people) + 0.5) / people)
        return [
            self.protocol.estimate(self.protocol.clients(numbers, rng)) for _ in range(whole(rounds, "rounds", least=2))
        ]

    def variance(self, rounds: int = 40) -> Floats:
        """Return the variance of each share, simulated."""
        return np.asarray(np.var([found.shares for found in self.simulated(rounds)], axis=0, ddof=1))

    def interval(self, level: float = 0.95, *, share: Any = 0.5, rounds: int = 40) -> tuple[Any, Any]:
        """Return (low, high) for a quantile, simulated: the middle `level` of its errors in repeated surveys.

        With many shares, return an array of low ends and one of high ends, from the same repeated surveys.

        It is no guarantee: smoothing has a bias that simulation knows in part. With 20 rounds and a level of 95 % the
        bars contained the median of 20 000 people in 78 of 90 surveys, at epsilon 1/2, 1 and 2.
        """
        tail, found = (1 - level_of(level)) / 2, self.quantile(share)
        errors = np.array([again.quantile(share) for again in self.simulated(rounds)]) - found
        low, high = np.quantile(errors, [1 - tail, tail], axis=0)
        ends = float(self.protocol.low), float(self.protocol.high)
        low, high = np.clip(found - low, *ends), np.clip(found - high, *ends)
        return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each of five quantiles; the error bars are simulated."""
        shares = [0.05, 0.25, 0.5, 0.75, 0.95]
        return bars("share below", shares, "quantile", self.quantile(shares), *self.interval(level, share=shares))


examples = [SquareWave(1, buckets=6), SquareWave(3, low=-2, high=4, buckets=9), SquareWave("1/5", buckets=2)]
