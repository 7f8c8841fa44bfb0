"""All marginals of some columns in one release: a data cube."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.mechanisms import Gaussian
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Exact
from noisette.query.plan import Key
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.data_cube import CubeColumn, DataCube, arrow
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.records import grouped
from noisette.questions.parts.rows import Rows, rows_text
from noisette.questions.parts.ruler import Ruler
from noisette.releases.marginals import Marginals, up_to
from noisette.releases.residual import Subset

__all__ = ["Cube"]

_MOST = 2_000_000  # cells of all marginals
_MOST_MARGINALS = 20_000
_TAKEN = {"marginal", "n", "n_low", "n_high"}
_ASK = 'columns must name columns, each once: ["ward", "sex"], or {"ward": "ward", "decade": "FLOOR(age / 10)"}.'


@dataclass(frozen=True)
class Cube(JsonQuestion):
    """The number of rows for all combinations of values of up to `ways` columns: every marginal, in one release.

    The answer's `value` is a cube that goes on answering: marginals, counts of any conjunction of up to `ways` columns,
    differences and ratios, all with error bars and at no further cost. Marginals agree with each other. Columns, or
    expressions by name, need declared keys or bounds. Rows with an undeclared key in one of the columns are left out.

    >>> Cube(["ward", "age"])
    Cube(columns=('ward', 'age'), ways=2, of=None)
    """

    columns: Sequence[str] | Mapping[str, str]
    ways: int = 2
    of: Rows = None

    def __post_init__(self) -> None:
        named = _named(self.columns)
        if not _TAKEN.isdisjoint(named):
            raise InputError(
                'A column of a cube cannot be called marginal, n, n_low or n_high: {"number": "n"} renames it.'
            )
        if isinstance(self.ways, bool) or not hasattr(self.ways, "__index__") or not 1 <= self.ways <= len(named):
            raise InputError(f"ways must be a whole number from 1 to the number of columns, {len(named):,} here.")
        plain = all(name == column for name, column in named.items())
        object.__setattr__(self, "columns", tuple(named) if plain else tuple(named.items()))
        object.__setattr__(self, "ways", int(self.ways))
        object.__setattr__(self, "of", rows_text(self.of))

    @property
    def named(self) -> dict[str, str]:
        """The columns by name."""
        pairs: Any = self.columns
        return {pair: pair for pair in pairs} if isinstance(pairs[0], str) else dict(pairs)

    def fields(self) -> Any:
        """The fields by name, without those that are as usual."""
        found = super().fields()
        return {**found, "columns": self.columns if isinstance(self.columns[0], str) else self.named}  # type: ignore[index]

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose what to measure, and the noise."""
        prepared = grouped(self.of, list(self.named.values()), schema)
        axes = _axes(prepared, list(self.named), self.ways)
        sizes = [len(axis.values) for axis in sorted(axes, key=lambda axis: axis.place)]
        made = Marginals.calibrated(spend, up_to(sizes, self.ways), rows=prepared.part.total, neighbours=neighbours)
        procedure = Counting(prepared, made, neighbours, level, axes, self.ways)
        known = tuple(axis.values for axis in sorted(axes, key=lambda axis: axis.place))
        return about(
            replace(prepared, request=replace(prepared.request, domains=known)),  # so that caveats name their columns
            procedure,
            text=text_of("cube", prepared, ways=self.ways),
            why=_why(made, pure=spend.is_pure),
            guarantee=made.guarantee(),
            parts=[recorded(made.noise, prepared.request.measures[0], made.moved)],
            covers=NOISE,
            value=procedure.cube,
        )


