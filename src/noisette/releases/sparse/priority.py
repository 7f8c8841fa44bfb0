"""Release the cells of highest priority |v| / u, u uniform: a sample from which sums of any cells are unbiased.

With T the priority of the first cell that is left out, a released v stands for sign(v) max(|v|, T). Sums of these over
any set of cells have the noisy counts' sum as their mean.   [Duffield-Lund-Thorup 2007; for private counts
Cormode-Procopiuc-Srivastava-Tran 2012]

The noise of all cells is in such a sum, which is too much for a huge table. `Priority(size, Filter(t))` samples those
cells alone whose noisy count reaches a threshold; then the mean is the sum over these.

Without a filter, zero cells come in order of priority, as many as are needed. For t a power of 2, an empty cell's
priority reaches t with chance p(t) = 2 a (1 - a^t) / (t (1 - a^2)). Given that, |v| has weights min(|v|, t) a^|v|: it
is j + g, where g is geometric and j is one on 1 .. t. If too few cells reach t, those that reach t/2 and not t are
drawn next: Binomial(rest, (p(t/2) - p(t)) / (1 - p(t))) of them. Where to begin changes the time, not the law.

u is one of 1 .. 2^62, in units of 2^-62, and equal priorities go by the cell's number: in the full release, too.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.integers import Integers, added, multiplied, saturated
from noisette.exact.number import floor_log2, whole
from noisette.exact.random import Random
from noisette.exact.rational import exp_bounds
from noisette.exact.samplers import Bounds, binomial
from noisette.mechanisms import Geometric
from noisette.releases.sparse.filters import Filter, in_units, noised
from noisette.releases.sparse.zeros import Codes, distinct, joined, placed, uniform_each

__all__ = ["MOST", "ONE", "Priority", "first", "reaching"]

ONE = 1 << 62
MOST = 10_000_000
"""The most cells of a sample."""

_HIGHEST, _BATCH, _NEAR = 60, 1 << 12, 2.0**-48


@dataclass(frozen=True)
class Priority:
    """Release the `size` cells of highest priority, of all cells or of those that pass a filter."""

    size: int
    of: Filter | None = None

    def __post_init__(self) -> None:
        if whole(self.size, "sample") > MOST:
            raise InputError(f"A sample has at most {MOST:,} cells: name a smaller one.")
        if self.of is not None and self.of.both:
            raise InputError("A sample takes cells that reach the threshold from one side: leave both out.")

    def begin(self, scale: float, cells: int) -> int:
        """The exponent of a power of 2 that about as many empty cells reach as cells are released."""
        exponents = range(_HIGHEST + 1)
        return next((k for k in exponents if cells * reaching_float(scale, 2**k) <= self.size), _HIGHEST)

    def draw(
        self, noise: Geometric, cells: int, codes: Codes, counts: Integers, rng: Random
    ) -> tuple[Codes, Integers, float]:
        """Cells and their noisy counts, in any order, and the sampling threshold T."""
        found = self._candidates(noise, cells, codes, counts, rng)
        chosen, threshold = first(self.size, *found)
        return found[0][chosen], found[1][chosen], threshold

    def _candidates(
        self, noise: Geometric, cells: int, codes: Codes, counts: Integers, rng: Random
    ) -> tuple[Codes, Integers, Codes]:
        """More cells than are released, if there are that many: all whose priority reaches some power of 2."""
        if self.of is not None:
            new, v, _ = self.of.draw(noise, cells, codes, counts, rng)
            return new, v, uniform_each(np.full(new.size, ONE), rng)
        v = noised(noise, counts, rng)
        u = uniform_each(np.full(codes.size, ONE), rng)
        found, taken = (codes, v, u), codes
        last: int | None = None
        for k in range(self.begin(float(noise.scale), cells), -1, -1):
            number = binomial(cells - taken.size, _between(noise.scale, k, last), rng)
            new = placed(distinct(cells - taken.size, number, rng), taken)
            size, own = _drawn(noise.scale, number, k, last, rng)
            found = tuple(np.concatenate(pair) for pair in zip(found, (new, size, own), strict=True))  # type: ignore[assignment]
            if np.count_nonzero(reaching(found[1], found[2], k)) > self.size:
                break
            taken, last = joined(taken, new), k
        return found


# The chance that an empty cell's priority reaches a power of 2


def reaching_float(scale: float, t: int) -> float:
    """p(t) as a float."""
    rate = 1 / scale
    return -math.expm1(-t * rate) / (t * math.sinh(min(rate, 700.0)))


def _reaching(scale: Fraction, t: int, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose p(t)."""
    fine = bits + 16 + 2 * max(0, floor_log2(scale) + 1)
    one = 1 << fine
    (a_low, a_high), (b_low, b_high) = exp_bounds(-1 / scale, fine), exp_bounds(-t / scale, fine)
    low = Fraction(2 * a_low * (one - b_high), t * (one * one - a_low * a_low))
    return max(Fraction(0), low), Fraction(2 * a_high * (one - b_low), t * (one * one - a_high * a_high))


