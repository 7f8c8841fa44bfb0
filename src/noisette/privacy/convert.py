"""Conversions between guarantees, one function for each theorem; results are rounded in the safe direction.

Vocabulary: `e0` the epsilon that is known · `e`, `d` the epsilon and delta in question · `rho` zCDP · `a` Rényi order.
Epsilons and deltas that come back as floats are rounded up.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from noisette.errors import InputError
from noisette.exact.number import nearest_float
from noisette.exact.rational import exp_down, exp_up, ln_bounds, precision, sqrt_down

__all__ = [
    "LARGEST_EPSILON",
    "approx_delta",
    "approx_epsilon",
    "gaussian_delta",
    "gaussian_distance",
    "group_delta",
    "lowest",
    "powers_up",
    "pure_to_zcdp",
    "pure_within_approx",
    "pure_within_zcdp",
    "range_within_approx",
    "zcdp_delta",
    "zcdp_epsilon",
]

LARGEST_EPSILON = 10**6
"""Of what a guarantee may state."""

_LEAST = 5e-324  # the smallest float above zero
_FEW = 64
_STEEPEST = 5_000  # e^-5000 is far below every delta
_UP = 1 + 2.0**-40  # covers the rounding of a handful of float operations


def approx_delta(e0: Fraction, d0: Fraction, e: Fraction) -> Fraction:
    """delta(e) of any (e0, d0)-DP mechanism: d0 + (1 - d0) (e^e0 - e^e)_+ / (1 + e^e0), rounded up by at most 2^-90.

    Every (e0, d0)-DP mechanism is dominated by randomized response with that pair.   [Kairouz-Oh-Viswanath 2015]
    """
    if e >= e0:
        return d0
    gap = (1 - exp_down(e - e0)) / (1 + exp_down(-e0))
    return min(Fraction(1), d0 + (1 - d0) * gap)


def approx_epsilon(e0: Fraction, d0: Fraction, d: Fraction) -> float:
    """The smallest e with delta(e) <= d, rounded up; infinite for d < d0."""
    if d < d0:
        return math.inf
    if d == d0:
        return nearest_float(e0, up=True)
    ratio = 1 - (d - d0) / (1 - d0) * (1 + exp_down(-e0))  # e^(e - e0)
    if ratio <= 0:
        return 0.0
    known = nearest_float(e0, up=True)
    return max(0.0, known + math.log(ratio) + (1 + known) * 2.0**-50)


def group_delta(e0: Fraction, d0: Fraction, k: int) -> Fraction:
    """delta for groups of k: d0 (e^(k e0) - 1)/(e^e0 - 1) = d0 (1 + e^e0 + … + e^((k-1) e0)), rounded up.

    [Dwork-Roth 2014, Theorem 2.2 for delta > 0; Vadhan 2017, Lemma 2.2]
    """
    return d0 * powers_up(e0, k)


def powers_up(e0: Fraction, k: int) -> Fraction:
    """1 + e^e0 + … + e^((k-1) e0), rounded up: term by term for few terms, else (e^(k e0) - 1)/(e^e0 - 1).

    >>> powers_up(Fraction(0), 5), float(powers_up(Fraction(1, 100), 1000)) < 2.192e6
    (Fraction(5, 1), True)
    """
    if (k - 1) * e0 > _STEEPEST:
        raise InputError(
            "No delta is small enough for this many rows of one unit: lower its limits, or spend less epsilon."
        )
    if k <= _FEW or not e0:
        return sum((exp_up(j * e0) for j in range(k)), Fraction(0)) if e0 else Fraction(k)
    plain, rise = k * exp_up((k - 1) * e0), exp_down(e0) - 1
    return min(plain, (exp_up(k * e0) - 1) / rise) if rise > 0 else plain


def pure_to_zcdp(e0: Fraction) -> Fraction:
    """e-DP implies (e^2/2)-zCDP, exactly.   [Bun-Steinke 2016, Proposition 1.4]"""
    return e0 * e0 / 2


def zcdp_delta(rho: Fraction, e: Fraction) -> float:
    """delta(e) of any rho-zCDP mechanism: inf over a > 1 of e^((a-1)(a rho - e)) / a (1 - 1/a)^(a-1), rounded up.

    [Canonne-Kamath-Steinke 2020, Proposition 12.] Any a gives a valid bound, so the search need not be exact.
    """
    r, x = nearest_float(rho, up=True), nearest_float(e, up=False)

    def log_delta(a: float) -> float:
        return (a - 1) * (a * r - x) - math.log(a) + (a - 1) * math.log1p(-1 / a)

    best = min(0.0, lowest(log_delta, 1 + 1e-12, max(2.0, 2 * x / r + 10)))
    return min(1.0, math.exp(best + abs(best) * 2.0**-40) * _UP + _LEAST)


def zcdp_epsilon(rho: Fraction, d: Fraction) -> float:
    """The smallest e with delta(e) <= d: inf over a > 1 of a rho + ln(1 - 1/a) - ln(a d)/(a - 1), rounded up."""
    if d >= 1:
        return 0.0
    if d <= 0:
        return math.inf
    r = nearest_float(rho, up=True)
    log_d = math.log(d.numerator) - math.log(d.denominator)

    def epsilon(a: float) -> float:
        return a * r + math.log1p(-1 / a) - (log_d + math.log(a)) / (a - 1)

    return max(0.0, lowest(epsilon, 1 + 1e-12, 4 + 4 * math.sqrt(-log_d / r)) * _UP)


def lowest(f: Callable[[float], float], lo: float, hi: float) -> float:
    """The minimum of a unimodal function, by golden-section search over log(a - 1)."""
    low, high, ratio = math.log(lo - 1), math.log(hi - 1), (math.sqrt(5) - 1) / 2

    def at(x: float) -> tuple[float, float]:
        return f(1 + math.exp(x)), x

    left, right = at(high - ratio * (high - low)), at(low + ratio * (high - low))
    while high - low > 1e-8:  # near its minimum a function is flat
        if left < right:
            high, right = right[1], left
            left = at(high - ratio * (high - low))
        else:
            low, left = left[1], right
            right = at(low + ratio * (high - low))
    return min(left, right)[0]


def pure_within_approx(e: Fraction, d: Fraction) -> Fraction:
    """The largest e0 such that e0-DP implies (e, d)-DP: ln((e^e + d)/(1 - d)), rounded down; what can be stated."""
    if d == 0:
        return e
    gain = ln_bounds((1 + d * exp_down(-e)) / (1 - d), 80)[0] - 1  # one unit less, so that the inverse holds as well
    return _stated(e, Fraction(max(0, gain), 1 << 80))


def range_within_approx(e: Fraction, d: Fraction) -> Fraction:
    """The largest r such that losses within a range r imply (e, d)-DP, rounded down by about 1e-11 of what d adds.

    It is where (e^(r/2) - e^(e/2))^2 = d (e^r - 1): e + 2 ln((1 + sqrt(d (1 - (1 - d) e^-e))) / (1 - d)).
    [for the pair of Dong-Durfee-Rogers 2020]

    >>> round(float(range_within_approx(Fraction(1, 10), Fraction("1e-6"))), 6)
    0.100619
    """
    if d == 0:
        return e
    less = d * (1 - Fraction(1, 1 << 36))  # so that the inverse, in floats, holds as well
    ratio = (1 + sqrt_down(less * (1 - (1 - less) * exp_up(-e)))) / (1 - less)
    return _stated(e, 2 * Fraction(max(0, ln_bounds(ratio, 80)[0]), 1 << 80))


def _stated(e: Fraction, more: Fraction) -> Fraction:
    """An epsilon with what a delta adds to it, as far as a guarantee may state it."""
    return max(e, min(e + more, Fraction(LARGEST_EPSILON)))


def pure_within_zcdp(rho: Fraction) -> Fraction:
    """The largest e0 such that e0^2/2 <= rho, rounded down."""
    return sqrt_down(2 * rho)


def gaussian_delta(mu: Fraction, e: Fraction) -> float:
    """delta(e) of continuous Gaussian noise at distance mu sigma, rounded up:

    Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu).   [Balle-Wang 2018, Theorem 8]

    >>> round(gaussian_delta(Fraction(1), Fraction(1)), 12)
    0.126936737507
    """
    if mu == 0:
        return 0.0
    mp = precision(200)
    m, x = mp.mpf(mu.numerator) / mu.denominator, mp.mpf(e.numerator) / e.denominator
    delta = mp.ncdf(m / 2 - x / m) - mp.exp(x) * mp.ncdf(-m / 2 - x / m)
    return min(1.0, max(0.0, float(delta)) * (1 + 2.0**-50) + _LEAST)


def gaussian_distance(e: Fraction, d: Fraction) -> float:
    """About the largest mu with delta(e) <= d, in floats: where a search for it begins, and no bound. 0 for d = 0.

    >>> mu = gaussian_distance(Fraction(1), Fraction("1e-9"))
    >>> round(gaussian_delta(Fraction(mu), Fraction(1)) * 1e9, 6)
    1.0
    """
    x = float(e)

    def within(mu: float) -> bool:
        log_p, log_q = _log_normal(mu / 2 - x / mu), x + _log_normal(-mu / 2 - x / mu)
        return log_q >= log_p or log_p + math.log1p(-math.exp(log_q - log_p)) <= aim

    if not d:
        return 0.0
    aim, low, high = math.log(d.numerator) - math.log(d.denominator), 0.0, 1.0
    while within(high):
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def _log_normal(x: float) -> float:
    """ln Phi(x) in floats; by its asymptotic series where Phi is no float."""
    if x > -35:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    return math.log1p(3 / x**4 - 1 / x**2) - x * x / 2 - math.log(-x * math.sqrt(2 * math.pi))
