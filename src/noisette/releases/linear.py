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

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from operator import add
from statistics import NormalDist
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisette.answers.column import added_ends
from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_up
from noisette.mechanisms import Gaussian, Geometric, calibrate
from noisette.mechanisms.calibration import pure_epsilon
from noisette.privacy import Guarantee, Neighbours, Promise, Spend, as_promise
from noisette.privacy.convert import LARGEST_EPSILON
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution

__all__ = [
    "ONE_ROW",
    "Estimate",
    "Linear",
    "Noise",
    "Strategy",
    "fitting",
    "noise_of_levels",
    "placed",
    "rational_shares",
    "sum_of",
    "variance_of",
    "weights",
    "widest",
]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Noise: TypeAlias = Geometric | Gaussian

T = TypeVar("T")
R = TypeVar("R")

ONE_ROW = Contribution(1, 1, 1)
_GRID = 1 << 20  # shares are multiples of its inverse
_STEP = 1e-4  # relative, for derivatives: their error is its square
_DIFFERENTIATED = 1 << 16  # cells, up to which derivatives of variances take no time
_LEAST = 1e-100
_UNIFORM = 0.02  # the part of what may fail that goes to Hoeffding's bound


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
    (docs/proofs/linear-strategies.md)

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
    (Geometric(scale=2), Pure('1', neighbours=ADD_REMOVE))
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
        parts = rational_shares(strategy.shares(gaussian=smooth) if shares is None else shares, squared=smooth)
        if len(parts) != len(moved):
            raise InputError(f"There must be one share for each of the {len(moved)} levels of the strategy.")
        return cls(strategy, noise_of_levels(promise, moved, parts, gaussian=smooth), moved)

    def guarantee(self) -> Guarantee:
        """What holds for one unit: the sum over the levels."""
        return reduce(add, (noise.guarantee(moved) for noise, moved in zip(self.noise, self.moved, strict=True)))

    @property
    def variance(self) -> tuple[float, ...]:
        """The variance of the noise of each level."""
        return tuple(map(variance_of, self.noise))

    def __call__(self, x: Any, rng: Random = SYSTEM) -> "Estimate":
        """Release the counts of all cells."""
        return self.infer(self.measure(x, rng))

    def measure(self, x: Any, rng: Random = SYSTEM) -> list[Floats]:
        """Noisy numbers of each level: all that reads the data."""
        exact = self.strategy.measure(_counts(x, self.strategy.cells))
        return [np.asarray(noise(level, rng), float) for noise, level in zip(self.noise, exact, strict=True)]

    def infer(self, y: Sequence[Floats]) -> "Estimate":
        """The estimate of all cells from noisy numbers."""
        return Estimate(self.strategy, self.strategy.infer(y, self.variance), self.noise)

    def error(self, low: Any, high: Any) -> float:
        """The root mean squared error of ranges low .. high, both included, before anything is measured."""
        return float(np.sqrt(np.mean(self.strategy.variances(_ends(low), _ends(high), self.variance))))


def fitting(make: Callable[[T], R], kinds: Iterable[T]) -> list[R]:
    """What can be made of some kinds: noise that keeps no such promise is left out, unless no other does."""
    found, refusals = [], []
    for kind in kinds:
        try:
            found.append(make(kind))
        except InputError as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return found


def widest(noise: Noise, level: float) -> float:
    """How many standard deviations hold every weighted sum of such noises with at least that probability.

    >>> round(widest(Geometric(100), 0.95), 3), round(widest(Gaussian(100), 0.95), 3)
    (2.161, 1.96)
    """
    return NormalDist().inv_cdf((1 + level) / 2) if isinstance(noise, Gaussian) else _widest_laplace(1 - level)


@lru_cache(maxsize=1024)
def _widest_laplace(fails: float) -> float:
    """The least t for which P(|sum| > t deviations) <= fails is proved, for all sums of Laplace and normal variables.

    A Laplace variable is a normal one whose variance is exponential. So the sum, with deviation 1, is normal with a
    variance V of mean 1 that is at most an exponential one in the convex order, and P(|sum| > t) = E h(V) with
    h(V) = 2 Q(t / sqrt(V)). Up to V = t^2/3 h is convex, then concave, below its tangent there; so h is at most a
    convex function f, and E h(V) <= E f(Exp).   (docs/proofs/linear-releases.md)
    """
    node, weight = np.polynomial.legendre.leggauss(80)

    def bound(t: float) -> float:
        turn = t * t / 3
        v = (node + 1) / 2 * turn
        below = sum(
            w * math.erfc(t / math.sqrt(2 * x)) * math.exp(-x) for w, x in zip(weight * turn / 2, v, strict=True)
        )
        at, slope = math.erfc(math.sqrt(1.5)), t * turn**-1.5 * math.exp(-1.5) / math.sqrt(2 * math.pi)
        return float(below + math.exp(-turn) * (at + slope))

    low, high = 0.1, 2 - math.log(fails)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) <= fails else (middle, high)
    return high * (1 + 1e-9)


def variance_of(noise: Noise) -> float:
    """The variance of a noise, above 0 also where it is hardly ever drawn, so that one can divide by it."""
    return max(noise.variance(), _LEAST)


