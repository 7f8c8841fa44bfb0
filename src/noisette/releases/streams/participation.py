"""In how many steps one unit can take part, and how far it then moves numbers that are sums over earlier steps.

Vocabulary: `c` the weights by which an event enters the numbers of its own step and of each later one: they are not
negative and never grow · `columns` of the lower triangular matrix with c_(i-j) · `k` events.

The product of columns i <= j is the sum of c_m c_(m+j-i) over m < T - j: it falls with j and with j - i. So of all
patterns with at most one event a step and at least `apart` steps from one to the next, that of the first k such steps
is worst. Where one step may hold several events of a unit, all of them in the first step are worst: k times one.

Events may also take 1 away, such as people who leave. As no product of columns is negative, those that add and those
that take away are worst by themselves: |a - b|^2 <= |a|^2 + |b|^2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours

__all__ = ["ONCE", "Participation"]

Floats: TypeAlias = NDArray[np.float64]

_ROWS = 1 << 14  # of the matrix are summed exactly, or four times as many as the events reach
_WORK = 1 << 28  # additions; beyond, k times one is the bound
_UP = 1 + 1e-9  # beyond what sums of positive floats err by


@dataclass(frozen=True)
class Participation:
    """At most `events` of one unit in each of `groups` keys, with `apart` steps from one to the next.

    Where `apart` is 0, one step may hold several events. At most `taken` further ones in each key take 1 away.

    >>> one = Participation()
    >>> round(one.square(np.array([1.0, 0.5]), 2, lambda start, stop: 0.0), 6)
    1.25
    >>> round(Participation(2, apart=1).square(np.array([1.0, 0.5]), 2, lambda start, stop: 0.0), 6)  # 1, and 1/2 + 1
    3.25
    """

    events: int = 1
    apart: int = 0
    groups: int = 1
    taken: int = 0

    @property
    def total(self) -> int:
        """How many events there are at most."""
        return (self.events + self.taken) * self.groups

    def __post_init__(self) -> None:
        whole(self.events, "events")
        whole(self.groups, "groups")
        if isinstance(self.apart, bool) or not isinstance(self.apart, int) or self.apart < 0:
            raise InputError(
                "apart must be a whole number of steps, 0 if one step may hold several events of a person."
            )
        if self.taken and self.apart:
            raise InputError("Events that take away may come in any step: leave apart out.")

    def rows(self, horizon: int) -> int:
        """How many weights `square` should get."""
        return min(horizon, max(_ROWS, 4 * self.events * self.apart))

    def square(self, c: Floats, horizon: int, tail: Callable[[int, int], float]) -> float:
        """The largest square of a unit's move, rounded up: exact for the rows of c, a bound for those below them.

        `tail(start, stop)` is the sum of the squares of the weights from number `start` to below `stop`.
        """
        k, n = self.events, len(c)
        one = float(c @ c) + (tail(n, horizon) if n < horizon else 0.0)
        if self.apart == 0 or k * n > _WORK:
            return self.groups * (k * k + self.taken**2) * one * _UP
        moved, below = np.zeros(n), 0.0
        for start in range(0, min(k * self.apart, n), self.apart):
            moved[start:] += c[: n - start]
            below += math.sqrt(max(tail(n - start, horizon - start), 0.0)) if n < horizon else 0.0
        below += max(0, k - -(-n // self.apart)) * math.sqrt(one) if n < horizon else 0.0
        return self.groups * (float(moved @ moved) + below**2) * _UP

    def replaced(self, neighbours: Neighbours) -> Fraction:
        """By how much the square grows if another unit's events come where one's go.

        What one takes away adds to what the other brings: two groups of at most events + taken, each by itself.
        """
        if neighbours is Neighbours.ADD_REMOVE:
            return Fraction(1)
        return Fraction(2 * (self.events + self.taken) ** 2, self.events**2 + self.taken**2)


ONCE = Participation()
"""One event of each unit."""
