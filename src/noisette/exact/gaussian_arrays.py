"""Arrays of discrete Gaussian variables: one variance for all entries, or a variance for each entry.

One variance. Up to sigma = 1024 every integer is an atom of one `LookupTable`. Beyond that, the table draws a block of
2^shift integers by the weight of its member nearest to zero; the place within the block is uniform and accepted with
the ratio of weights.
A variance for each entry: the rejection of `samplers.discrete_gaussian`, for all entries at once.

Vocabulary: `s2` sigma^2 · `c` block · `y` value · near(c) the block's member nearest to zero · `outwards` = |y - near|.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers
from noisette.exact.geometric_arrays import laplace_each, redrawn
from noisette.exact.integers import Integers
from noisette.exact.lookup_table import TAIL_BITS, Cumulative, LookupTable, Tail
from noisette.exact.number import floor_log2
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds, sqrt_bounds

__all__ = ["GaussianTable", "coins_exp", "gaussian_each"]

_FINEST: Final = 1024  # up to this sigma every integer is an atom
_COARSE_LOG2: Final = 8  # beyond, the width of a block is such that 256 <= sigma / width < 1024


def _block_law(s2: Fraction, width: int, atoms: int) -> Cumulative:
    """Blocks c = -atoms .. atoms-1 with weight e^(-near(c)^2 / 2 s2); the end blocks weigh all beyond them too."""

    def cumulative(bits: int) -> tuple[list[int], int]:
        places = bits + 2 * floor_log2(Fraction(atoms)) + 8
        upper = _gaussian_weights(s2, width, 0, places, least=atoms)
        lower = upper[1:] if width == 1 else _gaussian_weights(s2, width, 1, places, least=atoms)
        total = sum(upper) + sum(lower)
        unit = (1 << (bits + places)) // total
        masses = [sum(lower[atoms - 1 :]), *reversed(lower[: atoms - 1]), *upper[: atoms - 1]]
        points = [(running * unit) >> places for running in itertools.accumulate(masses)]
        terms = len(upper) + len(lower)
        return points, 4 + ((4 * terms**3) << bits) // total

    return cumulative


def _gaussian_weights(s2: Fraction, width: int, offset: int, places: int, *, least: int = 0) -> list[int]:
    """e^(-(width j + offset)^2 / 2 s2), j = 0, 1, … until it vanishes, at least `least` of them, in units of 2^-places.

    Each is within 4 (j+1)^2 units of the truth. Two products per atom replace an exponential:
    weight(j+1) = weight(j) step(j) and step(j+1) = step(j) twist.
    """
    weight = exp_bounds(Fraction(-(offset**2)) / (2 * s2), places)[0]
    step = exp_bounds(Fraction(-width * (width + 2 * offset)) / (2 * s2), places)[0]
    twist = exp_bounds(Fraction(-width * width) / s2, places)[0]
    weights: list[int] = []
    while weight or len(weights) < least:
        weights.append(weight)
        weight, step = (weight * step) >> places, (step * twist) >> places
    return weights


class GaussianTable:
    """A discrete Gaussian of one s2: a block c is drawn by weight e^(-near(c)^2 / 2 s2), then a place in it.

    near(c) is the block's member nearest to zero, so y in the block is kept with e^(-(y^2 - near^2) / 2 s2) <= 1.
    """

    def __init__(self, s2: Fraction) -> None:
        self.s2 = s2
        self.shift = max(0, floor_log2(s2) // 2 - _COARSE_LOG2) if s2 > _FINEST**2 else 0
        width = 1 << self.shift
        sigma = sqrt_bounds(s2, 8)[1] / 256
        atoms = math.ceil(sigma / width * math.sqrt(2 * math.log(2) * TAIL_BITS)) + 2
        most = width * width * (atoms + 1) / s2  # bounds every exponent within the table
        self.surely = max(0, math.floor((1 - most) * 2**32) - 1)
        self.table = LookupTable(_block_law(s2, width, atoms), -atoms, self._tail(atoms, width))

    def _tail(self, atoms: int, width: int) -> Tail:
        """c at or beyond an edge is edge + w outwards, with w geometric and kept with e^(-(width w)^2 / 2 s2)."""

        def attempt(nearest: int, rng: Random) -> int | None:
            w = samplers.geometric(self.s2 / (nearest * width), rng)
            return w if samplers.bernoulli_exp((width * w) ** 2 / (2 * self.s2), rng) else None

        def tail(upper: bool, rng: Random) -> int:
            if upper:
                return atoms - 1 + samplers.retry(attempt, (atoms - 1) * width, rng)
            return -atoms - samplers.retry(attempt, (atoms - 1) * width + 1, rng)

        return tail

    def one(self, rng: Random) -> int:
        """Draw one integer."""
        return self._place(self.table.one(rng), rng)

    def _place(self, block: int, rng: Random) -> int:
        """Draw a place in the block; if it is rejected, the whole draw starts again."""
        place = rng.bits(self.shift)
        outwards = place if block >= 0 else place ^ ((1 << self.shift) - 1)
        y = (block << self.shift) | place
        kept = not outwards or samplers.bernoulli_exp(self._exponent(y, outwards), rng)
        return y if kept else samplers.discrete_gaussian(self.s2, rng)

    def _exponent(self, y: int, outwards: int) -> Fraction:
        return outwards * (2 * abs(y) - outwards) / (2 * self.s2)

    def fill(self, out: NDArray[np.int64], rng: Random) -> dict[int, int]:
        """Fill a chunk; draws from the tail or beyond int64 are returned as {position: value}."""
        far = self.table.fill(out, rng)
        if not self.shift:
            return far
        fits = 63 - self.shift
        far |= {int(i): int(out[i]) for i in np.flatnonzero((out >> fits) != (out >> 63))}
        far = {i: self._place(block, rng) for i, block in far.items()}
        again = np.array([i for i in self._fill_places(out, rng) if i not in far], dtype=np.intp)
        if again.size:
            fresh = np.empty(again.size, np.int64)
            far |= {int(again[i]): y for i, y in self.fill(fresh, rng).items()}
            out[again] = fresh
        return far

    def _fill_places(self, out: NDArray[np.int64], rng: Random) -> NDArray[np.intp]:
        """Turn blocks into values; return the positions that were rejected."""
        flip = (out >> 63) & ((1 << self.shift) - 1)
        place = (rng.words(len(out), np.uint64) >> np.uint64(64 - self.shift)).astype(np.int64)
        out <<= self.shift
        out |= place
        coin = rng.words(len(out), np.uint32)
        at = np.flatnonzero(coin >= self.surely)
        y, outwards = out[at], (place ^ flip)[at]
        estimate = outwards * (2 * np.abs(y.astype(float)) - outwards) / float(2 * self.s2)
        kept = coins_exp(coin[at], estimate, lambda i: self._exponent(int(y[i]), int(outwards[i])), rng)
        return at[~kept]


def coins_exp(
    coin: NDArray[Any], estimate: NDArray[np.float64], exact: Callable[[int], Fraction], rng: Random
) -> NDArray[np.bool_]:
    """Accept each entry with probability e^-g: by a 32-bit coin and a float where they are clearly apart, else exactly.

    `estimate` is g to a relative 2^-45 or g > 40; `exact(i)` is the exact g of an entry whose coin is too close.
    """
    threshold = np.exp(-estimate) * 2.0**32
    kept = coin < threshold - 1.001
    for i in np.flatnonzero(~kept & (coin < threshold + 0.001)):
        kept[i] = samplers.bernoulli_real(samplers.exp_real(exact(int(i))), rng, prefix=int(coin[i]), known=32)
    return kept


def gaussian_each(s2: list[Fraction], rng: Random) -> Integers:
    """One discrete Gaussian per s2: the rejection of `samplers.discrete_gaussian`, for all entries at once."""
    t = [math.isqrt(math.floor(v)) + 1 for v in s2]
    z = laplace_each([Fraction(v) for v in t], rng)
    variance = np.array([float(v) for v in s2])
    estimate = (np.abs(z).astype(float) - variance / np.array(t, dtype=float)) ** 2 / (2 * variance)
    coin = rng.words(len(s2), np.uint32)
    kept = coins_exp(coin, estimate, lambda i: (abs(int(z[i])) - s2[i] / t[i]) ** 2 / (2 * s2[i]), rng)
    return redrawn(z, np.flatnonzero(~kept), s2, gaussian_each, rng)
