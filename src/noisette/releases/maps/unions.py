"""Nodes that stopped, together with their union: all such children of one parent, measured once as one number.

Most nodes that stop are empty or nearly so. Their union says how many rows they have together with the noise of one
number; without it, the noises of hundreds of nodes that are rounded up to 0 would add up.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.consistent import projected, towards
from noisette.releases.tree import Rows

__all__ = ["joined"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


def joined(rows: Rows, held: Flags, z: Floats, v: Floats, unions: Floats, wide: float) -> tuple[Floats, Floats]:
    """Estimates of the nodes that are `held`, and their variances, from their own ones and those of their unions.

    The total of a union is the inverse-variance mean of the sum of its nodes and of its own measurement, of variance
    `wide`. Its nodes are shrunk towards an even spread of that total, and projected on numbers of at least 0.

    >>> rows = Rows((1, 2), np.full((1, 2), 3.0))
    >>> z, v = joined(rows, np.ones(2, bool), np.array([1.0, -2.0]), np.ones(2), np.array([0.5]), 2.0)
    >>> z.tolist(), v.tolist()
    ([0.0, 0.0], [0.5, 0.5])
    """
    ends = rows.of(held.astype(float)) > 0
    some = ends.any(axis=1)
    y, s, ends = rows.of(z), rows.of(v), ends[some]
    own, room, many = np.where(ends, y[some], 0.0), np.where(ends, s[some], 0.0).sum(axis=1), ends.sum(axis=1)
    known = own.sum(axis=1)
    part = room / (room + wide)
    total = (1 - part) * known + part * unions
    widths = np.broadcast_to(rows.widths, rows.shape)[some] * ends
    even = (total / widths.sum(axis=1))[:, None] * widths
    apart = np.where(ends, own + ((total - known) / many)[:, None] - even, 0.0)
    found = projected(np.where(ends, towards(even, apart, room, many), -np.inf), np.maximum(total, 0.0))
    y[some] = np.where(ends, found, y[some])
    s[some] = np.where(ends, (part * wide / many)[:, None], s[some])
    return rows.flat(y), rows.flat(s)
