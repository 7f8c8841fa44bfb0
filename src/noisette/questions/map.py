"""Where rows are on a map: one release that goes on answering rectangles and polygons.

Points are binned by the engine, so that only the counts of cells leave it. Strategies are files of `releases/maps`;
`releases/maps/contract.py` says what they have in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import Number, whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE, Omission
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import GridCells
from noisette.questions.parts.map_cells import bounds_of, listed, map_cells
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows, rows_text
from noisette.releases.maps.catalogue import STRATEGIES, one_cell
from noisette.releases.maps.contract import Strategy
from noisette.releases.maps.regions import MapFrame
from noisette.releases.maps.released_map import ReleasedMap
from noisette.releases.maps.stored import kept_map, map_table

__all__ = ["Map"]

_TAKEN = {"n", "n_low", "n_high"}
_NOWHERE = Omission("Rows without a coordinate are left out.")
_OUTSIDE = Omission("Rows outside the bounds of the map or without a coordinate are left out.")


@dataclass(frozen=True)
class Map(JsonQuestion):
    """How many rows there are in each cell of a map of two columns (`more` for three and more dimensions).

    `answer.value` counts rectangles and polygons, tells densities, subtracts another map, draws itself, and writes
    GeoJSON, GeoParquet and synthetic points. `bounds` are (west, south, east, north), by default those of the policy:
    rows outside, or without a coordinate, are left out. `cells` are how many there are along each axis, or a number for
    each. `strategy` says how cells are measured.

    >>> Map("lon", "lat", cells=64)
    Map(x='lon', y='lat', bounds=None, cells=64, of=None, strategy='adaptive', more=())
    """

    x: str
    y: str
    bounds: Sequence[Number] | None = None
    cells: int | Sequence[int] | None = None
    of: Rows = None
    strategy: str = "adaptive"
    more: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, value in (("x", self.x), ("y", self.y), *(("each of more", one) for one in listed(self.more))):
            if not isinstance(value, str) or not value:
                raise InputError(f'{name} must be a text, such as "lon" or "FLOOR(age / 10)".')
        object.__setattr__(self, "more", tuple(self.more))
        object.__setattr__(self, "of", rows_text(self.of))
        if len(set(self.columns)) < len(self.columns) or not _TAKEN.isdisjoint(self.columns):
            raise InputError("A map needs different columns, none of them called n, n_low or n_high.")
        if not isinstance(self.strategy, str) or self.strategy not in STRATEGIES:
            raise InputError(f"strategy must be one of {', '.join(STRATEGIES)}.")
        object.__setattr__(self, "bounds", bounds_of(self.bounds, self.columns))
        object.__setattr__(self, "cells", self._cells())

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return (self.x, self.y, *self.more)

    def _cells(self) -> int | tuple[int, ...] | None:
        if self.cells is None or hasattr(self.cells, "__index__"):
            return None if self.cells is None else whole(self.cells, "cells")  # type: ignore[arg-type]
        if len(listed(self.cells)) != len(self.columns):
            raise InputError("cells must be a whole number, or one for each column: cells=(256, 128).")
        return tuple(whole(one, "each of cells") for one in self.cells)

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Bin the points, and measure the cells as the strategy says."""
        cells = map_cells(self.columns, self.bounds, self.cells, self.of, schema)  # type: ignore[arg-type]
        frame = MapFrame(cells.axes)
        made = STRATEGIES[self.strategy].calibrated(
            spend, shape=frame.shape, rows=cells.prepared.part.total, neighbours=neighbours
        )
        procedure = Mapped(cells, made, level, self.strategy, one_cell(spend, made.moved, level))
        shape = " x ".join(map(str, frame.shape))
        return about(
            cells.prepared,
            procedure,
            text=text_of("map", cells.prepared, cells=shape, by=self.strategy),
            why=STRATEGIES[self.strategy].why,
            guarantee=made.guarantee(),
            parts=[recorded(mechanism, Measure("rows"), moved) for mechanism, moved in made.parts],
            covers=NOISE,
            omitted=[_NOWHERE if self.bounds is None else _OUTSIDE],
            value=procedure.map,
        )


@dataclass(frozen=True)
class Mapped(Procedure):
    """Released numbers of a strategy, in the order they were drawn; all else follows from them."""

    cells: GridCells
    made: Strategy
    level: float
    by: str
    error: float
    read: list[tuple[pyarrow.Table, ReleasedMap]] = field(default_factory=list, compare=False, repr=False)

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.cells.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all cells."""
        return self.made.moved

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of one cell if each had noise of its own."""
        note = "the error is that of one cell with noise of its own; most cells and rectangles err less (docs/maps.md)"
        moved = f"rows: {float(self.made.moved.l1):.6g}"
        return [(Expected("n", f"{self.by} map", moved, self.error, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and measure."""
        return map_table(self.made, self.made.measure(self.cells.dense(source, schema, secret), rng))

    def map(self, drawn: pyarrow.Table) -> ReleasedMap:
        """What goes on answering; the last one is kept, since an answer's table and its value are the same map."""
        for known, found in self.read:
            if known is drawn:
                return found
        made, released = kept_map(drawn)
        found = ReleasedMap(MapFrame(self.cells.axes), made.read(released), self.level)
        self.read[:] = [(drawn, found)]
        return found

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each block of cells."""
        return [self.map(drawn).columns()]


examples = [
    Map("age", "cost", cells=32),
    Map("age", "cost", bounds=(18, 0, 65, 1000), cells=(16, 10), of="SELECT * FROM visits WHERE ward = 'emergency'"),
    Map("age", "cost", cells=16, strategy="hybrid"),
]
