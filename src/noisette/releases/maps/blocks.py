"""Rectangles of cells that a map is listed and drawn by: equal ones, and those that hold equal counts."""

from typing import TypeAlias

import numpy as np

from noisette.releases.maps.contract import Floats

__all__ = ["Blocks", "even_blocks", "single_cells", "uniform_blocks"]

Blocks: TypeAlias = tuple[Floats, Floats]
"""The low and the high edges of rectangles in cells, a row for each."""

_SAME = 1e-9  # relative difference of counts that are equal but for rounding


def uniform_blocks(shape: tuple[int, ...], most: int | tuple[int, ...]) -> Blocks:
    """Blocks of equal size, at most `most` along each axis; those at the high ends may be smaller.

    >>> low, high = uniform_blocks((5, 2), 3)
    >>> low[:, 0].tolist(), high[:, 0].tolist()
    ([0.0, 0.0, 2.0, 2.0, 4.0, 4.0], [2.0, 2.0, 4.0, 4.0, 5.0, 5.0])
    """
    each = (most,) * len(shape) if isinstance(most, int) else most
    runs = np.array([-(-cells // limit) for cells, limit in zip(shape, each, strict=True)])
    starts = [np.arange(0, cells, run) for cells, run in zip(shape, runs, strict=True)]
    low = np.stack(np.meshgrid(*starts, indexing="ij"), axis=-1).reshape(-1, len(shape)).astype(float)
    return low, np.minimum(low + runs, shape)


def single_cells(shape: tuple[int, ...]) -> Blocks:
    """Every cell by itself."""
    return uniform_blocks(shape, shape)


def even_blocks(x: Floats) -> Blocks:
    """Aligned blocks of 1, 2, 4, … cells along each axis whose counts are equal, the largest there are; empty ones not.

    >>> low, high = even_blocks(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 7.0]]))
    >>> low.tolist(), high.tolist()
    ([[1.0, 2.0], [0.0, 0.0]], [[2.0, 3.0], [2.0, 2.0]])
    """
    value, even, size, found = x, np.ones(x.shape, bool), 1, []
    while max(value.shape) > 1:
        pad = [(0, cells % 2) for cells in value.shape]
        value, even = np.pad(value, pad, constant_values=np.nan), np.pad(even, pad, constant_values=True)
        least, most, every = value, value, even
        for axis in range(x.ndim):
            first, second = (np.arange(start, value.shape[axis], 2) for start in (0, 1))
            least = np.fmin(least.take(first, axis), least.take(second, axis))
            most = np.fmax(most.take(first, axis), most.take(second, axis))
            every = every.take(first, axis) & every.take(second, axis)
        merged = every & (most - least <= _SAME * np.maximum(np.abs(most), np.abs(least)))
        parents = merged
        for axis in range(x.ndim):
            parents = parents.repeat(2, axis)
        found.append((np.argwhere(even & ~parents & (np.abs(value) > 0)), size))
        value, even, size = most, merged, 2 * size
    found.append((np.argwhere(even & (np.abs(value) > 0)), size))
    low = np.concatenate([nodes * each for nodes, each in found]).astype(float)
    high = np.concatenate([(nodes + 1.0) * each for nodes, each in found])
    return low, np.minimum(high, x.shape)
