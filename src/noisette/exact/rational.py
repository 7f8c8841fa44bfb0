"""exp, log and sqrt of rational numbers, enclosed between a lower and an upper bound of any precision.

The work is done by the standard library's `decimal`, whose exp and ln are correctly rounded, so one unit in the last
place on either side encloses the truth. Bounds come as whole numbers in units of 2^-bits.

Other functions come from mpmath, in a context of each thread's own (`precision`).

Vocabulary: `x` rational argument · `bits` binary places wanted · `lo`, `hi` whole, lo <= 2^bits f(x) <= hi.
"""

import decimal
import math
import threading
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

__all__ = [
    "as_real",
    "exact_sum",
    "exp_bounds",
    "exp_down",
    "exp_up",
    "float_above",
    "float_below",
    "ln_bounds",
    "precise",
    "precision",
    "sqrt_bounds",
    "sqrt_down",
    "sqrt_up",
]

_LOG10_2 = 0.30103
_GUARD = 8


def exact_sum(numbers: Iterable[Fraction]) -> Fraction:
    """The sum of any number of fractions, by pairs: one after the other, their denominators would take n^2 steps.

    >>> exact_sum(Fraction(1, n) for n in range(1, 5)), exact_sum([])
    (Fraction(25, 12), Fraction(0, 1))
    """
    left = list(numbers)
    while len(left) > 1:
        left = [sum(left[i : i + 2], Fraction(0)) for i in range(0, len(left), 2)]
    return left[0] if left else Fraction(0)


def _contexts(digits: int) -> tuple[Context, Context]:
    def context(rounding: str) -> Context:
        return Context(
            prec=digits,
            rounding=rounding,
            Emin=decimal.MIN_EMIN,
            Emax=decimal.MAX_EMAX,
            traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
        )

    return context(ROUND_FLOOR), context(ROUND_CEILING)


def _in_units(lo: Decimal, hi: Decimal, bits: int, down: Context, up: Context) -> tuple[int, int]:
    unit = Decimal(1 << bits)  # exact, whatever the caller's context
    return math.floor(down.multiply(lo, unit)), math.ceil(up.multiply(hi, unit))


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose 2^bits e^x between two whole numbers, at most a few apart.

    >>> exp_bounds(Fraction(-1), 20)
    (385749, 385750)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x < -bits:  # e^x < 2^x <= 2^-bits
        return 0, 1
    magnitude = max(0.0, float(x) * math.log2(math.e))
    down, up = _contexts(int((bits + magnitude) * _LOG10_2) + len(str(abs(int(x)))) + _GUARD)
    p, q = Decimal(x.numerator), Decimal(x.denominator)
    lo = down.next_minus(down.exp(down.divide(p, q)))
    hi = up.next_plus(up.exp(up.divide(p, q)))
    return _in_units(lo, hi, bits, down, up)


def ln_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose 2^bits ln(x), x > 0.

    >>> ln_bounds(Fraction(2), 20)
    (726817, 726818)
    """
    if x == 1:
        return 0, 0
    extra = x.numerator.bit_length() + x.denominator.bit_length()  # ln near 1 loses that many leading bits
    down, up = _contexts(int((bits + extra) * _LOG10_2) + _GUARD)
    p, q = Decimal(x.numerator), Decimal(x.denominator)
    lo = down.next_minus(down.ln(down.divide(p, q)))
    hi = up.next_plus(up.ln(up.divide(p, q)))
    return _in_units(lo, hi, bits, down, up)


def sqrt_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose 2^bits sqrt(x), x >= 0; the ends are equal where the root is rational with at most `bits` bits.

    >>> sqrt_bounds(Fraction(1, 4), 4), sqrt_bounds(Fraction(2), 4)
    ((8, 8), (22, 23))
    """
    scaled = x * (1 << (2 * bits))
    lo = math.isqrt(math.floor(scaled))
    return lo, lo if lo * lo == scaled else lo + 1