@lru_cache(maxsize=64)
def _between(scale: Fraction, k: int, last: int | None) -> Bounds:
    """The chance that an empty cell's priority reaches 2^k, given that it does not reach 2^last."""

    def enclosed(bits: int) -> tuple[Fraction, Fraction]:
        low, high = _reaching(scale, 1 << k, bits + 8)
        if last is None:
            return low, high
        least, most = _reaching(scale, 1 << last, bits + 8)
        return max(Fraction(0), (low - most) / (1 - most)), (high - least) / (1 - least)

    return in_units(enclosed)


# Noisy counts and uniform numbers of empty cells


def reaching(v: Integers, u: Codes, k: int) -> NDArray[np.bool_]:
    """Whether priorities reach 2^k: u <= |v| 2^(62-k)."""
    return np.asarray(u <= _most(np.abs(v), k))


def _most(size: Integers, k: int) -> NDArray[np.int64]:
    """min(|v|, 2^k) 2^(62-k)."""
    return np.minimum(saturated(size), 1 << k) << (62 - k)


def _drawn(scale: Fraction, number: int, k: int, last: int | None, rng: Random) -> tuple[Integers, Codes]:
    """v and u of empty cells whose priority reaches 2^k and, if there is one, not 2^last."""
    size, u = np.empty(0, np.int64), np.empty(0, np.int64)
    while size.size < number:
        wanted = number - size.size
        batch = wanted if last is None else max(2 * wanted, _BATCH)
        z, w = _proposed(scale, batch, k, rng)
        kept = np.flatnonzero(~reaching(z, w, last))[:wanted] if last is not None else np.arange(batch)
        size, u = np.concatenate([size, z[kept]]), np.concatenate([u, w[kept]])
    return np.where(rng.words(number, np.uint8) & 1, size, multiplied(size, -1)), u


def _proposed(scale: Fraction, number: int, k: int, rng: Random) -> tuple[Integers, Codes]:
    """|v| and u of empty cells whose priority reaches 2^k."""
    j = np.asarray(vector.geometric_noise(scale, number, rng) % (1 << k)).astype(np.int64) + 1
    size = added(j, np.asarray(vector.geometric_noise(scale, number, rng)))
    return size, uniform_each(_most(size, k), rng)


# The first of them


def first(size: int, codes: Codes, v: Integers, u: Codes) -> tuple[NDArray[np.intp], float]:
    """The places of the `size` highest priorities, and the next one as a threshold; all of them and 0 if no more.

    Floats sort; whatever is near the threshold is compared exactly.

    >>> first(1, np.array([4, 5, 6]), np.array([-9, 8, 0]), np.array([3, 1, 1]))[0].tolist()
    [1]
    """
    some = np.flatnonzero(v != 0)
    if some.size <= size:
        return some, 0.0
    near = np.abs(v[some]).astype(float) / u[some]
    edge = float(np.partition(near, some.size - size - 1)[some.size - size - 1])
    sure = some[near > edge * (1 + _NEAR)]
    close = some[(near <= edge * (1 + _NEAR)) & (near >= edge * (1 - _NEAR))]
    order = sorted(close.tolist(), key=lambda i: (-Fraction(abs(int(v[i])), int(u[i])), int(codes[i])))
    rest, next_one = order[: size - sure.size], order[size - sure.size]
    threshold = float(Fraction(abs(int(v[next_one])) * ONE, int(u[next_one])))
    return np.concatenate([sure, np.array(rest, np.intp)]), threshold
