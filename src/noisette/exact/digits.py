"""Geometric variables of any scale, one- or two-sided, digit by digit.

The base-256 digits of a geometric variable are independent, so each is drawn from a `Table` of its own. The top digit
carries the sign and, by memorylessness, an unbounded tail. Two-sided: z = g XOR -sign with sign ~ Bernoulli(q/(1+q)),
which gives P(z) = (1-q)/(1+q) q^|z| and counts zero once.

Vocabulary: `scale` in grid units · `q` = e^(-1/scale) · `rate` of one digit: P(d) ∝ e^(-rate d).
"""

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers
from noisette.exact.number import floor_log2
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds
from noisette.exact.table import TAIL_BITS, Cumulative, Table, Tail

__all__ = ["Digits"]

DIGIT: Final = 8
WIDEST_TOP: Final = 24  # a top table of this scale still leaves 99 % of its cells uncrowded


def _powers(rate: Fraction, count: int, bits: int) -> list[int]:
    """e^(-rate j), j = 0 .. count, in units of 2^-bits, each within 2j + 2 units."""
    ratio, power = exp_bounds(-rate, bits)[0], 1 << bits
    powers = [power]
    for _ in range(count):
        power = (power * ratio) >> bits
        powers.append(power)
    return powers


def _digit_law(rate: Fraction) -> Cumulative:
    """One base-256 digit: P(d) proportional to e^(-rate d)."""
    base = 1 << DIGIT
    slack = max(0, -floor_log2(rate * base)) + 8

    def cumulative(bits: int) -> tuple[list[int], int]:
        places = bits + slack
        powers = _powers(rate, base, places)
        whole_mass = (1 << places) - powers[base]
        points = [(((1 << places) - p) << bits) // whole_mass for p in powers[1:base]]
        return points, 2 + ((8 * base) << bits) // whole_mass

    return cumulative


def _top_law(scale: Fraction, rate: Fraction, atoms: int, *, two_sided: bool) -> Cumulative:
    """The top digit H on -atoms .. atoms-1 (or 0 .. atoms-1): P(H >= h) ∝ e^(-rate h), P(H < 0) = q/(1+q)."""

    def cumulative(bits: int) -> tuple[list[int], int]:
        one = 1 << bits
        powers = _powers(rate, atoms, bits)
        if not two_sided:
            return [one - p for p in powers[1:atoms]], 4 * atoms
        q = exp_bounds(-1 / scale, bits)[0]
        lower = [p * q // (one + q) for p in reversed(powers[:atoms])]
        upper = [one - (p << bits) // (one + q) for p in powers[1:atoms]]
        return lower + upper, 8 * atoms

    return cumulative


class Digits:
    """A geometric variable of one scale as tables: the top digit with the sign, then the lower digits."""

    def __init__(self, scale: Fraction, *, two_sided: bool) -> None:
        lower = 0
        while scale > WIDEST_TOP << (DIGIT * lower):
            lower += 1
        self.shift = DIGIT * lower
        rate = (1 << self.shift) / scale
        atoms = math.ceil(TAIL_BITS * math.log(2) / rate) + 1
        first = -atoms if two_sided else 0
        law = _top_law(scale, rate, atoms, two_sided=two_sided)
        self.top = Table(law, first, _geometric_tail(1 / rate, first, atoms - 1))
        self.lower = [Table(_digit_law((1 << (DIGIT * i)) / scale), 0) for i in reversed(range(lower))]

    def one(self, rng: Random) -> int:
        """Draw one integer."""
        top = self.top.one(rng)
        sign = -(top < 0)
        g = top ^ sign
        for table in self.lower:
            g = (g << DIGIT) | table.one(rng)
        return g ^ sign

    def fill(self, out: NDArray[np.int64], rng: Random) -> dict[int, int]:
        """Fill a chunk; draws from the tail or beyond int64 are returned as {position: value}."""
        far = self.top.fill(out, rng)
        if not self.lower:
            return far
        sign = out >> 63
        out ^= sign
        far |= {int(i): int(out[i] ^ sign[i]) for i in np.flatnonzero(out >> (63 - self.shift))}
        digit = np.empty_like(out)
        for table in self.lower:
            table.fill(digit, rng)
            out <<= DIGIT
            out |= digit
        low = {i: int(out[i]) & ((1 << self.shift) - 1) for i in far}
        out ^= sign
        return {i: (((top ^ -(top < 0)) << self.shift) | low[i]) ^ -(top < 0) for i, top in far.items()}


def _geometric_tail(scale: Fraction, first: int, last: int) -> Tail:
    """Beyond either end a geometric variable begins anew (memorylessness); below a first atom of 0 there is nothing."""

    def tail(upper: bool, rng: Random) -> int:
        if upper:
            return last + samplers.geometric(scale, rng)
        return first - samplers.geometric(scale, rng) if first else first

    return tail
