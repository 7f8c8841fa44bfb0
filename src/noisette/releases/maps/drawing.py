"""Maps as pictures: at most 128 blocks along each of the first two axes, summed over all others."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from noisette.charts import Chart, heat, heats
from noisette.charts.heat import Cells
from noisette.releases.maps.blocks import Blocks, uniform_blocks
from noisette.releases.maps.contract import Ends, Floats
from noisette.releases.maps.regions import MapFrame, polygons_of

__all__ = ["beside", "drawn"]

Measured: TypeAlias = Callable[[Blocks], tuple[Floats, Ends]]

_MOST, _SMALL = 128, 64


def drawn(frame: MapFrame, measured: Measured, outline: Any, title: str, note: str, *, signed: bool = False) -> Chart:
    """The picture of what is measured in each block; an outline is a polygon that is drawn on top."""
    rings = [] if outline is None else [ring for rings in polygons_of(outline) for ring in rings]
    names, degrees = frame.names[:2], frame.geographic
    cells = _cells(frame, measured, _MOST)
    return heat(*cells, names=names, degrees=degrees, outline=rings, signed=signed, title=title, note=note)


def beside(maps: Mapping[str, Any], *, columns: int = 3, title: str = "", note: str = "") -> Chart:
    """Several maps of the same cells in one picture, with the same colours; an array is drawn as exact counts."""
    known = next(one for one in maps.values() if hasattr(one, "frame"))
    panels = {name: _cells(known.frame, _exact(one), _SMALL) for name, one in maps.items()}
    return heats(panels, columns=columns, degrees=known.frame.geographic, title=title, note=note)


def _cells(frame: MapFrame, measured: Measured, most: int) -> Cells:
    low, high = blocks = uniform_blocks(frame.shape, (most, most) + (1,) * (len(frame.axes) - 2))
    value, (below, above) = measured(blocks)
    first, last = ((frame.first + ends * frame.width)[:, :2] for ends in (low, high))
    return first, last, value, np.maximum(value - below, above - value)


def _exact(one: Any) -> Measured:
    """How a map, or an array of exact counts, measures blocks."""
    if hasattr(one, "measured"):
        return one.measured  # type: ignore[no-any-return]

    def sums(blocks: Blocks) -> tuple[Floats, Ends]:
        boxes = [tuple(map(slice, a, b)) for a, b in zip(*(ends.astype(int).tolist() for ends in blocks), strict=True)]
        value = np.array([one[box].sum() for box in boxes], float)
        return value, (value, value)

    return sums
