"""What is publicly known of the numbers that blocks give, and how these are read, counted and shown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers.figures import bound
from noisette.query.caveats import Omission

__all__ = ["CELLS", "Bar", "Numbers", "Range", "bars_table", "counts"]

Range: TypeAlias = tuple[Fraction, Fraction]
Bar: TypeAlias = tuple[float, float, float]

CELLS = 1024
"""Cells between the bounds, among which quantiles are chosen."""


@dataclass(frozen=True)
class Numbers:
    """What is publicly known of the outputs: their names and bounds, and what stands for a failure."""

    names: tuple[str, ...]
    bounds: tuple[Range, ...]
    default: tuple[Fraction, ...]

    def read(self, outputs: Sequence[bytes]) -> list[list[Fraction]]:
        """The outputs of all blocks, number by number, between their bounds."""
        rows = [self._row(one) for one in outputs]
        return [[row[i] for row in rows] for i in range(len(self.names))]

    def _row(self, output: bytes) -> list[Fraction]:
        if len(output) != 8 * len(self.names):
            return list(self.default)
        found = np.frombuffer(output, "<f8").tolist()
        given = (Fraction(x) if math.isfinite(x) else d for x, d in zip(found, self.default, strict=True))
        return [max(low, min(high, x)) for x, (low, high) in zip(given, self.bounds, strict=True)]

    def width(self, i: int) -> float:
        """How far apart the bounds of a number are."""
        low, high = self.bounds[i]
        return float(high - low)

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What outputs are clamped to, and what failures count as."""
        beyond = "Outputs {} beyond [{}, {}] count as the nearer bound, and a block that fails counts as {}."
        parts = zip(self.names, self.bounds, self.default, strict=True)
        return tuple(Omission(beyond.format(name, *map(bound, (*ends, default)))) for name, ends, default in parts)


def counts(values: Sequence[Fraction], bounds: Range) -> NDArray[np.int64]:
    """How many values lie in each cell."""
    low, high = bounds
    cells = [min(CELLS - 1, math.floor((value - low) * CELLS / (high - low))) for value in values]
    return np.bincount(np.array(cells, np.int64), minlength=CELLS)


def bars_table(names: Sequence[str], bars: Sequence[Bar]) -> pyarrow.Table:
    """One row: each number with the ends of its error bar."""
    pairs = zip(names, bars, strict=True)
    return pyarrow.table(
        {f"{name}{end}": [x] for name, bar in pairs for end, x in zip(("", "_low", "_high"), bar, strict=True)}
    )
