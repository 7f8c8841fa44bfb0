"""The cells of a column, counted by the engine: what Histogram and Ranges measure."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.engines.contract import Source
from noisette.query.canonical import canonical
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.parts.records import grouped, keyed
from noisette.questions.parts.rows import Rows
from noisette.releases.axis import Axis

__all__ = ["LineCells"]


@dataclass(frozen=True)
class LineCells:
    """The counts of an axis's cells among some rows; a unit puts at most `rows` rows into them, wherever it likes."""

    axis: Axis
    prepared: Prepared

    @classmethod
    def of(cls, column: str, bins: int | None, of: Rows, schema: Schema) -> "LineCells":
        """The cells of a column or of an expression, as it is declared."""
        plain = grouped(of, [column], schema)
        axis = Axis.of(_name(column), plain.keys[0], bins)
        if not axis.binned:
            return cls(axis, plain)
        cell = replace(plain.query, keys=(axis.cell(plain.query.keys[0]),))
        return cls(axis, keyed(canonical(cell), schema))

    @property
    def rows(self) -> int:
        """How many rows of one unit count."""
        return self.prepared.part.total

    def read(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        """The exact counts: to be called after the charge."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        assert exact.keys is not None
        there, places = self.axis.places(exact.keys.column(0).combine_chunks())
        counts = np.zeros(self.axis.cells, np.int64)
        np.add.at(counts, places, exact.measures[0][there])
        return counts


def _name(column: Any) -> str:
    """What the cells are called: the column, or the expression as it was written."""
    return str(column)
