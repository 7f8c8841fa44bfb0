"""The cells of columns, counted by the engine: what Histogram, Ranges, Workload and Map measure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.kind import Kind
from noisette.query.plan import Key, Where
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.parts.records import grouped, keyed
from noisette.questions.parts.rows import Rows
from noisette.releases.adaptive import one_node
from noisette.releases.axis import Axis

__all__ = ["GridCells", "LineCells", "added_up", "counted_rows"]

_OWN = ("n", "n_low", "n_high")


@dataclass(frozen=True)
class GridCells:
    """The combinations of the cells of several axes, counted among some rows."""

    axes: tuple[Axis, ...]
    prepared: Prepared

    @classmethod
    def of(cls, columns: Sequence[str], bins: int | None, of: Rows, schema: Schema) -> "GridCells":
        """The cells of columns or of expressions, as they are declared."""
        plain = grouped(of, columns, schema)
        kinds = zip(columns, cls.kinds(plain, len(columns)), strict=True)
        return cls.along(plain, tuple(Axis.of(column, kind, bins) for column, kind in kinds), schema)

    @staticmethod
    def kinds(plain: Prepared, many: int) -> list[Kind]:
        """What is declared of each column."""
        return [plain.keys[at] for at in _places(plain, many)]

    @classmethod
    def along(cls, plain: Prepared, axes: tuple[Axis, ...], schema: Schema, *, inside: bool = False) -> "GridCells":
        """The cells of given axes; `inside` leaves out rows beyond the axes, before limits on rows apply."""
        source, keys = plain.query.source, list(plain.query.keys)
        for axis, at in zip(axes, _places(plain, len(axes)), strict=True):
            source = Where(source, axis.holds(keys[at])) if inside else source
            keys[at] = axis.cell(keys[at]) if axis.binned else keys[at]
        binned = inside or any(axis.binned for axis in axes)
        query = replace(plain.query, source=source, keys=tuple(keys))
        return cls(axes, keyed(canonical(query), schema) if binned else plain)

    def dense(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        """The exact count of every combination, an array with an axis for each column: read after the charge."""
        shape = tuple(axis.cells for axis in self.axes)
        places, counts = self.read(source, schema, secret)
        return added_up(np.ravel_multi_index(tuple(places), shape), counts, math.prod(shape)).reshape(shape)

    def read(self, source: Source, schema: Schema, secret: bytes) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """The combinations that are there, as cells of each axis, with their exact counts: read after the charge."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        assert exact.keys is not None
        there, places = np.ones(len(exact.measures[0]), bool), []
        for axis, at in zip(self.axes, _places(self.prepared, len(self.axes)), strict=True):
            inside, found = axis.places(exact.keys.column(at).combine_chunks())
            place = np.zeros(len(inside), np.int64)
            place[inside] = found
            places.append(place)
            there &= inside
        return [place[there] for place in places], exact.measures[0][there]


def _places(prepared: Prepared, many: int) -> list[int]:
    """Which of the query's keys each column is: keys are sorted."""
    outputs = dict(prepared.query.outputs)
    keys = [outputs[f"c{i}"] for i in range(many)]
    return [key.position for key in keys if isinstance(key, Key)]


@dataclass(frozen=True)
class LineCells:
    """The counts of an axis's cells among some rows; a unit puts at most `rows` rows into them, wherever it likes."""

    axis: Axis
    prepared: Prepared

    @classmethod
    def of(cls, column: str, bins: int | None, of: Rows, schema: Schema, *, more: str = "n") -> "LineCells":
        """The cells of a column or of an expression, as it is declared; names of the answer's own are refused."""
        if column in (*_OWN, more):
            raise InputError(
                f'The answer has a column {column} of its own: of="SELECT {column} AS x FROM ..." renames.'
            )
        grid = GridCells.of([column], bins, of, schema)
        return cls(grid.axes[0], grid.prepared)

    @property
    def rows(self) -> int:
        """How many rows of one unit count."""
        return self.prepared.part.total

    def read(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        """The exact counts: to be called after the charge."""
        [places], counts = GridCells((self.axis,), self.prepared).read(source, schema, secret)
        return added_up(places, counts, self.axis.cells)


def counted_rows(prepared: Prepared, neighbours: Neighbours) -> Sensitivity:
    """How far one unit moves the counts of all combinations, before cells are made of them."""
    return one_node(prepared.part.total, neighbours)


def added_up(places: NDArray[np.int64], counts: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """The sum of the counts at each place."""
    found = np.zeros(cells, np.int64)
    np.add.at(found, places, counts)
    return found
