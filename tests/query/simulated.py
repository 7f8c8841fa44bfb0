"""Many releases of one question at once: the exact measures of a table are computed once and noised again and again.

Groups of known sizes, none of whose rows is cut away: every person has two rows, both in one group, and both count.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pyarrow

from noisette.engines.duckdb.source import DuckDB
from noisette.privacy import Neighbours
from noisette.query.answer import Scene, columns, errors
from noisette.query.draw import draw
from noisette.query.kind import Kind
from noisette.query.measure import Exact
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse
from noisette.questions.parts.queries import Queries

SIZES = {"a none": 0, "b one": 1, "c tiny": 4, "d small": 20, "e middle": 200, "f large": 3000}
BOUNDS = 0, 100
TABLE = Table(
    "t",
    (
        Column("u", Kind("integer", nullable=False)),
        Column("g", Kind("text", keys=tuple(SIZES), nullable=False)),
        Column("x", Kind("real", Fraction(0), Fraction(100), Fraction(1, 100))),
        Column("k", Kind("integer", Fraction(0), Fraction(50), Fraction(1), nullable=False)),
    ),
    unit="u",
    limits=Limits(groups=1, rows_per_group=2),
)
SCHEMA = {"t": TABLE}


@lru_cache(maxsize=1)
def rows():
    """(u, g, x, k), some x NULL and some beyond the bounds."""
    chance = np.random.default_rng(1)
    made = []
    for place, (group, size) in enumerate(SIZES.items()):
        for i in range(size):
            x = None if chance.random() < 0.1 and size > 1 else round(chance.gamma(2, 18), 2)
            made.append((10_000 * place + i // 2, group, x, int(chance.integers(0, 51))))
    return made


@lru_cache(maxsize=1)
def source():
    columns = zip(*rows(), strict=True)
    types = (pyarrow.int64(), pyarrow.string(), pyarrow.float64(), pyarrow.int64())
    arrays = [pyarrow.array(column, type) for column, type in zip(columns, types, strict=True)]
    return DuckDB({"t": pyarrow.table(arrays, names=["u", "g", "x", "k"])}, threads=1)


def values(group):
    """What the answers are about: the clamped x that are there, all k, and the persons."""
    mine = [row for row in rows() if row[1] == group]
    return (
        np.array([min(max(x, BOUNDS[0]), BOUNDS[1]) for _, _, x, _ in mine if x is not None]),
        np.array([k for _, _, _, k in mine]),
        {u for u, _, _, _ in mine},
    )


@dataclass(frozen=True)
class Simulated:
    """Answers of many releases, groups x times: the numbers and the ends of their error bars."""

    number: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mechanisms: tuple[str, ...]

    def coverage(self, group, truth):
        """How often the error bar holds the truth; floats may differ in their last digits."""
        at = list(SIZES).index(group)
        near = 1e-9 * max(1.0, abs(truth))
        return float(np.mean((self.low[at] <= truth + near) & (truth - near <= self.high[at])))


@lru_cache(maxsize=64)
def simulated(output, spend, times, level=0.95):
    """Many releases of one output for every group."""
    query = parse(f"SELECT g, {output} AS y FROM t GROUP BY g", SCHEMA)
    offer = Queries((query,)).offer(SCHEMA, spend, Neighbours.ADD_REMOVE, level)
    exact = _exact(offer.procedure.design.tasks[0].request)
    many = Exact(None, tuple(np.repeat(measure, times, axis=0) for measure in exact.measures))
    noised = draw(offer.procedure.design, 0, many)
    keys = [pyarrow.array(np.repeat(list(SIZES), times))]
    _, column = columns(Scene(offer.procedure.prepared[0], noised, errors(offer.procedure.design, 0, level), keys))
    number = column.values.to_numpy(zero_copy_only=False)
    shaped = [np.asarray(part, dtype=float).reshape(len(SIZES), times) for part in (number, column.low, column.high)]
    return Simulated(*shaped, tuple(part["mechanism"] for part in offer.parts))


@lru_cache(maxsize=64)
def _exact(request):
    return source().aggregate(request, SCHEMA, bytes(16))
