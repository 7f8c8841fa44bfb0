"""The tightest known delta(epsilon) and epsilon(delta) of several releases: in closed form where there is one.

`parts` are losses with their counts; `rho` is that of releases known by zCDP alone. Results are rounded up.
 - Gaussians are one Gaussian with mu = sqrt(sum of mu^2), in closed form if there is nothing else;
 - k equal (epsilon, delta) guarantees have the optimal composition of Kairouz-Oh-Viswanath (2015);
 - other losses are composed on a lattice (`compose`);
 - bounded ranges are composed as adaptive releases or counted by their rhos, whichever gives less (`_ways`);
 - if some releases are known by zCDP alone, all Rényi divergences are added and converted
   (Canonne-Kamath-Steinke 2020, Proposition 12);
 - where discrete noise is accounted as continuous, V = n/(8 s^2) in all, (e, d) becomes (e + (e + 835) V, e^(V/2) d)
   (docs/proofs/composition.md).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from noisette.exact.number import nearest_float
from noisette.exact.rational import exact_sum, sqrt_up
from noisette.privacy.convert import gaussian_delta, lowest, zcdp_delta, zcdp_epsilon
from noisette.privacy.pld.compose import composed_delta, composed_epsilon, moments_of
from noisette.privacy.pld.lattice_gaussian import LatticeVector
from noisette.privacy.pld.loss import Loss, Normal, Response, at_least_one
from noisette.privacy.pld.ranges import Adaptive, BoundedRange, blocks

__all__ = ["bisected", "optimal_delta", "tight_delta", "tight_epsilon"]

Parts: TypeAlias = tuple[tuple[Loss, int], ...]

_UP = 1 + 1e-9
_LARGEST = 1e6
_LEAST = Fraction(5e-324)
_COARSEST = Fraction(1, 8)  # V up to which discrete noise is accounted as continuous
_FARTHEST = 835  # 2^129 e^-835 is below the smallest float


def optimal_delta(e0: Fraction, d0: Fraction, k: int, e: Fraction) -> float:
    """delta(e) of k releases of (e0, d0)-DP, exact and rounded up.   [Kairouz-Oh-Viswanath 2015, Theorem 3.3]

    1 - (1 - d0)^k (1 - sum over j with (2j-k) e0 > e of C(k,j) e^(j e0) / (1 + e^e0)^k (1 - e^(e - (2j-k) e0))).

    >>> round(optimal_delta(Fraction(1, 800), Fraction(0), 10_000, Fraction(1)) * 1e17, 6)
    1.495983
    """
    import numpy as np
    from scipy.special import gammaln

    step, target = float(e0), float(e)
    most = min(k, math.ceil(k / (1 + math.exp(-step)) + 20 * math.sqrt(k)) + 1)  # beyond lies e^-800 (Hoeffding)
    j = np.arange(max(0, math.floor((target / step + k) / 2)), most + 1)
    loss = (2 * j - k) * step
    log_p = gammaln(k + 1) - gammaln(j + 1) - gammaln(k - j + 1) - j * math.log1p(math.exp(-step))
    log_p -= (k - j) * (step + math.log1p(math.exp(-step)))
    rounding = 1 + (k + 16) * (step + math.log(k + 8)) * 2.0**-50  # logarithms of about this size lose that much
    found = math.fsum(np.exp(log_p) * -np.expm1(np.minimum(0.0, target - loss))) * rounding
    certain = at_least_one([(nearest_float(d0, up=True), k)])
    return min(1.0, certain + (1 - certain) * found + 5e-324)


@lru_cache(maxsize=4096)
def tight_delta(parts: Parts, rho: Fraction, e: Fraction) -> float:
    """delta(e) of all parts and of rho-zCDP, composed."""
    bound = None if rho else pure_bound(parts)
    if bound is not None and e >= bound:
        return 0.0
    return min(_delta(known, more, e) for known, more in _ways(parts, rho))


def _delta(parts: Parts, rho: Fraction, e: Fraction) -> float:
    known, rho, variation = _accounted(parts, rho)
    if variation > _COARSEST:
        return 1.0
    found = _smooth_delta(known, rho, (e - _FARTHEST * variation) / (1 + variation))
    return min(1.0, found * math.exp(variation / 2) * _UP + float(_LEAST)) if variation else found


@lru_cache(maxsize=4096)
def tight_epsilon(parts: Parts, rho: Fraction, d: Fraction) -> float:
    """The smallest epsilon with delta(epsilon) <= d; infinite if there is none."""
    bound = None if rho else pure_bound(parts)
    if d <= 0:
        return math.inf if bound is None else nearest_float(bound, up=True)
    found = min(_epsilon(known, more, d) for known, more in _ways(parts, rho))
    return found if bound is None else min(found, nearest_float(bound, up=True))


def _epsilon(parts: Parts, rho: Fraction, d: Fraction) -> float:
    known, rho, variation = _accounted(parts, rho)
    left = d * (1 - variation) - 2 * _LEAST if variation else d
    found = _smooth_epsilon(known, rho, left) if left > 0 and variation <= _COARSEST else math.inf
    if variation and found < math.inf:
        found = nearest_float(Fraction(found) * (1 + variation) + _FARTHEST * variation, up=True)
    return found


def _ways(parts: Parts, rho: Fraction) -> list[tuple[Parts, Fraction]]:
    """The ways to count all parts; each of them holds for releases that are chosen adaptively.

    Either one kind of bounded range is composed as adaptive releases and the other kinds as pairs of laws, or all are
    counted by their rhos. If some releases are known by zCDP alone, only the second way is possible.
    """
    ranges = [(loss, k) for loss, k in parts if isinstance(loss, BoundedRange)]
    if not ranges:
        return [(parts, rho)]
    others = tuple(part for part in parts if not isinstance(part[0], BoundedRange))
    ways = [(others, rho + sum((loss.concentrated * k for loss, k in ranges), Fraction(0)))]
    if not rho:
        main = max(ranges, key=lambda part: part[1] * part[0].width ** 2)
        rest = [pair for loss, k in ranges if loss != main[0] for pair in blocks(loss, k, longest=1)]
        ways.append(((*others, *rest, *blocks(*main)), rho))
    return ways


def _accounted(parts: Parts, rho: Fraction) -> tuple[Parts, Fraction, Fraction]:
    """The parts with all Gaussians as one, or as zCDP if rho > 0; then rho; then V of the parts that are not zCDP."""
    others, square = tuple(x for x in parts if not isinstance(x[0], Normal)), _squares(parts)
    if rho:  # (mu^2/2)-zCDP is exact for Gaussian noise, and holds for discrete noise too
        return others, rho + square / 2, _variation(others)
    return (*others, *([(Normal(sqrt_up(square)), 1)] if square else [])), rho, _variation(parts)


def _smooth_delta(parts: Parts, rho: Fraction, e: Fraction) -> float:
    """delta(e) as if all Gaussian noise were continuous."""
    match parts:
        case ():
            return zcdp_delta(rho, e) if rho else 0.0
        case _ if rho:
            return _moment_delta(parts, rho, e)
        case ((Response(e0, d0), k),) if e0:
            return optimal_delta(e0, d0, k, e)
        case ((Normal(mu), 1),):
            return gaussian_delta(mu, e)
        case ((BoundedRange() as block, 1),):
            return block.delta_at(e)
        case ((Adaptive() as block, 1),):
            return block.delta_at(nearest_float(e, up=False))
        case ((LatticeVector() as vector, 1),):
            return vector.delta_at(e)
        case _:
            return composed_delta(dict(parts), nearest_float(e, up=False))


def _smooth_epsilon(parts: Parts, rho: Fraction, d: Fraction) -> float:
    """epsilon(d) as if all Gaussian noise were continuous."""
    match parts:
        case ():
            return zcdp_epsilon(rho, d) if rho else 0.0
        case _ if rho:
            return _moment_epsilon(parts, rho, d)
        case ((Response(e0, d0), k),) if e0:
            return bisected(lambda e: Fraction(optimal_delta(e0, d0, k, Fraction(e))) <= d)
        case ((Normal(mu), 1),):
            return _normal_epsilon(mu, d)
        case ((Adaptive() | BoundedRange() as block, 1),):
            return bisected(lambda e: Fraction(block.delta_at(e)) <= d)
        case _:
            return composed_epsilon(dict(parts), nearest_float(d, up=False))


def _normal_epsilon(total: Fraction, d: Fraction) -> float:
    """Solve for the Gaussian's epsilon in floats, then go up until delta(epsilon) <= d is certain."""
    from scipy.special import log_ndtr

    mu, aim = float(total), math.log(d.numerator) - math.log(d.denominator)
    if not mu:
        return 0.0

    def enough(e: float) -> bool:
        log_p, log_q = float(log_ndtr(mu / 2 - e / mu)), e + float(log_ndtr(-mu / 2 - e / mu))
        return log_q >= log_p or log_p + math.log1p(-math.exp(log_q - log_p)) <= aim

    low, high = 0.0, mu * (mu / 2 + math.sqrt(-2 * aim) + 1)
    while high - low > 1e-14 * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    for nudge in (1e-12, 1e-10, 1e-8, 1e-6):
        e = high * (1 + nudge) if high > 1e-12 else 0.0
        if Fraction(gaussian_delta(total, Fraction(e))) <= d:
            return e
    return math.inf


