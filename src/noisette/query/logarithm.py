"""Logarithms in steps that IEEE 754 fixes to the last bit, so that all engines agree.

    y = x^(1/2^K) by K square roots,   s = (y - 1) / (y + 1),   ln x = 2^(K+1) · (s + s³/3 + s⁵/5 + s⁷/7 + ...)

Each step is an addition, a product, a quotient or a root of doubles, which every engine rounds alike; libraries differ
in the last bits of their own logarithms. For 1e-300 <= x <= 2^52 |s| < 0.006, so that four terms leave out less than
1e-17 of the sum, and the error of the root, at most one rounding in each step, grows to less than 2e-11. Rounding to
`GRID` hides it: a power of the base has its exact logarithm.
"""

import math
from fractions import Fraction

__all__ = ["GRID", "ROOTS", "SCALE", "TERMS", "logarithm"]

ROOTS = 16
TERMS = tuple(1 / n for n in (7, 5, 3))
"""The coefficients of s⁶, s⁴ and s², as Horner takes them."""

GRID = Fraction(1, 2**28)
"""Logarithms are multiples of this, about 4e-9."""

SCALE = {base: 2.0 ** (ROOTS + 1) / math.log(of) for base, of in (("ln", math.e), ("log2", 2.0), ("log10", 10.0))}
"""What the series is multiplied by for each base."""


def logarithm(x: float, base: str) -> float:
    """The logarithm of a positive number, to the nearest multiple of `GRID`.

    >>> logarithm(1000.0, "log10"), logarithm(1 / 8, "log2"), round(logarithm(10.0, "ln"), 6)
    (3.0, -3.0, 2.302585)
    """
    for _ in range(ROOTS):
        x = math.sqrt(x)
    s = (x - 1.0) / (x + 1.0)
    square = s * s
    series = 0.0
    for term in TERMS:
        series = (series + term) * square
    steps = (1.0 + series) * s * SCALE[base] * float(1 / GRID)
    size = int(abs(steps))
    size += abs(steps) - size >= 0.5
    return math.copysign(size, steps) * float(GRID) + 0.0
