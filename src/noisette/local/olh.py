"""Optimized local hashing (OLH): report the value's bucket under a random hash, by randomized response.

The client draws a map v -> (a v + b) mod P of the affine family (P the least prime that holds the domain), divides the
residues evenly into g buckets, and reports (a, b) with the own bucket, or e^-epsilon times as often each other one.
With g near e^epsilon + 1 the variance is that of OUE.   [Wang-Blocki-Li-Jha 2017]

The own value is supported with p = e^epsilon/(e^epsilon + g - 1). Any other one shares the bucket with probability
c = sum of s(s - 1)/(P (P - 1)) over the sizes s of the buckets, so q = c p + (1 - c)(1 - p)/(g - 1), exactly, for all
pairs: no assumption about the hash. c is a little below the 1/g of an ideal hash, so the variance is a little smaller.

When: the domain is large and reports must be short.
Textbook: none.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Read, default, frozen, optional, set_fields
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.affine import in_arcs, prime_from, supported
from noisette.local.contract import Epsilon, checked_reports, foreign, odds
from noisette.local.frequencies import Domain, PureProtocol, coded

__all__ = ["OLH"]

Ints = NDArray[np.int64]


def _chances(e: Fraction, prime: int, buckets: int) -> tuple[Fraction, Fraction]:
    """p and q."""
    small, larger = divmod(prime, buckets)  # `larger` buckets have one residue more
    alike = Fraction(larger * (small + 1) * small + (buckets - larger) * small * (small - 1), prime * (prime - 1))
    p = e / (e + buckets - 1)
    return p, alike * p + (1 - alike) * (1 - p) / (buckets - 1)


def _best_buckets(e: Fraction, prime: int) -> int:
    """The number of buckets with the least variance for a rare value: near e + 1, or buckets of nearly equal size."""
    near = min(math.floor(e) + 1, prime)
    even = {-(-prime // size) for size in range(prime // near, prime // near + 2)}

    def variance(buckets: int) -> Fraction:
        p, q = _chances(e, prime, buckets)
        return q * (1 - q) / (p - q) ** 2

    candidates: list[int] = sorted(g for g in even.union(range(near - 2, near + 3)) if 2 <= g <= prime)
    return min(candidates, key=variance)


@frozen
class OLH(PureProtocol):
    """Reports are (a - 1, b, bucket).

    >>> m = OLH(1, domain=1000)
    >>> m.prime, m.buckets, round(m.variance(), 3), m.bits
    (1009, 4, 3.682, 22)
    """

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain
    buckets: Annotated[Read[int | None, int], optional(partial(whole, least=2))] = default(None)

    def __post_init__(self) -> None:
        set_fields(self, buckets=self.buckets or _best_buckets(odds(self.epsilon), self.prime))
        if self.buckets > self.prime:
            raise InputError(f"buckets must be at most {self.prime}, the number of residues.")

    @property
    def prime(self) -> int:
        """P, the number of residues."""
        return prime_from(self.domain)

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p and q = c p + (1 - c)(1 - p)/(g - 1), where c is the probability that two values share a bucket."""
        return _chances(odds(self.epsilon), self.prime, self.buckets)

    @property
    def layout(self) -> tuple[range, ...]:
        """The map and the bucket."""
        return range(self.prime - 1), range(self.prime), range(self.buckets)

    def _bucket(self, residues: Any) -> Any:
        """Bucket y holds the residues from y P/g to below (y + 1) P/g."""
        return residues * self.buckets // self.prime

    def client(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return a map and a bucket."""
        [own] = coded([value], self.domain).tolist()
        a, b = rng.below(self.prime - 1), rng.below(self.prime)
        bucket = self._bucket(((a + 1) * own + b) % self.prime)
        if not samplers.logistic(self.epsilon, Fraction(self.buckets - 1), rng):
            drawn = rng.below(self.buckets - 1)
            bucket = drawn + (drawn >= bucket)
        return a, b, int(bucket)

    def clients(self, values: Any, rng: Random = SYSTEM) -> Ints:
        """Return the maps and buckets of many people, a row of three numbers each."""
        own, prime = coded(values, self.domain).astype(np.uint64), np.uint64(self.prime)
        n, g = len(own), self.buckets
        a, b = (vector.uniform(limit, n, rng=rng) for limit in (self.prime - 1, self.prime))
        residues = ((a + 1).astype(np.uint64) * own + b.astype(np.uint64)) % prime
        bucket = self._bucket(residues.astype(object if g * self.prime >= 2**63 else np.int64)).astype(np.int64)
        drawn = vector.uniform(g - 1, n, rng=rng)
        kept = vector.logistic(self.epsilon, n, weight=g - 1, rng=rng)
        return np.stack([a, b, np.where(kept, bucket, drawn + (drawn >= bucket))], axis=1)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        a, b, bucket = report
        own = self._bucket(((a + 1) * value + b) % self.prime) == bucket
        chance = self.own if own else (1 - self.own) / (self.buckets - 1)
        return chance / (self.prime * (self.prime - 1))

    def _arcs(self, reports: Any) -> tuple[Ints, Ints, Ints]:
        """The multiplier of each report, and the arc of residues a v that it supports."""
        a, b, bucket = checked_reports(self, reports, *self.layout).T
        ends = np.array([-(-y * self.prime // self.buckets) for y in range(self.buckets + 1)])
        return a + 1, (ends[bucket] - b) % self.prime, ends[bucket + 1] - ends[bucket]

    def counted(self, reports: NDArray[Any]) -> Ints:
        """Count the reports that support each value."""
        if not reports.size:
            return np.zeros(self.domain, np.int64)
        return supported(*self._arcs(reports), self.prime, self.domain)

    def supports(self, reports: Any, values: Any) -> Ints:
        """Return how many reports support each value of a list: for domains that are too large for an aggregate."""
        if not np.asarray(reports).size:
            raise foreign(self, "three whole numbers")
        return in_arcs(*self._arcs(reports), self.prime, coded(values, self.domain))


examples = [OLH(1, domain=5, buckets=2), OLH("1/2", domain=4, buckets=3), OLH(3, domain=7)]
