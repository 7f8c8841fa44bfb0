"""What is missing is skipped, counted and said; where CI is set it fails. And what a run says of its time is true."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import order, services
from tests.summary import Summary

ROOT = Path(__file__).resolve().parents[1]
MISSING = """
import pytest
@pytest.fixture(scope="session")
def service():
    pytest.skip("no server to start")
def test_a_service(service): ...
def test_another(service): ...
def test_data():
    pytest.skip("optional data ../shared/x is not there")
@pytest.mark.xfail(strict=True)
def test_known():
    assert False
"""
AWAY = 'import pytest\npytest.importorskip("no_such_package_of_ours", reason="no extra")\ndef test_nothing(): ...'


def outcome(folder, **environment):
    """The last lines of a run over two files that lack something."""
    (folder / "test_missing.py").write_text(MISSING)
    (folder / "test_away.py").write_text(AWAY)
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-p", "tests.services"]
    command += ["--continue-on-collection-errors"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST"))}
    ran = subprocess.run(
        [*command, f"--rootdir={folder}", str(folder)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=300, env={**clean, **environment},
    )  # fmt: skip
    return ran.stdout


@pytest.mark.slow
def test_what_is_missing_fails_in_ci_alone(tmp_path):
    assert "4 skipped, 1 xfailed" in outcome(tmp_path)
    said = outcome(tmp_path, CI="1")
    assert "1 skipped, 1 xfailed, 3 errors" in said
    assert "nothing is missing, and this was skipped: no server to start" in said
    assert "was skipped: no extra" in said


@pytest.mark.parametrize(
    ("version", "fits"), [("17.0.15", True), ("21.0.1", True), ("11.0.2", False), ("1.8.0", False)]
)
def test_any_java_that_spark_runs_on_will_do(tmp_path, monkeypatch, version, fits):
    (tmp_path / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    services._java.cache_clear()
    try:
        if fits:
            services.java()
        else:
            with pytest.raises(pytest.skip.Exception, match="Java 17 or newer"):
                services.java()
    finally:
        services._java.cache_clear()


def cases(*names):
    return [SimpleNamespace(nodeid=name) for name in names]


def test_another_order_keeps_files_together_and_is_the_same_twice(monkeypatch):
    items = cases(*(f"tests/{file}.py::test_{i}" for file in "abcdef" for i in range(9)))
    monkeypatch.delenv("NOISETTE_ORDER", raising=False)
    assert order.shuffled(items) == items
    monkeypatch.setenv("NOISETTE_ORDER", "7")
    other = order.shuffled(items)
    assert other == order.shuffled(items) != items
    assert Counter(item.nodeid for item in other) == Counter(item.nodeid for item in items)
    files = [item.nodeid[6] for item in other]
    assert sum(a != b for a, b in pairwise(files)) == 5


def test_the_sums_are_those_of_the_reports():
    summary = Summary(times=True)
    for name, seconds in [("tests/cli/test_a.py::a", 3), ("tests/cli/test_a.py::b", 1), ("src/x.py::y", 5)] * 2:
        report = pytest.TestReport(name, (name, 1, name), {}, "passed", None, "call", processor=seconds, memory=2048)
        summary.pytest_runtest_logreport(report)
    total, folders, _, *slowest = summary.lines()
    assert total.startswith("18 s of processor time in cases, 2 MiB")
    assert folders.split() == ["src", "10,", "cli", "8"]
    assert [line.split()[0] for line in slowest] == ["10.0", "6.0", "2.0"]
