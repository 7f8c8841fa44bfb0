"""What a release by multiplicative weights is: an estimated number of rows for every combination of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.errors import InputError
from noisette.questions.parts.cell_queries import candidates_of, read_query
from noisette.releases.axis import Axis
from noisette.releases.line import Interval
from noisette.releases.multiplicative.candidates import MOST_CELLS, Floats
from noisette.releases.multiplicative.mwem import MWEM, Released
from noisette.releases.multiplicative.product import Hypothesis

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["WeightedCells", "counted", "placed_rows"]


def counted(axes: Sequence[Axis], hypothesis: Hypothesis, query: Mapping[str, Any]) -> float:
    """How many rows meet a query by the hypothesis."""
    asked = candidates_of(axes, [query])
    [found] = asked.answers(hypothesis.tables(asked.axes, averaged=True))
    return float(found[0])


@dataclass(frozen=True, eq=False, repr=False)
class WeightedCells:
    """Estimated counts of all combinations, never negative, that answer any query at no further cost.

    Queries that the release was made for have error bars: `to_arrow()` lists them. Any other query can be counted, too;
    nothing is known about its error, so its bar is all numbers from 0 on.
    """

    axes: tuple[Axis, ...]
    made: MWEM
    released: Released
    names: tuple[str, ...]
    level: float

    @cached_property
    def hypothesis(self) -> Hypothesis:
        """The distribution, scaled to the number of rows."""
        return self.made.read(self.released)

    @property
    def total(self) -> int:
        """The number of rows, as it was bought or declared."""
        return self.released.rows

    @cached_property
    def n(self) -> Floats:
        """The answers to all queries that the release was made for."""
        tables = self.hypothesis.tables(self.made.candidates.axes, averaged=True)
        return np.concatenate([np.ravel(one) for one in self.made.candidates.answers(tables)])

    @cached_property
    def bars(self) -> tuple[Floats, Floats]:
        """The ends of the error bars of these answers."""
        made, released = self.made, self.released
        sizes = [made.candidates.cells(axes) for axes in made.candidates.marginals] or [1] * made.candidates.many
        middle = np.concatenate([np.ravel(one) for one in made.rounded(made.read(released, rounds=made.rounds - 1))])
        middle = middle.astype(float)
        half = np.repeat(made.bounds(released, self.level), sizes)
        starts, wide = np.cumsum([0, *sizes]), made.noise.interval(self.level)
        for pick, y in reversed(list(zip(released.picks, released.y, strict=True))):
            part = slice(starts[pick], starts[pick + 1])
            middle[part], half[part] = y, wide
        low, high = np.maximum(middle - half, 0.0), np.maximum(middle + half, 0.0)
        return np.minimum(low, self.n), np.maximum(high, self.n)

    def count(self, where: Mapping[str, Any] | None = None) -> Interval:
        """How many rows meet a query, such as {"age": [18, 65]}; without any, all rows."""
        return Interval(counted(self.axes, self.hypothesis, read_query(where or {})), 0.0, np.inf)

    def rows(self) -> pyarrow.Table:
        """Made-up rows with about these counts: the first value of each cell, as often as the cell's count is rounded.

        Counts are rounded along all cells, so that neighbouring ones together are off by less than one row.
        """
        every = tuple(range(len(self.axes)))
        if self.made.candidates.cells(every) > MOST_CELLS:
            raise InputError(
                f"Rows can be made for up to {MOST_CELLS:,} combinations of values: ask about fewer columns."
            )
        return placed_rows(self.axes, self.hypothesis.tables([every], averaged=True)[every])

    def columns(self) -> tuple[Column, ...]:
        """The queries with their answers and error bars, as columns of an answer."""
        return Column("query", pyarrow.array(self.names)), Column("n", pyarrow.array(self.n), *self.bars)

    def to_arrow(self) -> pyarrow.Table:
        """The queries with their answers and error bars."""
        low, high = self.bars
        return pyarrow.table({"query": pyarrow.array(self.names), "n": self.n, "n_low": low, "n_high": high})

    def chart(self, *, note: str = "") -> "Chart":
        """A bar for each query."""
        from noisette.charts.answers import answer

        low, high = self.bars
        return answer({"query": self.names}, {"n": (self.n.tolist(), low.tolist(), high.tolist())}, note=note)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis.name} ({axis.cells:,})" for axis in self.axes)
        return f"WeightedCells({sizes}; {len(self.n):,} answers)"


def placed_rows(axes: Sequence[Axis], table: Floats) -> pyarrow.Table:
    """One row for each count of a table of all axes, rounded along the cells."""
    ends = np.floor(np.cumsum(table.ravel()) + 0.5).astype(np.int64)
    cells = np.repeat(np.arange(table.size), np.diff(ends, prepend=0))
    places = np.unravel_index(cells, table.shape)
    return pyarrow.table(
        {axis.name: axis.labels().take(pyarrow.array(at)) for axis, at in zip(axes, places, strict=True)}
    )
