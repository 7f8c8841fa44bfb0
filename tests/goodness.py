"""Goodness of fit with few assumptions: a G test whose cells are large enough and whose tails are cells too.

`ALPHA` is the false-alarm probability of one statistical test: hundreds of them together stay below 1e-9. `most` and
`fewest` turn it into bounds on a number of hits.
"""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, chi2, norm

ALPHA = 1e-12
_SMALLEST = 10

Below = Callable[[NDArray], NDArray]
"""edges -> P(z < edge), for whole numbers z."""


def most(n: int, p: float) -> int:
    """Return the number of hits that Binomial(n, p) exceeds with probability below ALPHA."""
    return int(binom.isf(ALPHA, n, p))


def fewest(n: int, p: float) -> int:
    """Return the number of hits below which Binomial(n, p) stays with probability below ALPHA."""
    return n - most(n, 1 - p)


def p_value(observed: ArrayLike, chances: ArrayLike) -> float:
    """Test counts against the chances of their cells; what the chances lack of one is that of no count at all."""
    observed, chances = np.asarray(observed, float), np.asarray(chances, float)
    total = observed.sum()
    rest = 1 - chances.sum()
    if rest > 1e-12:
        observed, chances = np.append(observed, 0), np.append(chances, rest)
    if observed[chances <= 0].any():
        return 0.0
    observed, expected = _pooled(observed, total * chances)
    if len(expected) == 1:
        return 1.0
    terms = observed * np.log(np.where(observed, observed, 1) / expected) - (observed - expected)
    williams = 1 + ((1 / expected).sum() - 1 / total) / (6 * (len(expected) - 1))
    return float(chi2.sf(2 * terms.sum() / williams, len(expected) - 1))


def _pooled(observed: NDArray, expected: NDArray) -> tuple[NDArray, NDArray]:
    """Join neighbouring cells until each expects enough."""
    starts, room = [0], 0.0
    for i, e in enumerate(expected):
        if room >= _SMALLEST:
            starts.append(i)
            room = 0.0
        room += e
    if room < _SMALLEST and len(starts) > 1:
        starts.pop()
    return np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)


def fit(draws: ArrayLike, below: Below, edges: ArrayLike) -> float:
    """Test whole numbers against a law, in the cells that the edges part; the first and the last are the tails."""
    edges = np.asarray(edges)
    counts = np.bincount(np.searchsorted(edges, np.asarray(draws), side="right"), minlength=len(edges) + 1)
    return p_value(counts, np.diff(below(edges), prepend=0, append=1))


def pmf_fit(draws: ArrayLike, pmf: Callable[[int], float], lo: int, hi: int) -> float:
    """Test whole numbers against a pmf on lo .. hi; a draw from elsewhere is a misfit in a cell of its own."""
    draws = np.asarray(draws)
    inside = draws[(lo <= draws) & (draws <= hi)]
    chances = np.array([float(pmf(z)) for z in range(lo, hi + 1)])
    counts = np.bincount((inside - lo).astype(np.int64), minlength=hi + 1 - lo)
    return p_value([*counts, len(draws) - len(inside)], [*chances, max(0.0, 1 - chances.sum())])


def integers(reach: float) -> NDArray[np.int64]:
    """Return edges at every integer, or at 2000 of them, as far as `reach` on either side."""
    return np.unique(np.linspace(-reach, reach, 2001).round().astype(np.int64))


def geometric(scale: Fraction) -> Below:
    """(1 - q) q^z, z >= 0, q = e^(-1/scale)."""
    return lambda edges: np.where(edges > 0, -np.expm1(-np.maximum(edges, 0) / float(scale)), 0.0)


def laplace(scale: Fraction) -> Below:
    """(1 - q)/(1 + q) q^|z|, q = e^(-1/scale)."""
    rate = 1 / float(scale)
    share = 1 / (1 + np.exp(-rate))

    def below(edges: NDArray) -> NDArray:
        x = edges.astype(float)
        return np.where(x > 0, 1 - share * np.exp(-rate * abs(x)), share * np.exp(-rate * abs(1 - x)))

    return below


def gaussian(s2: Fraction) -> Below:
    """e^(-z^2 / 2 s2), normalised: sums for sigma below 1000; beyond, normal to a relative 1 / (24 s2)."""
    sigma = float(s2) ** 0.5
    if sigma > 1000:
        return lambda edges: norm.cdf((edges - 0.5) / sigma)
    z = np.arange(-(w := int(12 * sigma) + 12), w + 1)
    cumulative = np.cumsum(np.exp(-(z**2) / (2 * float(s2))))
    return lambda edges: cumulative[np.clip(edges + w - 1, 0, 2 * w)] / cumulative[-1]


def gaussian_pmf(s2: Fraction, z: int) -> mpmath.mpf:
    """Return P(z) to 60 digits: the normaliser is a theta function."""
    with mpmath.workdps(70):
        rate = mpmath.mpf(s2.denominator) / (2 * s2.numerator)
        return mpmath.exp(-rate * z * z) / mpmath.jtheta(3, 0, mpmath.exp(-rate))
