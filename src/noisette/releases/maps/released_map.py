"""A map that was released once: rectangles, polygons, densities, differences and pictures of it at no further cost.

Vocabulary: `frame` where the cells lie · `fit` what was released, with bars for rectangles of cells · a *rectangle* is
(west, south, east, north), or of more axes the low ends and then the high ends · a *block* is a rectangle of cells.
A cell that a rectangle or polygon holds in part counts with that part: inside a cell nothing is known.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.answers.column import added_ends
from noisette.errors import InputError
from noisette.exact.number import level_of, whole
from noisette.exact.random import SYSTEM, Random
from noisette.releases.line import Interval
from noisette.releases.maps.blocks import Blocks, even_blocks, single_cells, uniform_blocks
from noisette.releases.maps.contract import Ends, Fit, Floats
from noisette.releases.maps.regions import MapFrame

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["MapDifference", "ReleasedMap"]

_LISTED = 256  # blocks of the answer's table


@dataclass(frozen=True, repr=False)
class ReleasedMap:
    """Counts of the cells of a map. Every rectangle and polygon is answered from the same release, with an error bar.

    Bars hold whatever the data, for each answer alone; with `among=m` they hold for m answers at once. Those of
    `guaranteed=False` are shorter and may fail where counts are uneven inside what was not divided. What lies outside
    the map is not counted, and a region that is nowhere on it is refused.
    """

    frame: MapFrame
    fit: Fit
    level: float

    @property
    def x(self) -> Floats:
        """The released count of each cell, an array with an axis for each axis of the map."""
        return self.fit.x

    @property
    def bounds(self) -> tuple[float, ...]:
        """West, south, east and north of the map."""
        return self.frame.bounds

    # Counts

    def count(
        self, region: Any = None, *, level: float | None = None, guaranteed: bool = True, among: int = 1
    ) -> Interval:
        """How many there are in a rectangle or a polygon; of all of the map, if none is named.

        A polygon is a list of points, GeoJSON, or anything with `__geo_interface__`; it needs the extra `maps`.
        """
        if not is_polygon(region):
            rectangles = [self.bounds if region is None else region]
            return self.counts(rectangles, level=level, guaranteed=guaranteed, among=among)[0]
        return self._within(self.frame.part(region), level, guaranteed=guaranteed, among=among)

    def _within(self, part: Floats, level: float | None, *, guaranteed: bool = True, among: int = 1) -> Interval:
        value, low, high = self.fit.region(part, self._each(level, among), guaranteed=guaranteed)
        return Interval(value, min(low, value), max(high, value))

    def counts(
        self, rectangles: Any, *, level: float | None = None, guaranteed: bool = True, among: int = 1
    ) -> list[Interval]:
        """The same for many rectangles at once."""
        low, high = self.frame.edges(rectangles)
        value, ends = self.found(low, high, level, guaranteed=guaranteed, among=among)
        return list(map(Interval, value.tolist(), ends[0].tolist(), ends[1].tolist()))

    def found(
        self, low: Floats, high: Floats, level: float | None = None, *, guaranteed: bool = True, among: int = 1
    ) -> tuple[Floats, Ends]:
        """The counts of rectangles, given by their edges in cells, and the ends of error bars that reach to them."""
        value, each = self.fit.counts(low, high), self._each(level, among)
        below, above = (self.fit.guaranteed if guaranteed else self.fit.bars)(low, high, each)
        return value, added_ends(value, (below, above))

    def _each(self, level: float | None, among: int) -> float:
        known = self.level if level is None else level_of(level)
        return 1 - (1 - known) / whole(among, "among")

    @property
    def total(self) -> Interval:
        """How many there are on the map."""
        return self.count()

    def density(self, point: Any, *, level: float | None = None, guaranteed: bool = True, among: int = 1) -> Interval:
        """How many there are for each unit of area about a point: the count of its cell over the cell's area.

        Areas are in the units of the columns, such as square degrees.
        """
        low = np.array([self.frame.cell(point)], float)
        [value], ends = self.found(low, low + 1, level, guaranteed=guaranteed, among=among)
        return Interval(*(float(number) / self.frame.area for number in (value, *(end[0] for end in ends))))

    def __sub__(self, other: "ReleasedMap") -> "MapDifference":
        """How many more there are here than on another map of the same cells, such as that of last month."""
        if not isinstance(other, ReleasedMap):
            return NotImplemented
        return MapDifference(self, other)

    # Tables

    def measured(self, blocks: Blocks, *, among: int = 1) -> tuple[Floats, Ends]:
        """The counts of blocks, and the ends of their error bars."""
        return self.found(*blocks, among=among)

    def columns(self) -> tuple[Column, ...]:
        """Blocks of cells with their counts and error bars, about 256 at most, as columns of an answer."""
        blocks = uniform_blocks(self.frame.shape, max(1, round(_LISTED ** (1 / len(self.frame.axes)))))
        value, ends = self.measured(blocks)
        keys = self.frame.corners(blocks[0]).items()
        return (
            *(Column(name, pyarrow.array(values)) for name, values in keys),
            Column("n", pyarrow.array(value), *ends),
        )

    def listed(self, blocks: Blocks, measured: Callable[[Blocks], tuple[Floats, Ends]]) -> pyarrow.Table:
        """Blocks by their low corners, with what is measured in them."""
        value, (low, high) = measured(blocks)
        return pyarrow.table({**self.frame.corners(blocks[0]), "n": value, "n_low": low, "n_high": high})

    def to_arrow(self) -> pyarrow.Table:
        """Every cell, by its low corner, with its count and error bar."""
        return self.listed(single_cells(self.frame.shape), self.measured)

    def to_geojson(self, path: str | Path | None = None) -> dict[str, Any]:
        """A feature for each block of equal cells that is not empty, with n, n_low and n_high; with a path, a file."""
        from noisette.releases.maps.geography import geojson

        return geojson(*self._features(), self.bounds, path)

    def to_geoparquet(self, path: str | Path) -> None:
        """Write the same blocks as a GeoParquet file (version 1.1, geometries as WKB)."""
        from noisette.releases.maps.geography import geoparquet

        geoparquet(*self._features(), self.bounds, path, degrees=self.frame.geographic)

    def _features(self) -> tuple[Floats, dict[str, Floats]]:
        """West, south, east and north of each block of equal cells, and its numbers."""
        if len(self.frame.axes) != 2:
            raise InputError("Geographic files hold maps of two columns: use to_arrow() for more.")
        blocks = even_blocks(self.x)
        value, (low, high) = self.measured(blocks)
        corners = [column for ends in blocks for column in self.frame.corners(ends).values()]
        return np.stack(corners, axis=1), {"n": value, "n_low": low, "n_high": high}

    def to_h3(self, resolution: int) -> pyarrow.Table:
        """The count of each H3 cell that touches the map, with its error bar; needs the extra `maps`."""
        from noisette.releases.maps.geography import h3_cells

        if not self.frame.geographic:
            raise InputError("H3 cells need degrees: name the columns lon and lat, such as Map('lon', 'lat').")
        cells = h3_cells(self.bounds, resolution)
        found = [self._within(self.frame.covered(ring), None) for ring in cells.values()]
        columns = {"n": [n.value for n in found], "n_low": [n.low for n in found], "n_high": [n.high for n in found]}
        return pyarrow.table({"h3": list(cells), **columns})

    def synthetic_points(self, n: int | None = None, *, rng: Random = SYSTEM) -> pyarrow.Table:
        """Points that follow the released counts, spread evenly inside cells; n is the released total by default."""
        from noisette.releases.maps.points import points

        return points(self.frame, self.x, n, rng)

    # Pictures

    def chart(self, *, outline: Any = None, title: str = "", note: str = "") -> "Chart":
        """A heat map: darker where there are more, faded where the error bar exceeds the count.

        Of many cells, blocks are drawn, at most 128 along an axis; their sums are exact and free. An `outline` is a
        polygon that is drawn on top.
        """
        from noisette.releases.maps.drawing import drawn

        return drawn(self.frame, self.measured, outline, title or f"Map of {' and '.join(self.frame.names)}", note)

    plot = chart

    def __repr__(self) -> str:
        cells = " × ".join(f"{cells:,}" for cells in self.frame.shape)
        return f"{cells} cells of {', '.join(self.frame.names)}, {self.total} rows in all"


@dataclass(frozen=True, repr=False)
class MapDifference:
    """How many more there are on one map than on another.

    The bar of a difference goes from the low end of one less the high end of the other to the opposite; each map may
    miss with half of what the level allows (Bonferroni), so nothing is assumed about how their noise goes together.
    """

    one: ReleasedMap
    other: ReleasedMap

    def __post_init__(self) -> None:
        places = [[(axis.first, axis.width, axis.cells) for axis in each.frame.axes] for each in (self.one, self.other)]
        if places[0] != places[1]:
            raise InputError("Maps are subtracted cell by cell: ask both with the same bounds and cells.")

    @property
    def x(self) -> Floats:
        """The difference of each cell."""
        return self.one.x - self.other.x

    def count(
        self, region: Any = None, *, level: float | None = None, guaranteed: bool = True, among: int = 1
    ) -> Interval:
        """How many more there are in a rectangle or a polygon; on all of the map, if none is named."""
        given: dict[str, Any] = {"level": level, "guaranteed": guaranteed, "among": 2 * among}
        return _less(self.one.count(region, **given), self.other.count(region, **given))

    def counts(
        self, rectangles: Any, *, level: float | None = None, guaranteed: bool = True, among: int = 1
    ) -> list[Interval]:
        """The same for many rectangles at once."""
        given: dict[str, Any] = {"level": level, "guaranteed": guaranteed, "among": 2 * among}
        pairs = zip(self.one.counts(rectangles, **given), self.other.counts(rectangles, **given), strict=True)
        return [_less(a, b) for a, b in pairs]

    @property
    def total(self) -> Interval:
        """How many more there are on the one map."""
        return self.count()

    def measured(self, blocks: Blocks) -> tuple[Floats, Ends]:
        """The differences of blocks, and the ends of their error bars."""
        (a, (a_low, a_high)), (b, (b_low, b_high)) = (each.measured(blocks, among=2) for each in (self.one, self.other))
        return a - b, (a_low - b_high, a_high - b_low)

    def to_arrow(self) -> pyarrow.Table:
        """Every cell, by its low corner, with its difference and error bar."""
        return self.one.listed(single_cells(self.one.frame.shape), self.measured)

    def chart(self, *, outline: Any = None, title: str = "", note: str = "") -> "Chart":
        """A heat map with two colours: where there are more, and where there are fewer; faded where nobody can say."""
        from noisette.releases.maps.drawing import drawn

        return drawn(self.one.frame, self.measured, outline, title or "Difference of two maps", note, signed=True)

    plot = chart

    def __repr__(self) -> str:
        return f"difference of two maps of {' × '.join(map(str, self.one.frame.shape))} cells, {self.total} rows in all"


def _less(a: Interval, b: Interval) -> Interval:
    return Interval(a.value - b.value, a.low - b.high, a.high - b.low)


def is_polygon(region: Any) -> bool:
    """Whether a region is a polygon: GeoJSON, what has `__geo_interface__`, or a list of points."""
    if isinstance(region, dict) or hasattr(region, "__geo_interface__"):
        return True
    return isinstance(region, Iterable) and any(np.ndim(one) for one in region)
