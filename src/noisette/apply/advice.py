"""How many blocks: more of them need less noise, and leave each of them fewer units to work with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisette import text
from noisette.query.expected import Expected

__all__ = ["Advice", "advice"]

_TRIED = (5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_USUAL = 0.4  # GUPT divides n units into about n^0.4 blocks


@dataclass(frozen=True, repr=False)
class Advice:
    """For each number of blocks the units in each, the half-width of the widest error bar, and the seconds it takes."""

    units: int
    rows: tuple[tuple[int, float, float, float], ...]
    unit: str

    @property
    def usual(self) -> int:
        """About n^0.4 blocks, a rule of thumb; where a function is right on small blocks, more are better."""
        return max(2, round(math.exp(_USUAL * math.log(self.units))))

    def __repr__(self) -> str:
        head = ["blocks", "units in each", self.unit, "seconds"]
        shown = [[f"{m:,}", f"{n:,.0f}", f"{error:.3g}", f"{time:,.0f}"] for m, n, error, time in self.rows]
        return text.as_text(f"{self.units:,} units", head, shown, [f"A usual number is {self.usual:,} blocks."])


def advice(
    units: int, expected: Callable[[int], Sequence[Expected]], seconds: Callable[[int], float], unit: str
) -> Advice:
    """Compare numbers of blocks, given what to expect and how long it takes for each."""
    tried = [m for m in _TRIED if 2 * m <= units]
    widest = {m: max((c.half_width if c.half_width is not None else c.ranks or 0) for c in expected(m)) for m in tried}
    return Advice(units, tuple((m, units / m, widest[m], seconds(m)) for m in tried), unit)
