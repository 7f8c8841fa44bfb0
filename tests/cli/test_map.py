"""`noisette map`: files of every kind, and what is refused before anything is spent."""

import json
import sys

import pyarrow
import pyarrow.parquet
import pytest
from tests.cli.tools import POLICY, refused, table, well

PLACED = POLICY.replace('cost = { type = "integer" }', 'cost = { type = "integer", bounds = [0, 39] }')
MAP = ["map", "visits", "age", "cost", "--spend", "0.5"]


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """A project whose table has two columns with bounds."""
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(table(), "visits.parquet")
    (tmp_path / "rules.toml").write_text(PLACED)
    well("open", "visits.parquet", "--policy", "rules.toml")
    return tmp_path


@pytest.mark.slow
def test_a_map_is_written_by_its_ending_and_asking_again_is_free(placed):
    said = well(*MAP, "--cells", "16,8", "-o", "map.geojson")
    assert said.splitlines()[0].startswith("16 × 8 cells of age, cost")
    assert said.splitlines()[-1] == "Written to map.geojson."
    assert json.loads((placed / "map.geojson").read_text())["type"] == "FeatureCollection"
    before = json.loads(well("budget", "--json"))
    well(*MAP, "--cells", "16,8", "-o", "map.parquet")
    assert b"geo" in pyarrow.parquet.read_schema(placed / "map.parquet").metadata
    well(*MAP, "--cells", "16,8", "-o", "map.png")
    assert (placed / "map.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(well("budget", "--json")) == before


@pytest.mark.slow
def test_some_rows_with_bounds_another_strategy_and_json(placed):
    options = ["--bounds", "20,0,50,20", "--where", "ward = 'north'", "--strategy", "quadtree", "--cells", "8"]
    found = json.loads(well(*MAP, *options, "--json"))
    assert {"age", "cost", "n", "n_low", "n_high"} == set(found["rows"][0])
    asked = '{"map": {"x": "age", "y": "cost", "cells": 8}}'
    assert "adaptive map" in well("explain", asked, "--spend", "0.5")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-o", "map.pdf"], "by the ending of its name"),
        (["-o", "nowhere/map.png"], "folder"),
        (["--bounds", "1,2,x,4"], "--bounds must be numbers"),
        (["--bounds", "50,0,20,20"], "reversed"),
        (["--cells", "many"], "--cells must be whole"),
        (["--cells", "0"], "at least 1"),
        (["--cells", "2,2,2"], "one for each column"),
        (["--strategy", "mercator"], "adaptive, quadtree"),
        (["--spend", "0"], "--spend must be above 0"),
        (["--where", "ward ="], "."),
    ],
)
def test_what_cannot_be_asked_is_refused(placed, options, says):
    assert says in refused(2, *MAP, *options)
    assert "Nothing was asked yet" in well("budget")


@pytest.mark.slow
def test_a_picture_needs_its_package_before_anything_is_spent(placed, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert "noisette[plot]" in refused(2, *MAP, "-o", "map.png")
    assert "Nothing was asked yet" in well("budget")
