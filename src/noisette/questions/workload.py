"""Any list of counting queries about declared columns, answered together for one price.

A query says for each of some columns which values count: {"age": [18, 65], "ward": "north"}. Values that no query tells
apart are one cell, so that few cells are left; the strategy with the least error for just these queries is chosen in
advance, from public numbers.   [Li-Hay-Rastogi-Miklau-McGregor 2010; McKenna-Miklau-Hay-Machanavajjhala 2018]
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.cell_queries import ASK, mask_of, read_query
from noisette.questions.parts.line_cells import GridCells, added_up, counted_rows
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows, rows_text
from noisette.releases.answers import QueryAnswers
from noisette.releases.axis import Axis
from noisette.releases.linear import Linear, widest
from noisette.releases.planner import Candidate, Plan, best, best_for
from noisette.releases.stored import kept_estimate, linear_table

__all__ = ["Workload"]

Counts: TypeAlias = NDArray[np.int64]

_MOST, _COMBINED = 10_000, 1 << 16  # queries, and combinations of values that they tell apart
_OPTIMISED = 128  # cells, up to which a strategy of its own is optimised within a second


@dataclass(frozen=True)
class Workload(JsonQuestion):
    """How many rows meet each of a list of `queries`, all of them for one price with the best strategy for them.

    A query maps columns to a value, to [low, high] of numbers or dates (both included, None is open), or to a list of
    keys. With `weights`, the error of some queries matters more than that of others.

    >>> Workload([{"age": [0, 17]}, {"age": [18, None], "ward": ["oncology", "cardiology"]}]).queries[0]
    {'age': (0, 17)}
    """

    queries: Sequence[Mapping[str, Any]]
    weights: Sequence[Any] | None = None
    of: Rows = None

    def __post_init__(self) -> None:
        if not isinstance(self.queries, list | tuple) or not 0 < len(self.queries) <= _MOST:
            raise InputError(f"queries must be a list of 1 to {_MOST:,} queries. {ASK}")
        object.__setattr__(self, "queries", tuple(map(read_query, self.queries)))
        if not any(self.queries):
            raise InputError(f"One query at least must name a column. {ASK}")
        if self.weights is not None:
            object.__setattr__(self, "weights", _weights(self.weights, len(self.queries)))
        object.__setattr__(self, "of", rows_text(self.of))

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """The cells that the queries tell apart, and the best strategy for them."""
        columns = list(dict.fromkeys(column for query in self.queries for column in query))
        grid = GridCells.of(columns, None, self.of, schema)
        cells = QueryCells.of(grid, self.queries)
        plan = cells.planned(spend, neighbours, self.weights)
        procedure = Answered(cells, self.queries, plan.release, plan.candidates, level)
        asked = json.dumps([self.queries, self.weights], default=str)
        return about(
            grid.prepared,
            procedure,
            text=text_of("workload", grid.prepared, queries=asked),
            why=f"Strategy of least error for these queries: {plan.candidates[0].name}.",
            guarantee=plan.release.guarantee(),
            parts=[recorded(noise, Measure("rows"), moved) for noise, moved in _pairs(plan.release)],
            covers=NOISE,
            value=procedure.value,
        )


def _pairs(made: Linear) -> Any:
    return zip(made.noise, made.moved, strict=True)


def _weights(given: Any, many: int) -> tuple[Any, ...]:
    if not isinstance(given, list | tuple) or len(given) != many:
        raise InputError("weights must be a list with a number for each query.")
    found = tuple(fraction(weight, "each of weights") for weight in given)
    if min(found) <= 0:
        raise InputError("Each of weights must be above 0: leave out a query that does not matter.")
    return found


@dataclass(frozen=True, eq=False)
class QueryCells:
    """What the queries tell apart: `places` of each axis's cells, the cell of each combination, and `queries` x cells.

    `ranges` are the first and last cell of each query where all queries are ranges of one axis.
    """

    grid: GridCells
    places: tuple[Counts, ...]
    cell: Counts
    queries: NDArray[np.bool_]
    ranges: tuple[Counts, Counts] | None

    @classmethod
    def of(cls, grid: GridCells, queries: Sequence[Mapping[str, Any]]) -> "QueryCells":
        """Cells that no query tells apart are one."""
        masks = [_masks(axis, queries) for axis in grid.axes]
        if len(masks) == 1 and grid.axes[0].keys is None:
            return cls._on_a_line(grid, masks[0])
        parts = [np.unique(mask, axis=1, return_inverse=True) for mask in masks]
        if np.prod([part[0].shape[1] for part in parts], dtype=float) > _COMBINED:
            raise InputError(
                f"These queries tell more than {_COMBINED:,} combinations of values apart: ask about fewer columns."
            )
        whole = np.ones((len(queries), 1), bool)
        for kinds, _ in parts:
            whole = (whole[:, :, None] & kinds[:, None, :]).reshape(len(queries), -1)
        told, cell = np.unique(whole, axis=1, return_inverse=True)
        return cls(grid, tuple(part[1].ravel() for part in parts), cell.ravel(), told, None)

    @classmethod
    def _on_a_line(cls, grid: GridCells, mask: NDArray[np.bool_]) -> "QueryCells":
        change = np.flatnonzero((mask[:, 1:] != mask[:, :-1]).any(axis=0)) + 1
        starts = np.concatenate([[0], change])
        place = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, mask.shape[1])))
        told = mask[:, starts]
        first, last = told.argmax(axis=1), told.shape[1] - 1 - told[:, ::-1].argmax(axis=1)
        whole = told.any(axis=1).all() and (told.sum(axis=1) == last - first + 1).all()
        return cls(grid, (place,), np.arange(len(starts)), told, (first, last) if whole else None)

    @property
    def many(self) -> int:
        """How many cells there are."""
        return int(self.queries.shape[1])

    def planned(self, spend: Promise, neighbours: Neighbours, weights: Sequence[Any] | None) -> Plan:
        """The best strategy for the queries."""
        part, most = self.grid.prepared.part, _OPTIMISED
        if self.ranges is not None and weights is None and self.many > most:
            return best(spend, self.many, ranges=self.ranges, part=part, neighbours=neighbours)
        by = None if weights is None else [float(weight) for weight in weights]
        return best_for(spend, self.queries, weights=by, part=part, neighbours=neighbours, most=most)

    def read(self, source: Source, schema: Schema, secret: bytes) -> Counts:
        """The exact counts of the cells: read after the charge."""
        places, counts = self.grid.read(source, schema, secret)
        code = np.zeros(len(counts), np.int64)
        for place, known in zip(places, self.places, strict=True):
            code = code * (int(known.max()) + 1) + known[place]
        return added_up(self.cell[code], counts, self.many)


def _masks(axis: Axis, queries: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Which cells of an axis each query counts."""
    return np.array(
        [mask_of(axis, query[axis.name]) if axis.name in query else np.ones(axis.cells, bool) for query in queries]
    )


