"""Counts of 10^15 cells, few of them filled, against NumPy's Laplace noise on the filled ones alone."""

import numpy as np

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration
from noisette.releases.sparse.counts import SparseCounts

CELLS, AT_MOST = 10**15, 10.0


def run(bench: Bench) -> Section:
    """Measure thresholds and samples, for numbers of filled cells a decade apart."""
    draw, rules = np.random.default_rng(1), {"threshold": {"size": 100}, "sample": {"size": 100, "sample": 10_000}}
    rows, checks = [], []
    for filled in (bench.pick(10**5, 10**4), bench.pick(10**6, 10**5)):
        codes = draw.permutation(np.unique(draw.integers(0, CELLS, filled)))
        counts = draw.geometric(0.05, codes.size)
        for name, rule in rules.items():
            made = SparseCounts.calibrated(1, CELLS, **rule)  # type: ignore[arg-type]
            jobs = [
                Job(OURS, lambda made=made, codes=codes, counts=counts: made(codes, counts), filled),  # type: ignore[misc]
                Job(NUMPY, lambda counts=counts: counts + draw.laplace(0, 1, counts.size), filled),  # type: ignore[misc]
            ]
            ns = bench.measure(f"{name}, {filled:,}", jobs, rounds=bench.pick(9, 3))
            check = Check(f"{name}, {filled:,} filled cells, {OURS} / {NUMPY}", ns[OURS] / ns[NUMPY], at_most=AT_MOST)
            checks.append(check)
            rows.append([f"{name}, {filled:,} filled", duration(ns[OURS]), duration(ns[NUMPY]), *check.cells])
    header = ["a filled cell", OURS, NUMPY, "ratio", "target", ""]
    return Section([Table(f"Sparse tables: {CELLS:.0e} cells", header, rows)], checks)
