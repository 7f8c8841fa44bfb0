"""The exact tables that a synthesiser reads: counts of single attributes, and of pairs of coarsened ones.

An attribute is a number of codes 0 .. size - 1. A coarsening says in which bin each code lies, and follows from
released numbers alone. So one row counts once in every table, and a unit of k rows moves each by at most k rows in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError

__all__ = ["Attribute", "Coarse", "CodedRows", "Pair", "Tables"]

Counts: TypeAlias = NDArray[np.int64]
Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Attribute:
    """How many values a column has, whether their order means something, and whether the last of them is NULL."""

    name: str
    size: int
    ordered: bool = False
    nullable: bool = False


@dataclass(frozen=True)
class Coarse:
    """In which bin each code of an attribute lies."""

    bin_of: Counts
    bins: int

    @property
    def widths(self) -> Counts:
        """How many codes each bin has."""
        return np.bincount(self.bin_of, minlength=self.bins)

    @property
    def merged(self) -> int:
        """How many codes share their bin with others."""
        widths = self.widths
        return int(widths[widths > 1].sum())


class Tables(Protocol):
    """Exact counts: they never leave the release without noise."""

    def one_way(self, i: int) -> Counts:
        """How many rows have each code of an attribute."""
        ...

    def pairs(self, coarse: Sequence[Coarse], wanted: Sequence[Pair]) -> dict[Pair, Counts]:
        """How many rows lie in each pair of bins, bins of i by bins of j, for pairs i < j."""
        ...


@dataclass(frozen=True)
class CodedRows:
    """Tables of an array of codes, one row a record and one column an attribute.

    >>> rows = CodedRows.of([[0, 1], [2, 1], [2, 0]], (3, 2))
    >>> bins = [Coarse(np.arange(3), 3), Coarse(np.arange(2), 2)]
    >>> rows.one_way(0).tolist(), rows.pairs(bins, [(0, 1)])[0, 1].tolist()
    ([1, 0, 2], [[0, 1], [0, 0], [1, 1]])
    """

    codes: tuple[Counts, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(codes: Any, sizes: Sequence[int]) -> "CodedRows":
        """Read an array of codes, or refuse codes that an attribute does not have."""
        read = np.asarray(codes, np.int64).reshape(-1, len(sizes))
        if read.size and (read.min() < 0 or (read >= np.asarray(sizes)).any()):
            raise InputError("A code is not one of its attribute: codes go from 0 to below the attribute's size.")
        return CodedRows(tuple(np.ascontiguousarray(column) for column in read.T), tuple(sizes))

    def one_way(self, i: int) -> Counts:
        """How many rows have each code of an attribute."""
        return np.bincount(self.codes[i], minlength=self.sizes[i])

    def pairs(self, coarse: Sequence[Coarse], wanted: Sequence[Pair]) -> dict[Pair, Counts]:
        """How many rows lie in each pair of bins."""
        bins = [one.bin_of[codes] for one, codes in zip(coarse, self.codes, strict=True)]
        return {(i, j): pair_counts(bins[i], bins[j], (coarse[i].bins, coarse[j].bins)) for i, j in wanted}


def pair_counts(first: Counts, second: Counts, shape: Pair) -> Counts:
    """How many rows lie in each pair of bins."""
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)


def all_pairs(attributes: int) -> list[Pair]:
    """Every pair of attributes."""
    return list(combinations(range(attributes), 2))
