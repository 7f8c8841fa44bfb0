"""Quantiles of a stream whose counters are bins of a number, after any step: post-processing of their noisy counts.

Let A_j be the rows in bins up to j, and N all of them. The q-quantile lies in the first bin j with A_j >= q N, so that
S_j = A_j - q N = (1 - q) A_j - q (N - A_j) is at least 0 in its bin and below 0 before. With noise of deviation s on
each of m bins, S_j errs by s sqrt((1 - q)^2 j + q^2 (m - j)), by the error of the bins on both sides of the quantile.

**The interval** is all bins that two tests allow: not clearly above q before the bin, and not clearly below it after.
The true bin fails one of them with a chance of at most 1 - level, whatever the counts are: no bin is tested but it.
"""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from noisette.releases.streams.contract import Floats

__all__ = ["quantile_bins"]


def quantile_bins(counts: Any, deviation: float, q: float, level: float) -> tuple[int, int, int]:
    """The bin of a quantile, counted from 0, and the first and last bin of its interval.

    >>> quantile_bins([100, 200, 100], deviation=2.0, q=0.5, level=0.95)
    (1, 1, 1)
    >>> quantile_bins([100, 200, 100], deviation=80.0, q=0.5, level=0.95)
    (1, 0, 2)
    """
    n: Floats = np.asarray(counts, float)
    m, upto = len(n), np.arange(1, len(n) + 1)
    s = np.cumsum(n) - q * n.sum()
    wide = NormalDist().inv_cdf((1 + level) / 2) * deviation * np.sqrt((1 - q) ** 2 * upto + q**2 * (m - upto))
    before = np.concatenate([[-math.inf], (s - wide)[:-1]])
    allowed = np.flatnonzero((before <= 0) & ((s + wide >= 0) | (upto == m)))
    above, below = np.flatnonzero(s >= 0), np.flatnonzero(s[:-1] < 0)
    first, last = (above[0] if len(above) else m - 1), (below[-1] + 1 if len(below) else 0)
    middle = int(first + last) // 2  # noise may cross 0 several times
    return middle, int(min(allowed.min(initial=m), middle)), int(max(allowed.max(initial=0), middle))
