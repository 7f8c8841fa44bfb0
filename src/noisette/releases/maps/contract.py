"""What every strategy for maps offers, and what can be asked of what it released.

    strategy.measure(x, rng) -> released numbers      all that reads the data
    strategy.read(released)  -> Fit                   free, and the same for ever

Cells are numbered along each axis from 0. Rectangles are given by their edges in units of cells: `low` and `high` are
arrays with a row for each rectangle and a column for each axis, and cell i reaches from i to i + 1. Edges need not be
whole: a part of a cell gets that part of its count.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Ends", "Fit", "Floats", "Strategy"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[Floats, Floats]


class Fit(Protocol):
    """Released counts of all cells of a map."""

    @property
    def x(self) -> Floats:
        """The count of each cell, an array with an axis for each axis of the map."""
        ...

    def counts(self, low: Floats, high: Floats) -> Floats:
        """The number in each rectangle."""
        ...

    def bars(self, low: Floats, high: Floats, level: float) -> Ends:
        """The ends of the usual error bars of rectangles, which take what is not divided for even: not guaranteed."""
        ...

    def guaranteed(self, low: Floats, high: Floats, level: float) -> Ends:
        """The ends of error bars that hold with at least the level's probability, whatever the data."""
        ...

    def region(self, part: Floats, level: float, *, guaranteed: bool = False) -> tuple[float, float, float]:
        """The number in a region, which holds a `part` from 0 to 1 of each cell, with the ends of its error bar."""
        ...


class Strategy(Protocol):
    """How the cells of a map are measured; `calibrated(spend, shape=, rows=, neighbours=)` makes one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        ...

    @property
    def moved(self) -> Sensitivity:
        """How far one unit moves the counts of the cells."""
        ...

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms that are used, each with how far one unit moves what it is applied to."""
        ...

    def guarantee(self) -> Guarantee:
        """What holds for one unit once all is measured."""
        ...

    def measure(self, x: NDArray[np.int64], rng: Random = SYSTEM) -> Floats:
        """Draw the noise, which is all that reads the data: the released numbers in the order they are drawn."""
        ...

    def read(self, released: Floats) -> Fit:
        """The counts of all cells from the released numbers alone."""
        ...
