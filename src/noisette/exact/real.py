"""Lazily refined reals: random numbers with infinitely many digits, drawn only as far as a comparison needs them.

A `Uniform` keeps the bits drawn so far; a `Gumbel` variable is a function of it, enclosed ever more tightly.
Comparisons are therefore exact: ties have probability zero and are never decided by position.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import ln_bounds

__all__ = ["Gumbel", "Uniform", "less"]

_FIRST_BITS = 64


@dataclass(eq=False)
class Uniform:
    """A uniform real in (0, 1), known to lie in [prefix, prefix + 1] / 2^known."""

    rng: Random = SYSTEM
    prefix: int = 0
    known: int = 0

    def to(self, bits: int) -> tuple[Fraction, Fraction]:
        """Return the ends of the interval after at least `bits` bits are drawn (never zero, where ln is undefined)."""
        while self.known < bits or self.prefix == 0:
            self.prefix, self.known = (self.prefix << 64) | self.rng.bits(64), self.known + 64
        unit = 1 << self.known
        return Fraction(self.prefix, unit), Fraction(self.prefix + 1, unit)


@dataclass(eq=False)
class Gumbel:
    """shift + scale * (-ln(-ln U)): adding it to scores makes the argmax an exponential-mechanism draw."""

    shift: Fraction
    scale: Fraction
    uniform: Uniform = field(default_factory=Uniform)

    def bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose the variable; the interval shrinks as bits grow."""
        while True:
            lo, hi = _minus_ln(*self.uniform.to(bits), bits)
            if lo > 0:
                break
            bits *= 2
        lo, hi = _minus_ln(lo, hi, bits)
        return self.shift + self.scale * lo, self.shift + self.scale * hi


def _minus_ln(lo: Fraction, hi: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    unit = 1 << bits
    return Fraction(-ln_bounds(hi, bits)[1], unit), Fraction(-ln_bounds(lo, bits)[0], unit)


def less(a: Gumbel, b: Gumbel) -> bool:
    """Return whether a < b, drawing as many bits as the comparison needs."""
    bits = _FIRST_BITS
    while True:
        (a_low, a_high), (b_low, b_high) = a.bounds(bits), b.bounds(bits)
        if a_high < b_low or b_high < a_low:
            return a_high < b_low
        bits *= 2
