"""Linear releases and the adaptive tree against NumPy's float noise on as many numbers, and what their answers cost."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration, times
from noisette.releases.adaptive import AdaptiveTree
from noisette.releases.adaptive_bars import AdaptiveFit
from noisette.releases.chains import best_chain, typical
from noisette.releases.linear import Linear
from noisette.releases.strategies.haar import Haar
from noisette.releases.tree import Tree

PLAIN, ADAPTIVE = 2.0, 4.0  # × NumPy
SMALL_MS, RANGES_MS = 2.0, 50.0
SMALL, LARGE, SMALLER = 4096, 1 << 20, 1 << 17
ASKED = 10_000


def counts(cells: int, *, empty: float) -> Any:
    """Counts of cells, most of them in runs that are empty."""
    draw = np.random.default_rng(7)
    runs = draw.random(-(-cells // 64)) >= empty
    return draw.geometric(0.01, cells) * np.repeat(runs, 64)[:cells]


def releases(cells: int) -> dict[str, Linear]:
    """The plain strategies for ranges."""
    chain = Tree(cells, best_chain(typical(cells)).sizes)
    strategies = {"identity": Tree(cells), "tree, best chain": chain, "wavelet": Haar(cells)}
    return {name: Linear.calibrated(1, strategy) for name, strategy in strategies.items()}


def in_floats(x: Any, draws: int) -> Callable[[], Any]:
    """As many draws of NumPy, and one pass over the counts."""
    draw = np.random.default_rng()

    def run() -> Any:
        noise = draw.laplace(size=draws)
        return np.add(x, noise[: len(x)])

    return run


def repeated(name: str, release: Callable[[], Any], cells: int, *, least: int = 20 * SMALL) -> Job:
    """Release again and again, until at least that many cells are released."""
    often = max(1, least // cells)
    return Job(name, lambda: [release() for _ in range(often)], often)


def least(bench: Bench, what: str, name: str) -> float:
    """Milliseconds of the shortest round: a limit in time is no ratio, and a busy machine only lengthens rounds."""
    known = [one for one in bench.measured if (one["case"], one["job"]) == (what, name)]
    return float(min(known[-1]["rounds"])) / 1e6


def plain(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """Identity, tree and wavelet on many cells."""
    cells = bench.pick(LARGE, SMALLER)
    x, rows, checks = counts(cells, empty=0.5), [], []
    for name, made in releases(cells).items():
        draws = sum(len(level) for level in made.strategy.measure(x))
        jobs = [Job(OURS, partial(made, x)), Job(NUMPY, in_floats(x, draws))]
        ns = bench.measure(f"{name}, {cells:,} cells", jobs, rounds=bench.pick(15, 5))
        check = Check(f"{name}, {cells:,} cells, {OURS} / {NUMPY}", ns[OURS] / ns[NUMPY], at_most=PLAIN)
        checks.append(check)
        rows.append([f"{name}, {cells:,} cells", duration(ns[OURS]), duration(ns[NUMPY]), *check.cells])
    return rows, checks


def adaptive(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """The adaptive tree, where most cells are empty and where none is."""
    rows, checks = [], []
    for cells in (SMALL, bench.pick(LARGE, SMALLER)):
        made = AdaptiveTree.calibrated(1, cells=cells)
        for kind, empty in (("half empty", 0.5), ("dense", 0.0)):
            x, what = counts(cells, empty=empty), f"adaptive tree, {cells:,} cells, {kind}"
            jobs = [repeated(OURS, partial(made, x), cells), repeated(NUMPY, in_floats(x, cells), cells)]
            ns = bench.measure(what, jobs, rounds=bench.pick(15, 5))
            ratio = Check(f"{what}, {OURS} / {NUMPY}", ns[OURS] / ns[NUMPY], at_most=ADAPTIVE)
            time = Check(what, least(bench, what, OURS), at_most=SMALL_MS, unit=" ms")
            checks.append(time if cells == SMALL else ratio)
            rows.append([what, duration(ns[OURS]), duration(ns[NUMPY]), *checks[-1].cells])
    return rows, checks


def answers(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """Ranges with error bars from a release: the first time, and from then on."""
    cells, draw, rows, checks = SMALL, np.random.default_rng(8), [], []
    low, high = np.sort(draw.integers(0, cells, (2, ASKED)), axis=0)
    x, made = counts(cells, empty=0.5), AdaptiveTree.calibrated(1, cells=cells)
    released, linear = made.measure(x), releases(cells)["tree, best chain"](x)
    fit = AdaptiveFit.of(made, released)
    jobs = {
        "adaptive tree, usual bars, first time": lambda: both(AdaptiveFit.of(made, released), low, high),
        "adaptive tree, usual bars": lambda: both(fit, low, high),
        "adaptive tree, guaranteed bars": lambda: (fit.ranges(low, high), fit.guaranteed(low, high, 0.95)),
        "tree, best chain": lambda: both(linear, low, high),
    }
    ns = bench.measure("ranges", [Job(name, run) for name, run in jobs.items()], rounds=bench.pick(15, 5))
    for name in ns:
        cost = least(bench, "ranges", name)
        checks.append(Check(f"{ASKED:,} ranges with bars, {name}", cost, at_most=RANGES_MS, unit=" ms"))
        rows.append([name, *checks[-1].cells])
    return rows, checks


def both(fit: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Ranges, and their error bars."""
    return fit.ranges(low, high), fit.bars(low, high, 0.95)


def growth(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """The cost of a cell with eight times as many of them."""
    sizes = [bench.pick(SMALLER, SMALLER >> 3), bench.pick(LARGE, SMALLER)]
    rows, checks = [], []
    made: dict[str, list[Any]] = {name: [releases(n)[name] for n in sizes] for name in releases(sizes[0])}
    made["adaptive tree"] = [AdaptiveTree.calibrated(1, cells=n) for n in sizes]
    data = [counts(n, empty=0.5) for n in sizes]
    for name, pair in made.items():
        jobs = [
            repeated(f"{n}", partial(one, x), n, least=sizes[1]) for n, one, x in zip(sizes, pair, data, strict=True)
        ]
        ns = bench.measure(f"growth, {name}", jobs, rounds=bench.pick(9, 3))
        costs = [ns[f"{n}"] / n for n in sizes]
        checks.append(Check(f"{name}, cost of a cell, {sizes[1]:,} / {sizes[0]:,} cells", costs[1] / costs[0]))
        rows.append([name, *map(duration, costs), times(costs[1] / costs[0])])
    return rows, checks


def run(bench: Bench) -> Section:
    """Releases, answers, growth."""
    one, two, three, four = plain(bench), adaptive(bench), answers(bench), growth(bench)
    header = ["a release", OURS, NUMPY, "cost", "target", ""]
    note = "What has a limit in ms is the least of the rounds."
    sizes = [bench.pick(SMALLER, SMALLER >> 3), bench.pick(LARGE, SMALLER)]
    tables = [
        Table("Linear releases against NumPy's laplace and one pass over the counts", header, one[0] + two[0], note),
        Table(f"{ASKED:,} ranges of {SMALL:,} cells with error bars", ["from", "time", "target", ""], three[0]),
        Table("Growth: flat is 1 ×", ["a cell", *(f"of {n:,}" for n in sizes), "last / first"], four[0]),
    ]
    return Section(tables, one[1] + two[1] + three[1] + four[1])
