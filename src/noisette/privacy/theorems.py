"""The composition theorems, one function each, for teaching and for comparison.

Sums of guarantees already compose as tightly as is known; nothing here is needed for that. `basic` and the two
`advanced` theorems return (epsilon, delta); the others take delta and return epsilon.

Vocabulary: `e0`, `d0` the guarantee of each release · `k` releases · `slack` the delta that a theorem adds to k d0 ·
`alpha` Rényi order. Arguments are read exactly; results are floats, rounded up, except that `each` rounds down.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, inside, nearest_float, positive, whole
from noisette.exact.rational import as_real, float_above, precise
from noisette.privacy.convert import LARGEST_EPSILON, zcdp_epsilon
from noisette.privacy.guarantee import Approx, Pure, once
from noisette.privacy.pld.ranges import BoundedRange, fixed_delta
from noisette.privacy.pld.tight import bisected, optimal_delta

__all__ = [
    "Theorem",
    "advanced",
    "advanced_tanh",
    "basic",
    "bounded_range",
    "bounded_range_fixed",
    "concentrated",
    "each",
    "optimal",
    "renyi_gaussian",
    "renyi_laplace",
    "renyi_response",
    "renyi_to_epsilon",
    "renyi_to_epsilon_mironov",
]

Theorem: TypeAlias = Literal["basic", "advanced", "advanced_tanh", "optimal", "concentrated"]


# Composition


def basic(e0: Number, d0: Number, k: int) -> tuple[float, float]:
    """Return (k e0, k d0).   [Dwork-McSherry-Nissim-Smith 2006; Dwork-Roth 2014, Theorem 3.16]

    >>> basic("0.1", "1/1024", 32)
    (3.2, 0.03125)
    """
    one, n = Approx(e0, d0), whole(k, "k")
    return nearest_float(n * one.epsilon, up=True), _total_delta(one, n, Fraction(0))


def advanced(e0: Number, k: int, slack: Number, d0: Number = 0) -> tuple[float, float]:
    """Return (sqrt(2k ln(1/slack)) e0 + k e0 (e^e0 - 1), k d0 + slack).

    [Dwork-Rothblum-Vadhan 2010; Dwork-Roth 2014, Theorem 3.20.] For few releases, or large e0, it is above `basic`.

    >>> round(advanced("0.01", 1000, "1e-6")[0], 6)
    1.76276
    """
    return _advanced(e0, k, slack, d0, lambda mp, e: mp.expm1(e))


def advanced_tanh(e0: Number, k: int, slack: Number, d0: Number = 0) -> tuple[float, float]:
    """Return (sqrt(2k ln(1/slack)) e0 + k e0 tanh(e0/2), k d0 + slack).   [Kairouz-Oh-Viswanath 2015, Theorem 3.4]

    e0 tanh(e0/2) is the mean loss of randomized response, the most that e0 allows, and at most half of e0 (e^e0 - 1).

    >>> round(advanced_tanh("0.01", 1000, "1e-6")[0], 6)
    1.712258
    """
    return _advanced(e0, k, slack, d0, lambda mp, e: mp.tanh(e / 2))


def _advanced(e0: Number, k: int, slack: Number, d0: Number, mean: Callable[[Any, Any], Any]) -> tuple[float, float]:
    """The theorem for a bound on the mean loss; `mean` returns that bound divided by e0."""
    one, n, extra = Approx(e0, d0), whole(k, "k"), inside(slack, "slack")
    mp = precise(one.epsilon, extra)
    e = as_real(mp, one.epsilon)
    return float_above(mp.sqrt(-2 * n * mp.log(as_real(mp, extra))) * e + n * e * mean(mp, e)), _total_delta(
        one, n, extra
    )


def optimal(e0: Number, d0: Number, k: int, delta: Number) -> float:
    """Return the smallest epsilon that holds at delta for any k (e0, d0)-DP mechanisms; infinite if there is none.

    [Kairouz-Oh-Viswanath 2015, Theorem 3.3.] It equals (Approx(e0, d0) * k).epsilon_at(delta); known mechanisms
    compose better still.

    >>> round(optimal("0.1", 0, 100, "1e-6"), 6)
    4.774568
    """
    return (Approx(e0, d0) * whole(k, "k")).epsilon_at(inside(delta, "delta"))


def concentrated(e0: Number, k: int, delta: Number) -> float:
    """Return the epsilon of k e0-DP releases by way of zCDP: each is (e0^2/2)-zCDP, and rhos add up.

    [Bun-Steinke 2016, Proposition 1.4; to epsilon by Canonne-Kamath-Steinke 2020, Proposition 12]

    >>> round(concentrated("0.1", 100, "1e-6"), 6)
    5.221534
    """
    rho, d = whole(k, "k") * Pure(e0).epsilon ** 2 / 2, inside(delta, "delta")
    return zcdp_epsilon(rho, d) if rho else 0.0


def bounded_range(e0: Number, k: int, delta: Number) -> float:
    """Return the epsilon of k adaptively chosen releases whose losses lie within a range of e0 each.

    The exponential mechanism is of this kind. The result is that of sums of such guarantees: the optimum for adaptive
    choices [Dong-Durfee-Rogers 2020], at most 1 % above it for many releases, or k e0^2/8 of zCDP [Cesar-Rogers 2021].

    >>> round(bounded_range("0.1", 100, "1e-6"), 3), round(concentrated("0.05", 100, "1e-6"), 3)
    (2.277, 2.419)
    """
    one = Pure(e0)
    known = once(BoundedRange(one.epsilon)) if one.epsilon else None
    return (Pure(one.epsilon, losses=known) * whole(k, "k")).epsilon_at(inside(delta, "delta"))


def bounded_range_fixed(e0: Number, k: int, delta: Number) -> float:
    """Return the epsilon of k releases of range e0 that were all fixed before the first one was drawn.

    [Dong-Durfee-Rogers 2020.] It does not hold where a release depends on the outcome of another; so it holds neither
    for the rounds of a top-k mechanism nor for the levels of `Quantiles`.

    >>> round(bounded_range_fixed("0.1", 100, "1e-6"), 3)
    2.246
    """
    one, n, d = Pure(e0).epsilon, whole(k, "k"), inside(delta, "delta")
    if not one:
        return 0.0
    return min(nearest_float(n * one, up=True), bisected(lambda e: Fraction(fixed_delta(one, n, Fraction(e))) <= d))


def each(k: int, epsilon: Number, delta: Number, theorem: Theorem = "optimal") -> float:
    """Return the largest epsilon of each of k releases for (epsilon, delta) in all, by a theorem, rounded down.

    Not offered: epsilon / sqrt(2k ln(1/delta)), which drops the second term of `advanced` and so promises more than was
    proved. For 10^4 releases and (1, e^-32) it gives 1/800, for which the theorem yields epsilon 1.0156. There the
    optimal theorem happens to allow 1/715.5; for an epsilon of 8.5 and delta 1e-6 it does not.

    >>> import math
    >>> [round(1 / each(10_000, 1, math.exp(-32), name), 3) for name in ("advanced", "advanced_tanh", "optimal")]
    [812.318, 806.202, 715.511]
    """
    n, total, d = whole(k, "k"), positive(epsilon, "epsilon", most=LARGEST_EPSILON), inside(delta, "delta")
    if theorem == "basic":
        return nearest_float(total / n, up=False)
    tests: dict[str, Callable[[float], bool]] = {
        "advanced": lambda e: Fraction(advanced(e, n, d)[0]) <= total,
        "advanced_tanh": lambda e: Fraction(advanced_tanh(e, n, d)[0]) <= total,
        "optimal": lambda e: (
            n * Fraction(e) <= total or Fraction(optimal_delta(Fraction(e), Fraction(0), n, total)) <= d
        ),
        "concentrated": lambda e: Fraction(concentrated(e, n, d)) <= total,
    }
    if theorem not in tests:
        raise InputError(f"No theorem has this name: choose one of basic, {', '.join(tests)}.")
    return _largest(tests[theorem], nearest_float(total, up=False))


def _largest(allowed: Callable[[float], bool], start: float) -> float:
    """The largest float, to about 2^-50, that a falling condition allows; the condition allows the result."""
    low = start
    while not allowed(low):
        low /= 2
    while 2 * low <= LARGEST_EPSILON and allowed(2 * low):
        low *= 2
    high = 2 * low
    while high - low > 2.0**-50 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


# Rényi differential privacy


def renyi_response(alpha: Number, epsilon: Number | None = None, *, keep: Number | None = None) -> float:
    """Return the Rényi divergence of randomized response, given its epsilon or the chance to keep the answer.

    ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) / (a-1) with p = e^epsilon/(1 + e^epsilon); for a = 1 the mean loss,
    epsilon tanh(epsilon/2). No epsilon-DP mechanism has more.   [Mironov 2017, Proposition 5]

    >>> round(renyi_response(3, keep="3/4"), 6), round(renyi_response(1, 1), 6)
    (0.956825, 0.462117)
    """
    if (epsilon is None) == (keep is None):
        raise InputError("Give either epsilon or keep, the chance that the true answer is kept.")
    a, given = _order(alpha), Pure(epsilon).epsilon if epsilon is not None else inside(keep or 0, "keep")
    mp = precise(a, given)
    x, e = as_real(mp, a), as_real(mp, given)
    if keep is not None:
        e = abs(mp.log(e) - mp.log1p(-e))
    if a == 1:
        return float_above(e * mp.tanh(e / 2))
    return float_above(mp.log((mp.exp(x * e) + mp.exp((1 - x) * e)) / (1 + mp.exp(e))) / (x - 1))


def renyi_laplace(alpha: Number, scale: Number, distance: Number = 1) -> float:
    """Return the Rényi divergence of Laplace noise of a scale at a distance; t = distance/scale.

    ln(a/(2a-1) e^((a-1) t) + (a-1)/(2a-1) e^(-a t)) / (a-1); for a = 1 it is t + e^-t - 1.
    [Mironov 2017, Proposition 6]

    >>> round(renyi_laplace(2, 1), 6), round(renyi_laplace(1, 1), 6)
    (0.619124, 0.367879)
    """
    a, moved = _order(alpha), Pure(_distance(distance) / positive(scale, "scale")).epsilon
    mp = precise(a, moved)
    x, t = as_real(mp, a), as_real(mp, moved)
    if a == 1:
        return float_above(t + mp.expm1(-t))
    near, far = x / (2 * x - 1) * mp.exp((x - 1) * t), (x - 1) / (2 * x - 1) * mp.exp(-x * t)
    return float_above(mp.log(near + far) / (x - 1))


def renyi_gaussian(alpha: Number, sigma: Number, distance: Number = 1) -> float:
    """Return the Rényi divergence of Gaussian noise at a distance: a distance^2 / (2 sigma^2).

    [Mironov 2017, Proposition 7; van Erven-Harremoës 2014]

    >>> renyi_gaussian(8, 2)
    1.0
    """
    return nearest_float(_order(alpha) * (_distance(distance) / positive(sigma, "sigma")) ** 2 / 2, up=True)


def renyi_to_epsilon(alpha: Number, divergence: Number, delta: Number) -> float:
    """Return divergence + ln(1 - 1/a) - ln(a delta)/(a - 1), an epsilon that holds at delta.

    [Canonne-Kamath-Steinke 2020, Proposition 12.] Rényi divergences of one order add up over releases; the best order
    is the one for which this is least.

    >>> round(renyi_to_epsilon(10, 1, "1e-6"), 6), round(renyi_to_epsilon_mironov(10, 1, "1e-6"), 6)
    (2.173853, 2.535057)
    """
    return _converted(alpha, divergence, delta, lambda mp, a: mp.log1p(-1 / a) - mp.log(a) / (a - 1))


def renyi_to_epsilon_mironov(alpha: Number, divergence: Number, delta: Number) -> float:
    """Return divergence + ln(1/delta)/(a - 1), an epsilon that holds at delta; `renyi_to_epsilon` is never above.

    [Mironov 2017, Proposition 3]

    >>> round(renyi_to_epsilon_mironov(32, "0.3", "1e-6"), 6)
    0.745662
    """
    return _converted(alpha, divergence, delta, lambda _, a: 0)


def _converted(alpha: Number, divergence: Number, delta: Number, gain: Callable[[Any, Any], Any]) -> float:
    a, known, d = _order(alpha), fraction(divergence, "divergence"), inside(delta, "delta")
    if a == 1 or known < 0:
        raise InputError("alpha must be above 1 and divergence at least 0 to give an epsilon.")
    mp = precise(a, known, d)
    x = as_real(mp, a)
    return max(0.0, float_above(as_real(mp, known) - mp.log(as_real(mp, d)) / (x - 1) + gain(mp, x)))


# Reading and rounding


def _order(alpha: Number) -> Fraction:
    number = fraction(alpha, "alpha")
    if number < 1:
        raise InputError("alpha must be at least 1: the order 1 is the mean loss.")
    return number


def _distance(value: Number) -> Fraction:
    number = fraction(value, "distance")
    if number < 0:
        raise InputError("distance must be at least 0.")
    return number


def _total_delta(one: Approx, k: int, slack: Fraction) -> float:
    return min(1.0, nearest_float(k * one.delta + slack, up=True))
