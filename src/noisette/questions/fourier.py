"""A smooth series of counts, such as those of the days of a year, from a few Fourier coefficients.

How many coefficients are kept is chosen by the data, with a fifth of the promise; the rest measures them, phases and
all (`releases.strategies.fourier`).   [Rastogi-Nath 2010; Acs-Castelluccia-Chen 2012]
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.answers.column import added_ends
from noisette.engines.contract import Source
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import Omission
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import LineCells, counted_rows
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows
from noisette.releases.line import Line
from noisette.releases.linear import Estimate, Floats, widest
from noisette.releases.stored import kept_estimate, linear_table
from noisette.releases.strategies.fourier import ChosenFourier

__all__ = ["Fourier"]

_DROPPED = Omission("Frequencies that are not kept are dropped, so jumps and single peaks are smoothed away.")
_COVERS = "± covers the noise and all that dropped frequencies may hold"
_WHY = "A smooth series has few frequencies: how many are measured is chosen privately, with a fifth of the promise."


@dataclass(frozen=True)
class Fourier(JsonQuestion):
    """How many rows each value (or bin) of a column has, if these numbers are smooth; `most` coefficients at most.

    `answer.value` counts any range. Nothing bounds what the dropped frequencies held, so its bars reach from 0 to the
    number of all rows; those of `count(…, guaranteed=False)` cover the noise alone.

    >>> Fourier("day")
    Fourier(column='day', bins=None, of=None, most=31)
    """

    column: str
    bins: int | None = None
    of: Rows = None
    most: int = 31

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose how many coefficients to keep, and measure them."""
        cells = LineCells.of(self.column, self.bins, self.of, schema)
        most = min(whole(self.most, "most", least=2), cells.axis.cells)
        part = cells.prepared.part
        made = ChosenFourier(spend, cells.axis.cells, most, part=part, neighbours=neighbours)
        procedure = Waves(cells, made, level)
        [noise], [moved] = made.measuring(most).noise, made.measuring(most).moved
        return about(
            cells.prepared,
            procedure,
            text=text_of("fourier", cells.prepared, cells=cells.axis.cells, most=most),
            why=_WHY,
            guarantee=made.guarantee(),
            parts=[recorded(made.choice, Measure("rows"), made.score), recorded(noise, Measure("rows"), moved)],
            covers=_COVERS,
            omitted=[_DROPPED],
            value=procedure.line,
        )


@dataclass(frozen=True)
class Waves(Procedure):
    """Noisy Fourier coefficients, as many as were chosen; the cells follow from them."""

    cells: LineCells
    made: ChosenFourier
    level: float

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.cells.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all cells."""
        return counted_rows(self.prepared, self.made.neighbours)

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The noise of a cell if all coefficients are kept that may be."""
        every = self.made.measuring(self.made.most)
        error = widest(every.noise[0], self.level) * every.error([0], [0])
        note = f"noise of a cell if all {self.made.most} coefficients are kept; a bar reaches to the number of all rows"
        moved, kind = f"rows: {self.cells.rows:,}", "Laplace" if self.made.promise.is_pure else "Gaussian"
        return [(Expected("n", f"{kind} noise on Fourier coefficients", moved, error, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, choose how many coefficients to keep, and measure them."""
        counts = self.cells.read(source, schema, secret)
        kept = self.made.measuring(1 + self.made.choice(self.made.scores(counts), rng))
        return linear_table(kept, kept.measure(counts, rng))

    def line(self, drawn: pyarrow.Table) -> Line:
        """What goes on answering."""
        return Line(self.cells.axis, Smoothed(kept_estimate(drawn)), self.level)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each cell."""
        return [self.line(drawn).columns()]


@dataclass(frozen=True)
class Smoothed:
    """Counts of which what was dropped is unknown: the number of all rows alone has none of it."""

    noisy: Estimate

    @property
    def x(self) -> Floats:
        """The count of each cell."""
        return self.noisy.x

    def ranges(self, low: Any, high: Any) -> Floats:
        """The number in the cells low .. high, both included."""
        return self.noisy.ranges(low, high)

    def bars(self, low: Any, high: Any, level: float) -> tuple[Floats, Floats]:
        """The ends of bars that cover the noise alone."""
        return self.noisy.bars(low, high, level)

    def guaranteed(self, low: Any, high: Any, level: float) -> tuple[Floats, Floats]:
        """From 0 to all rows; of all cells together, the bar of the noise."""
        last = len(self.x) - 1
        below, above = self.bars(low, high, level)
        every = (np.asarray(low) == 0) & (np.asarray(high) == last)
        most = max(float(self.bars([0], [last], level)[1][0]), 0.0)
        return added_ends(self.ranges(low, high), (np.where(every, below, 0.0), np.where(every, above, most)))


examples = [Fourier("age", most=9), Fourier("cost", bins=50, of="SELECT * FROM visits WHERE age >= 18")]
