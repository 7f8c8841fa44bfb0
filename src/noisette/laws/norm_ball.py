"""Noise on integer vectors with probability proportional to e^(-||z|| / scale), for the norms l1, l2, l∞.

Each norm has an algorithm of its own; all are exact.   [Hardt-Talwar 2010, "On the geometry of differential privacy"]

Vocabulary: `s` scale · `d` dimension · `a` = e^(-1/s) · `theta(v)` = sum over integers of e^(-z^2 / 2v).
"""

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import samplers, vector
from noisette.exact.frozen import KW_ONLY, Read, Whole, frozen
from noisette.exact.integers import Integers, gathered
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_bounds, precision, sqrt_bounds
from noisette.laws.discrete_laplace import DiscreteLaplace

__all__ = ["NormBall"]

Floats: TypeAlias = NDArray[np.float64]


def _norm(given: float | str, name: str) -> float:
    norm = math.inf if given == "inf" else given
    if norm not in (1, 2, math.inf):
        raise InputError(f"{name} must be 1, 2 or math.inf.")
    return norm


Norm: TypeAlias = Annotated[Read[float | str, float], _norm]


@frozen
class NormBall:
    """P(z) proportional to e^(-||z|| / scale) on Z^dimension; `norm` is 1, 2 or math.inf.

    >>> ball = NormBall(math.inf, 2, dimension=3)
    >>> round(float(ball.pmf(np.array([1, 0, 0])) / ball.pmf(np.array([3, 3, -3]))), 6)   # e^((3 - 1) / 2)
    2.718282
    """

    norm: Norm
    scale: vector.Scale
    _: KW_ONLY
    dimension: Whole

    def pmf(self, z: Any) -> Any:
        """P(Z = z) for a vector, or for each row of a matrix."""
        length = np.linalg.norm(np.asarray(z, dtype=float), ord=self.norm, axis=-1)
        return np.exp(-length / float(self.scale) - self.log_normaliser())

    def log_normaliser(self) -> float:
        """ln of the sum of e^(-||z|| / scale) over all integer vectors."""
        if self.norm == 1:
            return -self.dimension * math.log(math.tanh(0.5 / float(self.scale)))
        if self.norm == 2:
            return _mixture(self.scale, self.dimension)[2]
        log_x = _log_x(self.scale)
        terms = [math.log(c) + j * log_x for j, c in enumerate(_differences(self.dimension))]
        return max(terms) + math.log(math.fsum(math.exp(t - max(terms)) for t in terms))

    def tail(self, t: Any) -> Any:
        """P(|Z_1| > t) for one coordinate."""
        if self.norm == 1:
            return DiscreteLaplace(self.scale).tail(t)
        if self.norm == 2:
            variances, weights, _ = _mixture(self.scale, self.dimension)
            return np.vectorize(lambda u: np.sum(weights * _gaussian_tail(variances, u)), [float])(t)[()]
        radius, mass = _cube_radius(self.scale, self.dimension)
        return np.vectorize(lambda u: float(np.sum(mass * np.maximum(0, 1 - (2 * u + 1) / (2 * radius + 1)))), [float])(
            t
        )[()]

    def variance(self) -> float:
        """E Z_1^2: the variance of one coordinate."""
        if self.norm == 1:
            return DiscreteLaplace(self.scale).variance()
        if self.norm == 2:
            variances, weights, _ = _mixture(self.scale, self.dimension)
            return float(np.sum(weights * _gaussian_variance(variances)))
        radius, mass = _cube_radius(self.scale, self.dimension)
        return float(np.sum(mass * radius * (radius + 1) / 3))

    def largest_tail(self, t: float) -> float:
        """P(max_i |Z_i| > t): exact for l1 and l∞, the union bound for l2."""
        if self.norm == 1:
            return -math.expm1(self.dimension * math.log1p(-float(self.tail(t))))
        if self.norm == 2:
            return min(1.0, self.dimension * float(self.tail(t)))
        radius, mass = _cube_radius(self.scale, self.dimension)
        inside = np.minimum(0, self.dimension * (math.log(2 * t + 1) - np.log(2 * radius + 1)))
        return float(np.sum(mass * -np.expm1(inside)))

    def sample(self, rng: Random = SYSTEM) -> Integers:
        """Draw one vector exactly."""
        if self.norm == 1:
            return np.asarray(vector.laplace_noise(self.scale, self.dimension, rng))
        if self.norm == 2:
            return samplers.retry(_attempt_round, self.scale, self.dimension, rng)
        return _cube(self.scale, self.dimension, rng)


