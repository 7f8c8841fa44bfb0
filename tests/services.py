"""What a test needs beside Python: services, which every run of CI has, and public data, which may be absent.

Whoever contributes may lack a service: its tests skip and say so. Where `CI` is set, a test that skips for a reason
that is not listed here fails: without Java a run would be green and have seen nothing of Spark.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
ABSENT = "optional data ../shared/"
_OLDEST_JAVA = 17  # that Spark 4 runs on
_EXPECTED = (
    ABSENT,
    "root may write everything",
    "needs a user whom permissions bind",  # the other half of the same: CI runs as one of the two
    "the rule of other systems",
    "a server without ICU",  # of PostgreSQL: the one that the tests start has none
)
"""How reasons begin for which a test may skip anywhere."""


def java() -> None:
    """Skip what needs Spark itself, where there is no Java that it runs on."""
    if (found := _java()) < _OLDEST_JAVA:
        pytest.skip("Spark needs Java" + (f" {_OLDEST_JAVA} or newer, and this is {found}" if found else ""))


def optional(name: str) -> Path:
    """A file of the public data beside the checkout; without it the test skips, in CI too, and the run counts it."""
    if not (path := SHARED / name).exists():
        pytest.skip(f"{ABSENT}{name} is not there")
    return path


@cache
def _java() -> int:
    """The version on the PATH; 0 without one."""
    if shutil.which("java") is None:
        return 0
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test or a module was skipped; "" where it was not."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return ""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a service that is missing is a failure, whatever fixture or test skips for it."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips as a whole."""
    return _judged((yield))


def _judged(report: Any) -> Any:
    why = reason(report)
    if why and os.environ.get("CI") and not why.startswith(_EXPECTED):
        report.outcome, report.longrepr = "failed", f"In CI nothing is missing, and this was skipped: {why}"
    return report
