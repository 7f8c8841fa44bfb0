"""The count sketch: how many rows each value has, for any value that is asked for later, in a fixed number of cells.

Each value adds its rows with a random sign to one cell of each of t rows; the estimate is the median over the rows of
sign times cell. Other values in the same cell have random signs, so errors are centred.
[Charikar-Chen-Farach-Colton 2002; with noise Pagh-Thorup 2022, Zhao-Qiao-Redberg-Agrawal-El Abbadi-Wang 2022]

What one unit moves, merged or not, and when to add noise: `cells`. What the error bar rests on: `cell_errors`; it
covers collisions and noise together, for a value whose hash behaves like a random one, and is symmetric by the signs.

When: the values are too many to list or unknown in advance, no delta is to be spent, or parties merge their sketches.
Where one table is grouped by a column, counts above a threshold (SQL with a delta) err less.
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

__all__ = ["CountSketch"]


@dataclass(frozen=True, eq=False, repr=False)
class CountSketch:
    """Cells of signed counts under a public hash; `noises` are those that were added to all of its cells.

    >>> sketch = CountSketch.of(["oak", "ash"], [900, 40], width=64)
    >>> sketch.estimate(["oak"])["count"].to_pylist()
    [900.0]
    >>> noisy = sketch.noised(1)
    >>> noisy, noisy.merge(noisy).noises == 2 * noisy.noises
    (CountSketch(depth=5, width=64, key=0, with noise), True)
    """

    depth: int
    width: int
    key: int
    cells: Cells
    noises: tuple[Noise, ...] = ()

    @classmethod
    def of(
        cls, values: Iterable[Any], counts: Any = None, *, depth: int = 5, width: int = 1024, key: int = 0
    ) -> "CountSketch":
        """The exact sketch of values, each with its number of rows (1 if none is given)."""
        shape = read_shape(depth, width, key)
        return cls(*shape, counted(values, counts, shape, signed=True))

    def add(self, values: Iterable[Any], counts: Any = None) -> "CountSketch":
        """The same with more rows."""
        shape = self.depth, self.width, self.key
        return replace(self, cells=self.cells + counted(values, counts, shape, signed=True))

    def merge(self, other: "CountSketch") -> "CountSketch":
        """The sketch of both; noise that is in them adds up."""
        if (self.depth, self.width, self.key) != (other.depth, other.width, other.key):
            raise InputError("Sketches merge if they have the same depth, width and key: make them alike.")
        return replace(self, cells=self.cells + other.cells, noises=self.noises + other.noises)

    def sensitivity(self, part: Contribution = ONE_ROW, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Sensitivity:
        """What one unit moves, of one sketch or of merged ones: `part` bounds its rows in all of them together."""
        return moved_cells(self.depth, part, neighbours, signed=True)

    def noised(
        self,
        spend: Spend,
        *,
        part: Contribution = ONE_ROW,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rng: Random = SYSTEM,
    ) -> "CountSketch":
        """The sketch with the least noise that keeps a promise for one unit."""
        return self.with_noise(least_noise(as_promise(spend), self.sensitivity(part, neighbours)), rng)

    def with_noise(self, noise: Noise, rng: Random = SYSTEM) -> "CountSketch":
        """The sketch with noise in each cell."""
        return replace(self, cells=np.asarray(noise(self.cells, rng)), noises=(*self.noises, noise))

    def half_width(self, level: float = 0.95) -> float:
        """Half of the error bar of any value, collisions and noise together; infinite if the sketch is too narrow."""
        content = np.asarray(self.cells, float)
        both = np.concatenate([content, -content], axis=1)  # the value's own sign is random
        return upper_end(both, self.depth // 2, (1 - level_of(level)) / 2, changed=2)

    def estimate(self, keys: Iterable[Any], *, level: float = 0.95) -> "pyarrow.Table":
        """The number of rows of each key, with error bars: a table of key, count, count_low and count_high."""
        asked = list(keys)
        value = np.median(contents(asked, self.cells, self.key, signed=True), axis=0)
        half = self.half_width(level)
        return estimates(asked, value, value - half, value + half)

    def to_arrow(self) -> "pyarrow.Table":
        """All cells."""
        return cell_table(self.cells)

    def chart(self, *, note: str = "") -> "Chart":
        """The largest cells."""
        spread = math.sqrt(sum(noise.variance() for noise in self.noises))
        return cell_chart(self.cells, 2 * spread, title="Largest cells of a count sketch", note=note)

    def __repr__(self) -> str:
        with_noise = "with noise" if self.noises else "exact"
        return f"CountSketch(depth={self.depth}, width={self.width}, key={self.key}, {with_noise})"