def bisected(enough: Callable[[float], bool]) -> float:
    """The smallest x >= 0, to about 1e-12, for which a monotone condition holds; the condition holds for the result."""
    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            return math.inf
    while high - low > 1e-12 * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def pure_bound(parts: Parts) -> Fraction | None:
    """The sum of the largest losses; None if one is unbounded."""
    bounds = [(loss.pure(), k) for loss, k in parts]
    return None if any(b is None for b, _ in bounds) else exact_sum(b * k for b, k in bounds if b is not None)


def rho_bound(parts: Parts, rho: Fraction) -> Fraction | None:
    """The sum of the rhos; None if one is unknown."""
    rhos = [(loss.rho(), k) for loss, k in parts]
    return None if any(r is None for r, _ in rhos) else rho + exact_sum(r * k for r, k in rhos if r is not None)


def _squares(parts: Parts) -> Fraction:
    """Gaussian noise at distances mu is Gaussian noise at distance sqrt(sum of mu^2).   [Dong-Roth-Su 2022]"""
    return exact_sum(loss.mu**2 * k for loss, k in parts if isinstance(loss, Normal))


def _variation(parts: Parts) -> Fraction:
    return exact_sum(k * Fraction(loss.slack()) for loss, k in parts if loss.slack())


def _moment_delta(parts: Parts, rho: Fraction, e: Fraction) -> float:
    """inf over a > 1 of e^((a-1)(D_a - e)) / a (1 - 1/a)^(a-1), D_a the sum of Rényi divergences."""
    log_moment, certain = moments_of(dict(parts))
    r, x = nearest_float(rho, up=True), nearest_float(e, up=False)

    def log_delta(a: float) -> float:
        return log_moment(a - 1) + (a - 1) * (a * r - x) - math.log(a) + (a - 1) * math.log1p(-1 / a)

    best = min(0.0, lowest(log_delta, 1 + 1e-6, max(2.0, 2 * x / r + 10)))
    return min(1.0, certain + math.exp(best) * _UP + float(_LEAST))


def _moment_epsilon(parts: Parts, rho: Fraction, d: Fraction) -> float:
    """inf over a > 1 of D_a + ln(1 - 1/a) - ln(a d)/(a - 1), D_a the sum of Rényi divergences."""
    log_moment, certain = moments_of(dict(parts))
    r, left = nearest_float(rho, up=True), nearest_float(d, up=False) - certain
    if left <= 0:
        return math.inf
    log_d = math.log(left) - 1e-9

    def epsilon(a: float) -> float:
        return log_moment(a - 1) / (a - 1) + a * r + math.log1p(-1 / a) - (log_d + math.log(a)) / (a - 1)

    return max(0.0, lowest(epsilon, 1 + 1e-6, 4 + 4 * math.sqrt(-log_d / r)) * _UP)
