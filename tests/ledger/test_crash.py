"""kill -9 at named steps and at random times: nothing is handed out that was not paid for and kept before.

NOISETTE_SOAK=1000 says how often in the slow test; `make soak` does.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("NOISETTE_SOAK", "200"))


def crashed(where, folder, rounds, twin=""):
    command = [sys.executable, "-m", "tests.ledger.crash", where, str(folder), str(rounds), twin]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 6 * rounds, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_few_kills(tmp_path):
    found = crashed(str(tmp_path / "x.ledger"), tmp_path, 9)
    assert found["faults"] == []
    assert sum(found["killed"].values()) - found["killed"]["nowhere"] >= 8


@pytest.mark.slow
def test_many_kills(where, tmp_path):
    found = crashed(where, tmp_path, ROUNDS)
    assert found["faults"] == []
    assert all(number for step, number in found["killed"].items() if step != "nowhere"), found
    assert found["killed"]["nowhere"] <= ROUNDS // 10


@pytest.mark.slow
def test_a_twin_that_commits_after_it_drew_is_caught(tmp_path):
    found = crashed(str(tmp_path / "x.ledger"), tmp_path, 5, "late")
    assert "an answer was handed out without its charge" in found["faults"]
