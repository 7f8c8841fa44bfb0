"""What sketches of cells share: how values are counted in them, what one unit moves, tables and pictures.

A sketch has `depth` rows of `width` cells. A value falls into one cell of each row, by a public hash, and adds its
number of rows there, in a count sketch with a sign.

**Sensitivity.** A unit with at most k rows adds at most k to each row of the sketch, and all of it to one cell if its
values are equal or collide: t k in l1 and t k^2 in squared l2, for t rows and for every hash. Under replace another
unit's rows come as well: cells that both fill move less than that, or in a count sketch, where signs differ, both move
the same cell, so squares add (2 t k^2), or fourfold (4 t k^2) with signs.

**Merging** adds cells. Noise that is added once after merging exact sketches is that of one sketch, if k bounds the
rows of a unit in all parties together. Noise that each party adds before keeps each party's promise without trust in a
merger, and the variances add up.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.linear import placed
from noisette.releases.sketches.hashing import buckets, fingerprints, signs

if TYPE_CHECKING:
    import pyarrow

    from noisette.charts import Chart

__all__ = ["cell_chart", "cell_table", "contents", "counted", "estimates", "moved_cells", "read_shape"]

Cells = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CELLS = 2**24
_LARGEST_KEY = 2**128 - 1


def read_shape(depth: Any, width: Any, key: Any) -> tuple[int, int, int]:
    """The rows, the cells of a row and the key of the hash, if they can be those of a sketch."""
    t, w, k = whole(depth, "depth"), whole(width, "width", least=2), whole(key, "key", least=0)
    if t % 2 == 0:
        raise InputError("depth must be odd, so that there is a row in the middle: 5 is usual.")
    if t * w > MOST_CELLS or k > _LARGEST_KEY:
        raise InputError(f"depth times width must be at most {MOST_CELLS:,}, and key below 2^128.")
    return t, w, k


def counted(values: Any, counts: Any, shape: tuple[int, int, int], *, signed: bool) -> Cells:
    """The cells of some values, each with its number of rows."""
    depth, width, key = shape
    prints = fingerprints(values, key)
    rows = np.ones(prints.size, np.int64) if counts is None else np.asarray(counts)
    if rows.shape != prints.shape or rows.dtype.kind not in "iu":
        raise InputError("There must be one whole number of rows for each value.")
    cells = np.zeros((depth, width), np.int64)
    for row in range(depth):
        number = rows * signs(prints, row) if signed else rows
        np.add.at(cells[row], buckets(prints, row, width), number)
    return cells


def contents(keys: Any, cells: Any, key: int, *, signed: bool) -> Floats:
    """What the cells of each key hold, a line for each row of the sketch."""
    prints, (depth, width) = fingerprints(keys, key), cells.shape
    found = [
        np.asarray(cells[row][buckets(prints, row, width)], float) * (signs(prints, row) if signed else 1)
        for row in range(depth)
    ]
    return np.asarray(found)


def moved_cells(depth: int, part: Contribution, neighbours: Neighbours, *, signed: bool) -> Sensitivity:
    """How far one unit can move all cells, at most over all values and all hashes.

    >>> moved_cells(5, Contribution(1, 3, 3), Neighbours.ADD_REMOVE, signed=True)
    Sensitivity(l1='15', l2_squared='45', linf='3', l0=15, neighbours=ADD_REMOVE)
    """
    one = placed(part, part.groups, neighbours, signed=signed)
    touched = part.total * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    return Sensitivity(depth * one.l1, depth * one.l2_squared, one.linf, depth * touched, neighbours=neighbours)


# Answers


def estimates(keys: Any, value: Floats, low: Floats, high: Floats) -> "pyarrow.Table":
    """Numbers with their error bars, by key."""
    import pyarrow

    return pyarrow.table({"key": pyarrow.array(list(keys)), "count": value, "count_low": low, "count_high": high})


def cell_table(cells: Any) -> "pyarrow.Table":
    """All cells, by row of the sketch."""
    import pyarrow

    depth, width = cells.shape
    places = {"row": np.repeat(np.arange(depth), width), "cell": np.tile(np.arange(width), depth)}
    return pyarrow.table({**places, "count": pyarrow.array(np.asarray(cells).ravel().astype(np.int64))})


def cell_chart(cells: Any, half: float, *, title: str, note: str) -> "Chart":
    """The largest cells of the first row, with what noise may be in them: how far they stand out of the others."""
    from noisette.charts import bars

    first = np.asarray(cells[0], float)
    order = np.argsort(-np.abs(first), kind="stable")[:30]
    values = first[order]
    number = values.tolist(), (values - half).tolist(), (values + half).tolist()
    return bars([f"cell {at}" for at in order], {"count": number}, title=title, note=note)
