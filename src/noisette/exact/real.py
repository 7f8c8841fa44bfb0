"""Lazily refined reals: random numbers with infinitely many digits, of which only those that matter are drawn.

A `Uniform` keeps the bits drawn so far; exponential, Gumbel and Laplace variables are functions of it, enclosed ever
more tightly. Comparisons are therefore exact: ties have probability zero and are never decided by position.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import ln_bounds

__all__ = ["Exponential", "Gumbel", "Laplace", "Uniform", "Variable", "argmax", "less"]


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
class Variable:
    """shift + scale * X, for a standard X that a subclass gives as a monotone function of a uniform."""

    shift: Fraction
    scale: Fraction
    uniform: Uniform = field(default_factory=Uniform)

    def standard(self, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose the standard variable."""
        raise NotImplementedError

    def bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose the variable; the interval shrinks as bits grow."""
        lo, hi = self.standard(bits)
        return self.shift + self.scale * lo, self.shift + self.scale * hi


def _minus_ln(lo: Fraction, hi: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    unit = 1 << bits
    return Fraction(-ln_bounds(hi, bits)[1], unit), Fraction(-ln_bounds(lo, bits)[0], unit)


class Exponential(Variable):
    """shift + scale * (-ln U)."""

    def standard(self, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose -ln U."""
        return _minus_ln(*self.uniform.to(bits), bits)


class Gumbel(Variable):
    """shift + scale * (-ln(-ln U)): adding it to scores makes the argmax an exponential-mechanism draw."""

    def standard(self, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose -ln(-ln U)."""
        while True:
            lo, hi = _minus_ln(*self.uniform.to(bits), bits)
            if lo > 0:
                return _minus_ln(lo, hi, bits)
            bits *= 2


class Laplace(Variable):
    """shift + scale * (two-sided exponential): the first bit is the sign."""

    def standard(self, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose a standard Laplace variable."""
        lo, hi = self.uniform.to(bits)
        if lo < Fraction(1, 2):  # sign bit 0: U = v/2
            a, b = _minus_ln(2 * lo, 2 * hi, bits)
            return -b, -a
        while lo == Fraction(1, 2):
            lo, hi = self.uniform.to(self.uniform.known + 64)
        return _minus_ln(2 * lo - 1, 2 * hi - 1, bits)


_FIRST_BITS = 64


def less(a: Variable, b: Variable) -> bool:
    """Tell whether a < b, drawing as many bits as that takes."""
    return argmax([a, b]) == 1


def argmax(variables: Sequence[Variable]) -> int:
    """Return the index of the largest variable; those that cannot win any more are not refined."""
    if not variables:
        raise InputError("argmax needs at least one candidate: pass a non-empty list.")
    alive, bits = list(range(len(variables))), _FIRST_BITS
    while True:
        enclosed = {i: variables[i].bounds(bits) for i in alive}
        best = max(lo for lo, _ in enclosed.values())
        alive = [i for i in alive if enclosed[i][1] >= best]
        if len(alive) == 1:
            return alive[0]
        bits *= 2
