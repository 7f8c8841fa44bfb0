"""From a query to what must be measured for it: everything that can be refused is refused here, before any data."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from noisette.errors import InputError
from noisette.query.aggregate import measures_of
from noisette.query.canonical import measured_text
from noisette.query.expression import Expression, columns_of
from noisette.query.kind import MOST_KEYS, Kind, Value
from noisette.query.measure import Contribution, Measure, Request, contribution
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Query, aggregates_in
from noisette.query.schema import Schema
from noisette.query.stability import Shape, kinds_read, shape_of

__all__ = ["Prepared", "members", "prepare", "read_of"]


@dataclass(frozen=True)
class Prepared:
    """A query that can be answered: what to measure, and how much of one unit is in it.

    `asked` are the measures the answer is computed from (the request may hold one more, which decides about unknown
    keys); `quantiles` are the histograms among them with the quantiles asked of them; `read` is what was declared of
    the columns that are read.
    """

    query: Query
    shape: Shape
    part: Contribution
    keys: tuple[Kind, ...]
    request: Request
    asked: frozenset[Measure]
    quantiles: tuple[tuple[Measure, Fraction], ...]
    read: tuple[tuple[str, Kind], ...]

    @cached_property
    def text(self) -> str:
        """What is measured, as `canonical_text` has it; the query is in its canonical form already."""
        return measured_text(self.query)

    @property
    def opens(self) -> bool:
        """Whether it releases which groups there are, because not all keys are declared."""
        return None in self.request.domains


def prepare(query: Query, schema: Schema) -> Prepared:
    """Analyse a query, or say in a sentence why it cannot be answered."""
    shape = shape_of(query.source, schema)
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    part, limits = contribution(shape, grouped=bool(query.keys))
    keys = tuple(kind_of(key, shape.columns) for key in query.keys)
    aggregates = tuple(dict.fromkeys(aggregates_in(query)))
    domains = _domains(keys)
    asked = [m for a in aggregates for m in measures_of(a, shape, part)]
    measures = [*asked, _members(part)] if None in domains else asked
    if not measures:
        raise InputError("The keys are declared, so there is nothing to learn: ask for a number, such as COUNT(*).")
    request = Request(query.source, query.keys, domains, tuple(dict.fromkeys(measures)), limits)
    read = read_of(query, schema, *(a.of for a in aggregates))
    return Prepared(query, shape, part, keys, request, frozenset(asked), _quantiles(aggregates, shape, part), read)


def read_of(query: Query, schema: Schema, *others: Expression | None) -> tuple[tuple[str, Kind], ...]:
    """What was declared of the columns that a query reads for its rows, its keys and other expressions."""
    used = [name for e in (*query.keys, *others) if e is not None for name in columns_of(e)]
    return kinds_read(query.source, schema, used)


def _members(part: Contribution) -> Measure:
    """The number of units in a group, which decides whether an unknown key is released."""
    return Measure("rows" if part.rows == 1 else "units")


def members(prepared: Prepared) -> Measure | None:
    """The measure that decides which unknown keys are released; None if all keys are declared."""
    return _members(prepared.part) if prepared.opens else None


def _domains(keys: tuple[Kind, ...]) -> tuple[tuple[Value, ...] | None, ...]:
    domains = tuple(kind.values() for kind in keys)
    if None in domains:
        return domains
    if math.prod(len(domain) for domain in domains if domain is not None) > MOST_KEYS:
        raise InputError(f"More than {MOST_KEYS:,} combinations of keys: group by fewer columns or by coarser bins.")
    return domains


def _quantiles(
    aggregates: tuple[Aggregate, ...], shape: Shape, part: Contribution
) -> tuple[tuple[Measure, Fraction], ...]:
    return tuple((measures_of(a, shape, part)[0], a.at) for a in aggregates if a.at is not None)
