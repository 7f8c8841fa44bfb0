"""What can be measured: counting queries, each a union of boxes of cells, and marginals, which are measured whole.

Vocabulary: `sizes` how many cells each attribute has · `axes` of a query, the attributes it reads, ascending · `table`
the counts of all cells of some axes · a `candidate` is a query or a marginal, known by its number.

All queries of the same axes are answered together from one table of prefix sums, with two look-ups for each axis.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError

__all__ = ["MOST_CELLS", "Boxes", "Candidates", "Counts", "Floats", "Subset", "Tables", "projected"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Subset: TypeAlias = tuple[int, ...]
Tables: TypeAlias = Mapping[Subset, NDArray[Any]]

MOST_CELLS = 1 << 18  # of one table: larger ones take minutes


@dataclass(frozen=True, eq=False)
class Boxes:
    """Queries about the same axes; `numbers` are those of the candidates, `first` where the boxes of each begin.

    `low` and `high` are boxes x axes, both included; the boxes of one query are disjoint.

    >>> ranges = Boxes((0,), np.array([[0], [2], [1]]), np.array([[1], [3], [2]]), np.array([0, 2]), np.array([0, 1]))
    >>> ranges.answers(np.array([1, 10, 100, 1000])).tolist()           # 0 .. 1 and 2 .. 3 together, then 1 .. 2
    [1111, 110]
    """

    axes: Subset
    low: Counts
    high: Counts
    first: Counts
    numbers: Counts

    def answers(self, table: NDArray[Any]) -> NDArray[Any]:
        """The answer of each query from the table of its axes."""
        sums = np.zeros([size + 1 for size in table.shape], table.dtype)
        inner = table
        for axis in range(table.ndim):
            inner = np.cumsum(inner, axis=axis)
        sums[(slice(1, None),) * table.ndim] = inner
        flat, found = sums.ravel(), np.zeros(len(self.low), table.dtype)
        for corner in product((0, 1), repeat=table.ndim):
            ends = [self.high[:, i] + 1 if up else self.low[:, i] for i, up in enumerate(corner)]
            at = np.ravel_multi_index(ends, sums.shape)
            found += flat[at] if (table.ndim - sum(corner)) % 2 == 0 else -flat[at]
        return np.asarray(np.add.reduceat(found, self.first))

    def boxes(self, place: int) -> list[tuple[slice, ...]]:
        """The boxes of the query at a place of this group."""
        last = self.first[place + 1] if place + 1 < len(self.first) else len(self.low)
        some = range(int(self.first[place]), int(last))
        return [tuple(slice(a, b + 1) for a, b in zip(self.low[i], self.high[i], strict=True)) for i in some]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Everything that may be measured: `queries`, or `marginals` that are measured whole, numbered from 0 on."""

    sizes: tuple[int, ...]
    queries: tuple[Boxes, ...] = ()
    marginals: tuple[Subset, ...] = ()

    def __post_init__(self) -> None:
        if not self.many or (self.queries and self.marginals):
            raise InputError("Candidates are queries or marginals: name some of one kind.")
        if max(self.cells(axes) for axes in self.axes) > MOST_CELLS:
            raise InputError(
                f"One query reads columns with more than {MOST_CELLS:,} combinations: ask about fewer columns, or with "
                "fewer bins."
            )

    @property
    def many(self) -> int:
        """How many there are."""
        return sum(len(group.first) for group in self.queries) or len(self.marginals)

    @cached_property
    def axes(self) -> tuple[Subset, ...]:
        """All sets of axes that are read, each once."""
        return tuple(dict.fromkeys([*(group.axes for group in self.queries), *self.marginals]))

    def cells(self, axes: Iterable[int]) -> int:
        """How many cells a table of some axes has."""
        return math.prod(self.sizes[i] for i in axes)

    @cached_property
    def places(self) -> dict[int, tuple[Boxes, int]]:
        """In which group each query is, and where."""
        return {int(n): (group, i) for group in self.queries for i, n in enumerate(group.numbers)}

    def axes_of(self, number: int) -> Subset:
        """The axes of a candidate."""
        return self.places[number][0].axes if self.queries else self.marginals[number]

    def boxes_of(self, number: int) -> list[tuple[slice, ...]] | None:
        """The boxes of a query; None for a marginal."""
        if not self.queries:
            return None
        group, place = self.places[number]
        return group.boxes(place)

    def tables(self, places: Sequence[Counts], counts: Counts) -> dict[Subset, Counts]:
        """The exact tables, from the combinations of cells that are there and their counts."""
        found = {}
        for axes in self.axes:
            shape = [self.sizes[i] for i in axes]
            at = np.ravel_multi_index([places[i] for i in axes], shape) if len(counts) else np.zeros(0, np.int64)
            table = np.zeros(math.prod(shape), np.int64)
            np.add.at(table, at, counts)
            found[axes] = table.reshape(shape)
        return found

    def answers(self, tables: Tables) -> list[NDArray[Any]]:
        """The answer of every query as one array, or the table of every marginal."""
        if self.marginals:
            return [tables[axes] for axes in self.marginals]
        found = [(group.numbers, group.answers(tables[group.axes])) for group in self.queries]
        whole = np.empty(self.many, found[0][1].dtype)
        for numbers, answers in found:
            whole[numbers] = answers
        return [whole]


def projected(table: NDArray[Any], axes: Subset, wanted: Iterable[Subset]) -> Iterator[tuple[Subset, NDArray[Any]]]:
    """The table of each subset of its axes that is wanted: sums over an axis are shared by all that lack it.

    >>> dict(projected(np.array([[1, 2], [3, 4]]), (0, 1), [(0,), ()]))[(0,)].tolist()
    [3, 7]
    """
    yield from _projected(table, axes, 0, set(wanted))


def _projected(
    table: NDArray[Any], axes: Subset, kept: int, wanted: set[Subset]
) -> Iterator[tuple[Subset, NDArray[Any]]]:
    """The first `kept` axes stay; the others are looked at one by one."""
    if not wanted:
        return
    if kept == len(axes):
        yield axes, table
        return
    with_it = {one for one in wanted if axes[kept] in one}
    yield from _projected(table, axes, kept + 1, with_it)
    if wanted - with_it:
        yield from _projected(table.sum(axis=kept), axes[:kept] + axes[kept + 1 :], kept, wanted - with_it)
