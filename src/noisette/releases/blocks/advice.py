"""How many blocks: more of them need less noise, and leave each of them fewer units to work with."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from noisette import text
from noisette.query.expected import Expected

__all__ = ["LEAD", "Advice", "advice", "widest"]

LEAD = "lead needed"
_TRIED = (5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_THIRD = 1 / 3
_USUAL = 0.4  # GUPT divides n units into about n^0.4 blocks


@dataclass(frozen=True, repr=False)
class Advice:
    """For each number of blocks the units in each, the half-width of the widest error bar, and the seconds it takes.

    Of a stable mode, for the error bar: the share of the votes by which a label must lead. From 1 on that cannot be.
    """

    units: int
    rows: tuple[tuple[int, float, float, float], ...]
    unit: str
    each: int = 1

    @property
    def usual(self) -> int:
        """About n^0.4 blocks, a rule of thumb; where a function is right on small blocks, more are better.

        So many times `each`, if blocks overlap: that leaves them their size, and the noise as it was.
        """
        return max(2, round(self.each * math.exp(_USUAL * math.log(self.units))))

    def __repr__(self) -> str:
        head = ["blocks", "units in each", self.unit, "seconds"]
        shown = [[f"{m:,}", f"{n:,.0f}", self._error(error), f"{time:,.0f}"] for m, n, error, time in self.rows]
        return text.as_text(f"{self.units:,} units", head, shown, self._notes())

    def _error(self, error: float) -> str:
        if self.unit != LEAD:
            return f"{error:.3g}"
        return f"{error:.1%} of votes" if error < 1 else "none"

    def _notes(self) -> list[str]:
        enough = [m for m, _, error, _ in self.rows if error < _THIRD]
        if self.unit != LEAD:
            notes = [f"A usual number is {self.usual:,} blocks."]
        else:
            notes = [f"Where two thirds of the blocks agree, {m:,} are enough." for m in enough[:1]]
        if self.each > 1:
            notes.append(
                f"A unit is in {self.each:,} of them: the noise is that of {self.each:,} times fewer, as large."
            )
        if self.unit == LEAD and any(error >= 1 for _, _, error, _ in self.rows):
            notes.append("Where no lead is named, all votes together are too few.")
        return notes


class _Explained(Protocol):
    def expected(self) -> tuple[Expected, ...]: ...


def widest(aggregate: _Explained) -> float:
    """The widest error bar of an aggregate, or its most ranks."""
    return max(c.half_width if c.half_width is not None else c.ranks or 0 for c in aggregate.expected())


def advice(units: int, each: int, error: Callable[[int], float], seconds: Callable[[int], float], unit: str) -> Advice:
    """Compare numbers of blocks, given what each errs and how long it takes."""
    tried = [m for m in _TRIED if each <= m and 2 * m <= units * each]
    return Advice(units, tuple((m, units * each / m, error(m), seconds(m)) for m in tried), unit, each)
