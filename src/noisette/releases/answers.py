"""Answers to many linear queries from one release, with error bars for each, for all at once, and for two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.answers.column import added_ends
from noisette.errors import InputError
from noisette.exact.number import level_of
from noisette.releases.line import Interval
from noisette.releases.linear import Estimate, peak, widest
from noisette.releases.strategies.matrix import Matrix

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["QueryAnswers"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class QueryAnswers:
    """The number of rows that meet each query: `queries` x cells, or the `ranges` of cells that they are."""

    estimate: Estimate
    queries: NDArray[np.bool_]
    ranges: tuple[Any, Any] | None
    names: tuple[str, ...]
    level: float

    @cached_property
    def n(self) -> Floats:
        """The answer to each query."""
        return np.asarray(self.queries @ self.estimate.x)

    def half_widths(self, level: float, *, among: int = 1) -> Floats:
        """Half the width of each error bar; with `among`, of bars that hold for that many answers at once."""
        each = 1 - (1 - level_of(level)) / among
        if isinstance(self.estimate.strategy, Matrix):
            spread = [2 * peak(noise) ** 2 for noise in self.estimate.noise]
            variance = self.estimate.strategy.query_variances(self.queries.astype(float), spread)
            return np.asarray(widest(self.estimate.noise[0], each) * np.sqrt(variance))
        assert self.ranges is not None
        return self.estimate.half_widths(*self.ranges, each)

    def bars(self, *, level: float | None = None, simultaneous: bool = False) -> list[Interval]:
        """Each answer with its error bar; `simultaneous` bars hold for all answers at once."""
        among = len(self.queries) if simultaneous else 1
        half = self.half_widths(self.level if level is None else level, among=among)
        ends = added_ends(self.n, (self.n - half, self.n + half))
        return [Interval(*one) for one in zip(self.n.tolist(), *(end.tolist() for end in ends), strict=True)]

    def difference(self, i: int, j: int) -> Interval:
        """How many more rows meet query i than query j."""
        a, b = self._two(i, j)
        return Interval(a.value - b.value, a.low - b.high, a.high - b.low)

    def ratio(self, i: int, j: int) -> Interval:
        """The number of rows that meet query i over that of query j; no upper end where the latter may be 0."""
        a, b = self._two(i, j)
        high = a.high / b.low if b.low > 0 else np.inf
        return Interval(a.value / b.value if b.value > 0 else np.nan, max(a.low, 0.0) / max(b.high, 1.0), high)

    def _two(self, i: int, j: int) -> Sequence[Interval]:
        if not all(isinstance(k, int) and 0 <= k < len(self.queries) for k in (i, j)):
            raise InputError(f"Queries are numbered from 0 to {len(self.queries) - 1:,}.")
        half = self.half_widths(self.level, among=2)
        low, high = added_ends(self.n, (self.n - half, self.n + half))
        return [Interval(float(self.n[k]), float(low[k]), float(high[k])) for k in (i, j)]

    def columns(self) -> tuple[Column, ...]:
        """The queries with their answers and error bars, as columns of an answer."""
        bars = self.bars()
        low, high = np.array([bar.low for bar in bars]), np.array([bar.high for bar in bars])
        return Column("query", pyarrow.array(self.names)), Column("n", pyarrow.array(self.n), low, high)

    def to_arrow(self) -> pyarrow.Table:
        """The queries with their answers and error bars."""
        query, n = self.columns()
        return pyarrow.table({"query": query.values, "n": n.values, "n_low": n.low, "n_high": n.high})

    def chart(self, *, note: str = "") -> "Chart":
        """A bar for each query."""
        from noisette.charts.answers import answer

        _, n = self.columns()
        assert n.low is not None
        assert n.high is not None
        return answer({"query": self.names}, {"n": (self.n.tolist(), n.low.tolist(), n.high.tolist())}, note=note)

    def __repr__(self) -> str:
        return f"{len(self.queries):,} answers"
