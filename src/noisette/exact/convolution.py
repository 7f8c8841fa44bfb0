"""Exact convolutions of whole numbers: directly, or by floating-point transforms whose error is known to be below 1/2.

A transform of length N = 2^k gives each number of a convolution with an error of at most

    |a|_2 |b|_2 ((1 + u)^(3k) (1 + u sqrt 5)^(3k + 1) (1 + w)^(3k) - 1),    u = 2^-53,

where w is the error of the roots of unity.   [Brent-Percival-Zimmermann 2007, Theorem 5.1]. With w <= u this is below
13.5 k u |a|_2 |b|_2. Here 64 k u stands in its place, because libraries pack real numbers and mix radices. Where
that bound is not below 1/4, the longer numbers are cut into a high and a low part, and two convolutions are added.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.integers import Integers, magnitude

__all__ = ["convolved", "transformed"]

Floats: TypeAlias = NDArray[np.float64]

_DIRECT = 256  # numbers, up to which plain sums are as fast
_ROOM = 2.0**61


def convolved(a: Any, b: Any) -> Integers:
    """The first n numbers of the convolution of two lines of n whole numbers, exactly.

    Where numbers may exceed 2^61, they come as Python integers.

    >>> convolved(np.array([1, 2, 3]), np.array([1, 10, 100])).tolist()
    [1, 12, 123]
    """
    kind = np.int64 if float(np.abs(np.asarray(a, float)).sum()) * magnitude(b) < _ROOM else object
    return _convolved(np.asarray(a).astype(kind), np.asarray(b).astype(kind))


def _convolved(a: Integers, b: Integers) -> Integers:
    n = len(a)
    if n <= _DIRECT:
        return np.convolve(a, b)[:n]
    if _error(a, b) < 1 / 4:
        return np.rint(transformed(a.astype(float), b.astype(float))).astype(np.int64).astype(a.dtype)
    if magnitude(a) < magnitude(b):
        a, b = b, a
    bits = magnitude(a).bit_length() // 2
    high = (a + (1 << (bits - 1))) >> bits
    return _convolved(high, b) * (1 << bits) + _convolved(a - (high << bits), b)


def _error(a: Integers, b: Integers) -> float:
    """A bound on the error of each number of a convolution by transforms."""
    if max(magnitude(a), magnitude(b)) >= 2**52:
        return float("inf")
    k = (2 * len(a) - 1).bit_length()
    norms = np.linalg.norm(a.astype(float)) * np.linalg.norm(b.astype(float))
    return float(64 * k * 2.0**-53 * norms * (1 + 2.0**-20))


def transformed(a: Floats, b: Floats) -> Floats:
    """The first n numbers of the convolution of two lines of n floats, by Fourier transforms."""
    size = 1 << (2 * len(a) - 1).bit_length()
    found: Floats = np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[: len(a)]
    return found
