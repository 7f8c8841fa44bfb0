"""Tracing: who is in a table from which only averages were released?

A member x pulled each mean m a little towards itself and away from the population's p, so that <x - p, m - p> is
about sum p(1 - p)/n for members and 0 for others. Over many attributes d >> n the difference stands out.
[Homer et al. 2008; Dwork-Smith-Steinke-Ullman-Vadhan 2015]

Vocabulary: `x` a candidate's row · `p` frequencies in the population · `m` released means · `w` = m - p.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisette.attacks.answerer import Ask, given, rate, spent_by
from noisette.errors import InputError
from noisette.privacy import Guarantee

__all__ = ["Tracing", "trace"]

_BLOCK = 1 << 22  # cells that are turned into floats at a time


@dataclass(frozen=True)
class Tracing:
    """The shares of members found and of others accused, at a threshold that accuses `fpr` of others on paper."""

    tpr: float
    false_alarms: float
    fpr: float
    people: int
    others: int
    attributes: int
    spent: Guarantee | None

    @property
    def verdict(self) -> str:
        """One sentence."""
        cost = f", {self.spent} spent" if self.spent is not None else ""
        found = f"{self.tpr:.0%} of {self.people:,} members found from {self.attributes:,} means"
        return f"{found}, {self.false_alarms:.1%} of {self.others:,} others accused{cost}."

    def __str__(self) -> str:
        return self.verdict


def trace(inside: ArrayLike, outside: ArrayLike, frequencies: ArrayLike, ask: Ask, *, fpr: float = 0.01) -> Tracing:
    """Release the means of the people inside, score all candidates and accuse those above a threshold.

    The attacker knows p and the candidates' rows, not the table. For anybody else, whose attributes are independent
    given p, the score has mean 0 and variance sum p(1 - p) w^2: the threshold is its normal quantile at 1 - fpr, and
    `false_alarms` is what it gives on those outside. One person moves the means by at most 1/n each
    (`sensitivity.normalised`). An answerer whose budget does not hold them raises BudgetError.

    >>> from noisette.attacks import exact, population
    >>> fake = population(20, 4000, 200)
    >>> trace(fake.inside, fake.outside, fake.frequencies, exact).tpr
    1.0
    """
    level, rows, others, p = rate(fpr), _rows(inside), _rows(outside), np.asarray(frequencies, dtype=float)
    if p.shape != rows.shape[1:] or p.shape != others.shape[1:]:
        raise InputError("inside, outside and frequencies must have the same attributes: as many columns as numbers.")
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("frequencies must lie between 0 and 1.")
    w = given(ask, rows.mean(axis=0)) - p
    threshold = NormalDist().inv_cdf(1 - level) * float(np.sqrt(np.sum(p * (1 - p) * w**2)))
    found, accused = (float(np.mean(_scores(candidates, p, w) > threshold)) for candidates in (rows, others))
    return Tracing(found, accused, level, len(rows), len(others), len(p), spent_by(ask))


def _rows(rows: ArrayLike) -> NDArray[Any]:
    array = np.asarray(rows)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise InputError("inside and outside must be tables of numbers: one row for each person.")
    if not (array.min() >= 0 and array.max() <= 1):
        raise InputError("Attributes must lie between 0 and 1: rescale them first.")
    return array


def _scores(rows: NDArray[Any], p: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """<x - p, w> for each row x, a block at a time."""
    step = max(1, _BLOCK // len(w))
    parts = [rows[i : i + step].astype(float) @ w for i in range(0, len(rows), step)]
    return np.concatenate(parts) - p @ w
