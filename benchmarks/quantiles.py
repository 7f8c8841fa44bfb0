"""Quantiles: by how many ranks they are off, and what nine deciles of a million values cost.

Values lie on a public grid, as cents and grams do. Everybody gets the same values, bounds and epsilon; what comes from
between two grid points is rounded to the nearer one, which is free. A rank error is the distance of q n from the ranks
of what is released, 0 for a value that has the quantile among its ties, whoever released it.

Errors are means over many tables of each distribution. Where a mechanism's law is known they are computed, not drawn:
permute and flip on ranks (ours for one quantile), permute and flip on |L - q (n - ties)| (OpenDP's), the exponential
mechanism on the line between the bounds, rounded (diffprivlib's). Draws are checked against these laws. So only tables
are random for medians, the same ones for all. Ours should be at most theirs, up to the resolution that is printed:
three standard errors of the difference on the same tables, at least a thousandth. Less than a twentieth of a rank is
taken for that.

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
from noisette.mechanisms.quantiles.flipped_quantile import FlippedQuantile
from noisette.mechanisms.quantiles.grid import Grid
from noisette.mechanisms.quantiles.quantiles import Quantiles
from noisette.privacy import Neighbours

CELLS = 4096
ONE_PASS = 1.0
MEDIAN, DECILES = (Fraction(1, 2),), tuple(Fraction(i, 10) for i in range(1, 10))
REPLACED = "diffprivlib"
TWENTIETH = 0.05
LEVEL = 0.95
THOUSANDTH = 0.001

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


def tables(n: int, seed: int) -> dict[str, Values]:
    """The distributions, as cells of the grid."""
    rng = np.random.default_rng((6, seed))
    middle, clusters = CELLS / 2, rng.permutation(np.repeat([0.2, 0.8], [n // 2, n - n // 2])) * CELLS
    found = {
        "normal": rng.normal(middle, CELLS / 10, n),
        "log-normal": rng.lognormal(np.log(CELLS / 16), 0.8, n),
        "heavy ties": rng.choice(CELLS, 7)[rng.choice(7, n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])],
        "two clusters": rng.normal(clusters, CELLS / 50, n),
        "constant": np.full(n, CELLS / 3),
    }
    return {name: np.clip(np.rint(values), 0, CELLS - 1).astype(float) for name, values in found.items()}


def cell_errors(case: Case) -> NDArray[np.float64]:
    """The rank error of each cell, for each quantile in a row."""
    counts = np.bincount(case.values.astype(np.int64), minlength=CELLS)
    upto = np.cumsum(counts)
    targets = np.array([[float(q * len(case.values))] for q in case.at])
    return np.asarray(np.maximum(np.maximum(upto - counts - targets, targets - upto), 0))


# Laws: the probability of each cell, for each quantile in a row

Law = Callable[[Case], NDArray[np.float64]]


def flipped(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Permute and flip: p times the integral of what the others' coins leave, by pieces that halve towards 0."""
    values, which, many = np.unique(exponents, return_inverse=True, return_counts=True)
    p = np.exp(values[0] - values)
    near = p > 1e-15
    nodes, weights = _pieces()
    logs = np.log1p(-np.multiply.outer(nodes, p[near]))
    p[near] *= weights @ np.exp((logs @ many[near])[:, None] - logs)
    return np.asarray(p[which])


@lru_cache
def _pieces() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(16)
    ends = np.concatenate([[0], 0.5 ** np.arange(16, -1, -1.0)])
    lengths = np.diff(ends)
    return np.ravel(ends[:-1, None] + lengths[:, None] * (nodes + 1) / 2), np.ravel(lengths[:, None] * weights / 2)


