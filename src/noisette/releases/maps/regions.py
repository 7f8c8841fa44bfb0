"""Rectangles and polygons on the cells of a map: how much of each cell lies inside.

Vocabulary: a *frame* says where the cells lie · a `part` from 0 to 1 of each cell, an array with an axis for each axis
of the map · an *edge* of a polygon is cut at every line between cells, so that each *piece* lies in one cell.

The part of a cell in a polygon is exact up to rounding: a piece from (x0, y0) to (x1, y1) adds y1 - y0 times its
distance to the right side of its cell, and y1 - y0 to all cells further right. Over a closed ring this is the area in
each cell (Green's theorem). So the work grows with the number of cells that the boundary crosses.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.releases.axis import Axis

__all__ = ["MapFrame", "polygon_part"]

Floats: TypeAlias = NDArray[np.float64]
Ring: TypeAlias = Floats
"""Corners in order, a row each; the last one is joined to the first."""

_RECTANGLE = "A rectangle of this map is {}: count(({}))."
_POLYGON = "A polygon is a list of at least three points, or GeoJSON: [(8.5, 47.3), (8.6, 47.3), (8.6, 47.4)]."


@dataclass(frozen=True)
class MapFrame:
    """Where the cells of a map lie, axis by axis.

    >>> from noisette.query.kind import Kind
    >>> MapFrame((Axis("x", Kind("real"), 4), Axis("y", Kind("real"), 2))).bounds
    (0.0, 0.0, 4.0, 2.0)
    """

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """What the axes are called."""
        return tuple(axis.name for axis in self.axes)

    @property
    def first(self) -> Floats:
        """The low end of each axis."""
        return np.array([float(axis.first) for axis in self.axes])

    @property
    def width(self) -> Floats:
        """How far a cell reaches along each axis."""
        return np.array([float(axis.width) for axis in self.axes])

    @property
    def bounds(self) -> tuple[float, ...]:
        """The low ends of all axes, then the high ends: west, south, east, north."""
        high = (float(axis.first + axis.cells * axis.width) for axis in self.axes)
        return (*self.first.tolist(), *high)

    @property
    def area(self) -> float:
        """The area (or volume) of one cell in the units of the columns."""
        return float(math.prod((axis.width for axis in self.axes), start=Fraction(1)))

    @property
    def geographic(self) -> bool:
        """Whether the axes are degrees of longitude and latitude, by their names and bounds."""
        if len(self.axes) != 2:
            return False
        (x, y), (west, south, east, north) = (name.lower() for name in self.names), self.bounds
        named = ("lon" in x or "lng" in x) and "lat" in y
        return named and -180 <= west <= east <= 180 and -90 <= south <= north <= 90

    def corners(self, low: Floats) -> dict[str, Floats]:
        """The low corners of blocks as columns, each the float nearest to it."""
        found = {}
        for i, axis in enumerate(self.axes):
            cells, place = np.unique(low[:, i], return_inverse=True)
            found[axis.name] = np.array([float(axis.first + int(cell) * axis.width) for cell in cells])[place]
        return found

    # Rectangles

    def edges(self, rectangles: Any) -> tuple[Floats, Floats]:
        """The edges of rectangles in cells, without what lies beyond the map; something of each lies on it."""
        many = len(self.axes)
        given = _numbers(rectangles)
        if given is None or given.ndim != 2 or given.shape[1] != 2 * many:
            raise InputError(_RECTANGLE.format(*self._example()))
        if not (given[:, :many] <= given[:, many:]).all():
            raise InputError(self._reversed())
        if not (given[:, :many] < given[:, many:]).all():
            raise InputError(
                "This rectangle has no area, so nothing is in it: let its low ends be below its high ends."
            )
        low, high = ((given[:, part] - self.first) / self.width for part in (slice(many), slice(many, None)))
        first, last = (np.clip(edge, 0.0, np.array(self.shape, float)) for edge in (low, high))
        if not (first < last).all():
            raise InputError(self._elsewhere("rectangle"))
        return first, last

    def _example(self) -> tuple[str, str]:
        ends = [f"{name}_{end}" for end in ("low", "high") for name in ("x", "y", "z", "t", "u", "v")[: len(self.axes)]]
        words = "(west, south, east, north)" if len(self.axes) == 2 else "the low ends of all axes, then the high ones"
        return words, ", ".join(("west", "south", "east", "north") if len(self.axes) == 2 else ends)

    def _elsewhere(self, region: str) -> str:
        """What lies beside the map has no count: 0 would look certain, and the ends may only be in another order."""
        ends = ", ".join(f"{end:.6g}" for end in self.bounds)
        return f"This {region} lies outside of the map, which is {self._example()[0]} = ({ends})."

    def _reversed(self) -> str:
        if self.geographic:
            return "A rectangle goes from west to east and south to north: one across the date line is the sum of two."
        return "A rectangle goes from its low ends to its high ends: (west, south, east, north)."

    def cell(self, point: Any) -> tuple[int, ...]:
        """The cell in which a point lies."""
        at = _numbers([point])
        if at is None or at.shape != (1, len(self.axes)):
            raise InputError(f"A point of this map is {len(self.axes)} numbers: ({', '.join(self.names)}).")
        place = (at[0] - self.first) / self.width
        if not ((place >= 0) & (place <= self.shape)).all():
            raise InputError("This point lies outside the map: choose one within its bounds.")
        return tuple(np.minimum(place, np.array(self.shape) - 1).astype(int).tolist())

    def part(self, polygon: Any) -> Floats:
        """How much of each cell lies in a polygon, of which something lies on the map."""
        found = self.covered(polygon)
        if not found.any():
            raise InputError(self._elsewhere("polygon"))
        return found

    def covered(self, polygon: Any) -> Floats:
        """How much of each cell lies in a polygon: 0 where that lies elsewhere."""
        if len(self.axes) != 2:
            raise InputError("Polygons are drawn on maps of two columns: count a box of low ends and high ends.")
        found = np.zeros(self.shape)
        for rings in _checked(list(polygons_of(polygon))):
            found += polygon_part([(ring - self.first) / self.width for ring in rings], self.shape)
        return np.clip(found, 0.0, 1.0)


def _numbers(given: Any) -> Floats | None:
    """An array of finite numbers, or None."""
    try:
        found = np.asarray(given, float)
    except (TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None


# Polygons


def polygons_of(given: Any) -> Iterator[list[Ring]]:
    """The polygons of a list of points, of GeoJSON, or of what has `__geo_interface__`: outer ring, then holes."""
    if hasattr(given, "__geo_interface__"):
        given = given.__geo_interface__
    if not isinstance(given, dict):
        yield [_ring(given)]
        return
    kind, inside = given.get("type"), given.get("coordinates")
    match kind:
        case "Feature":
            yield from polygons_of(given.get("geometry"))
        case "FeatureCollection" | "GeometryCollection":
            for one in given.get("features") or given.get("geometries") or ():
                yield from polygons_of(one)
        case "Polygon" | "MultiPolygon" if inside:
            for rings in [inside] if kind == "Polygon" else inside:
                yield [_ring(ring) for ring in rings]
        case _:
            raise InputError(_POLYGON)


def _ring(points: Any) -> Ring:
    found = _numbers(list(points) if isinstance(points, Sequence | np.ndarray) else None)
    if found is None or found.ndim != 2 or found.shape[1] not in (2, 3) or len(found) < 3:
        raise InputError(_POLYGON)
    return found[:, :2]


def _checked(polygons: list[list[Ring]]) -> list[list[Ring]]:
    """Refuse polygons that cross themselves, each other, or have no area."""
    shapely = _shapely()
    made = [shapely.Polygon(rings[0], rings[1:]) for rings in polygons]
    if not made:
        raise InputError(_POLYGON)
    whole = shapely.MultiPolygon(made) if len(made) > 1 else made[0]
    if not all(one.is_valid for one in made):
        raise InputError("This polygon crosses or touches itself: name its corners in order, or split it.")
    if not whole.is_valid:
        raise InputError("These polygons overlap: count their union, such as shapely.union_all(polygons).")
    return polygons


def _shapely() -> Any:
    try:
        import shapely
    except ImportError:
        raise InputError("Polygons need shapely: pip install 'noisette[maps]'.") from None
    return shapely


def polygon_part(rings: Sequence[Ring], shape: tuple[int, ...]) -> Floats:
    """How much of each cell lies in a polygon whose corners are given in cells: its outer ring, then its holes.

    >>> polygon_part([np.array([(0, 0), (2, 0), (0, 2)], float)], (2, 2))
    array([[1. , 0.5],
           [0.5, 0. ]])
    """
    across, up = shape
    found = np.zeros((across + 1, up))
    start, end = (np.concatenate(parts) for parts in zip(*map(_edges, _oriented(rings)), strict=True))
    (x0, y0), (x1, y1) = _pieces(start, end, shape)
    column, row = ((x0 + x1) / 2).astype(int), ((y0 + y1) / 2).astype(int)
    right = np.minimum(column + 1, across)
    inside = right - (x0 + x1) / 2
    np.add.at(found, (column, row), (y1 - y0) * inside)
    np.add.at(found, (right, row), (y1 - y0) * (1 - inside))
    return np.clip(0.0 - np.cumsum(found, axis=0)[:-1], 0.0, 1.0)


def _oriented(rings: Sequence[Ring]) -> Iterator[Ring]:
    """The outer ring counterclockwise, holes clockwise."""
    for i, ring in enumerate(rings):
        x, y = ring.T
        twice = float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())
        yield ring if (twice > 0) == (i == 0) else ring[::-1]


def _edges(ring: Ring) -> tuple[Floats, Floats]:
    return ring, np.roll(ring, -1, axis=0)


def _pieces(start: Floats, end: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The ends of all pieces, as x and y; what lies above or below the map is left out, the rest moved beside it."""
    edge, place = _cuts(start, end, shape)
    same = edge[1:] == edge[:-1]
    of, far = edge[1:][same], (end - start)
    here, there = (start[of] + t[:, None] * far[of] for t in (place[:-1][same], place[1:][same]))
    middle = (here + there)[:, 1] / 2
    kept = (middle > 0) & (middle < shape[1])
    for ends in (here, there):
        ends[:, 0] = np.clip(ends[:, 0], 0, shape[0])
    return here[kept].T, there[kept].T


def _cuts(start: Floats, end: Floats, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], Floats]:
    """Where edges are cut, in order: the edge, and how far along it, from 0 to 1."""
    many = np.arange(len(start))
    which, at = [many, many], [np.zeros(len(many)), np.ones(len(many))]
    for axis in (0, 1):
        here, far = start[:, axis], (end - start)[:, axis]
        low, high = np.minimum(here, end[:, axis]), np.maximum(here, end[:, axis])
        first = np.clip(np.ceil(low), 0, shape[axis] + 1).astype(np.int64)
        last = np.clip(np.floor(high), -1, shape[axis]).astype(np.int64)
        lines = np.where(far == 0, 0, np.maximum(last + 1 - first, 0))
        edge = np.repeat(many, lines)
        line = first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(lines) - lines, lines)
        which.append(edge)
        at.append(np.clip((line - here[edge]) / far[edge], 0.0, 1.0))
    edges, places = np.concatenate(which), np.concatenate(at)
    order = np.lexsort((places, edges))
    return edges[order], places[order]
