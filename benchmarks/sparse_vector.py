"""The sparse vector technique on a million queries at once, side by side with the same loop in NumPy's floats."""

from collections.abc import Callable

import numpy as np

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration
from noisette.mechanisms.sparse_vector.sparse import Sparse
from noisette.mechanisms.sparse_vector.sparse_vector import SparseVector
from noisette.privacy import Pure

POSITIVES = 10
FAR = 10**6  # below the threshold, so that all queries are looked at

Told = tuple[object, ...]


def in_floats(threshold: float, scale: float, noise: Callable[[float, int], object]) -> Callable[[object], Told]:
    """The loop with float noise of NumPy: what is not to be released."""

    def run(queries: object) -> Told:
        q = np.asarray(queries)
        gaps = q + np.asarray(noise(scale, q.size)) - float(np.asarray(noise(threshold, 1))[0])
        told: list[object] = [None] * q.size
        for i in np.flatnonzero(gaps >= 0)[:POSITIVES]:
            told[i] = gaps[i]
        return tuple(told)

    return run


def run(bench: Bench) -> Section:
    """Measure both mechanisms; the ratio to NumPy is what exactness costs."""
    size, draw = bench.pick(10**6, 10**5), np.random.default_rng()
    queries = np.full(size, -FAR)
    one, two = SparseVector.calibrated(Pure(1), positives=POSITIVES), Sparse.calibrated(Pure(1), positives=POSITIVES)
    cases = {
        "SparseVector, one-sided": (one, in_floats(float(one.threshold_scale), float(one.scale), draw.exponential)),
        "Sparse, two-sided": (
            two,
            in_floats(float(two.scale), float(2 * two.scale), lambda b, n: draw.laplace(0, b, n)),
        ),
    }
    rows, checks = [], []
    for name, (ours, floats) in cases.items():
        jobs = [
            Job(OURS, lambda ours=ours: ours(queries), size),
            Job(NUMPY, lambda floats=floats: floats(queries), size),
        ]
        ns = bench.measure(name, jobs, rounds=bench.pick(15, 5))
        check = Check(f"{name}, {size:,} queries, {OURS} / {NUMPY}", ns[OURS] / ns[NUMPY])
        checks.append(check)
        rows.append([name, duration(ns[OURS]), duration(ns[NUMPY]), *check.cells])
    header = ["a query", OURS, NUMPY, "ratio", "target", ""]
    return Section([Table(f"Sparse vector: {size:,} queries at once", header, rows)], checks)
