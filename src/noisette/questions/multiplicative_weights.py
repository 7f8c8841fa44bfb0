"""Many counting queries from a few measurements: each round measures what is known worst so far (MWEM).

Unlike the strategies of `Workload`, whose error is known in advance, this looks at the data: it errs less where few
measurements explain it, at small budgets and for many queries, and its numbers are never negative.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE, Omission
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.cell_queries import ASK, candidates_of, read_columns, read_query
from noisette.questions.parts.line_cells import GridCells, counted_rows
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows, rows_text
from noisette.questions.parts.weighted_cells import WeightedCells
from noisette.releases.multiplicative.candidates import Candidates
from noisette.releases.multiplicative.mwem import MWEM
from noisette.releases.stored import kept_picks, picks_table

__all__ = ["MultiplicativeWeights"]

_QUERIES, _CELLS, _ROUNDS = 20_000, 200_000, 1_000
_BARS = Omission(
    "Bars of measured queries come from their noise; all others hold at once, by how well the last pick was known."
)


@dataclass(frozen=True)
class MultiplicativeWeights(JsonQuestion):
    """How many rows meet each of many `queries`, or lie in each cell of all marginals of `ways` columns.

    In each of the `rounds` the query (or marginal) that is answered worst is picked and measured; an even distribution
    over all combinations of values is moved towards what was measured. `answer.value.count({"age": [18, 65]})` answers
    any further query. The number of rows is bought as well, unless `total` says it because it is public.

    >>> MultiplicativeWeights(["ward", "age"], [{"ward": "oncology", "age": [65, None]}, {"age": [0, 17]}]).queries[1]
    {'age': (0, 17)}
    """

    columns: str | Sequence[str]
    queries: Sequence[Mapping[str, Any]] | None = None
    ways: int | None = None
    rounds: int | None = None
    total: int | None = None
    bins: int | None = None
    of: Rows = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", read_columns(self.columns))
        self._read_queries()
        for name in ("rounds", "total", "bins"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(getattr(self, name), name))
        if (self.rounds or 0) > _ROUNDS:
            raise InputError(f"rounds must be at most {_ROUNDS:,}: each gets its share of the budget.")
        object.__setattr__(self, "of", rows_text(self.of))

    def _read_queries(self) -> None:
        if self.queries is not None:
            if self.ways is not None:
                raise InputError("Name queries, or the ways of marginals, not both.")
            if not isinstance(self.queries, list | tuple) or not 0 < len(self.queries) <= _QUERIES:
                raise InputError(f"queries must be a list of 1 to {_QUERIES:,} queries. {ASK}")
            object.__setattr__(self, "queries", tuple(map(read_query, self.queries)))
        elif self.ways is not None and not 1 <= whole(self.ways, "ways") <= len(self.columns):
            raise InputError(
                f"ways must be a whole number from 1 to the number of columns, {len(self.columns):,} here."
            )

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """The noise of picks and measurements, the same in each round."""
        cells = GridCells.of(list(self.columns), self.bins, self.of, schema)
        candidates = self._candidates(cells)
        made = MWEM.calibrated(
            spend,
            candidates,
            rounds=self.rounds,
            unit_rows=cells.prepared.part.total,
            neighbours=neighbours,
            rows=self.total,
        )
        procedure = Rounds(cells, self.queries, made, level)
        asked = json.dumps(
            [self.columns, self.queries, self.ways, made.rounds, self.total, candidates.sizes], default=str
        )
        return about(
            cells.prepared,
            procedure,
            text=text_of("multiplicative weights", cells.prepared, measured=asked),
            why=_why(made),
            guarantee=made.guarantee(),
            parts=[recorded(mechanism, Measure("rows"), moved) for mechanism, moved in made.parts],
            covers=NOISE,
            omitted=[_BARS],
            value=procedure.value,
        )

    def _candidates(self, cells: GridCells) -> Candidates:
        if self.queries is not None:
            return candidates_of(cells.axes, self.queries)
        sizes, ways = tuple(axis.cells for axis in cells.axes), self.ways or min(2, len(cells.axes))
        made = Candidates(sizes, marginals=tuple(combinations(range(len(sizes)), ways)))
        if sum(made.cells(axes) for axes in made.marginals) > _CELLS:
            raise InputError(
                f"All marginals have more than {_CELLS:,} cells: ask for fewer columns or ways, or for bins."
            )
        return made


def _why(made: MWEM) -> str:
    noise = "Laplace" if type(made.noise).__name__ == "Geometric" else "Gaussian"
    what = "marginals" if made.candidates.marginals else "queries"
    return (
        f"Of {made.candidates.many:,} {what} up to {made.rounds:,} are measured with {noise} noise: those known worst."
    )


@dataclass(frozen=True, eq=False)
class Rounds(Procedure):
    """Picks and noisy answers; all else follows from them."""

    cells: GridCells
    queries: Sequence[Mapping[str, Any]] | None
    made: MWEM
    level: float

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.cells.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all combinations."""
        return counted_rows(self.prepared, self.made.neighbours)

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error bar of what is measured; that of all else depends on the data."""
        made = self.made
        noise = f"{type(made.noise).__name__} noise in each of {made.rounds:,} rounds"
        slack = 0.0 if made.picking is None else made.picking.interval(self.level)
        note = (
            "a number that is measured; what is not measured errs by no more than the last pick did, "
            f"plus {slack:,.0f} rows"
        )
        moved = f"rows: {float(made.moved.l1):.6g}"
        return [(Expected("n", noise, moved, made.noise.interval(self.level), {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, then pick and measure."""
        tables = self.made.candidates.tables(*self.cells.read(source, schema, secret))
        return picks_table(self.made, self.made(tables, rng))

    def value(self, drawn: pyarrow.Table) -> WeightedCells:
        """What goes on answering."""
        made, released = kept_picks(drawn, self.made)
        return WeightedCells(self.cells.axes, made, released, tuple(self._names()), self.level)

    def _names(self) -> Iterable[str]:
        """What each number of the answer counts."""
        if self.queries is not None:
            yield from (json.dumps(query, default=str) for query in self.queries)
            return
        for axes in self.made.candidates.marginals:
            labels = [[str(one) for one in self.cells.axes[i].labels().to_pylist()] for i in axes]
            names = [self.cells.axes[i].name for i in axes]
            yield from _cells(names, labels)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each query, or for each cell of all marginals."""
        return [self.value(drawn).columns()]


def _cells(names: Sequence[str], labels: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a marginal, the last column's fastest: age = 30, ward = north."""
    found = [""]
    for name, values in zip(names, labels, strict=True):
        found = [f"{before}{', ' if before else ''}{name} = {value}" for before in found for value in values]
    return found


examples = [
    MultiplicativeWeights(["ward", "FLOOR(age / 10)", "FLOOR(cost / 500)"]),
    MultiplicativeWeights(
        ["ward", "age"],
        [
            {"age": [0, 17]},
            {"age": [18, 64]},
            {"age": [65, None]},
            {"ward": "oncology", "age": [65, None]},
            {"ward": ["cardiology", "maternity"]},
        ],
        rounds=3,
    ),
    MultiplicativeWeights("cost", [{"cost": [0, 500]}, {"cost": [100, 900]}], bins=64, total=10_000),
]
