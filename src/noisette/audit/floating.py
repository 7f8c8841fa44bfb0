"""Attacks on floating-point noise: the last bits of x + noise give x away.   [Mironov 2012]

`x + generator.laplace()` cannot reach every float: near zero, 0 + noise has finer last bits than 1 + noise, and the
noise itself is a logarithm of one of 2^53 numbers, so most floats are no value of it. An output that x can release and
x' cannot gives x away for certain, whatever epsilon is claimed.

Each view below maps an output to what an attacker would look at. A view is post-processing, so `epsilon_lower_bound`
of it never exceeds the true epsilon: honest mechanisms pass, whatever the view.
"""

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.audit.sampled import Batch, epsilon_lower_bound

__all__ = ["attainable_by_laplace", "floating_point_epsilon", "last_bits", "porous_share"]

_NEAREST = np.arange(-12, 13)


def last_bits(y: Any) -> Hashable:
    """Return (exponent of the first bit, exponent of the last bit set) of a float, or those of a vector's numbers.

    >>> last_bits(0.75), last_bits(0.1), last_bits(0.0)
    ((-1, -2), (-4, -55), None)
    """
    if isinstance(y, list | tuple | np.ndarray):
        return tuple(last_bits(v) for v in y)
    if y == 0 or not math.isfinite(y):
        return None
    numerator, denominator = float(y).as_integer_ratio()
    trailing = (numerator & -numerator).bit_length() - denominator.bit_length()
    return math.frexp(y)[1] - 1, trailing


def porous_share(released: Any, x_prime: float) -> float:
    """Return the share of outputs that no float x' + noise could be, if x' is not 0.

    If |y| <= |x'|/2 then the noise is at least |x'|/2, so y = x' + noise is a multiple of the last bit of |x'|/2.

    >>> noise = np.random.default_rng().laplace(size=1000)
    >>> porous_share(noise, 1.0) > 0.2, porous_share(1 + noise, 1.0), porous_share(np.rint(noise * 64) / 64, 1.0)
    (True, 0.0, 0.0)
    """
    y = np.asarray(released, float)
    unit = math.ulp(abs(x_prime) / 2)
    return float(np.mean((np.abs(y) <= abs(x_prime) / 2) & (np.fmod(y, unit) != 0)))


def attainable_by_laplace(y: Any, x: float, scale: float) -> NDArray[np.bool_]:
    """Tell which outputs numpy's sampler can make of x: x + scale log(2u) or x - scale log(2 - u - u), u = k / 2^53.

    >>> noise = np.random.default_rng().laplace(size=1000)
    >>> [bool(attainable_by_laplace(5 + noise, x, 1.0).mean() > 0.95) for x in (5.0, 6.0)]
    [True, False]
    """
    y = np.asarray(y, float)[..., None]
    half = np.exp(-np.abs(y - x) / scale) / 2
    u = (np.rint(np.where(y >= x, 1 - half, half) * 2.0**53) + _NEAREST) * 2.0**-53
    log = np.vectorize(math.log, otypes=[float])
    reached = np.where(
        y >= x,
        x - scale * log(np.clip(2.0 - u - u, 2.0**-53, 1)),
        x + scale * log(np.clip(u + u, 2.0**-53, 1)),
    )
    return np.asarray((reached == y).any(axis=-1))


def laplace_view(x: float, x_prime: float, scale: float) -> Callable[[Any], Hashable]:
    """Return the view of an attacker who knows numpy's sampler: could y come from x, and could it come from x'?"""
    return lambda y: (
        bool(attainable_by_laplace(y, x, scale)),
        bool(attainable_by_laplace(y, x_prime, scale)),
    )


def floating_point_epsilon(
    mechanism: Callable[[Any], Any],
    x: Any,
    x_prime: Any,
    *,
    view: Callable[[Any], Hashable] = last_bits,
    runs: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.99,
    batch: Batch | None = None,
) -> float:
    """Return a lower bound on epsilon that an attacker who looks at the floats' bits can prove.

    >>> generator = np.random.default_rng()
    >>> floating_point_epsilon(lambda x: x + generator.laplace(), 0.0, 1.0) > 2      # claims epsilon 1
    True
    """

    def viewed(answer: Any, count: int) -> list[Hashable]:
        released = batch(answer, count) if batch else [mechanism(answer) for _ in range(count)]
        return [view(y) for y in released]

    bound = partial(epsilon_lower_bound, runs=runs, delta=delta, confidence=confidence)
    return bound(mechanism, x, x_prime, batch=viewed)
