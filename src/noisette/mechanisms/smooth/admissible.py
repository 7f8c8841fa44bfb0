"""Noise whose size may follow the data: what it costs that two tables have noise of different sizes.

Let the noise be S Z/s, with S(x) and S(x') within a factor e^beta and the answers at most the smaller of them apart.

Student's t with d degrees of freedom (d = 1 is Cauchy's law) has losses of at most

    epsilon = max over b in {-beta, 0, beta} of  (d + 1)/2 ln((T + sqrt(T^2 - 4 u^2))/2) - d b,
    u = e^b,   T = 1 + u^2 + (s min(1, u))^2/d,

and attains that. It is less than d beta + s (d + 1)/(2 sqrt d), which is usually stated. Cauchy noise of s = 2 sinh(
epsilon/2) takes any beta up to ln(2 cosh(epsilon) - 1) for nothing: where sizes differ, the answers are at most the
smaller one apart. Laplace noise has no epsilon, since its tails fall faster for one table than for the other, but

    delta = (1 - e^-beta) e^(-(epsilon + beta)/r) cosh(s/r),   r = e^beta - 1,   if s <= epsilon and
    beta + s e^-beta <= epsilon,

and attains that too. Laplace noise of log-normal size has a rho (see `log_normal`), stated as rho = epsilon^2/2.
[Nissim-Raskhodnikova-Smith 2007 for the idea; proof note: docs/proofs/smooth-sensitivity.md]

Vocabulary: `s` how much of the sensitivity's size is paid for · `tail` P(Z > z) for z >= 0.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.exact.rational import precision
from noisette.exact.real import Uniform
from noisette.mechanisms.smooth.log_normal import log_normal_rho, usual_sigma

__all__ = [
    "FREEDOM",
    "Noise",
    "exact_tail",
    "laplace_delta",
    "largest_share",
    "near_tail",
    "rounded_noise",
    "student_epsilon",
    "tail",
]

Noise = Literal["cauchy", "student", "laplace", "log-normal"]
FREEDOM: dict[str, int] = {"cauchy": 1, "student": 3}
_BITS = 160
_UP = Fraction(1, 1 << 96)  # far more than 160 bits err by
_CLOSE = Fraction(1, 1 << 30)


def student_epsilon(freedom: int, beta: Fraction, s: Fraction) -> Fraction:
    """Return the epsilon of Student noise, rounded up by about 2^-96.

    >>> round(float(student_epsilon(1, Fraction(3, 10), Fraction(7, 10))), 6)
    0.686443
    >>> round(float(student_epsilon(3, Fraction(0), Fraction(1, 10**6))) * 10**6, 4)     # 2/sqrt(3)
    1.1547
    """
    mp = precision(_BITS)
    return _above(_student(mp, freedom, *_reals(mp, beta, s)))


def _student(of: Any, d: int, beta: Any, s: Any) -> Any:
    """The largest loss, in floats (`of` is math) or more."""

    def loss(b: Any) -> Any:
        u = of.exp(b)
        t = 1 + u**2 + (s * min(1, u)) ** 2 / d
        return (d + 1) * of.log((t + of.sqrt(max(0, t**2 - 4 * u**2))) / 2) / 2 - d * b

    return max(loss(-beta), loss(0 * beta), loss(beta))


def laplace_delta(epsilon: Fraction, beta: Fraction, s: Fraction) -> Fraction:
    """Return the delta of Laplace noise at an epsilon, rounded up by about 2^-96; 1 where it is not known.

    >>> f"{float(laplace_delta(Fraction(1), Fraction('0.0345'), Fraction(1, 2))):.2e}"
    '4.13e-09'
    """
    mp = precision(_BITS)
    return min(Fraction(1), _above(_laplace(mp, *_reals(mp, epsilon, beta, s))))


def _laplace(of: Any, e: Any, beta: Any, s: Any) -> Any:
    if s > e or beta + s * of.exp(-beta) > e:
        return 1
    r = of.expm1(beta)
    return -of.expm1(-beta) * (of.exp((s - e - beta) / r) + of.exp((-s - e - beta) / r)) / 2


def _reals(mp: Any, *values: Fraction) -> list[Any]:
    return [mp.mpf(value.numerator) / value.denominator for value in values]


def _above(value: Any) -> Fraction:
    return Fraction(int(value * (1 << 128)) + 1, 1 << 128) + _UP


@lru_cache(maxsize=256)
def largest_share(noise: Noise, epsilon: Fraction, delta: Fraction, beta: Fraction) -> Fraction:
    """Return the largest s, rounded down by about 2^-30 of it, for which the noise keeps (epsilon, delta).

    Floats look for it; that the guarantee is kept is checked with 160 bits. Log-normal noise keeps rho = epsilon^2/2,
    with a bound that has room for the rounding of floats.

    >>> round(float(largest_share("student", Fraction(1), Fraction(0), Fraction(1, 10))), 6)
    0.805987
    """
    guess, short = Fraction(_turn(lambda s: _near_kept(noise, epsilon, delta, beta, s), float(epsilon))), _CLOSE
    while guess and short < 1:
        if _kept(noise, epsilon, delta, beta, guess * (1 - short)):
            return guess * (1 - short)
        short *= 4
    raise InputError("beta must be smaller: it alone would cost more than the guarantee allows.")


def _near_kept(noise: Noise, epsilon: Fraction, delta: Fraction, beta: Fraction, s: float) -> bool:
    if noise == "laplace":
        return bool(_laplace(math, float(epsilon), float(beta), s) <= float(delta))
    if noise == "log-normal":
        return _kept(noise, epsilon, delta, beta, Fraction(s))
    return bool(_student(math, FREEDOM[noise], float(beta), s) <= float(epsilon))


def _kept(noise: Noise, epsilon: Fraction, delta: Fraction, beta: Fraction, s: Fraction) -> bool:
    if noise == "laplace":
        return laplace_delta(epsilon, beta, s) <= delta
    if noise == "log-normal":
        rho = log_normal_rho(float(usual_sigma(epsilon, beta)), float(beta), float(s))
        return Fraction(rho) <= epsilon**2 / 2
    return student_epsilon(FREEDOM[noise], beta, s) <= epsilon


def _turn(holds: Callable[[float], bool], start: float) -> float:
    """The number up to which something holds, to a part in 2^40; 0 if it does not for a millionth of the start."""
    low, high = 0.0, start
    while holds(high):
        low, high = high, 2 * high
    while high - low > high * 2.0**-40 and high > start * 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def near_tail(noise: Noise, z: float) -> float:
    """P(Z > z) for z >= 0, to a part in 10^12: from a series where the difference would cancel.

    >>> [near_tail(law, 0.0) for law in ("cauchy", "student", "laplace")]
    [0.5, 0.5, 0.5]
    """
    if noise == "laplace":
        return math.exp(-z) / 2
    if noise == "cauchy":
        return math.atan2(1.0, z) / math.pi
    t = z / math.sqrt(3)
    if t < 4:
        return (math.atan2(1.0, t) - t / (1 + t * t)) / math.pi
    v = 1 / t  # atan v - v/(1 + v^2)
    return v**3 * math.fsum((-v * v) ** k * (2 * k + 2) / (2 * k + 3) for k in range(12)) / math.pi


def tail(noise: Noise, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z > z) for an array of z >= 0."""
    return np.array([near_tail(noise, each) for each in z.tolist()])


