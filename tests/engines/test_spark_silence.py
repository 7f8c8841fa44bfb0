"""What Spark logs while questions are asked quotes no value; the same search finds values that Spark itself casts.

What happens is in `spark_silence.py`, which runs in processes of its own; the tests look at what it left.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import services
from tests.engines.spark_silence import FAR, MARK, TWIN

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PLACES = ["stdout", "stderr", "log.json", "events"]


def said(folder, part):
    """All that was said, by place."""
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    services.java()
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spark_silence.py")), str(folder), part],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    events = "".join(file.read_text(errors="replace") for file in (folder / "events").rglob("*") if file.is_file())
    log = (folder / "log.json").read_text(errors="replace")
    return {"stdout": ran.stdout, "stderr": ran.stderr, "log.json": log, "events": events}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return said(tmp_path_factory.mktemp("asked"), "asked")


@pytest.fixture(scope="module")
def guilty(tmp_path_factory):
    return said(tmp_path_factory.mktemp("guilty"), "guilty")


@pytest.mark.parametrize("place", PLACES)
def test_no_log_plan_or_error_quotes_a_value(asked, place):
    assert MARK not in asked[place]
    assert str(FAR) not in asked[place]


def test_there_was_something_to_read(asked):
    """Plans and five errors on stdout; tasks that failed in every log."""
    assert asked["stdout"].count("== Optimized Logical Plan ==") == 5
    assert asked["stdout"].count("Error: Traceback") == 5
    for place in PLACES[1:]:
        assert "An executor could not compute this" in asked[place]
        assert "could not be noised" in asked[place]


@pytest.mark.parametrize("value", [f"{MARK}age", str(FAR), f"{MARK}day"], ids=["text", "number", "worker"])
@pytest.mark.parametrize("place", PLACES)
def test_casts_of_spark_and_a_worker_that_quotes_are_found(guilty, place, value):
    assert value in guilty[place]


def test_spark_names_folders_of_partitions_at_level_info(guilty):
    """As docs/spark.md warns."""
    assert f"{MARK}folder" in guilty["log.json"]


def test_an_error_of_a_frame_is_not_logged_by_this_process(tmp_path):
    found = said(tmp_path, "frame")
    ours, _, twin = found["stderr"].partition(TWIN)
    assert MARK not in ours + found["stdout"] + found["log.json"]
    assert f"{MARK}age" in twin
