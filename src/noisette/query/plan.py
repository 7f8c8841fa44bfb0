"""What is asked, as a value: both front ends build it, one compiler and one analysis read it.

A relation is rows; every row of a private relation belongs to one unit and is made of that unit's rows and of public
ones only. A query is groups of a relation, aggregates of each group, and columns computed from the noised aggregates.

    Relation = Scan | Where | Select | Join | PerUnit | Copies
    Query    = relation + keys + outputs (+ having, order, limit)
"""

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, assert_never
from typing import Literal as OneOf

from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Value

__all__ = [
    "Aggregate",
    "Copies",
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
    "aggregate_text",
    "aggregate_tree",
    "aggregates_in",
    "aggregates_of",
    "as_json",
    "expression_text",
    "expression_tree",
    "relation_tree",
]

Named: TypeAlias = tuple[str, Expression]


# Relations


@dataclass(frozen=True)
class Scan:
    """The rows of a table. Its columns are named `alias.column`, so that joins cannot confuse them.

    `also`: the further columns of those with bounds that a request to an engine reads (`variants`).
    """

    table: str
    alias: str
    also: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class Copies:
    """Every row several times, the copies numbered from 1 on in a column of that name; all belong to the row's unit."""

    source: "Relation"
    times: int
    number: str


Relation: TypeAlias = Scan | Where | Select | Join | PerUnit | Copies


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
    """Arithmetic or a comparison on released numbers; free, since it sees nothing else.

    total: an aggregate, added up over the groups that are shown, or over those of them with the same keys.
    grouping: a bit for each of some keys, 1 where the row is a total over that key.
    """

    operation: OneOf[
        "add", "subtract", "multiply", "divide", "negate", "abs", "round", "floor", "ceil",
        "equal", "unequal", "less", "at_most", "more", "at_least", "and", "or", "not", "total",
        "grouping",
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
    `having`, `order` and `limit` work on released numbers alone. `sets` of positions of keys: one set of groups for
    each, as ROLLUP has it; without any, the groups of all keys.
    """

    source: Relation
    keys: tuple[Expression, ...]
    outputs: tuple[tuple[str, Result], ...]
    having: Result | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    sets: tuple[tuple[int, ...], ...] = ()


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


# Plans as trees of lists, and these as JSON: the same text in every process, different for different plans


def expression_text(expression: Expression) -> str:
    """An expression as JSON; 1 and TRUE differ, 1 and 1.0 do not.

    >>> expression_text(Call("less", (Name("t1.age"), Literal(18))))
    '["less",["name","t1.age"],["number","18"]]'
    """
    return as_json(expression_tree(expression))


def aggregate_text(aggregate: Aggregate) -> str:
    """An aggregate as JSON."""
    return as_json(aggregate_tree(aggregate))


def as_json(tree: object) -> str:
    """A tree as JSON, without blanks and with sorted keys."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def expression_tree(expression: Expression) -> list[Any]:
    """An expression as lists: its operation and its arguments."""
    match expression:
        case Name(name):
            return ["name", name]
        case Literal(value):
            return _value(value)
        case Call(operation, arguments):
            return [operation, *map(expression_tree, arguments)]


def _value(value: Value) -> list[Any]:
    match value:
        case None:
            return ["null"]
        case bool():
            return ["boolean", value]
        case int() | Fraction():
            return ["number", str(value)]
        case str():
            return ["text", value]
        case datetime.datetime():
            return ["timestamp", value.isoformat()]
        case datetime.date():
            return ["date", value.isoformat()]


def aggregate_tree(aggregate: Aggregate) -> list[Any]:
    """An aggregate as a list: its function, what it is of, which quantile."""
    of = [] if aggregate.of is None else [expression_tree(aggregate.of)]
    at = [] if aggregate.at is None else [str(aggregate.at)]
    return [aggregate.function, *of, *at]


def relation_tree(relation: Relation) -> list[Any]:
    """A relation as lists."""
    match relation:
        case Scan(table, alias, also):
            return ["scan", table, alias, *([list(also)] if also else [])]
        case Where(source, condition):
            return ["where", relation_tree(source), expression_tree(condition)]
        case Select(source, columns):
            return ["select", relation_tree(source), [[name, expression_tree(e)] for name, e in columns]]
        case Join(left, right, on, how):
            return [how, relation_tree(left), relation_tree(right), [list(pair) for pair in on]]
        case Copies(source, times, number):
            return ["copies", relation_tree(source), times, number]
        case PerUnit(source, keys, aggregates):
            named = [[name, aggregate_tree(each)] for name, each in aggregates]
            return ["per_unit", relation_tree(source), [[name, expression_tree(e)] for name, e in keys], named]
        case _:
            assert_never(relation)
