"""The most frequent values of a column, in order."""

from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours, Promise
from noisette.query.plan import Ordering, Query
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.choice import Contest, Scores
from noisette.questions.parts.queries import Queries
from noisette.questions.parts.rows import Rows, counted

__all__ = ["Top"]


@dataclass(frozen=True)
class Top(JsonQuestion):
    """The k values of a column (or of an expression) that most rows have, the most frequent first.

    Of declared keys only the values are released. Where the keys are unknown, those with the largest noisy counts are
    released with their counts, which needs a delta.
    """

    column: str
    k: int
    of: Rows = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose among the declared keys, or count the keys that are there."""
        k, prepared = whole(self.k, "k"), counted(self.column, self.of, schema)
        if prepared.opens:
            return Queries((_largest(prepared.query, k),)).offer(schema, spend, neighbours, level)
        candidates = pyarrow.array(prepared.request.domains[0], ARROW[prepared.keys[0].type])
        if k > len(candidates):
            raise InputError(f"There are only {len(candidates):,} keys: ask for at most as many.")
        name, scores = prepared.query.outputs[0][0], Scores((prepared,), Fraction(1))
        return Contest(f"top {k}", name, candidates, scores, "rows").several(k, spend, neighbours, level)


def _largest(query: Query, k: int) -> Query:
    """The groups with the largest noisy counts."""
    return replace(query, order=(Ordering(query.outputs[1][1], descending=True),), limit=k)


examples = [Top("ward", 2), Top("age", 5, of="SELECT * FROM visits WHERE ward = 'emergency'"), Top("diagnosis", 3)]
