"""Discrete Gaussian noise on vectors of whole numbers: the loss for the worst vector v by which the answer may move.

If y has independent coordinates of parameter s2 and the answer moves by v, L = (2 S + |v|^2)/(2 s2) for S = sum of
v_i y_i. For wide noise, S is to high precision discrete Gaussian of parameter |v|^2 s2 on the multiples of g = gcd(v),
so the loss depends on g and |v|^2/g^2 alone; it grows with |v|, so for each g the longest vector of g's is worst. For
narrow noise few vectors are possible, and S is summed for each.   (docs/proofs/gaussian.md)
[Canonne-Kamath-Steinke 2020, Theorem 7 for one number]

Vocabulary: `square` the most that |v|^2 can be · `largest` |v_i| · `most` how many v_i may differ from 0.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from noisette.exact.number import nearest_float
from noisette.exact.rational import sqrt_up
from noisette.privacy.convert import gaussian_delta
from noisette.privacy.pld.loss import Floats, LatticeNormal, Loss
from noisette.privacy.pld.ranges import atoms_of

__all__ = ["LatticeVector"]

_WIDE = 4  # s2 from which sums of noise are discrete Gaussian
_WIDER = Fraction(82, 100)  # s2/square from which those of several steps are, to 1e-5: 2 pi^2 times this is above 16
_WIDEST = 10  # mu up to which losses are listed, since e^L must stay within the floats
_LISTED = 24  # the square up to which vectors are listed
_LONG = 64  # coordinates whose noise is summed one by one
_FINE = 128  # a sigma from which sums over whole numbers are integrals with a small correction
_SUMMED = 1 << 13  # a sigma of the sum up to which the loss has its atoms listed, some 300,000 of them
_DEVIATIONS = 20.0
_UP = 1 + 1e-9  # covers float rounding
_CURVATURE = 0.97  # above 4 phi(1), the total variation of a normal density's derivative, times sigma^2


@dataclass(frozen=True)
class LatticeVector(Loss):
    """Discrete Gaussian noise of parameter s2 on whole numbers, at most `most` of which move, each by up to `largest`.

    >>> pair = LatticeVector(Fraction(18), square=2, largest=1, most=2)
    >>> round(pair.delta_at(Fraction(1)) * 1e6, 3), float(pair.rho())
    (202.014, 0.05555555555555555)
    """

    s2: Fraction
    square: int
    largest: int
    most: int

    @cached_property
    def _wide(self) -> bool:
        return self.s2 >= _WIDE and (self.largest == 1 or self.s2 >= _WIDER * self.square)

    @property
    def known(self) -> bool:
        """Whether the worst vector can be found: noise is wide, one number moves, or few vectors are possible."""
        few = self.square <= (_LONG if self.largest == 1 else _LISTED)
        return self.square > 0 and (self._wide or self.most == 1 or few)

    @property
    def listed(self) -> bool:
        """Whether the worst vector is known and its loss has few enough atoms to be composed."""
        few = self.s2 * self.square <= _SUMMED**2 and self.largest <= _LONG
        return self.known and few and self.square <= _WIDEST**2 * self.s2

    @cached_property
    def _up(self) -> float:
        """A factor for float rounding and for the distance of sums of several steps from discrete Gaussian noise."""
        if self.largest == 1 or self.most == 1 or not self._wide:
            return _UP
        return _UP + 6 * self.largest.bit_length() * math.exp(-19.7 * float(self.s2 / self.square))

    @cached_property
    def _vectors(self) -> list[tuple[int, int]]:
        """(length, g) of the longest vector of g's for each g, except those contained in a vector of larger ones."""
        if self.most == 1:
            return [(1, self.largest)]
        longest = {}
        for g in range(1, self.largest + 1):
            count = min(self.square // g**2, self.most * (self.largest // g) ** 2)
            longest[count] = g
        return [(count, g) for count, g in longest.items() if count]

    def delta_at(self, e: Fraction) -> float:
        """delta(e) of the worst vector, rounded up."""
        if not (self._wide or self.most == 1):
            x = nearest_float(e, up=False)
            return max(min(1.0, _curve(law, x) * _UP + 1e-300) for law in self._listed_laws)
        pairs = [(count * self.s2, count * g) for count, g in self._vectors]
        found = [_summed(s2, shift, e) for s2, shift in pairs if s2 < _FINE**2]
        rest = [_excess(s2, shift, e) for s2, shift in pairs if s2 >= _FINE**2]
        if rest:
            found.append(gaussian_delta(sqrt_up(Fraction(self.square) / self.s2), e) + max(rest))
        return min(1.0, max(found) * self._up + 1e-300)

    @cached_property
    def _listed_laws(self) -> list[tuple[Floats, Floats]]:
        """Losses and masses of S for every vector that is not contained in another one."""
        return [_law_of(self.s2, v) for v in _splits(self.square, self.largest, self.most)]

    def atoms(self) -> tuple[Floats, Floats]:
        """The loss of the worst vector; of several candidates, the pair whose delta is their largest at every atom."""
        if self._wide or self.most == 1:
            laws = [LatticeNormal(count * self.s2, count * g).atoms() for count, g in self._vectors]
        else:
            laws = self._listed_laws
        if len(laws) == 1:
            return laws[0][0], laws[0][1] * self._up
        grid = np.unique(np.concatenate([losses for losses, _ in laws]))
        grid = grid[np.append(True, np.diff(grid) > 1e-12 * (1 + abs(grid[1:])))]
        grid = np.append(grid, grid[-1] + 1.0)
        losses, p = atoms_of(grid, np.max([_curves(law, grid) for law in laws], axis=0))
        return losses, p * self._up

    def ends(self, tail: float) -> tuple[float, float]:
        """The losses of the outermost atoms."""
        losses, _ = self.atoms()
        return float(losses[0]), float(losses[-1])

    def rho(self) -> Fraction | None:
        """square / (2 s2)."""
        return Fraction(self.square) / (2 * self.s2)


def _summed(s2: Fraction, shift: int, e: Fraction) -> float:
    """sum over y of (P(y) - e^e P(y + shift))_+, for discrete Gaussian noise.

    P(y + k)/P(y) = e^(-(2ky + k^2)/(2 s2)), so the positive terms are those with y > e s2/k - k/2.
    """
    first = math.floor(e * s2 / shift - Fraction(shift, 2)) + 1
    width = math.ceil(2 * _DEVIATIONS * math.sqrt(s2)) + 40
    y = np.arange(max(first, -width), max(first, 0) + width, dtype=float)
    loss = ((2 * shift * y + shift * shift) / float(2 * s2)) - float(e)
    everywhere = np.arange(-width, width + 1)
    total = math.fsum(np.exp(-(everywhere * everywhere) / (2 * float(s2))))
    return math.fsum(np.exp(-(y * y) / (2 * float(s2))) * -np.expm1(-np.maximum(loss, 0))) / total


def _excess(s2: Fraction, shift: int, e: Fraction) -> float:
    """A bound on `_summed` minus the integral: an eighth of the total variation of h', h = f - e^e f(· + k).

    h begins at y0 = e s2/k - k/2, where f = e^e f(· + k), with a slope of f(y0) k/s2. Beyond max(y0, sigma) the rest is
    f(y0) (2 y0 + k)/s2; else it is at most 4 phi(1)/s2 for either density.
    """
    s, k, x = math.sqrt(s2), float(shift), nearest_float(e, up=True)
    start = (x * s * s / k - k / 2) / s
    f = math.exp(-start * start / 2) / (s * math.sqrt(2 * math.pi))
    if start >= 1:
        return f * 2 * (start * s + k) / (s * s) / 8
    return (f * k + _CURVATURE * (1 + math.exp(min(x, 700.0)))) / (s * s) / 8


def _law_of(s2: Fraction, v: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Losses and masses of a vector: noise times v_i, summed coordinate by coordinate."""
    width = math.ceil(_DEVIATIONS * math.sqrt(s2)) + 2
    y = np.arange(-width, width + 1)
    weights = np.exp(-(y * y) / (2 * float(s2)))
    masses = np.ones(1)
    for step in v:
        apart = np.zeros(2 * width * step + 1)
        apart[::step] = weights / weights.sum()
        masses = np.convolve(masses, apart)
    total = np.arange(len(masses)) - len(masses) // 2
    there = masses > 0
    return ((2 * total + sum(step * step for step in v)) / (2 * float(s2)))[there], masses[there]


@lru_cache(maxsize=256)
def _splits(square: int, largest: int, most: int) -> list[tuple[int, ...]]:
    """Maximal vectors of positive whole numbers in falling order: no coordinate can be added or raised."""

    def longer(left: int, top: int, room: int) -> Iterator[tuple[int, ...]]:
        if not left or not room:
            yield ()
            return
        for step in range(min(top, math.isqrt(left)), 0, -1):
            for rest in longer(left - step * step, step, room - 1):
                yield (step, *rest)

    return list(longer(square, largest, most))


def _curve(law: tuple[Floats, Floats], x: float) -> float:
    losses, p = law
    return math.fsum(p * -np.expm1(np.minimum(0.0, x - losses)))


def _curves(law: tuple[Floats, Floats], grid: Floats) -> Floats:
    """delta at all points of a grid, from tail sums of the masses under P and Q."""
    losses, p = law
    p_from, q_from = (np.append(np.cumsum(mass[::-1])[::-1], 0.0) for mass in (p, p * np.exp(-losses)))
    first = np.searchsorted(losses, grid, side="right")
    return np.asarray(np.maximum(0.0, p_from[first] - np.exp(grid) * q_from[first]), dtype=np.float64)
