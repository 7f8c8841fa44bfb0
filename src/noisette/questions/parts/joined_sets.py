"""The groups of several sets as one table: keys are NULL in totals over them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.query.answer import Scene, column_of, order_of
from noisette.query.estimate import Estimate
from noisette.query.plan import Key, Ordering, Query, ResultCall

__all__ = ["joined"]


def joined(scenes: Sequence[Scene], form: Query) -> tuple[Column, ...]:
    """All groups in the order that was asked for, or set after set."""
    columns = [_column(at, scenes, form) for at in range(len(form.outputs))]
    rows = _rows(scenes, form)
    return tuple(column.take(rows) for column in columns)


def _column(at: int, scenes: Sequence[Scene], form: Query) -> Column:
    name, asked = form.outputs[at]
    parts = [column_of(name, scene.prepared.query.outputs[at][1], scene) for scene in scenes]
    values = _concatenated([part.values for part in parts])
    if isinstance(asked, ResultCall) and asked.operation == "grouping":
        return Column(name, values.cast(pyarrow.int64()))
    if not any(part.measured for part in parts):
        return Column(name, values)
    low, high = (np.concatenate([_ends(part)[end] for part in parts]) for end in (0, 1))
    drawn = [
        np.concatenate([part.unmoved[end] if part.measured else _ends(part)[end] for part in parts]) for end in (0, 1)
    ]
    shown = np.concatenate([part.half if part.measured else _ends(part)[0] for part in parts])
    first = next(part for part in parts if part.measured)
    return Column(name, values, low, high, first.span, (drawn[0], drawn[1]), shown, first.adds)


def _ends(part: Column) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if part.low is None or part.high is None:
        nothing = np.full(len(part.values), np.nan)
        return nothing, nothing
    return part.low, part.high


def _concatenated(parts: Sequence[pyarrow.Array]) -> pyarrow.Array:
    """Arrays of one type; whole numbers beside others are numbers."""
    types = list(dict.fromkeys(part.type for part in parts if not pyarrow.types.is_null(part.type)))
    wanted = types[0] if len(types) == 1 else pyarrow.float64() if types else pyarrow.null()
    return pyarrow.concat_arrays([part.cast(wanted) for part in parts])


def _rows(scenes: Sequence[Scene], form: Query) -> NDArray[np.int64]:
    sizes = [scene.noised.size for scene in scenes]
    rows = np.arange(sum(sizes))
    orders = form.order or tuple(Ordering(value) for _, value in form.outputs if isinstance(value, Key))
    values = [_by(scenes, form, at) for at in range(len(orders))]
    if form.having is not None:
        rows = rows[np.concatenate([scene.shown for scene in scenes])]
    for order, value in zip(orders[::-1], values[::-1], strict=True):  # stable sorts, the last one decides first
        rows = rows[order_of(value, rows, descending=order.descending)]
    hidden = [np.zeros(n, bool) if s.hidden is None else s.hidden for s, n in zip(scenes, sizes, strict=True)]
    first = np.concatenate(hidden) if form.order else np.repeat(np.arange(len(scenes)), sizes)
    rows = rows[np.argsort(first[rows], kind="stable")]  # suppressed groups last, or set after set
    return rows if form.limit is None else rows[: form.limit]


def _by(scenes: Sequence[Scene], form: Query, at: int) -> Any:
    """What all groups are sorted by."""
    found = []
    for scene in scenes:
        query = scene.prepared.query
        by = (
            query.order[at].by
            if form.order
            else [v for (_, v), (_, old) in zip(query.outputs, form.outputs, strict=True) if isinstance(old, Key)][at]
        )
        value = scene.value(by)
        if isinstance(value, Estimate):
            value = np.broadcast_to(value.value, (scene.noised.size,))
        found.append(value if isinstance(value, pyarrow.Array) else _array(value, scene.noised.size))
    merged = _concatenated(found)
    if pyarrow.types.is_floating(merged.type):
        return Estimate(merged.to_numpy(zero_copy_only=False), {})
    return merged


def _array(value: Any, size: int) -> pyarrow.Array:
    return pyarrow.array(value) if isinstance(value, np.ndarray) else pyarrow.array([value] * size)
