"""What an engine keeps of the rows that it retained, and how rows are put together again, piece by piece."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from tests.query.tables import SCHEMA

import noisette as nz
from noisette.engines.bounding import words
from noisette.engines.duckdb.held import bounded_key
from noisette.engines.memory.values import clean
from noisette.engines.spark.cells import CellLayout
from noisette.engines.spark.commit import _each_once
from noisette.engines.spark.packing import _buckets
from noisette.query.kind import Kind
from noisette.query.prepare import prepare
from noisette.query.schema import Limits
from noisette.query.sql import parse


def test_rows_are_used_again_under_the_same_limits_tables_and_secret_alone():
    name, table = next((name, table) for name, table in SCHEMA.items() if table.unit is not None and not table.public)
    request = prepare(parse(f"SELECT COUNT(*) AS n FROM {name}", SCHEMA), SCHEMA).request
    other = {**SCHEMA, name: replace(table, limits=Limits(rows=7))}
    keys = [
        bounded_key(request, SCHEMA, bytes(16)),
        bounded_key(replace(request, limits=Limits(rows=7)), SCHEMA, bytes(16)),
        bounded_key(request, other, bytes(16)),
        bounded_key(request, SCHEMA, bytes(15) + b"1"),
    ]
    assert len(set(keys)) == 4
    assert bounded_key(request, dict(SCHEMA), bytes(16)) == keys[0]


def test_a_unit_has_few_rows_in_the_few_groups_that_it_keeps():
    rows = pyarrow.table({"who": np.repeat(np.arange(50), 12), "ward": np.tile(["a", "b", "c"], 200)})
    columns = {"who": {"nullable": False}, "ward": {"keys": ["a", "b", "c"]}}
    table = {"unit": "who", "groups": 2, "rows_per_group": 1, "columns": columns}
    data = nz.open({"visits": rows}, budget=1000, policy={"tables": {"visits": table}})
    answer = data.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", spend=400)
    assert sum(answer["n"].values.to_pylist()) == 100  # at this epsilon noise is 0 but for a chance below 1e-80


def test_values_beyond_the_bounds_are_cleaned_to_them():
    date = Kind("date", Fraction(10), Fraction(20), Fraction(1))
    assert [clean(day, date, "DATE").toordinal() - 719163 for day in (0, 10, 15, 20, 99)] == [10, 10, 15, 20, 20]
    assert clean(None, Kind("integer", Fraction(5), Fraction(9), Fraction(1), nullable=False), "BIGINT") == 5


# Spark


@pytest.mark.parametrize(("places", "whole"), [([1, 0, 2], True), ([0, 0, 2], False), ([0, 1], False)])
def test_every_place_comes_once(places, whole):
    rows = pyarrow.table({"c0": pyarrow.array(places, pyarrow.int64())})
    assert _each_once(rows, CellLayout(3, (None,))) is whole


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_rows_of_a_unit_go_to_one_bucket_across_pieces(size, monkeypatch):
    unit = pyarrow.chunked_array([np.arange(10), np.arange(5, 12)])
    known = _buckets(unit, 5, lambda table: table)
    monkeypatch.setattr(words, "_CHUNK", size)
    assert _buckets(unit, 5, lambda table: table).tolist() == known.tolist()
    assert known[5:10].tolist() == known[10:15].tolist()
