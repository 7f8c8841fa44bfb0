"""Quantiles: by how many ranks they are off, and what nine deciles of a million values cost.

Values lie on a public grid, as cents and grams do. Everybody gets the same values, bounds and epsilon; what comes from
between two grid points is rounded to the nearer one, which is free. A rank error is the distance of q n from the ranks
of what is released, 0 for a value that has the quantile among its ties. Ours should be at most theirs, up to three
standard errors of the comparison.

diffprivlib's sensitivity is that of records that are replaced, so it is compared with ours for that relation. A library
without a method for many quantiles gets an equal share of epsilon for each of them.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration, times
from noisette.mechanisms.flipped_quantile import FlippedQuantile
from noisette.mechanisms.grid import Grid
from noisette.mechanisms.quantiles import Quantiles
from noisette.privacy import Neighbours

CELLS = 4096
ONE_PASS = 1.0
MEDIAN, DECILES = (Fraction(1, 2),), tuple(Fraction(i, 10) for i in range(1, 10))
REPLACED = "diffprivlib"
TENTH = 0.1

Values = NDArray[np.float64]
Release = Callable[[], Sequence[float]]


@dataclass(frozen=True)
class Case:
    """Values on a grid and what is asked of them."""

    values: Values
    grid: Grid
    at: tuple[Fraction, ...]
    epsilon: float

    @property
    def bounds(self) -> tuple[float, float]:
        return float(self.grid.low), float(self.grid.high)

    @property
    def share(self) -> float:
        return self.epsilon / len(self.at)


# Who takes part


def ours(case: Case, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Release:
    """One histogram pass, then the mechanism for one or for many quantiles."""
    if len(case.at) == 1:
        one = FlippedQuantile(case.epsilon, q=case.at[0], cells=case.grid.cells, groups=1, neighbours=neighbours)
        return lambda: case.grid.values([one(case.grid.count(case.values))])
    worth = Fraction(str(case.epsilon)) / (2 if neighbours is Neighbours.REPLACE else 1)
    many = Quantiles(worth, at=case.at, cells=case.grid.cells)
    return lambda: case.grid.values(many(case.grid.count(case.values)))


def opendp(case: Case) -> Release:
    """`make_private_quantile` with the grid as candidates: permute and flip, its newest and best for pure DP."""
    return lambda: [measure(case.values) for measure in _opendp_measures(case.grid, case.at, case.share)]


@lru_cache(maxsize=8)
def _opendp_measures(grid: Grid, at: tuple[Fraction, ...], epsilon: float) -> list[Any]:
    import opendp.prelude as dp

    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))

    def made(q: Fraction, scale: float, points: list[float]) -> Any:
        spaces = domain, dp.symmetric_distance(), dp.max_divergence()
        return dp.m.make_private_quantile(*spaces, candidates=points, alpha=float(q), scale=scale)

    points = list(grid.values(range(grid.cells)))
    losses = [made(q, 1.0, points[:2]).map(1) for q in at]  # epsilon at scale 1
    return [made(q, loss / epsilon * (1 + 1e-12), points) for q, loss in zip(at, losses, strict=True)]


def diffprivlib(case: Case) -> Release:
    """`tools.quantile`, which shares epsilon itself."""
    from diffprivlib.tools import quantile

    at = [float(q) for q in case.at]
    return lambda: np.ravel(quantile(case.values, at, epsilon=case.epsilon, bounds=case.bounds)).tolist()


def pydp(case: Case) -> Release:
    """`Percentile`: a tree of noisy counts for each quantile."""
    from pydp.algorithms.laplacian import Percentile

    numbers, (low, high) = case.values.tolist(), case.bounds

    def one(q: Fraction) -> float:
        options = {"lower_bound": low, "upper_bound": high, "dtype": "float"}
        return float(Percentile(epsilon=case.share, percentile=float(q), **options).quick_result(numbers))

    return lambda: [one(q) for q in case.at]


PEERS: dict[str, Callable[[Case], Release]] = {"OpenDP": opendp, "diffprivlib": diffprivlib, "PyDP": pydp}


def peers(bench: Bench) -> dict[str, Callable[[Case], Release]]:
    """Those that are installed."""
    return {peer.name: PEERS[peer.name] for peer in bench.peers if peer.name in PEERS}


# By how many ranks


def tables(n: int) -> dict[str, Values]:
    """The distributions, as cells of the grid."""
    rng = np.random.default_rng(6)
    middle, clusters = CELLS / 2, rng.permutation(np.repeat([0.2, 0.8], [n // 2, n - n // 2])) * CELLS
    found = {
        "normal": rng.normal(middle, CELLS / 10, n),
        "log-normal": rng.lognormal(np.log(CELLS / 16), 0.8, n),
        "heavy ties": rng.choice(CELLS, 7)[rng.choice(7, n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])],
        "two clusters": rng.normal(clusters, CELLS / 50, n),
        "constant": np.full(n, CELLS / 3),
    }
    return {name: np.clip(np.rint(values), 0, CELLS - 1).astype(float) for name, values in found.items()}


def rank_error(released: Sequence[float], at: Sequence[Fraction], ordered: Values) -> float:
    """The mean over the quantiles, of values on the grid."""
    cells = np.clip(np.rint(np.asarray(released, float)), 0, CELLS - 1)
    low, high = (np.searchsorted(ordered, cells, side=side) for side in ("left", "right"))
    targets = np.array([float(q * len(ordered)) for q in at])
    return float(np.maximum(np.maximum(low - targets, targets - high), 0).mean())


@dataclass(frozen=True)
class Mean:
    """A mean rank error with its standard error."""

    value: float
    spread: float

    def __str__(self) -> str:
        return f"{self.value:.3g}"

    def over(self, other: "Mean") -> tuple[float, float]:
        """The ratio, less than a tenth of a rank taken for that, and what is within three standard errors of 1."""
        mine, its = max(self.value, TENTH), max(other.value, TENTH)
        return mine / its, 1 + 3 * math.hypot(self.spread / mine, other.spread / its)


def mean_rank_error(bench: Bench, what: str, name: str, release: Release, case: Case, repeats: int) -> Mean | None:
    """Over some repetitions; None for who fails."""
    ordered = np.sort(case.values)
    bench.say(what, detail=name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = [rank_error(release(), case.at, ordered) for _ in range(repeats)]
    except Exception as error:
        bench.failed(what, name, error)
        return None
    mean = Mean(float(np.mean(errors)), float(np.std(errors)) / math.sqrt(repeats))
    record = {"section": bench.section, "case": what, "job": name, "repeats": repeats}
    bench.measured.append(record | {"rank_error": mean.value, "standard_error": mean.spread})
    return mean


def accuracy(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """Every distribution, epsilon and question."""
    grid, distributions = Grid((0, CELLS - 1), cells=CELLS), tables(bench.pick(10_000, 2000))
    rows, checks = [], []
    for (label, at, often), epsilon in product(
        (("median", MEDIAN, bench.pick(300, 40)), ("deciles", DECILES, bench.pick(40, 5))), (1.0, 0.1)
    ):
        for name, values in distributions.items():
            case = Case(values, grid, at, epsilon)
            row, found = compared(bench, f"{label} of {name}, epsilon {epsilon:g}", case, often)
            rows.append(row)
            checks += found
    return rows, checks


def compared(bench: Bench, what: str, case: Case, often: int) -> tuple[list[str], list[Check]]:
    """Ours for both relations beside each peer."""
    bench.say(what)
    own = {
        relation: mean_rank_error(bench, what, f"{OURS}, {relation}", ours(case, relation), case, 3 * often)
        for relation in Neighbours
    }
    cells, checks = [str(own[relation]) for relation in Neighbours], []
    for name, make in peers(bench).items():
        mine = own[Neighbours.REPLACE if name == REPLACED else Neighbours.ADD_REMOVE]
        theirs = mean_rank_error(bench, what, name, make(case), case, often)
        if mine is None or theirs is None:
            cells.append("fails")
            continue
        ratio, most = mine.over(theirs)
        checks.append(Check(f"{what}, rank error / {name}", ratio, at_most=round(most, 2)))
        cells.append(f"{theirs} = {times(ratio)}{'' if checks[-1].passed else ' MISS'}")
    return [what, *cells], checks


# What it costs


def speed(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """Nine deciles of a million normal values, from the values themselves."""
    n = bench.pick(1_000_000, 100_000)
    values = np.random.default_rng(6).normal(size=n)
    case = Case(values, Grid((-5, 5), cells=CELLS), DECILES, 1.0)
    at = [float(q) for q in DECILES]
    jobs = [Job(OURS, ours(case)), Job(NUMPY, partial(np.quantile, values, at))]
    others = [Job(name, make(case)) for name, make in peers(bench).items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ns = bench.measure("nine deciles", jobs, rounds=bench.pick(15, 5))
        ns |= bench.measure("nine deciles, peers", others, rounds=bench.pick(2, 1))
    checks = [Check(f"nine deciles of {n:,} values, cost against NumPy", ns[OURS] / ns[NUMPY], at_most=ONE_PASS)]
    rows = [[name, duration(cost), times(cost / ns[NUMPY])] for name, cost in ns.items()]
    return rows, checks


def run(bench: Bench) -> Section:
    """Errors, then costs."""
    errors, checks = accuracy(bench)
    costs, more = speed(bench)
    header = ["asked", *(f"{OURS}, {relation}" for relation in Neighbours), *peers(bench)]
    tables = [
        Table(
            "Quantiles, mean rank error", header, errors, f"× = ours over theirs; beside {REPLACED}, ours for replace."
        ),
        Table("Nine deciles", ["who", "time", "/ numpy.quantile"], costs),
    ]
    return Section(tables, checks + more)
