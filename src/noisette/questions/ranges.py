"""Unbiased counts of every range of a column, by the strategy with the least error for them."""

from dataclasses import dataclass

from noisette.privacy import Neighbours, Promise
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import LineCells
from noisette.questions.parts.linear_offer import linear_offer, strategies
from noisette.questions.parts.rows import Rows

__all__ = ["Ranges"]


@dataclass(frozen=True)
class Ranges(JsonQuestion):
    """How many rows lie between any two values of a column: unbiased, with error bars that hold, from one release.

    The strategy is the best for all ranges, or with `prefixes` for all "at most x". `answer.value.count(18, 65)`
    answers. `Histogram` errs less on most data, but its bars are about right only.

    >>> Ranges("age")
    Ranges(column='age', bins=None, of=None, prefixes=False)
    """

    column: str
    bins: int | None = None
    of: Rows = None
    prefixes: bool = False

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """The strategy whose error is least, computed in advance."""
        cells = LineCells.of(self.column, self.bins, self.of, schema)
        [(_, best), *others] = strategies(cells, spend, neighbours, level, prefixes=self.prefixes)
        asked = "prefixes" if self.prefixes else "ranges"
        beside = ", ".join(f"{name} ± {error:,.3g}" for (name, error), _ in others)
        why = f"Of all strategies tried this one errs least on {asked}, whatever the data."
        note = f"other strategies: {beside}" if beside else ""
        return linear_offer("ranges", cells, best, level, why=why, note=note)


examples = [
    Ranges("age"),
    Ranges("cost", bins=128, prefixes=True),
    Ranges("FLOOR(age / 5)", of="SELECT * FROM visits WHERE cost > 100"),
]
