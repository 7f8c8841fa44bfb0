"""A real cluster that fails in every way it can: one noise for each cell, and a twin that draws afresh is convicted.

What happens is in `spark_audit.py`, which runs once, in a process of its own; the tests look at what it found.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import services

pytestmark = pytest.mark.nightly("a cluster of its own that fails in every way it can, for a minute")
ROOT = Path(__file__).resolve().parents[2]
CELLS = 1000


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    services.java()
    folder = tmp_path_factory.mktemp("audit")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spark_audit.py")), str(folder)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("way", ["fails", "killed", "again"])
def test_a_cell_has_one_noise(found, way):
    """`again` cells were drawn more than once: without any, the test would show nothing."""
    seen = found[f"{way} keyed"]
    assert seen["cells"] == CELLS
    assert seen["again"] > 0
    assert seen["two noises"] == 0


@pytest.mark.parametrize("way", ["fails", "again"])
def test_a_twin_that_draws_afresh_is_convicted(found, way):
    """Noise of scale 1000 is the same twice with a chance below 1/1000, and of all cells below 1e-9."""
    seen = found[f"{way} afresh"]
    assert seen["two noises"] > 0.9 * seen["again"] > 0


def test_the_source_answers_as_in_process(found):
    """Noise on counts is far below 1/2, and sums are off by 20 with a chance below 1e-15.

    A median of an even number of ages is any age between the two in the middle, so two draws of it may differ.
    """
    spark, process = found["asked"]["spark"], found["asked"]["process"]
    assert spark[:3] == process[:3]
    assert all(abs(float(a) - float(b)) < 40 for a, b in zip(spark[3], process[3], strict=True))
    keys = spark[0]
    assert keys == [*sorted(keys[:-1]), "None"]
    assert len(keys) == 7
    for answer in (spark, process):
        for key, median in zip(keys, map(float, answer[4]), strict=True):
            ages = found["asked"]["ages"][key]
            assert 2 * sum(age < median for age in ages) <= len(ages) >= 2 * sum(age > median for age in ages)


@pytest.mark.parametrize("task", ["sending", "retaining", "of_retained"])
def test_an_executor_that_dies_over_files_changes_no_number(found, task):
    """As it packs rows for others, as it retains them, and as it reads what it holds, which is lost with it."""
    assert found["lost"][task] == {"right": True, "died": True}


def test_a_failure_has_one_sentence_and_leaves_nothing(found):
    assert found["failure"] == {
        "error": "NoisetteError", "words": "The cells of this question could not be noised.", "context": False
    }  # fmt: skip
    assert found["scratch"] == []


@pytest.mark.parametrize("where", ["plan", "events"])
def test_neither_plan_nor_event_log_has_the_key_or_values(found, where):
    assert found[where]["letters"] > 1000
    assert found[where]["secret"] == []
    assert found[where].get("values", []) == []
