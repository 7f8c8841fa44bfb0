"""Bounded range: mechanisms whose losses for any two neighbours lie within a range, such as the exponential mechanism.

Let |L| <= epsilon and max L - min L <= r, epsilon <= r <= 2 epsilon. The extreme such laws have two losses, t and
t - r with r - epsilon <= t <= epsilon; t has probability p_t = (e^r - e^t)/(e^r - 1), so that E e^-L = 1.
[Dong-Durfee-Rogers 2020]
 - alone, delta(x) = max over t of p_t (1 - e^(x-t))_+ + (1 - p_t) (1 - e^(x-t+r))_+: `BoundedRange`, a pair of laws;
 - k of them, each chosen adaptively after earlier outcomes: delta_k(x) = max over t of p_t delta_(k-1)(x - t) +
   (1 - p_t) delta_(k-1)(x - t + r), from delta_0(x) = (1 - e^x)_+. That is optimal; `Adaptive` computes it;
 - k of them, all fixed before the first is drawn: the same t for all is worst, `fixed_delta`.
Such a curve is convex in e^x, so its chords between points of a grid lie above it, and between points the best t has a
closed form: the result of `Adaptive` is never below the truth.   Proofs: docs/proofs/composition.md

Vocabulary: `epsilon` largest loss · `width` r · `x` where delta is evaluated · `t` the larger of two losses.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from noisette.exact.frozen import KW_ONLY, Read, default, frozen, set_fields
from noisette.privacy.pld.loss import Floats, Loss, Response

__all__ = ["Adaptive", "BoundedRange", "atoms_of", "blocks", "fixed_delta"]

_CELLS = 512  # of the grid, for the losses of one sign of a block
_LONGEST = 32  # releases of a block: longer blocks gain almost nothing
_FINEST = Fraction(1, 10**6)  # narrower ranges would lose too many digits
_FURTHEST = 300  # e^x must stay within the floats
_NEAR = 1e-4  # far more than cumulated probabilities in floats are off
_UP = 1 + 1e-9  # covers the rounding of a few hundred float operations on positive numbers, each to 2^-52


@frozen
class BoundedRange(Loss):
    """The pair that dominates all pairs whose losses are at most epsilon and lie within a range `width`.

    delta(x) = (e^(r/2) - e^(x/2))^2 / (e^r - 1) for |x| <= 2 epsilon - r, beyond linear in e^x. The default width is
    epsilon, the exponential mechanism; width 2 epsilon is randomized response. The rho is r^2/8 [Cesar-Rogers 2021], or
    `concentrated` where a smaller one is known.

    >>> P, Q = BoundedRange(Fraction(1)).above(np.array([-1.0, 0.0, 0.5]))
    >>> P.round(6).tolist(), Q.round(6).tolist()
    ([1.0, 0.622459, 0.349932], [1.0, 0.377541, 0.165296])
    """

    epsilon: Fraction
    width: Read[Fraction | None, Fraction] = default(None)
    _: KW_ONLY
    concentrated: Read[Fraction | None, Fraction] = default(None)

    def __post_init__(self) -> None:
        r = self.epsilon if self.width is None else min(max(self.width, self.epsilon), 2 * self.epsilon)
        rho = r**2 / 8 if self.concentrated is None else min(r**2 / 8, self.concentrated)
        set_fields(self, width=r, concentrated=rho)

    def delta_at(self, x: Fraction | float) -> float:
        """delta(x), rounded up; differences are exact, since a tiny delta lies in a tiny one of large numbers."""
        e, r, x = self.epsilon, self.width, Fraction(x)
        t = min(max((x + r) / 2, r - e), e)
        p = math.expm1(t - r) / math.expm1(-r)
        found = p * -math.expm1(min(Fraction(0), x - t)) + (1 - p) * -math.expm1(min(Fraction(0), x - t + r))
        return min(1.0, found * (1 + 2.0**-40))

    def above(self, t: Floats) -> tuple[Floats, Floats]:
        """P(L > t) = (1 - e^((t-r)/2)) / (1 - e^-r) and Q(L > t) = e^(-(r+t)/2) P(L > t); atoms at ±epsilon."""
        e, r = float(self.epsilon), float(self.width)
        inside = np.clip(t, r - 2 * e, 2 * e - r)
        under_p = np.expm1((inside - r) / 2) / math.expm1(-r)
        under_q = np.exp(-(r + inside) / 2) * under_p
        under_p, under_q = (np.where(t >= e, 0.0, np.where(t < -e, 1.0, mass)) for mass in (under_p, under_q))
        return under_p, under_q

    def below(self, t: Floats) -> tuple[Floats, Floats]:
        """The same from the other end: Q mirrors P."""
        under_q, under_p = self.above(np.nextafter(-t, -np.inf))
        return under_p, under_q

    def ends(self, tail: float) -> tuple[float, float]:
        """±epsilon."""
        return -float(self.epsilon), float(self.epsilon)

    def pure(self) -> Fraction | None:
        """Epsilon."""
        return self.epsilon

    def rho(self) -> Fraction | None:
        """r^2/8, or the smaller rho that is known."""
        return self.concentrated


@dataclass(frozen=True)
class Adaptive(Loss):
    """`count` releases of one bounded range, each chosen adaptively after earlier outcomes, as one pair of laws.

    >>> block = Adaptive(BoundedRange(Fraction(1, 10)), 25)
    >>> round(block.delta_at(0.5), 9), round(float(block.rho()), 6)
    (0.002906317, 0.03125)
    """

    one: BoundedRange
    count: int

    def delta_at(self, x: float) -> float:
        """delta(x), rounded up, by the chord between the grid points around x."""
        grid, values = _curve(self.one.epsilon, self.one.width, self.count)
        if x >= grid[-1]:
            return 0.0
        if x < grid[0]:
            return min(1.0, -math.expm1(x) * _UP)
        i = int(np.searchsorted(grid, x, side="right")) - 1
        share = math.expm1(x - grid[i]) / math.expm1(grid[i + 1] - grid[i])
        return min(1.0, float((1 - share) * values[i] + share * values[i + 1]) * _UP)

    def atoms(self) -> tuple[Floats, Floats]:
        """Losses on the grid whose delta(x) is the chords."""
        losses, p = atoms_of(*_curve(self.one.epsilon, self.one.width, self.count))
        return losses, p * _UP

    def ends(self, tail: float) -> tuple[float, float]:
        """±count epsilon."""
        return -float(self.count * self.one.epsilon), float(self.count * self.one.epsilon)

    def pure(self) -> Fraction | None:
        """count epsilon."""
        return self.count * self.one.epsilon

    def rho(self) -> Fraction | None:
        """The sum of the rhos."""
        return self.count * self.one.concentrated


def blocks(one: BoundedRange, count: int, *, longest: int = _LONGEST) -> list[tuple[Loss, int]]:
    """The pairs, with their counts, that dominate `count` adaptive releases of one range: few long blocks."""
    if count == 1:
        return [(one, 1)]
    most = min(1 if one.width < _FINEST else longest, math.floor(_FURTHEST / (one.epsilon + one.width)))
    if not most:
        return [(Response(one.epsilon), count)]
    if most == 1:
        return [(one, count)]
    number = -(-count // most)
    short, long = count // number, count % number
    return [(Adaptive(one, n), k) for n, k in ((short, number - long), (short + 1, long)) if n and k]


def atoms_of(grid: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The losses and masses under P of the pair whose delta(x) is the chords, in e^x, of values on a grid.

    Between two points -d delta/d(e^x) is Q(L > x), so the mass of Q at a point is the rise of the slope there. Above
    the last point delta is 0, and below the first it is 1 - e^x. After scaling, the first point may hold the rest.
    """
    z = np.exp(grid)
    slopes = np.concatenate([[-1.0], np.diff(values) / (z[:-1] * np.expm1(np.diff(grid))), [0.0]])
    q = np.maximum(0.0, np.diff(slopes))
    there = q > 0
    return grid[there], (q * z)[there]