@dataclass(frozen=True, eq=False)
class Answered(Procedure):
    """Noisy numbers of a strategy; the answers to all queries follow from them."""

    cells: QueryCells
    queries: Sequence[Mapping[str, Any]]
    made: Linear
    candidates: tuple[Candidate, ...]
    level: float

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.cells.grid.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all cells."""
        return counted_rows(self.prepared, self.made.moved[0].neighbours)

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The widest error bar of a query, and what other strategies would give on the whole."""
        wide = widest(self.made.noise[0], self.level)
        zeros = np.zeros(self.cells.many, np.int64)
        noisy = [np.asarray(level, float) for level in self.made.strategy.measure(zeros)]
        known = QueryAnswers(self.made.infer(noisy), self.cells.queries, self.cells.ranges, (), self.level)
        errors = ", ".join(f"{one.name} ± {wide * one.error:,.3g}" for one in self.candidates)
        widths = known.half_widths(self.level)
        people = f"as a share of all rows every answer is within ± 1 % from {100 * float(widths.max()):,.0f} rows on"
        note = f"root mean square over the {len(self.queries):,} queries, by strategy: {errors}; {people}"
        moved = f"rows: {float(max(one.l1 for one in self.made.moved)):.6g}"
        noise = f"{type(self.made.noise[0]).__name__} noise on {sum(map(len, noisy)):,} numbers"
        return [(Expected("n", noise, moved, float(widths.max()), {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and measure."""
        return linear_table(self.made, self.made.measure(self.cells.read(source, schema, secret), rng))

    def value(self, drawn: pyarrow.Table) -> QueryAnswers:
        """What goes on answering."""
        names = tuple(json.dumps(query, default=str) for query in self.queries)
        return QueryAnswers(kept_estimate(drawn), self.cells.queries, self.cells.ranges, names, self.level)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each query."""
        return [self.value(drawn).columns()]


examples = [
    Workload([{"age": [0, 17]}, {"age": [18, 64]}, {"age": [65, None]}, {"ward": "oncology", "age": [65, None]}]),
    Workload([{"cost": [0, 100]}, {"cost": [0, 500]}, {"cost": [0, 1000]}], weights=[1, 1, 4]),
]
