"""Amplification by shuffling: what a mixed heap of local reports promises, when nobody can tell who sent which.

A trusted shuffler removes names, order and times, and hands over all reports at once. Then each person hides among the
others, and the heap is (epsilon, delta)-DP under replacement with a far smaller epsilon than that of one report.

Let e = e^e0 for reports that are e0-DP. The heap is at least as private as two numbers (A + D1, C - A + D2) against the
same with D1 and D2 exchanged. C ~ Bin(m, c) reports of others look like one of the two possible reports of the person
attacked, A ~ Bin(C, 1/2) of them like the first. (D1, D2) is (1, 0) with probability e a, (0, 1) with a, else (0, 0).

    any protocol       a = 1/(e + 1), m = n - 1, c = 1/e                 clones  [Feldman-McMillan-Talwar 2021]
    GRR with k values  a = 1/(e + k - 1), m ~ Bin(n - 1, k a), c = 2/k   blanket  [Balle-Bell-Gascon-Nissim 2019]
    Duchi              as GRR with two values, whose reports it mixes: a = 1/(e + 1), m = n - 1, c = 2/(e + 1)

The attacker knows m. To hide m, or to take c = 2/(e + 1) for every protocol, would give smaller numbers. We do not:
real heaps of few reports exceed the first, and our proof does not reach the second (`docs/proofs/local.md`).

delta(epsilon) is the sum of (P - e^epsilon Q)+ over all pairs. Given their sum, P/Q rises with the first number, so
each sum needs a few binomial tails. Safe direction: each tail is raised (or lowered, where it is subtracted) by 1e-9 of
itself, what is left out counts in full, m is rounded down to one of some values, and epsilon is the upper end.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, nearest_float, whole
from noisette.local.contract import LocalProtocol, odds, pure_of
from noisette.local.grr import GRR
from noisette.local.means import Duchi
from noisette.privacy import Approx, Neighbours

__all__ = ["shuffled", "shuffled_delta"]

_MARGIN = 1e-9  # of each tail; SciPy's are right to about 1e-12
_PARTS = 12  # m is rounded down to one of these values


@dataclass(frozen=True)
class _Pair:
    """The parameters of the pair: e, a, c, and the share of the others that the attacker cannot set aside, m/(n-1)."""

    e: float
    a: float
    c: float
    hiding: float

    def delta(self, epsilon: float, people: int) -> float:
        """Return delta at an epsilon, over all m, rounded up."""
        from scipy.stats import binom

        others = people - 1
        if self.hiding == 1:
            return self.given(epsilon, others)
        tails = np.concatenate([[1e-15], np.geomspace(1e-9, 0.05, _PARTS - 3), [0.3, 0.7]])
        starts = np.unique(np.maximum(binom.ppf(tails, others, self.hiding), 0)).astype(int)
        below = binom.cdf(starts - 1, others, self.hiding)
        shares = (1 + _MARGIN) * np.diff(below, append=1.0) + 1e-18
        parts = sum(s * self.given(epsilon, int(m)) for s, m in zip(shares, starts, strict=True))
        return float(parts + (1 + _MARGIN) * below[0])

    def given(self, epsilon: float, m: int) -> float:
        """Return delta at an epsilon if m others hide the person, rounded up."""
        from scipy.stats import binom

        e, a, c, ratio = self.e, self.a, self.c, math.exp(epsilon)
        rest = max(0.0, 1 - a * (1 + e))
        half = 10 * math.sqrt(c * m) + 50
        first, last = max(0, math.floor(c * m - half)), min(m, math.ceil(c * m + half))
        left_out = float(binom.cdf(first - 1, m, c) + binom.sf(last, m, c))
        total = np.arange(first, last + 2).astype(float)  # the person's report is one of them, or not
        one_less, same = binom.pmf(total - 1, m, c), binom.pmf(total, m, c)
        unseen = rest / a * (m + 1 - total) / 2 * c / (1 - c) if rest else 0.0
        least = np.floor((total * (ratio * e - 1) + unseen * (ratio - 1)) / ((e - 1) * (1 + ratio))) + 1
        own, other = (np.where(total > 0, binom.sf(least - i, total - 1, 0.5), 0.0) for i in (2, 1))
        none = rest * same * binom.sf(least - 1, total, 0.5)
        p, q = a * one_less * (e * own + other) + none, a * one_less * (own + e * other) + none
        return float(np.maximum((1 + _MARGIN) * p - (1 - _MARGIN) * ratio * q, 0).sum()) + left_out


def _pair(protocol: LocalProtocol) -> _Pair:
    e = odds(pure_of(protocol).epsilon)
    if isinstance(protocol, GRR) and protocol.domain > 2:
        a = 1 / (e + protocol.domain - 1)
        return _Pair(float(e), float(a), 2 / protocol.domain, float(protocol.domain * a))
    c = 2 / (e + 1) if isinstance(protocol, GRR | Duchi) else 1 / e
    return _Pair(float(e), float(1 / (e + 1)), float(c), 1.0)


def shuffled(protocol: LocalProtocol, *, people: int, delta: Number) -> Approx:
    """Return what the shuffled reports of at least that many people promise to each of them.

    `people` is how many reports arrive from people who follow the protocol, at least: count on nobody who may drop out
    or lie. Each person sends one report. The shuffler is trusted.

    >>> from noisette.local import Duchi, Hybrid
    >>> round(float(shuffled(Duchi(1), people=10_000, delta="1e-6").epsilon), 3)
    0.043
    >>> round(float(shuffled(Hybrid(1), people=10_000, delta="1e-6").epsilon), 3)
    0.053
    """
    n, small = whole(people, "people", least=2), fraction(delta, "delta")
    if not 0 < small < 1:
        raise InputError("delta must lie strictly between 0 and 1: a usual one is '1e-6'.")
    local, pair, limit = pure_of(protocol).epsilon, _pair(protocol), nearest_float(small, up=False)
    low, high = 0.0, nearest_float(local, up=True)
    if pair.delta(high, n) > limit:  # each report is e0-DP, and so is the heap
        return Approx(local, small, neighbours=Neighbours.REPLACE)
    while high - low > 1e-4 * high + 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if pair.delta(middle, n) <= limit else (middle, high)
    return Approx(min(Fraction(high), local), small, neighbours=Neighbours.REPLACE)


def shuffled_delta(protocol: LocalProtocol, *, people: int, epsilon: Number) -> float:
    """Return the delta of the shuffled reports of at least that many people at an epsilon, rounded up.

    >>> from noisette.local import GRR
    >>> shuffled_delta(GRR(1, domain=8), people=10_000, epsilon="0.05") < 1e-6
    True
    """
    given = fraction(epsilon, "epsilon")
    if given < 0:
        raise InputError("epsilon must be at least 0.")
    n = whole(people, "people", least=2)
    return _pair(protocol).delta(nearest_float(given, up=False), n)
