"""The square root of the prefix sums, for Gaussian noise: six to nine per cent above what no strategy can beat.

Vocabulary: `c` the coefficients of (1 - z)^(-1/2), c_0 = 1, c_k = c_(k-1) (2k - 1)/(2k) · `C` the lower triangular
matrix with c_(i-j) · `n` cells · `g` the series 1/c · `b` its running sums.

C C is the matrix of prefix sums. Measure C x with Gaussian noise and multiply by C: the error of prefix t has the
standard deviation sigma sqrt(S_n S_t), S_t the sum of the first t squares of c, where sigma is for a row at distance 1.
[Fichtenberger-Henzinger-Upadhyay 2023; Henzinger-Upadhyay-Upadhyay 2023]

In whole numbers: c is rounded to multiples of 2^-20, in public, and C x is measured exactly in these units. All that
follows is about the rounded coefficients, which still fall and are not negative: the longest column is the first, and
estimates use the inverse of the rounded matrix, so that they are unbiased.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.convolution import convolved, transformed
from noisette.exact.integers import magnitude
from noisette.exact.number import whole
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution

__all__ = ["SquareRoot"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

MOST_CELLS = 1 << 22
_UNIT = 1 << 20


@dataclass(frozen=True)
class SquareRoot:
    """C x in units of 2^-20, one number for each cell.

    >>> root = SquareRoot(1024)
    >>> (moved,) = root.sensitivities(Contribution(1, 1, 1), Neighbours.ADD_REMOVE)
    >>> variance = float(moved.l2_squared)      # of noise for mu = 1
    >>> root.variances(np.array([0, 0]), np.array([0, 1023]), [variance]).round(4).tolist()
    [3.2726, 10.7096]
    """

    cells: int

    def __post_init__(self) -> None:
        if whole(self.cells, "cells") > MOST_CELLS:
            raise InputError(f"The square root of prefix sums has at most {MOST_CELLS:,} cells: merge some of them.")

    def measure(self, x: Counts) -> list[Counts]:
        """C x, exactly."""
        return [convolved(_coefficients(self.cells), np.asarray(x, np.int64))]

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> tuple[Sensitivity]:
        """How far one unit can move C x.

        Products of columns i <= j fall with j and with j - i, so a unit is worst if it fills the first cells, one after
        the other. Under replace no product of columns is negative, so that the squares of both units' moves bound that
        of their difference; for a unit whose rows may all lie in one cell, the first cell and the cell that is worst
        together with it attain the maximum. The l1 norm under replace is a bound.   (docs/proofs/linear-strategies.md)
        """
        full, rest = divmod(part.total, part.rows)
        filled = np.array(([part.rows] * full + [rest] * (rest > 0))[: self.cells], np.int64)
        c = _coefficients(self.cells)
        moved = convolved(c, np.pad(filled, (0, self.cells - len(filled)))) if len(filled) > 1 else part.total * c
        narrow = magnitude(moved) ** 2 * self.cells < 2**62
        moved = moved if narrow else moved.astype(object)
        l1, square, most = int(moved.sum()), int(moved @ moved), int(filled @ c[: len(filled)])
        if neighbours is Neighbours.ADD_REMOVE:
            return (Sensitivity(l1, square, most, self.cells, neighbours=neighbours),)
        apart = min(2 * square, part.total**2 * _furthest(self.cells))
        return (Sensitivity(2 * l1, max(apart, square), most, self.cells, neighbours=neighbours),)

    def shares(self, *, gaussian: bool) -> tuple[float]:
        """All of the promise, for the one level."""
        return (1.0,)

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """The inverse."""
        return transformed(_inverse(self.cells), np.asarray(y[0], float))

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The exact variance of each range: O(1) for a prefix, O(low) for another one."""
        start, stop = np.broadcast_arrays(np.asarray(low, np.int64), np.asarray(high, np.int64) + 1)
        b, square = _spreads(self.cells)
        found: Floats = square[start] + square[stop]
        inner = start > 0
        pairs, which = np.unique(np.stack([start[inner], stop[inner]]), axis=1, return_inverse=True)
        both = np.array([b[:s] @ b[t - s : t] for s, t in pairs.T])
        found[inner] -= 2 * both[which.ravel()] if len(both) else 0.0
        return v[0] * found


def _root(cells: int) -> Floats:
    k = np.arange(1, cells)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


@lru_cache(maxsize=8)
def _coefficients(cells: int) -> Counts:
    """c in units of 2^-20, rounded: whole numbers that do not grow."""
    return np.rint(_UNIT * _root(cells)).astype(np.int64)


@lru_cache(maxsize=8)
def _furthest(cells: int) -> int:
    """The largest square of the distance of the first column to another one, or to none."""
    c = _coefficients(cells)
    squares = np.cumsum(c * c)
    products = convolved(c[::-1], c)[::-1]
    return int(max(squares[-1], (squares[-1] + squares[::-1] - 2 * products).max()))


@lru_cache(maxsize=8)
def _inverse(cells: int) -> Floats:
    """The series 1/c of the rounded coefficients, by Newton's iteration from (1 - z)^(1/2)."""
    k, c = np.arange(1, cells), _coefficients(cells) / _UNIT
    g = np.concatenate([[1.0], np.cumprod((2 * k - 3) / (2 * k))])
    for _ in range(2):
        error = transformed(c, g)
        error[0] -= 1
        g = g - transformed(g, error)
    return g / _UNIT


@lru_cache(maxsize=8)
def _spreads(cells: int) -> tuple[Floats, Floats]:
    """b, by which noise enters prefixes, and the sums of its first squares, to a relative 1e-11.

    With c + r for the rounded series, b = c^2/(c + r) = c - r + r^2/c - …, and r is at most 2^-21.
    """
    b = (2 * _root(cells) - _coefficients(cells) / _UNIT) / _UNIT
    return b, np.concatenate([[0.0], np.cumsum(b**2)])
