"""Counting queries about cells, as people write them: {"age": [18, 65], "ward": "north"}, and as boxes of cells."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.releases.axis import Axis
from noisette.releases.multiplicative.candidates import Boxes, Candidates, Subset

__all__ = ["ASK", "candidates_of", "mask_of", "read_columns", "read_query"]

ASK = 'A query says which values of which columns count: {"age": [18, 65], "ward": "north"}.'
_MOST_BOXES = 1 << 16  # of one query


def read_columns(given: Any) -> tuple[str, ...]:
    """One column or several, each once."""
    columns = (given,) if isinstance(given, str) else given
    plain = isinstance(columns, list | tuple) and columns and all(isinstance(one, str) and one for one in columns)
    if not plain or len(set(columns)) < len(columns):
        raise InputError('columns must name columns, each once: ["ward", "age"].')
    return tuple(columns)


def read_query(given: Any) -> dict[str, Any]:
    """A query as a dictionary; lists become tuples."""
    if not isinstance(given, Mapping) or not all(isinstance(column, str) and column for column in given):
        raise InputError(ASK)
    return {column: tuple(value) if isinstance(value, list | tuple) else value for column, value in given.items()}


def mask_of(axis: Axis, value: Any) -> NDArray[np.bool_]:
    """Which cells of an axis a value, a pair of ends or several keys mean."""
    cells = np.arange(axis.cells)
    if axis.keys is not None:
        return np.isin(cells, [axis.find(key) for key in (value if isinstance(value, tuple) else (value,))])
    if not isinstance(value, tuple):
        return np.asarray(cells == axis.find(value))
    if len(value) != 2:
        raise InputError(f"The values of {axis.name} have an order: write one value, or [low, high].")
    low, high = axis.span(*value)
    if low > high:
        raise InputError(f"The lower end of {axis.name} comes first: [low, high].")
    return np.asarray((cells >= low) & (cells <= high))


def candidates_of(axes: Sequence[Axis], queries: Sequence[Mapping[str, Any]]) -> Candidates:
    """The queries as boxes, those about the same columns together, numbered as they are given."""
    groups: dict[Subset, list[tuple[int, list[tuple[tuple[int, int], ...]]]]] = {}
    for number, query in enumerate(queries):
        read, boxes = _boxes(axes, query)
        groups.setdefault(read, []).append((number, boxes))
    return Candidates(tuple(axis.cells for axis in axes), tuple(_group(*one) for one in groups.items()))


def _boxes(axes: Sequence[Axis], query: Mapping[str, Any]) -> tuple[Subset, list[tuple[tuple[int, int], ...]]]:
    """The axes that a query reads, and its boxes; one that names no column counts all rows."""
    places = {axis.name: i for i, axis in enumerate(axes)}
    if not set(query) <= set(places):
        raise InputError(f"A query names a column that is not among {', '.join(places)}: add it to columns.")
    read = tuple(sorted(places[name] for name in query)) or (0,)
    runs = [_runs(axes[i], query.get(axes[i].name, (None, None))) if query else [(0, axes[i].cells - 1)] for i in read]
    boxes = list(product(*runs))
    if not boxes or len(boxes) > _MOST_BOXES:
        raise InputError(
            "A query must mean one value at least, and few runs of values: name some that belong together."
        )
    return read, boxes


def _runs(axis: Axis, value: Any) -> list[tuple[int, int]]:
    """The runs of neighbouring cells that are meant."""
    mask = mask_of(axis, value)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def _group(axes: Subset, queries: Sequence[tuple[int, list[tuple[tuple[int, int], ...]]]]) -> Boxes:
    sizes = [len(boxes) for _, boxes in queries]
    ends = np.array([box for _, boxes in queries for box in boxes], np.int64).reshape(-1, len(axes), 2)
    first = np.cumsum([0, *sizes[:-1]])
    return Boxes(axes, ends[:, :, 0], ends[:, :, 1], first, np.array([number for number, _ in queries], np.int64))
