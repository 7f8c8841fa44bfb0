"""Laplace noise of log-normal size: the law for zCDP of noise whose size may follow the data.

Z = X e^(sigma Y), X Laplace and Y Gaussian. Noise S Z/s, with S(x) and S(x') within a factor e^beta and the answers at
most the smaller of them apart, has Rényi divergences of order a = 1 + l of at most

    B(a) + M(a),   B(a) = min over x of  -x - ln(1 - l (e^x - 1))/l + a (beta - x)^2/(2 sigma^2),
    M(a) = ln((c - m)/(2c) e^(-l c) + (c + m)/(2c) e^(l c))/l,   c = e^(3 sigma^2/2) s,   m = e^(-sigma^2) c^2/2,

where the size falls from x to x', and of a (beta^2/(1 + sigma^2) + c^2)/2 where it grows. It is rho-zCDP for the
largest of these divided by a. No rho below (beta/sigma)^2/2 is possible, so the least sigma for a rho = epsilon^2/2 is
beta/epsilon, and the s that goes with it is nearly epsilon e^(-3 sigma^2/2)/sqrt(1 + sigma^2).
[Bun-Steinke 2019, "Average-case averages", for the law, with rho = (beta/sigma + c)^2/2: this is no more, and half
where both parts are alike. Proof note: docs/proofs/smooth-sensitivity.md]

Vocabulary: `s` how much of the sensitivity's size is paid for · `order` a · `tail` P(Z > z) for z >= 0.
"""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random
from noisette.exact.rational import precision
from noisette.exact.real import Uniform

__all__ = ["log_normal_rho", "log_normal_tail", "rounded_log_normal", "usual_sigma"]

Floats = NDArray[np.float64]
_FINE = 1 / 1024  # orders a up to (1 + 1/1024) a' count as a'
_ROOM = 2.0**-40  # far more than floats err by
_FIRST_BITS = 64


def usual_sigma(epsilon: Fraction, beta: Fraction) -> Fraction:
    """Return a sigma that is one part in 64 above the least: divergences of large orders stay below rho with room."""
    return Fraction(65, 64) * beta / epsilon


# What it costs


def log_normal_rho(sigma: float, beta: float, s: float) -> float:
    """Return a rho for which it is rho-zCDP, rounded up.

    Divergences grow with their order, so that of the upper end of a short interval covers all orders in it. From the
    last one on, the shift is worth c at most, which is little for so high an order.

    >>> round(log_normal_rho(0.1, 0.1, 0.95), 4), round(log_normal_rho(0.2, 0.1, 0.95), 4)
    (0.5036, 0.5136)
    """
    c = math.exp(1.5 * sigma**2) * s
    count = math.ceil(math.log(64 + 200 / c) / math.log1p(_FINE)) if c else 1
    orders = np.exp(math.log1p(_FINE) * np.arange(1, count + 1))
    falling = (_dilated(orders, sigma, beta) + _shifted(orders, c, math.exp(-(sigma**2)) * c**2 / 2)) / orders
    growing = (beta**2 / (1 + sigma**2) + c**2) / 2
    last = (beta / sigma) ** 2 / 2 + c / float(orders[-1])
    return max(float(falling.max()) * (1 + _FINE), growing, last) * (1 + _ROOM)


def _dilated(orders: Floats, sigma: float, beta: float) -> Floats:
    """B: part of the factor is that of the Laplace law, the rest is a shift of the Gaussian; any x will do."""
    more = orders - 1
    b = 1 + sigma**2 + more * beta
    y = 2 * beta / (b + np.sqrt(np.maximum(b**2 - 4 * more * beta, 0)))  # e^x - 1, nearly the best
    x = np.log1p(y)
    laplace = -x - np.log1p(-more * y) / more
    return np.asarray(laplace + orders * ((beta - x) / sigma) ** 2 / 2 + 2.0**-46 * x)


def _shifted(orders: Floats, c: float, mean: float) -> Floats:
    """M: losses lie within c, and their mean is at most m."""
    more, part = orders - 1, min(1.0, 0.5 + mean / (2 * c)) if c else 0.5
    far = np.minimum(2 * more * c, 600)
    two = np.where(far < 600, np.log1p(part * np.expm1(far)) / more - c, c)
    return np.asarray(np.minimum(two, c) + 2.0**-46 * c)


