"""Integer arrays that never overflow: int64 where every entry fits, Python integers (dtype object) otherwise."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import Random

__all__ = ["CHUNK", "Int64Array", "Integers", "added", "filled", "gathered", "multiplied", "placed", "saturated"]

Integers: TypeAlias = NDArray[Any]
Int64Array: TypeAlias = NDArray[np.int64]
"""int64, or Python integers where one of them needs more than 64 bits."""

MOST: Final = 2**63 - 1

CHUNK: Final = 1 << 17
"""Arrays are drawn in chunks of this length, which fit into the processor's cache."""


def magnitude(x: Integers) -> int:
    """Return the largest magnitude in an array, 0 if it is empty."""
    return max(-int(x.min()), int(x.max())) if x.size else 0


def added(x: Integers, y: Integers) -> Integers:
    """Return x + y without overflow.

    >>> added(np.array([2**62]), np.array([2**62])).tolist()
    [9223372036854775808]
    """
    x, y = _narrow(x), _narrow(y)
    if x.dtype == y.dtype == np.int64 and magnitude(x) + magnitude(y) <= MOST:
        return np.asarray(x + y)
    return np.asarray(x.astype(object) + y.astype(object), dtype=object)


def _narrow(x: Integers) -> Integers:
    """Return int64 where it holds the array, else Python integers."""
    if x.dtype == np.int64 or x.dtype == object:
        return x
    return x.astype(np.int64 if magnitude(x) <= MOST else object)


def multiplied(x: Integers, factor: int) -> Integers:
    """Return x * factor without overflow."""
    if x.dtype == np.int64 and max(1, magnitude(x)) * abs(factor) <= MOST:
        return np.asarray(x * factor)
    return np.asarray(x.astype(object) * factor, dtype=object)


def placed(x: Integers, values: Mapping[int, int]) -> Integers:
    """Set some entries of a flat array; it becomes one of Python integers if a value does not fit."""
    if any(abs(z) > MOST for z in values.values()):
        x = x.astype(object)
    for i, z in values.items():
        x[i] = z
    return x


def gathered(values: list[int], shape: int | tuple[int, ...]) -> Integers:
    """Turn integers of any size into an array of a shape."""
    return placed(np.zeros(len(values), np.int64), dict(enumerate(values))).reshape(shape)


def saturated(x: Integers) -> NDArray[np.int64]:
    """Return int64; entries beyond its range saturate at the end of the range."""
    return x if x.dtype == np.int64 else np.clip(x, -MOST, MOST).astype(np.int64)


def filled(fill: Callable[[NDArray[np.int64], Random], dict[int, int]], size: int, rng: Random) -> Integers:
    """Draw an array chunk by chunk; `fill` writes a chunk and returns {position: value} for what it left out."""
    out, apart = np.empty(size, np.int64), {}
    for start in range(0, size, CHUNK):
        for i, z in fill(out[start : start + CHUNK], rng).items():
            apart[start + i] = z
    return placed(out, apart)
