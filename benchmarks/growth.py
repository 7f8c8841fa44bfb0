"""A decade apart: the cost of a draw should not depend on how many are drawn."""

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration, times
from benchmarks.noise import Case, gaussian, laplace
from benchmarks.peers import Draw


def sizes(bench: Bench) -> list[int]:
    """A hundred thousand, a million, ten million; ten times fewer in a quick run."""
    return [bench.pick(10**k, 10 ** (k - 1)) for k in (5, 6, 7)]


def repeated(name: str, draw: Draw, size: int, least: int) -> Job:
    """Draw an array again and again until at least that number of draws is made."""
    calls = max(1, least // size)

    def run() -> None:
        for _ in range(calls):
            draw(size)

    return Job(name, run, calls * size)


def jobs(case: Case, counts: list[int]) -> list[Job]:
    """Every size of one law, and NumPy's for comparison."""
    drawers = {OURS: case.ours, NUMPY: case.numpy}
    return [repeated(f"{who} {n}", draw, n, counts[1]) for who, draw in drawers.items() for n in counts]


def run(bench: Bench) -> Section:
    """Measure each law at three sizes."""
    counts = sizes(bench)
    rows, checks = [], []
    for case in (laplace(10, None), laplace(1 << 40, None), gaussian(1000, None)):
        ns = bench.measure(case.what, jobs(case, counts), rounds=bench.pick(5, 3))
        for who in (OURS, NUMPY):
            costs = [ns[f"{who} {n}"] for n in counts]
            rows.append([f"{case.what}, {who}", *map(duration, costs), times(costs[-1] / costs[0])])
            checks.append(Check(f"{case.what}, {who}, cost of a draw, largest / smallest", costs[-1] / costs[0]))
    header = ["a draw", *(f"of {n:,}" for n in counts), "last / first"]
    return Section([Table("Growth: flat is 1 ×", header, rows)], checks)
