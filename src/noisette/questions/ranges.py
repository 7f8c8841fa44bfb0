"""Unbiased counts of every range of a column, by the strategy with the least error for them."""

from dataclasses import dataclass

from noisette.privacy import Neighbours, Promise
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import LineCells
from noisette.questions.parts.linear_offer import linear_offer, planned
from noisette.questions.parts.rows import Rows
from noisette.releases.linear import widest
from noisette.releases.planner import Candidate

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
        plan = planned(cells, spend, neighbours, prefixes=self.prefixes)
        asked, wide = "prefixes" if self.prefixes else "ranges", widest(plan.release.noise[0], level)
        first, *others = ((one.name, _noise(one), wide * one.error) for one in plan.candidates)
        beside = ", ".join(f"{name} with {noise} noise ± {error:,.3g}" for name, noise, error in others)
        name = f"{first[0][:1].upper()}{first[0][1:]}"
        why = f"{name}: of all strategies the one that errs least on {asked}, whatever the data."
        return linear_offer("ranges", asked, cells, plan.release, level, why=why, note=f"other strategies: {beside}")


def _noise(candidate: Candidate) -> str:
    return "Gaussian" if candidate.gaussian else "Laplace"


examples = [
    Ranges("age"),
    Ranges("cost", bins=128, prefixes=True),
    Ranges("FLOOR(age / 5)", of="SELECT * FROM visits WHERE cost > 100"),
]
