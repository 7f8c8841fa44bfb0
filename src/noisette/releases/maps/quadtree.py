"""The quadtree: a map is quartered again and again (2^d parts in d dimensions), and every box gets a noisy count.

Which boxes there are is public, or with `patience` follows from released counts: a box with a small count stops and is
measured once more with all that is left of the budget. Least squares makes all counts agree. With `prune`, boxes whose
estimated count is below it are spread evenly.   [Cormode-Procopiuc-Srivastava-Shen-Yu 2012]

When: the unbiased counts with known variances are wanted (`nonnegative=False`), or a map with the same detail anywhere.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import one_node
from noisette.releases.linear import Noise
from noisette.releases.maps.box_fit import BoxFit
from noisette.releases.maps.boxes import Boxes, halves
from noisette.releases.maps.contract import Floats
from noisette.releases.maps.levels import axes_of, by_level, depth_of, grid_shape, grown, halvings_of, level_noise
from noisette.releases.maps.transcript import Ask, Sums, drawn, repeated

__all__ = ["QuadTree"]


@dataclass(frozen=True)
class QuadTree:
    """Counts of the boxes of a quadtree, with one `noise` for each level from the box of all cells.

    >>> made = QuadTree.calibrated(1, shape=(8, 8), height=2)
    >>> made.guarantee(), [round(float(one.scale), 2) for one in made.noise]
    (Pure('1', neighbours=ADD_REMOVE), [3.85, 3.05, 2.42])
    >>> fit = made.read(made.measure(np.full((8, 8), 100)))
    >>> fit.x.shape, bool(abs(fit.counts(np.array([[0, 0]]), np.array([[4, 8]]))[0] - 3200) < 500)
    ((8, 8), True)
    """

    shape: tuple[int, ...]
    noise: tuple[Noise, ...]
    moved: Sensitivity
    patience: Fraction = Fraction(0)
    nonnegative: bool = True
    prune: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not self.noise or self.patience < 0 or self.prune < 0:
            raise InputError("A tree needs at least one level; patience and prune are at least 0.")

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        shape: tuple[int, ...],
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        gaussian: bool | None = None,
        height: int | None = None,
        patience: Number = 0,
        nonnegative: bool = True,
        prune: Number = 0,
    ) -> "QuadTree":
        """The tree of that height, by default down to single cells, that keeps a promise for a unit of `rows` rows."""
        shape, moved = grid_shape(shape), one_node(rows, neighbours)
        axes = axes_of(shape)
        halvings = [axes * level for level in range(depth_of(height, halvings_of(shape)) + 1)]
        noise = level_noise(as_promise(spend), moved, halvings, axes, gaussian=gaussian)
        return cls(shape, noise, moved, fraction(patience, "patience"), nonnegative, fraction(prune, "prune"))

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The noise of each level, with how far one unit moves the counts of a level."""
        return [(one, self.moved) for one in self.noise]

    def guarantee(self) -> Guarantee:
        """What holds for one unit: each level is measured once on the path of each of its rows."""
        return by_level(self.noise, self.moved)

    def measure(self, x: NDArray[np.int64], rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        return drawn(self._walk, Sums.of(x, self.shape), rng)

    def read(self, released: Floats) -> BoxFit:
        """The counts of all cells from the released numbers alone."""
        return self.fit(self._walk(repeated(released)))

    def fit(self, boxes: Boxes) -> BoxFit:
        """What follows from boxes that were measured with this noise."""
        least = float(self.prune) if self.prune else -np.inf
        return BoxFit(boxes, self.shape, bool(self.patience), self.nonnegative, least)

    def _walk(self, ask: Ask) -> Boxes:
        return grown(self.shape, self.noise, self.patience, lambda level, low, high, _: halves(low, high), ask)
