"""Geometric variables of any scale, one- or two-sided, in three parts: top, middle digit, low places.

The digits of a geometric variable are independent, so each part is drawn by itself: the top and the middle digit from a
`Table`, the low places of large scales by rejection from the uniform law, to which they are close. The top carries the
sign and, by memorylessness, an unbounded tail. Two-sided: z = g XOR -sign with sign ~ Bernoulli(q/(1+q)), which gives
P(z) = (1-q)/(1+q) q^|z| and counts zero once.   Proof: docs/proofs/exact-noise.md

Vocabulary: `scale` in grid units · `q` = e^(-1/scale) · `rate` of one part: P(d) ∝ e^(-rate d) · g = top,
middle, low places in a row.
"""

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds
from noisette.exact.table import TAIL_BITS, Cumulative, Table, Tail

__all__ = ["Digits"]

WIDEST_TOP: Final = 40  # a top table of this scale leaves 97 % of its cells uncrowded
WIDEST_MIDDLE: Final = 10  # bits; leaves 98 % of its cells uncrowded


class Digits:
    """A geometric variable of one scale, ready to be drawn."""

    def __init__(self, scale: Fraction, *, two_sided: bool) -> None:
        self.scale = scale
        self.shift = max(0, (math.ceil(scale / WIDEST_TOP) - 1).bit_length())  # bits below the top
        self.middle_bits = min(self.shift, WIDEST_MIDDLE)
        self.low_bits = self.shift - self.middle_bits
        rate = (1 << self.shift) / scale
        atoms = math.ceil(TAIL_BITS * math.log(2) / rate) + 1
        first = -atoms if two_sided else 0
        law = _top_law(scale, rate, atoms, two_sided=two_sided)
        self.top = Table(law, first, _geometric_tail(1 / rate, first, atoms - 1))
        self.middle = Table(_digit_law((1 << self.low_bits) / scale, 1 << self.middle_bits), 0)
        self.surely = math.floor((1 - (1 << self.low_bits) / scale) * 2**32) - 1  # low places are kept with >= this

    def one(self, rng: Random) -> int:
        """Draw one integer."""
        top = self.top.one(rng)
        if not self.shift:
            return top
        sign = -(top < 0)
        g = top ^ sign
        if self.middle_bits:
            g = (g << self.middle_bits) | self.middle.one(rng)
        if self.low_bits:
            g = (g << self.low_bits) | samplers.retry(self._attempt_low, rng)
        return g ^ sign

    def fill(self, out: NDArray[np.int64], rng: Random) -> dict[int, int]:
        """Fill a chunk; draws from the tail or beyond int64 are returned as {position: value}."""
        far = self.top.fill(out, rng)
        if not self.shift:
            return far
        sign = out >> 63
        out ^= sign
        far |= {int(i): int(out[i] ^ sign[i]) for i in np.flatnonzero(out >> (63 - self.shift))}
        part = np.empty_like(out)
        self.middle.fill(part, rng)
        out <<= self.middle_bits
        out |= part
        if self.low_bits:
            self._fill_low(part, rng)
            out <<= self.low_bits
            out |= part
        rest = {i: int(out[i]) & ((1 << self.shift) - 1) for i in far}
        out ^= sign
        return {i: (((top ^ -(top < 0)) << self.shift) | rest[i]) ^ -(top < 0) for i, top in far.items()}

    def _attempt_low(self, rng: Random) -> int | None:
        places = rng.bits(self.low_bits)
        return places if samplers.bernoulli_exp(places / self.scale, rng) else None

    def _fill_low(self, out: NDArray[np.int64], rng: Random) -> None:
        """Uniform places, kept with e^(-places / scale): nearly always, so a coin that says so decides at once."""
        np.right_shift(rng.words(len(out), np.uint64), np.uint64(64 - self.low_bits), out=out.view(np.uint64))
        coin = rng.words(len(out), np.uint32)
        for i in np.flatnonzero(coin >= self.surely):
            kept = samplers.exp_real(int(out[i]) / self.scale)
            if not samplers.bernoulli_real(kept, rng, prefix=int(coin[i]), known=32):
                out[i] = samplers.retry(self._attempt_low, rng)


def _powers(rate: Fraction, count: int, bits: int) -> list[int]:
    """e^(-rate j), j = 0 .. count, in units of 2^-bits, each within 2j + 2 units."""
    ratio, power = exp_bounds(-rate, bits)[0], 1 << bits
    powers = [power]
    for _ in range(count):
        power = (power * ratio) >> bits
        powers.append(power)
    return powers


def _digit_law(rate: Fraction, base: int) -> Cumulative:
    """A digit 0 .. base-1 with P(d) proportional to e^(-rate d)."""

    def cumulative(bits: int) -> tuple[list[int], int]:
        places = bits + 32
        powers = _powers(rate, base, places)
        mass = (1 << places) - powers[base]
        points = [(((1 << places) - p) << bits) // mass for p in powers[1:base]]
        return points, 2 + ((8 * base) << bits) // mass

    return cumulative


def _top_law(scale: Fraction, rate: Fraction, atoms: int, *, two_sided: bool) -> Cumulative:
    """The top part H on -atoms .. atoms-1 (or 0 .. atoms-1): P(H >= h) ∝ e^(-rate h), P(H < 0) = q/(1+q)."""

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


def _geometric_tail(scale: Fraction, first: int, last: int) -> Tail:
    """Beyond either end a geometric variable begins anew (memorylessness); below a first atom of 0 there is nothing."""

    def tail(upper: bool, rng: Random) -> int:
        if upper:
            return last + samplers.geometric(scale, rng)
        return first - samplers.geometric(scale, rng) if first else first

    return tail
