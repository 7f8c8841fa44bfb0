"""A public grid for values: from numbers to how many of them each cell has, and back."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import frozen, set_fields
from noisette.exact.number import Number, fraction, whole

__all__ = ["Grid", "numbers"]

_LARGEST = 10**300
_BLOCK = 1 << 17  # values whose cells fit a cache


@frozen
class Grid:
    """A public grid: cell i stands for the value low + i (high - low)/(cells - 1).

    Values go to the nearest cell, those outside of the bounds, infinite ones too, to the first or last; NaN stands for
    a value that is missing and is left out. (Between two cells, doubles decide, the same way for the same value.)

    >>> grid = Grid((0, 10), cells=11)
    >>> grid.count([1.2, 3, 3.4, 99, -math.inf, math.nan]).tolist()
    [1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 1]
    >>> grid.values((3, 10))
    (3.0, 10.0)
    """

    low: Fraction
    high: Fraction
    cells: int

    def __init__(self, bounds: tuple[Number, Number], *, cells: int) -> None:
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise InputError("bounds must be a pair (low, high).")
        low, high = (fraction(end, "bounds") for end in bounds)
        set_fields(self, low=low, high=high, cells=whole(cells, "cells", least=2))
        if not -_LARGEST <= self.low < self.high <= _LARGEST or 1 / self._step > _LARGEST:
            raise InputError("bounds must be a pair (low, high) with low below high, and neither beyond 1e300.")
        if self.cells > choice.LARGEST // 2:
            raise InputError(f"cells must be at most {choice.LARGEST // 2:,}: choose a coarser grid.")

    @property
    def _step(self) -> Fraction:
        return (self.high - self.low) / (self.cells - 1)

    def count(self, values: Any) -> NDArray[np.int64]:
        """Count the values of each cell."""
        flat = numbers(values)
        counts, room = np.zeros(self.cells, np.int64), min(len(flat), _BLOCK)
        floats, places = np.empty(room), np.empty(room, np.int64)
        for start in range(0, len(flat), _BLOCK):
            block = flat[start : start + _BLOCK]
            counts += self._counted(block, floats[: len(block)], places[: len(block)])
        return counts

    def _counted(self, values: NDArray[Any], cells: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[Any]:
        """Clamp first, so that nothing overflows; what is not a number then shows in the sum."""
        np.clip(values, float(self.low), float(self.high), out=cells)
        cells -= float(self.low)
        cells *= float(1 / self._step)
        cells += 0.5
        if math.isnan(cells.sum()):
            return np.bincount(cells[~np.isnan(cells)].astype(np.int64), minlength=self.cells)
        places[:] = cells
        return np.bincount(places, minlength=self.cells)

    def values(self, cells: Sequence[int]) -> tuple[float, ...]:
        """Return what cells stand for."""
        return tuple(float(self.low + int(cell) * self._step) for cell in cells)


def numbers(values: Any) -> NDArray[Any]:
    """Read a list or an array of numbers; NaN may be among them."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        raise InputError("The values must be a list or an array of numbers.") from None
    if array.ndim != 1 or isinstance(values, np.ma.MaskedArray) or (array.size and array.dtype.kind not in "iuf"):
        raise InputError("The values must be a list or an array of numbers.")
    return array