@lru_cache(maxsize=256)
def _curve(epsilon: Fraction, width: Fraction, count: int) -> tuple[Floats, Floats]:
    """delta_count at the points of a grid of which `width` is a multiple, never below the truth except for rounding."""
    e, r = float(epsilon), float(width)
    cells = max(16, _CELLS // count)
    last = math.ceil(count * e / r * cells) + cells  # beyond count epsilon the curve is constant; _best reads it there
    grid = np.asarray(np.arange(-last, last + 1) * (r / cells), dtype=np.float64)
    values = np.asarray(np.maximum(0.0, -np.expm1(grid)), dtype=np.float64)
    for _ in range(count):
        values[cells:-cells] = _best(values, np.exp(grid), cells, (r - e, e), r)
    return grid, values


def _best(values: Floats, z: Floats, cells: int, between: tuple[float, float], r: float) -> Floats:
    """max over t of p_t V(x - t) + (1 - p_t) V(x - t + r) at the grid's inner points, V the chords of the values.

    While t goes through a cell of the grid, V is a + b e^x at both places, and with s = e^t the mean is, up to a
    constant, -(A s + B/s)/(e^r - 1), A = a1 - a2 >= 0 and B = e^(x+r) (b2 - b1) >= 0. It is concave in s, with its
    maximum at s^2 = B/A.
    """
    h, n = r / cells, len(values) - 2 * cells
    slopes = np.diff(values) / (z[:-1] * math.expm1(h))
    heights = values[:-1] - slopes * z[:-1]
    here, best = z[cells : cells + n] * math.exp(r), np.maximum(0.0, 1 - z[cells : cells + n])
    low, high = between
    first = min(math.floor(low / h + 1e-9), cells - 1)
    for i in range(first, max(first + 1, math.ceil(high / h - 1e-9))):
        near, far = (slice(cells - i - 1 + more, cells - i - 1 + more + n) for more in (0, cells))
        rise, fall = np.maximum(0.0, slopes[far] - slopes[near]), np.maximum(1e-300, heights[near] - heights[far])
        with np.errstate(divide="ignore", over="ignore"):
            t = np.clip(np.log(here * rise / fall) / 2, max(low, i * h), min(high, (i + 1) * h))
        up, p = np.expm1((i + 1) * h - t) / math.expm1(h), np.expm1(t - r) / math.expm1(-r)
        found = [
            (1 - up) * values[cell] + up * values[cell.start + 1 : cell.stop + 1] for cell in (near, far)
        ]  # positive terms only, so no digits cancel
        best = np.maximum(best, p * found[0] + (1 - p) * found[1])
    return best


def fixed_delta(e0: Fraction, k: int, e: Fraction) -> float:
    """delta(e) of k releases of range e0 that are all fixed before the first one is drawn, rounded up.

    max over j = 0 .. k of E(1 - e^(e - L))_+ for L = k t - e0 Bin(k, 1 - p_t), t = (e + (j + 1) e0)/(k + 1) where that
    is below e0, e >= 0. Where later releases depend on earlier outcomes it is too small, by several per cent.
    [Dong-Durfee-Rogers 2020, optimal for non-adaptive choices]

    >>> round(fixed_delta(Fraction(1, 10), 100, Fraction(2)) * 1e6, 6)
    9.084231
    """
    from scipy.special import bdtr, gammaln

    r, x, i = float(e0), float(e), np.arange(k + 1)
    t = (x + (i + 1) * r) / (k + 1)
    j, t = i[t < r], t[t < r]
    lower = np.expm1(t) / math.expm1(r)  # 1 - p_t under P, and e^(r-t) times that under Q
    gain = bdtr(j, k, lower) - np.exp(x) * bdtr(j, k, np.minimum(1.0, np.exp(r - t) * lower))
    ways = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1)
    worst = 0.0
    for n in np.flatnonzero(~(gain < gain.max(initial=0.0) * (1 - _NEAR))):  # the others are certainly smaller
        chances = np.exp(ways + (k - i) * math.log1p(-lower[n]) + i * math.log(lower[n]))
        worst = max(worst, math.fsum(chances * -np.expm1(np.minimum(0.0, x - k * t[n] + i * r))))
    rounding = 1 + (k + 16) * (r + math.log(k + 8)) * 2.0**-50  # logarithms of about this size lose that much
    return min(1.0, worst * rounding + 5e-324)
