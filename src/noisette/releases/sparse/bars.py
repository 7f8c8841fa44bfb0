"""Error bars of released cells, given that they were released, and of sums over cells.

A cell that is released has larger noise than one drawn in advance, and of a huge table most released cells may be
empty. So a bar holds all counts c that a test accepts whose level is that of v *given that the cell is released*:
P(v' >= v | released, c) and P(v' <= v | released, c) both above (1 - level)/2. Both are monotone in c, since the
ratio of the laws for two counts is, and choosing by v alone leaves that ratio as it is.

Floats, since these are accuracy and not privacy. Vocabulary: `a` e^(-1/scale) · `upper(z)` P(noise >= z) · `T` the
sampling threshold · `kept(t, c)` P(released and v >= t) of a cell with count c.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.laws import DiscreteLaplace
from noisette.laws.law import half_width

__all__ = ["conditional", "filtered", "noise_of_sum", "poisson_means", "sampled"]

Floats: TypeAlias = NDArray[np.float64]
Kept: TypeAlias = Callable[[Floats, Floats], Floats]

_FAR = 40  # scales: noise is larger with a probability of e^-40


@dataclass(frozen=True)
class _Tails:
    """Upper tails of the noise, and sums of them."""

    law: DiscreteLaplace

    @property
    def a(self) -> float:
        return math.exp(-1 / float(self.law.scale))

    def upper(self, z: Any) -> Floats:
        """P(noise >= z)."""
        small = self.law.upper(np.where(z > 0, z, 1 - np.asarray(z, float)))
        return np.asarray(np.where(np.asarray(z) > 0, small, 1 - small))

    def sums(self, z: Any) -> Floats:
        """The sum of upper(i) over i >= z."""
        z, a = np.asarray(z, float), self.a
        beyond = self.law.upper(np.maximum(z, 1)) / (1 - a)
        inside = np.maximum(1 - z, 0)
        return np.asarray(beyond + inside - a * (1 - a**inside) / ((1 - a) * (1 + a)))


def filtered(law: DiscreteLaplace, threshold: int, *, both: bool) -> Kept:
    """Cells whose noisy count reaches a threshold."""
    upper = _Tails(law).upper

    def kept(t: Floats, c: Floats) -> Floats:
        right = upper(np.maximum(t, threshold) - c)
        if not both:
            return right
        return right + np.where(t <= -threshold, upper(t - c) - upper(1 - threshold - c), 0.0)

    return kept


def sampled(law: DiscreteLaplace, threshold: float, least: int | None = None) -> Kept:
    """Cells that are released with a chance of min(|v|, T), in units of 1/T; if `least` is given, only with v >= least.

    min(v, T) is the sum over j = 1 .. T of (v >= j).
    """
    tails, T = _Tails(law), max(threshold, 1.0)
    last, part = math.floor(T), T - math.floor(T)

    def right(t: Floats, c: Floats) -> Floats:
        """For t >= 1: the sum over j = 1 .. T of P(v >= max(j, t))."""
        steps = np.minimum(t, last) * tails.upper(t - c)
        more = tails.sums(t + 1 - c) - tails.sums(last + 1 - c)
        ends = part * tails.upper(np.maximum(t, last + 1) - c)
        return np.asarray(steps + np.where(t < last, more, 0.0) + ends)

    def kept(t: Floats, c: Floats) -> Floats:
        if least is not None:
            return right(np.maximum(t, least), c)
        one = np.ones_like(t)
        left = right(one, -c) - right(np.maximum(1 - t, 1), -c)  # from t to -1
        return np.where(t >= 1, right(np.maximum(t, 1), c), right(one, c) + left)

    return kept


def conditional(
    n: NDArray[np.int64], kept: Kept, law: DiscreteLaplace, far: float, level: float
) -> tuple[Floats, Floats]:
    """The ends of each bar; beyond `far`, what is released does not depend on the noise."""
    half, reach = half_width(law, level), _FAR * float(law.scale)
    low, high = np.maximum(n - float(half), 0), np.maximum(n + float(half), 0)
    values, back = np.unique(n[n < far + reach], return_inverse=True)
    if values.size:
        v, miss = values.astype(float), (1 - level) / 2
        everywhere = np.full_like(v, -far - reach - 1 + float(min(values[0], 0)))

        def at_least(c: Floats) -> NDArray[np.bool_]:
            return kept(v, c) > miss * kept(everywhere, c)

        def above(c: Floats) -> NDArray[np.bool_]:
            total = kept(everywhere, c)
            return total - kept(v + 1, c) <= miss * total

        most = np.maximum(v, 0) + reach + 1
        low[n < far + reach] = _first(at_least, most)[back]
        high[n < far + reach] = np.maximum(_first(above, most) - 1, 0)[back]
    return low, np.maximum(low, high)


def _first(holds: Callable[[Floats], NDArray[np.bool_]], most: Floats) -> Floats:
    """The least whole number from 0 on for which a monotone condition holds, at most `most`."""
    low, high = np.full_like(most, -1.0), np.ceil(most)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        found = holds(np.maximum(middle, 0))
        wide = high - low > 1
        high, low = np.where(wide & found, middle, high), np.where(wide & ~found, middle, low)
    return high


# Sums


def noise_of_sum(law: DiscreteLaplace, cells: int, miss: float) -> float:
    """What the noise of that number of cells stays within, except with probability `miss`, on either side (Chernoff).

    >>> round(noise_of_sum(DiscreteLaplace(1), 1, 0.05), 2), round(noise_of_sum(DiscreteLaplace(1), 10**6, 0.05))
    (5.78, 3686)
    """
    rate = min(1 / float(law.scale), 600.0)
    x = rate * (1 - np.geomspace(1e-6, 1, 400)[:-1])  # between 0 and the rate
    x = np.concatenate([rate * np.geomspace(1e-12, 1, 400)[:-1], x])
    growth = -np.log1p(np.sinh(x / 2) ** 2 / -(np.sinh(rate / 2) ** 2))  # ln E e^(x noise)
    return float(np.min((cells * growth + math.log(2 / miss)) / x))


def poisson_means(k: int, miss: float) -> tuple[float, float]:
    """All means m of a sum of independent coins that k of them are plausible for: m - k + k ln(k/m) <= ln(2/miss).

    >>> [round(end, 3) for end in poisson_means(0, 0.05)], [round(end, 1) for end in poisson_means(100, 0.05)]
    ([0.0, 3.689], [75.2, 129.7])
    """
    most = math.log(2 / miss)

    def bisected(inside: float, outside: float) -> float:
        for _ in range(100):
            m = (inside + outside) / 2
            inside, outside = (m, outside) if m - k + (k * math.log(k / m) if k else 0.0) <= most else (inside, m)
        return outside

    return (bisected(k, 0.0) if k else 0.0), bisected(k, 2 * k + 4 * most)
