"""Who is ahead with Gumbel noise: floats decide whom to look at more closely, lazily refined reals who wins.

Vocabulary: `loss` of a candidate, max q - q_i · `key` its noisy score, in units of scale.
"""

from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact import real
from noisette.exact.random import Random
from noisette.mechanisms.selection.exponential import Scores

__all__ = ["race"]

Floats = NDArray[np.float64]


def race(losses: Scores, scale: Fraction, k: int, rng: Random) -> tuple[int, ...]:
    """Draw the k largest of -loss/scale + Gumbel noise, in order."""
    words, near = rng.words(losses.size, np.uint64), np.asarray(losses * float(1 / scale))
    key = _keys(near, words)
    low, high = _around(key, near, words)
    alive = np.flatnonzero(high >= np.partition(low, -k)[-k])
    order: Any = alive[np.argsort(-key[alive])]
    if len(order) > k or (low[order[:-1]] <= high[order[1:]]).any():
        order = _settled(order, losses, scale, words, rng)
    return tuple(int(i) for i in order[:k])


def _keys(near: Floats, words: NDArray[np.uint64]) -> Floats:
    """-loss/scale - ln(-ln U), U within word' .. word' + 1 in units of 2^-64, word' = 2^64 - 1 - word."""
    key = (~words).astype(float)
    key += 0.5
    key *= 2.0**-64
    np.log(key, out=key)
    np.minimum(key, -(2.0**-64), out=key)
    np.log(np.negative(key, out=key), out=key)
    key += near
    return -key


def _around(key: Floats, near: Floats, words: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    """Between what a key surely lies: floats round, and U is still open, which matters close to 1 and to 0."""
    with np.errstate(divide="ignore"):
        off = 2.0**-40 + near * 2.0**-48 + 2.0**16 / words + 1.0 / ~words
    return np.asarray(key - off), np.asarray(key + off)


def _settled(order: Any, losses: Scores, scale: Fraction, words: NDArray[np.uint64], rng: Random) -> list[int]:
    """Sort by as many digits of the noise as that takes."""
    noisy = {
        int(i): real.Gumbel(-int(losses[i]) / scale, Fraction(1), real.Uniform(rng, 2**64 - 1 - int(words[i]), 64))
        for i in order
    }

    def compared(i: int, j: int) -> int:
        return 1 if real.less(noisy[i], noisy[j]) else -1

    return sorted(noisy, key=cmp_to_key(compared))
