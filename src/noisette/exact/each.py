"""A different parameter for each entry of an array, without a table for each.

All entries share the tables of one exponential variable X, whose multiples of 2^-56 are geometric: floor(scale X) is
geometric with that scale. Floats decide where they are sure; elsewhere more binary places of X are drawn.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers
from noisette.exact.blocks import coins_exp
from noisette.exact.digits import Digits
from noisette.exact.noise import Integers, filled, placed
from noisette.exact.random import Random

__all__ = ["gaussian_each", "geometric_each", "laplace_each"]

SHARED_BITS: Final = 56  # an exponential variable is first drawn to this many binary places


@cache
def _exponential() -> Digits:
    return Digits(Fraction(1 << SHARED_BITS), two_sided=False)


def geometric_each(scales: list[Fraction], rng: Random) -> Integers:
    """One geometric variable per scale: floor(scale X) for an exponential X, drawn to 56 binary places first."""
    x = filled(_exponential().fill, len(scales), rng)
    unit = np.array([float(scale) for scale in scales]) * 2.0**-SHARED_BITS
    low = x.astype(float) * unit
    error = low * 2.0**-50
    sure = np.floor(low - error)
    doubtful = np.flatnonzero((sure != np.floor(low + error + unit * 1.001)) | (low >= 2.0**52))
    sure[doubtful] = 0
    exact = {int(i): _floor_of_product(int(x[i]), scales[i], rng) for i in doubtful}
    return placed(sure.astype(np.int64), exact)


def _floor_of_product(x: int, scale: Fraction, rng: Random) -> int:
    """floor(scale X) for an exponential X that is known to lie in [x, x + 1] 2^-56; more places are drawn as needed."""
    places = SHARED_BITS
    while True:
        lo, hi = math.floor(x * scale / (1 << places)), math.ceil((x + 1) * scale / (1 << places)) - 1
        if lo == hi:
            return lo
        places += 64
        x = (x << 64) | samplers.retry(_attempt_places, places, rng)


def _attempt_places(places: int, rng: Random) -> int | None:
    """The next 64 binary places of an exponential variable, independent of the earlier: P(u) ∝ e^(-u / 2^places)."""
    u = rng.bits(64)
    return u if samplers.bernoulli_exp(Fraction(u, 1 << places), rng) else None


def laplace_each(scales: list[Fraction], rng: Random) -> Integers:
    """One discrete Laplace variable per scale."""
    z = geometric_each(scales, rng)
    negative = (rng.words(len(scales), np.uint8) & 1).astype(bool)
    twice = np.flatnonzero(negative & (z == 0))
    z = np.where(negative, -z, z)
    return _redrawn(z, twice, scales, laplace_each, rng)  # zero must not be counted twice


def gaussian_each(s2: list[Fraction], rng: Random) -> Integers:
    """One discrete Gaussian per s2: the rejection of `samplers.discrete_gaussian`, for all entries at once."""
    t = [math.isqrt(math.floor(v)) + 1 for v in s2]
    z = laplace_each([Fraction(v) for v in t], rng)
    variance = np.array([float(v) for v in s2])
    estimate = (np.abs(z).astype(float) - variance / np.array(t, dtype=float)) ** 2 / (2 * variance)
    coin = rng.words(len(s2), np.uint32)
    kept = coins_exp(coin, estimate, lambda i: (abs(int(z[i])) - s2[i] / t[i]) ** 2 / (2 * s2[i]), rng)
    return _redrawn(z, np.flatnonzero(~kept), s2, gaussian_each, rng)


def _redrawn(
    z: Integers,
    at: NDArray[np.intp],
    parameters: list[Fraction],
    draw: Callable[[list[Fraction], Random], Integers],
    rng: Random,
) -> Integers:
    """Draw the entries at some positions again."""
    if not at.size:
        return z
    fresh = draw([parameters[i] for i in at], rng)
    return placed(z, dict(zip(at.tolist(), map(int, fresh), strict=True)))
