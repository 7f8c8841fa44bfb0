"""Limits that a question chooses by itself, against R2T and other choosers: the error of COUNT(*) on nine laws.

Ours is what a question does: the chooser, the noise and the shares are taken from its offer. For every chooser the mean
error over its law is computed, with Laplace noise for the answer; R2T and the sparse vector are simulated. The shares
were settled on these laws, so a few others, tried afterwards, stand below them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow
from numpy.typing import NDArray

import noisette as nz
from benchmarks.harness import Bench, Check, Section, Table
from noisette.questions.parts.limit_choice import LimitChoice, scores
from noisette.questions.sql import Sql

Floats = NDArray[np.float64]

USERS, MANY, CUT = 20_000, 1_000_000, 5_000
EPSILONS = ("1/10", "1")
BETA = 0.1  # with which R2T may fail
STRONG = ("Zipf 2", "log-normal", "geometric", "Poisson", "uniform")
BAD = "1 % at 500"


def _zipf(tail: float, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    sizes = np.arange(1, CUT + 1)
    chances = sizes ** -(tail + 1.0)
    return rng.choice(sizes, size=n, p=chances / chances.sum())


def _heavy(people: int, rows: int, others: int = 1) -> NDArray[np.int64]:
    return np.array([others] * (USERS - people) + [rows] * people)


def laws(rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """The rows of each person: the nine laws that have targets, then others."""
    return {
        "Zipf 1.1": _zipf(1.1, USERS, rng),
        "Zipf 2": _zipf(2, USERS, rng),
        "log-normal": np.ceil(rng.lognormal(1, 1, USERS)).astype(int),
        "geometric": rng.geometric(0.2, USERS),
        "Zipf 1.1, a million": _zipf(1.1, MANY, rng),
        "Poisson": rng.poisson(20, USERS),
        "uniform": rng.integers(1, 1001, USERS),
        "Pareto 1.5": np.minimum(np.ceil(5 * (1 + rng.pareto(1.5, USERS))), 8192).astype(int),
        BAD: _heavy(USERS // 100, 500),
        "(other) 1.5 % at 100": _heavy(300, 100),
        "(other) 2 % at 2,000": _heavy(400, 2000, 2),
        "(other) 0.5 % at 500": _heavy(100, 500),
        "(other) Zipf 1.5": _zipf(1.5, USERS, rng),
        "(other) negative binomial": rng.negative_binomial(1, 0.02, USERS) + 1,
    }


@dataclass(frozen=True)
class Task:
    """Sizes of people, an epsilon, and the candidates."""

    sizes: NDArray[np.int64]
    epsilon: str
    most: int

    @cached_property
    def choice(self) -> LimitChoice:
        """What a question of this epsilon does."""
        return self._offer.procedure.choices[0]

    @cached_property
    def _offer(self) -> nz.questions.contract.Offer:
        rules = {"tables": {"t": {"unit": "u", "rows": "each question", "most_rows": self.most}}}
        data = nz.open({"t": pyarrow.table({"u": [1]})}, budget=10, policy=rules)
        return Sql("SELECT COUNT(*) FROM t").offer(data.schema, nz.Pure(self.epsilon), nz.Neighbours.ADD_REMOVE, 0.95)

    @cached_property
    def limits(self) -> Floats:
        return np.array(self.choice.limits, dtype=float)

    @cached_property
    def above(self) -> NDArray[np.int64]:
        """N(t) of each candidate."""
        return np.array([np.count_nonzero(self.sizes > limit) for limit in self.choice.limits])

    @cached_property
    def clipped(self) -> Floats:
        """Rows that are left within each candidate."""
        return np.array([np.minimum(self.sizes, limit).sum() for limit in self.choice.limits], dtype=float)

    @property
    def total(self) -> float:
        return float(self.sizes.sum())

    @property
    def e(self) -> float:
        return float(nz.Pure(self.epsilon).epsilon)

    def error(self, chances: Floats, scales: Floats) -> float:
        """E|bias + Laplace noise| in % of the answer: b + s exp(-b/s) at each limit."""
        bias = self.total - self.clipped
        return float(chances @ (bias + scales * np.exp(-bias / scales)) / self.total * 100)


def ours(task: Task, rng: np.random.Generator) -> float:
    """By the laws of the offer's own mechanisms."""
    k = len(task.choice.limits)
    plans = task._offer.procedure.plans
    [*noise] = (next(iter(plans[place,].procedure.design.noise.values())) for place in range(k))
    chances = task.choice.chooser.pmf(np.arange(k), scores(task.above))
    return task.error(chances, np.array([float(one.scale) for one in noise]))


