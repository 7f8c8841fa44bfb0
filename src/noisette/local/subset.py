"""Subset selection: report a set of w values that contains the own one more often than chance would have it.

All sets with the own value have e^epsilon times the probability of each set without it. With w near k/(e^epsilon + 1)
no protocol estimates shares with less variance in the worst case.   [Ye-Barg 2018; Wang-Huang-Nie-Wang-Xu-Yang 2016]

A report supports the values in its set: p = w e^epsilon/(w e^epsilon + k - w), and another value is in it with
q = (p (w - 1) + (1 - p) w)/(k - 1). With w = 1 it is generalised randomized response.

When: the least variance is wanted and reports may have k bits; `AffineSubsets` has the same accuracy with short ones.
Textbook: none; it is the answer to how well frequencies can be estimated locally.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.bit_arrays import Places, coin_words, row_sums
from noisette.exact.frozen import KW_ONLY, Read, default, frozen, optional, set_fields
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.bitsets import MOST, Bytes, has, packed, set_counts
from noisette.local.contract import Epsilon, odds
from noisette.local.frequencies import Domain, PureProtocol, coded

__all__ = ["SetSize", "SubsetSelection", "best_size", "pair_chances"]

SetSize: TypeAlias = Annotated[Read[int | None, int], optional(partial(whole, least=1))]
"""How many values a set has; None for the number with the least variance."""

_CELLS = 1 << 24  # bits of the sets that are drawn together


def pair_chances(e: Fraction, values: int, size: int) -> tuple[Fraction, Fraction]:
    """Return p and q of sets of `size` among `values`, in which all pairs of values are equally likely."""
    p = size * e / (size * e + values - size)
    return p, (p * (size - 1) + (1 - p) * size) / (values - 1)


def best_size(e: Fraction, values: int) -> int:
    """Return the size of sets with the least variance for a rare value, near values/(e + 1).

    >>> best_size(odds(Fraction(1)), 16), best_size(odds(Fraction(4)), 16)
    (4, 1)
    """
    near = math.floor(values / (e + 1))

    def variance(size: int) -> Fraction:
        p, q = pair_chances(e, values, size)
        return q * (1 - q) / (p - q) ** 2

    return min((size for size in range(near - 1, near + 3) if 1 <= size < values), key=variance)


def _subsets(sizes: NDArray[np.int64], values: int, rng: Random) -> NDArray[np.bool_]:
    """Draw a uniform subset of each size.

    Independent coins give a subset of about that size; whatever its size is, all subsets of that size are equally
    likely. They stay so when uniform members leave or uniform others enter until the size is right.
    """
    near = Fraction(1 + int(sizes.sum()), 2 + len(sizes) * values)  # about their share, within 0 and 1
    places, count = Places(samplers.rational_bounds(near)), len(sizes) * values
    words = coin_words(places, -(-count // 64), rng).view(np.uint8)
    sets = np.unpackbits(words, count=count, bitorder="little").reshape(len(sizes), values).astype(bool)
    lacking = sizes - sets.sum(axis=1)
    todo = np.flatnonzero(lacking)
    while todo.size:
        drawn = vector.uniform(values, todo.size, rng=rng)
        enters = lacking[todo] > 0
        useful = sets[todo, drawn] != enters
        sets[todo[useful], drawn[useful]] = enters[useful]
        lacking[todo[useful]] -= np.where(enters[useful], 1, -1)
        todo = todo[lacking[todo] != 0]
    return sets


@frozen
class SubsetSelection(PureProtocol):
    """A report is a row of bytes with a bit for each value, and `size` of them are 1.

    >>> m = SubsetSelection(1, domain=16)
    >>> m.size, round(m.variance(), 3), m.clients([3, 3, 15]).shape
    (4, 3.111, (3, 2))
    """

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain
    size: SetSize = default(None)

    def __post_init__(self) -> None:
        if self.domain > MOST:
            raise InputError(f"domain must be at most {MOST:,} here: use AffineSubsets for larger ones.")
        set_fields(self, size=self.size or best_size(odds(self.epsilon), self.domain))
        if self.size >= self.domain:
            raise InputError("size must be below domain: a set of all values says nothing.")

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p and q: how often a set contains its sender's value, and another one."""
        return pair_chances(odds(self.epsilon), self.domain, self.size)

    @property
    def layout(self) -> int:
        """One bit for each value."""
        return self.domain

    def possible(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which sets have `size` values."""
        return np.asarray(row_sums(reports) == self.size)

    @property
    def _odds_without(self) -> Fraction:
        """The number of sets without a value, divided by that of sets with it: (k - w)/w."""
        return Fraction(self.domain - self.size, self.size)

    def client(self, value: int, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return a set; the others in it are drawn by Floyd's algorithm, one coin for each."""
        [own] = coded([value], self.domain).tolist()
        inside = samplers.logistic(self.epsilon, self._odds_without, rng)
        others, chosen = self.domain - 1, set[int]()
        for last in range(others - (self.size - inside), others):
            drawn = rng.below(last + 1)
            chosen.add(last if drawn in chosen else drawn)
        found = {v + (v >= own) for v in chosen} | ({own} if inside else set())
        return packed(v in found for v in range(self.domain))

    def clients(self, values: Any, rng: Random = SYSTEM) -> Bytes:
        """Return the sets of many people, a row of bytes each."""
        own = coded(values, self.domain)
        step = max(1, _CELLS // self.domain)
        rows = [self._batch(own[start : start + step], rng) for start in range(0, max(1, len(own)), step)]
        return np.concatenate(rows)

    def _batch(self, own: NDArray[np.int64], rng: Random) -> Bytes:
        people, others = np.arange(len(own)), self.domain - 1
        inside = vector.logistic(self.epsilon, len(own), weight=self._odds_without, rng=rng)
        sets = np.zeros((len(own), self.domain), bool)
        sets[:, :others] = _subsets(self.size - inside, others, rng)
        sets[people, others] = sets[people, own]  # the last value takes the place of the own one among the others
        sets[people, own] = inside
        return np.packbits(sets, axis=1, bitorder="little")

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        if has(report, value):
            return self.own / math.comb(self.domain - 1, self.size - 1)
        return (1 - self.own) / math.comb(self.domain - 1, self.size)

    def reports(self) -> Iterable[tuple[int, ...]]:
        """All sets of that size."""
        return self._sets()

    def _sets(self) -> Iterator[tuple[int, ...]]:
        for chosen in combinations(range(self.domain), self.size):
            yield packed(v in chosen for v in range(self.domain))

    def counted(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count the sets that contain each value."""
        return set_counts(self, reports)


examples = [SubsetSelection(1, domain=5, size=2), SubsetSelection("1/2", domain=9), SubsetSelection(3, domain=6)]
