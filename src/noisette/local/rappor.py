"""RAPPOR: a Bloom filter of the value, noised once for ever (permanent) and again for each report (instantaneous).

A value sets h of m public bits. The client flips each bit with probability f/2 once and keeps the result as long as the
value stays. In each report a kept 1 is 1 with probability q, and a kept 0 is 1 with probability p.
[Erlingsson-Pihur-Korolova 2014]

Two values differ in at most 2h bits, so any number of reports of one value together is epsilon_forever-DP,
2h ln((1 - f/2)/(f/2)). One report is h ln(q*(1 - p*)/(p*(1 - q*)))-DP, where q* = f(p + q)/2 + (1 - f) q is the chance
of a 1 for a set bit and p* = f(p + q)/2 + (1 - f) p for another one. A new value costs epsilon_forever again.

The collector corrects the share of ones of each bit and solves the Bloom filters of all values for their shares by
least squares, which is unbiased where the filters are linearly independent. The published regression that selects
among more candidates than that (LASSO) is biased, and left out.

When: the same person reports the same value again and again; for one report other protocols are more accurate.
Textbook: lecture on mobile analytics.
"""

import hashlib
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers
from noisette.exact.bit_arrays import Places
from noisette.exact.frozen import KW_ONLY, Exact, Whole, frozen
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import ln_bounds
from noisette.local.bitsets import Bytes, all_sets, coin_rows, has, packed, set_counts
from noisette.local.contract import Aggregate
from noisette.local.frequencies import Domain, Floats, FrequencyOracle, Shares, coded
from noisette.privacy import Neighbours, Pure

__all__ = ["Rappor", "bloom_bits"]

_BITS = 80  # binary places of a stated epsilon, which is rounded up
_MOST = 2048


def bloom_bits(value: int, bits: int, hashes: int) -> list[int]:
    """Return the bits that a value sets: the first different ones among the 32-bit words of SHA-256 of "value/round".

    >>> bloom_bits(7, 64, 2) == bloom_bits(7, 64, 2), len(set(bloom_bits(7, 4, 4)))
    (True, 4)
    """
    found: dict[int, None] = {}
    words = _words(value)
    while len(found) < hashes:
        found[next(words) % bits] = None
    return list(found)


def _words(value: int) -> Iterator[int]:
    for turn in range(1 << 20):
        digest = hashlib.sha256(f"{value}/{turn}".encode()).digest()
        yield from (int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4))


@lru_cache(maxsize=8)
def _design(domain: int, bits: int, hashes: int) -> tuple[Floats, Floats]:
    """The Bloom filters as columns, and the matrix that solves them for shares."""
    filters = np.zeros((bits, domain))
    for value in range(domain):
        filters[bloom_bits(value, bits, hashes), value] = 1
    if np.linalg.matrix_rank(filters) < domain:
        raise InputError(
            "These Bloom filters cannot tell the values apart: use a longer filter, or another number of hashes."
        )
    return filters, np.asarray(np.linalg.pinv(filters), float)


def _log_up(ratio: Fraction) -> Fraction:
    return Fraction(ln_bounds(ratio, _BITS)[1], 1 << _BITS)


