"""Residual bases of marginals: what is measured once for every set of attributes, and how all marginals follow from it.

Attributes i have n_i values. The counts of all combinations split into one space for each set A of attributes: what
the marginal of A says beyond all smaller ones. The marginal of B is the sum over the subsets A of B of its residuals
r_A, spread evenly over the other attributes. So marginals that share attributes agree by construction, and if r_A has
noise of covariance s_A P_A (P_A the projection onto the space of A) then a cell of B has variance

    sum over A within B of  s_A  prod_A (n_i - 1)/n_i  prod_(B - A) 1/n_i^2.

One row moves r_A by the squared length p_A = prod_A (n_i - 1)/n_i, so Gaussian noise of that covariance costs p_A/s_A,
and the least weighted sum of variances sum v_A s_A for a cost of c has s_A = sqrt(p_A/v_A) S/c and the value S^2/c,
S = sum sqrt(p_A v_A). No linear release of less error has the same cost.   [Xiao-He-Zhang-Kifer 2023]

Whole numbers: along each attribute, contrast k = 1 .. n-1 compares the sum of the first k values with k times the next
one (Helmert). Contrasts are orthogonal and whole, and contrast k has the squared length k(k + 1). So independent noise
of one size on contrasts divided by their length is noise of covariance s_A P_A. For two values this is the difference
of both, and r_A is a Walsh-Hadamard coefficient.   [Barak-Chaudhuri-Dwork-Kale-McSherry-Talwar 2007]

Vocabulary: `A` attributes of a base · `B` attributes of a marginal · `n` sizes · `p`, `s`, `v` as above · `amplitude`
the factor of a base's normed contrasts, 1/sqrt(s_A) for noise of size 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.rational import sqrt_down, sqrt_up
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity

__all__ = [
    "MOST_NUMBERS",
    "Contrasts",
    "Subset",
    "Workload",
    "centred",
    "contrasts",
    "residual",
    "signed_sums",
    "subsets",
]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Subset: TypeAlias = tuple[int, ...]

MOST_NUMBERS = 1 << 25
_BITS = 16  # of each factor of a contrast: few enough for exact products with whole numbers
_EXACT = 2**53
LISTED = 12
"""Up to this number of attributes, all sets of differing attributes are looked at."""

ROUNDED = 1 + 2.0**-13
"""By how much rounded factors can enlarge a variance, at most."""


def subsets(attributes: Iterable[int]) -> list[Subset]:
    """All subsets, the smaller ones first.

    >>> subsets((0, 2))
    [(), (0,), (2,), (0, 2)]
    """
    known = tuple(attributes)
    return list(chain.from_iterable(combinations(known, size) for size in range(len(known) + 1)))


@dataclass(frozen=True)
class Workload:
    """Marginals of attributes of some `sizes`, each with the weight of its summed variance in the loss.

    >>> Workload((2, 3, 4), tuple((b, 1.0) for b in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])).bases[:4]
    ((), (0,), (1,), (2,))
    """

    sizes: tuple[int, ...]
    weights: tuple[tuple[Subset, float], ...]

    def __post_init__(self) -> None:
        known = set(range(len(self.sizes)))
        if not self.weights or not all(set(b) <= known and list(b) == sorted(set(b)) for b, _ in self.weights):
            raise InputError("Each marginal must name attributes by their places, in order and once each: (0, 2).")
        if not all(0 < weight < math.inf for _, weight in self.weights) or min(self.sizes, default=1) < 1:
            raise InputError("Weights must be above 0, and each attribute must have at least one value.")

    @cached_property
    def bases(self) -> tuple[Subset, ...]:
        """The sets of attributes with residuals: all subsets of marginals, without attributes of one value."""
        found = {a for b, _ in self.weights for a in subsets(i for i in b if self.sizes[i] > 1)}
        return tuple(sorted(found, key=lambda a: (len(a), a)))

    def cells(self, attributes: Subset) -> int:
        """How many cells a marginal has."""
        return math.prod(self.sizes[i] for i in attributes)

    def shape(self, attributes: Subset) -> tuple[int, ...]:
        """How many values each attribute of a marginal has."""
        return tuple(self.sizes[i] for i in attributes)

    @cached_property
    def costs(self) -> Mapping[Subset, Fraction]:
        """p: the squared length by which one row moves the residuals of each base."""
        return {
            a: math.prod((Fraction(self.sizes[i] - 1, self.sizes[i]) for i in a), start=Fraction(1)) for a in self.bases
        }

    @cached_property
    def losses(self) -> Mapping[Subset, float]:
        """v: the loss for each unit of variance of a base."""
        found = dict.fromkeys(self.bases, 0.0)
        for b, weight in self.weights:
            for a in subsets(i for i in b if self.sizes[i] > 1):
                found[a] += weight / self.cells(tuple(set(b) - set(a))) * math.prod(self.sizes[i] - 1 for i in a)
        return found

    @property
    def least_loss(self) -> float:
        """The least weighted sum of variances for Gaussian noise at a cost of 1.

        >>> ways = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
        >>> round(Workload((2, 3, 4), tuple((b, 1.0) for b in ways)).least_loss, 4)
        85.8423
        """
        return sum(math.sqrt(self.costs[a] * self.losses[a]) for a in self.bases) ** 2


# Contrasts


def contrasts(x: NDArray[Any]) -> NDArray[Any]:
    """The contrasts of an array along all of its axes, exact for whole numbers.

    >>> contrasts(np.array([5, 3, 1])).tolist()
    [2, 6]
    """
    for axis in range(x.ndim):
        x = x.swapaxes(axis, -1)
        steps = np.arange(1, x.shape[-1])
        x = (np.cumsum(x, axis=-1)[..., :-1] - steps * x[..., 1:]).swapaxes(axis, -1)
    return x


def residual(c: Floats) -> Floats:
    """The residuals, a number for each cell, whose contrasts these are.

    >>> residual(np.array([2.0, 6.0])).tolist()
    [2.0, 0.0, -2.0]
    """
    for axis in range(c.ndim):
        c = c.swapaxes(axis, -1)
        k = np.arange(1, c.shape[-1] + 1)
        found = np.zeros((*c.shape[:-1], c.shape[-1] + 1))
        found[..., :-1] = np.cumsum((c / (k * (k + 1)))[..., ::-1], axis=-1)[..., ::-1]
        found[..., 1:] -= c / (k + 1)
        c = found.swapaxes(axis, -1)
    return c


def centred(x: Floats) -> Floats:
    """The residuals of a marginal: what is left when the mean along each axis is taken off."""
    for axis in range(x.ndim):
        x = x - x.mean(axis=axis, keepdims=True)
    return x


def _factors(shape: Sequence[int], amplitude: float) -> Floats:
    """amplitude / length of each contrast, rounded down to few bits."""
    found = np.array(amplitude * (1 - 2.0**-40))  # more than what the next lines round up
    for n in shape:
        k = np.arange(1.0, n)
        found = found[..., None] / np.sqrt(k * (k + 1))
    mantissa, exponent = np.frexp(found)
    return np.asarray(np.ldexp(np.floor(mantissa * 2.0**_BITS), exponent - _BITS))


def _products(factors: Floats, whole: Counts) -> NDArray[Any]:
    """Factors times whole numbers, exactly: as floats if these hold them, else as fractions."""
    if not whole.size or int(np.abs(whole).max()) << _BITS <= _EXACT:
        return factors * whole
    pairs = zip(factors.ravel().tolist(), whole.ravel().tolist(), strict=True)
    found = np.empty(whole.size, object)
    found[:] = [Fraction(a) * b for a, b in pairs]
    return found.reshape(whole.shape)


@dataclass(frozen=True)
class Contrasts:
    """The contrasts of every base with the amplitudes of least loss for Gaussian noise, at a cost of at most 1.

    **Privacy.** Amplitudes a_A are exact, and each normed contrast's factor is rounded down, so one row moves the
    numbers of base A by a squared length of at most a_A^2 p_A. The norm is convex: the worst that k rows do is to lie
    in one cell, k^2 sum a_A^2 p_A in all. Under replace k rows of a cell go, and k rows of another cell, or none, come.
    """

    workload: Workload

    @cached_property
    def amplitudes(self) -> Mapping[Subset, Fraction]:
        """1/sqrt(s) of each base, rounded down to few bits; their cost is at most 1."""
        costs, losses = self.workload.costs, self.workload.losses
        scale = sum(math.sqrt(costs[a] * losses[a]) for a in self.workload.bases)
        sought = {a: (losses[a] / float(costs[a])) ** 0.25 / math.sqrt(scale) for a in self.workload.bases}
        return {a: Fraction(float(_factors((), x))) for a, x in sought.items()}

    def sensitivity(self, rows: int, neighbours: Neighbours) -> Sensitivity:
        """How far one unit with some rows can move all numbers; only the l2 norm is meant to be used."""
        square = rows**2 * self._square(neighbours)
        return Sensitivity(
            sqrt_up(self.numbers * square), square, sqrt_down(square), self.numbers, neighbours=neighbours
        )

    def _square(self, neighbours: Neighbours) -> Fraction:
        costs = {a: x**2 * self.workload.costs[a] for a, x in self.amplitudes.items()}
        one = sum(costs.values(), Fraction(0))
        if neighbours is Neighbours.ADD_REMOVE:
            return one
        sizes = self.workload.sizes
        if len(sizes) > LISTED:  # each base by itself: the worst is that one attribute of fewest values differs
            least = {a: min((sizes[i] for i in a), default=1) for a in costs}
            return max(one, sum((2 * c * Fraction(least[a], least[a] - 1) for a, c in costs.items() if a), Fraction(0)))
        alike = signed_sums(len(sizes), ((float(c), {i: -1 / (sizes[i] - 1) for i in a}) for a, c in costs.items()))
        return max(one, 2 * (one - Fraction(float(alike.min()))) * (1 + Fraction(1, 2**30)))

    @cached_property
    def numbers(self) -> int:
        """How many numbers are measured."""
        return sum(math.prod(self.workload.sizes[i] - 1 for i in a) for a in self.workload.bases)

    def measure(self, tables: Mapping[Subset, Counts]) -> NDArray[Any]:
        """The exact numbers, base after base, from the counts of each base's marginal."""
        parts = [
            _products(_factors(self.workload.shape(a), float(x)), contrasts(tables[a])).ravel()
            for a, x in self.amplitudes.items()
        ]
        return np.concatenate(parts)

    def infer(self, y: Floats) -> dict[Subset, Floats]:
        """The residuals of every base, a number for each cell."""
        found, start = {}, 0
        for a, x in self.amplitudes.items():
            factors = _factors(self.workload.shape(a), float(x))
            found[a] = residual(y[start : start + factors.size].reshape(factors.shape) / factors)
            start += factors.size
        return found

    @cached_property
    def spreads(self) -> Mapping[Subset, float]:
        """s: the variance of each base's residuals for noise of variance 1, rounded up."""
        return {a: ROUNDED / float(x) ** 2 for a, x in self.amplitudes.items()}


def signed_sums(attributes: int, terms: Iterable[tuple[float, Mapping[int, float]]]) -> Floats:
    """For each set D of attributes, the sum of terms, each times its factors for the attributes in D.

    >>> signed_sums(2, [(1.0, {}), (2.0, {0: -1.0}), (4.0, {0: -1.0, 1: -1.0})]).tolist()
    [7.0, -5.0, -1.0, 3.0]
    """
    sets = np.arange(1 << attributes)
    found = np.zeros(len(sets))
    for term, factors in terms:
        part = np.full(len(sets), term)
        for i, factor in factors.items():
            part[sets >> i & 1 == 1] *= factor
        found += part
    return found
