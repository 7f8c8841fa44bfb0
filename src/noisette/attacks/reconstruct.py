"""Linear reconstruction: enough counts, accurate enough, are the table itself.

n people have a secret bit each. An attacker who learns how many of a random half have it, for 4n random halves, with
errors well below sqrt(n), solves for all bits. So answers to many questions need noise of order sqrt(n) at least.
[Dinur-Nissim 2003; the linear program: Dwork-McSherry-Talwar 2007]

Vocabulary: `Q` m x n matrix of 0s and 1s, whom each question counts · `y` given counts · `b` secret bits.
"""

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisette.attacks.answerer import Ask, given, spent_by
from noisette.errors import InputError
from noisette.exact.number import Number, positive, whole
from noisette.privacy import Guarantee

__all__ = ["Reconstruction", "expected_recovery", "reconstruct"]

Method: TypeAlias = Literal["least squares", "lp"]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Reconstruction:
    """The share of bits that the attacker has right (1/2 is guessing), from how many counts, and what they cost."""

    recovered: float
    people: int
    queries: int
    method: str
    spent: Guarantee | None
    estimate: NDArray[np.int64] = field(repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """One sentence."""
        cost = f", {self.spent} spent" if self.spent is not None else ""
        return f"{self.recovered:.1%} of {self.people:,} bits right from {self.queries:,} counts{cost}."

    def __str__(self) -> str:
        return self.verdict


def reconstruct(
    secret: ArrayLike,
    ask: Ask,
    *,
    queries: int | None = None,
    method: Method = "least squares",
    generator: np.random.Generator | None = None,
) -> Reconstruction:
    """Ask for the counts of random subsets, all at once (4n unless given), and decode the bits.

    "least squares" minimises |Qb - y|_2 and rounds; "lp" minimises |Qb - y|_1 with 0 <= b <= 1, which is slower,
    does better against Laplace noise and stands a few answers that are far off. One person moves every count by at
    most 1, so the sensitivity of the question is `sensitivity.counts(queries)`. An answerer whose budget does not hold
    it raises BudgetError.

    >>> from noisette.attacks import bits, exact
    >>> print(reconstruct(bits(50), exact))
    100.0% of 50 bits right from 200 counts.
    """
    b = _bits(secret)
    m = 4 * len(b) if queries is None else whole(queries, "queries")
    if method not in _DECODERS:
        raise InputError(f"method must be one of: {'; '.join(_DECODERS)}.")
    Q = (generator or np.random.default_rng()).integers(0, 2, (m, len(b)))
    y = given(ask, Q @ b)
    estimate = (_DECODERS[method](Q.astype(float), y) > 0.5).astype(np.int64)
    return Reconstruction(float(np.mean(estimate == b)), len(b), m, method, spent_by(ask), estimate)


def _bits(secret: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(secret)
    if array.ndim != 1 or not array.size or not np.isin(array, [0, 1]).all():
        raise InputError("secret must be a list of bits: 0 or 1 for each person.")
    return array.astype(np.int64)


def _least_squares(Q: Floats, y: Floats) -> Floats:
    """Solve the normal equations for b - 1/2; a hair of ridge picks the shortest solution where there are many."""
    normal = Q.T @ Q + 1e-6 * np.eye(Q.shape[1])
    return np.asarray(np.linalg.solve(normal, Q.T @ (y - Q.sum(axis=1) / 2)) + 0.5)


def _linear_program(Q: Floats, y: Floats) -> Floats:
    """Minimise the sum of e subject to |Qb - y| <= e and 0 <= b <= 1."""
    from scipy.optimize import linprog
    from scipy.sparse import bmat, identity

    m, n = Q.shape
    slack = -identity(m)
    found = linprog(
        np.repeat([0.0, 1.0], [n, m]),
        A_ub=bmat([[Q, slack], [-Q, slack]], format="csr"),
        b_ub=np.concatenate([y, -y]),
        bounds=[(0, 1)] * n + [(0, None)] * m,
        method="highs",
    )
    if not found.success:
        raise InputError("The linear program was not solved: use the method 'least squares'.")
    return np.asarray(found.x[:n])


_DECODERS: dict[str, Any] = {"least squares": _least_squares, "lp": _linear_program}


def expected_recovery(people: int, sd: Number, queries: int | None = None) -> float:
    """Return about which share of bits least squares recovers from counts with noise of that sd.

    Random halves have (Q^T Q)^-1 of about 4/(m - n) on the diagonal, so each bit is estimated with an sd of
    s = 2 sd/sqrt(m - n), and is right with probability Phi(1/(2 s)). An approximation, for m > n both large.

    >>> [round(expected_recovery(200, sd), 3) for sd in (1, 10, 100)]
    [1.0, 0.73, 0.524]
    """
    n = whole(people, "people")
    m = 4 * n if queries is None else whole(queries, "queries")
    if m <= n:
        raise InputError("queries must exceed people: fewer do not determine the bits by least squares.")
    return NormalDist().cdf(math.sqrt(m - n) / (4 * float(positive(sd, "sd"))))
