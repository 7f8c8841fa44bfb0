"""One of several candidates, by a score that is a count or a sum over the data."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow

from noisette.errors import InputError
from noisette.exact.number import Number, fraction
from noisette.privacy import Neighbours, Promise
from noisette.query.frame import Asked
from noisette.query.plan import Query
from noisette.query.schema import Schema
from noisette.query.sql import parse
from noisette.questions.choice import Choice, Contest
from noisette.questions.scored import Scores, scores_of

__all__ = ["Choose"]

_MOST = 10_000


@dataclass(frozen=True)
class Choose:
    """The candidate with about the largest score.

    `score` gives for a candidate the question whose answer is its score: SQL, or made with a table's methods, with one
    COUNT or SUM. How far one unit can move a score follows from the policy; a stated `sensitivity` must not be less.
    With `lead` it is also told by how much the candidate is ahead of all others, for the same price.

    >>> ages = Choose([18, 30, 65], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age >= {age}")
    >>> ages.candidates
    (18, 30, 65)
    """

    candidates: tuple[Any, ...]
    score: Callable[[Any], str | Query | Asked]
    sensitivity: Number | None = None
    lead: bool = False

    def __init__(
        self,
        candidates: Sequence[Any],
        *,
        score: Callable[[Any], str | Query | Asked],
        sensitivity: Number | None = None,
        lead: bool = False,
    ) -> None:
        object.__setattr__(self, "candidates", tuple(candidates) if isinstance(candidates, Iterable) else ())
        object.__setattr__(self, "score", score)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "lead", lead)
        if not 2 <= len(self.candidates) <= _MOST:
            raise InputError(f"Name between 2 and {_MOST:,} candidates to choose among.")
        if len(set(self.candidates)) < len(self.candidates):
            raise InputError("A candidate is named twice: name each once.")
        if not callable(score):
            raise InputError(
                'score must be a function: score=lambda c: f"SELECT COUNT(*) FROM visits WHERE age >= {c}".'
            )
        if sensitivity is not None and fraction(sensitivity, "sensitivity") <= 0:
            raise InputError("sensitivity must be above 0: leave it out, it follows from the policy.")

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Choice:
        """Choose by the scores that the questions ask for."""
        scores = scores_of([_query(self.score(one), schema) for one in self.candidates], schema)
        self._agreed(scores, neighbours)
        among = Contest("choose", "chosen", self._labels(), scores, "points of score")
        return among.offer(spend, neighbours, level, lead=self.lead)

    def _agreed(self, scores: Scores, neighbours: Neighbours) -> None:
        if self.sensitivity is None:
            return
        moves = scores.reach(neighbours).linf * scores.unit
        if fraction(self.sensitivity, "sensitivity") < moves:
            raise InputError(f"One unit can move a score by {moves}: state that as the sensitivity, or leave it out.")

    def _labels(self) -> pyarrow.Array:
        try:
            return pyarrow.array(self.candidates)
        except (pyarrow.ArrowException, TypeError):
            return pyarrow.array([str(one) for one in self.candidates])


def _query(asked: Any, schema: Schema) -> Query:
    if isinstance(asked, str):
        return parse(asked, schema)
    if isinstance(asked, Asked):
        return asked.query
    if isinstance(asked, Query):
        return asked
    raise InputError("score must give a question: SQL, or one that is made with a table's methods.")
