"""What is asked, as a value: both front ends build it, one compiler and one analysis read it.

A relation is rows; every row of a private relation belongs to one unit and is made of that unit's rows and of public
ones only. A query is groups of a relation, aggregates of each group, and columns computed from the noised aggregates.

    Relation = Scan | Where | Select | Join | PerUnit
    Query    = relation + keys + outputs (+ having, order, limit)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

from noisette.query.expression import Expression

__all__ = [
    "Aggregate",
    "Function",
    "Join",
    "Key",
    "Named",
    "Ordering",
    "PerUnit",
    "Query",
    "Relation",
    "Result",
    "ResultCall",
    "ResultLiteral",
    "Scan",
    "Select",
    "Where",
    "aggregates_in",
    "aggregates_of",
]  # fmt: skip

Named: TypeAlias = tuple[str, Expression]


# Relations


@dataclass(frozen=True)
class Scan:
    """The rows of a table. Its columns are named `alias.column`, so that joins cannot confuse them."""

    table: str
    alias: str


@dataclass(frozen=True)
class Where:
    """The rows for which a condition is true (not false, not NULL)."""

    source: "Relation"
    condition: Expression


@dataclass(frozen=True)
class Select:
    """Rows with other columns: what a sub-query selects. The unit, if there is one, comes along by itself."""

    source: "Relation"
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Join:
    """Pairs of rows with equal columns (NULL equals nothing); `left` keeps the left rows that have no partner."""

    left: "Relation"
    right: "Relation"
    on: tuple[tuple[str, str], ...]
    how: OneOf["inner", "left"] = "inner"


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit (and each combination of keys within it), with aggregates of that unit's rows."""

    source: "Relation"
    keys: tuple[Named, ...]
    aggregates: tuple[tuple[str, "Aggregate"], ...]


Relation: TypeAlias = Scan | Where | Select | Join | PerUnit


# Aggregates of a group, and columns made of them

Function: TypeAlias = str
"""rows: COUNT(*) · units: COUNT(DISTINCT unit) · or an aggregate of x, by its name in `aggregate.AGGREGATES`.

Variance and deviation are those of the group itself (divided by n), since n is noised anyway. MIN and MAX are the
quantiles 0 and 1. Within `PerUnit` there are rows, count, sum, mean and the quantiles 0 and 1.
"""


@dataclass(frozen=True)
class Aggregate:
    """A number about a group: a function of an expression over its rows."""

    function: Function
    of: Expression | None = None  # None for rows and units
    at: Fraction | None = None  # which quantile


@dataclass(frozen=True)
class Key:
    """The key of that position among the query's keys."""

    position: int


@dataclass(frozen=True)
class ResultLiteral:
    """A constant among the results."""

    value: Fraction | str | bool | None


@dataclass(frozen=True)
class ResultCall:
    """Arithmetic or a comparison on released numbers; free, since it sees nothing else."""

    operation: OneOf[
        "add", "subtract", "multiply", "divide", "negate", "abs", "round", "floor", "ceil",
        "equal", "unequal", "less", "at_most", "more", "at_least", "and", "or", "not",
    ]  # fmt: skip
    arguments: tuple["Result", ...]


Result: TypeAlias = Key | Aggregate | ResultLiteral | ResultCall


@dataclass(frozen=True)
class Ordering:
    """What the released rows are sorted by."""

    by: Result
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """Groups of a relation, and what is released about each.

    `keys` are expressions over the relation's columns; `outputs` are named columns made of keys and aggregates.
    `having`, `order` and `limit` work on released numbers alone.
    """

    source: Relation
    keys: tuple[Expression, ...]
    outputs: tuple[tuple[str, Result], ...]
    having: Result | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None


def aggregates_in(query: Query) -> Iterator[Aggregate]:
    """All aggregates that outputs, having and order use."""
    for _, result in query.outputs:
        yield from aggregates_of(result)
    if query.having is not None:
        yield from aggregates_of(query.having)
    for ordering in query.order:
        yield from aggregates_of(ordering.by)


def aggregates_of(result: Result) -> Iterator[Aggregate]:
    """The aggregates that one result uses."""
    match result:
        case Aggregate():
            yield result
        case ResultCall(_, arguments):
            for argument in arguments:
                yield from aggregates_of(argument)
        case _:
            pass
