"""Buffers: weights for running sums that need a few numbers of state, however long the stream is.

Vocabulary: `c` the weights by which x enters what is measured, as a series · `b` those by which noise enters the sums,
b = 1/((1 - z) c) · `beta` how much of itself a buffer keeps in a step, `gap` 1 - beta · `inflow` what of a buffer is
taken off again · `T` the horizon.

    1/c(z) = 1 - sum_i inflow_i z / (1 - beta_i z)

so noise C^-1 z needs one number for each buffer: u_i <- beta_i u_i + z_t. The best c for sums is (1 - z)^(-1/2), and

    (1 - z)^(1/2) = 1 - (1/pi) int_0^1 z / (1 - beta z)  beta^(-1/2) (1 - beta)^(1/2) d beta,

of which the buffers are a quadrature; then |c| |b| is minimised over all gaps and inflows. With a_i = inflow_i/gap_i
and a_0 = 1 - sum a_i > 0, b_t = a_0 + sum a_i beta_i^t falls from 1 and stays positive, and c = 1 + sum omega_i z/(1 -
theta_i z) with positive omega and 0 < theta_i < 1, the eigenvalues of diag(beta) + inflow: c is positive and falls from
its second weight on, which is at most the first.   [Dvijotham-McMahan-Pillutla-Steinke-Thakurta 2024, by another way]

Sums may fade: with c(g z) for a g below 1, b is 1/((1 - g z) c(g z)), and C x + noise yields the sum of g^(t-s) x_s.
All weights fall by powers of g, so that sums which fade cost a bounded amount, however long the stream is.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.releases.streams.participation import Participation

__all__ = ["SCALE", "Buffers", "best_buffers", "square_root_square"]

Floats: TypeAlias = NDArray[np.float64]

SCALE = 64  # bits after the point of gaps and inflows
_DIGITS = 60  # of the sums that certify a norm
_UP = 1 + 1e-12
_OCTAVES = 3.5  # of steps for each buffer
_MOST = 10
_SUMMED = 1 << 20  # squares of the square root that are added one by one


@dataclass(frozen=True)
class Buffers:
    """Gaps and inflows in units of 2^-64, from the buffer that forgets most; `fade` is what sums lose in a step.

    >>> made = best_buffers(1024)
    >>> len(made.gaps), round(math.sqrt(made.column(1024) * made.noise(1024)), 4)
    (3, 3.2776)
    """

    gaps: tuple[int, ...]
    inflows: tuple[int, ...]
    fade: int = 0

    def __post_init__(self) -> None:
        one = 1 << SCALE
        if len(self.gaps) != len(self.inflows) or not all(0 <= self.fade < g <= one for g in self.gaps):
            raise InputError("There must be a gap above 0 and at most 1, and an inflow, for each buffer.")
        if not all(f > 0 for f in self.inflows) or sum(self._shares) >= 1:
            raise InputError("Inflows must be above 0, and the inflows over their gaps add up to less than 1.")

    @property
    def _shares(self) -> list[Fraction]:
        """a: inflows over what buffers lose more than sums do."""
        return [Fraction(f, g - self.fade) for g, f in zip(self.gaps, self.inflows, strict=True)]

    def faded(self, fade: int) -> "Buffers":
        """The same for sums that lose `fade`/2^64 of themselves in a step: z is g z, rounded so that c is no larger."""
        one = 1 << SCALE
        gaps = tuple(fade + gap - (fade * gap >> SCALE) for gap in self.gaps)
        return Buffers(gaps, tuple(max(1, flow * (one - fade) >> SCALE) for flow in self.inflows), fade)

    @property
    def _exact(self) -> tuple[list[Any], list[Any]]:
        """Gaps of theta and omegas, to 60 digits."""
        import mpmath

        n = len(self.gaps)
        if not n:
            return [], []
        gap, flow = ([mpmath.mpf(v) / 2**SCALE for v in some] for some in (self.gaps, self.inflows))
        root = mpmath.matrix([mpmath.sqrt(f) for f in flow])
        found, vectors = mpmath.eigsy(mpmath.diag(gap) - root * root.T)
        return list(found), [sum(vectors[j, i] * root[j] for j in range(n)) ** 2 for i in range(n)]

    def column(self, horizon: int, start: int = 0) -> float:
        """The sum of the squares of the weights c from number `start` to below the horizon, rounded up."""
        import mpmath

        with mpmath.workdps(_DIGITS):
            gaps, omegas = self._exact
            total = mpmath.mpf(1 if start == 0 else 0)
            first, last = max(start, 1) - 1, horizon - 1
            for g, o in zip(gaps, omegas, strict=True):
                for h, p in zip(gaps, omegas, strict=True):
                    lost = g + h - g * h
                    total += o * p * ((1 - lost) ** first - (1 - lost) ** last) / lost
            return float(total) * _UP

    def weights(self, many: int) -> Floats:
        """The first weights c."""
        import mpmath

        with mpmath.workdps(_DIGITS):
            gaps, omegas = (np.array([float(v) for v in some]) for some in self._exact)
        powers = np.exp(np.log1p(-gaps)[:, None] * np.arange(many - 1)) if len(gaps) else np.zeros((0, many - 1))
        return np.concatenate([[1.0], omegas @ powers])[:many]

    def square(self, horizon: int, who: Participation) -> float:
        """The largest square of one unit's move, rounded up."""
        c = self.weights(who.rows(horizon))
        return who.square(c, horizon, lambda start, stop: self.column(stop, start))

    # The noise of sums

    def _spread(self) -> tuple[Floats, Floats]:
        """a and gaps, a_0 with the gap of the sums themselves in front."""
        gaps = np.array([v / 2.0**SCALE for v in (self.fade, *self.gaps)])
        return np.array([float(1 - sum(self._shares, Fraction(0))), *map(float, self._shares)]), gaps

    def noise(self, steps: Any) -> Floats:
        """The variance of the sum after each of these steps, per unit of the noise's variance: sum of b^2."""
        a, gaps = self._spread()
        return _squares(a, gaps, np.asarray(steps, float))

    def apart(self, first: Any, last: Any) -> Floats:
        """The same of the sum after step `last` minus that after `first`: (b_(t+d) - b_t)^2, and b^2 of what is new."""
        a, gaps = self._spread()
        s, t = np.asarray(first, float), np.asarray(last, float)
        fade = a * np.expm1((t - s)[..., None] * np.log1p(-gaps))  # b_(k+d) - b_k = sum a beta^k (beta^d - 1)
        lost = np.add.outer(gaps, gaps) - np.multiply.outer(gaps, gaps)
        old = np.einsum("...i,...j,...ij->...", fade, fade, _geometric(lost, s[..., None, None]))
        return np.asarray(old + _squares(a, gaps, t - s))


