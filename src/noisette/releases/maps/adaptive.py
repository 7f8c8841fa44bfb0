"""The adaptive map: counts of a map's cells, measured as deep as they are large, non-negative and consistent.

Vocabulary: `x` exact counts · `y` noisy counts of nodes · `w` the share of the promise that a level gets, `rest` what
the levels below it have together · a *union* is all children of one parent that stopped.

As in `releases.adaptive`, each node is measured from the top with its level's share, and a node whose noisy count is
small *stops*. A map has many such nodes, nearly all of them empty. So what a stopped node's path has left is divided: a
part buys a second measurement of the node, the rest one measurement of the union it belongs to. Nodes of a union are
shrunk towards an even spread of the union's count, as far as noise explains their differences.

Divisions of an axis are halved from level to level. Before all that, a few per cent of the promise buy the counts
along each axis. A cell of an axis that holds much of them (no capital gain; the default of a form) stands alone: it is
a division by itself on every level. Otherwise what lies beside it would be spread over blocks that are nearly empty.

**Privacy.** A row lies in one node of each level and in at most one node that stops, hence in one union. The shares of
both axes, of the levels down to the stopped node and both parts of its rest add up to one (their squares, for Gaussian
noise). Where edges lie and which nodes are measured is decided by released numbers alone.   (docs/proofs/maps.md)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_down
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import at_share, one_node
from noisette.releases.consistent import Level
from noisette.releases.linear import Noise, fitting, pure_part
from noisette.releases.maps.adaptive_fit import MapFit
from noisette.releases.maps.layout import Blocks, best_shares, halved
from noisette.releases.maps.splits import Splits
from noisette.releases.maps.unions import joined
from noisette.releases.tree import MOST_CELLS

__all__ = ["AdaptiveMap"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Take: TypeAlias = Callable[[Callable[[], Counts], int, Noise], Floats]
"""Released numbers, given the exact counts (computed only where they are measured), how many, and their noise."""

_PATIENCE, _DOUBT = 4.0, 2.0


@dataclass(frozen=True)
class AdaptiveMap:
    """Counts of a map's cells, measured with `shares` of a promise down levels of `blocks` and single cells.

    `noise` is what one count would get for all of the promise; `moved` is what one unit can do to a single node. The
    counts along each axis are measured first, with the shares `along`; a cell of an axis that holds more than `heavy`
    of them, and more than the axis' `least`, stands alone. Nodes of a level with noisy counts below its one of `limits`
    stop. `union` is the part of what a stopped node has left that its union gets.

    >>> made = AdaptiveMap.calibrated(1, shape=(32, 32))
    >>> made.guarantee(), made.blocks
    (Pure('1', neighbours=ADD_REMOVE), ((2, 2), (4, 4), (8, 8), (16, 16)))
    >>> fit = made.read(made.measure(np.full((32, 32), 9)))
    >>> fit.x.shape, bool((fit.x >= 0).all())
    ((32, 32), True)
    """

    noise: Noise
    moved: Sensitivity
    shape: tuple[int, int]
    blocks: Blocks
    shares: tuple[Fraction, ...]
    along: tuple[Fraction, ...]
    limits: tuple[Fraction, ...]
    least: tuple[Fraction, ...]
    heavy: Fraction = Fraction(1, 8)
    union: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        spent = sum(map(self._cost, (*self.along, *self.shares)), Fraction(0))
        if len(self.shares) != len(self.blocks) + 1 or min((*self.along, *self.shares)) <= 0 or spent > 1:
            raise InputError("Each level needs one share above 0; with those of the axes they are at most 1.")
        if len(self.limits) != len(self.blocks) or len(self.least) != len(self.along):
            raise InputError("Each level above the single cells needs a limit, and each axis that is measured, too.")

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        shape: tuple[int, int],
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
    ) -> "AdaptiveMap":
        """The map of that many cells along each axis that keeps a promise for a unit of at most `rows` rows.

        Noise is Laplace or, where the promise has a delta, whichever is less on single cells.
        """
        promise = as_promise(spend)
        if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] > MOST_CELLS:
            raise InputError(f"A map has two axes of at least one cell each, and at most {MOST_CELLS:,} cells in all.")
        if gaussian is None:
            kinds = (False,) if promise.is_pure else (False, True)
            found = fitting(
                lambda one: cls.calibrated(promise, shape=shape, rows=rows, neighbours=neighbours, gaussian=one), kinds
            )
            return min(found, key=lambda one: at_share(one.noise, one.shares[-1])[1])
        moved, blocks = one_node(rows, neighbours), halved(shape)
        noise = Gaussian.calibrated(promise, moved) if gaussian else Geometric(moved.l1 / pure_part(promise))
        along, shares = best_shares((*blocks, shape), smooth=gaussian)
        if not isinstance(noise, Gaussian):
            return cls.laid(noise, moved, shape, blocks, shares, along)
        for bits in (40, 30, 24, 20, 16):  # wider, until all levels keep the promise, whatever is rounded on the way
            wide = Gaussian(noise.sigma * (1 + Fraction(1, 2**bits)))
            made = cls.laid(wide, moved, shape, blocks, shares, along)
            if made.guarantee() <= promise.restated(neighbours):
                return made
        raise InputError("This promise is too small for a map of counts: spend more.")

    @classmethod
    def laid(
        cls,
        noise: Noise,
        moved: Sensitivity,
        shape: tuple[int, int],
        blocks: Blocks,
        shares: tuple[Fraction, ...],
        along: tuple[Fraction, ...],
    ) -> "AdaptiveMap":
        """A map of given levels, with the usual limits: they are fields, so that no decision rests on a new float.

        Nodes stop below 4 scales of the noise that would be below them and 2 of their own. An empty cell of an axis
        exceeds `least` with a probability of 1 over twice the number of cells.
        """
        plain = cls(
            noise, moved, shape, blocks, shares, along, (Fraction(0),) * len(blocks), (Fraction(0),) * len(along)
        )
        limits = (
            _PATIENCE * plain._scale(plain.rest(level)) + _DOUBT * plain._scale(shares[level])
            for level in range(len(blocks))
        )
        least = (plain.at(share).interval(1 - 1 / max(n, 2)) for share, n in zip(along, shape, strict=False))
        return replace(plain, limits=tuple(map(Fraction, limits)), least=tuple(map(Fraction, least)))

    def _scale(self, share: Fraction) -> float:
        """The scale of the noise of a share: its deviation over sqrt(2)."""
        return math.sqrt(at_share(self.noise, share)[1] / 2)

    # What it costs

    @property
    def smooth(self) -> bool:
        """Whether the noise is Gaussian."""
        return isinstance(self.noise, Gaussian)

    def _cost(self, share: Fraction) -> Fraction:
        """What a share takes from the promise: itself, or its square."""
        return share * share if self.smooth else share

    def _share(self, cost: Fraction) -> Fraction:
        """The share that takes so much from the promise, rounded down."""
        return sqrt_down(cost) if self.smooth else cost

    def at(self, share: Fraction) -> Noise:
        """The noise of a count that is measured with a share of the promise."""
        return at_share(self.noise, share)[0]

    def rest(self, level: int, part: Fraction = Fraction(1)) -> Fraction:
        """The share that a part of what all levels below have is worth."""
        return self._share(part * sum(map(self._cost, self.shares[level + 1 :]), Fraction(0)))

    def guarantee(self) -> Guarantee:
        """What holds for one unit: at worst all its rows are on one path, and the longest path costs most."""
        if not isinstance(self.noise, Gaussian):
            return self.noise.guarantee(self.moved)
        first, *others = (self.at(share).guarantee(self.moved) for share in self._longest)
        return sum(others, start=first)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms on the longest path, each with how far one unit moves its counts."""
        return [(self.at(share), self.moved) for share in self._longest]

    @property
    def _longest(self) -> tuple[Fraction, ...]:
        """The shares on a path that stops just above the single cells: a node and its union get what these would."""
        if not self.blocks:
            return (*self.along, *self.shares)
        above = len(self.blocks) - 1
        return (*self.along, *self.shares[:-1], self.rest(above, 1 - self.union), self.rest(above, self.union))

    # Measuring

    def measure(self, x: NDArray[np.int64], rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        drawn = [np.zeros(0)]

        def take(exact: Callable[[], Counts], many: int, noise: Noise) -> Floats:
            drawn.append(np.asarray(noise(exact(), rng), float) if many else np.zeros(0))
            return drawn[-1]

        self._walk(_counts(x, self.shape), take)
        return np.concatenate(drawn)

    def read(self, released: Floats) -> MapFit:
        """The counts of all cells from the released numbers alone: decisions repeat themselves."""
        place = 0

        def take(exact: Callable[[], Counts], many: int, noise: Noise) -> Floats:
            nonlocal place
            place += many
            return released[place - many : place]

        splits, levels = self._walk(np.zeros(self.shape, np.int64), take)
        first = tuple(map(self.at, self.shares))
        last = tuple(self.at(self.rest(level, 1 - self.union)) for level in range(len(self.blocks)))
        return MapFit(splits, levels, first, (*last, first[-1]))

    def _walk(self, x: Counts, take: Take) -> tuple[Splits, tuple[Level, ...]]:
        """Measure, or read, all that is asked; exact counts x go to `take` alone."""
        splits = Splits.of(self.shape, self.blocks, self._alone(x, take))
        counts, parents, levels = NodeCounts(splits, x), np.zeros(1, np.int64), []
        for level in range(splits.levels):
            nodes = splits.children(level - 1, parents)
            levels.append(self._level(counts, level, parents, nodes, take))
            parents = nodes[~levels[-1].stopped]
        return splits, tuple(levels)

    def _alone(self, x: Counts, take: Take) -> list[list[int]]:
        """The heavy cells of each axis, from noisy counts along it; on average at most 1/2 of them is empty."""
        found: list[list[int]] = [[], []]
        for axis, share in enumerate(self.along):
            noise, cells = self.at(share), self.shape[axis]
            y = take(lambda axis=axis: x.sum(axis=1 - axis), cells, noise)  # type: ignore[misc]
            least = max(float(self.least[axis]), float(self.heavy) * float(y.sum()))
            found[axis] = np.flatnonzero(y > least).tolist()
        return found

    def _level(self, counts: "NodeCounts", level: int, parents: Counts, nodes: Counts, take: Take) -> Level:
        """One level: its nodes with their share, then those that stop once more, and their unions."""
        splits, (own, spread) = counts.splits, at_share(self.noise, self.shares[level])
        y, v = take(lambda: counts.of(level, nodes), len(nodes), own), np.full(len(nodes), spread)
        if level == splits.levels - 1:
            return Level(nodes, np.zeros(len(nodes), bool), y, np.zeros(0), y, v)
        single = splits.areas(level)[nodes] == 1
        held = ~single & (y < float(self.limits[level]))
        again, z = np.zeros(len(nodes)), y.copy()
        for some, share in ((single, self.rest(level)), (held, self.rest(level, 1 - self.union))):
            noise, wide = at_share(self.noise, share)
            again[some] = take(lambda: counts.of(level, nodes[some]), int(some.sum()), noise)  # noqa: B023
            part = wide / (wide + spread)
            z[some], v[some] = part * y[some] + (1 - part) * again[some], part * spread
        noise, wide = at_share(self.noise, self.rest(level, self.union))
        rows = splits.rows(level - 1, parents, nodes)
        starts = np.flatnonzero(np.diff(rows.row_of(np.flatnonzero(held)), prepend=-1))
        unions = take(lambda: np.add.reduceat(counts.of(level, nodes[held]), starts), len(starts), noise)
        if len(unions):
            z, v = joined(rows, held, z, v, unions, wide)
        return Level(nodes, single | held, y, again[single | held], z, v)


@dataclass(frozen=True)
class NodeCounts:
    """Exact counts of nodes, summed when the first of them is measured."""

    splits: Splits
    x: Counts

    @cached_property
    def _sums(self) -> list[Counts]:
        return self.splits.sums(self.x)

    def of(self, level: int, nodes: Counts) -> Counts:
        """The counts of some nodes of a level."""
        found = self._sums[level]
        return found[nodes]


def _counts(x: Any, shape: tuple[int, int]) -> Counts:
    found = np.asarray(x)
    if found.shape != shape or found.dtype.kind not in "iu":
        raise InputError(f"There must be one whole number for each of the {shape[0]:,} × {shape[1]:,} cells.")
    return found.astype(np.int64, copy=False)
