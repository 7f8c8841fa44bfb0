"""The Haar wavelet in whole numbers: the total, and for every node of a binary tree its left half minus its right half.

Vocabulary: `n` the least power of two that holds the cells, the cells after the last one are public zeros · `u` sums of
nodes · `d` differences of nodes · `q` a range as a vector of 0 and 1.

Privelet adds noise of scale (1 + log2 n)/(epsilon W) to means of halves, where the weight W is the size of a node.
[Xiao-Wang-Gehrke 2010]. Times W, these means are differences of counts: whole numbers, and one row moves one of them in
each level, by 1. A level with variance v_l adds v_l (left - right)^2 / size^2 to the error of q for each of its nodes,
where left and right are the cells of q in its halves. With A_l for the mean of that over the queries, the least
error has shares in proportion to A_l^(1/3) for Laplace noise and to A_l^(1/4) for Gaussian noise (Lagrange).

For n cells there are n numbers, so that inference is the inverse: half of u + d, half of u - d. Where the line ends
before n, a difference whose right half has no cells measures its left half once more. Only the nodes on the path to the
end of the line do so. They are about the blocks that the binary digits of `cells` stand for (13 = 8 + 4 + 1), and least
squares on these few blocks is all that is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.chains import Energies, typical
from noisette.releases.linear import placed
from noisette.releases.tree import MOST_CELLS

__all__ = ["Haar"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_LEAST = 1e-6  # of the largest A_l: no level goes without a share


@dataclass(frozen=True)
class Haar:
    """The total and the difference of the halves of every node over `cells` cells, level by level from the top.

    >>> wavelet = Haar(8)
    >>> [level.tolist() for level in wavelet.measure(np.array([1, 2, 3, 4, 5, 6, 7, 8]))]
    [[36], [-16], [-4, -4], [-1, -1, -1, -1]]
    >>> published = [2 * 4.0**2] * 4        # Laplace noise of scale 1 + log2 8
    >>> wavelet.variances(np.array([0, 1]), np.array([7, 6]), published).tolist()
    [32.0, 38.0]
    """

    cells: int
    prefixes: bool = False
    """Whether levels get the shares that are best for prefixes, not for ranges."""
    equal: bool = False
    """Whether all levels get the same share, as published."""

    def __post_init__(self) -> None:
        if whole(self.cells, "cells") > MOST_CELLS:
            raise InputError(f"A line has at most {MOST_CELLS:,} cells: merge some of them.")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many cells a node of each level below the total has: n, n/2, … 2."""
        return tuple(2**j for j in range((self.cells - 1).bit_length(), 0, -1))

    def measure(self, x: Counts) -> list[Counts]:
        """The total and the differences of all nodes that have cells, exactly."""
        u, differences = np.asarray(x, np.int64), []
        while len(u) > 1:
            left, right = u[::2], u[1::2]
            d, u = left.copy(), left.copy()
            d[: len(right)] -= right
            u[: len(right)] += right
            differences.append(d)
        return [u, *differences[::-1]]

    def blocks(self) -> tuple[tuple[int, int], ...]:
        """How many cells one number of each level counts as 1, and as -1, at most."""
        return ((self.cells, 0), *((size // 2, size // 2) for size in self.sizes))

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> tuple[Sensitivity, ...]:
        """How far one unit can move each level: it fills left halves, and another unit's rows come to right halves."""
        return tuple(
            placed(part, left, neighbours, signed=right > 0, alone=left + right >= self.cells)
            for left, right in self.blocks()
        )

    def shares(self, *, gaussian: bool) -> tuple[float, ...]:
        """The shares of least error for all ranges, or all prefixes; or equal ones."""
        return self.shares_for(typical(self.cells, prefixes=self.prefixes), gaussian=gaussian)

    def shares_for(
        self, workload: Energies, *, gaussian: bool, moved: Sequence[float] | None = None
    ) -> tuple[float, ...]:
        """The shares of least error for a workload; `moved` says how far a unit moves each level, if not all by 1."""
        energy = np.array(workload.by_exponent)[: len(self.sizes) + 1][::-1]
        a = np.diff(energy, prepend=0.0) / np.array([2.0 ** len(self.sizes), *self.sizes])
        cost = np.maximum(a, _LEAST * a.max()) * np.square(1.0 if moved is None else moved)
        weight = cost ** (0.0 if self.equal else 1 / 4 if gaussian else 1 / 3)
        return tuple((weight / (np.sqrt((weight**2).sum()) if gaussian else weight.sum())).tolist())

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """The inverse transform, with least squares where the line ends."""
        end = self._end
        blocks = end.fit([level[-1] for level in y[: len(end.rows)]], v)
        u: Floats = np.array([blocks.sum()])
        for level, d in enumerate(np.asarray(one, float) for one in y[1:]):
            u = _halves(u, d)
            if level < len(end.first):
                first, split = end.first[level], end.split[level]
                u = u if split else u[:-1]
                u[-1] = blocks[first + split :].sum()
                u[-1 - split] = blocks[first] if split else u[-1]
        return u

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The exact variance of each range: what the blocks add, and in each level the nodes of its two ends."""
        start, stop = np.asarray(low, np.int64), np.asarray(high, np.int64) + 1
        found = self._end.variances(start, stop, v)
        for size, one in zip(self.sizes, v[1:], strict=True):
            first, last = start // size * size, (stop - 1) // size * size
            square = self._coefficient(start, stop, first, size) ** 2
            square += np.where(first == last, 0.0, self._coefficient(start, stop, last, size) ** 2)
            found += one * square
        return found

    def _coefficient(self, start: Counts, stop: Counts, node: Counts, size: int) -> Floats:
        """(q in the left half) - (q in the right half) over the size, for nodes that have all of their cells."""
        middle = node + size // 2
        left = np.maximum(np.minimum(stop, middle) - np.maximum(start, node), 0)
        right = np.maximum(np.minimum(stop, node + size) - np.maximum(start, middle), 0)
        return np.where(node + size <= self.cells, (left - right) / size, 0.0)

    @cached_property
    def _end(self) -> "End":
        return End.of(self.cells)


def _halves(u: Floats, d: Floats) -> Floats:
    """The left and the right half of each node, from its sum and their difference."""
    found = np.empty((len(u), 2))
    np.add(u, d, out=found[:, 0])
    np.subtract(u, d, out=found[:, 1])
    found *= 0.5
    return found.ravel()


@dataclass(frozen=True)
class End:
    """The path to the end of a line: what the total and the differences on it measure of the blocks of its cells.

    >>> End.of(13).sizes
    (8, 4, 1)
    """

    sizes: tuple[int, ...]
    """The powers of two that `cells` is the sum of, falling."""
    first: tuple[int, ...]
    """The first block of the node on the path, level by level below the total."""
    split: tuple[bool, ...]
    """Whether that block is the node's left half; else the node's right half has no cells."""

    @classmethod
    def of(cls, cells: int) -> "End":
        """The path for that many cells; it stops at a node that has all of its cells."""
        sizes = tuple(2**j for j in range(cells.bit_length() - 1, -1, -1) if cells >> j & 1)
        first, split, block, rest, size = [], [], 0, cells, 1 << (cells - 1).bit_length()
        while rest < size:
            size //= 2
            first.append(block)
            split.append(rest > size)
            if rest > size:
                block, rest = block + 1, rest - size
        return cls(sizes, tuple(first), tuple(split))

    @cached_property
    def rows(self) -> Floats:
        """What is measured of the blocks: their total, then the difference of each node on the path."""
        at = np.arange(len(self.sizes))
        differences = [
            np.where(at < first, 0, np.where(split & (at > first), -1, 1))
            for first, split in zip(self.first, self.split, strict=True)
        ]
        return np.array([np.ones(len(self.sizes)), *differences], float)

    def _covariance(self, v: Sequence[float]) -> Floats:
        weighted = self.rows / np.asarray(v[: len(self.rows)], float)[:, None]
        return np.linalg.inv(self.rows.T @ weighted)

    def fit(self, y: Sequence[float], v: Sequence[float]) -> Floats:
        """Least squares of the blocks' sums."""
        known = np.asarray(y, float) / np.asarray(v[: len(self.rows)], float)
        found: Floats = self._covariance(v) @ (self.rows.T @ known)
        return found

    def variances(self, start: Counts, stop: Counts, v: Sequence[float]) -> Floats:
        """What the blocks add to the variance of ranges: a block in part counts in proportion."""
        ends = np.cumsum(self.sizes)
        inside = np.minimum(stop[..., None], ends) - np.maximum(start[..., None], ends - self.sizes)
        parts = np.maximum(inside, 0) / np.array(self.sizes)
        found: Floats = np.einsum("...i,ij,...j->...", parts, self._covariance(v), parts)
        return found