def _clip(task: Task, *, flat: bool, share: float = 0.1) -> float:
    """-|N(t) - 2/e|, with the prior 1/t or an even one."""
    logs = -np.abs(task.above - 2 / task.e) * share * task.e / 2 - (0 if flat else np.log(task.limits))
    weights = np.exp(logs - logs.max())
    return task.error(weights / weights.sum(), task.limits / ((1 - share) * task.e))


def with_prior(task: Task, rng: np.random.Generator) -> float:
    """The prior 1/t."""
    return _clip(task, flat=False)


def flat(task: Task, rng: np.random.Generator) -> float:
    """All limits alike."""
    return _clip(task, flat=True)


def scan(task: Task, rng: np.random.Generator, runs: int = 4_000, share: float = 0.15, k: float = 3) -> float:
    """Sparse vector: the first limit with about k/e of its share above it, or fewer."""
    e = share * task.e
    bar = k / e + rng.laplace(0, 2 / e, (runs, 1))
    below = task.above + rng.laplace(0, 2 / e, (runs, len(task.limits))) <= bar
    places = np.where(below.any(axis=1), below.argmax(axis=1), len(task.limits) - 1)
    chances = np.bincount(places, minlength=len(task.limits)) / runs
    return task.error(chances, task.limits / ((1 - share) * task.e))


def r2t(task: Task, rng: np.random.Generator, runs: int = 4_000) -> float:
    """The race to the top: the largest noisy clipped sum, each less what its noise may exceed. [Dong et al. 2022]"""
    limits, sums, rounds = task.limits[1:], task.clipped[1:], len(task.limits) - 1
    scales = rounds * limits / task.e
    noisy = sums + rng.laplace(0, 1, (runs, rounds)) * scales - math.log(rounds / BETA) * scales
    return float(np.abs(np.maximum(noisy.max(axis=1), 0) - task.total).mean() / task.total * 100)


def hindsight(task: Task, rng: np.random.Generator) -> float:
    """The limit that is best, were it known: all of epsilon is for the answer."""
    k = len(task.limits)
    return min(task.error(np.eye(k)[i], task.limits / task.e) for i in range(k))


CHOOSERS: dict[str, Callable[[Task, np.random.Generator], float]] = {
    "ours": ours,
    "R2T": r2t,
    "prior 1/t": with_prior,
    "flat prior": flat,
    "sparse vector": scan,
    "hindsight": hindsight,
}


def run(bench: Bench) -> Section:
    """Every law, epsilon and chooser."""
    rng = np.random.default_rng(21)
    found, checks = [], []
    people = laws(rng)
    for most in (2**13, 2**20):
        rows = []
        for name, sizes in people.items():
            for epsilon in EPSILONS:
                errors = {chooser: of(Task(sizes, epsilon, most), rng) for chooser, of in CHOOSERS.items()}
                rows.append([name, epsilon, *(f"{error:.3g}" for error in errors.values())])
                if not name.startswith("("):
                    checks += _checks(f"{name}, {epsilon}, up to {most:,}", name, errors)
        title = f"COUNT(*) with a limit that the question chooses, up to {most:,}: mean error in %"
        found.append(Table(title, ["law", "epsilon", *CHOOSERS], rows))
    return Section([*found, _verdicts(checks)], checks)


def _checks(what: str, name: str, errors: dict[str, float]) -> list[Check]:
    most = 1 / 3 if name in STRONG else 1.0
    checks = [Check(f"{what}: against R2T", errors["ours"] / errors["R2T"], at_most=most)]
    if name == BAD:
        best = min(errors[one] for one in ("prior 1/t", "flat prior", "sparse vector"))
        checks.append(Check(f"{what}: against the best of three choosers", errors["ours"] / best, at_most=1.5))
    return checks


def _verdicts(checks: list[Check]) -> Table:
    return Table("against targets", ["what", "ratio", "target", ""], [[check.what, *check.cells] for check in checks])
