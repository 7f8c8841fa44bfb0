"""Offers of linear releases along a column: the same for every strategy."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.mechanisms import Gaussian
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.parts.line_cells import LineCells, counted_rows
from noisette.questions.parts.offers import about, text_of
from noisette.releases.chains import typical_ranges
from noisette.releases.line import Line
from noisette.releases.linear import Linear, fitting, widest
from noisette.releases.planner import Plan, best
from noisette.releases.stored import kept_estimate, linear_table
from noisette.releases.tree import Tree

__all__ = ["Measured", "linear_offer", "plain_cells", "planned"]


def linear_offer(
    question: str,
    by: str,
    cells: LineCells,
    made: Linear,
    level: float,
    *,
    why: str,
    note: str = "",
    procedure: "Measured | None" = None,
) -> Offer:
    """An offer of unbiased counts of the cells, chosen `by` what was asked; `note` says more about the error."""
    procedure = procedure or Measured(cells, made, level, note)
    parts = zip(made.noise, made.moved, strict=True)
    return about(
        cells.prepared,
        procedure,
        text=text_of(question, cells.prepared, cells=cells.axis.cells, by=by),
        why=why,
        guarantee=made.guarantee(),
        parts=[recorded(noise, Measure("rows"), moved) for noise, moved in parts],
        covers=NOISE,
        value=procedure.line,
    )


def planned(cells: LineCells, spend: Promise, neighbours: Neighbours, *, prefixes: bool = False) -> Plan:
    """The best release for all ranges of the cells, or for all prefixes, beside its competitors."""
    return best(spend, cells.axis.cells, prefixes=prefixes, part=cells.prepared.part, neighbours=neighbours)


def plain_cells(cells: LineCells, spend: Promise, neighbours: Neighbours) -> Linear:
    """Noise on every cell, Laplace or Gaussian, whichever has the smaller variance."""

    def made(smooth: bool) -> Linear:
        identity, part = Tree(cells.axis.cells), cells.prepared.part
        return Linear.calibrated(spend, identity, part=part, neighbours=neighbours, gaussian=smooth)

    return min(fitting(made, (False,) if spend.is_pure else (False, True)), key=lambda one: one.variance)


@dataclass(frozen=True)
class Measured(Procedure):
    """Noisy numbers of a strategy, level after level; the cells follow from them."""

    cells: LineCells
    made: Linear
    level: float
    note: str

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.cells.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all cells."""
        return counted_rows(self.prepared, self.made.moved[0].neighbours)

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The widest error bar of a single cell, and that of a typical range."""
        some = np.unique(np.linspace(0, self.cells.axis.cells - 1, 256).astype(np.int64))
        cell = widest(self.made.noise[0], self.level) * math.sqrt(
            float(self.made.strategy.variances(some, some, self.made.variance).max())
        )
        error = self.made.error(*typical_ranges(self.cells.axis.cells))
        ranges = f"a range of cells errs by ± {widest(self.made.noise[0], self.level) * error:,.3g}, over all ranges"
        kind = "Gaussian" if isinstance(self.made.noise[0], Gaussian) else "Laplace"
        levels = len(self.made.noise)
        noise = f"{kind} noise on {f'{levels} levels of counts' if levels > 1 else 'every count'}"
        moved = f"rows: {float(max(level.l1 for level in self.made.moved)):.6g}"
        return [(Expected("n", noise, moved, cell, {}, None, "; ".join(filter(None, [ranges, self.note]))),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and measure."""
        return linear_table(self.made, self.made.measure(self.cells.read(source, schema, secret), rng))

    def line(self, drawn: pyarrow.Table) -> Line:
        """What goes on answering."""
        return Line(self.cells.axis, kept_estimate(drawn), self.level)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each cell."""
        return [self.line(drawn).columns()]
