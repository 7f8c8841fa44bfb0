"""How large an expression is once an engine has written it: some operations write their arguments several times.

Nested, they would grow exponentially: a question that is cheap to ask would take an engine hours. So `kind_of` refuses
what grows by too much, before anything is charged. A sub-query gives a name to a part, which is then written once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from noisette.errors import InputError
from noisette.query.expression import Call, Expression, Name, Operation

__all__ = ["check_size", "repeated"]

LARGEST_SIZE = 2_000
"""The most nodes of what is repeated on its way into the plan."""

MOST_GROWTH = 5_000
"""The most nodes by which an expression may grow when an engine writes it."""

_TIMES: dict[Operation, tuple[int, ...]] = {
    **dict.fromkeys(("ln", "log2", "log10"), (14,)),
    **dict.fromkeys(("weekday_name", "month_name"), (12,)),
    **dict.fromkeys(("add_months", "add_days", "add_seconds"), (3, 1)),
    **dict.fromkeys(("sqrt", "try_integer", "try_real", "try_date"), (2,)),
    **dict.fromkeys(("divide", "modulo"), (1, 2)),
}
"""How often each argument is written, where it is more than once."""

_LOOKING = ("modulo", "try_integer", "try_real", "try_date", "and", "or")
"""Whether these are NULL is asked of themselves."""

_PARTIAL: dict[Operation, int] = {"divide": 1, "sqrt": 0, "ln": 0, "log2": 0, "log10": 0}
"""These are NULL for some values of that argument."""


class _Size(NamedTuple):
    """Nodes in all, and those of the conditions under which the value is NULL."""

    nodes: int
    missing: int


def repeated(value: Expression, times: int) -> Expression:
    """A value that is written several times, if it is not too large for that."""
    if _size(value).nodes * times > LARGEST_SIZE:
        raise InputError("An expression is too large to be repeated: compute it in a sub-query and use its name.")
    return value


def check_size(expression: Expression) -> None:
    """Refuse an expression that is too large once it is written.

    >>> from noisette.query.expression import Literal
    >>> tower = Name("d")
    >>> for _ in range(8):
    ...     tower = Call("add_months", (tower, Literal(1)))
    >>> check_size(tower)
    Traceback (most recent call last):
    noisette.errors.InputError: An expression grows too large: compute a part of it in a sub-query, and use its name.
    """
    if isinstance(expression, Call) and _size(expression).nodes - _plain(expression) > MOST_GROWTH:
        raise InputError("An expression grows too large: compute a part of it in a sub-query, and use its name.")


def _plain(expression: Expression) -> int:
    return 1 + sum(map(_plain, expression.arguments)) if isinstance(expression, Call) else 1


def _size(expression: Expression) -> _Size:
    if not isinstance(expression, Call):
        return _Size(1, 1 if isinstance(expression, Name) else 0)
    parts = [_size(argument) for argument in expression.arguments]
    nodes = 1 + sum(part.nodes for part in parts) + _more(expression.operation, parts)
    return _Size(nodes, _missing(expression.operation, parts, nodes))


def _more(operation: Operation, parts: Sequence[_Size]) -> int:
    if operation in ("least", "greatest"):
        return sum(part.missing for part in parts)
    times = _TIMES.get(operation, ())
    return sum((n - 1) * part.nodes for n, part in zip(times, parts, strict=False))


def _missing(operation: Operation, parts: Sequence[_Size], nodes: int) -> int:
    if operation == "is_null":
        return 0
    if operation in _LOOKING:
        return nodes
    if operation == "case":
        return sum(part.nodes for part in parts[:-1:2]) + sum(part.missing for part in (*parts[1::2], parts[-1]))
    of = parts[_PARTIAL[operation]].nodes if operation in _PARTIAL else 0
    return of + sum(part.missing for part in parts)
