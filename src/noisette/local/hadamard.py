"""Hadamard response: report one row of a Hadamard matrix, more often one where the own column is +1.

The values are dealt to B blocks. Each block has b outputs, a power of two above its number of values, and a value is a
column of the b x b Hadamard matrix H(i, j) = (-1)^(number of common ones of i and j), any except the first, which is
constant. Its b/2 outputs with +1 have e^epsilon times the probability of every other output, in its own block or
another one.   [Acharya-Sun-Zhang 2019]

Columns are orthogonal, so T_v, the mean of H(report, v) over all reports, 0 for those outside of v's block, has the
expectation a f, a = (e^epsilon - 1)/(e^epsilon + 2B - 1). A person of the same block reports within it with probability
P = (e^epsilon + 1)/(e^epsilon + 2B - 1), one of another block with P = 2/(e^epsilon + 2B - 1). So n times the variance
of T_v/a is (mean of P over the people)/a^2 - f.

One block is the plain response; (e^epsilon - 1)/2 blocks have the least variance on average over the values. A fast
Walsh-Hadamard transform estimates all k shares from n reports in O(n + k log k).

When: reports must be as short as a value; one block for epsilon below 1.3, `blocks=None` above.
Textbook: none.
"""

from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.bit_arrays import even
from noisette.exact.frozen import KW_ONLY, Read, default, frozen, optional, set_fields
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import Aggregate, Epsilon, odds
from noisette.local.frequencies import Domain, Floats, FrequencyOracle, Shares, coded, mixture
from noisette.local.intervals import binomial_means

__all__ = ["HadamardResponse", "transformed"]


