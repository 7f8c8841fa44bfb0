"""Exact samplers on rationals, one draw at a time: the specification of the vector samplers.

Probabilities are exact, not approximate: parameters are Fractions, coins are uniform whole numbers. A
sampler that rejects is an `attempt(rng) -> value | None`; `retry` repeats it, so that a test can walk every coin tape
of one attempt and compare the law with the definition.   [Canonne-Kamath-Steinke 2020, "The discrete Gaussian for DP"]

Vocabulary: `g` rate, e^-g · `scale` 1/g · `s2` the parameter sigma^2 · `rng` the coins.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import TypeVar

from noisette.errors import InputError
from noisette.exact.number import floor_log2
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds, precision

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_real",
    "binary_place",
    "binomial",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "exp_real",
    "geometric",
    "logistic",
    "odds_real",
    "rational_bounds",
    "retry",
    "uniform",
]

T = TypeVar("T")
Bounds = Callable[[int], tuple[int, int]]
"""A real number in [0, 1] that can be enclosed: bits -> (lo, hi) with lo <= 2^bits x <= hi."""


def retry(attempt: Callable[..., T | None], *arguments: object) -> T:
    """Repeat an attempt until it gives a value."""
    while True:
        value = attempt(*arguments)
        if value is not None:
            return value


def uniform(n: int, rng: Random = SYSTEM) -> int:
    """Draw uniformly from 0 .. n-1."""
    return rng.below(n)


def bernoulli(p: Fraction, rng: Random = SYSTEM) -> bool:
    """Draw True with probability p."""
    return rng.flip(p.numerator, p.denominator)


def bernoulli_exp(g: Fraction, rng: Random = SYSTEM) -> bool:
    """Draw True with probability e^-g, g >= 0.

    For g <= 1: P[first k with a failed flip(g/k) is odd] = sum_k (-g)^k / k! = e^-g.   [CKS20, Algorithm 1]
    """
    if g.numerator < 0:
        raise InputError("e^-g is a probability for g >= 0 only.")
    while g > 1:
        if not _bernoulli_exp_of_unit(1, 1, rng):
            return False
        g -= 1
    return _bernoulli_exp_of_unit(g.numerator, g.denominator, rng)


def _bernoulli_exp_of_unit(numerator: int, denominator: int, rng: Random) -> bool:
    for k in count(1):
        if not rng.flip(numerator, denominator * k):
            return k % 2 == 1
    raise AssertionError("unreachable")


def bernoulli_real(bounds: Bounds, rng: Random = SYSTEM, *, prefix: int = 0, known: int = 0) -> bool:
    """Draw True with probability x, given by enclosures; `prefix` holds the uniform's `known` first bits."""
    while True:
        lo, hi = bounds(known + 8)
        if (prefix + 1) << 8 <= lo:
            return True
        if prefix << 8 >= hi:
            return False
        prefix, known = (prefix << 64) | rng.bits(64), known + 64


_LONG = 12  # more than e^12 attempts may be needed


def logistic(g: Fraction, weight: Fraction = Fraction(1), rng: Random = SYSTEM) -> bool:
    """Draw True with probability 1 / (1 + weight e^-g): the coin of randomized response.

    An attempt succeeds with a probability of at least e^-g; where that may be small, the probability is enclosed.
    """
    if g > _LONG and weight > 1:
        return bernoulli_real(_logistic_real(g, weight), rng)
    return retry(_attempt_logistic, g, weight, rng)


def _logistic_real(g: Fraction, weight: Fraction) -> Bounds:
    """Return 1 / (1 + weight e^-g) as a number to be enclosed."""

    def bounds(bits: int) -> tuple[int, int]:
        places = bits + max(0, floor_log2(weight)) + 8
        lo, hi = (Fraction(end, 1 << places) for end in exp_bounds(-g, places))
        one = 1 << bits
        return math.floor(one / (1 + weight * hi)), math.ceil(one / (1 + weight * lo))

    return bounds


def _attempt_logistic(g: Fraction, weight: Fraction, rng: Random) -> bool | None:
    if rng.flip(weight.denominator, weight.denominator + weight.numerator):
        return True
    return False if bernoulli_exp(g, rng) else None


def exp_real(g: Fraction) -> Bounds:
    """Return e^-g as a number to be enclosed."""
    return lambda bits: exp_bounds(-g, bits)


def odds_real(exponent: Fraction, odds: Fraction) -> Bounds:
    """Return odds e^exponent as a number to be enclosed."""
    length = odds.numerator.bit_length()

    def bounds(bits: int) -> tuple[int, int]:
        lo, hi = exp_bounds(exponent, bits + length)
        return math.floor(lo * odds / (1 << length)), math.ceil(hi * odds / (1 << length))

    return bounds


def geometric(scale: Fraction, rng: Random = SYSTEM) -> int:
    """Draw z >= 0 with probability (1 - a) a^z, a = e^(-1/scale).   [CKS20, Algorithm 2]

    For scale = t/s: u + t v has scale t if u < t is kept with e^(-u/t) and v counts coins of e^-1; z = (u + t v) // s.
    """
    t, s = scale.numerator, scale.denominator
    low = retry(_attempt_low_part, t, rng)
    high = 0
    while _bernoulli_exp_of_unit(1, 1, rng):
        high += 1
    return (low + t * high) // s


def _attempt_low_part(t: int, rng: Random) -> int | None:
    u = rng.below(t)
    return u if _bernoulli_exp_of_unit(u, t, rng) else None


def discrete_laplace(scale: Fraction, rng: Random = SYSTEM) -> int:
    """Draw z with probability (1 - a)/(1 + a) a^|z|, a = e^(-1/scale)."""
    return retry(_attempt_laplace, scale, rng)


