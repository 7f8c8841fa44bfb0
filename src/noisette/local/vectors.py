"""The mean of vectors in a ball: report one of many public random directions, more often one along your own.

A report is (seed, index). The seed, drawn by the client, stands for `candidates` vectors of independent normal
coordinates, which anybody can compute. The client sorts them by their inner product with its unit vector. Each of the
first `top` has e^epsilon times the probability of each other one. So the law of a report has two levels, e/Z and 1/Z,
with Z = top e + candidates - top for every vector: epsilon holds exactly, however the candidates and the inner products
are computed. Only accuracy needs them to be normal.

With many candidates it is PrivUnitG [Asi-Feldman-Talwar 2022], whose half-space has the probability top/candidates; to
release a candidate's number instead of a vector is the compression of [Feldman-Talwar 2021; Shah and others 2022].

The estimate is the chosen candidate over m = p A + (1 - p) B, where p is the probability of the first `top`, and A and
B are the expected inner products of both parts: order statistics of normal numbers. Its total variance is
(d - 1 + E[inner product^2])/m^2 - |v|^2. A vector shorter than the norm bound is sent as v/|v| or -v/|v| by lot.

When: gradients and embeddings; at epsilon 4 its variance is a quarter of that of Duchi's vectors.
Textbook: none.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Positive, Read, Whole, default, frozen, optional, set_fields
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import Aggregate, Epsilon, LocalProtocol, checked_reports, odds
from noisette.local.intervals import bars, bernstein

__all__ = ["PrivUnitG", "VectorMean", "candidate"]

Floats = NDArray[np.float64]
UNIT = 1 << 12  # a standard deviation of a coordinate, in whole numbers
FINE = 1 << 30  # lots that decide the sign of a short vector


@lru_cache(maxsize=1)
def _normal() -> NDArray[np.int64]:
    """The normal quantiles of 2^16 equal parts, in units: what two random bytes stand for."""
    from scipy.special import ndtri

    middle = ndtri((np.arange(1 << 16) + 0.5) / (1 << 16))
    return np.asarray(np.rint(middle / middle.std() * UNIT), np.int64)


def candidate(word: int, index: int, dimension: int) -> NDArray[np.int64]:
    """Return a candidate's coordinates in units: normal quantiles of the bytes of SHAKE-128 of a seed and an index.

    >>> candidate(7, 0, 3).tolist() == candidate(7, 0, 3).tolist(), len(candidate(7, 1, 100))
    (True, 100)
    """
    text = word.to_bytes(16, "little") + index.to_bytes(8, "little")
    words = np.frombuffer(hashlib.shake_128(text).digest(2 * dimension), "<u2")
    return np.asarray(_normal()[words])


@lru_cache(maxsize=4)
def _everyone(seed: int, candidates: int, dimension: int) -> NDArray[np.int64]:
    """All candidates of a seed, a row each."""
    return np.stack([candidate(seed, i, dimension) for i in range(candidates)])


@lru_cache(maxsize=256)
def _order(candidates: int, top: int) -> tuple[float, float]:
    """Expectation and second moment of one of the `top` largest of that many normal numbers, drawn uniformly."""
    from scipy.special import betainc, ndtr

    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    among = betainc(candidates - top, top, ndtr(z))  # P(fewer than `top` of the others are above z)
    weights = density * among * (z[1] - z[0]) * candidates / top
    return float(weights @ z), float(weights @ z**2)


def _scale(e: float, candidates: int, top: int) -> tuple[float, float]:
    """m and E[inner product^2] of the chosen candidate."""
    p = top * e / (top * e + candidates - top)
    first, square = _order(candidates, top)
    part = top / (candidates - top)
    other, other_square = -first * part, (1 - square * top / candidates) * candidates / (candidates - top)
    return p * first + (1 - p) * other, p * square + (1 - p) * other_square


@lru_cache(maxsize=256)
def _best_top(e: float, candidates: int) -> int:
    """The `top` with the largest m, near candidates/(1 + e^(epsilon times about one half))."""
    low, high = 1, candidates - 1
    while high - low > 2:  # m has one maximum
        a, b = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, b) if _scale(e, candidates, a)[0] >= _scale(e, candidates, b)[0] else (a, high)
    return max(range(low, high + 1), key=lambda top: _scale(e, candidates, top)[0])


@frozen
class PrivUnitG(LocalProtocol):
    """Values are vectors of `dimension` numbers with a Euclidean norm of at most `norm`; reports are (seed, index).

    >>> m = PrivUnitG(4, dimension=1000)
    >>> round(m.variance() / 1000, 2), m.bits
    (0.44, 72)
    """

    epsilon: Epsilon
    _: KW_ONLY
    dimension: Whole
    norm: Positive = default(1)
    candidates: Annotated[Read[int | None, int], optional(partial(whole, least=2))] = default(None)
    top: Annotated[Read[int | None, int], optional(whole)] = default(None)
    seed_bits: Whole = 62

    def __post_init__(self) -> None:
        set_fields(self, candidates=self.candidates or (1024 if self.epsilon <= 4 else 4096))
        if self.seed_bits > 62 or self.candidates > 1 << 20:
            raise InputError("seed_bits must be at most 62, and candidates at most 1,048,576.")
        set_fields(self, top=self.top or _best_top(float(odds(self.epsilon)), self.candidates))
        if self.top >= self.candidates:
            raise InputError("top must be below candidates: with all of them on top a report says nothing.")

    @property
    def cells(self) -> int:
        """A sum for each coordinate."""
        return self.dimension

    @property
    def layout(self) -> tuple[range, ...]:
        """A seed and an index."""
        return range(1 << self.seed_bits), range(self.candidates)

    @property
    def scale(self) -> float:
        """m: the expected inner product of the chosen candidate with the unit vector."""
        return _scale(float(odds(self.epsilon)), self.candidates, self.top)[0]

    def _vectors(self, values: Any) -> Floats:
        try:
            array = np.asarray(values, float).reshape(np.shape(values) if len(values) else (0, self.dimension))
            if array.ndim != 2 or array.shape[1] != self.dimension:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"Each person's value must be a list of {self.dimension} numbers.") from None
        scaled = array / float(self.norm)
        if not (np.linalg.norm(scaled, axis=1) <= 1 + 1e-9).all():
            raise InputError("A vector is longer than the norm bound: shorten it, or declare a larger norm.")
        return scaled

    def _order_of(self, seed: int, own: Floats) -> NDArray[np.int64]:
        """The candidates of a seed, those along the vector first; a vector of zeros has the first axis as direction."""
        direction = own if own.any() else np.eye(1, self.dimension)[0]
        return np.argsort(-(_everyone(seed, self.candidates, self.dimension) @ direction), kind="stable")

    def _lots(self, own: Floats) -> int:
        """How many of FINE lots send the vector with its own sign: (1 + |v|)/2 of them."""
        return min(FINE, round((1 + float(np.linalg.norm(own))) / 2 * FINE))

    def client(self, value: Any, rng: Random = SYSTEM) -> tuple[int, ...]:
        """Return a seed and the number of one of its candidates."""
        [own] = self._vectors([value])
        seed = rng.below(1 << self.seed_bits)
        sign = 1 if rng.flip(self._lots(own), FINE) else -1
        order = self._order_of(seed, sign * own)
        others = self.candidates - self.top
        inside = samplers.logistic(self.epsilon, Fraction(others, self.top), rng)
        place = rng.below(self.top) if inside else self.top + rng.below(others)
        return seed, int(order[place])

    def clients(self, values: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Return the reports of many people, a row of two numbers each."""
        vectors, others = self._vectors(values), self.candidates - self.top
        n = len(vectors)
        seeds = vector.uniform(1 << self.seed_bits, n, rng=rng)
        signs = np.where(vector.uniform(FINE, n, rng=rng) < [self._lots(v) for v in vectors], 1, -1)
        inside = vector.logistic(self.epsilon, n, weight=Fraction(others, self.top), rng=rng)
        near, far = vector.uniform(self.top, n, rng=rng), self.top + vector.uniform(others, n, rng=rng)
        places = np.where(inside, near, far).tolist()
        signed = zip(seeds.tolist(), signs[:, None] * vectors, places, strict=True)
        chosen = [self._order_of(seed, own)[place] for seed, own, place in signed]
        return np.stack([seeds, np.array(chosen, np.int64)], axis=1)

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        seed, index = report
        [direction] = self._vectors([value])
        e, own = odds(self.epsilon), Fraction(self._lots(direction), FINE)
        total = (self.top * e + self.candidates - self.top) * (1 << self.seed_bits)
        chance = Fraction(0)
        for sign, share in ((1, own), (-1, 1 - own)):
            if share:
                chance += share * (e if index in self._order_of(seed, sign * direction)[: self.top] else 1) / total
        return chance

    def values(self) -> Iterable[tuple[float, ...]]:
        """Both ends of each axis, a vector of zeros, and a diagonal: the ball has infinitely many more."""
        axes = np.eye(self.dimension) * float(self.norm)
        short = np.zeros((1, self.dimension))
        diagonal = np.full((1, self.dimension), float(self.norm) / math.sqrt(self.dimension) * (1 - 1e-12))
        return [tuple(row) for row in np.concatenate([axes, short, diagonal, -axes]).tolist()]

    def counted(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Add up the chosen candidates."""
        total = np.zeros(self.dimension, np.int64)
        for seed, index in checked_reports(self, reports, *self.layout).tolist():
            total += candidate(seed, index, self.dimension)
        return total

    def estimated(self, aggregate: Aggregate) -> "VectorMean":
        """Return the mean of the chosen candidates over m."""
        unit = float(self.norm) / UNIT / self.scale / aggregate.people
        return VectorMean(self, np.asarray(aggregate.counts * unit, float), aggregate)

    def variance(self, people: int = 1, *, length: float = 0.0) -> float:
        """Return the total variance of all coordinates, if each person's vector has this length: worst for 0."""
        scale, square = _scale(float(odds(self.epsilon)), self.candidates, self.top)
        total = (self.dimension - 1 + square) / scale**2
        return (total * float(self.norm) ** 2 - length**2) / whole(people, "people")


@dataclass(frozen=True, eq=False)
class VectorMean:
    """An estimate of a mean vector, unbiased for candidates with normal coordinates."""

    protocol: PrivUnitG
    mean: Floats
    aggregate: Aggregate

    def variance(self) -> float:
        """Return the largest total variance, that of short vectors."""
        return self.protocol.variance(self.aggregate.people)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return (low, high) for each coordinate; each contains its mean with at least that probability."""
        scale, square = _scale(float(odds(self.protocol.epsilon)), self.protocol.candidates, self.protocol.top)
        reach = float(_normal()[-1]) / UNIT / scale + 1
        half = bernstein(max(1.0, square) / scale**2, reach, self.aggregate.people, level) * float(self.protocol.norm)
        return self.mean - half, self.mean + half

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a row for each coordinate."""
        return bars("coordinate", range(len(self.mean)), "mean", self.mean, *self.interval(level))


examples = [PrivUnitG(1, dimension=3, candidates=6, top=2, seed_bits=2),
            PrivUnitG(3, dimension=2, norm=2, candidates=5, seed_bits=1)]  # fmt: skip
