"""Questions about tables in Spark itself, by the CPU time of this process and of all that it started, Java included."""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import noisette as nz
from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, duration
from benchmarks.process_tree import seconds_of

RAW, DISTINCT, WINDOWS = "group-by", "with distinct users", "window functions"
FIRST, ROWS, UNKNOWN = f"{OURS}, users", f"{OURS}, rows", f"{OURS}, unknown keys"
AGAIN = f"{OURS}, users again"
BY_KEY = "group-by of many keys"
SPENDS = (1 + Fraction(i, 1000) for i in count())  # every one is new: the same question for the same spend is free
TEXT = "SELECT ward, count(*) AS n, sum(age) AS s FROM visits GROUP BY ward"
MANY = "SELECT code, count(*) AS n FROM visits GROUP BY code"
WARDS, A_USER = 1000, 20
COLUMNS = {
    "age": {"bounds": [0, 120], "nullable": False},
    "ward": {"keys": list(range(WARDS)), "nullable": False},
}
USERS = {"unit": "who", "groups": 3, "rows_per_group": 2, "columns": COLUMNS}
BUDGET = nz.Approx(10**6, "0.1")
TARGETS = {
    (FIRST, RAW): 5.0,
    (FIRST, DISTINCT): 0.6,
    (FIRST, WINDOWS): 0.5,
    (AGAIN, RAW): 1.3,
    (ROWS, RAW): 1.3,
    (UNKNOWN, BY_KEY): 1.6,
}
SIZE, LARGE = 10**7, 5 * 10**7  # rows for which there are targets; and for which the first question alone is asked
FILES = 8


def written(folder: Path, rows: int) -> str:
    """Visits as Parquet files: twenty rows of a user, a thousand wards, and one code for about six rows."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    folder.mkdir()
    rng = np.random.default_rng(rows)
    for i in range(FILES):
        size = rows // FILES
        table = pyarrow.table({
            "who": rng.integers(0, rows // A_USER, size),
            "age": rng.integers(0, 100, size),
            "ward": rng.integers(0, WARDS, size),
            "code": rng.integers(0, rows // 6, size),
        })  # fmt: skip
        parquet.write_table(table, folder / f"part-{i}.parquet")
    return str(folder)


@contextmanager
def session(folder: Path) -> Iterator[Any]:
    """Spark on two cores of this machine, with the settings of the documentation."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.memory": "4g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = SparkSession.builder.master("local[2]").appName("benchmark").config(map=settings).getOrCreate()
    try:
        yield made
    finally:
        made.stop()


def raw_jobs(frame: Any) -> list[Job]:
    """The same numbers without privacy; and with what bounding takes if Spark's own functions do it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def grouped(some: Any, *more: Any) -> None:
        some.groupBy("ward").agg(f.count("*").alias("n"), f.sum("age").alias("s"), *more).toArrow()

    def windows() -> None:
        order = f.xxhash64("who", "ward", "age", "code")
        rows = Window.partitionBy("who", "ward").orderBy(order)
        kept = frame.withColumn("row", f.row_number().over(rows)).where("row <= 2")
        groups = Window.partitionBy("who").orderBy(f.xxhash64("who", "ward"))
        grouped(kept.withColumn("place", f.dense_rank().over(groups)).where("place <= 3"))

    return [
        Job(RAW, lambda: grouped(frame)),
        Job(DISTINCT, lambda: grouped(frame, f.countDistinct("who"))),
        Job(WINDOWS, windows),
        Job(BY_KEY, lambda: frame.groupBy("code").agg(f.count("*").alias("n")).where("n >= 12").toArrow()),
    ]


def our_jobs(made: Any, path: str, scratch: Path) -> list[Job]:
    """Questions about the same files: users as units, rows as units, and keys that are not declared.

    Each first question has a curator of its own, for which nothing is held; the one after it has the same bounds.
    """

    def opened(rules: dict[str, Any]) -> Any:
        return nz.open(
            made, tables={"visits": path}, scratch=scratch, budget=BUDGET, policy={"tables": {"visits": rules}}
        )

    rows, curators = opened({"columns": COLUMNS}), []

    def first() -> None:
        curators[:] = [opened(USERS)]
        curators[0].sql(TEXT, spend=next(SPENDS))

    return [
        Job(FIRST, first),
        Job(AGAIN, lambda: curators[0].sql(TEXT, spend=next(SPENDS))),
        Job(ROWS, lambda: rows.sql(TEXT, spend=next(SPENDS))),
        Job(UNKNOWN, lambda: rows.sql(MANY, spend=nz.Approx(next(SPENDS), "1e-9"))),
    ]


def measured(bench: Bench, made: Any, folder: Path, rows: int) -> tuple[Table, list[Check], float]:
    """All questions about one size, and CPU nanoseconds of the first question for a row."""
    path = written(folder / str(rows), rows)
    (folder / "scratch").mkdir(exist_ok=True)
    jobs = [*raw_jobs(made.read.parquet(path)), *our_jobs(made, path, folder / "scratch")]
    jobs = [job for job in jobs if rows < LARGE or job.name in (RAW, FIRST)]
    ns = bench.measure(f"{rows:,} rows", jobs, rounds=bench.pick(5, 2), clock=seconds_of)
    lines, checks = [], []
    for (ours, theirs), target in TARGETS.items():
        if ours not in ns or theirs not in ns:
            continue
        goal = target if rows == SIZE else None
        check = Check(f"{rows:,} rows; {ours} / {theirs}", ns[ours] / ns[theirs], at_most=goal)
        lines.append([ours, theirs, duration(ns[theirs]), duration(ns[ours]), *check.cells])
        checks.append(check)
    header = ["question", "against", "Spark", OURS, "ratio", "target", ""]
    return Table(f"{rows:,} rows in Spark, CPU of the whole process tree", header, lines), checks, ns[FIRST] / rows


def run(bench: Bench) -> Section:
    """Start Spark and ask, at sizes up to fifty times apart."""
    folder = Path(tempfile.mkdtemp(prefix="noisette-bench-"))
    try:
        with session(folder) as made:
            sizes = [10**5] if bench.quick else [10**6, SIZE, LARGE]
            found = [measured(bench, made, folder, rows) for rows in sizes]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    checks = [check for _, checks, _ in found for check in checks]
    if len(found) > 1:
        checks.append(Check(f"CPU for a row, {LARGE:,} / {SIZE:,} rows", found[2][2] / found[1][2], at_most=1.15))
    return Section([table for table, _, _ in found], checks)
