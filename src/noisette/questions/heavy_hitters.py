"""The frequent values of a column, from a sketch of bounded memory (`releases.sketches.misra_gries`).

Rows are counted by value, values are read in a public order, by a hash, and the sketch sees nothing else: what one
unit moves is that of a stream in which up to its number of rows come or go, wherever they stand.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import Omission
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Measure
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.records import changed, grouped
from noisette.questions.parts.rows import Rows
from noisette.releases.sketches.hashing import public_order
from noisette.releases.sketches.misra_gries import FrequentValues, HeavyHitterRelease, MisraGries

__all__ = ["HeavyHitters"]

_COVERS = "± covers the noise and what the bounded memory may have missed"
_FAR = 2**60  # steps, so that no end of a bar is moved to 0
_WHY = "A row moves {0:,} counters by less than 2 together, however many values there are; a threshold hides rare ones."


@dataclass(frozen=True)
class HeavyHitters(JsonQuestion):
    """The frequent values of a column (or an expression) with their numbers of rows, from `memory` counters.

    Values of more than one row in `memory` + 1 have a counter for certain; those whose noisy counter reaches a
    threshold are released, which needs a delta. The answer's `value.estimate([...])` bounds the rows of any value.

    >>> HeavyHitters("diagnosis", memory=50)
    HeavyHitters(column='diagnosis', memory=50, of=None)
    """

    column: str
    memory: int = 100
    of: Rows = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Counters above a threshold, with noise."""
        prepared = grouped(self.of, [self.column], schema)
        release = HeavyHitterRelease.calibrated(
            spend, memory=self.memory, rows=prepared.part.total, neighbours=neighbours
        )
        step = Fraction(1, release.memory + 1)
        procedure = Frequent(prepared, changed(prepared, neighbours), release, level, _named(self.column))
        return about(
            prepared,
            procedure,
            text=text_of("heavy hitters", prepared, memory=self.memory),
            why=_WHY.format(self.memory),
            guarantee=release.guarantee(),
            parts=[_recorded(*part, step, neighbours) for part in release.parts],
            covers=_COVERS,
            omitted=[
                Omission(f"Values whose noisy counter stands for fewer than {release.least:,} rows are left out.")
            ],
            value=procedure.value,
        )


def _named(column: str) -> str:
    """What the values are called in the answer."""
    return column if column.isidentifier() and column != "count" else "value"


def _recorded(mechanism: Any, moved: Sensitivity, step: Fraction, neighbours: Neighbours) -> dict[str, Any]:
    return {**recorded(mechanism, Measure("rows", grid=step), moved), "relation": str(neighbours)}


@dataclass(frozen=True)
class Frequent:
    """Counters that would be released; `sensitivity` is how many rows of the table one unit can change."""

    prepared: Prepared
    sensitivity: Sensitivity
    release: HeavyHitterRelease
    level: float
    name: str

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of a counter for some numbers of rows: by noise, and by what k counters may miss."""
        made = self.release
        widths = {n: self._half(n) for n in sizes}
        rows = f"rows: {made.rows:,}, less than 2 for each in {made.memory:,} counters"
        note = f"sizes are rows in all, at worst; a value is released from about {made.least:,} rows on"
        return [(Expected("count", "truncated Laplace noise and a threshold", rows, None, widths, None, note),)]

    def _half(self, rows: int) -> float:
        """Half of the error bar of a value that all counters may have missed as often as there are rows for it."""
        _, low, high = FrequentValues(self.release, (), (), rows, rows).bars([2 * _FAR], self.level)
        return float(high[0] - low[0]) / 2

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows of each value, sketch them and release counters."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        assert exact.keys is not None
        values = exact.keys.column(0).to_pylist()
        order, rows = public_order(values), exact.measures[0]
        stream = [values[i] for i in order], [int(rows[i]) for i in order]
        found = self.release(MisraGries.of(*stream, memory=self.release.memory), rng)
        keys = pyarrow.array(found.keys, ARROW[self.prepared.keys[0].type])
        table = pyarrow.table({"key": keys, "noisy": pyarrow.array(found.noisy, pyarrow.int64())})
        return table.replace_schema_metadata({"taken": str(found.taken), "missing": str(found.missing)})

    def value(self, drawn: pyarrow.Table) -> FrequentValues:
        """The released values, which go on answering."""
        taken, missing = (int(drawn.schema.metadata[name]) for name in (b"taken", b"missing"))
        keys, noisy = (drawn.column(i).to_pylist() for i in range(2))
        return FrequentValues(self.release, tuple(keys), tuple(noisy), taken, missing)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The released values with error bars, the most frequent first."""
        value, low, high = self.value(drawn).bars(drawn.column("noisy").to_numpy(), self.level)
        counts = pyarrow.array(np.rint(value).astype(np.int64))
        low, high = np.minimum(low, np.rint(value)), np.maximum(high, np.rint(value))
        return [(Column(self.name, drawn.column(0).combine_chunks()), Column("count", counts, low, high))]


examples = [
    HeavyHitters("diagnosis", memory=40),
    HeavyHitters("FLOOR(cost / 100)", memory=10, of="SELECT * FROM visits WHERE age >= 18"),
]