# Its tail


def log_normal_tail(sigma: float, z: Floats) -> Floats:
    """P(Z > z) = E[e^(-z w)]/2, w = e^(-sigma Y), by a sum of equal steps around the largest term: about 1e-13 of it.

    >>> [round(float(p), 6) for p in log_normal_tail(0.5, np.array([0.0, 1.0, 10.0]))]
    [0.5, 0.184937, 0.001227]
    """
    return np.array([_near_tail(sigma, each) for each in np.asarray(z, float).tolist()])


@lru_cache(maxsize=1 << 14)
def _near_tail(sigma: float, z: float) -> float:
    if z == math.inf:
        return 0.0
    top = _top(sigma, z)
    step = min(0.5 / math.sqrt(1 + sigma * top), 0.25 / sigma)
    y = top + step * np.arange(-math.ceil(10 / step), math.ceil(10 / step) + 1)
    terms = np.exp(-(y**2) / 2 - z * np.exp(-sigma * y))
    return float(terms.sum()) * step / math.sqrt(8 * math.pi)


def _top(sigma: float, z: float) -> float:
    """Where e^(-y^2/2 - z e^(-sigma y)) is largest: y = sigma z e^(-sigma y), by halving."""
    low, high = 0.0, sigma * z
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < sigma * z * math.exp(-sigma * middle) else (low, middle)
    return low


# A draw


def rounded_log_normal(sigma: Fraction, scale: float, exact_scale: Any, rng: Random) -> int:
    """Draw |scale Z|, rounded to the nearest whole number; `exact_scale` computes it in multiprecision.

    |X| = -ln U and |Y| = -Phi^-1(V/2), U and V uniform with as many digits as the rounding takes.
    """
    sign, u, v = 1 - 2 * rng.bits(1), Uniform(rng), Uniform(rng)
    low, high = _near_ends(sign * float(sigma), scale, u, v)
    bits = _FIRST_BITS
    while math.floor(low + Fraction(1, 2)) != math.floor(high + Fraction(1, 2)):
        low, high = _ends(sign, sigma, exact_scale, u, v, bits)
        bits *= 2
    return math.floor(low + Fraction(1, 2))


def _near_ends(sigma: float, scale: float, u: Uniform, v: Uniform) -> tuple[Fraction, Fraction]:
    """Enclose it with floats."""
    (a, b), (p, q) = (tuple(map(float, each.to(_FIRST_BITS))) for each in (u, v))
    sizes = sorted(scale * math.exp(-sigma * NormalDist().inv_cdf(end / 2)) for end in (p, q))
    low, high = (max(0.0, -math.log(b) - _ROOM) * sizes[0], (-math.log(a) + _ROOM) * sizes[1])
    return Fraction(low * (1 - _ROOM)), Fraction(high * (1 + _ROOM))


def _ends(sign: int, sigma: Fraction, exact_scale: Any, u: Uniform, v: Uniform, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose it with that many bits of both uniforms, and twice as many to compute with."""
    (a, b), (p, q) = u.to(bits), v.to(bits)
    mp = precision(2 * bits + 256)

    def size(end: Fraction) -> Any:
        y = mp.sqrt(2) * mp.erfinv(1 - mp.mpf(end.numerator) / end.denominator)
        return exact_scale(mp) * mp.exp(sign * y * sigma.numerator / sigma.denominator)

    def minus_ln(end: Fraction) -> Any:
        return -mp.log(mp.mpf(end.numerator) / end.denominator)

    sizes, room = sorted((size(p), size(q))), mp.ldexp(1, -bits - 64)
    low, high = minus_ln(b) * sizes[0] * (1 - room), minus_ln(a) * sizes[1] * (1 + room)
    return _exactly(low), _exactly(high)


def _exactly(value: Any) -> Fraction:
    """The rational that a multiprecision number is."""
    sign, mantissa, exponent, _ = value._mpf_
    shift = int(exponent)
    return Fraction(int(-mantissa if sign else mantissa) << max(shift, 0), 1 << max(-shift, 0))
