"""Moments beyond the years 1 to 9999, stored as another type: no function fails, and none leaves its bounds."""

import datetime

import pyarrow
import pytest

from noisette.engines.duckdb.source import DuckDB
from noisette.engines.memory.source import Memory
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Table
from noisette.query.sql import parse

DAY = 86_400_000_000
FAR = [None, 0, -1, 290_000 * 365, -290_000 * 365, 2_932_896, 2_932_897, -719_162, -719_163, 18_262]  # days
STORED = {
    "DATE": pyarrow.array([*FAR, 2**31 - 1, -(2**31) + 1], pyarrow.int32()).cast(pyarrow.date32()),
    "TIMESTAMP": pyarrow.array([None if d is None else d * DAY + 1 for d in FAR], pyarrow.timestamp("us")),
    "TIMESTAMP_S": pyarrow.array([None if d is None else d * 86_400 for d in FAR], pyarrow.timestamp("s")),
    "TIMESTAMP_NS": pyarrow.array([None, 0, -1, 2**63 - 2, -(2**63) + 2, 18_262 * DAY * 1000], pyarrow.timestamp("ns")),
}
FUNCTIONS = [
    "SUM(d::DATE - DATE '2000-01-01')",
    "SUM(DATE_DIFF('week', d, d + INTERVAL 10000 YEAR))",
    "SUM(DATE_DIFF('month', d, d - INTERVAL 10000 YEAR))",
    "SUM(DATE_DIFF('day', d, d + INTERVAL 3000000 DAY))",
    "SUM(WEEK(d) + DAYOFYEAR(d) + ISODOW(d))",
    "SUM(YEAR(DATE_TRUNC('quarter', d)) BETWEEN 1 AND 9999)",
    "COUNT(DISTINCT STRFTIME(d, '%d.%m'))",
    "COUNT(DISTINCT DATE_TRUNC('week', d))",
    "COUNT(DISTINCT DATE_TRUNC('day', d))",
    "SUM(STRFTIME(d, '%Y') = '9999')",
]


ALL = ", ".join(f"{function} AS x{i}" for i, function in enumerate(FUNCTIONS))


def exact(make, stored, type):
    schema = {"t": Table("t", (Column("d", Kind(type)),))}
    request = prepare(parse(f"SELECT {ALL} FROM t", schema), schema).request
    source = make({"t": pyarrow.table({"d": STORED[stored]})})
    return request, [m.tolist() for m in source.aggregate(request, schema, bytes(16)).measures]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("type", ["date", "timestamp"])
@pytest.mark.parametrize("stored", STORED)
def test_functions_of_far_moments(stored, type):
    request, found = exact(DuckDB, stored, type)
    assert stored == "TIMESTAMP_NS" or found == exact(Memory, stored, type)[1]  # which memory does not read
    rows = len(STORED[stored])
    for measure, (total,) in zip(request.measures, found, strict=True):
        if measure.what == "sum":
            assert measure.low * rows <= total <= measure.high * rows


def test_the_far_ends_are_the_first_and_the_last_day():
    days = (datetime.date.max - datetime.date(2000, 1, 1)).days, (datetime.date(2000, 1, 1) - datetime.date.min).days
    request, _ = exact(Memory, "DATE", "date")
    assert days in [(measure.high, -measure.low) for measure in request.measures]


def test_a_function_of_moments_as_they_are_read_is_noticed(monkeypatch):
    """A twin that leaves out the first and the last day: days are beyond the bounds that the noise is made for."""
    monkeypatch.setattr("noisette.engines.sql.functions._moment", lambda part: part.sql)
    monkeypatch.setitem(globals(), "ALL", "SUM(d::DATE - DATE '2000-01-01') AS x")
    _, ((total,),) = exact(DuckDB, "TIMESTAMP", "date")
    assert total != exact(Memory, "TIMESTAMP", "date")[1][0][0]
