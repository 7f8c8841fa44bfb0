"""The most frequent values of a column, in order."""

from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours, Promise
from noisette.query.frame import Frame
from noisette.query.plan import Ordering, Query
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.choice import Choice, best_of_several
from noisette.questions.contract import Offer, Queries
from noisette.questions.scored import Scores, counted

__all__ = ["Top"]


@dataclass(frozen=True)
class Top:
    """The k values of a column (or of an expression) that most rows have, the most frequent first.

    Of declared keys the values alone are told. Where the keys are unknown, those with the largest noisy counts are
    told with these, which needs a delta.
    """

    column: str
    k: int
    of: Frame | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose among the declared keys, or count what is there."""
        k, prepared = whole(self.k, "k"), counted(self.column, self.of, schema)
        if prepared.opens:
            return Queries((_largest(prepared.query, k),)).offer(schema, spend, neighbours, level)
        candidates = pyarrow.array(prepared.request.domains[0], ARROW[prepared.keys[0].type])
        if k > len(candidates):
            raise InputError(f"There are only {len(candidates):,} keys: ask for at most as many.")
        scores = Scores((prepared,), Fraction(1))
        mechanism = best_of_several(spend, scores, len(candidates), k, neighbours)
        name = prepared.query.outputs[0][0]
        return Choice(f"top {k}", name, candidates, scores, mechanism, neighbours, level, "rows")


def _largest(query: Query, k: int) -> Query:
    """The groups with the largest noisy counts."""
    return replace(query, order=(Ordering(query.outputs[1][1], descending=True),), limit=k)
