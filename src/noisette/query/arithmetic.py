"""Arithmetic and comparisons on what was released: estimates, keys and constants."""

import datetime
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.query.estimate import Estimate
from noisette.query.plan import ResultCall

__all__ = ["Evaluated", "call", "order", "truth"]

Evaluated: TypeAlias = Any
"""An `Estimate`, an Arrow array of keys or of truth values, or a constant."""

_COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "equal": (np.equal, "equal"),
    "unequal": (np.not_equal, "not_equal"),
    "less": (np.less, "less"),
    "at_most": (np.less_equal, "less_equal"),
    "more": (np.greater, "greater"),
    "at_least": (np.greater_equal, "greater_equal"),
}
_ROUNDINGS: dict[str, Callable[..., Any]] = {"floor": np.floor, "ceil": np.ceil}


def call(result: ResultCall, values: Sequence[Evaluated]) -> Evaluated:
    """An operation on released values."""
    operation = result.operation
    if operation in _COMPARISONS:
        return _compared(operation, *values)
    if operation in ("and", "or", "not"):
        truths = [truth(value) for value in values]
        combined = {"and": np.logical_and.reduce, "or": np.logical_or.reduce}.get(operation)
        return np.logical_not(truths[0]) if combined is None else combined(np.broadcast_arrays(*truths))
    return _calculated(operation, [_number(value) for value in values])


def _calculated(operation: str, values: Sequence[Estimate]) -> Estimate:
    first, rest = values[0], values[1:]
    match operation:
        case "add":
            return first + rest[0]
        case "subtract":
            return first - rest[0]
        case "multiply":
            return first * rest[0]
        case "divide":
            if rest[0].certain and not rest[0].value.ndim and rest[0].value == 0:
                raise InputError("A result cannot be divided by 0.")
            return first.over(rest[0])
        case "negate":
            return first.scaled(-1)
        case "abs":
            return first.mirrored()
        case "round":
            return first.rounded(np.round(first.value, int(rest[0].value) if rest else 0))
        case _:
            return first.rounded(_ROUNDINGS[operation](first.value))


def _number(value: Evaluated) -> Estimate:
    if isinstance(value, Estimate):
        return value
    if isinstance(value, pyarrow.Array) and (
        pyarrow.types.is_integer(value.type) or pyarrow.types.is_floating(value.type)
    ):
        return Estimate(value.to_numpy(zero_copy_only=False).astype(float), {})
    raise InputError("Results can be calculated with only if they are numbers.")


def _compared(operation: str, a: Evaluated, b: Evaluated) -> NDArray[np.bool_]:
    numeric, named = _COMPARISONS[operation]
    if isinstance(a, Estimate) or isinstance(b, Estimate):
        return np.asarray(numeric(_number(a).value, _number(b).value))
    if not isinstance(a, pyarrow.Array) and not isinstance(b, pyarrow.Array):
        raise InputError("Compare a column of the answer with something: two constants decide nothing.")
    left, right = _typed(a, b), _typed(b, a)
    try:
        return truth(pyarrow.compute.call_function(named, [left, right]))
    except pyarrow.ArrowException:
        raise InputError("These results cannot be compared: they are of different types.") from None


def _typed(value: Evaluated, other: Evaluated) -> Any:
    """A constant as a scalar of the other side's type; a date may be written as text."""
    if isinstance(value, pyarrow.Array):
        return value
    try:
        if isinstance(value, str) and pyarrow.types.is_date(other.type):
            value = datetime.date.fromisoformat(value)
        return pyarrow.scalar(value, other.type)
    except (ValueError, TypeError, pyarrow.ArrowException):
        raise InputError("These results cannot be compared: they are of different types.") from None


def truth(value: Evaluated) -> NDArray[np.bool_]:
    """A truth value for each group; NULL is false."""
    if isinstance(value, Estimate):
        return np.asarray(value.value != 0)
    if isinstance(value, pyarrow.Array | pyarrow.ChunkedArray):
        return np.asarray(value.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
    return np.asarray(value, dtype=bool)


def order(value: Evaluated, rows: NDArray[np.int64], *, descending: bool) -> NDArray[np.int64]:
    """How some rows are sorted by a value: a stable order, NULL last."""
    if isinstance(value, Estimate):
        numbers = value.value[rows] if value.value.ndim else np.broadcast_to(value.value, rows.shape)
        return np.argsort(-numbers if descending else numbers, kind="stable")
    keys = value.take(pyarrow.array(rows))
    return np.asarray(pyarrow.compute.array_sort_indices(keys, order="descending" if descending else "ascending"))
