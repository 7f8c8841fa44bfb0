"""Choose some of the cells that are not listed, each set of them as likely as any other, without looking at the rest.

A zero cell has a rank among all zero cells. Ranks are drawn evenly and then moved past the listed cells, so nothing is
tried and rejected because of the data. Vocabulary: `codes` listed cells, ascending · `ranks` among the others.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact import vector
from noisette.exact.random import Random

__all__ = ["Codes", "distinct", "joined", "placed", "uniform_each"]

Codes: TypeAlias = NDArray[np.int64]


def distinct(n: int, k: int, rng: Random) -> Codes:
    """Draw k different numbers from 0 .. n-1, ascending: every set has the same chance.

    Repeats are drawn again, as if one by one; of more than half of the numbers, the others are drawn and left out.

    >>> from noisette.exact.random import SYSTEM
    >>> distinct(5, 5, SYSTEM).tolist(), distinct(2**62, 0, SYSTEM).size
    ([0, 1, 2, 3, 4], 0)
    """
    if 2 * k > n:
        return np.setdiff1d(np.arange(n), distinct(n, n - k, rng), assume_unique=True)
    found = np.empty(0, np.int64)
    while found.size < k:
        found = joined(found, vector.uniform(n, k - found.size, rng=rng))
        found = found[np.append(True, found[1:] != found[:-1])]
    return found


def placed(ranks: Codes, codes: Codes) -> Codes:
    """The cells of these ranks among the cells that are not listed: c_i - i of those lie below the i-th listed one.

    >>> placed(np.array([0, 1, 2]), np.array([0, 3])).tolist()
    [1, 2, 4]
    """
    return np.asarray(ranks + np.searchsorted(codes - np.arange(codes.size), ranks, side="right"))


def joined(codes: Codes, more: Codes) -> Codes:
    """Both, ascending."""
    return np.sort(np.concatenate([codes, more]))


def uniform_each(most: NDArray[Any], rng: Random) -> Codes:
    """A uniform whole number from 1 to each of some numbers up to 2^62, by rejection of 64-bit words."""
    out, todo = np.empty(most.size, np.int64), np.arange(most.size)
    shift = (64 - np.maximum(_bit_length(most - 1), 1)).astype(np.uint64)
    while todo.size:
        words = (rng.words(todo.size, np.uint64) >> shift[todo]).astype(np.int64)
        fair = words < most[todo]
        out[todo[fair]] = words[fair] + 1
        todo = todo[~fair]
    return out


def _bit_length(x: NDArray[Any]) -> NDArray[np.int64]:
    """The number of binary digits, from both halves: floats hold 31 bits exactly."""
    high = x >> 31
    long = np.frexp(high.astype(float))[1].astype(np.int64) + 31
    return np.asarray(np.where(high > 0, long, np.frexp((x & (2**31 - 1)).astype(float))[1]))
