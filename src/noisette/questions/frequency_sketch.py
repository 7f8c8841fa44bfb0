"""A count sketch of a column: how many rows any value has, asked at any time later, for one pure epsilon.

The values need not be known: they are hashed into a fixed number of cells, and all cells get noise and are released
(`releases.sketches.frequencies`). So nothing shows which values there are, and no delta is needed.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.records import changed, grouped
from noisette.questions.parts.rows import Rows
from noisette.releases.linear import Noise
from noisette.releases.sketches.cells import cell_table, moved_cells, read_shape
from noisette.releases.sketches.frequencies import CountSketch
from noisette.releases.sketches.noise import least_noise

__all__ = ["FrequencySketch"]

_COVERS = f"{NOISE}, not which values share a cell"
_WHY = "All cells are released, whichever values there are: a row adds 1 or -1 to one cell in each of {0} rows."


@dataclass(frozen=True)
class FrequencySketch(JsonQuestion):
    """A sketch of how many rows each value of a column (or an expression) has, `depth` rows of `width` cells.

    The answer's `value.estimate(["influenza", "asthma"])` gives the numbers of rows of any values at no further cost,
    with error bars that cover both noise and values that share a cell. Sketches with the same depth, width and `key` of
    the hash merge.

    >>> FrequencySketch("diagnosis")
    FrequencySketch(column='diagnosis', of=None, width=1024, depth=5, key=0)
    """

    column: str
    of: Rows = None
    width: int = 1024
    depth: int = 5
    key: int = 0

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Count rows in cells, with noise."""
        shape = read_shape(self.depth, self.width, self.key)
        prepared = grouped(self.of, [self.column], schema)
        moved = moved_cells(self.depth, prepared.part, neighbours, signed=True)
        noise = least_noise(spend, moved)
        procedure = Sketching(prepared, changed(prepared, neighbours), shape, noise, level)
        return about(
            prepared,
            procedure,
            text=text_of("frequency sketch", prepared, depth=self.depth, width=self.width, key=self.key),
            why=_WHY.format(self.depth),
            guarantee=noise.guarantee(moved),
            parts=[recorded(noise, Measure("rows"), moved)],
            covers=_COVERS,
            value=procedure.value,
        )


@dataclass(frozen=True)
class Sketching:
    """A sketch that would be drawn; `sensitivity` is how many rows of the table one unit can change."""

    prepared: Prepared
    sensitivity: Sensitivity
    shape: tuple[int, int, int]
    noise: Noise
    level: float

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The noise of a cell; what collides in it depends on the data."""
        depth, width, _ = self.shape
        kind = type(self.noise).__name__.replace("Geometric", "Laplace")
        half, rows = self.noise.interval(self.level), self.prepared.part.total
        note = f"a cell holds about one {width:,}th of all values besides, with signs that mostly cancel"
        name = f"{kind} noise on {depth * width:,} cells"
        return [(Expected("count", name, f"rows: {rows:,} in each of {depth} rows of cells", half, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows of each value, hash them into cells and add noise."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        assert exact.keys is not None
        depth, width, key = self.shape
        values = exact.keys.column(0).to_pylist()
        sketch = CountSketch.of(values, exact.measures[0], depth=depth, width=width, key=key)
        return cell_table(sketch.with_noise(self.noise, rng).cells)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """All cells with the error bar of their noise."""
        places = [Column(name, drawn.column(name).combine_chunks()) for name in ("row", "cell")]
        values, half = drawn.column("count").combine_chunks(), self.noise.interval(self.level)
        middle = values.to_numpy().astype(float)
        return [(*places, Column("count", values, middle - half, middle + half))]

    def value(self, drawn: pyarrow.Table) -> CountSketch:
        """The sketch, which goes on answering."""
        depth, width, key = self.shape
        return CountSketch(depth, width, key, np.asarray(drawn["count"]).reshape(depth, width), (self.noise,))


examples = [
    FrequencySketch("diagnosis"),
    FrequencySketch("cost", of="SELECT * FROM visits WHERE age >= 65", width=64, depth=3, key=7),
]
