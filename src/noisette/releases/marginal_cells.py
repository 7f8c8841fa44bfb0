"""Marginals for a pure epsilon: the cells of each base's marginal with Laplace noise, combined base by base.

For each set C of attributes one part is measured: how many rows each combination of their values has, where an
attribute of two values counts 1 and -1 in place of two cells. One row moves one number of each part by 1, so the l1
sensitivity is the sum of the parts' shares. Cells of C also say something about the smaller bases A, if C - A has no
attribute of two values: summed over C - A, with prod_(C - A) n_i times the variance. All parts are orthogonal in the
residual bases, so least squares is the inverse-variance mean of what the parts say about r_A, base by base. With two
values for every attribute these are Walsh-Hadamard coefficients.   [Barak et al. 2007; Xiao-He-Zhang-Kifer 2023]

Shares make the same weighted sum of variances small, by a fixed-point iteration on its stationarity condition from
several starts; for attributes of two values alone it is the optimum at once, in general a local one.

Vocabulary: `C` attributes of a part · `W` its share · `T_A` the precision of base A: sum W_C^2 m_CA over parts, where
m_CA = 2^(attributes of two values in C) / prod_(C - A) n_i.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.residual import LISTED, Subset, Workload, centred, signed_sums, subsets

__all__ = ["Box", "Cells"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Box: TypeAlias = Mapping[int, NDArray[np.bool_]]
"""A conjunction: for each of some attributes, which of its values are meant."""

_STEPS, _ORDERS = 80, 4  # steps of the iteration; numbers of attributes below the largest that it starts from
_GRID = 1 << 22  # shares are multiples of its inverse
_LEAST, _NONE = 1e-30, 1e-4  # parts with a share below this one, times the largest, are not measured


@dataclass(frozen=True)
class Cells:
    """The cells of every base's marginal, with shares of a small loss for Laplace noise that add up to at most 1.

    **Privacy.** The parts move by k shares in all for k rows, wherever these are: exactly the l1 norm. Under replace, k
    rows of a cell go and k of another come: a part without attributes of two values moves by 2k where the cells
    differ in it, the total by 0; or nobody comes, and all parts move by k.
    """

    workload: Workload

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """(part, base, m) for each base that a part says something about."""
        place = {a: i for i, a in enumerate(self.workload.bases)}
        found = [(place[c], place[a], m) for c in self.workload.bases for a, m in self.informs(c)]
        part, base, m = zip(*found, strict=True)
        return np.array(part), np.array(base), np.array(m)

    def informs(self, part: Subset) -> Iterator[tuple[Subset, float]]:
        """The bases that a part says something about, with m."""
        sizes = self.workload.sizes
        two = tuple(i for i in part if sizes[i] == 2)
        more = [i for i in part if sizes[i] > 2]
        for kept in subsets(more):
            base = tuple(sorted((*two, *kept)))
            yield base, 2.0 ** len(two) / math.prod(sizes[i] for i in more if i not in kept)

    @cached_property
    def shares(self) -> Mapping[Subset, Fraction]:
        """The share of each part that is measured: multiples of a power of two that add up to at most 1."""
        part, base, _ = self._pairs
        found = min((self._improved(start) for start in self._starts()), key=self._loss)
        kept = found > found.max() * _NONE
        known = np.bincount(base, kept[part], len(kept)) > 0  # what no other part says anything about is measured
        w = np.where(kept | ~known, np.maximum(found, found.max() * _NONE), 0.0)
        whole = np.floor(w / w.sum() * _GRID).astype(int)
        return {a: Fraction(int(x), _GRID) for a, x in zip(self.workload.bases, whole, strict=True) if x}

    def _starts(self) -> Iterator[Floats]:
        """Parts of some numbers of attributes, evenly, and hardly anything for the others."""
        orders = np.array([len(a) for a in self.workload.bases])
        yield np.cbrt([self.workload.losses[a] for a in self.workload.bases])
        for some in subsets(range(min(int(orders.max()), _ORDERS))):
            yield np.where(np.isin(orders, (*some, orders.max())), 1.0, 1e-3)

    def _improved(self, w: Floats) -> Floats:
        """Shares for which W_C sum_A v_A m_CA / T_A^2 is the same for all parts, or that are 0."""
        part, base, m = self._pairs
        for _ in range(_STEPS):
            w = w / w.sum()
            gain = np.bincount(part, (self._losses / self._precision(w) ** 2)[base] * m, len(w)) * w
            w = np.maximum(w * np.cbrt(gain / gain.max()), _LEAST)
        return np.asarray(w / w.sum())

    def _precision(self, w: Floats) -> Floats:
        part, base, m = self._pairs
        return np.asarray(np.bincount(base, w[part] ** 2 * m, len(w)), float)

    def _loss(self, w: Floats) -> float:
        return float((self._losses / self._precision(w)).sum())

    @cached_property
    def _losses(self) -> Floats:
        return np.array([self.workload.losses[a] for a in self.workload.bases])

    # What a unit can change

    def sensitivity(self, rows: int, neighbours: Neighbours) -> Sensitivity:
        """How far one unit with some rows can move all numbers; only the l1 norm is meant to be used."""
        w = list(self.shares.values())
        one, squares = sum(w, Fraction(0)), sum((x**2 for x in w), Fraction(0))
        if neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(rows * one, rows**2 * squares, rows * max(w), rows * len(w), neighbours=neighbours)
        l1 = rows * max(one, self._replaced())
        square, largest = min(4 * rows**2 * squares, l1**2), min(2 * rows * max(w), l1)
        return Sensitivity(l1, max(square, largest**2), largest, 2 * rows * len(w), neighbours=neighbours)

    def _replaced(self) -> Fraction:
        """How far a row moves all numbers that goes from one cell to another, at most."""
        sizes, w = self.workload.sizes, self.shares
        most = 2 * sum((x for a, x in w.items() if a), Fraction(0))
        if len(sizes) > LISTED:
            return most
        same = [0.0 if n > 2 else 1.0 for n in sizes]  # a part is unmoved where these agree and signs do
        signs = [0.0 if n > 2 else -1.0 for n in sizes]
        terms = {a: float(x) for a, x in w.items()}
        unmoved = signed_sums(len(sizes), terms, same) + signed_sums(len(sizes), terms, signs)
        return min(most, Fraction(float(2 * sum(terms.values()) - unmoved.min())) * (1 + Fraction(1, 2**30)))

    # Numbers

    @cached_property
    def numbers(self) -> int:
        """How many numbers are measured."""
        return sum(math.prod(self._shape(c)) for c in self.shares)

    def _shape(self, part: Subset) -> tuple[int, ...]:
        return tuple(1 if self.workload.sizes[i] == 2 else self.workload.sizes[i] for i in part)

    def measure(self, tables: Mapping[Subset, Counts]) -> NDArray[Any]:
        """The exact numbers, part after part, from the counts of each base's marginal."""
        return np.concatenate([_products(self._signed(tables[c], c).ravel(), x) for c, x in self.shares.items()])

    def _signed(self, x: Counts, part: Subset) -> Counts:
        for axis, i in enumerate(part):
            if self.workload.sizes[i] == 2:
                x = -np.diff(x, axis=axis)
        return x

    def infer(self, y: Floats) -> dict[Subset, Floats]:
        """The residuals of every base, a number for each cell."""
        found = {a: np.zeros(self.workload.shape(a)) for a in self.workload.bases}
        start = 0
        for c, share in self.shares.items():
            size = math.prod(self._shape(c))
            cells = self._unsigned(y[start : start + size].reshape(self._shape(c)) / float(share), c)
            for a, m in self.informs(c):
                summed = cells.sum(axis=tuple(axis for axis, i in enumerate(c) if i not in a))
                found[a] += centred(np.asarray(summed)) * (m * float(share) ** 2 * self.spreads[a])
            start += size
        return found

    def _unsigned(self, x: Floats, part: Subset) -> Floats:
        """Cells of attributes of two values: half of the difference, and minus that."""
        for axis, i in enumerate(part):
            if self.workload.sizes[i] == 2:
                x = np.concatenate([x / 2, -x / 2], axis=axis)
        return x

    @cached_property
    def spreads(self) -> Mapping[Subset, float]:
        """s: the variance of each base's residuals for noise of variance 1."""
        w = np.array([float(self.shares.get(a, 0)) for a in self.workload.bases])
        return dict(zip(self.workload.bases, (1 / self._precision(w)).tolist(), strict=True))

    # Sums of counts

    def coefficients(self, terms: Sequence[tuple[float, Box]]) -> tuple[Floats, Floats]:
        """What a weighted sum of boxes takes of the measured numbers: sizes of coefficients, and how many have each.

        Parts that name the same attributes D of the boxes differ by a factor alone, W_C / prod_(C - D) n_i.
        """
        named = {i for _, box in terms for i in box}
        parts: dict[Subset, list[tuple[float, int]]] = {}
        for c, share in self.shares.items():
            others = tuple(i for i in c if i not in named)
            if all(self.workload.sizes[i] > 2 for i in others):
                cells = self.workload.cells(others)
                parts.setdefault(tuple(i for i in c if i in named), []).append((float(share) / cells, cells))
        classes = {i: self._classes(i, terms) for i in named}
        found = [self._outer(self._coefficients(d, terms, classes), factors) for d, factors in parts.items()]
        sizes, times = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return sizes[sizes > 0], times[sizes > 0]

    def _outer(self, some: tuple[Floats, Floats], factors: Sequence[tuple[float, int]]) -> tuple[Floats, Floats]:
        by, cells = np.array(factors).T
        return np.outer(by, some[0]).ravel(), np.outer(cells, some[1]).ravel()

    def _coefficients(
        self, part: Subset, terms: Sequence[tuple[float, Box]], classes: Mapping[int, tuple[list[Floats], Floats]]
    ) -> tuple[Floats, Floats]:
        """Coefficients of one class of cells of a part after the other, for a share of 1."""
        times = _product([classes[i][1] for i in part])
        found = np.zeros_like(times)
        for a, m in self.informs(part):
            for place, (factor, box) in enumerate(terms):
                if set(a) <= set(box):
                    rest = math.prod(float(box[i].mean()) for i in box if i not in a)
                    seen = [classes[i][0][place] if i in a else np.ones(len(classes[i][1])) for i in part]
                    found += factor * m * self.spreads[a] * rest * _product(seen)
        return np.abs(found), times

    def _classes(self, i: int, terms: Sequence[tuple[float, Box]]) -> tuple[list[Floats], Floats]:
        """Values of an attribute that are in the same boxes: how each term sees one of them, and how many there are."""
        n = self.workload.sizes[i]
        within = np.array([box.get(i, np.ones(n, bool)) for _, box in terms])
        if n == 2:
            return [np.array([(float(row[0]) - float(row[1])) / 2]) for row in within], np.ones(1)
        kinds, times = np.unique(within, axis=1, return_counts=True)
        return [kind - row.mean() for kind, row in zip(kinds.astype(float), within, strict=True)], times.astype(float)


def _products(whole: Counts, share: Fraction) -> NDArray[Any]:
    """Whole numbers times a share, exactly: as floats if these hold them, else as fractions."""
    if int(np.abs(whole).max(initial=0)) * _GRID <= 2**53:
        return whole * float(share)
    found = np.empty(whole.size, object)
    found[:] = [x * share for x in whole.tolist()]
    return found


def _product(vectors: Sequence[Floats]) -> Floats:
    """All products of one entry of each vector, the last one's fastest."""
    found = np.ones(1)
    for vector in vectors:
        found = np.outer(found, vector).ravel()
    return found
