"""Projective geometry response (PGR): report a point of a finite space, more often one orthogonal to the own one.

Values are points of the projective space of t dimensions over the numbers modulo a prime r: vectors that are not 0, up
to a factor, K = (r^t - 1)/(r - 1) of them. The s = (r^(t-1) - 1)/(r - 1) points orthogonal to the own one have
e^epsilon times the probability of each other point. Any two values have l = (r^(t-2) - 1)/(r - 1) such points in
common, so p = s e/(s e + K - s) and q = (l e + s - l)/(s e + K - s), e = e^epsilon: subset selection on K values with
sets of s, a share of 1/r, which is nearly optimal for r near e^epsilon + 1.   [Feldman-Nelson-Nguyen-Talwar 2022]

A report is as short as a value, and a Fourier transform over r^t cells estimates all shares: if each count stands at
all r - 1 multiples of its point, the transform at v is r C_v - n.

When: the domain has more than ten thousand values; r is a prime here, so the variance is up to 3 % above the optimum.
Textbook: none.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.random import SYSTEM, Random
from noisette.local.affine import prime_from
from noisette.local.contract import Epsilon, odds
from noisette.local.frequencies import Domain, PureProtocol, coded

__all__ = ["ProjectiveGeometry"]

Ints = NDArray[np.int64]
_LARGEST = 1 << 24  # cells of the transform, for which it takes a gigabyte
_POINTS = 1 << 16  # points that are handled at once


@lru_cache(maxsize=256)
def _space(e: Fraction, domain: int) -> tuple[int, int]:
    """The prime r with the least variance near e + 1, and the least t >= 2 whose space holds the domain."""
    near = prime_from(max(2, min(int(e) + 1, domain)))  # in larger spaces, one point would stand for each value
    primes = [r for r in (_prime_below(near), near) if r]
    spaces = [(r, _dimensions(r, domain)) for r in primes]
    fitting = [space for space in spaces if space[0] ** space[1] <= _LARGEST]
    if not fitting:
        raise InputError("This domain and epsilon need too large a projective space: use OLH.")
    return min(fitting, key=lambda space: _variance(e, *space))


def _prime_below(n: int) -> int | None:
    return next((r for r in range(n - 1, 1, -1) if prime_from(r) == r), None)


def _dimensions(r: int, domain: int) -> int:
    t = 2
    while _points(r, t) < domain:
        t += 1
    return t


def _points(r: int, t: int) -> int:
    return int((r**t - 1) // (r - 1))


def _chances(e: Fraction, r: int, t: int) -> tuple[Fraction, Fraction]:
    """p and q."""
    points, orthogonal, common = (_points(r, d) for d in (t, t - 1, t - 2))
    total = orthogonal * e + points - orthogonal
    return orthogonal * e / total, (common * e + orthogonal - common) / total


def _variance(e: Fraction, r: int, t: int) -> Fraction:
    p, q = _chances(e, r, t)
    return q * (1 - q) / (p - q) ** 2


@frozen
class ProjectiveGeometry(PureProtocol):
    """Reports are points, numbered 0 .. K-1; r is `prime` and t is `dimensions`.

    >>> m = ProjectiveGeometry(1, domain=20_000)
    >>> m.prime, m.dimensions, m.bits, round(m.variance(), 3)
    (3, 10, 15, 3.77)
    """

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain

    def __post_init__(self) -> None:
        _space(odds(self.epsilon), self.domain)

    @property
    def prime(self) -> int:
        """r."""
        return _space(odds(self.epsilon), self.domain)[0]

    @property
    def dimensions(self) -> int:
        """t."""
        return _space(odds(self.epsilon), self.domain)[1]

    @property
    def cells(self) -> int:
        """K, the number of points."""
        return _points(self.prime, self.dimensions)

    def derived(self) -> dict[str, int]:
        """Return r."""
        return {"prime": self.prime}

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p and q: how often a report is orthogonal to its sender's value, and to another one."""
        return _chances(odds(self.epsilon), self.prime, self.dimensions)

    def vectors(self, points: Ints) -> Ints:
        """Return points as vectors whose first entry except zeros is 1: (points before) + (the entries after it)."""
        r, t = self.prime, self.dimensions
        first = np.searchsorted([_points(r, d) for d in range(1, t + 1)], points, side="right")  # entries after the 1
        rest = points - (r**first - 1) // (r - 1)
        digits = rest[:, None] // r ** np.arange(t - 1, -1, -1) % r
        digits[np.arange(len(points)), t - 1 - first] = 1
        return np.asarray(digits)

    def points(self, vectors: Ints) -> Ints:
        """Return the points of vectors that are not 0."""
        r, t = self.prime, self.dimensions
        leading = (vectors != 0).argmax(axis=1)
        inverse = np.array([0, *(pow(x, -1, r) for x in range(1, r))])
        scaled = vectors * inverse[vectors[np.arange(len(vectors)), leading]][:, None] % r
        after = t - 1 - leading
        return np.asarray(scaled @ r ** np.arange(t - 1, -1, -1) - r**after + (r**after - 1) // (r - 1))

    @property
    def _odds_outside(self) -> Fraction:
        orthogonal = _points(self.prime, self.dimensions - 1)
        return Fraction(self.cells - orthogonal, orthogonal)

    def client(self, value: int, rng: Random = SYSTEM) -> int:
        """Return a point."""
        own = self.vectors(coded([value], self.domain))[0]
        inside = samplers.logistic(self.epsilon, self._odds_outside, rng)
        drawn = samplers.retry(self._attempt, own, inside, rng)
        return int(self.points(drawn[None])[0])

    def _attempt(self, own: Ints, inside: bool, rng: Random) -> Ints | None:
        """Draw a vector with product 0 or 1 with the own one; the entry at its leading 1 follows from the others."""
        first = int((own != 0).argmax())
        drawn = np.array([0 if i == first else rng.below(self.prime) for i in range(self.dimensions)])
        drawn[first] = ((0 if inside else 1) - int(own @ drawn)) % self.prime
        return drawn if drawn.any() else None

    def clients(self, values: Any, rng: Random = SYSTEM) -> Ints:
        """Return the points of many people."""
        own = self.vectors(coded(values, self.domain))
        inside = vector.logistic(self.epsilon, len(own), weight=self._odds_outside, rng=rng)
        drawn, todo, first = np.zeros_like(own), np.arange(len(own)), (own != 0).argmax(axis=1)
        while todo.size:
            some = vector.uniform(self.prime, (len(todo), self.dimensions), rng=rng)
            some[np.arange(len(todo)), first[todo]] = 0
            product = np.where(inside[todo], 0, 1) - (own[todo] * some).sum(axis=1)
            some[np.arange(len(todo)), first[todo]] = product % self.prime
            drawn[todo], todo = some, todo[~some.any(axis=1)]
        return self.points(drawn)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value): e^epsilon or 1, divided by their sum over all points."""
        a, b = self.vectors(np.array([report, value]))
        orthogonal = _points(self.prime, self.dimensions - 1)
        total = orthogonal * odds(self.epsilon) + self.cells - orthogonal
        return (odds(self.epsilon) if int(a @ b) % self.prime == 0 else 1) / total

    def support(self, counts: Ints) -> Ints:
        """Return how many reports are orthogonal to each value, by a Fourier transform that is rounded to integers."""
        r, t = self.prime, self.dimensions
        table, places = np.zeros(r**t), r ** np.arange(t - 1, -1, -1)
        for start in range(0, self.cells, _POINTS):
            vectors = self.vectors(np.arange(start, min(start + _POINTS, self.cells)))
            for factor in range(1, r):
                table[vectors * factor % r @ places] = counts[start : start + _POINTS]
        found = np.fft.fftn(table.reshape((r,) * t)).real.ravel()
        parts = np.array_split(np.arange(self.domain), -(-self.domain // _POINTS))
        own = np.concatenate([found[self.vectors(part) @ places] for part in parts])
        return np.asarray(np.rint((own + counts.sum()) / r).astype(np.int64))


examples = [ProjectiveGeometry("1/10", domain=7), ProjectiveGeometry(1, domain=5), ProjectiveGeometry(2, domain=9)]