@frozen
class Rappor(FrequencyOracle):
    """A report is a row of bytes with a bit for each bit of the filter.

    >>> m = Rappor(f="1/2", p="1/2", q="3/4", domain=8, length=32, hashes=2)
    >>> round(float(m.epsilon), 3), round(float(m.guarantee_forever().epsilon), 3)      # 4 ln 3 for ever
    (1.074, 4.394)
    >>> kept = m.permanent(5)           # drawn once, and stored on the device
    >>> len(m.instantaneous(kept))      # sent each day
    4
    """

    _: KW_ONLY
    f: Exact
    p: Exact
    q: Exact
    domain: Domain
    length: Annotated[int, partial(whole, least=2)]
    hashes: Whole

    def __post_init__(self) -> None:
        if not 0 < self.f < 1:
            raise InputError("f must lie strictly between 0 and 1: a usual one is 1/2.")
        if not 0 < self.p < self.q < 1:
            raise InputError("p must be above 0 and below q, and q below 1: usual ones are 1/2 and 3/4.")
        if not self.hashes < self.length <= _MOST:
            raise InputError(f"length must be above hashes and at most {_MOST:,}.")
        if self.domain > self.length:
            raise InputError("domain must be at most length: least squares needs as many bits as values.")
        _design(self.domain, self.length, self.hashes)

    @property
    def bit_chances(self) -> tuple[Fraction, Fraction]:
        """p* and q*: the probability of a 1 for a bit that the value does not set, and for one that it sets."""
        mixed = self.f * (self.p + self.q) / 2
        return mixed + (1 - self.f) * self.p, mixed + (1 - self.f) * self.q

    @property
    def epsilon(self) -> Fraction:
        """What one report costs, rounded up: h ln(q*(1 - p*)/(p*(1 - q*)))."""
        p, q = self.bit_chances
        return self.hashes * _log_up(q * (1 - p) / (p * (1 - q)))

    def guarantee_forever(self) -> Pure:
        """Return what holds for all reports of one value together: 2h ln((1 - f/2)/(f/2)), rounded up."""
        return Pure(2 * self.hashes * _log_up((2 - self.f) / self.f), neighbours=Neighbours.REPLACE)

    @property
    def layout(self) -> int:
        """One bit for each bit of the filter."""
        return self.length

    @property
    def cells(self) -> int:
        """One for each bit."""
        return self.length

    def permanent(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return the filter with its permanent noise; the client keeps it and never draws another for this value."""
        [own] = coded([value], self.domain).tolist()
        ones = set(bloom_bits(own, self.length, self.hashes))
        return packed((i in ones) != samplers.bernoulli(self.f / 2, rng) for i in range(self.length))

    def instantaneous(self, kept: tuple[int, ...], rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return one report of what `permanent` gave."""
        return packed(samplers.bernoulli(self.q if has(kept, i) else self.p, rng) for i in range(self.length))

    def client(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return the first report of a value."""
        return self.instantaneous(self.permanent(value, rng), rng)

    def clients(self, values: Any, rng: Random = SYSTEM) -> Bytes:
        """Return the first reports of many people, a row of bytes each."""
        own = coded(values, self.domain)
        filters = np.packbits(_design(self.domain, self.length, self.hashes)[0].T > 0, axis=1, bitorder="little")

        def coins(chance: Fraction) -> Bytes:
            return coin_rows(Places(samplers.rational_bounds(chance)), len(own), self.length, rng)

        kept = filters[own] ^ coins(self.f / 2)
        return np.asarray((kept & coins(self.q)) | (~kept & coins(self.p)))

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(first report | value): a product over the bits."""
        ones, (p, q), chance = set(bloom_bits(value, self.length, self.hashes)), self.bit_chances, Fraction(1)
        for i in range(self.length):
            one = q if i in ones else p
            chance *= one if has(report, i) else 1 - one
        return chance

    def reports(self) -> Iterable[tuple[int, ...]]:
        """All sets of bits."""
        return all_sets(self.length)

    def counted(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count the ones of each bit."""
        return set_counts(self, reports)

    def estimated(self, aggregate: Aggregate) -> Shares:
        """Return unbiased shares by least squares."""
        p, q = map(float, self.bit_chances)
        solve = _design(self.domain, self.length, self.hashes)[1]
        return Shares(self, solve @ ((aggregate.counts / aggregate.people - p) / (q - p)), aggregate)

    def spread(self, shares: NDArray[Any]) -> NDArray[Any]:
        """Return n times the variance of each estimated share: the bits of a report are independent."""
        p, q = map(float, self.bit_chances)
        filters, solve = _design(self.domain, self.length, self.hashes)
        each = (filters @ shares.astype(float)) * (q * (1 - q) - p * (1 - p)) + p * (1 - p)
        return np.asarray(solve**2 @ each / (q - p) ** 2)

    def noise(self) -> tuple[Fraction, Fraction]:
        """Return n times the variance of a share of 0, the others being equal, and of 1; on average over the values."""
        k = self.domain
        ones, others = np.eye(k), (1 - np.eye(k)) / (k - 1)
        found = [np.mean([self.spread(row)[v] for v, row in enumerate(rows)]) for rows in (others, ones)]
        return Fraction(float(found[0])), Fraction(float(found[1]))

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """Return ends of error bars by Hoeffding's inequality: all bits of all reports are independent."""
        p, q = map(float, self.bit_chances)
        _, solve = _design(self.domain, self.length, self.hashes)
        tail = np.log(2 / (1 - level_of(level))) / (2 * aggregate.people)
        half = np.sqrt(tail * (solve**2).sum(axis=1)) / (q - p)
        shares = self.estimated(aggregate).shares
        return shares - half, shares + half


examples = [Rappor(f="1/2", p="1/2", q="3/4", domain=4, length=7, hashes=2),
            Rappor(f="1/4", p="1/3", q="2/3", domain=3, length=6, hashes=1)]  # fmt: skip
