"""Counts of a huge table of which few cells are filled: time and memory of what is filled and released.

The full release adds noise to every cell, zeros too, and releases only some: those that reach a threshold (`Filter`)
or a sample of them (`Priority`). Here noise is added to the filled cells alone. How many empty cells would have been
released, which, and with what noisy counts is drawn afterwards, from exactly the law that they have in the full
release. So what comes out has the law of the full release, and its guarantee: a unit of k rows moves the counts by k in
l1 norm, and choosing by noisy counts reads no data.   [Cormode-Procopiuc-Srivastava-Tran 2012]

    SparseCounts -> Released: cells in ascending order, which says nothing about who is in them

Vocabulary: `codes` filled cells · `v` noisy counts · `part` what one unit can contribute.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.answers.column import added_ends
from noisette.errors import InputError
from noisette.exact.integers import saturated
from noisette.exact.number import Number, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Geometric
from noisette.mechanisms.calibration import pure_epsilon
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution, Measure, sensitivity
from noisette.releases.linear import ONE_ROW
from noisette.releases.sparse.bars import conditional, filtered, noise_of_sum, poisson_means, sampled
from noisette.releases.sparse.filters import Filter
from noisette.releases.sparse.priority import MOST, Priority
from noisette.releases.sparse.zeros import Codes

__all__ = ["LARGEST", "Released", "SparseCounts", "Total"]

LARGEST = 2**62
"""The largest number of cells."""


@dataclass(frozen=True)
class SparseCounts:
    """Noisy counts of some of the `cells` 0, 1, 2, …: those that the rule releases.

    >>> made = SparseCounts.calibrated(1, 10**15, size=100)
    >>> made.rule, made.guarantee(), round(made.empty)
    (Filter(threshold=30, both=False), Pure('1', neighbours=ADD_REMOVE), 68)
    >>> released = made([7, 10**14], [1000, 2000])
    >>> {7, 10**14} <= set(released.codes.tolist())
    True
    """

    noise: Geometric
    cells: int
    rule: Filter | Priority
    moved: Sensitivity

    def __post_init__(self) -> None:
        if whole(self.cells, "cells") > LARGEST:
            raise InputError("There may be at most 2^62 cells: name fewer columns, or coarser ones.")
        if self.empty > MOST:
            raise InputError(f"More than {MOST:,} empty cells would be released: raise the threshold, or name a size.")

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        cells: int,
        *,
        size: Number | None = None,
        threshold: int | None = None,
        sample: int | None = None,
        both: bool = False,
        part: Contribution = ONE_ROW,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> "SparseCounts":
        """The least noise that keeps a promise for one unit, and a rule.

        `size` sets the threshold that at most that many empty cells are expected to reach, `threshold` sets it itself.
        `sample` releases that many cells of highest priority, among those that reach the threshold if there is one.
        """
        if size is not None and threshold is not None:
            raise InputError("Name a size or a threshold, not both: one follows from the other.")
        if size is None and threshold is None and sample is None:
            raise InputError("Name one of size, threshold and sample: size=100 is a usual one.")
        moved = sensitivity(Measure("rows"), part, neighbours)
        noise = Geometric(moved.l1 / pure_epsilon(as_promise(spend)))
        rule = None if threshold is None else Filter(threshold, both)
        if size is not None:
            wanted = float(positive(size, "size", most=MOST))
            rule = Filter.sized(float(noise.scale), whole(cells, "cells"), wanted, both=both)
        if sample is not None:
            return cls(noise, cells, Priority(sample, rule), moved)
        assert rule is not None
        return cls(noise, cells, rule, moved)

    def guarantee(self) -> Guarantee:
        """What holds for one unit: that of the noise, since the law is that of the full release."""
        return self.noise.guarantee(self.moved)

    @property
    def empty(self) -> float:
        """How many empty cells are released at most, in expectation."""
        if self.filter is None:
            return float(min(self.rule.size, self.cells)) if isinstance(self.rule, Priority) else 0.0
        return self.cells * self.filter.chance(float(self.noise.scale))

    @property
    def filter(self) -> Filter | None:
        """The filter, if there is one."""
        return self.rule.of if isinstance(self.rule, Priority) else self.rule

    def __call__(self, codes: Any, counts: Any, rng: Random = SYSTEM) -> "Released":
        """Release some cells, of which the filled ones are listed with their counts."""
        listed, numbers = _listed(codes, counts, self.cells)
        found, v, threshold = self.rule.draw(self.noise, self.cells, listed, numbers, rng)
        order = np.argsort(found)
        return Released(self, found[order], saturated(v)[order], threshold)


def _listed(codes: Any, counts: Any, cells: int) -> tuple[Codes, NDArray[np.int64]]:
    """The listed cells in ascending order with their counts."""
    listed, numbers = np.asarray(codes), np.asarray(counts)
    if listed.size == 0 and numbers.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if listed.ndim != 1 or listed.shape != numbers.shape or {listed.dtype.kind, numbers.dtype.kind} - set("iu"):
        raise InputError("There must be one whole number for each listed cell.")
    order = np.argsort(listed)
    listed, numbers = listed[order].astype(np.int64), numbers[order].astype(np.int64)
    if listed[0] < 0 or listed[-1] >= cells or (listed[1:] == listed[:-1]).any():
        raise InputError("Each filled cell is listed once, with a number from 0 to below the number of cells.")
    return listed, numbers


@dataclass(frozen=True)
class Total:
    """An estimated number of rows, its error bar, and what the bar covers."""

    n: float
    low: float
    high: float
    covers: str


_ALL = "± covers the noise of all cells and the sampling"
_SOME = "± covers the noise of the released cells; cells that are not released count as empty"
_SAMPLE = "± covers the sampling among cells whose noisy count reaches the threshold; other cells count as empty"


@dataclass(frozen=True)
class Released:
    """Cells with their noisy counts; `threshold` of the sampling, 0 if there is none."""

    made: SparseCounts
    codes: Codes
    v: NDArray[np.int64]
    threshold: float

    def bars(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of bars, reaching to `v`: each holds a cell's count with at least this chance, given its release."""
        law, rule = self.made.noise.law, self.made.filter
        if isinstance(self.made.rule, Priority):
            kept = sampled(law, self.threshold, None if rule is None else rule.threshold)
        else:
            kept = filtered(law, self.made.rule.threshold, both=self.made.rule.both)
        far = max(self.threshold + 1, 0 if rule is None else rule.threshold)
        return added_ends(self.v.astype(float), conditional(self.v, kept, law, far, level))

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each released cell counts for in a sum."""
        return np.asarray(np.sign(self.v) * np.maximum(np.abs(self.v).astype(float), self.threshold))

    def total(self, chosen: NDArray[np.bool_], cells: int, level: float = 0.95) -> Total:
        """The number of rows in some cells: `chosen` of the released ones, `cells` of all.

        Of a sample it is unbiased. Its bar allows for the noise of all cells (without a filter), and for the numbers of
        small positive and negative counts that were sampled, as if T had been set in advance [Thorup 2006]; each misses
        rarely enough that all hold together. Of filtered cells, it adds up bars that hold together.
        """
        weights, miss = self.weights[chosen], 1 - level
        n = float(weights.sum())
        if isinstance(self.made.rule, Filter):
            low, high = self.bars(1 - miss / max(1, weights.size))
            low_sum, high_sum = float(low[chosen].sum()), float(high[chosen].sum())
            return Total(n, min(low_sum, n), max(high_sum, n), _SOME)
        low_sum, high_sum = self._sampled(self.v[chosen], weights, miss / 2)
        noise = noise_of_sum(self.made.noise.law, cells, miss / 2) if self.made.filter is None else 0.0
        covers = _ALL if self.made.filter is None else _SAMPLE
        low_end, high_end = max(0.0, math.floor(low_sum - noise)), max(0.0, math.ceil(high_sum + noise))
        return Total(n, min(low_end, n), max(high_end, n), covers)

    def _sampled(self, v: NDArray[np.int64], weights: NDArray[np.float64], miss: float) -> tuple[float, float]:
        """Between which ends the sum of noisy counts lies from which these were sampled."""
        small = np.abs(v) < self.threshold
        sure = float(weights[~small].sum())
        if not self.threshold:
            return sure, sure
        plus, minus = (int(np.count_nonzero(small & (sign * v > 0))) for sign in (1, -1))
        (p_low, p_high), (m_low, m_high) = poisson_means(plus, miss / 2), poisson_means(minus, miss / 2)
        return sure + self.threshold * (p_low - m_high), sure + self.threshold * (p_high - m_low)
