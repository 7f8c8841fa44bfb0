"""Heavy hitters of a very large domain: the frequent values, found prefix by prefix.

Values are bit strings. Each person is drawn by lot into one of the levels. On level i they report the first i times
`step` bits of their value by OLH with all of epsilon (prefixes of 32 bits or more through a public hash into 2^32
residues). The collector starts with all prefixes of the first level, keeps those whose share is certainly above 0,
lengthens them by `step` bits, and so on.   [Wang-Li-Jha 2021; Bassily-Nissim-Stemmer-Thakurta 2017]

A report's law is that of OLH times the probability of its level, which does not depend on the value: epsilon holds as
for OLH. Levels have different people, so candidates are fixed before the reports of the next level are read. A prefix
passes if its error bar at level 1 - 2 beta/(levels times candidates) is above 0. So with probability 1 - beta at least,
all values found really occur (or collide with such a value under the public hash, by chance 2^-32); a value below
`detectable` may be missed.

The collector keeps reports here, as counts of 2^length values would not fit; they are sorted, so their order is lost.

When: which words, addresses or cells are frequent, where the domain is too large to list.
Textbook: lecture on local privacy, heavy hitters.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, Positive, default, frozen
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import Aggregate, Epsilon, LocalProtocol, as_reports, checked_reports
from noisette.local.frequencies import coded
from noisette.local.intervals import bars, binomial_means
from noisette.local.olh import OLH

__all__ = ["HeavyHitters", "PrefixTree", "code_of_text", "text_of_code"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
RESIDUES = 4_294_967_291  # the largest prime below 2^32
LONGEST = 56


def _up_to(most: int) -> Any:
    def read(value: int, name: str) -> int:
        if whole(value, name) > most:
            raise InputError(f"{name} must be at most {most}.")
        return int(value)

    return read


def code_of_text(text: str, length: int = LONGEST) -> int:
    """Return the code of a text: its first bytes in UTF-8, filled up with zeros.

    >>> text_of_code(code_of_text("hello"))
    'hello'
    """
    room = length // 8
    return int.from_bytes(text.encode()[:room].ljust(room, b"\0"), "big")


def text_of_code(code: int, length: int = LONGEST) -> str:
    """Return the text of a code; a character that was cut is left out."""
    return int(code).to_bytes(length // 8, "big").rstrip(b"\0").decode(errors="ignore")


def _hashed(prefixes: Ints) -> Ints:
    """A public hash into RESIDUES: the finaliser of SplitMix64."""
    x = prefixes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(((x ^ (x >> np.uint64(31))) % np.uint64(RESIDUES)).astype(np.int64))


class _Kept(Aggregate):
    """The reports themselves, sorted."""

    def add(self, reports: Any) -> Aggregate:
        """Keep more reports; if one of them cannot be of this protocol, none is kept."""
        rows = np.concatenate([self.counts, self.protocol.counted(as_reports(self.protocol, reports))])
        self.counts, self.people = rows[np.lexsort(rows.T[::-1])], len(rows)
        return self

    def __add__(self, other: Aggregate) -> Aggregate:
        """Return both collectors' reports."""
        super().__add__(self if self.protocol == other.protocol else other)
        return _Kept(self.protocol, self.counts, self.people).add(other.counts)