def our_law(case: Case, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> NDArray[np.float64]:
    """That of `FlippedQuantile`, from its own exponents."""
    one = FlippedQuantile(case.epsilon, q=case.at[0], cells=CELLS, groups=1, neighbours=neighbours)
    return flipped(one._exponents(case.grid.count(case.values)))[None]


def opendp_law(case: Case) -> NDArray[np.float64]:
    """Scores |L - q (n - ties)|, which one record moves by max(q, 1 - q)."""
    counts = np.bincount(case.values.astype(np.int64), minlength=CELLS)
    below = np.cumsum(counts) - counts
    scores = [np.abs(below - float(q) * (len(case.values) - counts)) for q in case.at]
    rates = [case.share / (2 * float(max(q, 1 - q))) for q in case.at]
    return np.array([flipped(score * rate) for score, rate in zip(scores, rates, strict=True)])


def diffprivlib_law(case: Case) -> NDArray[np.float64]:
    """Between neighbouring cells there are equally many values below; one half is rounded down, the other up."""
    upto = np.cumsum(np.bincount(case.values.astype(np.int64), minlength=CELLS))[:-1]
    law = np.zeros((len(case.at), CELLS))
    for row, q in zip(law, case.at, strict=True):
        distances = np.abs(upto - float(q * len(case.values)))
        weights = np.exp(case.share / 2 * (distances.min() - distances))
        row[:-1] += weights / weights.sum() / 2
        row[1:] += weights / weights.sum() / 2
    return law


LAWS: dict[str, Law] = {"OpenDP": opendp_law, "diffprivlib": diffprivlib_law}


@dataclass(frozen=True)
class Errors:
    """Mean rank errors, one for each table, and which errors have which chances over all tables."""

    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    chances: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.means.mean())

    @property
    def high(self) -> float:
        """The rank error at the level."""
        order = np.argsort(self.errors)
        reached = np.cumsum(self.chances[order]) >= LEVEL * self.chances.sum() * (1 - 1e-9)
        return float(self.errors[order][int(np.argmax(reached))])

    def __str__(self) -> str:
        return f"{self.mean:.3g} ({self.high:.3g})"

    def over(self, other: "Errors") -> tuple[float, float]:
        """The ratio on the tables that both have, and its resolution."""
        both = min(len(self.means), len(other.means))
        mine, its = self.means[:both], other.means[:both]
        spread = 3 * float(np.std(mine - its)) / math.sqrt(both)
        least = max(float(its.mean()), TWENTIETH)
        return max(float(mine.mean()), TWENTIETH) / least, max(spread / least, THOUSANDTH)


def by_law(law: Law, cases: Sequence[Case]) -> Errors:
    """Computed."""
    pairs = [(cell_errors(case), law(case)) for case in cases]
    means = np.array([float((errors * law).sum(axis=1).mean()) for errors, law in pairs])
    known = [(errors[law > 1e-12], law[law > 1e-12]) for errors, law in pairs]
    return Errors(means, *(np.concatenate(part) for part in zip(*known, strict=True)))


def by_draws(make: Callable[[Case], Release], cases: Sequence[Case], often: int) -> Errors:
    """Drawn, that often from each table."""
    drawn = np.array([[_off(make(case)(), cell_errors(case)) for _ in range(often)] for case in cases])
    return Errors(drawn.mean(axis=(1, 2)), drawn.ravel(), np.ones(drawn.size))


