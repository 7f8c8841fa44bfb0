"""Choose one of k candidates with probability proportional to e^-y, exactly, for any k and any y >= 0.

Whole weights W >= 2^40 e^-y propose a candidate; a coin of probability 2^40 e^-y / W accepts it, nearly always. Floats
with a margin give the weights, so they decide the running time but never the result; the coin is exact.

The privacy loss of such a choice: if no y changes by more than t and the smallest y is 0 before and after, every
probability changes by a factor of at most e^`loss`, loss = t + ln((k - 1)/(1 + (k - 2) e^-t)). The bound is tight: let
all candidates except two go from 0 to t, one stay at 0, and one, far away, come nearer by t.

Vocabulary: `y` exponents, >= 0 · `near` floats close to them · `weight` i -> e^-y_i as a number to be enclosed.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds, ln_bounds, sqrt_bounds
from noisette.exact.samplers import Bounds, bernoulli_real, retry

__all__ = ["LARGEST", "choose", "flips", "loss", "move", "proposed"]

LARGEST = 1 << 22
"""The largest number of candidates: their weights add up to less than 2^63."""

_BITS = 40
_ROOM = 2.0**-20  # a margin far above the errors of `near` and of exp

_FAR = 64.0  # a y for which 2^40 e^-y is far below 1


def proposed(near: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return whole weights above 2^40 e^-y, with a margin of one part in a million plus one.

    >>> proposed(np.array([0.0, 1.0, 1e9])).tolist()
    [1099512676353, 404488108938, 1]
    """
    exponents = np.minimum(near, _FAR)
    return np.asarray((np.exp(-exponents) * (2.0**_BITS * (1 + _ROOM))).astype(np.int64) + 1)


def choose(near: NDArray[np.float64], weight: Callable[[int], Bounds], rng: Random = SYSTEM) -> int:
    """Draw i with probability e^-y_i / sum of e^-y; `near` is within 2^-24 of every y below 32.

    The least y should be about 0: one attempt then succeeds with a probability of 1 - 2^-17.

    >>> from fractions import Fraction
    >>> from noisette.exact.samplers import exp_real
    >>> choose(np.array([0.0, 1.0, 1000.0]), lambda i: exp_real(Fraction((0, 1, 1000)[i]))) < 2
    True
    """
    return retry(_attempt, np.cumsum(proposed(near)), weight, rng)


def _attempt(upto: NDArray[np.int64], weight: Callable[[int], Bounds], rng: Random) -> int | None:
    place = rng.below(int(upto[-1]))
    i = int(np.searchsorted(upto, place, side="right"))
    width = int(upto[i]) - (int(upto[i - 1]) if i else 0)
    return i if bernoulli_real(_share(weight(i), width), rng, prefix=rng.bits(64), known=64) else None


def _share(weight: Bounds, width: int) -> Bounds:
    """2^40 e^-y / W as a number to be enclosed."""

    def bounds(bits: int) -> tuple[int, int]:
        lo, hi = weight(bits + _BITS)
        if lo > width << bits:
            raise AssertionError("A proposal weight is below the weight that it must cover.")
        return lo // width, min(1 << bits, -(-hi // width))

    return bounds


_WORD = 32


def flips(near: NDArray[np.float64], weight: Callable[[int], Bounds], rng: Random = SYSTEM) -> NDArray[np.bool_]:
    """Flip a coin of probability e^-y for each y; `near` is within 2^-24 of every y below 32.

    A 32-bit word decides unless it lies within a part in a million of e^-y; then more bits are drawn, exactly.

    >>> from noisette.exact.samplers import exp_real
    >>> flips(np.array([0.0, 1e9]), lambda i: exp_real(Fraction((0, 10**9)[i]))).tolist()
    [True, False]
    """
    words = rng.words(near.size, np.uint32).astype(np.float64)  # whole numbers below 2^32 are exact
    middle = np.exp(-np.minimum(near, _FAR)) * 2.0**_WORD
    heads = words + 2 <= middle * (1 - _ROOM)
    for i in np.flatnonzero(~heads & (words < middle * (1 + _ROOM) + 1)):
        heads[i] = bernoulli_real(weight(int(i)), rng, prefix=int(words[i]), known=_WORD)
    return np.asarray(heads)


_FINE = 96


def loss(t: Fraction, k: int, *, up: bool) -> Fraction:
    """t + ln((k - 1)/(1 + (k - 2) e^-t)), rounded up or down by about 2^-90; it is t for k = 2 and below 2 t for all k.

    >>> [round(float(loss(Fraction(1), k, up=True)), 6) for k in (2, 3, 1000)]
    [1.0, 1.379885, 1.998281]
    """
    if k == 2:
        return t
    lo, hi = exp_bounds(-t, _FINE)
    ratio = (k - 1) / (1 + (k - 2) * Fraction(lo if up else hi, 1 << _FINE))
    gain = Fraction(ln_bounds(ratio, _FINE)[1 if up else 0], 1 << _FINE)
    return min(2 * t, t + gain) if up else t + max(gain, Fraction(0))


@lru_cache(maxsize=1024)
def move(most: Fraction, k: int, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose the t whose `loss` is `most`: u = e^-t solves (k - 2) u^2 + u = (k - 1) e^-most.

    >>> [round(float(t), 12) for t in move(loss(Fraction(1), 5, up=True), 5, 64)]
    [1.0, 1.0]
    """
    if k == 2:
        return most, most
    fine = bits + 2 * math.ceil(most) + 2 * k.bit_length() + 8
    small, large = (Fraction(e, 1 << fine) for e in exp_bounds(-most, fine))
    return max(most / 2, _minus_ln_root(large, k, fine)[0]), _minus_ln_root(small, k, fine)[1]


def _minus_ln_root(e: Fraction, k: int, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose -ln u, u = 2 (k - 1) e / (1 + sqrt(1 + 4 (k - 1)(k - 2) e))."""
    roots = sqrt_bounds(1 + 4 * (k - 1) * (k - 2) * e, bits)
    most, least = (2 * (k - 1) * e / (1 + Fraction(root, 1 << bits)) for root in roots)
    return Fraction(-ln_bounds(most, bits)[1], 1 << bits), Fraction(-ln_bounds(least, bits)[0], 1 << bits)
