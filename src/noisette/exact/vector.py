"""The laws of `samplers`, for whole arrays: exactly the same probabilities, at array speed, in NumPy alone.

    >>> from noisette.exact import vector
    >>> vector.discrete_laplace(10, 1000).dtype, vector.discrete_gaussian("2.5", (3, 4)).shape
    (dtype('int64'), (3, 4))

A parameter may be one number or one for each entry. Without a size, one Python integer is drawn. Work per draw depends
on chance alone, since the tables know no data.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers
from noisette.exact.frozen import Read
from noisette.exact.gaussian_arrays import GaussianTable, gaussian_each
from noisette.exact.geometric_arrays import GeometricTable, geometric_each, laplace_each
from noisette.exact.integers import Integers, filled, gathered, saturated
from noisette.exact.keyed import KeyedRandom
from noisette.exact.lookup_table import LookupTable
from noisette.exact.number import Number, floor_log2, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds

__all__ = ["discrete_gaussian", "discrete_laplace", "geometric", "logistic", "uniform"]

Size: TypeAlias = int | tuple[int, ...]
Parameter: TypeAlias = Number | list[Number] | NDArray[Any]

LARGEST_SCALE: Final = 1 << 60
SMALLEST_SCALE: Final = Fraction(1, 1 << 60)
Scale: TypeAlias = Annotated[Read[Number, Fraction], partial(positive, most=LARGEST_SCALE, least=SMALLEST_SCALE)]
Variance: TypeAlias = Annotated[
    Read[Number, Fraction], partial(positive, most=LARGEST_SCALE**2, least=SMALLEST_SCALE**2)
]
"""Fields of laws and mechanisms that are within what the samplers can draw."""

_IDLE_BITS: Final = 9

_Table: TypeAlias = GeometricTable | GaussianTable


class _Law:
    """One law and its table, which is built after `worth` single draws: it costs about as much as they do.

    Coins of a key always go to the table: what they give must not depend on what this process drew before.
    """

    def __init__(self, build: Callable[[], _Table], scalar: Callable[[Random], int], worth: int) -> None:
        self.build, self.scalar, self.left = build, scalar, worth
        self.table: _Table | None = None

    def draw(self, size: Size | None, rng: Random) -> int | Integers:
        """Draw one integer, or an array of the given shape."""
        count = 1 if size is None else _count(size)
        if self.table is None:
            self.left -= count
            if self.left > 0 and not isinstance(rng, KeyedRandom):
                return self.scalar(rng) if size is None else gathered([self.scalar(rng) for _ in range(count)], size)
            self.table = self.build()
        drawn = self.table.one(rng) if size is None else filled(self.table.fill, count, rng).reshape(size)
        if count == 1:
            _idle(rng)
        return drawn


def _idle(rng: Random) -> None:
    """Wait for a random time of a few microseconds, independent of the value drawn.

    Python takes some nanoseconds longer for one integer than for another. An observer can time each draw once, and a
    random wait with a hundred times that spread hides the difference.
    """
    for _ in range(rng.bits(_IDLE_BITS)):
        pass


def _count(size: Size) -> int:
    return math.prod(whole(n, "size", least=0) for n in (size if isinstance(size, tuple) else (size,)))


@lru_cache(maxsize=32)
def _geometric(scale: Fraction) -> _Law:
    return _Law(lambda: GeometricTable(scale, two_sided=False), lambda rng: samplers.geometric(scale, rng), worth=200)


@lru_cache(maxsize=32)
def _laplace(scale: Fraction) -> _Law:
    return _Law(
        lambda: GeometricTable(scale, two_sided=True), lambda rng: samplers.discrete_laplace(scale, rng), worth=200
    )


@lru_cache(maxsize=32)
def _gaussian(s2: Fraction) -> _Law:
    return _Law(lambda: GaussianTable(s2), lambda rng: samplers.discrete_gaussian(s2, rng), worth=500)


@lru_cache(maxsize=256, typed=True)
def _read(law: Callable[[Fraction], _Law], parameter: Number) -> _Law:
    """Return the law of a parameter; cached, because parsing the parameter costs more than a draw."""
    return law(_parameter(law, parameter))


def _parameter(law: Callable[[Fraction], _Law], parameter: Number) -> Fraction:
    if law is _gaussian:
        return positive(parameter, "sigma2", most=LARGEST_SCALE**2, least=SMALLEST_SCALE**2)
    return positive(parameter, "scale", most=LARGEST_SCALE, least=SMALLEST_SCALE)


def _noise(
    law: Callable[[Fraction], _Law],
    each: Callable[[list[Fraction], Random], Integers],
    parameter: Parameter,
    size: Size | None,
    rng: Random,
) -> int | Integers:
    """Draw noise of one law, with one parameter for all entries or one for each."""
    if not isinstance(parameter, np.ndarray | list):
        return _read(law, parameter).draw(size, rng)
    entries = np.asarray(parameter, dtype=object)
    if size is not None and entries.shape != (size if isinstance(size, tuple) else (size,)):
        raise InputError("There is one parameter per entry, so size must be their shape: leave size out.")
    return each([_parameter(law, value) for value in entries.flat], rng).reshape(entries.shape)


def geometric_noise(scale: Parameter, size: Size | None, rng: Random = SYSTEM) -> int | Integers:
    """Draw one-sided geometric noise; Python integers where a draw does not fit an int64."""
    return _noise(_geometric, geometric_each, scale, size, rng)


def laplace_noise(scale: Parameter, size: Size | None, rng: Random = SYSTEM) -> int | Integers:
    """Draw discrete Laplace noise; Python integers where a draw does not fit an int64."""
    return _noise(_laplace, laplace_each, scale, size, rng)


def gaussian_noise(sigma2: Parameter, size: Size | None, rng: Random = SYSTEM) -> int | Integers:
    """Draw discrete Gaussian noise; Python integers where a draw does not fit an int64."""
    return _noise(_gaussian, gaussian_each, sigma2, size, rng)


def geometric(scale: Parameter, size: Size | None = None, *, rng: Random = SYSTEM) -> int | Integers:
    """Draw z >= 0 with probability (1 - a) a^z, a = e^(-1/scale); arrays are int64, saturated at its end."""
    drawn = geometric_noise(scale, size, rng)
    return drawn if isinstance(drawn, int) else saturated(drawn)


def discrete_laplace(scale: Parameter, size: Size | None = None, *, rng: Random = SYSTEM) -> int | Integers:
    """Draw z with probability (1 - a)/(1 + a) a^|z|, a = e^(-1/scale), for any scale up to 2^60.

    Arrays are int64, and a draw beyond int64 saturates at its end, which has probability e^(-2^63 / scale):
    below 10^-27 up to scale 2^57, and 3 in 10 000 at 2^60. Mechanisms do not saturate: they add the exact draw.
    """
    drawn = laplace_noise(scale, size, rng)
    return drawn if isinstance(drawn, int) else saturated(drawn)


def discrete_gaussian(sigma2: Parameter, size: Size | None = None, *, rng: Random = SYSTEM) -> int | Integers:
    """Draw z with probability proportional to e^(-z^2 / (2 sigma2)), for any sigma up to 2^60.

    Arrays are int64, saturated like those of `discrete_laplace` (probability below 10^-14 at sigma = 2^60).
    """
    drawn = gaussian_noise(sigma2, size, rng)
    return drawn if isinstance(drawn, int) else saturated(drawn)


def uniform(n: int, size: Size, *, rng: Random = SYSTEM) -> Integers:
    """Draw whole numbers from 0 .. n-1, n up to 2^62, by rejection of 64-bit words."""
    n = whole(n, "n")
    if n > 1 << 62:
        raise InputError("n must be at most 2^62: draw larger numbers one by one with samplers.uniform.")
    out = np.empty(_count(size), np.int64)
    todo = np.arange(out.size)
    shift, fair = np.uint64(64 - max(1, (n - 1).bit_length())), np.uint64(n)
    while todo.size:
        words = rng.words(todo.size, np.uint64) >> shift
        kept = words < fair
        out[todo[kept]] = words[kept].astype(np.int64)
        todo = todo[~kept]
    return out.reshape(size)


@lru_cache(maxsize=32)
def _logistic(g: Fraction, weight: Fraction) -> LookupTable:
    def cumulative(bits: int) -> tuple[list[int], int]:
        places = bits + max(0, floor_log2(weight)) + 8
        rest = weight.numerator * exp_bounds(-g, places)[0]
        own = weight.denominator << places
        return [(own << bits) // (own + rest)], 2

    return LookupTable(cumulative, 0)


def logistic(g: Number, size: Size, *, weight: Number = 1, rng: Random = SYSTEM) -> NDArray[np.bool_]:
    """Draw True with probability 1 / (1 + weight e^-g): the coin of randomized response."""
    table = _logistic(positive(g, "g"), positive(weight, "weight"))
    return np.equal(filled(table.fill, _count(size), rng), 0).reshape(size)
