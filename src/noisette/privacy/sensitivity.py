"""Sensitivity: how far one person can move an answer, exactly, in every norm and under either relation.

    >>> from noisette.privacy import sensitivity
    >>> sensitivity.total((0, 10)).l1, sensitivity.histogram(neighbours=Neighbours.REPLACE).l1
    (Fraction(10, 1), Fraction(2, 1))

Each norm is maximised by itself over all pairs of neighbouring tables. The maxima are attained, so no smaller
number is right, except for l1 under replace of `second_moments` and of `covariance_parts`, as their docstrings say. An
irrational maximum is rounded up. Bounds are promises: clamp the values to them first.

Vocabulary: `bounds` (low, high) of a value · R = high - low, `width` in code · `n` size of the table · `d`
dimension of a row · r = `radius`, its largest length |x|_2 · `k` a number of counts or rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Annotated, Literal, TypeAlias

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Exact, frozen
from noisette.exact.number import Number, fraction, whole
from noisette.exact.rational import sqrt_up
from noisette.privacy.columns import Matrix, integer_columns, longest
from noisette.privacy.neighbours import Neighbours, Relation

__all__ = [
    "Sensitivity", "count", "counts", "covariance_parts", "histogram", "maximum", "mean", "mean_parts",
    "median", "minimum", "normalised", "quantile", "second_moments", "size", "total", "variance",
    "variance_parts", "workload",
]  # fmt: skip

Bounds: TypeAlias = tuple[Number, Number]

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


@frozen
class Sensitivity:
    """How far one person can move an answer f: the largest |f(x) - f(x')| of neighbours x, x', in each norm.

    `l0` is how many of its numbers can move; the square of `l2` is kept, because it is rational.

    >>> Sensitivity(3, 5, 2, 2, neighbours=Neighbours.REPLACE).times(2)
    Sensitivity(l1='6', l2_squared='20', linf='4', l0=4, neighbours=REPLACE)
    """

    l1: Exact
    l2_squared: Exact
    linf: Exact
    l0: Annotated[int, partial(whole, least=0)]
    _: KW_ONLY
    neighbours: Relation

    def __post_init__(self) -> None:
        if min(self.l1, self.linf) < 0 or not self.linf**2 <= self.l2_squared <= self.l1**2:
            raise InputError("A sensitivity has 0 <= linf <= l2 <= l1: check the order of its numbers.")
        if (self.l0 == 0) != (self.l1 == 0):
            raise InputError("l0 must be how many numbers can move: 0 if l1 is 0, at least 1 if it is not.")

    @property
    def l2(self) -> Fraction:
        """The Euclidean norm: the root of `l2_squared`, rounded up where it is not rational."""
        return sqrt_up(self.l2_squared)

    def norm(self, p: float | Literal["inf"]) -> Fraction:
        """Return the sensitivity in the norm p = 1, 2 or infinity (`math.inf` or 'inf').

        >>> mean_parts((0, 4)).norm(1), mean_parts((0, 4)).norm("inf")
        (Fraction(3, 1), Fraction(2, 1))
        """
        if p not in (1, 2, math.inf, "inf"):
            raise InputError("The norm p must be 1, 2 or 'inf'.")
        return self.l1 if p == 1 else self.l2 if p == 2 else self.linf

    def times(self, k: int) -> Sensitivity:
        """Return the sensitivity for a person with k rows: k steps between neighbours, each norm times k.

        `l0` grows to k l0; an answer of fewer numbers has a smaller one, but its length is not known here.

        >>> count().times(3).l1
        Fraction(3, 1)
        """
        k = whole(k, "k")
        return self._stretched(k, k * self.l0)

    def scaled(self, c: Number) -> Sensitivity:
        """Return the sensitivity of c times the answer: each norm times |c|.

        >>> histogram(neighbours=Neighbours.REPLACE).scaled("1/100").l1
        Fraction(1, 50)
        """
        factor = abs(fraction(c, "c"))
        return self._stretched(factor, self.l0 if factor else 0)

    def _stretched(self, c: Fraction | int, l0: int) -> Sensitivity:
        l1, l2_squared, linf = c * self.l1, c**2 * self.l2_squared, c * self.linf
        return Sensitivity(l1, l2_squared, linf, l0, neighbours=self.neighbours)

    def __repr__(self) -> str:
        """Show the norms as exact numbers."""
        norms = f"l1='{self.l1}', l2_squared='{self.l2_squared}', linf='{self.linf}', l0={self.l0}"
        return f"Sensitivity({norms}, neighbours={self.neighbours.name})"


def _joint(neighbours: Neighbours, *moves: Fraction | int) -> Sensitivity:
    """The sensitivity of numbers that one person can move by at most these amounts, all at once."""
    l2_squared = sum((Fraction(move) ** 2 for move in moves), Fraction(0))
    l0 = sum(move != 0 for move in moves)
    return Sensitivity(sum(moves), l2_squared, max(moves), l0, neighbours=neighbours)


def _bounds(bounds: Bounds) -> tuple[Fraction, Fraction]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InputError("bounds must be a pair (low, high) such as (0, 1).")
    low, high = fraction(bounds[0], "low"), fraction(bounds[1], "high")
    if low >= high:
        raise InputError("bounds must be a pair (low, high) with low below high: check their order.")
    return low, high


def _width(bounds: Bounds) -> Fraction:
    low, high = _bounds(bounds)
    return high - low


def _radius(radius: Number) -> Fraction:
    number = fraction(radius, "radius")
    if number <= 0:
        raise InputError("radius must be above 0: it is the largest length |x|_2 that a row can have.")
    return number


def _public(n: int, neighbours: Neighbours, instead: str) -> int:
    """Read a public size, which it is under replace only."""
    if neighbours is ADD_REMOVE:
        raise InputError(
            f"Under add/remove the size n is private: release {instead} instead, "
            "or pass neighbours=Neighbours.REPLACE if n is public."
        )
    return whole(n, "n")


# Counts


def count(*, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """How many rows satisfy a condition: 1 under both relations.

    >>> count().l1
    Fraction(1, 1)
    """
    return _joint(neighbours, 1)


def counts(k: int, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """k counts of conditions, all of which one row may satisfy: l1 = k, l2^2 = k, linf = 1 under both relations.

    >>> counts(4).l1, counts(4).l2
    (Fraction(4, 1), Fraction(2, 1))
    """
    k = whole(k, "k")
    return Sensitivity(k, k, 1, k, neighbours=neighbours)


def normalised(k: int, n: int, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """k counts divided by a public size n, replace only: l1 = k/n, l2^2 = k/n^2, linf = 1/n.

    >>> normalised(4, 100, neighbours=Neighbours.REPLACE).l1
    Fraction(1, 25)
    """
    n = _public(n, neighbours, "counts(k) and size()")
    return counts(k, neighbours=neighbours).scaled(Fraction(1, n))


def histogram(*, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """Counts of disjoint conditions: 1 under add/remove; l1 = 2, l2^2 = 2, linf = 1 under replace.

    For shares of a public size n, use `.scaled(Fraction(1, n))` of the latter.

    >>> histogram().l1, histogram(neighbours=Neighbours.REPLACE).l1
    (Fraction(1, 1), Fraction(2, 1))
    """
    return _joint(neighbours, 1, 1) if neighbours is REPLACE else _joint(neighbours, 1)


def size(*, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The size n of the table itself: 1 under add/remove, 0 under replace, where it is public.

    >>> size().l1, size(neighbours=Neighbours.REPLACE).l1
    (Fraction(1, 1), Fraction(0, 1))
    """
    return _joint(neighbours, 0 if neighbours is REPLACE else 1)


# Sums, means, variances


def total(bounds: Bounds, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The sum of values in [low, high]: max(|low|, |high|) under add/remove, R under replace.

    >>> total((-2, 5)).l1, total((-2, 5), neighbours=Neighbours.REPLACE).l1
    (Fraction(5, 1), Fraction(7, 1))
    """
    low, high = _bounds(bounds)
    return _joint(neighbours, high - low if neighbours is REPLACE else max(abs(low), abs(high)))


def mean(bounds: Bounds, n: int, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The mean of n values in [low, high], n public, replace only: R/n.

    >>> mean((0, 1), 50, neighbours=Neighbours.REPLACE).l1
    Fraction(1, 50)
    """
    n = _public(n, neighbours, "the sum and the count of mean_parts(bounds)")
    return _joint(neighbours, _width(bounds) / n)


def mean_parts(bounds: Bounds, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The pair (sum of x - middle, n), whose ratio plus the middle is the mean where n is private.

    Add/remove moves it by up to (R/2, 1) at once, replace by (R, 0).

    >>> mean_parts((0, 10))
    Sensitivity(l1='6', l2_squared='26', linf='5', l0=2, neighbours=ADD_REMOVE)
    """
    width = _width(bounds)
    return _joint(neighbours, width) if neighbours is REPLACE else _joint(neighbours, width / 2, 1)


def variance(bounds: Bounds, n: int, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The variance (1/n) sum (x - mean)^2 of n values in [low, high], n public, replace only: R^2 (n-1)/n^2.

    Attained where one value moves from low to high and all others are low.

    >>> variance((0, 1), 10, neighbours=Neighbours.REPLACE).l1
    Fraction(9, 100)
    """
    n = _public(n, neighbours, "variance_parts(bounds)")
    return _joint(neighbours, _width(bounds) ** 2 * (n - 1) / n**2)


def variance_parts(bounds: Bounds, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The triple (n, sum of x - middle, sum of (x - middle)^2): it yields the variance where n is private.

    Add/remove moves it by up to (1, R/2, R^2/4) at once. Replace moves it by (0, u, u v), where u = |x - x'|,
    v = |x + x'| about the middle and u + v <= R. The largest u + u v is R up to R = 1, then (1 + R)^2/4; the
    largest u^2 + (u v)^2 is R^2 up to about R = 3.33, then (R^4 + 20 R^2 - 8 + R (R^2 - 8)^(3/2)) / 32.

    >>> variance_parts((0, 2)).l1, variance_parts((0, 2), neighbours=Neighbours.REPLACE).l1
    (Fraction(3, 1), Fraction(9, 4))
    """
    width = _width(bounds)
    square = width**2
    if neighbours is not REPLACE:
        return _joint(neighbours, 1, width / 2, square / 4)
    l1 = width if width <= 1 else (1 + width) ** 2 / 4
    inner = square - 8  # where it is negative, u^2 (1 + (R - u)^2) grows all the way to u = R
    peak = (square**2 + 20 * square - 8 + width * inner * sqrt_up(inner)) / 32 if inner > 0 else Fraction(0)
    return Sensitivity(l1, max(square, peak), max(width, square / 4), 2, neighbours=neighbours)


# Matrices


def second_moments(d: int, radius: Number, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The matrix sum x x^T of rows |x|_2 <= r in d dimensions, all d^2 entries counted.

    Add/remove: |x x^T|_F = |x|^2 = r^2, l1 = |x|_1^2 = d r^2, linf = r^2.
    Replace: |x x^T - y y^T|_F^2 = |x|^4 + |y|^4 - 2 (x.y)^2 <= 2 r^4, hence l1 <= sqrt(2) d r^2, which is
    attained for even d and an upper bound for odd d; linf = r^2. In one dimension all norms are r^2.

    >>> second_moments(3, 1).l1, second_moments(3, 1, neighbours=Neighbours.REPLACE).l2_squared
    (Fraction(3, 1), Fraction(2, 1))
    """
    d, r2 = whole(d, "d"), _radius(radius) ** 2
    if d == 1:
        return _joint(neighbours, r2)
    if neighbours is not REPLACE:
        return Sensitivity(d * r2, r2**2, r2, d**2, neighbours=neighbours)
    return Sensitivity(sqrt_up(2 * (d * r2) ** 2), 2 * r2**2, r2, d**2, neighbours=neighbours)


def covariance_parts(d: int, radius: Number, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The triple (n, sum x, sum x x^T) of rows |x|_2 <= r in d dimensions, of which the covariance follows.

    Add/remove: l2^2 = 1 + r^2 + r^4, l1 = 1 + sqrt(d) r + d r^2.
    Replace: l2^2 is the largest 2 r^2 + 2 r^4 - 2 (c + c^2), where c = x.y lies between -r^2 and r^2; l1 is
    an upper bound, the smaller of sqrt(d + d^2) l2 and the sum of both parts' own.
    One dimension: the same as `variance_parts((-r, r))`.

    >>> covariance_parts(3, 1).l2_squared, covariance_parts(3, 1, neighbours=Neighbours.REPLACE).l2_squared
    (Fraction(3, 1), Fraction(9, 2))
    """
    d, r = whole(d, "d"), _radius(radius)
    if d == 1:
        return variance_parts((-r, r), neighbours=neighbours)
    if neighbours is not REPLACE:
        l1, linf = 1 + sqrt_up(d * r**2) + d * r**2, max(Fraction(1), r**2)
        return Sensitivity(l1, 1 + r**2 + r**4, linf, 1 + d + d**2, neighbours=neighbours)
    l2_squared = 2 * r**4 + 2 * r**2 + Fraction(1, 2) if 2 * r**2 >= 1 else 4 * r**2
    apart = sqrt_up(4 * d * r**2) + second_moments(d, r, neighbours=neighbours).l1
    l1 = min(apart, sqrt_up((d + d**2) * l2_squared))
    return Sensitivity(l1, l2_squared, max(2 * r, r**2), d + d**2, neighbours=neighbours)


# Order statistics


def quantile(bounds: Bounds, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """A quantile of values in [low, high], the value of some row: R under both relations.

    This is the global sensitivity, and it is useless: noise as wide as the bounds, however large the table.
    Use a mechanism made for quantiles instead. `minimum`, `median` and `maximum` are quantiles too; an empty
    table is taken to answer some value in [low, high].

    >>> median((1, 300), neighbours=Neighbours.REPLACE).l1
    Fraction(299, 1)
    """
    return _joint(neighbours, _width(bounds))


minimum = median = maximum = quantile


# Linear workloads


def workload(matrix: Matrix, *, neighbours: Neighbours = ADD_REMOVE) -> Sensitivity:
    """The answers W h to a workload W (queries x cells) on a histogram h.

    Add/remove: the longest column, max_j |W e_j|.
    Replace: the longest difference of two columns, max_jl |W (e_j - e_l)|, often less than twice that.
    All norms are exact; a float is read as the binary number that it is.

    >>> prefix = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> workload(prefix).l1, workload(prefix, neighbours=Neighbours.REPLACE).l1
    (Fraction(3, 1), Fraction(2, 1))
    """
    columns, unit = integer_columns(matrix)
    replace = neighbours is REPLACE
    spread = columns.max(axis=0) - columns.min(axis=0) if replace else abs(columns)
    l1, l2_squared, l0 = (longest(columns, p, replace) for p in (1, 2, 0))
    return Sensitivity(l1, l2_squared, int(spread.max()), l0, neighbours=neighbours).scaled(unit)
