"""PrivTree: boxes are halved along every axis as long as they seem to be full; the depth costs nothing.

Vocabulary: `c` the exact count of a box · `depth` 0 for the box of all cells · decisions are made in units of 1/1024 of
a row: `decay` and `scale` are in units · beta = 2^axes.

A box is split if max(1024 c - depth decay, -decay) plus two-sided geometric noise of `scale` is above 0. Noise is drawn
for every box that is reached, empty or not; single cells are not split. The bits are released, and noisy counts of the
boxes that were not split.   [Zhang-Xiao-Xie 2016]

**Privacy.** Let decay >= scale ln(beta). Then one row that is added or removed changes the probability of all bits by a
factor of at most e^(1024 C/scale), with C = 1 + sum over r >= 0 of 1/(2 beta^r - 1), whatever the depth. The paper has
the larger C = (2 beta - 1)/(beta - 1), for Laplace noise.   (docs/proofs/map-strategies.md)

When: rows lie in few places, and these should be found at once.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import ln_bounds
from noisette.mechanisms import Geometric
from noisette.privacy import Guarantee, Neighbours, Pure, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import one_node
from noisette.releases.linear import pure_part
from noisette.releases.maps.box_fit import BoxFit
from noisette.releases.maps.boxes import Boxes, Layer, halves
from noisette.releases.maps.contract import Floats
from noisette.releases.maps.levels import axes_of, counted, grid_shape, halvings_of
from noisette.releases.maps.transcript import Ask, Sums, drawn, repeated

__all__ = ["UNIT", "PrivTree", "path_constant"]

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

UNIT = 1024
_TERMS = 40
_BITS = 64
_MOST = 1 << 62


@lru_cache
def path_constant(beta: int) -> Fraction:
    """1 + sum of 1/(2 beta^r - 1) over r >= 0, rounded up: what is left out is less than a geometric sum.

    >>> [round(float(path_constant(beta)), 4) for beta in (2, 4, 8)]          # published: 3, 2.3333, 2.1429
    [2.6067, 2.1856, 2.0757]
    """
    known = sum((Fraction(1, 2 * beta**r - 1) for r in range(_TERMS)), Fraction(1))
    return known + Fraction(1, beta ** (_TERMS - 1) * (beta - 1))


@dataclass(frozen=True)
class PrivTree:
    """Bits that say which boxes are split, and counts of those that are not.

    `structure` is the noise of decisions in units, `decay` by how much a box must be fuller one level deeper.

    >>> made = PrivTree.calibrated(1, shape=(64, 64))
    >>> made.guarantee(), made.counts
    (Pure('1', neighbours=ADD_REMOVE), Geometric(scale=2))
    >>> made.read(made.measure(np.ones((64, 64), int))).x.shape
    (64, 64)
    """

    shape: tuple[int, ...]
    structure: Geometric
    decay: int
    counts: Geometric
    moved: Sensitivity
    nonnegative: bool = True

    def __post_init__(self) -> None:
        low, _ = ln_bounds(Fraction(self._beta), _BITS)
        if self.decay << _BITS < self.structure.scale * low:
            raise InputError("decay must be at least the scale of the decisions times ln(2^axes): make it larger.")
        if self.decay * (1 + halvings_of(self.shape)) >= _MOST:
            raise InputError("This promise is too small for decisions on a map of this size: spend more.")

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        shape: tuple[int, ...],
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        structure: Number = Fraction(1, 2),
        nonnegative: bool = True,
    ) -> "PrivTree":
        """The tree that keeps a promise for a unit of `rows` rows; `structure` is the share of the budget of the bits.

        The promise is kept with a pure epsilon; scale and decay are rounded up.
        """
        shape, share, moved = grid_shape(shape), fraction(structure, "structure"), one_node(rows, neighbours)
        if not 0 < share < 1:
            raise InputError("structure must lie between 0 and 1: a usual share of the decisions is 0.5.")
        epsilon, beta = pure_part(as_promise(spend)), 1 << axes_of(shape)
        scale = path_constant(beta) * UNIT * moved.l1 / (share * epsilon)
        decay = -(-scale * ln_bounds(Fraction(beta), _BITS)[1] // (1 << _BITS))
        counts = Geometric(moved.l1 / ((1 - share) * epsilon))
        return cls(shape, Geometric(scale), int(decay), counts, moved, nonnegative)

    @property
    def _beta(self) -> int:
        return 1 << axes_of(self.shape)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The noise of decisions and of counts; a row moves decisions together by `path_constant` times 1024 units."""
        return [(self.structure, self.moved.scaled(path_constant(self._beta) * UNIT)), (self.counts, self.moved)]

    def guarantee(self) -> Guarantee:
        """What holds for one unit: all decisions on the paths of its rows, and one count for each row."""
        far = path_constant(self._beta) * UNIT * self.moved.l1
        bits = Pure(far / self.structure.scale, neighbours=self.moved.neighbours)  # not the loss of Laplace noise
        return bits + self.counts.guarantee(self.moved)

    def biased(self, c: Ints, depth: int) -> Ints:
        """What decisions are made about: counts in units, less for each level, but never below -decay."""
        return np.maximum(c * UNIT - depth * self.decay, -self.decay)

    def measure(self, x: NDArray[np.int64], rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        return drawn(self._walk, Sums.of(x, self.shape), rng)

    def read(self, released: Floats) -> BoxFit:
        """The counts of all cells from the released numbers alone."""
        return BoxFit(self._walk(repeated(released)), self.shape, False, self.nonnegative)

    def _walk(self, ask: Ask) -> Boxes:
        layers = [Layer.whole(self.shape)]
        while True:
            layer = layers[-1]
            split = self._splits(ask, layer, len(layers) - 1)
            kind = np.where(split, -1, 0)
            layers[-1] = counted(ask, Layer(layer.low, layer.high, layer.parent, kind, layer.y), [self.counts])
            if not split.any():
                return Boxes(tuple(layers), (self.counts,))
            going = np.flatnonzero(split)
            low, high, part = halves(layer.low[going], layer.high[going])
            layers.append(Layer(low, high, going[part], np.full(len(part), -1), np.zeros(len(part))))

    def _splits(self, ask: Ask, layer: Layer, depth: int) -> Mask:
        """Decide about all boxes of a depth except single cells."""
        open_boxes = np.flatnonzero((layer.high - layer.low).max(axis=1) > 1)
        low, high = layer.low[open_boxes], layer.high[open_boxes]

        def draw(sums: Sums, rng: Random) -> Mask:
            return np.asarray(self.structure(self.biased(sums.within(low, high), depth), rng) > 0)

        split = np.zeros(len(layer.low), bool)
        split[open_boxes] = ask(len(open_boxes), draw) > 0
        return split
