"""The adaptive tree (ADAPT): counts of a line's cells, measured as deep as they are large, non-negative and consistent.

Vocabulary: `x` exact counts · `y` noisy counts of nodes · `s` the variance of the best estimate from a node and what
lies below it · `u` the estimate that is released · `w` the share of the promise that a level gets, `rest` what the
levels below it have together · `rows` of nodes: the children of one parent.

From the top, each node is measured with its level's share. A node whose noisy count is small, below `patience` times
the noise it would have with all that its path has left, *stops*: it is measured once more with all of that, and nothing
below it is measured. The others' children follow. Then: up, inverse-variance means as in `tree`; down, the children of
each node are shrunk towards an even spread of its total (the positive part of James and Stein's estimate) and projected
on the non-negative numbers that add up to that total. Below a node that stopped, its total is spread evenly.

**Privacy.** Which nodes are measured, and with which share, is decided by released numbers alone. On the path of a row,
the shares up to the node where it stops and the rest that is spent there add up to one (their squares, for Gaussian
noise). So a unit of k rows pays no more than k rows in one cell measured once with all of the promise; what follows the
measuring reads released numbers only.   (docs/proofs/adaptive-tree.md)

Error: on real histograms of 4 096 cells a fifth to an eighth of what noise on every cell gives for ranges, of about a
hundred cells .4 to 1 of it (`make bench-error`), and about as much as the plain tree where counts are large everywhere.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_down
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.chains import best_chain, level_shares, typical, typical_ranges
from noisette.releases.consistent import Level, cells_of, consistent
from noisette.releases.linear import Noise, fitting, pure_part, variance_of
from noisette.releases.tree import Tree

__all__ = ["AdaptiveTree", "at_share", "laid_out", "one_node", "rounded_shares"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Ask: TypeAlias = Callable[[int, Counts, Fraction], Floats]
"""Noisy counts of some nodes of a level, measured with a share of the promise."""

_PATIENCE = Fraction(20)
_INNER = 3  # levels above the single cells under pure epsilon, where each one costs
_GRID = 1 << 20  # shares are multiples of its inverse


@dataclass(frozen=True)
class AdaptiveTree:
    """Counts of cells, measured down a `tree` with `shares` of a promise.

    `noise` is what one count would get for all of the promise; `moved` is what one unit can do to a single node.

    >>> made = AdaptiveTree.calibrated(1, cells=64)
    >>> made.guarantee(), made.tree.sizes
    (Pure('1', neighbours=ADD_REMOVE), (16, 1))
    >>> found = made(np.repeat([0, 50], 32))
    >>> found.shape, bool((found >= 0).all())
    ((64,), True)
    """

    noise: Noise
    moved: Sensitivity
    tree: Tree
    shares: tuple[Fraction, ...]
    patience: Fraction = _PATIENCE

    def __post_init__(self) -> None:
        spent = sum((self._cost(share) for share in self.shares), Fraction(0))
        if len(self.shares) != self.tree.levels or spent > 1 or min(self.shares) <= 0:
            raise InputError("There must be one share above 0 for each level of the tree; together they are at most 1.")

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        cells: int,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
    ) -> "AdaptiveTree":
        """The tree for that many cells that keeps a promise for a unit of at most `rows` rows.

        Noise is Laplace or, where the promise has a delta, whichever errs less on ranges.
        """
        promise = as_promise(spend)
        if gaussian is None:
            kinds = (False,) if promise.is_pure else (False, True)
            found = fitting(
                lambda one: cls.calibrated(promise, cells=cells, rows=rows, neighbours=neighbours, gaussian=one), kinds
            )
            return min(found, key=lambda one: one.error)
        moved = one_node(rows, neighbours)
        noise = Gaussian.calibrated(promise, moved) if gaussian else Geometric(moved.l1 / pure_part(promise))
        plain = cls(noise, moved, *laid_out(cells, gaussian=gaussian))
        return plain._wider(promise.restated(neighbours)) if gaussian else plain

    @property
    def error(self) -> float:
        """The root mean squared error of ranges if nothing stops and nothing is shrunk."""
        variances = [at_share(self.noise, share)[1] for share in self.shares]
        return math.sqrt(float(self.tree.variances(*typical_ranges(self.tree.cells), variances).mean()))

    def _wider(self, promise: Guarantee) -> "AdaptiveTree":
        """The same with noise so much wider that all levels together keep a promise, whatever is rounded on the way."""
        for bits in (40, 30, 24, 20, 16):
            wide = Gaussian(self.noise.sigma * (1 + Fraction(1, 2**bits)))  # type: ignore[union-attr]
            made = AdaptiveTree(wide, self.moved, self.tree, self.shares, self.patience)
            if made.guarantee() <= promise:
                return made
        raise InputError("This promise is too small for a tree of counts: spend more.")

    @property
    def smooth(self) -> bool:
        """Whether the noise is Gaussian."""
        return isinstance(self.noise, Gaussian)

    def _cost(self, share: Fraction) -> Fraction:
        """What a share takes from the promise: itself, or its square."""
        return share * share if self.smooth else share

    def _rest(self, level: int) -> Fraction:
        """The share that all levels below have together."""
        left = sum((self._cost(share) for share in self.shares[level + 1 :]), Fraction(0))
        return sqrt_down(left) if self.smooth else left

    def at(self, share: Fraction) -> Noise:
        """The noise of a count that is measured with a share of the promise."""
        return at_share(self.noise, share)[0]

    def last(self, level: int) -> Noise:
        """The noise of the second measurement of a node that stops."""
        return self.at(self._rest(level))

    def guarantee(self) -> Guarantee:
        """What holds for one unit: at worst all levels are measured on the path of all its rows."""
        if not isinstance(self.noise, Gaussian):
            return self.noise.guarantee(self.moved)
        first, *others = (self.at(share).guarantee(self.moved) for share in self.shares)
        return sum(others, start=first)

    # Measuring

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Floats:
        """Release the counts of all cells."""
        return self.infer(self._measured(x, rng)[1])

    def measure(self, x: Any, rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        return np.concatenate(self._measured(x, rng)[0])

    def _measured(self, x: Any, rng: Random) -> tuple[list[Floats], tuple[Level, ...]]:
        """The released numbers, and what `read` makes of them."""
        sums, drawn = self.tree.sums(np.asarray(x, np.int64)), [np.zeros(0)]

        def ask(level: int, nodes: Counts, share: Fraction) -> Floats:
            counts = sums[level] if len(nodes) == len(sums[level]) else sums[level][nodes]
            drawn.append(np.asarray(self.at(share)(counts, rng) if len(counts) else counts, float))
            return drawn[-1]

        levels = self._walk(ask)
        return drawn, levels

    def read(self, released: Floats) -> tuple[Level, ...]:
        """What was measured of which node, from the released numbers alone: decisions repeat themselves."""
        place = 0

        def ask(level: int, nodes: Counts, share: Fraction) -> Floats:
            nonlocal place
            place += len(nodes)
            return released[place - len(nodes) : place]

        return self._walk(ask)

    def _walk(self, ask: Ask) -> tuple[Level, ...]:
        nodes, levels = np.arange(self.tree.nodes(0)), []
        for level, share in enumerate(self.shares):
            found = self._level(level, nodes, share, ask)
            levels.append(found)
            if level < self.tree.levels - 1:
                nodes = self._children(level, nodes[~found.stopped])
        return tuple(levels)

    def _level(self, level: int, nodes: Counts, share: Fraction, ask: Ask) -> Level:
        y, rest = ask(level, nodes, share), self._rest(level)
        _, spread = at_share(self.noise, share)
        v = np.full(len(nodes), spread)
        if not rest:
            return Level(nodes, np.zeros(len(nodes), bool), y, np.zeros(0), y, v)
        _, final = at_share(self.noise, rest)
        stopped = (y < self._threshold(final)) | (nodes * self.tree.sizes[level] == self.tree.cells - 1)
        again, z = ask(level, nodes[stopped], rest), y.copy()
        part = final / (final + spread)
        z[stopped], v[stopped] = part * y[stopped] + (1 - part) * again, part * spread
        return Level(nodes, stopped, y, again, z, v)

    def _threshold(self, final: float) -> float:
        """Nodes with a smaller noisy count stop: so much is hidden by the noise of what would be measured below."""
        return float(self.patience) * math.sqrt(final / 2)

    def _children(self, level: int, nodes: Counts) -> Counts:
        fan = self.tree.fan_out(level)
        below = (nodes[:, None] * fan + np.arange(fan)).ravel()
        return below[: np.searchsorted(below, self.tree.nodes(level + 1))]

    # Inferring

    def infer(self, levels: Sequence[Level]) -> Floats:
        """Non-negative, consistent counts of all cells from what was measured."""
        return cells_of(self.tree, levels, consistent(self.tree, levels))


@lru_cache(maxsize=1024)
def at_share(noise: Noise, share: Fraction) -> tuple[Noise, float]:
    """The noise of a count that is measured with a share of a promise, and its variance."""
    scaled = Gaussian(noise.sigma / share) if isinstance(noise, Gaussian) else Geometric(noise.scale / share)
    return scaled, variance_of(scaled)


def laid_out(cells: int, *, gaussian: bool) -> tuple[Tree, tuple[Fraction, ...]]:
    """The blocks that are best for prefixes, and the share of each level."""
    sizes = _fours(cells) if gaussian else best_chain(typical(cells, prefixes=True), inner=_INNER).sizes
    shares = level_shares(cells, sizes, gaussian=gaussian, prefixes=True)
    return Tree(cells, sizes), rounded_shares(shares, squared=gaussian)


def _fours(cells: int) -> tuple[int, ...]:
    """Block sizes that fall by 4: under Gaussian noise more levels pay.

    >>> _fours(64), _fours(3)
    ((16, 4, 1), (1,))
    """
    return tuple(4**i for i in range(max(0, (cells - 1).bit_length() // 2 - 1), -1, -1))


def one_node(rows: int, neighbours: Neighbours) -> Sensitivity:
    """How far one unit of at most `rows` rows moves the nodes of a level: at worst all its rows are in one node.

    Under replace another unit's rows come in another node: (a - b)^2 <= a^2 + b^2 for counts.
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(rows, rows**2, rows, rows, neighbours=neighbours)
    return Sensitivity(2 * rows, 2 * rows**2, rows, 2 * rows, neighbours=neighbours)


def rounded_shares(shares: Sequence[float], *, squared: bool) -> tuple[Fraction, ...]:
    """Shares as fractions that add up to exactly one, or whose squares add up to at most one."""
    parts = [Fraction(round(share * _GRID), _GRID) for share in shares]
    if not squared:
        return (*parts[:-1], 1 - sum(parts[:-1], Fraction(0)))
    return tuple(part * sqrt_down(1 / sum((p * p for p in parts), Fraction(0))) for part in parts)
