"""Marginals for a pure epsilon: cells of marginals with Laplace noise, combined base by base.

A part counts the rows of each combination of values of some attributes C; attributes of two values may be signed: they
count 1 and -1 in place of two cells. One row moves one number of each part by 1, so the l1 sensitivity is the sum of
the parts' shares. A part tells something about every base A between its signed attributes T and C: summed over C - A,
with prod_(C - A) n_i / 2^|T| times the variance of a number. The bases are orthogonal, so least squares is the
inverse-variance mean of what the parts say about r_A, base by base. Where all attributes are signed, parts are
Walsh-Hadamard coefficients.   [Barak et al. 2007; Xiao-He-Zhang-Kifer 2023]

Shares make the weighted sum of variances small, by a fixed-point iteration on its stationarity condition from several
starts. It is not convex: the best of the local optima that were found is taken.

Vocabulary: `part` (C, T) · `W` its share · `T_A` the precision of base A: the sum of W^2 m over the parts that tell
something about it, m = 2^|T| / prod_(C - A) n_i.
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

__all__ = ["Box", "Cells", "Part"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Box: TypeAlias = Mapping[int, NDArray[np.bool_]]
"""A conjunction: for each of some attributes, which of its values are meant."""

Part: TypeAlias = tuple[Subset, Subset]
"""The attributes of a part, and those of them that are signed."""

_STEPS, _ORDERS = 80, 4  # steps of the iteration; numbers of attributes below the largest that it starts from
_WORK = 3_000_000  # how many pairs of a part and a base all starts look at, together
_GOLDEN = (math.sqrt(5) - 1) / 2
_GRID = 1 << 22  # shares are multiples of its inverse
_LEAST, _NONE = 1e-30, 1e-4  # parts with a share below this one, times the largest, are not measured


@dataclass(frozen=True)
class Cells:
    """Cells of marginals, with shares of a small loss for Laplace noise that add up to at most 1.

    **Privacy.** The parts move by k shares in all for k rows, wherever these are: exactly the l1 norm. Under replace, k
    rows of a cell go and k of another come: a part moves by 2k where both differ in an attribute that is not signed, or
    in an odd number of signed ones, else by 0; or nobody comes, and all parts move by k.

    >>> found = Cells(Workload((2, 3), (((0, 1), 1.0),)))
    >>> found.shares, found.sensitivity(4, Neighbours.ADD_REMOVE).l1
    ({((0, 1), ()): Fraction(1, 1)}, Fraction(4, 1))
    """

    workload: Workload

    # Shares

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All that could be measured."""
        two = {i for i, n in enumerate(self.workload.sizes) if n == 2}
        return tuple((c, t) for c in self.workload.bases for t in subsets(i for i in c if i in two))

    def informs(self, part: Part) -> Iterator[tuple[Subset, float]]:
        """The bases that a part tells something about, with m."""
        attributes, signed = part
        for more in subsets(i for i in attributes if i not in signed):
            base = tuple(sorted((*signed, *more)))
            yield base, 2.0 ** len(signed) / self.workload.cells(tuple(i for i in attributes if i not in base))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """(part, base, m) for each base that a part tells something about."""
        place = {a: i for i, a in enumerate(self.workload.bases)}
        found = [(i, place[a], m) for i, part in enumerate(self.parts) for a, m in self.informs(part)]
        part, base, m = zip(*found, strict=True)
        return np.array(part), np.array(base), np.array(m)

    @cached_property
    def shares(self) -> Mapping[Part, Fraction]:
        """The share of each part that is measured: multiples of a power of two that add up to at most 1."""
        found = min((self._improved(start) for start in self._starts()), key=self.loss)
        least = found.max() * _NONE
        kept = found > least
        unknown = self._precision(kept.astype(float)) == 0  # bases that would be left without a number
        own = {a for a, none in zip(self.workload.bases, unknown, strict=True) if none}
        kept |= np.array([c in own and not t for c, t in self.parts])
        w = np.where(kept, np.maximum(found, least), 0.0)
        whole = np.floor(w / w.sum() * _GRID).astype(int)
        return {part: Fraction(int(x), _GRID) for part, x in zip(self.parts, whole, strict=True) if x}

    def _starts(self) -> Iterator[Floats]:
        """Parts of some numbers of attributes, with all signs, none or any; then uneven mixtures of all parts."""
        orders = np.array([len(c) for c, _ in self.parts])
        signs = [np.array([len(t) == most for (_, t), most in zip(self.parts, self._signs, strict=True)])]
        signs += [np.array([not t for _, t in self.parts]), np.ones(len(self.parts), bool)]
        some = subsets(range(min(int(orders.max()), _ORDERS)))
        even = [np.where(np.isin(orders, (*each, orders.max())) & sign, 1.0, 1e-3) for each in some for sign in signs]
        mixed = [np.mod(np.arange(1, len(orders) + 1) * _GOLDEN * i, 1.0) ** 4 + 1e-9 for i in range(1, 33)]
        most = max(3, _WORK // (_STEPS * len(self._pairs[0])))
        yield from [np.ones(len(orders)), *even, *mixed][:most]

    @property
    def _signs(self) -> list[int]:
        """How many attributes of each part could be signed."""
        return [sum(self.workload.sizes[i] == 2 for i in c) for c, _ in self.parts]

    def _improved(self, w: Floats) -> Floats:
        """Shares for which W sum_A v_A m / T_A^2 is the same for all parts, or that are 0."""
        part, base, m = self._pairs
        for _ in range(_STEPS):
            w = w / w.sum()
            gain = np.bincount(part, (self._losses / self._precision(w) ** 2)[base] * m, len(w)) * w
            w = np.maximum(w * np.cbrt(gain / gain.max()), _LEAST)
        return np.asarray(w / w.sum())

    def _precision(self, w: Floats) -> Floats:
        part, base, m = self._pairs
        return np.asarray(np.bincount(base, w[part] ** 2 * m, len(self.workload.bases)), float)

    def loss(self, w: Floats) -> float:
        """The weighted sum of variances for some shares of all parts and noise of variance 1."""
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
        most = 2 * sum((x for (c, _), x in self.shares.items() if c), Fraction(0))
        if len(self.workload.sizes) > LISTED:
            return most
        terms = []
        for (c, t), x in self.shares.items():
            cells = {i: 0.0 for i in c if i not in t}
            terms += [(float(x), cells), (float(x), cells | dict.fromkeys(t, -1.0))]
        unmoved = float(signed_sums(len(self.workload.sizes), terms).min())
        return min(most, Fraction(2 * float(sum(self.shares.values())) - unmoved) * (1 + Fraction(1, 2**30)))

    # Numbers

    @cached_property
    def numbers(self) -> int:
        """How many numbers are measured."""
        return sum(math.prod(self._shape(part)) for part in self.shares)

    def _shape(self, part: Part) -> tuple[int, ...]:
        attributes, signed = part
        return tuple(1 if i in signed else self.workload.sizes[i] for i in attributes)

    def measure(self, tables: Mapping[Subset, Counts]) -> NDArray[Any]:
        """The exact numbers, part after part, from the counts of each base's marginal."""
        return np.concatenate([_products(_signed(tables[c], c, t).ravel(), x) for (c, t), x in self.shares.items()])

    def infer(self, y: Floats) -> dict[Subset, Floats]:
        """The residuals of every base, a number for each cell."""
        found = {a: np.zeros(self.workload.shape(a)) for a in self.workload.bases}
        start = 0
        for part, share in self.shares.items():
            size = math.prod(self._shape(part))
            cells = _unsigned(y[start : start + size].reshape(self._shape(part)) / float(share), *part)
            for a, m in self.informs(part):
                summed = cells.sum(axis=tuple(axis for axis, i in enumerate(part[0]) if i not in a))
                found[a] += centred(np.asarray(summed)) * (m * float(share) ** 2 * self.spreads[a])
            start += size
        return found

    @cached_property
    def spreads(self) -> Mapping[Subset, float]:
        """s: the variance of each base's residuals for noise of variance 1."""
        w = np.array([float(self.shares.get(part, 0)) for part in self.parts])
        return dict(zip(self.workload.bases, (1 / self._precision(w)).tolist(), strict=True))

    # Sums of counts

    def coefficients(self, terms: Sequence[tuple[float, Box]]) -> tuple[Floats, Floats]:
        """What a weighted sum of boxes takes of the measured numbers: sizes of coefficients, and how many have each.

        Parts that name the same attributes D of the boxes differ by a factor alone, W / prod_(C - D) n_i.
        """
        named = {i for _, box in terms for i in box}
        alike: dict[Part, list[tuple[float, int]]] = {}
        for (c, t), share in self.shares.items():
            if named.issuperset(t):
                cells = self.workload.cells(tuple(i for i in c if i not in named))
                alike.setdefault((tuple(i for i in c if i in named), t), []).append((float(share) / cells, cells))
        classes = {i: _classes([box.get(i, np.ones(self.workload.sizes[i], bool)) for _, box in terms]) for i in named}
        found = [_repeated(self._coefficients(part, terms, classes), factors) for part, factors in alike.items()]
        sizes, times = (np.concatenate(some) for some in zip(*found, strict=True))
        return sizes[sizes > 0], times[sizes > 0]

    def _coefficients(
        self, part: Part, terms: Sequence[tuple[float, Box]], classes: Mapping[int, tuple[list[Floats], Floats]]
    ) -> tuple[Floats, Floats]:
        """Coefficients of one class of cells of a part after the other, for a share of 1."""
        attributes, signed = part
        times = _product([np.ones(1) if i in signed else classes[i][1] for i in attributes])
        found = np.zeros_like(times)
        for a, m in self.informs(part):
            for place, (factor, box) in enumerate(terms):
                if set(a) <= set(box):
                    rest = math.prod(float(box[i].mean()) for i in box if i not in a)
                    seen = [_seen(i, a, signed, box, classes[i], place) for i in attributes]
                    found += factor * m * self.spreads[a] * rest * _product(seen)
        return np.abs(found), times


def _signed(x: Counts, attributes: Subset, signed: Subset) -> Counts:
    """The first value less the second, along signed attributes."""
    for axis, i in enumerate(attributes):
        if i in signed:
            x = -np.diff(x, axis=axis)
    return x


def _unsigned(x: Floats, attributes: Subset, signed: Subset) -> Floats:
    """Cells of signed attributes: half of the difference, and minus that."""
    for axis, i in enumerate(attributes):
        if i in signed:
            x = np.concatenate([x / 2, -x / 2], axis=axis)
    return x


def _classes(within: Sequence[NDArray[np.bool_]]) -> tuple[list[Floats], Floats]:
    """Values of an attribute that are in the same boxes: how each box sees one of them, and how many there are."""
    kinds, times = np.unique(np.array(within), axis=1, return_counts=True)
    return [kind - row.mean() for kind, row in zip(kinds.astype(float), within, strict=True)], times.astype(float)


def _seen(i: int, a: Subset, signed: Subset, box: Box, classes: tuple[list[Floats], Floats], place: int) -> Floats:
    """How the residuals of a base see the classes of values of one attribute."""
    if i in signed:
        return np.array([(float(box[i][0]) - float(box[i][1])) / 2])
    return classes[0][place] if i in a else np.ones(len(classes[1]))


def _repeated(some: tuple[Floats, Floats], factors: Sequence[tuple[float, int]]) -> tuple[Floats, Floats]:
    """The same coefficients times several factors, each as often as it stands there."""
    by, cells = np.array(factors).T
    return np.outer(by, some[0]).ravel(), np.outer(cells, some[1]).ravel()


def _product(vectors: Sequence[Floats]) -> Floats:
    """All products of one entry of each vector, the last one's fastest."""
    found = np.ones(1)
    for vector in vectors:
        found = np.outer(found, vector).ravel()
    return found


def _products(whole: Counts, share: Fraction) -> NDArray[Any]:
    """Whole numbers times a share, exactly: as floats if these hold them, else as fractions."""
    if int(np.abs(whole).max(initial=0)) * _GRID <= 2**53:
        return whole * float(share)
    found = np.empty(whole.size, object)
    found[:] = [x * share for x in whole.tolist()]
    return found
