"""What declarations allow holds whatever the data: every output without noise lies in its span, and bars move there.

Outputs are computed from the engine's exact measures in the place of noised ones, so that what is compared is the very
number that an error bar is about.
"""

import math
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

from noisette.engines.duckdb.source import DuckDB
from noisette.privacy import Neighbours, Pure
from noisette.query.answer import Scene, columns, errors, key_columns
from noisette.query.draw import Noised
from noisette.query.kind import Kind
from noisette.query.possible import possible
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse
from noisette.questions.parts.queries import Queries

INF = math.inf
TABLE = Table(
    "t",
    (
        Column("u", Kind("integer", nullable=False)),
        Column("g", Kind("text", keys=("a", "b", "c"), nullable=False)),
        Column("x", Kind("integer", Fraction(-3), Fraction(5), Fraction(1))),
        Column("y", Kind("real", Fraction(1, 3), Fraction(10, 3))),
        Column("z", Kind("real", Fraction(-2), Fraction(0), nullable=False)),
        Column("b", Kind("boolean")),
        Column("k", Kind("integer", Fraction(1), Fraction(4), Fraction(1), nullable=False)),
    ),
    unit="u",
    limits=Limits(rows=3),
)
SCHEMA = {"t": TABLE}
SPANS = {
    "COUNT(*)": (0, INF),
    "COUNT(x)": (0, INF),
    "COUNT(DISTINCT u)": (0, INF),
    "COUNT(DISTINCT g)": (0, 3),
    "COUNT(DISTINCT LOWER(g))": (0, 3),
    "COUNT(DISTINCT b)": (0, 2),
    "COUNT(DISTINCT x)": (0, 9),
    "COUNT(DISTINCT y)": (0, INF),
    "SUM(x)": (-INF, INF),
    "SUM(y)": (0, INF),
    "SUM(z)": (-INF, 0),
    "AVG(x)": (-3, 5),
    "AVG(y)": (1 / 3, 10 / 3),
    "VARIANCE(x)": (0, 16),
    "STDDEV(x)": (0, 4),
    "COUNT(x) / COUNT(*)": (0, 1),
    "100 * COUNT(x) / COUNT(*)": (0, 100),
    "COUNT(DISTINCT x) / COUNT(x)": (0, 1),
    "COUNT(DISTINCT u) / COUNT(*)": (0, 1),
    "COUNT(*) / COUNT(x)": (0, INF),
    "COUNT(x) / COUNT(y)": (0, INF),
    "SUM(x) / COUNT(*)": (-3, 5),
    "SUM(y) / COUNT(y)": (0, 10 / 3),
    "SUM(x) / COUNT(y)": (-INF, INF),
    "SUM(CASE WHEN x > 0 THEN 1 ELSE 0 END) / COUNT(*)": (0, 1),
    "1 - COUNT(x) / COUNT(*)": (0, 1),
    "AVG(x) * AVG(y)": (-10, 50 / 3),
    "AVG(x) / 2 + 1": (-0.5, 3.5),
    "ABS(AVG(x))": (0, 5),
    "-COUNT(*)": (-INF, 0),
    "ROUND(AVG(y), 1)": (0, 4),
    "FLOOR(AVG(x) / 2)": (-2, 3),
    "CEIL(COUNT(x) / COUNT(*))": (0, 1),
    "COUNT(*) / SUM(x)": (-INF, INF),
    "SUM(z) / COUNT(*)": (-2, 0),
}


def offered(output, spend=1):
    query = parse(f"SELECT g, {output} AS r FROM t GROUP BY g", SCHEMA)
    return Queries((query,)).offer(SCHEMA, Pure(spend), Neighbours.ADD_REMOVE, 0.95)


@pytest.mark.parametrize("output", SPANS)
def test_what_declarations_allow(output):
    offer = offered(output)
    found = possible(dict(offer.procedure.prepared[0].query.outputs)["r"], offer.procedure.prepared[0])
    assert found == pytest.approx(SPANS[output], rel=1e-6, abs=1e-6)


def rows(seed):
    """Small groups of extreme and odd values: beyond bounds and keys, NULL, NaN and infinite."""
    chance = np.random.default_rng(seed)
    size = int(chance.integers(0, 12))
    x = [None, -3, 5, -99, 99, 0]
    y = [None, 1 / 3, 10 / 3, math.inf, -math.inf, math.nan, 1.7]
    made = {
        "u": (pyarrow.int64(), range(4)),
        "g": (pyarrow.string(), "aabAz"),
        "x": (pyarrow.int64(), x[: int(chance.integers(1, 7))]),
        "y": (pyarrow.float64(), y[int(chance.integers(0, 5)) :]),
        "z": (pyarrow.float64(), [-2.0, 0.0, -9.0, None]),
        "b": (pyarrow.bool_(), [True, False, None]),
        "k": (pyarrow.int64(), [1, 4, 7, 0, None]),
    }
    return pyarrow.table(
        {
            n: pyarrow.array([list(v)[int(chance.integers(len(v)))] for _ in range(size)], t)
            for n, (t, v) in made.items()
        }
    )


SOURCES = [DuckDB({"t": rows(seed)}, threads=1) for seed in range(12)]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("output", SPANS)
def test_outputs_without_noise_lie_within(output):
    offer, shown = offered(output, 10**4), 0  # so that a single row vouches for a mean
    question, design = offer.procedure.prepared[0], offer.procedure.design
    for source in SOURCES:
        exact = source.aggregate(question.request, SCHEMA, bytes(16))
        plain = {
            m: values * (float(m.grid) if m.what == "sum" else 1)
            for m, values in zip(question.request.measures, exact.measures, strict=True)
        }
        noised = Noised(exact.keys, 3, plain, {})
        scene = Scene(question, noised, errors(design, 0, 0.95), key_columns(question, noised))
        column = columns(scene)[1]
        low, high = column.span
        values = column.values.to_numpy(zero_copy_only=False).astype(float)
        missing = np.isnan(values)
        shown += int((~missing).sum())
        assert (missing | (low - 1e-6 <= values) & (values <= high + 1e-6)).all()
        assert ((column.low >= low) & (column.high <= high)).all()
        wide, narrow = column.unmoved, (column.low, column.high)
        held = [(a - 1e-6 <= values) & (values <= b + 1e-6) for a, b in (wide, narrow)]
        assert (held[0] <= held[1]).all()  # what the bar held it still holds
    assert shown


def test_undeclared_keys_are_not_counted():
    table = pyarrow.table({"u": [1, 2, 3, 4], "g": ["a", "b", "z", "y"]})
    plain = Table("t", TABLE.columns[:2], unit="u", limits=Limits(rows=3))
    query = parse("SELECT COUNT(DISTINCT g) AS r FROM t", {"t": plain})
    offer = Queries((query,)).offer({"t": plain}, Pure(1), Neighbours.ADD_REMOVE, 0.95)
    exact = DuckDB({"t": table}, threads=1).aggregate(offer.procedure.prepared[0].request, {"t": plain}, bytes(16))
    assert exact.measures[0].tolist() == [2]
