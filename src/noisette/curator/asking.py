"""Questions of any sort as values, and which spends a plan can be made for: refused before anything is planned."""

from fractions import Fraction
from typing import Any

from noisette.errors import InputError
from noisette.privacy import ZCDP, Promise
from noisette.query.frame import Asked
from noisette.query.plan import Query
from noisette.query.schema import Schema
from noisette.questions.contract import Question
from noisette.questions.parts.chosen_limits import WithinLimits
from noisette.questions.parts.queries import Queries
from noisette.questions.parts.queries import query_of as one_query

__all__ = ["plannable", "query_of", "question_of"]

_LEAST = Fraction(1, 10**9)  # the noise of less is beyond every count
_LEAST_DELTA = Fraction(1, 10**300)  # floats end a little below
_LONGEST = 1_400  # bits: more than 400 digits, which texts may have


def question_of(asked: Any, schema: Schema) -> Question:
    """A question, from SQL, a table's methods, a list of those, or itself."""
    if isinstance(asked, list):
        return Queries(tuple(query_of(one, schema) for one in asked))
    if isinstance(asked, str | Query | Asked):
        return Queries((query_of(asked, schema),))
    if hasattr(asked, "offer"):
        return WithinLimits(asked)
    raise InputError("Ask in SQL, with a table's methods, or with a question such as Histogram('age').")


def query_of(asked: Any, schema: Schema) -> Query:
    """A query, from SQL or from a table's methods."""
    if not isinstance(asked, str | Query | Asked):
        raise InputError(
            "Questions that are asked together, or of a stream, must be SQL or made with a table's methods."
        )
    return one_query(asked, schema)


def plannable(spend: Promise) -> None:
    """Refuse what is too little, or written too long; what is too much, `Pure`, `Approx` and `ZCDP` refuse.

    >>> from noisette.privacy import Approx
    >>> plannable(Approx("0.1", "1e-8"))
    """
    size, delta = spend.size, spend.delta
    if size <= 0:
        raise InputError("Spend more than 0: an answer without any noise budget cannot be given.")
    if size < (_LEAST**2 if isinstance(spend, ZCDP) else _LEAST):
        least = "a rho of 1e-18" if isinstance(spend, ZCDP) else "an epsilon of 1e-9"
        raise InputError(f"Spend at least {least}: for less, the noise would hide any answer.")
    if 0 < delta < _LEAST_DELTA:
        raise InputError("delta must be 0 or at least 1e-300: a usual one is '1e-6'.")
    if any(part.bit_length() > _LONGEST for number in (size, delta) for part in number.as_integer_ratio()):
        raise InputError("Write what to spend with at most 400 digits: 0.1 or '1/3'.")
