"""Who is nearest to a place: where the rank score answers, and where minus the distance does, on a made-up town."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.spatial.nearest_place import NearestPlace

__all__ = ["good", "laws", "town"]

Floats = NDArray[np.float64]
_DISTRICTS = (*((70, 42, 12),) * 5, *((28, 20, 7),) * 3, *((97, 62, 6),) * 2)  # x, y, spread; one for a tenth each


def town(people: int = 1000) -> NDArray[np.int64]:
    """Make up where people of a town are: three districts on a grid of 120 x 80 points, the same at every call.

    >>> town().shape, town().max(axis=0).tolist(), town()[:2].tolist()
    ((1000, 2), [112, 77], [[62, 38], [79, 53]])
    """
    i = np.arange(1, people + 1)
    u, v = i * 0.7548776662466927 % 1, i * 0.5698402909980532 % 1  # spread evenly over a square
    x, y, spread = np.array(_DISTRICTS)[i * len(_DISTRICTS) // (people + 1)].T
    far = spread * np.sqrt(-2 * np.log(u))
    where = np.column_stack([x + far * np.cos(2 * np.pi * v), y + far * np.sin(2 * np.pi * v)])
    return np.asarray(np.clip(np.rint(where), 0, (119, 79)).astype(np.int64))


def laws(m: NearestPlace, people: Any) -> tuple[Floats, Floats]:
    """P(each point), in rows, by a mechanism, and at the same epsilon by the score "minus the distance".

    That is the distance from the k-th nearest person, who may be anywhere if one person moves: its sensitivity is the
    diameter of the grid.
    """
    x, y = _grid(m)
    ours = np.array(list(m.outcomes(people).values())).reshape(x.shape)
    diameter = math.isqrt((m.columns[1] - m.columns[0]) ** 2 + (m.rows[1] - m.rows[0]) ** 2)
    other = Exponential.calibrated(m.guarantee(1), diameter, candidates=x.size)
    kth = _kth(m, np.asarray(people))
    scores = -np.floor(np.hypot(x - kth[0], y - kth[1])).astype(np.int64).ravel()
    return ours, other.pmf(np.arange(x.size), scores).reshape(x.shape)


def good(m: NearestPlace, people: Any) -> tuple[float, float]:
    """P(the rank of the released point misses k by at most k/2), for both laws."""
    x, y = _grid(m)
    theirs, points = ((a - m.place[0]) ** 2 + (b - m.place[1]) ** 2 for a, b in (np.asarray(people).T, (x, y)))
    nearer, upto = (np.searchsorted(np.sort(theirs), points, side=side) for side in ("left", "right"))
    fine = 2 * np.maximum(nearer - m.k, m.k - upto) <= m.k
    first, second = (float(law[fine].sum()) for law in laws(m, people))
    return first, second


def _grid(m: NearestPlace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    x, y = np.meshgrid(np.arange(m.columns[0], m.columns[1] + 1), np.arange(m.rows[0], m.rows[1] + 1))
    return x, y


def _kth(m: NearestPlace, people: NDArray[Any]) -> Any:
    """The k-th nearest person, or the last if there are fewer."""
    squares = ((people - np.array(m.place)) ** 2).sum(axis=1)
    return people[np.argsort(squares, kind="stable")[min(m.k, len(people)) - 1]]