@frozen
class PrefixTree(LocalProtocol):
    """Values are whole numbers below 2^length; reports are (level, a, b, bucket).

    >>> tree = PrefixTree(3, length=16, step=4)
    >>> found = tree.estimate(tree.clients([40_000] * 6000 + [123] * 4000 + list(range(10_000))))
    >>> found.values.tolist()
    [40000, 123]
    """

    epsilon: Epsilon
    _: KW_ONLY
    length: Annotated[int, _up_to(LONGEST)]
    step: Annotated[int, _up_to(12)] = 8
    most: Annotated[int, _up_to(4096)] = 64
    beta: Positive = default("0.05")

    def __post_init__(self) -> None:
        if self.beta >= 1:
            raise InputError("beta must be below 1: a usual one is 0.05.")

    @property
    def lengths(self) -> list[int]:
        """How many bits are reported on each level."""
        return [min(i, self.length) for i in range(self.step, self.length + self.step, self.step)]

    def oracle(self, level: int) -> OLH:
        """Return the protocol of a level."""
        bits = self.lengths[level]
        return OLH(self.epsilon, domain=1 << bits if bits < 32 else RESIDUES)

    def _codes(self, prefixes: Ints, level: int) -> Ints:
        return prefixes if self.lengths[level] < 32 else _hashed(prefixes)

    def _prefixes(self, values: Ints, level: int) -> Ints:
        return self._codes(values >> (self.length - self.lengths[level]), level)

    @property
    def layout(self) -> tuple[range, ...]:
        """A level and a report of its oracle: the numbers of the level that has most of them."""
        levels = range(len(self.lengths))
        return levels, *(max(each, key=len) for each in zip(*(self.oracle(i).layout for i in levels), strict=True))

    @property
    def cells(self) -> int:
        """The numbers of a report: reports are kept."""
        return 4

    def client(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return a level, drawn by lot, and the report of a prefix."""
        own = coded([value], 1 << self.length)
        level = rng.below(len(self.lengths))
        [prefix] = self._prefixes(own, level).tolist()
        return (level, *self.oracle(level).client(prefix, rng))

    def clients(self, values: Any, rng: Random = SYSTEM) -> Ints:
        """Return the reports of many people, a row of four numbers each."""
        own = coded(values, 1 << self.length)
        levels = vector.uniform(len(self.lengths), len(own), rng=rng)
        rows = np.zeros((len(own), 4), np.int64)
        rows[:, 0] = levels
        for level in np.unique(levels).tolist():
            here = levels == level
            rows[here, 1:] = self.oracle(level).clients(self._prefixes(own[here], level), rng)
        return rows

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        level, *rest = report
        [prefix] = self._prefixes(coded([value], 1 << self.length), level).tolist()
        return self.oracle(level).likelihood(tuple(rest), prefix) / len(self.lengths)

    def values(self) -> Iterable[int]:
        """All bit strings."""
        return range(1 << self.length)

    def reports(self) -> Iterable[tuple[int, ...]]:
        """All reports of all levels."""
        levels = range(len(self.lengths))
        return [(level, *report) for level in levels for report in product(*self.oracle(level).layout)]

    def empty(self) -> Aggregate:
        """Return an aggregate without reports."""
        return _Kept(self, np.zeros((0, 4), np.int64))

    def counted(self, reports: NDArray[Any]) -> Ints:
        """Check reports, and return them."""
        rows = checked_reports(self, reports, *self.layout)
        for level in np.unique(rows[:, 0]).tolist():
            checked_reports(self, rows[rows[:, 0] == level, 1:], *self.oracle(level).layout)
        return rows

    def _tail(self, candidates: int) -> float:
        return float(self.beta) / (len(self.lengths) * candidates)

    def estimated(self, aggregate: Aggregate) -> "HeavyHitters":
        """Return the frequent values, the most frequent first."""
        kept, shares, supports = np.zeros(1, np.int64), np.zeros(0), np.zeros(0, np.int64)
        bits = [0, *self.lengths]
        people = 0
        for level in range(len(self.lengths)):
            rows, oracle = aggregate.counts[aggregate.counts[:, 0] == level, 1:], self.oracle(level)
            people, width = len(rows), bits[level + 1] - bits[level]
            longer = ((kept[:, None] << width) + np.arange(1 << width)).ravel()
            if not people or not longer.size:
                return HeavyHitters(self, longer[:0], shares[:0], supports[:0], people, aggregate)
            supports = oracle.supports(rows, self._codes(longer, level))
            low, _ = binomial_means(supports, people, 1 - 2 * self._tail(len(longer)))
            best = np.argsort(-supports, kind="stable")[: self.most]
            best = best[low[best] > float(oracle.other)]
            kept, supports = longer[best], supports[best]
            shares = (supports / people - float(oracle.other)) / float(oracle.own - oracle.other)
        return HeavyHitters(self, kept, shares, supports, people, aggregate)

    def detectable(self, people: int) -> float:
        """Return about the share of a value that is found with probability 1 - beta, by normal approximation."""
        from scipy.special import ndtri

        each = whole(people, "people") / len(self.lengths)
        spread = max(self.oracle(level).variance() for level in range(len(self.lengths)))
        return float(-2 * ndtri(self._tail(self.most << self.step)) * math.sqrt(spread / each))


@dataclass(frozen=True, eq=False)
class HeavyHitters:
    """Values that occur, with unbiased estimates of their shares given that they were looked for."""

    protocol: PrefixTree
    values: Ints
    shares: Floats
    supports: Ints
    people: int
    aggregate: Aggregate

    def variance(self) -> Floats:
        """Return the variance of each share over coins, from the people of the last level."""
        oracle = self.protocol.oracle(len(self.protocol.lengths) - 1)
        return np.asarray(oracle.spread(np.clip(self.shares, 0, 1)) / max(1, self.people))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return ends (low, high) for each share; ask for 1 - (1 - level)/k to have all of k at once.

        They hold for values fixed in advance. Values that were just above the threshold are, on average, a little high.
        """
        oracle = self.protocol.oracle(len(self.protocol.lengths) - 1)
        low, high = binomial_means(self.supports, max(1, self.people), level)
        p, q = float(oracle.own), float(oracle.other)
        return np.clip((low - q) / (p - q), 0, 1), np.clip((high - q) / (p - q), 0, 1)

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each value that was found."""
        return bars("value", self.values.tolist(), "share", self.shares, *self.interval(level))


examples = [PrefixTree(1, length=3, step=2), PrefixTree(2, length=2, step=1)]
