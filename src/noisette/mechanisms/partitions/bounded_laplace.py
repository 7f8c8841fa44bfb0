"""Two-sided geometric noise within a public bound, and a fast way to draw many where only large draws matter.

P(z) proportional to a^|z| on -reach .. reach, a = e^(-1/scale).   [Desfontaines-Voss-Gipson-Mandayam 2022]
With b = a^(reach + 1): P(Z >= k) = (a^k - b)/(1 + a - 2 b), k >= 1. Noise without a reach has b = 0.

Vocabulary: `reach` the largest |z| · `least` the k of a tail P(Z >= k).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import frozen
from noisette.exact.integers import CHUNK, Integers, added, gathered
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds
from noisette.exact.samplers import Bounds, bernoulli_real
from noisette.exact.vector import Scale
from noisette.laws import DiscreteLaplace
from noisette.laws.law import Law

__all__ = ["BoundedLaplace", "Geometrical", "reaching", "tail_up"]

_PLACES = 512  # of variances: enough to subtract powers of scales up to 2^60
_NARROWEST = 64  # a reach below scale / 64 would reject nearly every draw


@frozen
class BoundedLaplace(Law):
    """Discrete Laplace noise, given that it is within the reach.

    >>> noise = BoundedLaplace(1, 14)
    >>> round(noise.variance(), 6), f"{noise.pmf(14):.3g}", float(noise.pmf(15))
    (1.841239, '3.84e-07', 0.0)
    """

    scale: Scale
    reach: Annotated[int, partial(whole, least=0)]

    def __post_init__(self) -> None:
        if self.reach < self.least_reach(self.scale):
            raise InputError("The noise must reach at least scale / 64: raise the threshold or lower the scale.")

    @staticmethod
    def least_reach(scale: Fraction) -> int:
        """The smallest reach that is allowed."""
        return math.ceil(scale / _NARROWEST) if scale > _NARROWEST else 0

    @property
    def _free(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    def pmf(self, z: Any) -> Any:
        """P(Z = z)."""
        z = np.asarray(z)
        within = _moments(self.scale, self.reach)[0]
        return np.where(np.abs(z) <= self.reach, self._free.pmf(z) / within, 0.0)[()]

    def upper(self, z: Any) -> Any:
        """P(Z >= z) = (a^z - b)/(1 + a)/P(within reach), z >= 0."""
        z = np.asarray(z)
        left = np.maximum(self.reach + 1 - z, 0) / float(self.scale)
        return (self._free.upper(z) * -np.expm1(-left) / _moments(self.scale, self.reach)[0])[()]

    def variance(self) -> float:
        """E Z^2."""
        return _moments(self.scale, self.reach)[2]

    def mean_absolute(self) -> float:
        """E |Z|."""
        return _moments(self.scale, self.reach)[1]

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Random = SYSTEM) -> int | Integers:
        """Draw exactly: what lies beyond the reach is drawn anew."""
        if size is None:
            return int(self.sample(1, rng)[0])  # type: ignore[index]
        drawn = np.asarray(self._free.sample(size, rng))
        return _redrawn(drawn.ravel(), self.reach, lambda n: self._free.sample(n, rng)).reshape(drawn.shape)


Geometrical: TypeAlias = DiscreteLaplace | BoundedLaplace


def _redrawn(z: Integers, reach: int, draw: Callable[[int], Any]) -> Integers:
    """The draws with those beyond the reach drawn anew until they are within."""
    while (far := np.flatnonzero(np.abs(z) > reach)).size:
        new = np.asarray(draw(far.size))
        z = z.astype(object) if new.dtype == object else z
        z[far] = new
    return z if z.dtype == np.int64 else gathered([int(v) for v in z], z.size)


@lru_cache(maxsize=256)
def _moments(scale: Fraction, reach: int) -> tuple[float, float, float]:
    """P(|Z| <= reach), E|Z| and E Z^2: what geometric noise has, less what it has from n = reach + 1 on."""
    n, one = reach + 1, 1 << _PLACES
    a, b = (Fraction(exp_bounds(-m / scale, _PLACES)[0], one) for m in (1, n))
    beyond, mean = 2 * b / (1 + a), a / (1 - a)  # beyond the reach, |Z| - n is geometric
    square = a * (1 + a) / (1 - a) ** 2
    within = 1 - beyond
    first = 2 * a / (1 - a * a) - beyond * (n + mean)
    second = 2 * a / (1 - a) ** 2 - beyond * (n * n + 2 * n * mean + square)
    return float(within), float(first / within), float(second / within)


# Tails


def _enclosed(law: Geometrical, least: int, places: int) -> tuple[Fraction, Fraction]:
    """P(Z >= least), least >= 1, from below and above."""
    one, reach = 1 << places, getattr(law, "reach", None)
    if reach is not None and least > reach:
        return Fraction(0), Fraction(0)
    a, k = exp_bounds(-1 / law.scale, places), exp_bounds(-least / law.scale, places)
    b = (0, 0) if reach is None else exp_bounds(-(reach + 1) / law.scale, places)
    return (
        Fraction(max(0, k[0] - b[1]), one + a[1] - 2 * b[0]),
        Fraction(k[1] - b[0], one + a[0] - 2 * b[1]),
    )


def tail_up(law: Geometrical, least: int) -> Fraction:
    """P(Z >= least), rounded up by less than one part in 2^80 (or to 2^-4000).

    >>> f"{float(tail_up(DiscreteLaplace(1), 14)):.6g}", f"{float(tail_up(BoundedLaplace(1, 14), 14)):.6g}"
    ('6.07896e-07', '3.84264e-07')
    """
    size = max(least, 1 - least)
    places = 256 + math.ceil(min(size / law.scale, Fraction(3000)) * 3 / 2)
    return _enclosed(law, least, places)[1] if least > 0 else 1 - _enclosed(law, 1 - least, places)[0]


@lru_cache(maxsize=64)
def _tail_bounds(law: Geometrical, least: int, bits: int) -> tuple[int, int]:
    lo, hi = _enclosed(law, least, bits + 64)
    return math.floor(lo * (1 << bits)), math.ceil(hi * (1 << bits))


# Many draws of which few matter


def reaching(law: Geometrical, least: int, count: int, rng: Random = SYSTEM) -> tuple[NDArray[np.int64], Integers]:
    """Draw `count` times; return at which of them the noise is at least `least` >= 1, and the noise there.

    Exactly as if all were drawn: 16 bits of a uniform decide whether a draw reaches that far, more of them where they
    tie. If it does, then by memorylessness the rest is geometric, drawn anew where it goes beyond the reach.

    >>> at, z = reaching(DiscreteLaplace(1), 3, 1000)
    >>> bool((z >= 3).all()), at.size == z.size
    (True, True)
    """

    def bounds(bits: int) -> tuple[int, int]:
        return _tail_bounds(law, least, bits)

    found = [start + _heads(bounds, min(CHUNK, count - start), rng) for start in range(0, count, CHUNK)]
    at = np.concatenate([np.zeros(0, np.int64), *found])

    def rest(n: int) -> Integers:
        return np.asarray(vector.geometric_noise(law.scale, n, rng))

    over = rest(at.size)
    if isinstance(law, BoundedLaplace):
        over = _redrawn(over, law.reach - least, rest)
    return at, added(over, np.asarray(least))


def _heads(bounds: Bounds, count: int, rng: Random) -> NDArray[np.int64]:
    """Toss coins of one small probability; return which fell heads."""
    lo, hi = bounds(16)
    words = rng.words(count, np.uint16)
    at = np.flatnonzero(words < hi)
    word = words[at].astype(np.int64)
    lost = [i for i in np.flatnonzero(word >= lo) if not bernoulli_real(bounds, rng, prefix=int(word[i]), known=16)]
    return np.delete(at, lost)
