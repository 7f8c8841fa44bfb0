"""Examples do not depend on what else a process has loaded: one file draws alone what it draws in the whole run."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DRAW = """
import hashlib, importlib, sys
from hypothesis import given, settings, strategies as st
for name in sys.argv[1:]:
    importlib.import_module(name)
seen = []
@settings(derandomize=True, database=None, max_examples=200, deadline=None)
@given(st.lists(st.integers()), st.floats(), st.text(), st.binary())
def f(a, b, c, d):
    seen.append(repr((a, b, c, d)))
f()
print(hashlib.sha256("".join(seen).encode()).hexdigest())
"""
LOADED = {"nothing": [], "the package": ["noisette"], "two modules": ["noisette.query.prepare", "noisette.ledger"]}
PROVIDERS = "hypothesis.internal.conjecture.providers"
SETTLED = "from tests.examples import register; register()"


def digests(first, tmp_path):
    """The digest of all examples of one test, by what is loaded."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)}
    options = {"capture_output": True, "text": True, "check": True, "timeout": 300, "env": environment}
    commands = {what: [sys.executable, "-c", first + DRAW, *names] for what, names in LOADED.items()}
    return {what: subprocess.run(command, **options).stdout for what, command in commands.items()}


@pytest.mark.slow
def test_processes_with_different_imports_draw_the_same(tmp_path):
    assert len(set(digests(SETTLED, tmp_path).values())) == 1


@pytest.mark.slow
def test_a_twin_that_draws_constants_of_modules_is_found(tmp_path):
    draws = importlib.util.find_spec(PROVIDERS) and hasattr(importlib.import_module(PROVIDERS), "_get_local_constants")
    assert len(set(digests("", tmp_path).values())) == (len(LOADED) if draws else 1)  # old versions draw none
