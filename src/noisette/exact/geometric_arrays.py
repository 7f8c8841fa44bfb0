"""Arrays of geometric and discrete Laplace variables: one scale for all entries, or a scale for each entry.

One scale. The binary digits of a geometric variable are independent, so it is drawn in three parts: the top and the
middle digits from a `LookupTable`, the low digits of large scales by rejection from the uniform law, which is close.
The top carries the sign and, by memorylessness, an unbounded tail. Two-sided: z = g XOR -sign, where the sign is
Bernoulli(q/(1+q)), which gives P(z) = (1-q)/(1+q) q^|z| and counts zero once.   Proof: docs/proofs/exact-noise.md

A scale for each entry. All entries share the tables of one exponential variable X: floor(scale X) is geometric with
that scale. X is drawn to 56 binary places first. Floats decide where they are certain; elsewhere more places are drawn.

Vocabulary: `scale` in grid units · `q` = e^(-1/scale) · `rate` of one part: P(d) ∝ e^(-rate d) · g = top,
middle, low places in a row.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers
from noisette.exact.integers import Integers, filled, placed
from noisette.exact.lookup_table import TAIL_BITS, Cumulative, LookupTable, Tail
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds

__all__ = ["GeometricTable", "geometric_each", "laplace_each", "redrawn"]

WIDEST_TOP: Final = 40  # a top table of this scale leaves 97 % of its cells uncrowded
SHARED_BITS: Final = 56  # an exponential variable is first drawn to this many binary places
WIDEST_MIDDLE: Final = 10  # bits; leaves 98 % of its cells uncrowded


class GeometricTable:
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
        self.top = LookupTable(law, first, _geometric_tail(1 / rate, first, atoms - 1))
        self.middle = LookupTable(_digit_law((1 << self.low_bits) / scale, 1 << self.middle_bits), 0)
        self.surely = math.floor((1 - (1 << self.low_bits) / scale) * 2**32) - 1  # accepted at least this often

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
        """Uniform digits, accepted with e^(-digits / scale); that is nearly 1, so most coins decide at once."""
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
    """Beyond either end a geometric variable starts afresh (memorylessness); nothing lies below a first atom of 0."""

    def tail(upper: bool, rng: Random) -> int:
        if upper:
            return last + samplers.geometric(scale, rng)
        return first - samplers.geometric(scale, rng) if first else first

    return tail


# A scale for each entry


@cache
def _exponential() -> GeometricTable:
    return GeometricTable(Fraction(1 << SHARED_BITS), two_sided=False)


def geometric_each(scales: list[Fraction], rng: Random) -> Integers:
    """One geometric variable per scale: floor(scale X) for an exponential X, drawn to 56 binary places first."""
    x = filled(_exponential().fill, len(scales), rng)
    unit = np.array([float(scale) for scale in scales]) * 2.0**-SHARED_BITS
    low = x.astype(float) * unit
    error = low * 2.0**-50
    sure = np.floor(low - error)
    doubtful = np.flatnonzero((sure != np.floor(low + error + unit * 1.001)) | (low >= 2.0**52))
    sure[doubtful] = 0
    exact = {int(i): _floor_of_product(int(x[i]), scales[i], rng) for i in doubtful}
    return placed(sure.astype(np.int64), exact)


def _floor_of_product(x: int, scale: Fraction, rng: Random) -> int:
    """floor(scale X) for an exponential X that is known to lie in [x, x + 1] 2^-56; more places are drawn as needed."""
    places = SHARED_BITS
    while True:
        lo, hi = math.floor(x * scale / (1 << places)), math.ceil((x + 1) * scale / (1 << places)) - 1
        if lo == hi:
            return lo
        places += 64
        x = (x << 64) | samplers.retry(_attempt_places, places, rng)


def _attempt_places(places: int, rng: Random) -> int | None:
    """The next 64 binary places of an exponential variable, independent of earlier ones: P(u) ∝ e^(-u / 2^places)."""
    u = rng.bits(64)
    return u if samplers.bernoulli_exp(Fraction(u, 1 << places), rng) else None


def laplace_each(scales: list[Fraction], rng: Random) -> Integers:
    """One discrete Laplace variable per scale."""
    z = geometric_each(scales, rng)
    negative = (rng.words(len(scales), np.uint8) & 1).astype(bool)
    twice = np.flatnonzero(negative & (z == 0))
    z = np.where(negative, -z, z)
    return redrawn(z, twice, scales, laplace_each, rng)  # zero must not be counted twice


def redrawn(
    z: Integers,
    at: NDArray[np.intp],
    parameters: list[Fraction],
    draw: Callable[[list[Fraction], Random], Integers],
    rng: Random,
) -> Integers:
    """Draw the entries at some positions again."""
    if not at.size:
        return z
    fresh = draw([parameters[i] for i in at], rng)
    return placed(z, dict(zip(at.tolist(), map(int, fresh), strict=True)))
