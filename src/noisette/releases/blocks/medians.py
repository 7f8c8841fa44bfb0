"""Private medians of what the blocks gave: chosen by ranks, so outliers among them do not count.

One unit changes the outputs of its r blocks, and with them each rank by at most r.
[Nissim-Raskhodnikova-Smith 2007; Smith 2011]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow

from noisette.exact.random import Random
from noisette.privacy import Guarantee
from noisette.query.caveats import Omission
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.rank_tree import RankTree, rank_tree
from noisette.query.ranks import Ranks, ranks
from noisette.releases.blocks.numbers import CELLS, Bar, Numbers, Range, bars_table, counts
from noisette.releases.blocks.terms import Terms, recorded

__all__ = ["Median", "median"]

_HISTOGRAM, _HALF = Measure("histogram", low=0, high=CELLS - 1), Fraction(1, 2)


@dataclass(frozen=True)
class Median:
    """The median of the outputs; its error bar spans two more draws, aimed at ranks below and above."""

    numbers: Numbers
    ranks: Ranks | RankTree
    terms: Terms

    @property
    def guarantee(self) -> Guarantee:
        """All draws together."""
        moved = self.ranks.moved(self.terms.sensitivity)
        one = reduce(add, [one.guarantee(moved) for one in self.ranks.mechanisms])
        return self.terms.for_units(one * len(self.numbers.names))

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms, for the record."""
        moved = self.ranks.moved(self.terms.sensitivity)
        drawn = [recorded(one, "outputs of blocks", moved) for one in self.ranks.mechanisms]
        return drawn * len(self.numbers.names)

    @property
    def why(self) -> str:
        """Why ranks."""
        return f"A median by ranks among {CELLS:,} cells: what few blocks give does not move it far."

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What becomes of outputs before they are aggregated."""
        return self.numbers.omitted

    def expected(self) -> tuple[Expected, ...]:
        """By how many blocks each median is off."""
        blocks = self.ranks.rank_error(self.terms.level)
        return tuple(
            Expected(
                name,
                f"{self.ranks.description}, in cells of {self.numbers.width(i) / CELLS:.4g}",
                f"ranks of blocks: {self.terms.each}",
                None,
                {},
                blocks,
                f"ranks are counted in blocks, of which there are {self.terms.blocks:,}",
            )
            for i, name in enumerate(self.numbers.names)
        )

    def draw(self, outputs: Sequence[bytes], rng: Random) -> pyarrow.Table:
        """Choose a cell for each number."""
        values, bounds = self.numbers.read(outputs), self.numbers.bounds
        return bars_table(self.numbers.names, [self._bar(v, b, rng) for v, b in zip(values, bounds, strict=True)])

    def _bar(self, values: Sequence[Fraction], bounds: Range, rng: Random) -> Bar:
        """The middle of the chosen cell, and the outer edges of the cells at the ends."""
        found = self.ranks.draw(counts(values, bounds)[None, :], _HISTOGRAM, rng)
        value, low, high = (float(np.ravel(one)[0]) for one in found)
        start, cell = float(bounds[0]), float(bounds[1] - bounds[0]) / CELLS
        return start + (value + 0.5) * cell, start + low * cell, start + (high + 1) * cell


def median(numbers: Numbers, terms: Terms) -> Median:
    """The medians that keep a promise together; they are pure, so a delta is of no use to them.

    Where there are too few blocks for bars that are drawn by ranks, medians are read off a tree of counts.
    """
    share = terms.part(Fraction(1, len(numbers.names)), pure=True)
    alone = ranks(_HISTOGRAM, _HALF, share, terms.sensitivity, terms.level)
    if alone.rows <= terms.blocks:
        return Median(numbers, alone, terms)
    return Median(numbers, rank_tree(_HISTOGRAM, [_HALF], share, terms.sensitivity, terms.level), terms)
