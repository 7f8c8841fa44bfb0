"""How many people a target error takes, for k shares of n people with some property (n public, neighbours by replace).

One person moves each share by 1/n, so noise on a share shrinks as 1/n: more people buy accuracy at the same epsilon.
Each method states its chance to fail at n people; `people_for` is the least n for which that is at most 1 - level.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NotRequired, TypedDict, Unpack

from noisette.accuracy.methods import METHODS, Failure, Target, closed_form
from noisette.errors import InputError
from noisette.exact.number import Number, fraction, positive, whole
from noisette.laws.law import smallest
from noisette.privacy import Neighbours, sensitivity
from noisette.privacy.sensitivity import Sensitivity
from noisette.text import as_html, as_text

__all__ = ["Keywords", "People", "people_bound", "people_for", "people_table"]


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
