"""Scripted coins: walk every coin tape of a sampler with exact probabilities, or feed it chosen numbers.

A sampler takes its coins as the last positional argument. `walk` runs it once for each sequence of outcomes, depth
first, and drops what is less likely than `least`; so each value's probability is known to lie between its mass and
that mass plus what was dropped.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from noisette.exact.random import SystemRandom

Masses = dict[Hashable, Fraction]
PMF = Callable[[Any], Fraction]


class _DroppedError(Exception):
    """The tape has become too unlikely to follow."""


class _Tape:
    """One run's coins: repeats `path` as far as it goes, then takes the first outcome that can happen."""

    secure = False

    def __init__(self, path: list[tuple[int, int]], least: Fraction) -> None:
        self.path, self.least, self.at = path, least, 0
        self.numerator = self.denominator = 1  # of the tape's mass, not reduced: that would take most of the time

    @property
    def mass(self) -> Fraction:
        return Fraction(self.numerator, self.denominator)

    def _choose(self, options: int) -> int:
        if self.at == len(self.path):
            self.path.append((0, options))
        self.at += 1
        return self.path[self.at - 1][0]

    def _follow(self, numerator: int, denominator: int) -> None:
        self.numerator *= numerator
        self.denominator *= denominator
        if self.numerator * self.least.denominator < self.denominator * self.least.numerator:
            raise _DroppedError

    def below(self, n: int) -> int:
        choice = self._choose(n)
        self._follow(1, n)
        return choice

    def bits(self, count: int) -> int:
        return self.below(1 << count)

    def flip(self, numerator: int, denominator: int) -> bool:
        if numerator in (0, denominator):
            return numerator > 0
        heads = self._choose(2) == 0
        self._follow(numerator if heads else denominator - numerator, denominator)
        return heads

    def words(self, count: int, dtype: type) -> np.ndarray:
        return np.array([self.bits(8 * np.dtype(dtype).itemsize) for _ in range(count)], dtype)


def walk(
    attempt: Callable[..., Hashable], *arguments: object, least: Fraction | int = Fraction(1, 10**5)
) -> tuple[Masses, Fraction]:
    """Return each value's exact mass over all tapes at least that likely, and the mass of the others."""
    masses: Masses = defaultdict(Fraction)
    dropped, path = Fraction(0), []
    while True:
        tape = _Tape(path, least)
        try:
            value = attempt(*arguments, tape)
            masses[value] += tape.mass
        except _DroppedError:
            dropped += tape.mass
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return dict(masses), dropped
        path[-1] = (path[-1][0] + 1, path[-1][1])


def misfits(walked: tuple[Masses, Fraction], pmf: PMF, support: Iterable[Hashable] = ()) -> dict[Hashable, str]:
    """Say which values cannot have the probability `pmf`, given that the attempt is repeated until it is not None."""
    masses, dropped = walked
    decided = sum(mass for value, mass in masses.items() if value is not None) + dropped
    faults = {}
    for value in {*masses, *support} - {None}:
        low = masses.get(value, 0) / decided
        if not low <= pmf(value) <= low + dropped / decided:
            faults[value] = f"{float(low)} <= {float(pmf(value))} <= {float(low + dropped / decided)} is wrong"
    return faults


def exact(number: mpmath.mpf) -> Fraction:
    """Return a high-precision number as a fraction."""
    return Fraction(*mpmath.libmp.to_rational(mpmath.mpf(number)._mpf_))


def exp(x: Fraction | int) -> Fraction:
    """Return e^x, right to 60 digits."""
    with mpmath.workdps(70):
        return exact(mpmath.exp(mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator))


class Script:
    """Coins that are the numbers given, one for each call; asking for more is an IndexError."""

    secure = False

    def __init__(self, *numbers: int) -> None:
        self.left = list(numbers)

    def bits(self, count: int) -> int:
        number = self.left.pop(0)
        assert 0 <= number < 1 << count
        return number

    def below(self, n: int) -> int:
        return self.bits(n.bit_length())

    def flip(self, numerator: int, denominator: int) -> bool:
        return self.below(denominator) < numerator

    def words(self, count: int, dtype: type) -> np.ndarray:
        return np.full(count, self.left.pop(0), dtype)


class Forced(SystemRandom):
    """The system's coins, but every bit of every word is the one given."""

    secure = False

    def __init__(self, bit: int) -> None:
        self.bit = bit

    def words(self, count: int, dtype: type) -> np.ndarray:
        return np.full(count, np.iinfo(dtype).max * self.bit, dtype)
