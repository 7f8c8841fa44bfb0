"""The mean of numbers within declared bounds: Duchi's two answers, the piecewise mechanism, and their hybrid.

A client moves its number to one of two neighbours on a public lattice, by lot and without bias, and draws its report
from the window law (`windows.py`). All probabilities are exact; the lattice costs below 0.1 % of the variance.

    Duchi       one step: report an end of the range.  n var = c^2 - t^2, c = (e + 1)/(e - 1)
                [Duchi-Jordan-Wainwright 2018]
    Piecewise   windows of e^(-epsilon/2) of the range.  n var = t^2/(s - 1) + (s + 3)/(3 (s - 1)^2), s = e^(epsilon/2)
    Hybrid      piecewise with probability 1 - e^(-epsilon/2), otherwise Duchi: for epsilon above 0.61 the variance is
                the same for all numbers, and below both.   [Wang-Xiao-Yang-Zhao-Hui-Shin-Shin-Yu 2019]

The variances are those of numbers in -1 .. 1, and t is the number. Values given as floats are rounded to the nearest
2^-30 of a step before the lot is drawn.

When: the mean is all that is wanted; `Hybrid` is the most accurate, and `Duchi` has reports of one bit.
Textbook: lecture on local privacy, means.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, Exact, default, frozen
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_down
from noisette.local.contract import Aggregate, Epsilon, LocalProtocol
from noisette.local.intervals import bars, bernstein, binomial_means
from noisette.local.windows import Window

__all__ = ["Duchi", "Hybrid", "Mean", "MeanProtocol", "Piecewise", "check_bounds", "numbers_within"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FINE = 1 << 30  # parts of a step
LOTS = 1 << 20  # the hybrid's share of piecewise reports is a whole number of these
MOST_STEPS = 1 << 20


def _lattice(value: int, name: str) -> int:
    steps = whole(value, name)
    if steps > MOST_STEPS:
        raise InputError(f"{name} must be at most {MOST_STEPS:,}: more hardly lower the variance.")
    return steps


Steps = Annotated[int, _lattice]


def check_bounds(low: Fraction, high: Fraction) -> None:
    """Refuse bounds that are not in order, or that floats cannot hold."""
    if low >= high:
        raise InputError("low must be below high: declare the bounds of the numbers.")
    if not (max(abs(low), abs(high)) <= 10**300 and high - low >= Fraction(1, 10**300)):
        raise InputError("low and high must be at most 1e300 from 0, and at least 1e-300 apart.")


def numbers_within(values: Any, low: Fraction, high: Fraction) -> Floats:
    """Read numbers that lie within the bounds, as parts of the range: 0 at `low`, 1 at `high`."""
    try:
        array = np.asarray(values, dtype=None if len(values) else float)
        if array.dtype.kind not in "iufO" or array.ndim != 1:
            raise ValueError
        numbers = array.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise InputError("values must be a list of numbers, one for each person.") from None
    if not ((numbers >= float(low)) & (numbers <= float(high))).all():
        raise InputError("A value lies outside the declared bounds: clip it, or declare wider bounds.")
    return np.clip((numbers - float(low)) / float(high - low), 0, 1)


class MeanProtocol(LocalProtocol, Protocol):
    """A protocol for the mean of numbers from `low` to `high`: its reports are those of one window law, or of two.

    Reports are whole numbers, those of the first law before those of the second; each has a score.
    """

    low: Any
    high: Any

    @property
    def share(self) -> Fraction:
        """The probability of a piecewise report, which does not depend on the number; others are Duchi's."""
        ...

    @property
    def window(self) -> Window:
        """The law of piecewise reports."""
        ...

    @property
    def laws(self) -> list[tuple[Fraction, Window, int]]:
        """The laws that occur: the probability of each, the law, and the number of its first report."""
        return _laws(self)  # type: ignore[arg-type]  # frozen values are hashable

    @property
    def lattice(self) -> int:
        """How many steps the finest lattice has."""
        return self.laws[-1][1].steps

    @property
    def cells(self) -> int:
        """One for each report that is possible."""
        return sum(law.outputs for _, law, _ in self.laws)

    def scores(self) -> Floats:
        """Return for each report its unbiased estimate of the number, in parts of the range."""
        return np.concatenate([_window_scores(law) for _, law, _ in self.laws])

    def moments(self) -> Floats:
        """Return the second moment of the score for each number of the lattice."""
        places = np.linspace(0, 1, self.lattice + 1)
        total = np.zeros(len(places))
        for chance, law, _ in self.laws:
            total += float(chance) * np.interp(places, np.linspace(0, 1, law.steps + 1), _window_moments(law))
        return total

    def client(self, value: Any, rng: Random = SYSTEM) -> int:
        """Return a report of one of the laws."""
        [part] = numbers_within([value], self.low, self.high).tolist()
        chance, law, first = self.laws[-1]
        if not rng.flip(chance.numerator, chance.denominator):
            _, law, first = self.laws[0]
        start, rest = _place(part, law.steps)
        return first + law.draw(start + rng.flip(rest, FINE), rng)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        [part] = numbers_within([value], self.low, self.high).tolist()
        chance, law, first = self.laws[-1] if report >= self.laws[-1][2] else self.laws[0]
        start, rest = _place(part, law.steps)
        up, output = Fraction(rest, FINE), report - first
        higher = up * law.likelihood(output, start + 1) if rest else 0
        return chance * ((1 - up) * law.likelihood(output, start) + higher)

    def drawn(self, parts: Floats, rng: Random) -> Ints:
        """Draw the reports of people whose numbers are these parts of the range."""
        piecewise = vector.uniform(LOTS, len(parts), rng=rng) < int(self.laws[-1][0] * LOTS)
        found = np.zeros(len(parts), np.int64)
        for (_, law, first), here in ((self.laws[0], ~piecewise), (self.laws[-1], piecewise)):
            found[here] = first + law.draws(_placed(parts[here], law.steps, rng), rng)
        return found

    def clients(self, values: Any, rng: Random = SYSTEM) -> Ints:
        """Return the reports of many people."""
        return self.drawn(numbers_within(values, self.low, self.high), rng)

    def values(self) -> Iterable[Fraction]:
        """The numbers of the lattice; others are mixtures of two of them."""
        return [self.low + (self.high - self.low) * Fraction(i, self.lattice) for i in range(self.lattice + 1)]

    def estimated(self, aggregate: Aggregate) -> "Mean":
        """Return the mean of the scores, on the scale of the values."""
        part = float(self.scores() @ aggregate.counts) / aggregate.people
        return Mean(self, float(self.low) + float(self.high - self.low) * part, aggregate)

    def variance(self, people: int = 1, *, value: Any = None) -> float:
        """Return the variance of the mean over lots and coins if all people have this value; the worst without one."""
        second, n = self.moments(), self.lattice
        low, step = np.arange(n) / n, 1 / n
        if value is None:  # between two numbers of the lattice the second moment is linear
            top = np.clip((np.diff(second) / (2 * step) - low) / step, 0, 1)
            each = float((second[:-1] + top * np.diff(second) - (low + top * step) ** 2).max())
        else:
            [part] = numbers_within([value], self.low, self.high)
            each = float(np.interp(part * n, np.arange(n + 1), second)) - part**2
        return float(each) * float(self.high - self.low) ** 2 / whole(people, "people")

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[float, float]:
        """Return ends of the error bar, in parts of the range, by Bernstein's inequality."""
        scores, people = self.scores(), aggregate.people
        reach = max(float(scores.max()), 1 - float(scores.min()))
        half = bernstein(self.variance() / float(self.high - self.low) ** 2, reach, people, level)
        part = float(scores @ aggregate.counts) / people
        return part - half, part + half


