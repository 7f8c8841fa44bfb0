"""One of several candidates, by a score that is a count or a sum over the data."""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow

from noisette.errors import InputError
from noisette.exact.number import Number, fraction
from noisette.privacy import Neighbours, Promise
from noisette.query.frame import Asked
from noisette.query.plan import Query
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.choice import Contest, Scores, scores_of
from noisette.questions.parts.queries import query_of, query_text

__all__ = ["Choose"]

_MOST = 10_000
_SCORE = 'score must be a function that gives SQL, or a list of SQL texts: score=["SELECT COUNT(*) FROM visits", …].'


@dataclass(frozen=True)
class Choose(JsonQuestion):
    """The candidate with about the largest score.

    `score` gives for each candidate the query whose answer is its score, with one COUNT or SUM: a function from the
    candidate to SQL, or to a query made with a table's methods, or a list of SQL texts. How far one unit can move a
    score follows from the policy; a stated `sensitivity` must not be less. With `lead` the answer also says by how much
    the candidate is ahead of all others, for the same price.

    >>> ages = Choose([18, 30], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age >= {age}")
    >>> ages.score
    ('SELECT COUNT(*) FROM visits WHERE age >= 18', 'SELECT COUNT(*) FROM visits WHERE age >= 30')
    """

    candidates: tuple[Any, ...]
    score: tuple[str | Query, ...]
    sensitivity: Fraction | None
    lead: bool

    def __init__(
        self,
        candidates: Sequence[Any],
        *,
        score: Callable[[Any], str | Query | Asked] | Sequence[str | Query | Asked],
        sensitivity: Number | None = None,
        lead: bool = False,
    ) -> None:
        named = _candidates(candidates)
        given = [score(one) for one in named] if callable(score) else score
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != len(named):
            raise InputError(_SCORE)
        if not isinstance(lead, bool):
            raise InputError("lead must be True, to learn by how much the best is ahead, or False.")
        least = None if sensitivity is None else fraction(sensitivity, "sensitivity")
        if least is not None and least <= 0:
            raise InputError("sensitivity must be above 0: leave it out, it follows from the policy.")
        put = {"candidates": named, "score": tuple(map(query_text, given)), "sensitivity": least, "lead": lead}
        for name, value in put.items():
            object.__setattr__(self, name, value)

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose by the scores that the queries ask for."""
        scores = scores_of([query_of(one, schema) for one in self.score], schema)
        self._check_sensitivity(scores, neighbours)
        among = Contest("choose", "chosen", self._labels(), scores, "points of score")
        return among.one(spend, neighbours, level, lead=self.lead)

    def _check_sensitivity(self, scores: Scores, neighbours: Neighbours) -> None:
        moves = scores.sensitivity(neighbours).linf * scores.unit
        if self.sensitivity is not None and self.sensitivity < moves:
            raise InputError(f"One unit can move a score by {moves}: state that as the sensitivity, or leave it out.")

    def _labels(self) -> pyarrow.Array:
        try:
            return pyarrow.array(self.candidates)
        except (pyarrow.ArrowException, TypeError, OverflowError):
            return pyarrow.array([str(one) for one in self.candidates])

    def fields(self) -> Any:
        """The fields, with dates as {"date": "2020-01-31"}."""
        return super().fields() | {"candidates": [_written(one) for one in self.candidates]}


def _candidates(given: Any) -> tuple[Any, ...]:
    if isinstance(given, str | bytes | dict) or not hasattr(given, "__iter__"):
        raise InputError("candidates must be a list: candidates=[18, 30, 65].")
    found = tuple(map(_read, given))
    if not 2 <= len(found) <= _MOST:
        raise InputError(f"Name between 2 and {_MOST:,} candidates to choose among.")
    try:
        distinct = set(found)
    except TypeError:
        raise InputError("A candidate must be a text, a number or a date.") from None
    if len(distinct) < len(found):
        raise InputError("A candidate is named twice: name each once.")
    return found


_DATES = {"date": datetime.date, "timestamp": datetime.datetime}


def _read(candidate: Any) -> Any:
    """A candidate; JSON has dates as {"date": "2020-01-31"}."""
    if not isinstance(candidate, dict):
        return candidate
    match list(candidate.items()):
        case [("date" | "timestamp" as kind, str(text))]:
            try:
                return _DATES[kind].fromisoformat(text)
            except ValueError:
                pass
    raise InputError(
        'A candidate that is a date is written {"date": "2020-01-31"} or {"timestamp": "2020-01-31T12:00"}.'
    )


def _written(candidate: Any) -> Any:
    if isinstance(candidate, datetime.datetime):
        return {"timestamp": candidate.isoformat()}
    return {"date": candidate.isoformat()} if isinstance(candidate, datetime.date) else candidate


_OLD = "SELECT COUNT(*) FROM visits WHERE age >= {}"
_COST = "SELECT SUM(cost - 500) FROM visits WHERE ward = '{}'"

examples = [
    Choose([18, 30, 65], score=_OLD.format),
    Choose(["emergency", "oncology"], score=_COST.format),
    Choose(["emergency", "oncology"], score=_COST.format, lead=True),
]