def peak(noise: Noise) -> float:
    """The scale of a Laplace variable that is less peaked than a whole one plus a uniform one; sigma/sqrt(2) of normal.

    >>> round(peak(Geometric(3)), 3), round(peak(Geometric("1/2")), 3)
    (3.028, 0.657)
    """
    if isinstance(noise, Gaussian):
        return math.sqrt(noise.variance() / 2)
    return 1 / (2 * math.tanh(1 / (2 * float(noise.scale))))


def sum_of(noises: Sequence[Noise], counts: Floats, fails: float) -> Floats:
    """A t for which the sum of that many draws of each noise, for each row of `counts`, exceeds it at most so often.

    A two-sided geometric variable plus a uniform one is more peaked than a Laplace variable of scale `peak`, and so are
    sums of them (Birnbaum 1948); Hoeffding's bound takes the uniform ones off again.
    """
    if isinstance(noises[0], Gaussian):
        spread = np.sqrt(counts @ np.array([noise.variance() for noise in noises]))
        return np.asarray(widest(noises[0], 1 - fails) * (1 + 1e-9) * spread)
    scales = np.array([peak(noise) for noise in noises])
    found: Floats = _widest_laplace(fails * (1 - _UNIFORM)) * np.sqrt(counts @ (2 * scales**2))
    return np.asarray(found + np.sqrt(-math.log(_UNIFORM) / 2 * counts.sum(axis=1)))


def rational_shares(shares: Sequence[Any], *, squared: bool) -> tuple[Fraction, ...]:
    """Shares as fractions that add up to exactly 1, or whose squares add up to at most 1."""
    given = [Fraction(share).limit_denominator(_GRID) if not isinstance(share, Fraction) else share for share in shares]
    if not given or min(given) <= 0:
        raise InputError("Each level needs a share above 0.")
    return tuple(
        share / (sqrt_up(sum((s * s for s in given), Fraction(0))) if squared else sum(given)) for share in given
    )


def pure_part(promise: Promise) -> Fraction:
    """The largest epsilon that keeps a promise and that a guarantee can state."""
    return min(pure_epsilon(promise), Fraction(LARGEST_EPSILON))


def noise_of_levels(
    promise: Promise, moved: Sequence[Sensitivity], shares: Sequence[Fraction], *, gaussian: bool
) -> tuple[Noise, ...]:
    """The least noise of each level for its share of a promise: shares, or their squares if gaussian, add up to 1."""
    return (_gaussian if gaussian else _laplace)(promise, moved, shares)


def _laplace(promise: Promise, moved: Sequence[Sensitivity], shares: Sequence[Fraction]) -> tuple[Noise, ...]:
    epsilon = pure_part(promise)
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
    return found.astype(np.int64, copy=False)


def _ends(ends: Any) -> Counts:
    return np.atleast_1d(np.asarray(ends, np.int64))


@dataclass(frozen=True)
class Estimate:
    """Unbiased estimates of all cells, with the exact variance of every range of them."""

    strategy: Strategy
    x: Floats
    noise: tuple[Noise, ...]

    @cached_property
    def v(self) -> tuple[float, ...]:
        """The variance of the noise of each level."""
        return tuple(map(variance_of, self.noise))

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

    def bars(self, low: Any, high: Any, level: float) -> tuple[Floats, Floats]:
        """The ends of error bars of ranges, which go below 0 only to reach to the number."""
        value, half = self.ranges(low, high), self.half_widths(low, high, level)
        return added_ends(value, (value - half, value + half))

    guaranteed = bars

    def half_widths(self, low: Any, high: Any, level: float) -> Floats:
        """Half the widths of the error bars of ranges."""
        ends, wider = (_ends(low), _ends(high)), np.array([2 * peak(one) ** 2 for one in self.noise])
        if isinstance(self.noise[0], Gaussian):
            variance = self.strategy.variances(*ends, self.v)
        elif self.strategy.cells <= _DIFFERENTIATED:
            variance = weights(self.strategy, *ends, self.v) @ wider * (1 + 1e-6)
        else:
            variance = self.strategy.variances(*ends, self.v) * float((wider / np.array(self.v)).max())
        return np.asarray(widest(self.noise[0], level) * np.sqrt(variance))


@runtime_checkable
class _Weighing(Protocol):
    def weights(self, low: Counts, high: Counts, v: Sequence[float]) -> Floats: ...


def weights(strategy: Strategy, low: Counts, high: Counts, v: Sequence[float]) -> Floats:
    """The sum of squared weights of each level's numbers in the estimate of each range, to a relative 1e-7.

    It is the derivative of the range's variance in v_l, because least squares has the weights of least variance. A
    strategy that does not quite infer by least squares has a method of this name.

    >>> from noisette.releases.tree import Tree
    >>> weights(Tree(4, (2, 1)), np.array([0]), np.array([0]), (1.0, 1.0)).round(4).tolist()
    [[0.1111, 0.5556]]
    """
    a = np.asarray(v, float)
    if isinstance(strategy, _Weighing):
        return strategy.weights(low, high, v)
    if len(a) == 1:
        return np.asarray(strategy.variances(low, high, tuple(a))[:, None] / a)
    found = []
    for level, one in enumerate(a):
        step = np.where(np.arange(len(a)) == level, _STEP, 0.0)
        more, less = (strategy.variances(low, high, tuple(a * (1 + sign * step))) for sign in (1, -1))
        found.append((more - less) / (2 * _STEP * one))
    return np.stack(found, axis=1)
