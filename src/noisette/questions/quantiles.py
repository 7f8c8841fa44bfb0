"""Several quantiles of a column in one release: what QUANTILE(x, [0.25, 0.5, 0.75]) asks in SQL."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from noisette.errors import InputError
from noisette.exact.number import Number, fraction
from noisette.privacy import Neighbours, Promise
from noisette.query.plan import Aggregate
from noisette.query.schema import Schema
from noisette.query.sql.lists import percent
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.queries import Queries
from noisette.questions.parts.rows import Rows, rows_of

__all__ = ["Quantiles"]

_MOST = 100
_QUARTILES = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)


@dataclass(frozen=True)
class Quantiles(JsonQuestion):
    """Quantiles of a column (or of an expression) with bounds, ascending, each with its error bar: the quartiles.

    `at` names others. Three and more are read off one tree of counts, with bars that hold for any values.

    >>> Quantiles("age", [0.75, 0.25])
    Quantiles(column='age', at=(Fraction(1, 4), Fraction(3, 4)), of=None)
    """

    column: str
    at: tuple[Fraction, ...]
    of: Rows

    def __init__(self, column: str, at: Iterable[Number] = _QUARTILES, of: Rows = None) -> None:
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "at", _ascending(at))
        object.__setattr__(self, "of", of)
        self.__post_init__()

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Plan one query for all of them."""
        query = rows_of(self.of, self.column, schema).median(self.column).query
        [(name, median)] = query.outputs
        assert isinstance(median, Aggregate)
        short = name.removeprefix("median_")
        outputs = tuple((f"{short}_{percent(q)}", replace(median, at=q)) for q in self.at)
        return Queries((replace(query, outputs=outputs),)).offer(schema, spend, neighbours, level)


def _ascending(at: Iterable[Number]) -> tuple[Fraction, ...]:
    ask = f'at must be 1 to {_MOST} numbers from 0 to 1, each once: Quantiles("age", [0.25, 0.5, 0.75]).'
    if isinstance(at, str | bytes) or not isinstance(at, Iterable):
        raise InputError(ask)
    found = sorted(fraction(q, "each of at") for q in at)
    if not 1 <= len(found) <= _MOST or len(set(found)) < len(found) or not all(0 <= q <= 1 for q in found):
        raise InputError(ask)
    return tuple(found)


examples = [
    Quantiles("age"),
    Quantiles("cost", ["0.1", "0.5", "0.9"], of="SELECT * FROM visits WHERE ward = 'emergency'"),
]
