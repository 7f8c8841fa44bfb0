"""One of a million candidates, exactly, against the largest of a million scores with NumPy's Gumbel noise."""

from typing import Any

import numpy as np

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration
from noisette.mechanisms import Exponential, GumbelTop, NoisyMax, NoisyMaxGap, PermuteAndFlip, SparseExponential

AT_MOST = 3.0
SCALE = 10


def run(bench: Bench) -> Section:
    """Measure every mechanism that chooses by scores."""
    size, draw = bench.pick(10**6, 10**5), np.random.default_rng(1)
    scores = draw.integers(0, 1000, size)
    listed = np.sort(draw.choice(10 * size, size, replace=False)), scores
    choices: dict[str, tuple[Any, Any]] = {
        "permute and flip": (PermuteAndFlip(SCALE, candidates=size), scores),
        "exponential": (Exponential(SCALE, candidates=size), scores),
        "exponential with a measure": (Exponential(SCALE, candidates=size, measure=(1 + scores % 7).tolist()), scores),
        "noisy max": (NoisyMax(SCALE, candidates=size), scores),
        "noisy max with its gap": (NoisyMaxGap(SCALE, candidates=size), scores),
        "the top 10": (GumbelTop(SCALE, candidates=size, k=10), scores),
        "exponential, 2^64 candidates": (SparseExponential(SCALE, candidates=2**64), listed),
    }
    rows, checks = [], []
    for name, (mechanism, given) in choices.items():
        mechanism(given)  # what it computes once
        jobs = [
            Job(OURS, lambda mechanism=mechanism, given=given: mechanism(given), size),  # type: ignore[misc]
            Job(NUMPY, lambda: np.argmax(scores / SCALE + draw.gumbel(size=size)), size),
        ]
        ns = bench.measure(name, jobs, rounds=bench.pick(15, 5))
        check = Check(f"{name}, {size:,} scores, {OURS} / {NUMPY}", ns[OURS] / ns[NUMPY], at_most=AT_MOST)
        checks.append(check)
        rows.append([name, duration(ns[OURS]), duration(ns[NUMPY]), *check.cells])
    header = ["a score", OURS, NUMPY, "ratio", "target", ""]
    return Section([Table(f"Choosing by {size:,} scores", header, rows)], checks)
