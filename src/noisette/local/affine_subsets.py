"""Subset selection with short reports: the sets are arcs of w residues under affine maps of the values.

A report (a, b) stands for the set of all v with (a v + b) mod P < w, P the least prime that holds the domain. Sets with
the own value have e^epsilon times the probability of those without it. Every pair of values lies in the same share of
the sets, w(w - 1)/(P(P - 1)), as if all sets of w of P values were there. So p, q and the variance are those of
`SubsetSelection` on P values, which is optimal, and a report has two numbers instead of k bits.   [subset selection:
Ye-Barg 2018; that designs in which pairs are balanced suffice: Park-Nam-Barg 2023]

When: the least variance is wanted with short reports, and the domain is small enough for P^2 steps of the collector.
Textbook: none.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, default, frozen, set_fields
from noisette.exact.random import SYSTEM, Random
from noisette.local.affine import prime_from, supported
from noisette.local.contract import Epsilon, checked_reports, odds
from noisette.local.frequencies import Domain, PureProtocol, coded
from noisette.local.subset import SetSize, best_size, pair_chances

__all__ = ["AffineSubsets"]

Ints = NDArray[np.int64]


@frozen
class AffineSubsets(PureProtocol):
    """Reports are (a - 1, b).

    >>> m = AffineSubsets(1, domain=1000)
    >>> m.prime, m.size, round(m.variance(), 3), m.bits
    (1009, 271, 3.673, 20)
    """

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain
    size: SetSize = default(None)

    def __post_init__(self) -> None:
        set_fields(self, size=self.size or best_size(odds(self.epsilon), self.prime))
        if self.size >= self.prime:
            raise InputError(f"size must be below {self.prime}: a set of all values says nothing.")

    @property
    def prime(self) -> int:
        """P, the number of residues; at least 3, so that there is more than one map."""
        return prime_from(max(3, self.domain))

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p and q: how often a set contains its sender's value, and another one."""
        return pair_chances(odds(self.epsilon), self.prime, self.size)

    @property
    def layout(self) -> tuple[range, ...]:
        """a - 1 and b of the map a v + b."""
        return range(self.prime - 1), range(self.prime)

    @property
    def _odds_without(self) -> Fraction:
        return Fraction(self.prime - self.size, self.size)

    def client(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return a map; the image of the own value is drawn first, within the arc or outside."""
        [own] = coded([value], self.domain).tolist()
        inside = samplers.logistic(self.epsilon, self._odds_without, rng)
        image = rng.below(self.size) if inside else self.size + rng.below(self.prime - self.size)
        a = rng.below(self.prime - 1)
        return a, int((image - (a + 1) * own) % self.prime)

    def clients(self, values: Any, rng: Random = SYSTEM) -> Ints:
        """Return the maps of many people, a row of two numbers each."""
        own, prime = coded(values, self.domain).astype(np.uint64), np.uint64(self.prime)
        n, size = len(own), self.size
        inside = vector.logistic(self.epsilon, n, weight=self._odds_without, rng=rng)
        within, outside = (vector.uniform(m, n, rng=rng) for m in (size, self.prime - size))
        a = vector.uniform(self.prime - 1, n, rng=rng)
        moved = ((a + 1).astype(np.uint64) * own % prime).astype(np.int64)
        return np.stack([a, (np.where(inside, within, size + outside) - moved) % self.prime], axis=1)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        a, b = report
        inside = ((a + 1) * value + b) % self.prime < self.size
        total = self.size * odds(self.epsilon) + self.prime - self.size
        return (odds(self.epsilon) if inside else 1) / total / (self.prime - 1)

    def counted(self, reports: NDArray[Any]) -> Ints:
        """Count the sets that contain each value."""
        if not reports.size:
            return np.zeros(self.domain, np.int64)
        a, b = checked_reports(self, reports, *self.layout).T
        return supported(a + 1, -b % self.prime, self.size, self.prime, self.domain)


examples = [AffineSubsets(1, domain=5), AffineSubsets("1/2", domain=7, size=3), AffineSubsets(3, domain=10)]
