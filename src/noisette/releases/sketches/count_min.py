"""The count-min sketch: how many rows each value has, for any value that anybody asks for later, in a few cells.

Each value adds its rows to one cell of each of t rows. Without noise every such cell is an upper bound, and the
smallest is the estimate.   [Cormode-Muthukrishnan 2005] With noise the smallest cell is no bound any more: it errs
downwards by the smallest of t noises. So the estimate takes off what the smallest of t random cells usually holds, and
the error bar comes from the cells themselves (`cell_errors`), for collisions and noise together.

What one unit moves, merged or not, and when to add noise: `cells`.

When: many small counts collide and little noise is needed; otherwise a count sketch, whose errors are centred.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import level_of
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Neighbours, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.linear import ONE_ROW, Noise
from noisette.releases.sketches.cell_errors import upper_end
from noisette.releases.sketches.cells import (
    Cells,
    cell_chart,
    cell_table,
    contents,
    counted,
    estimates,
    moved_cells,
    read_shape,
)
from noisette.releases.sketches.noise import least_noise

if TYPE_CHECKING:
    import pyarrow

    from noisette.charts import Chart

__all__ = ["CountMin"]


@dataclass(frozen=True, eq=False, repr=False)
class CountMin:
    """Cells of counts under a public hash; `noises` are those that were added to all of its cells.

    >>> sketch = CountMin.of(["oak", "ash"], [900, 40], width=64)
    >>> sketch.estimate(["oak"])["count"].to_pylist()
    [900.0]
    >>> noisy = sketch.noised(1)
    >>> noisy, noisy.merge(noisy).noises == 2 * noisy.noises
    (CountMin(depth=5, width=64, key=0, with noise), True)
    """

    depth: int
    width: int
    key: int
    cells: Cells
    noises: tuple[Noise, ...] = ()

    @classmethod
    def of(
        cls, values: Iterable[Any], counts: Any = None, *, depth: int = 5, width: int = 1024, key: int = 0
    ) -> "CountMin":
        """The exact sketch of values, each with its number of rows (1 if none is given)."""
        shape = read_shape(depth, width, key)
        return cls(*shape, counted(values, counts, shape, signed=False))

    def add(self, values: Iterable[Any], counts: Any = None) -> "CountMin":
        """The same with more rows."""
        shape = self.depth, self.width, self.key
        return replace(self, cells=self.cells + counted(values, counts, shape, signed=False))

    def merge(self, other: "CountMin") -> "CountMin":
        """The sketch of both; noise that is in them adds up."""
        if (self.depth, self.width, self.key) != (other.depth, other.width, other.key):
            raise InputError("Sketches merge if they have the same depth, width and key: make them alike.")
        return replace(self, cells=self.cells + other.cells, noises=self.noises + other.noises)

    def sensitivity(self, part: Contribution = ONE_ROW, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Sensitivity:
        """What one unit moves, of one sketch or of merged ones: `part` bounds its rows in all of them together."""
        return moved_cells(self.depth, part, neighbours, signed=False)

    def noised(
        self,
        spend: Spend,
        *,
        part: Contribution = ONE_ROW,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rng: Random = SYSTEM,
    ) -> "CountMin":
        """The sketch with the least noise that keeps a promise for one unit."""
        return self.with_noise(least_noise(as_promise(spend), self.sensitivity(part, neighbours)), rng)

    def with_noise(self, noise: Noise, rng: Random = SYSTEM) -> "CountMin":
        """The sketch with noise in each cell."""
        return replace(self, cells=np.asarray(noise(self.cells, rng)), noises=(*self.noises, noise))

    def errors(self, level: float = 0.95) -> tuple[float, float, float]:
        """What the smallest cell of a value holds besides its own rows: at least, usually, and at most."""
        content, tail = np.asarray(self.cells, float), (1 - level_of(level)) / 2
        low, high = -upper_end(-content, self.depth - 1, tail), upper_end(content, 0, tail)
        return low, float(np.clip(upper_end(content, 0, 0.5), low, high)), high

    def estimate(self, keys: Iterable[Any], *, level: float = 0.95) -> "pyarrow.Table":
        """The number of rows of each key, with error bars: a table of key, count, count_low and count_high."""
        asked = list(keys)
        smallest = contents(asked, self.cells, self.key, signed=False).min(axis=0)
        low, usual, high = self.errors(level)
        return estimates(asked, smallest - usual, smallest - high, smallest - low)

    def to_arrow(self) -> "pyarrow.Table":
        """All cells."""
        return cell_table(self.cells)

    def chart(self, *, note: str = "") -> "Chart":
        """The largest cells."""
        spread = math.sqrt(sum(noise.variance() for noise in self.noises))
        return cell_chart(self.cells, 2 * spread, title="Largest cells of a count-min sketch", note=note)

    def __repr__(self) -> str:
        with_noise = "with noise" if self.noises else "exact"
        return f"CountMin(depth={self.depth}, width={self.width}, key={self.key}, {with_noise})"
