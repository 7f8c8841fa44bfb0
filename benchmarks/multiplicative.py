"""MWEM with 10 000 queries about 2^16 cells and 50 rounds: seconds of processor time for a whole release."""

from itertools import combinations

import numpy as np

from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, duration
from noisette.releases.multiplicative.candidates import Boxes, Candidates
from noisette.releases.multiplicative.mwem import MWEM

AT_MOST = 10.0  # seconds


def run(bench: Bench) -> Section:
    """Measure ranges, marginals and sparse queries, for two sizes of the domain."""
    rows, checks = [], []
    for bits in (12, bench.pick(16, 14)):
        for name, (candidates, places) in problems(bits).items():
            tables = candidates.tables(places, np.ones(len(places[0]), np.int64))
            made = MWEM.calibrated(1, candidates, rounds=50)
            job = Job(OURS, lambda made=made, tables=tables: made(tables), 1)  # type: ignore[misc]
            ns = bench.measure(f"{name}, 2^{bits}", [job], rounds=bench.pick(3, 1))
            check = Check(f"{name}, 2^{bits} cells, seconds", ns[OURS] / 1e9, at_most=AT_MOST, unit=" s")
            checks.append(check)
            rows.append([f"{name}, 2^{bits} cells", f"{candidates.many:,}", duration(ns[OURS]), *check.cells])
    header = ["50 rounds", "candidates", OURS, "seconds", "target", ""]
    return Section([Table("Multiplicative weights: a whole release", header, rows)], checks)


def problems(bits: int) -> dict[str, tuple[Candidates, list[np.ndarray]]]:
    """Candidates and the cells of 100 000 rows."""
    draw, cells, many = np.random.default_rng(1), 1 << bits, 10_000
    line = [np.clip(draw.normal(cells / 3, cells / 9, 100_000), 0, cells - 1).astype(np.int64)]
    ends = np.sort(draw.integers(0, cells, (many, 2)), axis=1)
    each = np.arange(many)
    some = np.sort(draw.integers(0, cells // 64, (many, 64)) + np.arange(64) * (cells // 64), axis=1).reshape(-1, 1)
    tied = draw.normal(size=100_000)
    columns = [(tied * (i % 4) + draw.normal(size=100_000) > 0.5).astype(np.int64) for i in range(bits)]
    return {
        "ranges": (Candidates((cells,), (Boxes((0,), ends[:, :1], ends[:, 1:], each, each),)), line),
        "sparse queries": (Candidates((cells,), (Boxes((0,), some, some, 64 * each, each),)), line),
        "marginals": (Candidates((2,) * bits, marginals=tuple(combinations(range(bits), 3))), columns),
    }