@lru_cache(maxsize=64)
def _laws(m: MeanProtocol) -> list[tuple[Fraction, Window, int]]:
    both = (1 - m.share, Window(m.epsilon, steps=1, width=1), 0), (m.share, m.window, 2)
    found = [law for law in both if law[0]]
    return found if len(found) > 1 else [(Fraction(1), found[0][1], 0)]


@dataclass(frozen=True, eq=False)
class Mean:
    """An unbiased estimate of a mean."""

    protocol: MeanProtocol
    mean: float
    aggregate: Aggregate

    def variance(self) -> float:
        """Return the largest variance that the estimate can have over lots and coins, whatever the numbers are."""
        return self.protocol.variance(self.aggregate.people)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return (low, high), which contain the mean with at least that probability, for any number of people."""
        low, high = np.clip(self.protocol.bounds(self.aggregate, level), 0, 1)
        start, width = float(self.protocol.low), float(self.protocol.high - self.protocol.low)
        return float(start + width * low), float(start + width * high)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return one row."""
        return bars("of", ["all"], "mean", self.mean, *self.interval(level))


def _placed(parts: Floats, steps: int, rng: Random) -> Ints:
    """Move each number to one of its two neighbours on the lattice, by lot, so that its expectation stays."""
    start, rest = np.divmod(np.rint(parts * (steps * FINE)).astype(np.int64), FINE)
    return np.asarray(start + (vector.uniform(FINE, len(parts), rng=rng) < rest))


