"""Memory of the driver with unknown keys that stay on the executors: it must not grow with the number of keys.

Each size runs in a process of its own, on a cluster of this machine whose executors are processes of their own. Most
keys have one row and are not released; as many keys are released of a few keys as of many.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import noisette as nz
from benchmarks.harness import Bench, Check, Section, Table

__all__ = ["run"]

ROOT = Path(__file__).parents[1]
FREQUENT, THEIR_ROWS = 50, 2000
SPEND = nz.Approx(1, "1e-10")  # a key with one row is released with a chance of 1e-10
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
}


def written(folder: Path, keys: int) -> str:
    """A row for each key, and some rows more of a few keys."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    folder.mkdir()
    codes = np.concatenate([np.arange(keys), np.repeat(np.arange(FREQUENT), THEIR_ROWS)])
    np.random.default_rng(keys).shuffle(codes)
    for i, part in enumerate(np.array_split(codes, 8)):
        parquet.write_table(pyarrow.table({"code": part}), folder / f"part-{i}.parquet")
    return str(folder)


def measured(keys: int) -> dict[str, Any]:
    """In a new process: how many keys are released, peak memory of that process, and live heap of its Java."""
    folder = Path(tempfile.mkdtemp(prefix="noisette-bench-"))
    (folder / "scratch").mkdir()
    written(folder / "rows", keys)
    path = os.pathsep.join([str(ROOT), *sys.path])
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "benchmarks.spark_memory", str(folder)],
            capture_output=True, text=True, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found | {"keys": keys}


def main(folder: Path) -> None:
    """Ask once about the rows in a folder, and print what it took."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {**SETTINGS, "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = SparkSession.builder.master("local-cluster[2,1,2048]").config(map=settings).getOrCreate()
        data = nz.open(
            made, tables={"rows": str(folder / "rows")}, scratch=folder / "scratch", budget="9,0.1",
            policy={"tables": {"rows": {}}},
        )  # fmt: skip
        released = len(data.sql("SELECT code, count(*) AS n FROM rows GROUP BY code", spend=SPEND))
    peak = (
        int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    )  # rusage has the parent's
    java: Any = made.sparkContext._jvm
    java.java.lang.System.gc()
    heap = java.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    made.stop()
    print(json.dumps({"released": released, "python": peak, "heap": heap}))


def run(bench: Bench) -> Section:
    """Few keys, then many."""
    sizes = bench.pick(10**5, 10**4), bench.pick(10**7, 10**5)
    found = []
    for keys in sizes:
        bench.say(f"{keys:,} keys")
        found.append(measured(keys))
    few, many = found
    lines = [
        [f"{one['keys']:,}", f"{one['released']}", f"{one['python'] / 2**20:.0f} MiB", f"{one['heap'] / 2**20:.0f} MiB"]
        for one in found
    ]
    goal = None if bench.quick else 1.1
    checks = [
        Check(f"driver, {what}: {sizes[1]:,} keys / {sizes[0]:,} keys", many[name] / few[name], at_most=goal)
        for name, what in (("python", "peak memory of Python"), ("heap", "live heap of Java"))
    ]
    lines.append(["ratio", "", *(check.text for check in checks)])
    return Section([Table("Driver with unknown keys", ["keys", "released", "Python", "Java"], lines)], checks)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
