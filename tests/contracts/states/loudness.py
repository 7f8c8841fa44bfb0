"""Noise of which only a part is drawn: the twin that every adapter must convict."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

_PART = [Fraction(1)]


def part() -> Fraction:
    """The part of the stated noise that is drawn: 1, except in a twin."""
    return _PART[0]


@contextmanager
def quieter(share: float) -> Iterator[None]:
    """Draw a part of the noise only."""
    _PART[0] = Fraction(share).limit_denominator(1000)
    try:
        yield
    finally:
        _PART[0] = Fraction(1)


def surer(chance: float) -> float:
    """The chance of a coin whose odds are as much further from even as there is less noise."""
    if not 0 < chance < 1:
        return chance
    return 1 / (1 + math.exp(-math.log(chance / (1 - chance)) / float(part())))
