"""Where people go from and to: counts of pairs of cells of two maps.

Nearly all pairs are empty: a map of 64 x 64 cells has 16.8 million. So they are released as a sparse table
(`releases.sparse`): the law of noise on every pair, in time and memory of the pairs that are filled or released, for a
pure epsilon. A tree over four axes would be as private, and would spread a flow over neighbouring pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import Number, whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import NOISE, Omission
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Contribution, Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Packing, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import GridCells
from noisette.questions.parts.map_cells import bounds_of, map_cells
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows, rows_text
from noisette.questions.parts.tables import pack_table
from noisette.questions.sparse_table import Sparsely
from noisette.releases.maps.regions import MapFrame
from noisette.releases.maps.released_flows import ReleasedFlows
from noisette.releases.sparse.counts import LARGEST, SparseCounts

__all__ = ["Flows"]

_EMPTY = 10  # pairs that are released without anybody in them, at most, in expectation
_PAIR = 'origin and destination must name two columns each: Flows(("lon1", "lat1"), ("lon2", "lat2")).'
_OUTSIDE = Omission("Rows outside the bounds of the map or without a coordinate are left out.")
_NOWHERE = Omission("Rows without a coordinate are left out.")


@dataclass(frozen=True)
class Flows(JsonQuestion):
    """How many rows go from each cell of a map to each other one: two columns of where from, two of where to.

    `answer.value` lists the largest flows, counts those between two rectangles, and draws them. `bounds` (west, south,
    east, north) hold for both ends, by default those of the policy; rows outside are left out. Pairs are released whose
    noisy count reaches the `threshold`, which about ten empty pairs do unless it is named.

    >>> Flows(("lon1", "lat1"), ("lon2", "lat2"), cells=16)
    Flows(origin=('lon1', 'lat1'), destination=('lon2', 'lat2'), bounds=None, cells=16, threshold=None, of=None)
    """

    origin: Sequence[str]
    destination: Sequence[str]
    bounds: Sequence[Number] | None = None
    cells: int = 32
    threshold: int | None = None
    of: Rows = None

    def __post_init__(self) -> None:
        for name in ("origin", "destination"):
            given = getattr(self, name)
            if (
                not isinstance(given, tuple | list)
                or len(given) != 2
                or not all(isinstance(c, str) and c for c in given)
            ):
                raise InputError(_PAIR)
            object.__setattr__(self, name, tuple(given))
        if len(set(self.columns)) < 4:
            raise InputError(f"The four columns must differ: {_PAIR}")
        object.__setattr__(self, "of", rows_text(self.of))
        object.__setattr__(self, "bounds", bounds_of(self.bounds, tuple(self.origin)))
        whole(self.cells, "cells")
        if self.threshold is not None:
            whole(self.threshold, "threshold")

    @property
    def columns(self) -> tuple[str, ...]:
        """Where from and where to."""
        return (*self.origin, *self.destination)

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Noise for all pairs of cells; few of them are released."""
        ends: tuple[Fraction, ...] | None = self.bounds  # type: ignore[assignment]
        both = None if ends is None else (ends[0], ends[1], ends[0], ends[1], ends[2], ends[3], ends[2], ends[3])
        grid = map_cells(self.columns, both, self.cells, self.of, schema, most=LARGEST)
        pairs = math.prod(axis.cells for axis in grid.axes)
        rule: dict[str, Any] = {"size": _EMPTY} if self.threshold is None else {"threshold": self.threshold}
        rows = grid.prepared.part.total  # of one unit, in as many pairs
        part = Contribution(rows, rows, rows)
        made = SparseCounts.calibrated(spend, pairs, **rule, part=part, neighbours=neighbours)
        procedure = Flowing(grid, Sparsely(grid.prepared, made, made.moved, level, (), ()))
        offer = about(
            grid.prepared,
            procedure,
            text=text_of("flows", grid.prepared, cells=[axis.cells for axis in grid.axes], **rule),
            why=f"All {pairs:,} pairs of cells have noise; of the empty ones only those that are released are drawn.",
            guarantee=made.guarantee(),
            parts=[recorded(made.noise, Measure("rows"), made.moved)],
            covers=NOISE,
            omitted=[*map(Omission, procedure.inner.left_out), _NOWHERE if self.bounds is None else _OUTSIDE],
            value=procedure.flows,
        )
        return replace(offer, packing=Packing(pack_table, procedure.inner.unpack))


@dataclass(frozen=True)
class Flowing(Procedure):
    """Noisy counts of some pairs of cells."""

    cells: GridCells
    inner: Sparsely

    @property
    def prepared(self) -> Prepared:
        """The query that counts."""
        return self.inner.prepared

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves the counts of all pairs."""
        return self.inner.sensitivity

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of a flow that is far above the threshold."""
        return [tuple(replace(one, name="n") for one in self.inner.expected(sizes)[0])]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows of pairs that have any, and release some."""
        places, counts = self.cells.read(source, schema, secret)
        shape = tuple(axis.cells for axis in self.cells.axes)
        return self.inner.measured(np.ravel_multi_index(tuple(places), shape), counts, rng)

    def flows(self, drawn: pyarrow.Table) -> ReleasedFlows:
        """What goes on answering."""
        origin, destination = MapFrame(self.cells.axes[:2]), MapFrame(self.cells.axes[2:])
        return ReleasedFlows(origin, destination, self.inner.released(drawn), self.inner.level)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each released flow, by the middles of its cells."""
        return [self.flows(drawn).columns()]


examples = [
    Flows(("age", "cost"), ("age + 1", "cost + 1"), cells=8),
    Flows(("age", "cost"), ("age + 1", "cost + 1"), bounds=(18, 1, 65, 900), cells=4, threshold=9),
]
