"""The kd-tree: boxes are split at private medians, one axis after the other, and every box gets a noisy count.

A box of n rows is split before a cell b, chosen by the exponential mechanism with the score -|2 rank(b) - n|, rank(b)
rows lying before b. One row that is added or removed moves each score by at most 1, one that is replaced by at most 2:
in units of ranks 1/2 and 1.   [Cormode-Procopiuc-Srivastava-Shen-Yu 2012; docs/errata.md, E10]

After `kd_levels` splits the boxes are quartered like those of a quadtree: the hybrid tree. Choosing medians uses coins
of its own, so the noise of the counts is independent of where the boxes lie.

When: the mass lies in a few places, and boxes should be about equally full.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Exponential
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Pure, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import one_node
from noisette.releases.linear import fitting, pure_part
from noisette.releases.maps.box_fit import BoxFit
from noisette.releases.maps.boxes import Boxes, halved, halves
from noisette.releases.maps.contract import Floats
from noisette.releases.maps.levels import axes_of, grid_shape, grown, halvings_of, kinds_of, level_noise, spread_of
from noisette.releases.maps.quadtree import QuadTree
from noisette.releases.maps.transcript import Ask, Sums, drawn, repeated

__all__ = ["HybridTree", "KdTree"]

Ints: TypeAlias = NDArray[np.int64]

_MEDIANS = Fraction(3, 10)
_PATIENCE = 4
_SPLITS = 16  # by default


@dataclass(frozen=True)
class KdTree:
    """A tree of counts whose first `kd_levels` splits are private medians, chosen with weights e^(score/scale).

    >>> made = KdTree.calibrated(1, shape=(16, 16), kd_levels=4)
    >>> made.guarantee(), made.scale                                # 3/40 for each of four medians
    (Pure('1', neighbours=ADD_REMOVE), Fraction(80, 3))
    >>> made.read(made.measure(np.full((16, 16), 50))).x.shape
    (16, 16)
    """

    tree: QuadTree
    scale: Fraction
    kd_levels: int

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        shape: tuple[int, ...],
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
        kd_levels: int | None = None,
        quad_levels: int = 0,
        medians: Number = _MEDIANS,
        patience: Number = _PATIENCE,
        nonnegative: bool = True,
        prune: Number = 0,
    ) -> "KdTree":
        """The tree that keeps a promise for a unit of `rows` rows; `medians` is the share of the budget of all splits.

        With `quad_levels` above 0 it is the hybrid tree.
        """
        shape, promise, share = grid_shape(shape), as_promise(spend), fraction(medians, "medians")
        axes = axes_of(shape)
        most = axes * halvings_of(shape)
        splits = min(most, _SPLITS) if kd_levels is None else whole(kd_levels, "kd_levels", least=0)
        if splits > most or whole(quad_levels, "quad_levels", least=0) > halvings_of(shape) or not 0 < share < 1:
            raise InputError(f"medians lies between 0 and 1, and a map of {shape} cells has at most {most} splits.")
        halvings = [*range(splits + 1), *(splits + axes * (level + 1) for level in range(quad_levels))]
        moved, reach = one_node(rows, neighbours), _ranks(rows, neighbours)
        options = fraction(patience, "patience"), nonnegative, fraction(prune, "prune")

        def made(smooth: bool) -> "KdTree":
            first, rest = _divided(promise, share if splits else Fraction(0), smooth)
            noise = level_noise(rest, moved, halvings, axes, gaussian=smooth)
            scale = Exponential.calibrated(_part(first, splits), reach, candidates=2).scale if splits else Fraction(1)
            return cls(QuadTree(shape, noise, moved, *options), scale, splits)

        found = fitting(made, kinds_of(promise, gaussian))
        return min(found, key=lambda one: spread_of(one.tree.noise, halvings, axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        return self.tree.shape

    @property
    def moved(self) -> Sensitivity:
        """How far one unit moves the counts of the cells."""
        return self.tree.moved

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The choice of each level's splits, with how far one unit moves their scores, and the noise of each level."""
        rows = int(self.moved.linf)
        choice = Exponential(self.scale, candidates=2), _ranks(rows, self.moved.neighbours)
        return [choice] * self.kd_levels + self.tree.parts

    def guarantee(self) -> Guarantee:
        """What holds for one unit: the splits and the counts of all levels."""
        found: Guarantee = reduce(add, (mechanism.guarantee(moved) for mechanism, moved in self.parts))
        return found

    def measure(self, x: NDArray[np.int64], rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        return drawn(self._walk, Sums.of(x, self.shape), rng)

    def read(self, released: Floats) -> BoxFit:
        """The counts of all cells from the released numbers alone."""
        return self.tree.fit(self._walk(repeated(released)))

    def _walk(self, ask: Ask) -> Boxes:
        return grown(self.shape, self.tree.noise, self.tree.patience, self._split, ask)

    def _split(self, level: int, low: Ints, high: Ints, ask: Ask) -> tuple[Ints, Ints, Ints]:
        if level >= self.kd_levels:
            return halves(low, high)
        axis = _next_axis(level, high - low)
        rows = np.arange(len(low))
        length, at = (high - low)[rows, axis], low[rows, axis] + 1
        chosen = np.flatnonzero(length > 2)  # a box of two cells is split between them

        def draw(sums: Sums, rng: Random) -> list[int]:
            return [self.median(ranks(sums, low[box], high[box], int(axis[box])), rng) for box in chosen]

        at[chosen] += ask(len(chosen), draw).astype(np.int64)
        return halved(low, high, axis, at)

    def median(self, scores: Ints, rng: Random = SYSTEM) -> int:
        """Choose a split by its score."""
        return int(Exponential(self.scale, candidates=len(scores))(scores, rng))


class HybridTree:
    """Makes a `KdTree` of two splits along each axis, whose boxes are quartered down to single cells.

    >>> made = HybridTree.calibrated(1, shape=(16, 16))
    >>> made.kd_levels, len(made.tree.noise)
    (4, 9)
    """

    @staticmethod
    def calibrated(spend: Spend, *, shape: tuple[int, ...], **options: Any) -> KdTree:
        """The hybrid tree that keeps a promise; options are those of `KdTree.calibrated`."""
        cells = grid_shape(shape)
        usual = {"kd_levels": min(2, halvings_of(cells)) * axes_of(cells), "quad_levels": halvings_of(cells)}
        return KdTree.calibrated(spend, shape=cells, **(usual | options))


def ranks(sums: Sums, low: Ints, high: Ints, axis: int) -> Ints:
    """The score -|2 rank - n| of a split of a box before its second cell, its third, ... along an axis."""
    size = int(high[axis] - low[axis])
    ends = np.repeat(high[None, :], size, axis=0)
    ends[:, axis] = low[axis] + 1 + np.arange(size)
    upto = sums.within(np.repeat(low[None, :], size, axis=0), ends)
    return np.asarray(-abs(2 * upto[:-1] - upto[-1]))


def _ranks(rows: int, neighbours: Neighbours) -> Sensitivity:
    """How far one unit moves the scores of splits of a level: at worst all its rows are in one box.

    There some scores rise and others fall: two of them stand for all.
    """
    reach = rows if neighbours is Neighbours.ADD_REMOVE else 2 * rows
    return Sensitivity(2 * reach, 2 * reach**2, reach, 2, neighbours=neighbours)


def _next_axis(level: int, size: Ints) -> Ints:
    """The axis along which each box is split: the next one in turn that has more than one cell."""
    turn = (level + np.arange(size.shape[1])) % size.shape[1]
    return np.asarray(turn[(size[:, turn] > 1).argmax(axis=1)])


def _divided(promise: Promise, share: Fraction, smooth: bool) -> tuple[Promise, Promise]:
    """The parts of a promise for the splits and for the counts."""
    near = promise.neighbours
    match promise:
        case ZCDP() if smooth:
            return ZCDP(promise.rho * share, neighbours=near), ZCDP(promise.rho * (1 - share), neighbours=near)
        case Approx() if smooth:
            counts = Approx(promise.epsilon * (1 - share), promise.delta, neighbours=near)
            return Pure(promise.epsilon * share, neighbours=near), counts
        case _:
            epsilon = pure_part(promise)
            return Pure(epsilon * share, neighbours=near), Pure(epsilon * (1 - share), neighbours=near)


def _part(promise: Promise, parts: int) -> Promise:
    """One of equal parts of a promise."""
    if isinstance(promise, ZCDP):
        return ZCDP(promise.rho / parts, neighbours=promise.neighbours)
    return Pure(promise.epsilon / parts, neighbours=promise.neighbours)
