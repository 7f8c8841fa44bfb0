"""Frequency oracles: protocols whose collector learns which share of the people has each value of a public domain.

Nearly all of them are pure: a report supports some of the values, a person's own value with probability p, every other
one with probability q, the same for all of them. If C_v of n reports support v, (C_v/n - q)/(p - q) is an unbiased
estimate of the share f of v, and over the coins of the clients n times its variance is

    f p(1-p)/(p-q)^2 + (1-f) q(1-q)/(p-q)^2            [Wang-Blocki-Li-Jha 2017, with the term of f kept]

Vocabulary: `f` share of a value · `p`, `q` chances of support, `own` and `other` below · `n` people who report.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.local.contract import Aggregate, LocalProtocol, rectangular
from noisette.local.intervals import bars, binomial_means

__all__ = ["Domain", "FrequencyOracle", "PureProtocol", "Shares", "coded", "mixture", "on_simplex"]

Domain: TypeAlias = Annotated[int, partial(whole, least=2)]
Floats: TypeAlias = NDArray[np.float64]


def coded(values: Any, domain: int) -> NDArray[np.int64]:
    """Read values, coded 0 .. domain-1."""
    array = rectangular(values)
    if array is None or array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise InputError(f"values must be a list of whole numbers: code them 0 to {domain - 1}.")
    if array.size and not (int(array.min()) >= 0 and int(array.max()) < domain):
        raise InputError(f"A value lies outside the domain: code the values 0 to {domain - 1}.")
    return array.astype(np.int64)


def mixture(shares: NDArray[Any], at_0: Fraction, at_1: Fraction) -> NDArray[Any]:
    """Return at_0 (1 - f) + at_1 f for each share f: floats for floats, fractions for fractions."""
    if shares.dtype == object:
        return np.asarray(at_0 + shares * (at_1 - at_0))
    return np.asarray(float(at_0) + shares * float(at_1 - at_0))


def on_simplex(shares: Floats) -> Floats:
    """Return the nearest shares that are at least 0 and sum to one: all move by one number, cut at 0 (norm-sub).

    [Wang-Lopuhaa-Zwakenberg-Li-Skoric-Li 2020; it is the Euclidean projection]

    >>> on_simplex(np.array([0.7, 0.5, -0.1])).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = np.sort(shares)[::-1]
    moves = (1 - np.cumsum(falling)) / np.arange(1, len(shares) + 1)
    positive = np.flatnonzero(falling + moves > 0)[-1]
    return np.asarray(np.maximum(shares + moves[positive], 0))


class FrequencyOracle(LocalProtocol, Protocol):
    """A protocol for shares: of the values 0 .. domain-1, unless it says otherwise."""

    domain: int

    def noise(self) -> tuple[Fraction, Fraction]:
        """Return n times the variance of a share of 0 and of a share of 1, exact in terms of `odds`."""
        ...

    def estimated(self, aggregate: Aggregate) -> "Shares":
        """Return unbiased shares."""
        ...

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """Return ends of error bars, which may lie outside 0 .. 1."""
        ...

    def values(self) -> Iterable[Any]:
        """0 .. domain-1."""
        return range(self.domain)

    def spread(self, shares: NDArray[Any]) -> NDArray[Any]:
        """Return n times the variance of each estimated share, where these are the true shares."""
        return mixture(shares, *self.noise())

    def variance(self, people: int = 1, *, share: float = 0.0) -> float:
        """Return the variance, over the coins, of the estimated share of a value that a given share of people has."""
        if not 0 <= share <= 1:
            raise InputError("share must lie between 0 and 1.")
        return float(mixture(np.array([float(share)]), *self.noise())[0]) / whole(people, "people")

    def consistent(self, shares: Floats) -> Floats:
        """Return the nearest shares that are possible."""
        return on_simplex(shares)


class PureProtocol(FrequencyOracle, Protocol):
    """A frequency oracle whose reports support the own value with p, and every other value with the same q."""

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p and q, exact in terms of `odds`."""
        ...

    @property
    def own(self) -> Fraction:
        """p: the probability that a report supports its sender's value."""
        return self.chances[0]

    @property
    def other(self) -> Fraction:
        """q: the probability that a report supports any other value."""
        return self.chances[1]

    @property
    def cells(self) -> int:
        """One for each value."""
        return self.domain

    def support(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return from an aggregate how many reports support each value."""
        return counts

    def noise(self) -> tuple[Fraction, Fraction]:
        """Return q(1-q)/(p-q)^2 and p(1-p)/(p-q)^2."""
        p, q = self.chances
        return q * (1 - q) / (p - q) ** 2, p * (1 - p) / (p - q) ** 2

    def estimated(self, aggregate: Aggregate) -> "Shares":
        """Return unbiased shares, (C/n - q)/(p - q)."""
        p, q = self.chances
        return Shares(self, (self.support(aggregate.counts) / aggregate.people - float(q)) / float(p - q), aggregate)

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """Return ends of error bars: Clopper and Pearson's for the mean support, moved to the scale of shares."""
        low, high = binomial_means(self.support(aggregate.counts), aggregate.people, level)
        p, q = self.chances
        return (low - float(q)) / float(p - q), (high - float(q)) / float(p - q)


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated shares of all values.

    >>> from noisette.local import GRR
    >>> found = GRR(2, domain=3).estimate([0] * 70 + [1] * 20 + [2] * 10)
    >>> found.shares.round(3).tolist(), found.consistent().round(3).tolist()
    ([0.872, 0.137, -0.01], [0.867, 0.133, 0.0])
    """

    protocol: FrequencyOracle
    shares: Floats
    aggregate: Aggregate

    @property
    def people(self) -> int:
        """How many people reported."""
        return self.aggregate.people

    @property
    def counts(self) -> Floats:
        """Unbiased estimates of how many people have each value."""
        return self.shares * self.people

    def consistent(self) -> Floats:
        """Return shares that are possible: at least 0, and summing to one where they must; no longer unbiased."""
        return self.protocol.consistent(self.shares)

    def variance(self, shares: Any = None) -> Floats:
        """Return the variance of each share, if these are the true ones; without them, at the consistent estimate."""
        true = self.consistent() if shares is None else np.asarray(shares, float)
        return np.asarray(self.protocol.spread(true) / self.people)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return ends (low, high); each bar contains its true share with at least that probability, for any n.

        For all k values at once, ask for the level 1 - (1 - level)/k. Ends are cut to what a share can be.
        """
        low, high = self.protocol.bounds(self.aggregate, level)
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each value."""
        return bars("value", range(len(self.shares)), "share", self.shares, *self.interval(level))
