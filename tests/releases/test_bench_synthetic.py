"""The part of `make bench-error` about synthetic rows, on a made-up table in the format of the real one."""

import json

import numpy as np
import pytest
from benchmarks.error import synthetic

NAMES = ["age", "workclass", "race", "sex", "income>50K"]
SIZES = {"age": 30, "workclass": 5, "race": 4, "sex": 2, "income>50K": 2}


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(1)
    rich = rng.random(3000) < 0.3
    columns = [np.clip(rng.normal(12 + 6 * rich, 4), 0, 29).astype(int), rng.integers(0, 5, 3000)]
    columns += [rng.integers(0, 4, 3000), rng.integers(0, 2, 3000), rich.astype(int)]
    lines = [",".join(NAMES), *(",".join(map(str, row)) for row in np.column_stack(columns))]
    (tmp_path / "data" / "adult.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "data" / "adult-domain.json").write_text(json.dumps(SIZES))
    (tmp_path / "data" / "adult_3way64.json").write_text(json.dumps({"workload64": [["age", "race", "sex"]]}))
    return tmp_path


def test_without_the_table_nothing_is_measured(tmp_path):
    assert synthetic.section(tmp_path, 1) == ([], [], {})


def test_variation_is_half_the_sum_of_differences():
    one, other = np.array([[0, 0], [1, 1]]), np.array([[0, 0], [1, 0]])
    assert synthetic.variation(one, other, (0, 1), (2, 2)) == 0.5
    assert synthetic.variation(one, other, (0,), (2, 2)) == 0


@pytest.mark.slow
def test_goals_are_held_against_what_was_measured(shared):
    [table], checks, figures = synthetic.section(shared, 1)
    assert "ours, epsilon 1" in str(table)
    ours = figures["ours, epsilon 1"][0]
    assert checks[0].value == ours["three"]
    assert 0 < ours["pairs"] <= ours["largest"] < 1
    assert figures["ours, epsilon 10"][0]["three"] < figures["ours, epsilon 0.1"][0]["three"]
