"""What a strategy asks of the exact counts, number by number: drawn once, and read again for ever.

A strategy walks down its boxes and asks for noisy numbers. While it measures, each question is answered from the exact
counts and written down; while it reads, the same questions are answered by what was written. A walk never sees the
counts themselves, so what it does next depends on released numbers alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.exact.random import Random

__all__ = ["Ask", "Draw", "Sums", "box_sums", "drawn", "repeated", "summed"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Sums:
    """Exact counts of boxes of cells, from a summed-area table.

    >>> sums = Sums.of(np.arange(6).reshape(2, 3), (2, 3))
    >>> sums.within(np.array([[0, 0], [1, 1]]), np.array([[2, 3], [2, 2]])).tolist()
    [15, 4]
    """

    table: Ints

    @classmethod
    def of(cls, x: Any, shape: tuple[int, ...]) -> "Sums":
        """The table of counts of all cells."""
        counts = np.asarray(x)
        if counts.shape != shape or counts.dtype.kind not in "iu":
            raise InputError(f"There must be one whole number for each cell of a map of {shape} cells.")
        return cls(summed(counts.astype(np.int64, copy=False)))

    def within(self, low: Ints, high: Ints) -> Ints:
        """The number in each box, from the cell `low` to below the cell `high`."""
        return box_sums(self.table, low, high)


def summed(x: NDArray[Number]) -> NDArray[Number]:
    """The summed-area table: the sum of all cells before each corner, with a corner more than cells along each axis."""
    table = np.pad(x, [(1, 0)] * x.ndim)
    for axis in range(x.ndim):
        np.cumsum(table, axis=axis, out=table)
    return table


def box_sums(table: NDArray[Number], low: Ints, high: Ints) -> NDArray[Number]:
    """The sum of each box from a summed-area table."""
    axes = low.shape[1]
    found = np.zeros(len(low), table.dtype)
    for upper in product((False, True), repeat=axes):
        found += (-1) ** (axes - sum(upper)) * table[tuple(np.where(upper, high, low).T)]
    return found


Draw: TypeAlias = Callable[[Sums, Random], Any]
"""Draws some noisy numbers of the exact counts."""

Ask: TypeAlias = Callable[[int, Draw], Floats]
"""The next numbers of a transcript: how many they are, and how they are drawn."""


def drawn(walk: Callable[[Ask], object], sums: Sums, rng: Random) -> Floats:
    """Walk on the exact counts: all numbers that were drawn, in their order."""
    numbers = [np.zeros(0)]

    def ask(many: int, draw: Draw) -> Floats:
        numbers.append(np.asarray(draw(sums, rng) if many else (), float))
        return numbers[-1]

    walk(ask)
    return np.concatenate(numbers)


def repeated(released: Floats) -> Ask:
    """The answers of a walk that was drawn before."""
    place = 0

    def ask(many: int, draw: Draw) -> Floats:
        nonlocal place
        place += many
        if place > len(released):
            raise PrivacyError("The numbers of a kept map are incomplete: restore a backup of the ledger.")
        return released[place - many : place]

    return ask
