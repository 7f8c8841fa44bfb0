"""Bounds that are bought: which cells hold the smallest and the largest values of a column.

Bounds are found by `Extent`: each value is put into a cell, four of them from a power of two to the next, or a year of
dates, and cells are searched upwards. About 15/epsilon of the smallest and 4/epsilon of the largest values may lie
beyond.
"""

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError, NoisetteError
from noisette.exact.random import Random
from noisette.mechanisms.quantiles.extent import Extent
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.expression import Call, Literal, Name
from noisette.query.kind import LARGEST, Value
from noisette.query.measure import sensitivity
from noisette.query.plan import Aggregate, Query, Scan
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Column, Schema, Table
from noisette.questions.contract import Offer, Procedure
from noisette.questions.parts.cells import cell_of
from noisette.questions.parts.offers import about, declared

__all__ = ["Bounds", "edges_of", "found_bounds"]

_FINEST = Fraction(1, 2**40)  # values nearer to 0 count as 0, where no grid is declared
_BETWEEN = 4  # cells from a power of two to the next
_YEARS = range(1800, 2201)


@dataclass(frozen=True)
class Bounds:
    """The cells in which the smallest and the largest values of a column lie, except a few."""

    table: Table
    column: Column

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Count the values of each cell, and search."""
        value = Name(f"t1.{self.column.name}")
        cell = Call("case", (Call("is_null", (value,)), Literal(None), cell_of(value, edges_of(self.column))))
        counted = (("low", Aggregate("quantile", cell, Fraction(0))),)  # its histogram is what is needed
        prepared = prepare(canonical(Query(Scan(self.table.name, "t1"), (), counted)), schema)
        [measure] = prepared.request.measures
        moved = sensitivity(measure, prepared.part, neighbours)
        mechanism = Extent.calibrated(spend, moved, cells=measure.cells)
        asked = {"question": "bounds", "asked": f"{self.table.name}.{self.column.name}"}
        return about(
            prepared,
            Ends(prepared, mechanism, moved, level),
            text=json.dumps({**asked, "declared": declared([prepared])}),
            why="One sweep upwards: a row counts on the way to one of the ends, so both cost what one does.",
            guarantee=mechanism.guarantee(moved),
            parts=[recorded(mechanism, measure, moved)],
        )


@dataclass(frozen=True)
class Ends(Procedure):
    """Two cells, or nothing if there are too few rows to tell."""

    prepared: Prepared
    mechanism: Extent
    sensitivity: Sensitivity
    level: float

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """How many rows may lie beyond an end."""
        off = self.mechanism.interval(self.level)
        said = f"sparse vector technique on {self.mechanism.cells:,} cells", f"rows: {self.sensitivity.l1}"
        note = "the error is how many rows may lie beyond"
        ends = ("low", self.mechanism.within), ("high", self.mechanism.beyond)
        return [tuple(Expected(name, *said, None, {}, aim + off, note) for name, aim in ends)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count and search."""
        [counts] = source.aggregate(self.prepared.request, schema, secret).measures[0]
        found = self.mechanism(counts, rng)
        ends = zip(("low", "high"), ([], []) if found is None else ([cell] for cell in found), strict=True)
        return pyarrow.table({name: pyarrow.array(cells, pyarrow.int64()) for name, cells in ends})


def edges_of(column: Column) -> list[Value]:
    """The ends of cells in ascending order: cell i holds the values from edge i - 1 to below edge i."""
    match column.kind.type:
        case "date":
            return [datetime.date(year, 1, 1) for year in _YEARS]
        case "timestamp":
            return [datetime.datetime(year, 1, 1) for year in _YEARS]
        case "integer" | "real":
            unit = column.kind.grid or _FINEST
            most = LARGEST / unit if column.kind.grid is None else LARGEST / max(unit, Fraction(1))
            sizes = [unit * step for step in _steps(most)]
            return [*(-size for size in reversed(sizes)), Fraction(0), *sizes]
        case _:
            raise InputError(f"{column.name} is no number and no date, so it has no bounds to buy.")


def _steps(most: Fraction) -> list[int]:
    """1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... up to the most.

    >>> _steps(Fraction(10))
    [1, 2, 3, 4, 5, 6, 7, 8, 10]
    """
    powers = [2**power for power in range(int(most).bit_length())]
    parts = [Fraction(power * (_BETWEEN + part), _BETWEEN) for power in powers for part in range(_BETWEEN)]
    return [int(step) for step in parts if step.denominator == 1 and step <= most]


def found_bounds(column: Column, cells: Sequence[tuple[int, int]]) -> tuple[Value, Value]:
    """The bounds around the cells that were found."""
    if not cells:
        raise NoisetteError(
            "There are too few rows to find bounds, which is an answer and was charged: spend more, or let the owner "
            "declare them."
        )
    edges, [(low, high)] = edges_of(column), cells
    return edges[max(0, low - 1)], edges[min(len(edges) - 1, high)]
