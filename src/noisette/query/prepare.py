"""From a query to what must be measured for it: everything that can be refused is refused here, before any data."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.query.aggregate import measures_of, vouching
from noisette.query.canonical import measured_text
from noisette.query.domains import domains_of
from noisette.query.expression import Expression, columns_of
from noisette.query.frequency import MinimumFrequency
from noisette.query.grouping import check_groups
from noisette.query.kind import Kind
from noisette.query.measure import Contribution, Measure, Request, contribution, moved
from noisette.query.plan import Aggregate, Query, aggregates_in, aggregates_of
from noisette.query.ranks import apart
from noisette.query.reads import kinds_read, tables_of
from noisette.query.schema import Schema, Table
from noisette.query.shape import Shape
from noisette.query.stability import shape_of

__all__ = ["Prepared", "answerable", "deciding", "members", "prepare", "read_of", "selected_among", "strictest"]


_MANY_GROUPS = 10_000


@dataclass(frozen=True)
class Prepared:
    """A query that can be answered: what to measure, and how much of one unit is in it.

    `asked` are the measures the answer is computed from (the request may hold one more, which decides which groups
    are shown); `vouching` are numbers of rows that error bars rest on, asked or not; `quantiles` are the histograms
    among the measures with the quantiles asked of them; `read` is what was declared
    of the columns that are read; `frequency` is how many units must stand behind a group that is shown; `groups` are
    the combinations of keys that public tables allow, by their places among all (None: all of them).
    """

    query: Query
    shape: Shape
    part: Contribution
    keys: tuple[Kind, ...]
    request: Request
    asked: frozenset[Measure]
    quantiles: tuple[tuple[Measure, Fraction], ...]
    read: tuple[tuple[str, Kind], ...]
    frequency: MinimumFrequency | None = None
    groups: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)
    vouching: frozenset[Measure] = frozenset()

    @cached_property
    def text(self) -> str:
        """What is measured, as `canonical_text` has it; the query is in its canonical form already."""
        return measured_text(self.query)

    @property
    def among(self) -> int:
        """Among how many groups rows are selected by noisy numbers."""
        return selected_among(self.query, self.groups_at_most)

    @property
    def groups_at_most(self) -> int:
        """How many groups there are, as far as declarations say; of unknown keys many are assumed."""
        return _MANY_GROUPS if self.opens else math.prod(len(d) for d in self.request.domains if d is not None)

    @property
    def opens(self) -> bool:
        """Whether it releases which groups there are, because not all keys are declared."""
        return None in self.request.domains


def prepare(query: Query, schema: Schema, *, of_two_units: bool = False, narrow: bool = False) -> Prepared:
    """Analyse a query, or say in a sentence why it cannot be answered.

    Rows that belong to two units are for whoever says so: what one unit changes of them is not what it owns. So are
    groups without keys that the conditions exclude (`narrow`): others count on every key.
    """
    if query.sets:
        raise InputError("ROLLUP, CUBE and GROUPING SETS are questions of their own: ask them one by one, in SQL.")
    shape = shape_of(query.source, schema)
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    check_groups(query, schema)
    both = moved(shape, grouped=bool(query.keys)) if of_two_units else None
    part, limits = contribution(shape, grouped=bool(query.keys), keys=query.keys) if both is None else (both, None)
    groups = domains_of(query, schema, narrow=narrow)
    keys, domains = groups.kinds, groups.values
    part = part if groups.cells is None else part.within(groups.cells)
    aggregates = tuple(dict.fromkeys(aggregates_in(query)))
    asked = [m for a in aggregates for m in measures_of(a, shape, part)]
    if both is not None:
        _check_both(asked, domains)
    if not asked and None not in domains:
        raise InputError("The keys are declared, so there is nothing to learn: ask for a number, such as COUNT(*).")
    measures = [*asked, _members(part)] if None in domains else asked
    request = Request(query.source, query.keys, domains, tuple(dict.fromkeys(measures)), limits)
    read = read_of(query, schema, *(a.of for a in aggregates))
    quantiles = _quantiles(aggregates, shape, part)
    return Prepared(query, shape, part, keys, request, frozenset(asked), quantiles, read, groups=groups.groups)


def _check_both(asked: Sequence[Measure], domains: Sequence[object]) -> None:
    """Refuse what would count the units behind rows that belong to two of them, or rank such rows."""
    if None in domains:
        raise InputError(
            "Tables that are joined on other columns than their units are grouped by declared keys alone: declare the "
            "keys in the policy, or leave GROUP BY out."
        )
    if any(measure.what == "histogram" for measure in asked):
        raise InputError(
            "Quantiles need rows that belong to one unit each: join on the units, or ask for AVG in place of MEDIAN."
        )


def selected_among(query: Query, groups: int) -> int:
    """Among how many groups an answer's rows are selected by noisy numbers: their bars hold for all of these at once.

    Bars of numbers that are shown because they are large would otherwise miss far more often than they say.
    """
    by = [ordering.by for ordering in query.order] if query.limit is not None and query.limit < groups else []
    noisy = any(any(aggregates_of(one)) for one in (*by, *([] if query.having is None else [query.having])))
    return max(1, groups) if noisy else 1


def answerable(query: Query, schema: Schema, *, of_two_units: bool = False) -> Prepared:
    """The same with all that its answer takes beside what was asked: what vouches for bars, and what a rule needs."""
    return _ruled(_vouched(prepare(query, schema, of_two_units=of_two_units, narrow=True)), schema)


def _vouched(prepared: Prepared) -> Prepared:
    """The same with the numbers of rows that error bars rest on; quantiles that are read off a tree need none."""
    found = set()
    for aggregate in aggregates_in(prepared.query):
        n = vouching(aggregate, prepared.shape)
        if aggregate.at is not None:
            (measure,) = measures_of(aggregate, prepared.shape, prepared.part)
            n = n if aggregate.at in apart([at for m, at in prepared.quantiles if m == measure]) else None
        if n is not None:
            found.add(n)
    measures = tuple(dict.fromkeys((*prepared.request.measures, *sorted(found, key=repr))))
    request = replace(prepared.request, measures=measures)
    return replace(prepared, request=request, vouching=frozenset(found))


def _ruled(prepared: Prepared, schema: Schema) -> Prepared:
    """The same under the strictest minimum frequency of the tables that it reads: the number of units is measured."""
    strict = strictest(tables_of(prepared.query.source, schema))
    if strict is None:
        return prepared
    if prepared.part.returns:
        raise InputError(
            "The policy asks for a number of units behind every group, which a join on other columns than the units "
            "cannot count: join on the units."
        )
    measures = tuple(dict.fromkeys((*prepared.request.measures, _members(prepared.part))))
    return replace(prepared, request=replace(prepared.request, measures=measures), frequency=strict)


def strictest(tables: Iterable[Table]) -> MinimumFrequency | None:
    """The strictest minimum frequency of some tables."""
    rules = [table.frequency for table in tables if table.frequency is not None]
    return max(rules, key=lambda rule: (rule.units, -rule.failure), default=None)


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


def deciding(prepared: Prepared) -> Measure | None:
    """The number of units that decides which groups of declared keys are shown; None without a minimum frequency."""
    return None if prepared.opens or prepared.frequency is None else _members(prepared.part)


def _quantiles(
    aggregates: tuple[Aggregate, ...], shape: Shape, part: Contribution
) -> tuple[tuple[Measure, Fraction], ...]:
    return tuple((measures_of(a, shape, part)[0], a.at) for a in aggregates if a.at is not None)