def _place(part: float, steps: int) -> tuple[int, int]:
    """The lower neighbour of a number on the lattice, and how many of FINE lots move it up."""
    start, rest = divmod(round(part * steps * FINE), FINE)
    return start, rest


@lru_cache(maxsize=64)
def _window_scores(law: Window) -> Floats:
    a, b = law.unbiased()
    return (float(a) + float(b) * np.arange(law.outputs)) / law.steps


@lru_cache(maxsize=64)
def _window_moments(law: Window) -> Floats:
    return law.expected(_window_scores(law) ** 2)


@frozen
class _Bounded(MeanProtocol):
    """The fields that all three have."""

    epsilon: Epsilon
    _: KW_ONLY
    low: Exact = default(-1)
    high: Exact = default(1)

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)


@frozen
class Duchi(_Bounded):
    """Reports are 0 and 1, for the ends of the range.

    >>> round(Duchi(1, low=-1, high=1).variance(), 3), Duchi(1, low=-1, high=1).bits
    (4.683, 1)
    >>> round(Duchi(1, low=0, high=10).estimate([1] * 600 + [0] * 400).mean, 3)
    7.164
    """

    @property
    def share(self) -> Fraction:
        """None."""
        return Fraction(0)

    @property
    def window(self) -> Window:
        """One step, and windows of one output: randomized response."""
        return Window(self.epsilon, steps=1, width=1)

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[float, float]:
        """Return ends of the error bar: Clopper and Pearson's for the chance of a 1, moved to the scale of scores."""
        low, high = binomial_means(aggregate.counts[1:], aggregate.people, level)
        zero, one = self.scores()
        return float(zero + low[0] * (one - zero)), float(zero + high[0] * (one - zero))


@frozen
class Piecewise(_Bounded):
    """Reports are places of a lattice that reaches beyond the range.

    >>> round(Piecewise(1, low=-1, high=1).variance(), 3), round(Piecewise(4, low=-1, high=1).variance(), 3)
    (5.224, 0.241)
    """

    _: KW_ONLY
    steps: Steps = default(1024)

    @property
    def share(self) -> Fraction:
        """All."""
        return Fraction(1)

    @property
    def window(self) -> Window:
        """Windows of about e^(-epsilon/2) of the range."""
        width = max(1, round(self.steps * exp_down(-self.epsilon / 2)))
        return Window(self.epsilon, steps=self.steps, width=width)


@frozen
class Hybrid(Piecewise):
    """Reports are 0 and 1 for Duchi's answers, and 2 and more for the piecewise ones.

    >>> m = Hybrid(1, low=-1, high=1)
    >>> round(m.variance(), 3), round(m.variance(value=0), 3), round(Hybrid(4, low=-1, high=1).variance(), 3)
    (4.289, 4.289, 0.219)
    """

    @property
    def share(self) -> Fraction:
        """The probability of a piecewise report: 1 - e^(-epsilon/2), or 0 for an epsilon below 0.61."""
        if self.epsilon < Fraction(61, 100):
            return Fraction(0)
        return Fraction(min(round((1 - exp_down(-self.epsilon / 2)) * LOTS), LOTS - 1), LOTS)

    def derived(self) -> dict[str, int]:
        """Return how many of 2^20 lots give a piecewise report."""
        return {"lots": int(self.share * LOTS)}


examples = [Duchi(1, low=0, high=1), Piecewise("3/2", low=-1, high=1, steps=6), Piecewise(3, low=0, high=5, steps=10),
            Hybrid(2, low=-2, high=1, steps=5), Hybrid("1/2", low=0, high=1, steps=4)]  # fmt: skip
