"""How many people a target error takes, for k shares of n people with some property (n public, neighbours by replace).

One person moves each share by 1/n, so noise on a share shrinks as 1/n: more people buy accuracy at the same epsilon.
Each method states its chance to fail at n people; `people_for` is the least n for which that is at most 1 - level.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NotRequired, TypeAlias, TypedDict, Unpack

from noisette.accuracy.error import of_any
from noisette.errors import InputError
from noisette.exact.number import Number, fraction, positive, whole
from noisette.laws import DiscreteLaplace
from noisette.laws.law import smallest
from noisette.mechanisms import Gaussian, calibrate
from noisette.privacy import Approx, Neighbours, sensitivity
from noisette.privacy.sensitivity import Sensitivity
from noisette.text import as_html, as_text

__all__ = ["METHODS", "Keywords", "People", "Target", "closed_form", "people_bound", "people_for", "people_table"]


# Methods: each states its chance to fail, and the closed form of textbooks. Vocabulary: `k` queries · `n` people ·
# `alpha` error of a share · `beta` chance to fail · `l1`, `l2`, `linf` sensitivity of the k counts under replace.


Failure: TypeAlias = Callable[[int], float]
"""n -> the chance that one of the k shares is off by more than alpha."""


@dataclass(frozen=True)
class Target:
    """What is asked: k shares, all within alpha with probability 1 - beta, under epsilon (and delta)."""

    k: int
    epsilon: float
    alpha: Fraction
    beta: float
    delta: Fraction | None
    counts: Sensitivity

    @property
    def sigma(self) -> float:
        """The noise that Gaussian counts need."""
        if not self.delta:
            raise InputError("Gaussian noise keeps no pure guarantee: give a delta such as '1e-6'.")
        promise = Approx(fraction(self.epsilon, "epsilon"), self.delta)
        return float(calibrate(Gaussian, promise, sensitivity=1).sigma * self.counts.l2)


# With a curator: the exact chance that one of k shares of n people is off by more than alpha.


def _laplace(t: Target) -> Failure:
    """Laplace noise of scale l1/(n epsilon): P(|Z| > alpha) = e^(-alpha n epsilon / l1), k independent ones."""
    rate = float(t.alpha) * t.epsilon / float(t.counts.l1)
    return lambda n: of_any(math.exp(-rate * n), t.k)


def _geometric(t: Target) -> Failure:
    """Whole noise of scale l1/epsilon on the counts, which fail above floor(alpha n)."""
    law = DiscreteLaplace(t.counts.l1 / fraction(t.epsilon, "epsilon"))
    return lambda n: of_any(float(law.tail(math.floor(t.alpha * n))), t.k)


def _gaussian(t: Target) -> Failure:
    """Normal noise of deviation sigma l2 / n, sigma by the analytic curve.   [Balle-Wang 2018]"""
    sigma = t.sigma
    return lambda n: of_any(math.erfc(float(t.alpha) * n / (sigma * math.sqrt(2))), t.k)


def _linf(t: Target) -> Failure:
    """l∞-norm noise: its largest coordinate is linf/(n epsilon) times a Gamma(k) variable.   [Hardt-Talwar 2010]"""
    from scipy.special import gammaincc

    rate = float(t.alpha) * t.epsilon / float(t.counts.linf)
    return lambda n: float(gammaincc(t.k, rate * n))


# Randomized response: upper bounds by Hoeffding's inequality and the union over queries.


def _split_people(t: Target) -> Failure:
    """Each person answers one query, drawn at random, with all of epsilon; groups differ by at most one person.

    m reports miss by alpha with at most 2 e^(-2 m (alpha tanh(epsilon/2))^2); drawing the groups without replacement
    is included.   [Hoeffding 1963, Theorems 2 and 4]
    """
    rate = 2 * (float(t.alpha) * math.tanh(t.epsilon / 2)) ** 2

    def failure(n: int) -> float:
        size, larger = divmod(n, t.k)
        return min(1.0, 2 * math.exp(-rate * size) * (t.k - larger + larger * math.exp(-rate)))

    return failure


def _split_budget(t: Target) -> Failure:
    """Each person answers all k queries with epsilon/k each: 2k e^(-2 n (alpha tanh(epsilon/2k))^2)."""
    rate = 2 * (float(t.alpha) * math.tanh(t.epsilon / (2 * t.k))) ** 2
    return lambda n: min(1.0, 2 * t.k * math.exp(-rate * n))


# Closed forms of textbooks: each tail bounded, then the union over queries.


def closed_form(method: str, t: Target) -> float:
    """Return the number of people, not yet rounded up, that the textbook's formula asks for."""
    alpha, log_k = float(t.alpha), math.log(t.k / t.beta)
    match method:
        case "laplace":
            return float(t.counts.l1) / (t.epsilon * alpha) * log_k
        case "geometric":
            scale = float(t.counts.l1) / t.epsilon
            return scale / alpha * (log_k + math.log(2 / (1 + math.exp(-1 / scale))))
        case "gaussian":
            return t.sigma * math.sqrt(2 * (log_k + math.log(2))) / alpha
        case "linf":  # P(a Gamma(k) variable > k + sqrt(2 k u) + u) <= e^-u  [Boucheron-Lugosi-Massart 2013]
            u = -math.log(t.beta)
            return float(t.counts.linf) / (t.epsilon * alpha) * (t.k + math.sqrt(2 * t.k * u) + u)
        case "response, people split":
            return t.k * (log_k + math.log(2)) / (2 * (alpha * math.tanh(t.epsilon / 2)) ** 2)
        case _:
            return (log_k + math.log(2)) / (2 * (alpha * math.tanh(t.epsilon / (2 * t.k))) ** 2)