def transformed(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Walsh-Hadamard transform of each row, whose length is a power of two.

    >>> transformed(np.array([[1, 0, 2, 0]])).tolist()
    [[3, 3, -1, -1]]
    """
    table, half = counts.copy(), 1
    rows, length = table.shape
    while half < length:
        pairs = table.reshape(rows, -1, 2, half)
        table = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return table.reshape(rows, length)


def _second_moments(e: Fraction, blocks: int) -> tuple[Fraction, Fraction]:
    """P/a^2 for people of another block, and of the same."""
    total = e + 2 * blocks - 1
    return 2 * total / (e - 1) ** 2, (e + 1) * total / (e - 1) ** 2


def _rare(e: Fraction, domain: int, blocks: int) -> Fraction:
    """n times the variance of a share of 0, if all others are equal, on average over the values."""
    small, larger = divmod(domain, blocks)  # `larger` blocks have one value more
    alike = Fraction(larger * (small + 1) * small + (blocks - larger) * small * (small - 1), domain * (domain - 1))
    another, same = _second_moments(e, blocks)
    return another + (same - another) * alike


def best_blocks(e: Fraction, domain: int) -> int:
    """Return the number of blocks with the least variance of a rare value; in large domains it is near (e - 1)/2."""
    near = int((e - 1) / 2)
    return min({min(max(1, b), domain) for b in (near, near + 1)}, key=lambda b: _rare(e, domain, b))


@frozen
class HadamardResponse(FrequencyOracle):
    """Reports are outputs, 0 .. blocks * length - 1; the block is the upper part of the number.

    >>> plain = HadamardResponse(1, domain=16)
    >>> round(plain.variance(), 3), plain.bits
    (4.683, 5)
    >>> HadamardResponse(4, domain=256, blocks=None).blocks
    27
    """

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain
    blocks: Annotated[Read[int | None, int], optional(partial(whole, least=1))] = default(1)

    def __post_init__(self) -> None:
        set_fields(self, blocks=self.blocks or best_blocks(odds(self.epsilon), self.domain))
        if self.blocks > self.domain:
            raise InputError("blocks must be at most domain: each block has at least one value.")

    @property
    def length(self) -> int:
        """b: how many outputs a block has, the least power of two above its number of values."""
        return 1 << (-(-self.domain // self.blocks)).bit_length()

    @property
    def cells(self) -> int:
        """The number of outputs."""
        return self.blocks * self.length

    @property
    def contrast(self) -> Fraction:
        """a = (e^epsilon - 1)/(e^epsilon + 2B - 1)."""
        return (odds(self.epsilon) - 1) / (odds(self.epsilon) + 2 * self.blocks - 1)

    def _place(self, values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The block and the column of each value; neighbours lie in different blocks."""
        return values % self.blocks, values // self.blocks + 1

    def client(self, value: int, rng: Random = SYSTEM) -> int:
        """Return an output."""
        (block,), (column,) = (part.tolist() for part in self._place(coded([value], self.domain)))
        plus = samplers.logistic(self.epsilon, Fraction(2 * self.blocks - 1), rng)
        row = rng.below(self.length)
        if not plus and (half := rng.below(2 * self.blocks - 1)):  # one of the two halves of another block
            return int((block + (half + 1) // 2) % self.blocks * self.length + row)
        if ((row & column).bit_count() % 2 == 0) is not plus:
            row ^= column & -column
        return int(block * self.length + row)

    def clients(self, values: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Return the outputs of many people."""
        block, column = self._place(coded(values, self.domain))
        n, halves = len(block), 2 * self.blocks - 1
        plus = vector.logistic(self.epsilon, n, weight=halves, rng=rng)
        row = vector.uniform(self.length, n, rng=rng)
        half = np.where(plus, 0, vector.uniform(halves, n, rng=rng))
        turned = (half == 0) & (even(row & column) != plus)
        row = np.where(turned, row ^ (column & -column), row)
        return np.asarray((block + (half + 1) // 2) % self.blocks * self.length + row)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value): e^epsilon or 1, divided by their sum over all outputs."""
        (block,), (column,) = self._place(np.array([value]))
        its_block, row = divmod(int(report), self.length)
        plus = its_block == block and (row & int(column)).bit_count() % 2 == 0
        total = Fraction(self.length, 2) * (odds(self.epsilon) + 2 * self.blocks - 1)
        return (odds(self.epsilon) if plus else 1) / total

    def _signs(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many reports of a value's block have +1 in its column, and how many -1."""
        table = transformed(counts.reshape(self.blocks, self.length))
        block, column = self._place(np.arange(self.domain))
        return (table[block, 0] + table[block, column]) // 2, (table[block, 0] - table[block, column]) // 2

    def estimated(self, aggregate: Aggregate) -> Shares:
        """Return unbiased shares."""
        plus, minus = self._signs(aggregate.counts)
        return Shares(self, (plus - minus) / (aggregate.people * float(self.contrast)), aggregate)

    def noise(self) -> tuple[Fraction, Fraction]:
        """Return n times the variance of a share of 0, the others being equal, and of 1; on average over the values."""
        e = odds(self.epsilon)
        return _rare(e, self.domain, self.blocks), _second_moments(e, self.blocks)[1] - 1

    def spread(self, shares: NDArray[Any]) -> NDArray[Any]:
        """Return n times the variance of each estimated share, where these are the true shares."""
        block, _ = self._place(np.arange(self.domain))
        together = np.zeros(self.blocks, shares.dtype)
        np.add.at(together, block, shares)
        return np.asarray(mixture(together, *_second_moments(odds(self.epsilon), self.blocks))[block] - shares)

    def bounds(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """Return ends of error bars, from those of the +1 and, if there are other blocks, of the -1."""
        plus, minus = self._signs(aggregate.counts)
        a = float(self.contrast)
        if self.blocks == 1:
            low, high = binomial_means(plus, aggregate.people, level)
            return (2 * low - 1) / a, (2 * high - 1) / a
        half = 1 - (1 - level) / 2  # each pair of bars misses half as often
        (low, high), (least, most) = (binomial_means(c, aggregate.people, half) for c in (plus, minus))
        return (low - most) / a, (high - least) / a


examples = [HadamardResponse(1, domain=5), HadamardResponse(3, domain=9, blocks=None),
            HadamardResponse(2, domain=7, blocks=3)]  # fmt: skip