_NEGLIGIBLE = -3000  # for x below this, e^x is only known to lie between 0 and 2^-4000
_LARGE = 64  # from here on e^x is computed as a power of two times e^y with |y| < 1, to save digits
_LN2 = ln_bounds(Fraction(2), 160)


def _exp_bits(x: Fraction) -> int:
    return 96 + max(0, math.ceil(-x * 3 / 2))


def _twos(x: Fraction) -> int:
    """About log2(e^x)."""
    return math.floor(x * (1 << 160) / _LN2[1])


def exp_up(x: Fraction) -> Fraction:
    """Return a rational at or above e^x, relative excess below 2^-90 (for x >= -3000)."""
    if x < _NEGLIGIBLE:
        return Fraction(1, 1 << 4000)
    if x > _LARGE:
        k = _twos(x)
        return exp_up(x - Fraction(k * _LN2[0], 1 << 160)) * (1 << k)
    return Fraction(exp_bounds(x, _exp_bits(x))[1], 1 << _exp_bits(x))


def exp_down(x: Fraction) -> Fraction:
    """Return a rational at or below e^x, relative shortfall below 2^-90 (for x >= -3000)."""
    if x < _NEGLIGIBLE:
        return Fraction(0)
    if x > _LARGE:
        k = _twos(x)
        return exp_down(x - Fraction(k * _LN2[1], 1 << 160)) * (1 << k)
    return Fraction(exp_bounds(x, _exp_bits(x))[0], 1 << _exp_bits(x))


def _sqrt_bits(x: Fraction) -> int:
    return 64 + max(0, (x.denominator.bit_length() - x.numerator.bit_length()) // 2 + 1)


def sqrt_up(x: Fraction) -> Fraction:
    """Return a rational at or above sqrt(x), relative excess below 2^-60; the root itself where it is rational.

    >>> sqrt_up(Fraction(9, 4)), float(sqrt_up(Fraction(2)))
    (Fraction(3, 2), 1.4142135623730951)
    """
    return _rational_root(x) or Fraction(sqrt_bounds(x, _sqrt_bits(x))[1], 1 << _sqrt_bits(x))


def sqrt_down(x: Fraction) -> Fraction:
    """Return a rational at or below sqrt(x), relative shortfall below 2^-60; the root itself where it is rational."""
    return _rational_root(x) or Fraction(sqrt_bounds(x, _sqrt_bits(x))[0], 1 << _sqrt_bits(x))


def _rational_root(x: Fraction) -> Fraction | None:
    p, q = math.isqrt(x.numerator), math.isqrt(x.denominator)
    return Fraction(p, q) if p * p == x.numerator and q * q == x.denominator else None


_local = threading.local()


def precision(bits: int) -> Any:
    """Return this thread's mpmath context, set to `bits` bits; use it at once, since the next call may change it.

    mpmath's own context is shared by all threads, so one could change the precision under another.

    >>> ctx = precision(200)
    >>> str(ctx.exp(1))[:20]
    '2.718281828459045235'
    """
    if not hasattr(_local, "context"):
        import mpmath

        _local.context = mpmath.mp.clone()
    _local.context.prec = bits
    return _local.context


def precise(*numbers: Fraction) -> Any:
    """Return this thread's mpmath context with enough bits, however close to each other or to 0 the numbers are."""
    return precision(200 + 3 * sum(n.numerator.bit_length() + n.denominator.bit_length() for n in numbers))


def as_real(mp: Any, number: Fraction) -> Any:
    """Return a fraction as a real of the context."""
    return mp.mpf(number.numerator) / number.denominator


def float_above(value: Any) -> float:
    """Return a float above a real that is known far beyond float precision; 0 stays 0."""
    return math.nextafter(float(value), math.inf) if value else 0.0


def float_below(value: Any) -> float:
    """Return a float below a real that is known far beyond float precision; 0 stays 0."""
    return math.nextafter(float(value), -math.inf) if value else 0.0
