"""Running sums: how many counters move on in a second, and what a year of days by a hundred regions costs."""

import numpy as np

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration
from noisette.privacy import Approx
from noisette.releases.streams.buffered import BufferedCounter

DAYS, REGIONS = 365, 100


def run(bench: Bench) -> Section:
    """Steps of many counters at two sizes a decade apart, beside NumPy's normal noise and a sum; and a whole year."""
    draw, rows, checks = np.random.default_rng(1), [], []
    for many in (bench.pick(1_000, 100), bench.pick(10_000, 1_000)):
        running = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=1 << 20, many=many, buffers=4).begin(many)
        came = draw.integers(0, 9, many)
        jobs = [
            Job(OURS, lambda running=running, came=came: running.step(came), many),  # type: ignore[misc]
            Job(NUMPY, lambda came=came: came + draw.normal(0, 1, came.size), many),  # type: ignore[misc]
        ]
        ns = bench.measure(f"{many:,} counters", jobs, rounds=bench.pick(15, 5))
        goal = 1e6 if many >= 10_000 else None
        check = Check(f"{many:,} counters, updates in a second", 1e9 / ns[OURS], at_least=goal, unit="")
        checks.append(check)
        rows.append([f"{many:,} counters", duration(ns[OURS]), duration(ns[NUMPY]), *check.cells])

    def year() -> None:
        running = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=DAYS, many=REGIONS).begin(REGIONS)
        for _ in range(DAYS):
            running.step(np.ones(REGIONS, np.int64))

    ns = bench.measure("a year of days", [Job(OURS, year, 1)], rounds=bench.pick(3, 1))
    whole = Check(f"{DAYS} days by {REGIONS} regions, seconds", ns[OURS] / 1e9, at_most=1.0, unit=" s")
    rows.append([f"{DAYS} days by {REGIONS} regions", duration(ns[OURS]), "", *whole.cells])
    header = ["a step of a counter", OURS, NUMPY, "figure", "target", ""]
    return Section([Table("Running sums with buffers", header, rows)], [*checks, whole])
