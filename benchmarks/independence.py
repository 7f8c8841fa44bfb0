"""Does the time tell the noise? Whoever can time an answer must not learn its noise from that.

Two looks: over many small batches, the time of a batch is correlated with its mean |noise|; over many single
calls, the mean |noise| of the slowest hundredth is compared with that of all, and ranks of time and |noise| are
correlated. Time is wall time.
"""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.harness import Bench, Section, Table, no_collections, times
from noisette.exact import samplers, vector
from noisette.mechanisms import Geometric

Draw = Callable[[], Any]
Floats = NDArray[np.float64]

ARRAY, CALLS = 256, 64
SLOWEST = 0.01
STANDARD_ERRORS = 4


def singles() -> dict[str, Draw]:
    """One draw per call; the specification, whose loops run longer for larger noise, is there to fail."""
    rng = np.random.default_rng()
    ten, tenth, thousandth = Fraction(10), Geometric(10), Geometric(1000)
    return {
        "noisette Laplace 10": lambda: vector.discrete_laplace(10),
        "noisette Laplace 2^40": lambda: vector.discrete_laplace(1 << 40),
        "noisette Gaussian 1000": lambda: vector.discrete_gaussian(10**6),
        "noisette Geometric(10)": lambda: tenth(0),
        "noisette Geometric(1000)": lambda: thousandth(0),
        "noisette specification, Laplace 10": lambda: samplers.discrete_laplace(ten),
        "NumPy laplace 10": lambda: rng.laplace(0.0, 10.0),
        "NumPy normal 1000": lambda: rng.normal(0.0, 1000.0),
    }


def batches() -> dict[str, Draw]:
    """Arrays, and single calls by the dozen."""
    rng = np.random.default_rng()
    arrays: dict[str, Draw] = {
        "noisette Laplace 10": lambda: vector.discrete_laplace(10, ARRAY),
        "noisette Laplace 2^40": lambda: vector.discrete_laplace(1 << 40, ARRAY),
        "noisette Gaussian 1000": lambda: vector.discrete_gaussian(10**6, ARRAY),
        "NumPy laplace 10": lambda: rng.laplace(0.0, 10.0, ARRAY),
        "NumPy normal 1000": lambda: rng.normal(0.0, 1000.0, ARRAY),
    }
    by_call = {f"{name}, call by call": _repeated(draw) for name, draw in singles().items() if "NumPy" not in name}
    return arrays | by_call


def _repeated(draw: Draw) -> Draw:
    return lambda: [draw() for _ in range(CALLS)]


def run(bench: Bench) -> Section:
    """Time batches and single calls in turn."""
    return Section([correlations(bench, bench.pick(3000, 300)), slowest(bench, bench.pick(20_000, 2000))])


def timed(bench: Bench, draws: dict[str, Draw], count: int) -> dict[str, tuple[Floats, Floats]]:
    """Draw in turn; return for each name the nanoseconds and the mean |noise| of its calls."""
    elapsed, size = {name: np.empty(count) for name in draws}, {name: np.empty(count) for name in draws}
    for draw in list(draws.values()) * 300:  # warm: tables are built once enough was drawn
        draw()
    with no_collections():
        for i in range(count):
            if i % 100 == 0:
                bench.say("timing", detail=f"round {i}/{count}")
            for name, draw in draws.items():
                begun = time.perf_counter_ns()
                noise = draw()
                elapsed[name][i] = time.perf_counter_ns() - begun
                size[name][i] = np.abs(noise).mean()
    return {name: (elapsed[name], size[name]) for name in draws}


def correlations(bench: Bench, count: int) -> Table:
    """The first look: Pearson and Spearman over batches."""
    bench.say(f"{count} batches")
    band = STANDARD_ERRORS / math.sqrt(count)
    rows = []
    for name, (elapsed, size) in timed(bench, batches(), count).items():
        pearson = float(np.corrcoef(elapsed, size)[0, 1])
        spearman = float(np.corrcoef(rankdata(elapsed), rankdata(size))[0, 1])
        _note(bench, name, count, pearson=pearson, spearman=spearman, band=band)
        told = max(abs(pearson), abs(spearman)) > band
        rows.append([name, _median(elapsed), f"{pearson:+.3f}", f"{spearman:+.3f}", _verdict(told)])
    note = f"{count} batches of {ARRAY} draws (call by call: {CALLS}); by chance within ± {band:.2f}."
    header = ["a batch", "median", "Pearson", "Spearman", ""]
    return Table("Time of a batch against its mean |noise|", header, rows, note)


def slowest(bench: Bench, count: int) -> Table:
    """The second look: is the noise of slow calls larger?"""
    bench.say(f"{count} single calls")
    rows = []
    for name, (elapsed, size) in timed(bench, singles(), count).items():
        slow = elapsed >= np.quantile(elapsed, 1 - SLOWEST)
        ratio = float(size[slow].mean() / size.mean())
        error = float(size.std() / size.mean() / math.sqrt(slow.sum()))
        spearman = float(np.corrcoef(rankdata(elapsed), rankdata(size))[0, 1])
        _note(bench, name, count, slowest_to_all=ratio, standard_error=error, spearman=spearman)
        limit = f"1 ± {STANDARD_ERRORS * error:.2f}"
        told = abs(ratio - 1) > STANDARD_ERRORS * error or abs(spearman) > STANDARD_ERRORS / math.sqrt(count)
        rows.append([name, _median(elapsed), times(ratio), limit, f"{spearman:+.3f}", _verdict(told)])
    header = ["a call", "median", "slowest 1 % / all", "by chance", "Spearman", ""]
    return Table("Mean |noise| of the slowest calls", header, rows, f"{count} calls of one draw.")


def _note(bench: Bench, name: str, count: int, **found: float) -> None:
    bench.measured.append({"section": bench.section, "case": name, "rounds": count} | found)


def _median(elapsed: Floats) -> str:
    return f"{np.median(elapsed) / 1000:.1f} µs"


def _verdict(told: bool) -> str:
    return "TOLD BY TIME" if told else "as by chance"