# ------------------------------------------------------------------------------------------------------------------- l∞
# e^(-||z||∞/s) = sum over m >= ||z||∞ of (1-a) a^m, so z is uniform in the cube of radius m with P(m) ∝ (2m+1)^d a^m.
# In Newton's basis (2m+1)^d = sum_j c_j C(m, j) with c_j > 0, and C(m, j) a^m is j plus j+1 geometric variables.


@lru_cache(maxsize=32)
def _differences(d: int) -> list[int]:
    """c_j: the j-th differences of (2m+1)^d at m = 0."""
    row, result = [(2 * m + 1) ** d for m in range(d + 1)], []
    while row:
        result.append(row[0])
        row = [b - a for a, b in itertools.pairwise(row)]
    return result


def _log_x(s: Fraction) -> float:
    """ln(a / (1 - a))."""
    return -float(1 / s) - math.log(-math.expm1(-float(1 / s)))


@lru_cache(maxsize=64)
def _cube_weights(s: Fraction, d: int, bits: int) -> list[tuple[int, int]]:
    """Enclose c_j (a/(1-a))^j, all in the same unit."""
    places = bits + 64 + d.bit_length() + max(0, s.numerator.bit_length() - s.denominator.bit_length())
    lo, hi = exp_bounds(-1 / s, places)
    one = 1 << places
    steps = ((lo << places) // (one - lo), -(-(hi << places) // (one - hi)))  # the odds a/(1-a)
    terms = []
    for j, c in enumerate(_differences(d)):
        terms.append(tuple(c * step**j << (places * (d - j)) for step in steps))
    drop = max(t[1] for t in terms).bit_length() - bits - d.bit_length() - 8
    return [(lo_j >> drop, (hi_j >> drop) + 1) if drop > 0 else (lo_j, hi_j) for lo_j, hi_j in terms]


def _cube(s: Fraction, d: int, rng: Random) -> Integers:
    j = samplers.categorical(lambda bits: _cube_weights(s, d, bits), rng)
    m = j + sum(int(g) for g in np.asarray(vector.geometric_noise(s, j + 1, rng)))
    if m < 1 << 61:
        return vector.uniform(2 * m + 1, d, rng=rng) - m
    return gathered([rng.below(2 * m + 1) - m for _ in range(d)], d)


@lru_cache(maxsize=16)
def _cube_radius(s: Fraction, d: int) -> tuple[Floats, Floats]:
    """Points m and their probabilities, P(m) ∝ (2m+1)^d a^m: all of them, or a fine quadrature for large scales."""
    scale = float(s)
    top = math.ceil(scale * (d + 40 + 9 * math.sqrt(d))) + 2
    radius = np.unique(np.round(np.linspace(0, top, min(top, 200_000) + 1)))
    log = d * np.log(2 * radius + 1) - radius / scale
    mass = np.exp(log - log.max())
    return radius, mass / mass.sum()


# ------------------------------------------------------------------------------------------------------------------- l2
# Shell k holds the z with k h s <= ||z|| < (k+1) h s. There -||z||/s lies below the chord of the concave root, a
# Gaussian exponent: -||z||/s <= -h k(k+1)/(2k+1) - ||z||^2/(2 v_k), v_k = s^2 h (2k+1)/2. So: draw k by the weight
# e^(-h k(k+1)/(2k+1)) theta(v_k)^d, z from the discrete Gaussian of v_k, accept it if it lies in shell k, and then with
# probability e^(-gap to the chord). About half of the attempts succeed, in any dimension.


def _shell_width(d: int) -> int:
    return max(1, math.isqrt(d))


@lru_cache(maxsize=64)
def _shell_weights(s: Fraction, d: int, bits: int) -> list[tuple[int, int]]:
    """Enclose the shells' weights in a common unit; the last entry bounds the sum of all further ones."""
    h, mp = _shell_width(d), precision(bits + 96)
    weights: list[Any] = []
    ratio = mp.mpf(1)
    while ratio >= 0.75 or weights[-1] >= mp.ldexp(max(weights), -bits - 8):
        k = len(weights)
        v = mp.mpf(s.numerator) ** 2 / s.denominator**2 * h * (2 * k + 1) / 2
        weights.append(mp.exp(-mp.mpf(h * k * (k + 1)) / (2 * k + 1)) * _theta(v, mp) ** d)
        # theta(v)/sqrt(v) falls and h k(k+1)/(2k+1) grows by at least h/2, so later ratios are below this one:
        ratio = mp.exp(-mp.mpf(h) / 2) * (mp.mpf(2 * k + 3) / (2 * k + 1)) ** (mp.mpf(d) / 2)
    unit = mp.ldexp(max(weights), -bits - 8)
    enclosed = [(max(0, int(w / unit) - 1), int(w / unit) + 2) for w in weights]
    return [*enclosed, (0, 2 + int(weights[-1] / unit * ratio / (1 - ratio)))]


def _theta(v: Any, mp: Any) -> Any:
    """theta(v) in the context's precision, by whichever of the two theta series converges fast."""
    direct = v < 0.5
    total, n = mp.mpf(1), 1
    while True:
        term = 2 * mp.exp(-mp.mpf(n * n) / (2 * v) if direct else -2 * mp.pi**2 * v * n * n)
        total, n = total + term, n + 1
        if term < mp.ldexp(1, -mp.prec - 8):
            return total if direct else total * mp.sqrt(2 * mp.pi * v)


def _attempt_round(s: Fraction, d: int, rng: Random) -> Integers | None:
    h = _shell_width(d)
    k = samplers.categorical(lambda bits: _shell_weights(s, d, bits), rng)
    z = np.asarray(vector.gaussian_noise(s * s * h * (2 * k + 1) / 2, d, rng))
    t = sum(int(c) ** 2 for c in z)
    if not (k * h * s) ** 2 <= t < ((k + 1) * h * s) ** 2:
        return None

    def kept(bits: int) -> tuple[int, int]:
        chord = (k * (k + 1) * h + t / (s * s * h)) / (2 * k + 1)
        root_lo, root_hi = (Fraction(r, 1 << (bits + 64)) for r in sqrt_bounds(t / (s * s), bits + 64))
        return exp_bounds(chord - root_hi, bits)[0], min(1 << bits, exp_bounds(chord - root_lo, bits)[1])

    return z if samplers.bernoulli_real(kept, rng) else None


@lru_cache(maxsize=16)
def _mixture(s: Fraction, d: int) -> tuple[Floats, Floats, float]:
    """e^(-||z||/s) as a mixture of discrete Gaussians: (variances, weights, ln of the normaliser).

    e^(-r/s) = 2/sqrt(pi) * integral over t > 0 of e^(-t^2 - r^2 / (4 t^2 s^2)) dt, so the variance is 2 t^2 s^2; the
    integrand is smooth and even in t, for which the trapezoid rule converges exponentially.
    """
    t = np.linspace(0, math.sqrt(d) + 12, 8001)[1:]
    v = 2 * t * t * float(s) ** 2
    log = -t * t + d * _log_theta(v)
    weights = np.exp(log - log.max())
    step = t[1] - t[0]
    at_zero = math.exp(-log.max()) / 2  # the integrand at t = 0, where theta = 1
    total = (weights.sum() + at_zero) * step * 2 / math.sqrt(math.pi)
    return (
        np.append(v, 1e-9),
        np.append(weights, at_zero) / (weights.sum() + at_zero),
        math.log(total) + float(log.max()),
    )


def _log_theta(v: Floats) -> Floats:
    n = np.arange(1, 7)[:, None]
    direct = np.log1p(2 * np.exp(-n * n / (2 * v)).sum(axis=0))
    poisson = 0.5 * np.log(2 * math.pi * v) + np.log1p(2 * np.exp(-2 * math.pi**2 * v * n * n).sum(axis=0))
    return np.asarray(np.where(v < 0.5, direct, poisson))


def _gaussian_tail(v: Floats, t: float) -> Floats:
    """P(|Z| > t) for discrete Gaussians of variances v: summed for small v, else a corrected integral."""
    from scipy.special import erfc

    x = (t + 0.5) / np.sqrt(2 * v)
    tail = erfc(x) - x * np.exp(-x * x) / (12 * v * math.sqrt(math.pi))
    few = v < 50
    z = float(t) + np.arange(1, 80)[:, None]
    tail[few] = 2 * np.exp(-z * z / (2 * v[few])).sum(axis=0) * np.exp(-_log_theta(v[few]))
    return np.asarray(tail)


def _gaussian_variance(v: Floats) -> Floats:
    z = np.arange(1, 40)[:, None]
    least = np.minimum(v, 4)
    small = 2 * (z * z * np.exp(-z * z / (2 * least))).sum(axis=0) * np.exp(-_log_theta(least))
    return np.asarray(np.where(v < 4, small, v))
