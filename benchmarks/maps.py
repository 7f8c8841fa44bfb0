"""Maps: what a release costs, thousands of rectangles with error bars, and a question from points to its answer."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet

import noisette as nz
from benchmarks.asking import RAW, SPENDS, sql
from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration
from benchmarks.linear import ASKED, RANGES_MS, in_floats, least
from noisette.releases.maps.adaptive import AdaptiveMap

SMALL, LARGE, SMALLER = 256, 4096, 1024
SMALL_MS, LARGE_MS = 50.0, 10_000.0
WEST, SOUTH, BINNING = 8, 47, 2.0  # a map of one degree, and how much longer it may take than its binning


def places(side: int) -> Any:
    """Counts of the cells of a square map: towns of different sizes, and much land without anybody."""
    draw = np.random.default_rng(9)
    towns, which = draw.random((40, 2)), draw.integers(0, 40, 1_000_000)
    points = towns[which] + draw.normal(size=(len(which), 2)) * np.geomspace(0.002, 0.1, 40)[which, None]
    return np.histogram2d(*points.T, bins=side, range=[[0, 1], [0, 1]])[0].astype(np.int64)


def released(made: AdaptiveMap, x: Any) -> Any:
    """Measure and read a map."""
    return made.read(made.measure(x)).x


def releases(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """The adaptive map on a small and on a large map."""
    rows, checks = [], []
    for side, most in ((SMALL, SMALL_MS), (bench.pick(LARGE, SMALLER), LARGE_MS)):
        x, made = places(side), AdaptiveMap.calibrated(1, shape=(side, side))
        what = f"adaptive map, {side:,} × {side:,} cells"
        jobs = [Job(OURS, partial(released, made, x)), Job(NUMPY, in_floats(x.ravel(), x.size))]
        ns = bench.measure(what, jobs, rounds=bench.pick(7, 3))
        checks.append(Check(what, least(bench, what, OURS), at_most=most, unit=" ms"))
        rows.append([what, duration(ns[OURS]), duration(ns[NUMPY]), *checks[-1].cells])
    return rows, checks


def answers(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """Rectangles from a release, by themselves and with error bars."""
    made = AdaptiveMap.calibrated(1, shape=(SMALL, SMALL))
    fit = made.read(made.measure(places(SMALL)))
    low, high = np.sort(np.random.default_rng(8).random((2, ASKED, 2)) * SMALL, axis=0)
    jobs = {
        "counts": lambda: fit.counts(low, high),
        "with usual bars": lambda: fit.bars(low, high, 0.95),
        "with guaranteed bars": lambda: fit.guaranteed(low, high, 0.95),
    }
    rows, checks = [], []
    for name in bench.measure("rectangles", [Job(*job) for job in jobs.items()], rounds=bench.pick(15, 5)):
        cost = least(bench, "rectangles", name)
        checks.append(Check(f"{ASKED:,} rectangles, {name}", cost, at_most=RANGES_MS, unit=" ms"))
        rows.append([name, *checks[-1].cells])
    return rows, checks


def written(folder: Path, points: int) -> Path:
    """Points of a city and its surroundings."""
    draw, path = np.random.default_rng(1), folder / "points.parquet"
    dense = draw.random(points) < 0.6
    columns = {
        name: np.where(dense, draw.normal(low + 0.5, 0.07, points), draw.uniform(low, low + 1, points))
        for name, low in (("lon", WEST), ("lat", SOUTH))
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def binning(path: Path) -> str:
    """What the engine does for a map, in SQL written by hand."""
    lon, lat = (
        f"least(floor((least(greatest({name}, {low}), {low + 1}) - {low}) * {SMALL}), {SMALL - 1})"
        for name, low in (("lon", WEST), ("lat", SOUTH))
    )
    return f"SELECT {lon} AS x, {lat} AS y, count(*) AS n FROM '{path}' GROUP BY 1, 2"


def questions(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """A map of points in a file, against its binning in DuckDB alone; and rectangles in degrees."""
    points = bench.pick(10**7, 10**6)
    columns = {"lon": {"bounds": [WEST, WEST + 1]}, "lat": {"bounds": [SOUTH, SOUTH + 1]}}
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), points)
        data = nz.open(path, policy={"tables": {"points": {"columns": columns}}}, budget=10**6)
        asked = nz.Map("lon", "lat", cells=SMALL)
        jobs = [Job(RAW, sql(duckdb.connect(), binning(path))), Job(OURS, lambda: data.ask(asked, spend=next(SPENDS)))]
        what = f"map of {points:,} points"
        ns = bench.measure(what, jobs, rounds=bench.pick(5, 3))
        value = data.ask(asked, spend=next(SPENDS)).value
    checks = [Check(f"{what}, {OURS} / {RAW}", ns[OURS] / ns[RAW], at_most=BINNING)]
    rows = [[what, duration(ns[RAW]), duration(ns[OURS]), *checks[0].cells]]
    ends = np.sort(np.random.default_rng(2).random((ASKED, 2, 2)), axis=1) + np.array([WEST, SOUTH])
    bench.measure("value.counts", [Job(OURS, lambda: value.counts(ends.reshape(ASKED, 4)))], rounds=bench.pick(15, 5))
    cost = least(bench, "value.counts", OURS)
    checks.append(Check(f"{ASKED:,} rectangles, value.counts", cost, at_most=RANGES_MS, unit=" ms"))
    rows.append([f"{ASKED:,} rectangles in degrees, with bars", "", "", *checks[1].cells])
    return rows, checks


def run(bench: Bench) -> Section:
    """Releases, answers and questions."""
    one, two, three = releases(bench), answers(bench), questions(bench)
    note = "What has a limit in ms is the least of the rounds."
    tables = [
        Table("Maps", ["a release", OURS, NUMPY, "cost", "target", ""], one[0], note),
        Table(f"{ASKED:,} rectangles of {SMALL} × {SMALL} cells", ["what", "time", "target", ""], two[0]),
        Table("A map from points to its answer", ["", RAW, OURS, "ratio or time", "target", ""], three[0]),
    ]
    return Section(tables, one[1] + two[1] + three[1])
