"""Unary encoding: one bit for each value, 1 for the own value, and a lie for each bit with a known probability.

Symmetric unary encoding (SUE, the basic form of RAPPOR) keeps every bit with e^(epsilon/2)/(e^(epsilon/2) + 1).
Optimized unary encoding (OUE) reports the own bit by a fair coin, and each other bit as 1 with 1/(e^epsilon + 1): many
bits are 0, so these are worth more care. Two values differ in two bits, whose losses add up to epsilon, exactly.
                                             [Erlingsson-Pihur-Korolova 2014; Wang-Blocki-Li-Jha 2017]

When: reports may have as many bits as the domain has values; OUE is then close to the best there is.
Textbook: lecture on mobile analytics.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.bit_arrays import lie_places
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.random import SYSTEM, Random
from noisette.local.bitsets import MOST, Bytes, all_sets, coin_rows, has, packed, set_counts
from noisette.local.contract import Epsilon, odds
from noisette.local.frequencies import Domain, PureProtocol, coded

__all__ = ["OUE", "SUE"]


@frozen
class _Unary(PureProtocol):
    """What both have in common: the bit of the own value is 1 with odds e^truth, each other one with odds e^-lie."""

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain
    parts: ClassVar[tuple[Fraction, Fraction]]
    """Which parts of epsilon `truth` and `lie` are; they sum to one."""

    def __post_init__(self) -> None:
        if self.domain > MOST:
            raise InputError(f"domain must be at most {MOST:,} here: use OLH or ProjectiveGeometry for larger ones.")

    @property
    def truth(self) -> Fraction:
        """g, if the bit of the own value is reported as 1 with probability 1/(1 + e^-g)."""
        return self.parts[0] * self.epsilon

    @property
    def lie(self) -> Fraction:
        """g, if a bit of 0 is reported as 1 with probability 1/(1 + e^g)."""
        return self.parts[1] * self.epsilon

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p = 1 - 1/(1 + e^truth), q = 1/(1 + e^lie)."""
        return 1 - 1 / (1 + odds(self.truth)), 1 / (1 + odds(self.lie))

    @property
    def layout(self) -> int:
        """One bit for each value."""
        return self.domain

    def client(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return all bits, with lies."""
        [own] = coded([value], self.domain).tolist()

        def bit(v: int) -> bool:
            return samplers.logistic(self.truth, rng=rng) if v == own else not samplers.logistic(self.lie, rng=rng)

        return packed(map(bit, range(self.domain)))

    def clients(self, values: Any, rng: Random = SYSTEM) -> Bytes:
        """Return the reports of many people, a row of bytes each."""
        own = coded(values, self.domain)
        rows = coin_rows(lie_places(self.lie), len(own), self.domain, rng)
        people, byte, bit = np.arange(len(own)), own // 8, (1 << own % 8).astype(np.uint8)
        ones = vector.logistic(self.truth, len(own), rng=rng) if self.truth else vector.uniform(2, len(own), rng=rng)
        rows[people, byte] = np.where(ones, rows[people, byte] | bit, rows[people, byte] & ~bit)
        return rows

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value): a product over the bits."""
        ones = sum(byte.bit_count() for byte in report)
        others = ones - has(report, value)
        mine = self.own if has(report, value) else 1 - self.own
        q, zeros = self.other, self.domain - 1 - others
        return mine * Fraction(q**others) * Fraction((1 - q) ** zeros)

    def reports(self) -> Iterable[tuple[int, ...]]:
        """All sets of values."""
        return all_sets(self.domain)

    def counted(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count the ones of each value."""
        return set_counts(self, reports)


@frozen
class SUE(_Unary):
    """Symmetric unary encoding; a report is a row of bytes with a bit for each value.

    >>> SUE(1, domain=16).variance().__round__(3), SUE(1, domain=16).clients([3, 3, 15]).shape
    (3.918, (3, 2))
    """

    parts = Fraction(1, 2), Fraction(1, 2)


@frozen
class OUE(_Unary):
    """Optimized unary encoding; a report is a row of bytes with a bit for each value.

    >>> OUE(1, domain=16).variance().__round__(3), OUE(1, domain=16).clients([3, 3, 15]).shape
    (3.683, (3, 2))
    """

    parts = Fraction(0), Fraction(1)


examples = [SUE(1, domain=3), OUE(1, domain=3), SUE("1/2", domain=9), OUE(3, domain=4), OUE("1/4", domain=9)]