METHODS: dict[str, tuple[Callable[[Target], Failure], str]] = {
    "laplace": (_laplace, "exact; needs a curator"),
    "geometric": (_geometric, "exact, whole noise on the counts; needs a curator"),
    "gaussian": (_gaussian, "exact; needs a curator and a delta"),
    "linf": (_linf, "exact; K-norm noise, needs a curator"),
    "response, people split": (_split_people, "Hoeffding; no curator, each person answers one query"),
    "response, budget split": (_split_budget, "Hoeffding; no curator, each person answers every query"),
}


class Keywords(TypedDict):
    """What the functions here are asked: their keywords, which `people_for` explains and `_target` reads."""

    queries: int
    epsilon: Number
    error: Number
    level: NotRequired[Number]
    delta: NotRequired[Number | None]
    workload: NotRequired[Sensitivity | None]


def people_for(method: str, **asked: Unpack[Keywords]) -> int:
    """Return the least n for which all k shares are within `error` of the truth with probability `level`.

    Takes queries (k), epsilon, error, level="0.95", delta=None and workload=None, which is the sensitivity of the k
    counts: any k counts unless given, so `sensitivity.histogram(neighbours=REPLACE)` says that the queries are disjoint
    (l1 is 2 instead of k). Randomized response makes no use of it.

    Exact for "laplace", "geometric", "gaussian" and "linf": n is enough and n - 1 is not. For "response, people split"
    (recommended without a curator) and "response, budget split" n is enough, by Hoeffding's inequality.

    >>> people_for("laplace", queries=20, epsilon=1, error=0.05), people_for("linf", queries=20, epsilon=1, error=0.05)
    (2387, 558)
    """
    target = _target(**asked)
    return _least(_method(method)[0], target)


def people_bound(method: str, **asked: Unpack[Keywords]) -> int:
    """Return the n of the textbook's closed form, a tail bound and a union bound, rounded up: enough, often too much.

    The arguments are those of `people_for`. The forms:
    laplace l1/(eps alpha) ln(k/beta) · gaussian sigma l2 sqrt(2 ln(2k/beta))/alpha · response, people split
    k ln(2k/beta) coth^2(eps/2)/(2 alpha^2) · response, budget split ln(2k/beta) coth^2(eps/2k)/(2 alpha^2).

    >>> ask = dict(queries=20, epsilon=1, error=0.05)
    >>> people_bound("laplace", **ask), people_bound("response, people split", **ask)
    (2397, 125208)
    """
    _method(method)
    return math.ceil(closed_form(method, _target(**asked)))


def _method(name: str) -> tuple[Callable[[Target], Failure], str]:
    if name not in METHODS:
        raise InputError(f"method must be one of: {'; '.join(METHODS)}.")
    return METHODS[name]


def _least(chance_to_fail: Callable[[Target], Failure], target: Target) -> int:
    failure = chance_to_fail(target)
    return smallest(lambda n: n > 0 and failure(n) <= target.beta)


def _target(
    queries: int,
    epsilon: Number,
    error: Number,
    level: Number = "0.95",
    delta: Number | None = None,
    workload: Sensitivity | None = None,
) -> Target:
    k, alpha, sure = whole(queries, "queries"), positive(error, "error"), fraction(level, "level")
    if alpha >= 1:
        raise InputError("error must be below 1: it is the error of a share of people.")
    if not 0 < sure < 1:
        raise InputError("level must lie strictly between 0 and 1: a usual one is 0.95.")
    counts = workload or sensitivity.counts(k, neighbours=Neighbours.REPLACE)
    if counts.neighbours is not Neighbours.REPLACE or counts.l1 == 0:
        raise InputError("workload must be the sensitivity of counts under replace, since n is public.")
    budget = float(positive(epsilon, "epsilon", most=1000))
    return Target(k, budget, alpha, float(1 - sure), None if delta is None else positive(delta, "delta"), counts)


@dataclass(frozen=True)
class People:
    """Methods ranked by how many people they need, and those that do not apply with the reason.

    `rows` holds (method, people, closed form, note).
    """

    title: str
    rows: tuple[tuple[str, int, int, str], ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def _cells(self) -> tuple[list[str], list[list[str]], list[str]]:
        rows = [[name, f"{n:,}", f"{bound:,}", note] for name, n, bound, note in self.rows]
        return ["method", "people", "closed form", "how"], rows, [f"{name}: {why}" for name, why in self.refused]

    def __str__(self) -> str:
        return as_text(self.title, *self._cells)

    def _repr_html_(self) -> str:
        return as_html(self.title, *self._cells)


def people_table(**asked: Unpack[Keywords]) -> People:
    """Return how many people each method needs, fewest first; the keywords are those of `people_for`.

    >>> people_table(queries=20, epsilon=1, error=0.05, delta="1e-6").rows[0][:3]
    ('linf', 558, 679)
    """
    t, rows, refused = _target(**asked), [], []
    for name, (chance_to_fail, note) in METHODS.items():
        try:
            rows.append((name, _least(chance_to_fail, t), math.ceil(closed_form(name, t)), note))
        except InputError as reason:
            refused.append((name, str(reason)))
    title = f"People for {t.k} shares within ±{float(t.alpha):g}, probability {1 - t.beta:g}, epsilon {t.epsilon:g}"
    return People(title, tuple(sorted(rows, key=lambda row: row[1])), tuple(refused))
