"""Points that follow a released map: they are made from released numbers alone, so they reveal nothing more.

The count of each cell, times n over the total, is rounded up or down by systematic sampling: along a curve through all
cells (Morton's order), point k stands where the running total reaches k - u, for one uniform u. So each cell gets its
count rounded up or down, on average exactly its count, and so do runs of neighbouring cells. Inside a cell points are
spread evenly.   [Madow 1949]
"""

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.releases.maps.contract import Floats
from noisette.releases.maps.regions import MapFrame

__all__ = ["points"]

_FINE = 2.0**-53


def points(frame: MapFrame, counts: Floats, n: int | None, rng: Random) -> pyarrow.Table:
    """As many points as asked for, or as were released, with a column for each axis."""
    x = np.maximum(counts, 0.0)
    total = float(x.sum())
    many = round(total) if n is None else whole(n, "n", least=0)
    cells = _placed(x, many if total else 0, float(_uniform(1, rng)[0]))
    within = _uniform(len(cells) * len(frame.axes), rng).reshape(len(cells), len(frame.axes))
    places = frame.first + (np.stack(np.unravel_index(cells, x.shape), axis=1) + within) * frame.width
    return pyarrow.table({name: places[:, i] for i, name in enumerate(frame.names)})


def _placed(x: Floats, many: int, start: float) -> NDArray[np.int64]:
    """The cell of each point."""
    order = np.argsort(_morton(x.shape), kind="stable")
    running = np.cumsum(x.ravel()[order])
    upto = running * (many / running[-1]) if many else running * 0.0
    reached = np.floor(np.minimum(upto, many) + start).astype(np.int64)
    reached[-1] = many
    return np.repeat(order, np.diff(np.minimum(reached, many), prepend=0))


def _morton(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The place of each cell on a curve that visits neighbours soon after each other: bits of its numbers in turn.

    >>> _morton((2, 2)).tolist()
    [0, 2, 1, 3]
    """
    found = np.zeros(shape, np.int64)
    for axis, cells in enumerate(shape):
        at = np.arange(cells).reshape([-1 if axis == i else 1 for i in range(len(shape))])
        for bit in range((cells - 1).bit_length()):
            found |= (at >> bit & 1) << (bit * len(shape) + axis)
    return found.ravel()


def _uniform(count: int, rng: Random) -> Floats:
    return np.asarray((rng.words(count, np.uint64) >> np.uint64(11)) * _FINE, float)
