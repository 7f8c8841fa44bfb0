"""At the end of a run: what was skipped and why, and with `--times` where the time went.

A worker measures each case and writes it into the report of the case. The reports of all workers arrive at one process,
which adds them up. Nothing is written to a file.
"""

import resource
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tests import services

_SLOWEST, _WIDTH = 20, 150


def _processor() -> float:
    """Seconds of processor time of this process and of the children it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Summary:
    """A plugin of pytest: adds up reports and prints the sums."""

    def __init__(self, *, times: bool) -> None:
        self.times, self.begun, self.memory = times, 0.0, 0
        self.seconds: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def pytest_runtest_logstart(self) -> None:
        self.begun = _processor()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Called after set-up, call and teardown of each case."""
        report = yield
        now = _processor()
        report.processor, self.begun = now - self.begun, now
        report.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += getattr(report, "processor", 0.0)  # a worker that died has none
        self.memory = max(self.memory, getattr(report, "memory", 0))
        self._skip(report)

    def pytest_collectreport(self, report: Any) -> None:
        self._skip(report)

    def _skip(self, report: Any) -> None:
        if why := services.reason(report):
            self.skipped[why] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for why, count in self.skipped.most_common():
            terminalreporter.write_line(f"skipped {count:,} × {why}")
        if self.times:
            for line in self.lines():
                terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """Where the time went. The first case that uses a fixture pays for it."""
        folders: Counter[str] = Counter()
        for name, seconds in self.seconds.items():
            folders[_folder(name)] += seconds
        total, memory = sum(folders.values()), self.memory / 1024
        return [
            f"{total:.0f} s of processor time in cases, {memory:.0f} MiB in the largest process; seconds by folder:",
            "  " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in folders.most_common()),
            f"the {_SLOWEST} slowest cases:",
            *(f"  {seconds:6.1f} s  {name[:_WIDTH]}" for name, seconds in self.seconds.most_common(_SLOWEST)),
        ]


def _folder(name: str) -> str:
    """`curator` of tests/curator/test_forks.py::…, `tests` of a file beside them, `src` of every doctest."""
    top, *below = name.partition("::")[0].split("/")
    return below[0] if top == "tests" and len(below) > 1 else top
