"""How many questions a holdout can answer, each asked after the answers to those before; and how large it must be.

A question is a phi with values in [0, 1], such as "does the model classify this row correctly"; its answer should be
within tau of the true mean. With a chance of at least 1 - beta all answers are. Three routes:

splitting   each question gets rows of its own        Hoeffding and Bonferroni
laplace     sums of all rows with Laplace noise       pure DP and the transfer theorem
gaussian    sums of all rows with Gaussian noise      the same, with the exact delta of all answers together

The number of answers grows with n for the first, about with n for the second, and with n^2 for the third.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Annotated, Final, TypeAlias

from noisette.exact.frozen import frozen
from noisette.exact.number import Number, inside, nearest_float, whole
from noisette.exact.rational import as_real, precise
from noisette.holdout.bounds import hoeffding_deviation
from noisette.holdout.transfer import gap_at, gaussian_error, laplace_error, sum_above
from noisette.mechanisms import Gaussian, Laplace

__all__ = ["ROUTES", "Capacity", "accuracy", "fixed_queries", "most_queries", "rows_needed"]

_MOST = 10**15  # the most rows and queries that are tried


@frozen
class Capacity:
    """What a route promises: `queries` answers on n rows, all within tau except with a chance of beta.

    `noise` is the scale of `Laplace` or the sigma of `Gaussian` for each sum of n values in [0, 1] that lie on the grid
    of the noise, such as 0 and 1; divide the noisy sum by n. tau is rounded up.
    """

    route: str
    n: Annotated[int, whole]
    queries: Annotated[int, whole]
    beta: Fraction
    tau: float
    noise: Fraction | None = None


Route: TypeAlias = Callable[[int, int, Fraction], Capacity]


# The routes


def _splitting(n: int, queries: int, beta: Fraction) -> Capacity:
    """Each question has n // queries rows, and fails with a chance of beta / queries.   [Hoeffding 1963]"""
    tau = hoeffding_deviation(n // queries, beta / queries) if queries <= n else math.inf
    return Capacity("splitting", n, queries, beta, tau)


def _laplace(n: int, queries: int, beta: Fraction) -> Capacity:
    """Noise of scale s makes all answers about (queries/s)-DP: tau = s (1 + ln(queries/beta))/n + tanh(queries/(4s)).

    Where tanh is nearly linear, s = sqrt(n queries / (4 (1 + ln(queries/beta)))) is best.
    """
    scale = _short(math.sqrt(n * queries / (4 * (1 + math.log(queries) - math.log(beta)))))
    epsilon = (Laplace(scale).guarantee(1) * queries).epsilon_at(0)
    tau = _mean(laplace_error(scale, queries, beta), n, gap_at(epsilon, 0, beta))
    return Capacity("laplace", n, queries, beta, tau, scale)


def _gaussian(n: int, queries: int, beta: Fraction) -> Capacity:
    """tau = sigma sqrt(2 ln(2 queries/b'))/n + the gap at epsilon, delta and b, with b + b' = beta.

    delta(epsilon) is the exact one of all answers together. Any sigma, epsilon and b give a bound; they are chosen
    well.
    """
    share, sigma, epsilon = _good_gaussian(n, queries, float(beta))
    s, b = _short(sigma), beta * Fraction(share)
    delta = (Gaussian(s).guarantee(1) * queries).delta_at(epsilon)
    tau = _mean(gaussian_error(s, queries, beta - b), n, gap_at(epsilon, delta, b))
    return Capacity("gaussian", n, queries, beta, tau, s)


def _good_gaussian(n: int, queries: int, beta: float) -> tuple[float, float, float]:
    """The share of beta for the gap, sigma and epsilon that are about best.

    With mu = sqrt(queries)/sigma the gap t solves z(b(1+t)^2/4) - z(b(1-t)^2/4) = mu, where z is the normal quantile
    (proof note): t is searched, and mu follows.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtri

    def mu(t: float, share: float) -> float:
        return float(ndtri(beta * share * (1 + t) ** 2 / 4) - ndtri(beta * share * (1 - t) ** 2 / 4))

    def tau(log_t: float, share: float) -> float:
        noise = math.sqrt(2 * math.log(2 * queries / (beta * (1 - share))))
        return math.sqrt(queries) * noise / (n * mu(math.exp(log_t), share)) + math.exp(log_t)

    def best(share: float) -> tuple[float, float]:
        found = minimize_scalar(lambda x: tau(x, share), bounds=(-30, -0.001), method="bounded")
        return float(found.fun), math.exp(float(found.x))

    share = float(minimize_scalar(lambda x: best(x)[0], bounds=(0.01, 0.99), method="bounded").x)
    t = best(share)[1]
    m = mu(t, share)
    z = -float(ndtri(beta * share * (1 - t) ** 2 / 4))
    return share, math.sqrt(queries) / m, max(0.0, m * z - m * m / 2)


ROUTES: Final[dict[str, Route]] = {"splitting": _splitting, "laplace": _laplace, "gaussian": _gaussian}
"""Functions of n, queries and beta, by name."""


# What people ask


def accuracy(n: int, queries: int, beta: Number) -> tuple[Capacity, ...]:
    """Return what each route promises for a number of rows and of queries, the most accurate first.

    >>> [(a.route, round(a.tau, 4)) for a in accuracy(1_000_000, 500, "0.05")]
    [('gaussian', 0.0169), ('splitting', 0.0498), ('laplace', 0.0714)]
    """
    rows, m, b = whole(n, "n"), whole(queries, "queries"), inside(beta, "beta")
    found = [route(rows, m, b) for route in ROUTES.values()]
    return tuple(sorted((one for one in found if one.tau < 1), key=lambda one: one.tau))


def most_queries(n: int, tau: Number, beta: Number) -> tuple[Capacity, ...]:
    """Return how many queries each route can answer within tau, the most first; a route that answers none is left out.

    >>> [(a.route, a.queries) for a in most_queries(10_000, "0.05", "0.05")]
    [('splitting', 8), ('gaussian', 6), ('laplace', 4)]
    """
    rows, t, b = whole(n, "n"), inside(tau, "tau"), inside(beta, "beta")
    found = (_most(partial(route, rows), b, t) for route in ROUTES.values())
    return tuple(sorted((one for one in found if one), key=lambda one: -one.queries))


def rows_needed(queries: int, tau: Number, beta: Number) -> tuple[Capacity, ...]:
    """Return how many rows each route needs for a number of queries within tau, the fewest first.

    >>> [(a.route, a.n) for a in rows_needed(500, "0.05", "0.05")]
    [('gaussian', 114178), ('splitting', 990500), ('laplace', 2041651)]
    """
    m, t, b = whole(queries, "queries"), inside(tau, "tau"), inside(beta, "beta")
    found = (_least(route, m, b, t) for route in ROUTES.values())
    return tuple(sorted((one for one in found if one), key=lambda one: one.n))


def fixed_queries(n: int, tau: Number, beta: Number) -> int:
    """Return how many queries could be answered if all were fixed in advance: beta e^(2 n tau^2) / 2, rounded down.

    >>> fixed_queries(2_000, "0.05", "0.05")
    550
    """
    rows, t, b = whole(n, "n"), inside(tau, "tau"), inside(beta, "beta")
    mp = precise(t, b)
    return int(mp.floor(as_real(mp, b) * mp.exp(2 * rows * as_real(mp, t * t)) / 2))


# Searching, reading and rounding


def _most(route: Callable[[int, Fraction], Capacity], beta: Fraction, tau: Fraction) -> Capacity | None:
    """What the route promises for the largest number of queries within tau."""
    return _last(lambda queries: route(queries, beta), lambda one: one.tau <= tau)


def _least(route: Route, queries: int, beta: Fraction, tau: Fraction) -> Capacity | None:
    """What the route promises for the smallest number of rows within tau: one more than the last that is too few."""
    short = _last(lambda n: route(n, queries, beta), lambda one: not one.tau <= tau)
    enough = route(1 if short is None else short.n + 1, queries, beta)
    return enough if enough.tau <= tau else None


def _last(made: Callable[[int], Capacity], holds: Callable[[Capacity], bool]) -> Capacity | None:
    """The last of made(1), made(2), … for which a condition holds, which it does up to some number; None if never."""
    low, high, found = 0, 1, None
    while high < _MOST and holds(one := made(high)):
        low, high, found = high, 2 * high, one
    while high - low > 1:
        middle = (low + high) // 2
        if holds(one := made(middle)):
            low, found = middle, one
        else:
            high = middle
    return found


def _short(value: float) -> Fraction:
    """A number with four digits: any noise gives a bound."""
    return Fraction(f"{value:.4g}")


def _mean(noise: float, n: int, gap: float) -> float:
    """The error of a mean: that of its sum divided by n, and the gap; rounded up."""
    if not math.isfinite(noise):
        return math.inf
    return sum_above(nearest_float(Fraction(noise) / n, up=True), gap)