def _geometric(lost: Floats, terms: Any) -> Floats:
    """1 + (1 - lost) + (1 - lost)^2 + …, so many terms, each at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(lost > 0, -np.expm1(terms * np.log1p(-lost)) / lost, terms)
    return found


def _squares(a: Floats, gaps: Floats, terms: Any) -> Floats:
    """The sum of the squares of sum_i a_i (1 - gap_i)^k over the first k."""
    lost = np.add.outer(gaps, gaps) - np.multiply.outer(gaps, gaps)
    found: Floats = (np.multiply.outer(a, a) * _geometric(lost, np.asarray(terms, float)[..., None, None])).sum(
        axis=(-2, -1)
    )
    return found


# The best buffers


def square_root_square(horizon: int) -> float:
    """The sum of the first squares of (1 - z)^(-1/2), rounded up; its column and its noise alike.

    The k-th weight is below (pi (k + 1/4))^(-1/2), so from N on they add up to at most ln((T - 3/4)/(N - 3/4))/pi.

    >>> round(square_root_square(1024), 4), round(square_root_square(2**40), 2)
    (3.2726, 9.89)
    """
    n = min(horizon, _SUMMED)
    k = np.arange(1, n)
    exact = 1 + float((np.cumprod((2 * k - 1) / (2 * k)) ** 2).sum())
    return (exact + math.log((horizon - 0.75) / (n - 0.75)) / math.pi) * _UP


@lru_cache(maxsize=64)
def best_buffers(horizon: int, many: int | None = None) -> Buffers:
    """The buffers of least error for sums over a horizon; without `many`, so few that they err by .3 % more than the
    square root up to 2^20 steps, and 1 % at 2^40."""
    from scipy.optimize import minimize

    n = min(_MOST, max(1, math.ceil(math.log2(horizon) / _OCTAVES))) if many is None else many

    def error(p: Floats) -> float:
        return _error(*_unpacked(p, n), horizon)

    start = min((_start(horizon, n, low) for low in (0.3, 1.0, 3.0, 10.0, 30.0)), key=error)
    best = minimize(error, start, method="BFGS", options={"gtol": 1e-5, "maxiter": 60})
    gaps, flows = _unpacked(best.x if best.fun < error(start) else start, n)
    order = np.argsort(-gaps)
    whole_gaps, inflows = (tuple(max(1, int(v * 2.0**SCALE)) for v in some[order]) for some in (gaps, flows))
    return Buffers(whole_gaps, inflows)


def _start(horizon: int, many: int, low: float) -> Floats:
    at = np.linspace(math.log(low / horizon), 1.0, many) if many > 1 else np.array([-math.log(horizon) / 2])
    gaps, rest = 1 / (1 + np.exp(-at)), 0.6 / math.sqrt(horizon)
    a = np.sqrt(gaps * (1 - gaps))
    return np.concatenate([at, np.log([rest]), np.log((1 - rest) * a / a.sum())])


def _unpacked(p: Floats, many: int) -> tuple[Floats, Floats]:
    """Gaps and inflows; a_0, …, a_n are positive and add up to one, whatever the parameters."""
    gaps = 1 / (1 + np.exp(-np.clip(p[:many], -60, 30)))
    a = np.exp(p[many:] - p[many:].max())
    return gaps, a[1:] / a.sum() * gaps


def _error(gaps: Floats, flows: Floats, horizon: int) -> float:
    """The logarithm of |c| |b|."""
    root = np.sqrt(flows)
    lost, vectors = np.linalg.eigh(np.diag(gaps) - np.outer(root, root))
    if lost[0] <= 0:
        return 99.0  # beyond the precision of floats
    omegas = (vectors.T @ root) ** 2
    a = np.concatenate([[1 - float((flows / gaps).sum())], flows / gaps])
    with np.errstate(all="ignore"):
        column = 1 + _squares(omegas, lost, horizon - 1.0)
        noise = _squares(a, np.concatenate([[0.0], gaps]), float(horizon))
        found = 0.5 * math.log(max(float(column * noise), 1e-300))
    return found if math.isfinite(found) and noise > 0 else 99.0