def _attempt_laplace(scale: Fraction, rng: Random) -> int | None:
    negative = rng.flip(1, 2)
    z = geometric(scale, rng)
    if negative:
        return -z if z else None  # zero must not be counted twice
    return z


def discrete_gaussian(s2: Fraction, rng: Random = SYSTEM) -> int:
    """Draw z with probability proportional to e^(-z^2 / (2 s2)).   [CKS20, Algorithm 3]"""
    t = math.isqrt(math.floor(s2)) + 1
    return retry(_attempt_gaussian, s2, t, rng)


def _attempt_gaussian(s2: Fraction, t: int, rng: Random) -> int | None:
    z = discrete_laplace(Fraction(t), rng)
    return z if bernoulli_exp((abs(z) - s2 / t) ** 2 / (2 * s2), rng) else None


def categorical(weights: Callable[[int], list[tuple[int, int]]], rng: Random = SYSTEM) -> int:
    """Draw i with probability w_i / sum(w); `weights(bits)` encloses every w_i in units of 2^-bits.

    The uniform is refined until it certainly lies within one cell, so the law is exact for any precision of weights.
    """
    prefix, known = rng.bits(64), 64
    while True:
        chosen = _certain_cell(weights(known + 16), prefix, known)
        if chosen is not None:
            return chosen
        prefix, known = (prefix << 64) | rng.bits(64), known + 64


def _certain_cell(enclosed: list[tuple[int, int]], prefix: int, known: int) -> int | None:
    total_lo, total_hi = sum(lo for lo, _ in enclosed), sum(hi for _, hi in enclosed)
    below_lo = below_hi = 0
    for i, (lo, hi) in enumerate(enclosed):
        starts_before = below_hi << known <= prefix * total_lo
        below_lo, below_hi = below_lo + lo, below_hi + hi
        ends_after = (prefix + 1) * total_hi <= below_lo << known or i == len(enclosed) - 1
        if starts_before and ends_after:
            return i
    return None


def binomial(n: int, p: Fraction | Bounds, rng: Random = SYSTEM) -> int:
    """Draw the number of successes in n trials of probability p, exactly, in about log2(n) steps for any n.

    Each trial's uniform is compared with p bit by bit, for all trials at once: Binomial(m, 1/2) of the m undecided
    trials have a 0 at this place. Where p has a 1 they succeed, where p has a 0 the others fail.
    p may also be a real number given by enclosures.
    """
    bounds = rational_bounds(p) if isinstance(p, Fraction) else p
    if bounds(64)[0] == 1 << 64:  # p is 1, which has no binary place below the point
        return n
    undecided, successes = n, 0
    for place in count(1):
        if not undecided:
            return successes
        zeros = _binomial_half(undecided, rng)
        if binary_place(bounds, place):
            successes, undecided = successes + zeros, undecided - zeros
        else:
            undecided = zeros
    raise AssertionError("unreachable")


def rational_bounds(p: Fraction) -> Bounds:
    """Return a rational as a number to be enclosed."""

    def bounds(bits: int) -> tuple[int, int]:
        lo, rest = divmod(p.numerator << bits, p.denominator)
        return lo, lo + bool(rest)

    return bounds


def binary_place(bounds: Bounds, place: int) -> int:
    """Return one binary place of a number that is enclosed; it must not end there."""
    for extra in count(64, 64):
        lo, hi = bounds(place + extra)
        lo, hi = lo >> extra, max(lo, hi - 1) >> extra
        if lo == hi:
            return lo & 1
    raise AssertionError("unreachable")


_FEW = 4096


def _binomial_half(n: int, rng: Random) -> int:
    """Draw Binomial(n, 1/2): count coins if they are few, else reject from a discrete Gaussian."""
    if n <= _FEW:
        return rng.bits(n).bit_count()
    half = n // 2
    return half + retry(_attempt_central, half, rng) + (rng.bits(1) if n % 2 else 0)


def _attempt_central(half: int, rng: Random) -> int | None:
    """Draw i with probability C(2h, h+i) / 4^h, h = half, as one attempt.

    C(2h, h+i) / C(2h, h) = exp(-sum_{j<=i} 2 atanh(z_j)), z_j = (2j-1)/(2h+1), and atanh(z) >= z, so the discrete
    Gaussian with s2 = (2h+1)/4 lies above; what is left to accept with is exp(-sum 2 (atanh(z_j) - z_j)), nearly one.
    """
    i = discrete_gaussian(Fraction(2 * half + 1, 4), rng)
    if abs(i) > half:
        return None
    z = Fraction(2 * abs(i) - 1, 2 * half + 1)
    most = 2 * abs(i) * z**3 / 3 / (1 - z * z) if i else Fraction(0)  # atanh(z) - z <= z^3 / (3 (1 - z^2))
    u = rng.bits(64)
    if (u + 1) <= (1 - most) * 2**64:
        return i
    return i if bernoulli_real(_central_acceptance(half, abs(i)), rng, prefix=u, known=64) else None


def _central_acceptance(half: int, i: int) -> Bounds:
    """Enclose C(2h, h+i)/C(2h, h) e^(2 i^2 / (2h+1)) from log-gamma with 64 guard bits."""

    def bounds(bits: int) -> tuple[int, int]:
        mp = precision(bits + 128 + 2 * half.bit_length())
        log = 2 * mp.loggamma(half + 1) - mp.loggamma(half + i + 1) - mp.loggamma(half - i + 1)
        near = int(mp.floor(mp.ldexp(mp.exp(log + mp.mpf(2 * i * i) / (2 * half + 1)), bits + 64)))
        return (near - (1 << 32)) >> 64, ((near + (1 << 32)) >> 64) + 1

    return bounds
