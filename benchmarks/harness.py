"""Measuring fairly on a busy machine: interleaved rounds, CPU time, medians; and what a section hands back.

Vocabulary: a `Job` is timed · a `Check` holds a ratio to its target · a `Section` is what one file reports.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers import Peer

OURS = "noisette"
NUMPY = "numpy"


@dataclass(frozen=True)
class Job:
    """Something to time; `run` does `count` of the things whose cost is reported."""

    name: str
    run: Callable[[], object]
    count: int = 1


@dataclass(frozen=True)
class Check:
    """A ratio, or a number of some other unit, and what it should be; without a target it is only reported."""

    what: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str = " ×"

    @property
    def passed(self) -> bool | None:
        """True or False, or None if there is no target."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    @property
    def target(self) -> str:
        """The target as text."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}{self.unit}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}{self.unit}"

    @property
    def text(self) -> str:
        """The value as text."""
        return times(self.value) if self.unit == " ×" else f"{self.value:.4g}{self.unit}"

    @property
    def cells(self) -> list[str]:
        """The last three cells of a table's row: value, target, verdict."""
        return [self.text, self.target, {True: "pass", False: "MISS", None: ""}[self.passed]]


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        text = [_aligned(line, widths) for line in lines]
        text.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, *("  " + line for line in text), *([f"  {self.note}"] if self.note else [])])


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *others]).rstrip()


@dataclass(frozen=True)
class Section:
    """What one section found."""

    tables: list[Table]
    checks: list[Check] = field(default_factory=list)


class Bench:
    """One run: its peers, its pace, and every measurement made, for the JSON file."""

    def __init__(self, peers: list[Peer], *, quick: bool) -> None:
        self.peers, self.quick = peers, quick
        self.section = ""
        self.measured: list[dict[str, Any]] = []

    def say(self, text: str, *, detail: str = "") -> None:
        """Show progress on stderr: one line that changes on a terminal, else one line for each new text."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{self.section}: {text} {detail}")
        elif not detail:
            sys.stderr.write(f"{self.section}: {text}\n")
        sys.stderr.flush()

    def pick(self, full: int, quick: int) -> int:
        """Choose a size or a number of rounds."""
        return quick if self.quick else full

    def measure(
        self,
        what: str,
        jobs: Sequence[Job],
        *,
        rounds: int,
        clock: Callable[[Callable[[], object]], float] | None = None,
    ) -> dict[str, float]:
        """Return the median CPU nanoseconds of each job per item; a job that raises is left out and noted.

        `clock` measures the seconds of a run where more than this process takes part.
        """
        seconds_of = clock or cpu_seconds
        self.say(what)
        usable = [job for job in jobs if self._runs(what, job)]
        seconds: dict[str, list[float]] = {job.name: [] for job in usable}
        with no_collections():
            for turn in range(rounds):
                self.say(what, detail=f"round {turn + 1}/{rounds}")
                for job in usable:
                    seconds[job.name].append(seconds_of(job.run))
        return {job.name: self._noted(what, job, seconds[job.name]) for job in usable}

    def _runs(self, what: str, job: Job) -> bool:
        """Run once untimed, so that tables, caches and memory are warm."""
        try:
            job.run()
        except Exception as error:
            self.failed(what, job.name, error)
            return False
        return True

    def failed(self, what: str, name: str, error: Exception) -> None:
        """Note that somebody could not do a job."""
        reason = f"{type(error).__name__}: {error}"
        self.measured.append({"section": self.section, "case": what, "job": name, "failed": reason})

    def _noted(self, what: str, job: Job, seconds: list[float]) -> float:
        rounds = [1e9 * s / job.count for s in seconds]
        median = statistics.median(rounds)
        record = {"section": self.section, "case": what, "job": job.name, "items": job.count}
        self.measured.append(record | {"ns": median, "rounds": rounds})
        return median


def cpu_seconds(run: Callable[[], object]) -> float:
    """CPU time of one run, by all threads of this process."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


@contextmanager
def no_collections() -> Iterator[None]:
    """Keep the garbage collector out of the measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def times(ratio: float) -> str:
    """Write a ratio to three digits.

    >>> times(0.4321), times(12.34), times(1234.5)
    ('0.432 ×', '12.3 ×', '1234 ×')
    """
    return f"{ratio:.0f} ×" if ratio >= 100 else f"{ratio:#.3g} ×"


def duration(ns: float | None) -> str:
    """Write nanoseconds in a unit that reads well; a dash for what was not measured.

    >>> duration(12.34), duration(45_600), duration(7.8e6), duration(None)
    ('12.3 ns', '45.6 µs', '7.8 ms', '–')
    """
    if ns is None:
        return "–"
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if ns < 999.5 * size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"