def _named(given: Any) -> dict[str, str]:
    """Columns or expressions by name; a list names them by themselves."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | Mapping) or not given:
        raise InputError(_ASK)
    pairs = list(given.items()) if isinstance(given, Mapping) else [(column, column) for column in given]
    if not all(isinstance(part, str) and part for pair in pairs for part in pair) or len(dict(pairs)) < len(pairs):
        raise InputError(_ASK)
    return dict(pairs)


def _axes(prepared: Prepared, names: Sequence[str], ways: int) -> tuple[CubeColumn, ...]:
    """The columns in the order in which they were asked for, with all of their values."""
    places = [result.position for _, result in prepared.query.outputs if isinstance(result, Key)]
    if len(set(places)) < len(places):
        raise InputError("Two of the columns are the same: name each once.")
    known = [prepared.keys[at] for at in places]
    for name, kind in zip(names, known, strict=True):
        if kind.count is None:
            raise InputError(
                f"{name} has no declared values: declare keys or bounds of it in the policy, or write bins, such as "
                "FLOOR(age / 10)."
            )
    _few([(kind.count or 0) + kind.nullable for kind in known], ways)
    return tuple(
        CubeColumn(name, kind, kind.values() or (), at) for name, kind, at in zip(names, known, places, strict=True)
    )


def _few(sizes: Sequence[int], ways: int) -> None:
    """Refuse marginals that are too many or too large."""
    if sum(math.comb(len(sizes), size) for size in range(ways + 1)) > _MOST_MARGINALS:
        raise InputError(f"These are more than {_MOST_MARGINALS:,} marginals: ask for fewer columns or ways.")
    cells = 0
    for size in range(ways + 1):
        cells += sum(math.prod(some) for some in combinations(sizes, size))
    if cells > _MOST:
        raise InputError(
            f"All marginals have more than {_MOST:,} cells: ask for fewer columns or ways, or coarser bins."
        )


def _why(made: Marginals, *, pure: bool) -> str:
    if pure:
        return "Laplace noise on numbers whose sums are all marginals: a pure epsilon allows no Gaussian."
    kind, other = ("Gaussian", "Laplace") if isinstance(made.noise, Gaussian) else ("Laplace", "Gaussian")
    return f"{kind} noise on numbers whose sums are all marginals: {other} noise would err more."


@dataclass(frozen=True)
class Counting:
    """Noisy numbers whose sums are all marginals.

    The engine groups by all columns at once and returns the combinations that are there, at most one for each row. So
    all marginals count the same retained rows of each unit, and no table of all combinations is ever made.
    """

    prepared: Prepared
    made: Marginals
    neighbours: Neighbours
    level: float
    axes: tuple[CubeColumn, ...]
    ways: int

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit can move the numbers of rows of all combinations, before marginals are made of them."""
        k = self.prepared.part.total
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(k, k * k, k, k, neighbours=self.neighbours)
        return Sensitivity(2 * k, 2 * k * k, k, 2 * k, neighbours=self.neighbours)

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The widest error bar of a cell, for each number of columns."""
        kind = "Gaussian" if isinstance(self.made.noise, Gaussian) else "Laplace"
        noise = f"{kind} noise on {self.made.strategy.numbers:,} numbers"
        rows = f"rows: {self.prepared.part.total:,}"
        found = []
        for size in range(self.ways + 1):
            every = combinations(range(len(self.axes)), size)
            widest = max(every, key=lambda b: self.made.variance(self.made.first_cell(b)))
            half = self.made.cell_width(widest, self.level)
            what = f"a cell of a marginal of {size} column{'s' if size > 1 else ''}" if size else "the total"
            found.append(Expected("n", noise, rows, half, {}, None, what))
        return [tuple(found)]

    def measured(self, exact: Exact) -> NDArray[Any]:
        """The numbers that get noise."""
        return self.made.strategy.measure(self.tables(exact))

    def tables(self, exact: Exact) -> dict[Subset, NDArray[np.int64]]:
        """The exact counts of each base's marginal; rows with a value that is not declared are in none."""
        workload, [rows] = self.made.workload, exact.measures
        assert exact.keys is not None
        ordered = sorted(self.axes, key=lambda axis: axis.place)
        known = [_places(exact.keys.column(axis.place).combine_chunks(), axis) for axis in ordered]
        inside = np.all([place >= 0 for place in known], axis=0)
        places, rows = [place[inside] for place in known], rows[inside]
        found = {}
        for a in workload.bases:
            cell = np.zeros(len(rows), np.int64)
            for i in a:
                cell = cell * workload.sizes[i] + places[i]
            counts = np.zeros(workload.cells(a), np.int64)
            np.add.at(counts, cell, rows)
            found[a] = counts.reshape(workload.shape(a))
        return found

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and add noise."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        return pyarrow.table({"noisy": self.made.measure(self.tables(exact), rng)})

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """All marginals, one below the other."""
        return [self.cube(drawn).columns]

    def cube(self, drawn: pyarrow.Table) -> DataCube:
        """What goes on answering."""
        estimate = self.made.infer(drawn.column("noisy").to_numpy())
        return DataCube(self.axes, self.ways, self.level, estimate)


def _places(column: pyarrow.Array, axis: CubeColumn) -> NDArray[np.int64]:
    """Which of a column's values each row has, -1 for none; real numbers have the nearest multiple of their grid."""
    known = compute.index_in(column, arrow(axis)).fill_null(-1).to_numpy(zero_copy_only=False)
    found: NDArray[np.int64] = np.array(known, np.int64)
    if axis.kind.type != "real" or axis.kind.keys is not None or axis.kind.grid is None or axis.kind.low is None:
        return found
    there, steps = Ruler(axis.kind, axis.kind.grid).steps(column)
    first, count = math.ceil(axis.kind.low / axis.kind.grid), axis.kind.count or 0
    found[there] = np.where((steps >= first) & (steps < first + count), steps - first, -1)
    return found


examples = [
    Cube(["ward", "FLOOR(age / 20)"]),
    Cube(
        {"ward": "ward", "decade": "FLOOR(age / 10)", "dear": "cost > 500"}, of="SELECT * FROM visits WHERE age >= 18"
    ),
    Cube(["ward", "age"], ways=1),
]
