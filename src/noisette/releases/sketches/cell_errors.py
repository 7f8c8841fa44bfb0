"""Error bars of sketches from their own cells: what collides with a value, noise included, is what cells hold.

A value is in one cell of each row. Its hash is independent of the others', so what it shares that cell with, e_j in row
j, is the content of a cell drawn evenly from the row as it would be without the value. Adding the value changes one
cell of each row. So for every set A of contents, decided without the value,

    P(e_j in A) <= (share of the row's cells whose content is in A) + 1/width,

independently for each row. Bounds on an order statistic of e_1 ... e_t follow from binomial tails. Nothing is assumed
of the data or of the noise: both are in the cells, however often sketches were merged.

Vocabulary: `rank` which order statistic of the rows is used, from 0 · `tail` the chance that it lies beyond.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["beyond", "most_likely_tail", "upper_end"]

Floats = NDArray[np.float64]


def beyond(p: float, depth: int, rows: int) -> float:
    """P(at least `rows` of `depth` independent rows do what each does with probability p).

    >>> round(beyond(0.25, 5, 3), 4)
    0.1035
    """
    q = min(max(p, 0.0), 1.0)
    return math.fsum(math.comb(depth, i) * q**i * (1 - q) ** (depth - i) for i in range(rows, depth + 1))


def most_likely_tail(depth: int, rows: int, tail: float) -> float:
    """The largest p with `beyond(p, depth, rows) <= tail`, rounded down.

    >>> round(most_likely_tail(5, 3, 0.05), 4)
    0.1893
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, depth, rows) <= tail else (low, middle)
    return low


def upper_end(cells: Floats, rank: int, tail: float, *, changed: int = 1) -> float:
    """A number that the order statistic of that rank of e_1 ... e_t exceeds with at most that probability.

    `cells` has a line for each row of the sketch; the value itself changed at most `changed` cells of each. The
    statistic exceeds a number only if depth - rank rows do, and each row does with at most the share of its cells above
    it and that of the changed ones. It is infinite where the sketch is too narrow to say.
    """
    depth, width = cells.shape
    allowed = math.floor(most_likely_tail(depth, depth - rank, tail) * width) - changed
    if not 0 <= allowed < width:
        return math.inf
    above = -np.sort(-cells, axis=1)  # `allowed` cells of each row may lie above
    return float(above[:, allowed].max())
