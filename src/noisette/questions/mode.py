"""The most frequent value of a column."""

from dataclasses import dataclass
from fractions import Fraction

import pyarrow

from noisette.privacy import Neighbours, Promise
from noisette.query.frame import Frame
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.choice import Choice, best
from noisette.questions.scored import Scores, counted

__all__ = ["Mode"]


@dataclass(frozen=True)
class Mode:
    """The value of a column (or of an expression) that most rows have, in the rows of a frame or of a table.

    The value alone is told, not how many rows have it.
    """

    column: str
    of: Frame | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Choice:
        """Choose among the declared keys."""
        prepared = counted(self.column, self.of, schema)
        candidates = pyarrow.array(prepared.request.domains[0], ARROW[prepared.keys[0].type])
        scores = Scores((prepared,), Fraction(1))
        mechanism = best(spend, scores, len(candidates), neighbours, level)
        return Choice("mode", prepared.query.outputs[0][0], candidates, scores, mechanism, neighbours, level, "rows")
