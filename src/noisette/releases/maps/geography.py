"""Released maps for geographic programs: GeoJSON, GeoParquet 1.1, and H3 cells.

Each block of equal cells that is not empty is one feature, a rectangle with n, n_low and n_high. Coordinates are taken
for degrees of longitude and latitude if they can be; a file says that nothing is known about them otherwise.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.releases.maps.contract import Floats

__all__ = ["geojson", "geoparquet", "h3_cells", "wkb_rectangles"]

_CORNERS = ((0, 1), (2, 1), (2, 3), (0, 3), (0, 1))  # counterclockwise, by places in west, south, east, north
_MOST_H3 = 5_000
_FINEST = 15
_DEGREE = 6371.0 * math.pi / 180  # kilometres


def geojson(
    boxes: Floats, numbers: dict[str, Floats], bounds: Sequence[float], path: str | Path | None
) -> dict[str, Any]:
    """A FeatureCollection of rectangles."""
    rings = [[[box[x], box[y]] for x, y in _CORNERS] for box in boxes.tolist()]
    rows = zip(rings, *(column.tolist() for column in numbers.values()), strict=True)
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Polygon", "coordinates": [ring]},
            "properties": dict(zip(numbers, counts, strict=True)),
        }
        for ring, *counts in rows
    ]
    found = {"type": "FeatureCollection", "bbox": list(bounds), "features": features}
    if path is not None:
        Path(path).write_text(json.dumps(found), encoding="utf-8")
    return found


def geoparquet(
    boxes: Floats, numbers: dict[str, Floats], bounds: Sequence[float], path: str | Path, *, degrees: bool
) -> None:
    """A file with the geometries as WKB, and what the columns mean in its metadata."""
    from pyarrow.parquet import write_table

    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Polygon"], "orientation": "counterclockwise"}
    column["bbox"] = list(bounds)
    if not degrees:
        column["crs"] = None  # unknown; without this line readers take longitude and latitude (OGC:CRS84)
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pyarrow.table({"geometry": pyarrow.array(wkb_rectangles(boxes), pyarrow.binary()), **numbers})
    write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)


def wkb_rectangles(boxes: Floats) -> list[bytes]:
    """Rectangles as well-known binary: little endian, type 3 (polygon), one ring of five points.

    >>> wkb_rectangles(np.array([[0.0, 0.0, 1.0, 1.0]]))[0][:13].hex()
    '01030000000100000005000000'
    """
    layout = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("ring", "<f8", (5, 2))])
    found = np.zeros(len(boxes), layout)
    found["order"], found["kind"], found["rings"], found["points"] = 1, 3, 1, 5
    found["ring"] = np.stack([boxes[:, list(corner)] for corner in _CORNERS], axis=1)
    whole_text, size = found.tobytes(), layout.itemsize
    return [whole_text[i : i + size] for i in range(0, len(whole_text), size)]


def h3_cells(bounds: Sequence[float], resolution: int) -> dict[str, list[tuple[float, float]]]:
    """Every H3 cell that overlaps the bounds, by its name, with its corners."""
    try:
        import h3
    except ImportError:
        raise InputError("H3 cells need the package h3: pip install 'noisette[maps]'.") from None
    if whole(resolution, "resolution", least=0) > _FINEST:
        raise InputError(f"resolution must be at most {_FINEST}: 7 has cells of about 5 square kilometres.")
    west, south, east, north = bounds
    area = (east - west) * (north - south) * _DEGREE**2 * math.cos(math.radians((south + north) / 2))
    if area / h3.average_hexagon_area(resolution) > _MOST_H3:
        raise InputError(f"There would be more than {_MOST_H3:,} H3 cells: choose a smaller resolution.")
    shape = h3.LatLngPoly([(south, west), (south, east), (north, east), (north, west)])
    names = sorted(h3.h3shape_to_cells_experimental(shape, resolution, contain="overlap"))
    return {name: [(lon, lat) for lat, lon in h3.cell_to_boundary(name)] for name in names}
