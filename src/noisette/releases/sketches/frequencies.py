"""How many rows each value has, for any value that is asked for later, in a fixed number of cells.

**Count-min sketch.** Each value adds its rows to one cell of each of t rows. Without noise every such cell is an upper
bound, and the smallest is the estimate.   [Cormode-Muthukrishnan 2005] With noise the smallest cell is no bound any
more: it errs downwards by the smallest of t noises. So the estimate takes off what the smallest of t random cells
usually holds.

**Count sketch.** Each value adds its rows with a random sign to one cell of each of t rows; the estimate is the median
over the rows of sign times cell. Other values in the same cell have random signs, so errors are centred.
[Charikar-Chen-Farach-Colton 2002; with noise Pagh-Thorup 2022, Zhao-Qiao-Redberg-Agrawal-El Abbadi-Wang 2022]

What one unit moves, merged or not, and when to add noise: `cells`. What error bars rest on: `cell_errors`; they cover
collisions and noise together, for a value whose hash behaves like a random one.

When: the values are too many to list or unknown in advance, no delta is to be spent, or parties merge their sketches; a
count-min sketch where many small counts collide and little noise is needed. Where one table is grouped by a column,
counts above a threshold (SQL with a delta) err less.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

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

__all__ = ["CountMin", "CountSketch", "Frequencies"]


@dataclass(frozen=True, eq=False, repr=False)
class Frequencies:
    """Cells of counts under a public hash; `noises` are those that were added to all of its cells."""

    signed: ClassVar[bool]
    name: ClassVar[str]
    depth: int
    width: int
    key: int
    cells: Cells
    noises: tuple[Noise, ...] = ()

    @classmethod
    def of(cls, values: Iterable[Any], counts: Any = None, *, depth: int = 5, width: int = 1024, key: int = 0) -> Self:
        """The exact sketch of values, each with its number of rows (1 if none is given)."""
        shape = read_shape(depth, width, key)
        return cls(*shape, counted(values, counts, shape, signed=cls.signed))

    def add(self, values: Iterable[Any], counts: Any = None) -> Self:
        """The same with more rows."""
        shape = self.depth, self.width, self.key
        return replace(self, cells=self.cells + counted(values, counts, shape, signed=self.signed))

    def merge(self, other: Self) -> Self:
        """The sketch of both; noise that is in them adds up."""
        if (self.depth, self.width, self.key) != (other.depth, other.width, other.key):
            raise InputError("Sketches merge if they have the same depth, width and key: make them alike.")
        return replace(self, cells=self.cells + other.cells, noises=self.noises + other.noises)

    def sensitivity(self, part: Contribution = ONE_ROW, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Sensitivity:
        """What one unit moves, of one sketch or of merged ones: `part` bounds its rows in all of them together."""
        return moved_cells(self.depth, part, neighbours, signed=self.signed)

    def noised(
        self,
        spend: Spend,
        *,
        part: Contribution = ONE_ROW,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rng: Random = SYSTEM,
    ) -> Self:
        """The sketch with the least noise that keeps a promise for one unit."""
        return self.with_noise(least_noise(as_promise(spend), self.sensitivity(part, neighbours)), rng)

    def with_noise(self, noise: Noise, rng: Random = SYSTEM) -> Self:
        """The sketch with noise in each cell."""
        return replace(self, cells=np.asarray(noise(self.cells, rng)), noises=(*self.noises, noise))

    def to_arrow(self) -> "pyarrow.Table":
        """All cells."""
        return cell_table(self.cells)

    def chart(self, *, note: str = "") -> "Chart":
        """The largest cells."""
        spread = math.sqrt(sum(noise.variance() for noise in self.noises))
        return cell_chart(self.cells, 2 * spread, title=f"Largest cells of a {self.name}", note=note)

    def __repr__(self) -> str:
        with_noise = "with noise" if self.noises else "exact"
        return f"{type(self).__name__}(depth={self.depth}, width={self.width}, key={self.key}, {with_noise})"


@dataclass(frozen=True, eq=False, repr=False)
class CountMin(Frequencies):
    """Cells of counts under a public hash; `noises` are those that were added to all of its cells.

    >>> sketch = CountMin.of(["oak", "ash"], [900, 40], width=64)
    >>> sketch.estimate(["oak"])["count"].to_pylist()
    [900.0]
    >>> noisy = sketch.noised(1)
    >>> noisy, noisy.merge(noisy).noises == 2 * noisy.noises
    (CountMin(depth=5, width=64, key=0, with noise), True)
    """

    signed = False
    name = "count-min sketch"

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


@dataclass(frozen=True, eq=False, repr=False)
class CountSketch(Frequencies):
    """Cells of signed counts under a public hash; `noises` are those that were added to all of its cells.

    >>> sketch = CountSketch.of(["oak", "ash"], [900, 40], width=64)
    >>> sketch.estimate(["oak"])["count"].to_pylist()
    [900.0]
    >>> noisy = sketch.noised(1)
    >>> noisy, noisy.merge(noisy).noises == 2 * noisy.noises
    (CountSketch(depth=5, width=64, key=0, with noise), True)
    """

    signed = True
    name = "count sketch"

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
