"""Error bars for sums of independent numbers whose laws differ, which hold for any number of them."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.number import level_of

__all__ = ["bars", "bernstein", "binomial_means"]

Floats = NDArray[np.float64]


def binomial_means(successes: NDArray[np.int64], trials: Any, level: float) -> tuple[Floats, Floats]:
    """Return (low, high) for the mean probability of independent trials, given how many of them succeeded.

    Clopper and Pearson's interval, one success wider on each side. Beyond the expectation, the number of successes of
    trials with different probabilities has lighter tails than the binomial law of the same mean [Hoeffding 1956,
    theorem 5]; the success on each side covers the part near the expectation, where the theorem does not reach.

    >>> low, high = binomial_means(np.array([0, 50, 100]), 100, 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.389, 0.946], [0.054, 0.611, 1.0])
    """
    from scipy.special import betaincinv

    tail = (1 - level_of(level)) / 2
    fewer, more = np.maximum(successes - 1, 0), np.minimum(successes + 1, trials)
    with np.errstate(invalid="ignore"):
        low = np.where(fewer > 0, betaincinv(np.maximum(fewer, 1), trials - fewer + 1, tail), 0.0)
        high = np.where(more < trials, betaincinv(more + 1, np.maximum(trials - more, 1), 1 - tail), 1.0)
    return low, high


def bars(key: str, names: Iterable[Any], what: str, found: Any, low: Any, high: Any) -> list[dict[str, Any]]:
    """Return a row for each estimated number: its name, the estimate, and the ends of its error bar.

    >>> bars("value", ["cat"], "share", np.array([0.5]), np.array([0.4]), np.array([0.6]))
    [{'value': 'cat', 'share': 0.5, 'low': 0.4, 'high': 0.6}]
    """
    columns = (np.atleast_1d(numbers).tolist() for numbers in (found, low, high))
    return [{key: name, what: x, "low": a, "high": b} for name, x, a, b in zip(names, *columns, strict=True)]


def bernstein(variance: float, reach: float, people: int, level: float) -> float:
    """Return how far the mean of independent numbers can be from its expectation, at that level.

    Each number lies within `reach` of its expectation, and their mean variance is at most `variance`.
    P(|error| >= t) <= 2 exp(-n t^2/(2 (variance + reach t/3))), for any n.   [Bernstein 1924]

    >>> round(bernstein(1.0, 2.0, 10_000, 0.95), 4)         # 1.96 standard errors would be 0.0196
    0.0274
    """
    tail = math.log(2 / (1 - level_of(level)))
    first = reach * tail / 3
    return (first + math.sqrt(first**2 + 2 * people * variance * tail)) / people
