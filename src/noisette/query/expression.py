"""Expressions over the columns of one row: three frozen nodes and a closed list of operations.

Every operation is total: for no row can it fail, overflow or divide by zero. `operations.kind_of` says what is known of
the result, `engines.sql` writes it for an engine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from noisette.query.kind import Value

__all__ = ["Call", "Expression", "Literal", "Name", "Operation", "columns_of", "replaced"]

Operation: TypeAlias = OneOf[
    # numbers
    "add", "subtract", "multiply", "divide", "negate", "abs", "floor", "ceil", "least", "greatest",
    "modulo", "round", "sqrt", "ln", "log2", "log10",
    # truth
    "equal", "unequal", "less", "at_most", "more", "at_least", "and", "or", "not", "is_null", "in", "like",
    "matches",
    # choice: case(condition, value, condition, value, ..., otherwise) and coalesce(first, second, ...)
    "case", "coalesce",
    # text
    "lower", "upper", "trim", "substring", "right", "length", "concat", "replace", "split_part",
    # dates
    "year", "quarter", "month", "week", "day", "day_of_year", "weekday", "hour", "minute", "second",
    "weekday_name", "month_name", "date_trunc", "add_months", "add_days", "add_seconds", "day_number", "strftime",
    # other types
    "as_text", "as_date", "as_timestamp", "try_integer", "try_real", "try_date",
    # two values for one aggregate, which no engine computes
    "pair",
]  # fmt: skip
"""What can be done to the values of one row. weekday: Monday is 1. like: the pattern is a literal, % and _ only.
matches: a regular expression (`pattern`). day_number: days since 0001-01-01. try_...: NULL if a text cannot be read."""


@dataclass(frozen=True)
class Name:
    """A column of the relation below, by its name there."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A constant the analyst wrote."""

    value: Value


@dataclass(frozen=True)
class Call:
    """An operation on the values of one row."""

    operation: Operation
    arguments: tuple["Expression", ...]


Expression: TypeAlias = Name | Literal | Call


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression uses.

    >>> sorted(columns_of(Call("add", (Name("a"), Call("negate", (Name("b"),))))))
    ['a', 'b']
    """
    match expression:
        case Name(name):
            yield name
        case Literal():
            pass
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)


def replaced(expression: Expression, names: Mapping[str, Expression]) -> Expression:
    """The same with other expressions in place of its columns.

    >>> replaced(Call("negate", (Name("a"),)), {"a": Name("b")})
    Call(operation='negate', arguments=(Name(name='b'),))
    """
    match expression:
        case Name(name):
            return names[name]
        case Literal():
            return expression
        case Call(operation, arguments):
            return Call(operation, tuple(replaced(argument, names) for argument in arguments))