def _off(released: Sequence[float], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    cells = np.clip(np.rint(np.asarray(released, float)), 0, CELLS - 1).astype(np.int64)
    return np.asarray(errors[np.arange(len(errors)), cells])


@dataclass
class Agreement:
    """How often draws are off by more than the mean of their law, against how often they should be."""

    more: float = 0.0
    expected: float = 0.0
    variance: float = 0.0

    def add(self, law: Law, make: Callable[[Case], Release], case: Case, often: int) -> None:
        """Draw from one table."""
        errors, chances = cell_errors(case), law(case)
        means = (errors * chances).sum(axis=1)
        p = np.where(errors > means[:, None], chances, 0.0).sum(axis=1)
        release = make(case)
        self.more += sum(float((_off(release(), errors) > means).sum()) for _ in range(often))
        self.expected += often * float(p.sum())
        self.variance += often * float((p * (1 - p)).sum())

    @property
    def deviation(self) -> float:
        """In standard errors."""
        return abs(self.more - self.expected) / math.sqrt(max(self.variance, 1e-9))


def found(bench: Bench, what: str, name: str, errors: Callable[[], Errors]) -> Errors | None:
    """None for who fails."""
    bench.say(what, detail=name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = errors()
    except Exception as error:
        bench.failed(what, name, error)
        return None
    record = {"section": bench.section, "case": what, "job": name, "tables": len(known.means)}
    bench.measured.append(record | {"rank_error": known.mean, f"at_{LEVEL}": known.high})
    return known


def accuracy(bench: Bench) -> tuple[list[list[str]], list[Check]]:
    """Every distribution, epsilon and question."""
    grid, n = Grid((0, CELLS - 1), cells=CELLS), bench.pick(10_000, 2000)
    distributions = [tables(n, seed) for seed in range(bench.pick(400, 20))]
    rows: list[list[str]] = []
    checks: list[Check] = []
    agreements: dict[str, Agreement] = {}
    for (label, at), epsilon in product((("median", MEDIAN), ("deciles", DECILES)), (1.0, 0.1)):
        for name in distributions[0]:
            cases = [Case(values[name], grid, at, epsilon) for values in distributions]
            row, known = compared(bench, f"{label} of {name}, epsilon {epsilon:g}", cases, agreements)
            rows.append(row)
            checks += known
    laws = [
        Check(f"{name}: draws off more often than by its law, standard errors", one.deviation, at_most=5)
        for name, one in agreements.items()
    ]
    return rows, checks + laws


def compared(
    bench: Bench, what: str, cases: list[Case], agreements: dict[str, Agreement]
) -> tuple[list[str], list[Check]]:
    """Ours for both relations beside each peer."""
    few = cases[: bench.pick(40, 5)]  # where draws are needed

    def own_errors(relation: Neighbours) -> Errors:
        make = partial(ours, neighbours=relation)
        if len(cases[0].at) > 1:
            return by_draws(make, few, 3)
        law = partial(our_law, neighbours=relation)
        agreements.setdefault(OURS, Agreement()).add(law, make, cases[0], bench.pick(200, 20))
        return by_law(law, cases)

    def its_errors(name: str, make: Callable[[Case], Release]) -> Errors:
        if name not in LAWS:
            return by_draws(make, cases, 1) if len(cases[0].at) == 1 else by_draws(make, few, 3)
        agreements.setdefault(name, Agreement()).add(LAWS[name], make, cases[0], bench.pick(20, 3))
        return by_law(LAWS[name], cases if len(cases[0].at) == 1 else few)

    own = {one: found(bench, what, f"{OURS}, {one}", partial(own_errors, one)) for one in Neighbours}
    cells, checks = [str(own[relation]) for relation in Neighbours], []
    for name, make in peers(bench).items():
        mine = own[Neighbours.REPLACE if name == REPLACED else Neighbours.ADD_REMOVE]
        its = found(bench, what, name, partial(its_errors, name, make))
        if mine is None or its is None:
            cells.append("fails")
            continue
        known = verdicts(f"{what}, rank error / {name}", mine, its)
        ratio, resolution = mine.over(its)
        missed = "" if all(check.passed for check in known) else " MISS"
        cells.append(f"{its} = {ratio:.3f} ± {resolution:.3f} ×{missed}")
        checks += known
    return [what, *cells], checks


def verdicts(what: str, mine: Errors, its: Errors) -> list[Check]:
    """Means up to the resolution, and what 95 % of the releases are off by, less than a rank taken for that."""
    ratio, resolution = mine.over(its)
    high = max(mine.high, 1.0) / max(its.high, 1.0)
    return [Check(what, ratio, at_most=round(1 + resolution, 4)), Check(f"{what}, {LEVEL:.0%}", high, at_most=1)]


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
            "Quantiles, mean rank error (that of 95 %)",
            header,
            errors,
            f"× = ours over theirs, ± resolution; beside {REPLACED}, ours for replace.",
        ),
        Table("Nine deciles", ["who", "time", "/ numpy.quantile"], costs),
    ]
    return Section(tables, checks + more)
