"""How many rows there are in each cell of a column, released as one thing that goes on answering.

By default by the adaptive tree (`releases.adaptive`): it looks closely where there are many rows, is never negative and
adds up. `unbiased=True` is another purchase: noise on every cell, so that any sum of cells is right on average and has
exact error bars.
"""

from dataclasses import dataclass

import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import LineCells
from noisette.questions.parts.linear_offer import linear_offer, plain_cells, planned
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows
from noisette.releases.adaptive import AdaptiveTree
from noisette.releases.adaptive_bars import AdaptiveFit
from noisette.releases.line import Line
from noisette.releases.linear import widest
from noisette.releases.planner import Plan
from noisette.releases.stored import adaptive_table, kept_adaptive

__all__ = ["Histogram"]

_WHY = "Nodes of a tree are counted as deep as they are large: small ones stop and get the rest of the budget."
_USUALLY = (
    "the adaptive tree usually errs less, the more cells there are the clearer (docs/many-answers.md, make bench-error)"
)


@dataclass(frozen=True)
class Histogram(JsonQuestion):
    """How many rows each value (or each of `bins` bins) of a column has; `answer.value` counts any range of them.

    >>> Histogram("age")
    Histogram(column='age', bins=None, of=None, unbiased=False)
    """

    column: str
    bins: int | None = None
    of: Rows = None
    unbiased: bool = False

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """The adaptive tree, or noise on every cell."""
        cells = LineCells.of(self.column, self.bins, self.of, schema)
        if self.unbiased:
            made = plain_cells(cells, spend, neighbours)
            why = "Every cell gets noise of its own: sums of cells are unbiased, and their error bars exact."
            return linear_offer("histogram", "single cells", cells, made, level, why=why)
        tree = AdaptiveTree.calibrated(spend, cells=cells.axis.cells, rows=cells.rows, neighbours=neighbours)
        procedure = Adapted(cells, tree, level, planned(cells, spend, neighbours))
        return about(
            cells.prepared,
            procedure,
            text=text_of("histogram", cells.prepared, cells=cells.axis.cells, by="adaptive tree"),
            why=_WHY,
            guarantee=tree.guarantee(),
            parts=[recorded(tree.at(share), Measure("rows"), tree.moved) for share in tree.shares],
            covers=NOISE,
            value=procedure.line,
        )


@dataclass(frozen=True)
class Adapted(Procedure):
    """Released numbers of an adaptive tree, in the order they were drawn; all else follows from them."""

    cells: LineCells
    tree: AdaptiveTree
    level: float
    plain: Plan

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.cells.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all cells."""
        return self.tree.moved

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of the best plain strategy, which this one usually stays below."""
        first = self.plain.candidates[0]
        error = widest(self.plain.release.noise[0], self.level) * first.error
        note = f"the error is that of a typical range by the best plain strategy ({first.name}); {_USUALLY}"
        moved = f"rows: {float(self.tree.moved.l1):.6g}"
        return [(Expected("n", "adaptive tree", moved, error, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and measure down the tree."""
        return adaptive_table(self.tree, self.tree.measure(self.cells.read(source, schema, secret), rng))

    def line(self, drawn: pyarrow.Table) -> Line:
        """What goes on answering."""
        return Line(self.cells.axis, AdaptiveFit.of(*kept_adaptive(drawn, self.tree)), self.level)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each cell."""
        return [self.line(drawn).columns()]


examples = [
    Histogram("age"),
    Histogram("cost", bins=64, of="SELECT * FROM visits WHERE age >= 18"),
    Histogram("ward", unbiased=True),
]
