"""Plans as trees of lists, and these as JSON: the same text in every process, different for different plans."""

import datetime
import json
from fractions import Fraction
from typing import Any, assert_never

from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.kind import Value
from noisette.query.plan import Aggregate, Join, PerUnit, Relation, Scan, Select, Where

__all__ = ["aggregate_text", "aggregate_tree", "as_json", "expression_text", "expression_tree", "relation_tree"]


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
        case Scan(table, alias):
            return ["scan", table, alias]
        case Where(source, condition):
            return ["where", relation_tree(source), expression_tree(condition)]
        case Select(source, columns):
            return ["select", relation_tree(source), [[name, expression_tree(e)] for name, e in columns]]
        case Join(left, right, on, how):
            return [how, relation_tree(left), relation_tree(right), [list(pair) for pair in on]]
        case PerUnit(source, keys, aggregates):
            named = [[name, aggregate_tree(each)] for name, each in aggregates]
            return ["per_unit", relation_tree(source), [[name, expression_tree(e)] for name, e in keys], named]
        case _:
            assert_never(relation)