def exact_tail(noise: Noise, z: Callable[[Any], Any], bits: int) -> tuple[Fraction, Fraction]:
    """Enclose P(Z > z) to about that many bits; z is computed by the multiprecision context that it is given."""
    guard = 64
    mp = precision(bits + 2 * guard)
    at = z(mp)
    if noise == "laplace":
        value = mp.exp(-at) / 2
    elif noise == "cauchy":
        value = mp.atan2(1, at) / mp.pi
    else:
        t = at / mp.sqrt(3)
        value = (mp.atan2(1, t) - t / (1 + t**2)) / mp.pi
    near, unit = int(mp.floor(mp.ldexp(value, bits + guard))), 1 << (bits + guard)
    return Fraction(near - (1 << 32), unit), Fraction(near + (1 << 32), unit)


# The sampler: noise rounded to a whole number. Floats decide what is far apart and multiprecision decides the rest, so
# the result never depends on the rounding of floats.


_ROOM = 2.0**-36  # far more than floats err by
_LEAST = 1e-290


def rounded_noise(noise: Noise, scale: float, exact_scale: Callable[[Any], Any], most: int, rng: Random) -> int:
    """Draw |scale Z|, rounded, but no more than `most`; `exact_scale` computes the scale in multiprecision.

    It is the largest w with V < P(|Z| > (w - 1/2)/scale), V uniform.
    """
    v = Uniform(rng)
    start, end = map(float, v.to(64))

    def below(w: int) -> bool:
        near = max(_LEAST, 2 * near_tail(noise, (w - 0.5) / scale))
        if end <= near * (1 - _ROOM) and near > _LEAST:
            return True
        return False if start >= near * (1 + _ROOM) else _surely_below(v, w, noise, exact_scale)

    low, high = 0, 1
    while high <= most and below(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _surely_below(v: Uniform, w: int, noise: Noise, exact_scale: Callable[[Any], Any]) -> bool:
    bits = 128

    def z(mp: Any) -> Any:
        return (2 * w - 1) / (2 * exact_scale(mp))

    while True:
        (lo, hi), (least, most) = v.to(bits), exact_tail(noise, z, bits)
        if hi <= 2 * least or lo >= 2 * most:
            return hi <= 2 * least
        bits *= 2
