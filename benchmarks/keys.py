"""Keys that nobody declared, ten million of them: a private group-by against the engine's own."""

import tempfile
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from pathlib import Path

import duckdb
import numpy as np

import noisette as nz
from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration
from noisette import Approx
from noisette.mechanisms import Threshold

RAW = "DuckDB"
AT_MOST = 1.5
DELTA = "1e-8"
SPENDS = (1 + Fraction(i, 1000) for i in count())  # every one is new: the same question for the same spend is free


def written(folder: Path, keys: int) -> Path:
    """Write twice as many rows as keys: one of each, and as many again that prefer a tenth of them.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = written(Path(folder), 1000)
    ...     duckdb.sql(f"SELECT count(*), count(DISTINCT key) FROM '{path}'").fetchall()
    [(2000, 1000)]
    """
    again = f"hash(i, 'again') % (1 + hash(i, 'most') % {max(1, keys // 10)})"
    key = f"(hash(CASE WHEN i < {keys} THEN i ELSE {again} END) >> 1)::BIGINT AS key"
    path = folder / f"keys{keys}.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {key} FROM range({2 * keys}) t(i)) TO '{path}' (FORMAT parquet)")
    return path


def opened(path: Path) -> Callable[[], object]:
    """A question whose keys are not declared; each row is a unit."""
    policy = {"tables": {"rows": {"columns": {"key": {"type": "integer", "nullable": False}}}}}
    curator = nz.open({"rows": path}, budget=Approx(10**6, "0.1"), policy=policy)
    text = "SELECT key, COUNT(*) AS n FROM rows GROUP BY key"
    return lambda: curator.sql(text, spend=Approx(next(SPENDS), DELTA))


def asked(bench: Bench, path: Path, keys: int) -> tuple[Table, list[Check]]:
    """The group-by with a threshold and noise, and without."""
    connection = duckdb.connect()
    raw = f"SELECT key, COUNT(*) AS n FROM read_parquet('{path}') GROUP BY key"
    jobs = [Job(RAW, lambda: connection.sql(raw).to_arrow_table()), Job(OURS, opened(path))]
    ns = bench.measure(f"{keys:,} unknown keys", jobs, rounds=bench.pick(5, 3))
    check = Check(f"{keys:,} unknown keys, each row a unit, against DuckDB", ns[OURS] / ns[RAW], at_most=AT_MOST)
    row = ["count by key", duration(ns[RAW]), duration(ns[OURS]), *check.cells]
    return Table(f"{keys:,} keys that nobody declared", ["", RAW, OURS, "ratio", "target", ""], [row]), [check]


def thresholds(bench: Bench, path: Path, keys: int) -> tuple[Table, list[Check]]:
    """The noise and the threshold alone, side by side with NumPy's floats: what is not to be released."""
    found = duckdb.connect().sql(f"SELECT COUNT(*) AS n FROM read_parquet('{path}') GROUP BY key").to_arrow_table()
    counts = found.column("n").to_numpy()
    draw, rows, checks = np.random.default_rng(), [], []
    for noise in ("truncated", "geometric", "gaussian"):
        m = Threshold.calibrated(Approx(1, DELTA), noise=noise)
        size, floats = float(m.scale), draw.normal if noise == "gaussian" else draw.laplace

        def in_floats(m: Threshold = m, size: float = size, floats: Callable[..., object] = floats) -> object:
            noisy = counts + np.asarray(floats(0, size, counts.size))
            return np.where(noisy >= m.threshold, noisy, 0)

        jobs = [Job(OURS, lambda m=m: m.release(counts), keys), Job(NUMPY, in_floats, keys)]  # type: ignore[misc]
        ns = bench.measure(f"threshold, {noise}, {keys:,} counts", jobs, rounds=bench.pick(9, 3))
        checks.append(Check(f"threshold with {noise} noise, {OURS} / {NUMPY}", ns[OURS] / ns[NUMPY]))
        rows.append([noise, str(m.threshold), duration(ns[OURS]), duration(ns[NUMPY]), *checks[-1].cells])
    header = ["a count", "threshold", OURS, NUMPY, "ratio", "target", ""]
    return Table(f"Noise and threshold alone: {keys:,} counts", header, rows), checks


def run(bench: Bench) -> Section:
    """Measure the whole question, and the mechanism by itself."""
    keys = bench.pick(10**7, 10**6)
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), keys)
        found = [asked(bench, path, keys), thresholds(bench, path, keys)]
    return Section([table for table, _ in found], [check for _, checks in found for check in checks])
