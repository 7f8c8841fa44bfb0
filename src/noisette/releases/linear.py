"""Linear releases: strategy -> measure -> infer.

A strategy says which whole numbers are measured of a vector of counts and how the counts follow from them; noise is
added once, and every range or linear query of the cells is answered from it with an exact variance. Read `tree.py`
next, the smallest real strategy (identity, trees and chains of blocks).

Vocabulary: `x` exact counts of the cells · `y` noisy numbers, level by level · `v` their variances, one number for each
level · `w` the share of the promise that each level gets · `part` what one unit can contribute.

**Privacy.** Level l moves by at most D_l when a unit comes or goes (l1 norm for Laplace, l2 for Gaussian noise),
maximised over all ways to place the unit's rows. With scale D_l/(w_l epsilon) and shares that add up to one, the
losses add up to epsilon; with sigma D_l/(w_l mu) and squares of shares that add up to one, all levels together are one
Gaussian of mu. Infer reads noisy numbers only.   [Li-Hay-Rastogi-Miklau-McGregor 2010; Dong-Roth-Su 2022]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import add
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_up
from noisette.mechanisms import Gaussian, Geometric, calibrate
from noisette.mechanisms.calibration import pure_epsilon
from noisette.privacy import Guarantee, Neighbours, Promise, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution

__all__ = ["ONE_ROW", "Estimate", "Linear", "Noise", "Strategy", "placed"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Noise: TypeAlias = Geometric | Gaussian

ONE_ROW = Contribution(1, 1, 1)
_GRID = 1 << 20  # shares are multiples of its inverse


class Strategy(Protocol):
    """Which numbers are measured of the counts of cells, in levels, and what follows from them. A frozen value."""

    @property
    def cells(self) -> int:
        """How many cells there are."""
        ...

    def measure(self, x: Counts) -> Sequence[Counts]:
        """The exact whole numbers of each level."""
        ...

    def sensitivities(self, part: Contribution, neighbours: Neighbours) -> Sequence[Sensitivity]:
        """How far one unit can move each level, at most over all placements of its rows."""
        ...

    def shares(self, *, gaussian: bool) -> Sequence[float]:
        """The share of each level that is best for ranges: they add up to 1, for Gaussian noise their squares do."""
        ...

    def infer(self, y: Sequence[Floats], v: Sequence[float]) -> Floats:
        """The least-squares estimate of the cells from noisy numbers and the variance of each level."""
        ...

    def variances(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
        """The exact variance of the estimated number in cells low .. high, both included, for each pair of ends."""
        ...


def placed(
    part: Contribution, block: int, neighbours: Neighbours, *, signed: bool = False, alone: bool = False
) -> Sensitivity:
    """How far one unit moves counts of disjoint blocks of cells, at most; `signed` if cells count as 1 or -1.

    A unit may put all of its rows into one block, as far as the limit on rows of one cell allows, then fill the next
    one. That placement is worst in l1, l2 and linf at once; single rows in many blocks move the most numbers (l0).
    Under replace another unit's rows come: signs make both move the same number (4 squares), without signs they are
    worst in different blocks (2 squares). A block that is `alone`, the only one, moves by the rows of one unit.

    >>> placed(Contribution(3, 2, 5), 1, Neighbours.ADD_REMOVE).l2_squared      # 2 + 2 + 1 rows in single cells
    Fraction(9, 1)
    >>> placed(Contribution(3, 2, 5), 4, Neighbours.ADD_REMOVE).l2_squared      # all five in one block
    Fraction(25, 1)
    """
    most = min(part.total, part.rows * min(block, part.groups))
    if alone:
        far = 2 * most if signed and neighbours is Neighbours.REPLACE else most
        return Sensitivity(far, far**2, far, 1, neighbours=neighbours)
    full, rest = divmod(part.total, most)
    touched, squares = min(part.groups, part.total), full * most**2 + rest**2
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(part.total, squares, most, touched, neighbours=neighbours)
    if signed:
        return Sensitivity(2 * part.total, 4 * squares, 2 * most, 2 * touched, neighbours=neighbours)
    return Sensitivity(2 * part.total, 2 * squares, most, 2 * touched, neighbours=neighbours)


@dataclass(frozen=True)
class Linear:
    """Counts of cells by a strategy, with the noise of each level: unbiased, with exact variances.

    >>> from noisette.releases.tree import Tree
    >>> made = Linear.calibrated(1, Tree(64, (16, 1)), shares=(Fraction(1, 2), Fraction(1, 2)))
    >>> made.noise[0], made.guarantee()
    (Geometric(scale=Fraction(2, 1)), Pure('1', neighbours=ADD_REMOVE))
    >>> released = made(np.arange(64))
    >>> released.x.shape, bool(released.variances([0], [31])[0] < released.variances([1], [31])[0])
    ((64,), True)
    """

    strategy: Strategy
    noise: tuple[Noise, ...]
    moved: tuple[Sensitivity, ...]

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        strategy: Strategy,
        *,
        part: Contribution = ONE_ROW,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        shares: Sequence[Any] | None = None,
        gaussian: bool | None = None,
    ) -> "Linear":
        """The least noise that keeps a promise for one unit: Laplace, or Gaussian where the promise has a delta."""
        promise, moved = as_promise(spend), tuple(strategy.sensitivities(part, neighbours))
        smooth = not promise.is_pure if gaussian is None else gaussian
        parts = _rational(strategy.shares(gaussian=smooth) if shares is None else shares, squared=smooth)
        if len(parts) != len(moved):
            raise InputError(f"There must be one share for each of the {len(moved)} levels of the strategy.")
        noise = _gaussian(promise, moved, parts) if smooth else _laplace(promise, moved, parts)
        return cls(strategy, noise, moved)

    def guarantee(self) -> Guarantee:
        """What holds for one unit: the sum over the levels."""
        return reduce(add, (noise.guarantee(moved) for noise, moved in zip(self.noise, self.moved, strict=True)))

    @property
    def variance(self) -> tuple[float, ...]:
        """The variance of the noise of each level."""
        return tuple(noise.variance() for noise in self.noise)

    def __call__(self, x: Any, rng: Random = SYSTEM) -> "Estimate":
        """Release the counts of all cells."""
        return self.infer(self.measure(x, rng))

    def measure(self, x: Any, rng: Random = SYSTEM) -> list[Floats]:
        """Noisy numbers of each level: all that reads the data."""
        exact = self.strategy.measure(_counts(x, self.strategy.cells))
        return [np.asarray(noise(level, rng), float) for noise, level in zip(self.noise, exact, strict=True)]

    def infer(self, y: Sequence[Floats]) -> "Estimate":
        """The estimate of all cells from noisy numbers."""
        return Estimate(self.strategy, self.strategy.infer(y, self.variance), self.variance)

    def error(self, low: Any, high: Any) -> float:
        """The root mean squared error of ranges low .. high, both included, before anything is measured."""
        return float(np.sqrt(np.mean(self.strategy.variances(_ends(low), _ends(high), self.variance))))


def _rational(shares: Sequence[Any], *, squared: bool) -> tuple[Fraction, ...]:
    """Shares as fractions that add up to exactly 1, or whose squares add up to at most 1."""
    given = [Fraction(share).limit_denominator(_GRID) if not isinstance(share, Fraction) else share for share in shares]
    if not given or min(given) <= 0:
        raise InputError("Each level needs a share above 0.")
    return tuple(
        share / (sqrt_up(sum((s * s for s in given), Fraction(0))) if squared else sum(given)) for share in given
    )


def _laplace(promise: Promise, moved: Sequence[Sensitivity], shares: Sequence[Fraction]) -> tuple[Noise, ...]:
    epsilon = pure_epsilon(promise)
    return tuple(Geometric(level.l1 / (share * epsilon)) for level, share in zip(moved, shares, strict=True))


def _gaussian(promise: Promise, moved: Sequence[Sensitivity], shares: Sequence[Fraction]) -> tuple[Noise, ...]:
    """All levels as one Gaussian of l2 distance 1, whose sigma is rounded up until the sum keeps the promise."""
    sigma, target = calibrate(Gaussian, promise).sigma, promise.restated(moved[0].neighbours)
    for bits in (40, 30, 24, 20, 16):
        wide = sigma * (1 + Fraction(1, 2**bits))
        noise = tuple(Gaussian(wide * level.l2 / share) for level, share in zip(moved, shares, strict=True))
        made = reduce(add, (one.guarantee(level) for one, level in zip(noise, moved, strict=True)))
        if made <= target:
            return noise
    raise InputError("These levels do not keep the promise: name fewer levels, or a larger delta.")


def _counts(x: Any, cells: int) -> Counts:
    found = np.asarray(x)
    if found.shape != (cells,) or found.dtype.kind not in "iu":
        raise InputError(f"There must be one whole number for each of the {cells:,} cells.")
    return found.astype(np.int64)


def _ends(ends: Any) -> Counts:
    return np.atleast_1d(np.asarray(ends, np.int64))


@dataclass(frozen=True)
class Estimate:
    """Unbiased estimates of all cells, with the exact variance of every range of them."""

    strategy: Strategy
    x: Floats
    v: tuple[float, ...]

    @cached_property
    def _prefix(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.x)])

    def ranges(self, low: Any, high: Any) -> Floats:
        """The estimated number in the cells low .. high, both included."""
        found: Floats = self._prefix[_ends(high) + 1] - self._prefix[_ends(low)]
        return found

    def variances(self, low: Any, high: Any) -> Floats:
        """The variance of the error of each range low .. high, both included."""
        return self.strategy.variances(_ends(low), _ends(high), self.v)
