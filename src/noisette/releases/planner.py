"""The planner: of all strategies for a workload, the one of least error, before any data is read.

Vocabulary: a workload is ranges of a line's cells, all of its prefixes, or any linear queries · the error is the root
mean squared error of its queries.

Each candidate has an exact error, so that the choice is arithmetic on public numbers and costs no privacy. For a
promise with a delta, Laplace noise competes too: few levels need less of it. With Gaussian noise the best binary chain
and the best Haar wavelet have the same error, because they have the same Gram matrix.

No strategy with Gaussian noise has a smaller total squared error than sigma^2 (sum of the workload's singular
values)^2/cells.   [Li-Miklau 2013]. For all prefixes these are 1/(2 sin((2j - 1) pi/(4n + 2))); for all ranges
sqrt(n + 1)/(2 sin(j pi/(2n + 2))), since their Gram matrix is n + 1 times the inverse of the second difference.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.privacy import Neighbours, Promise, Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.chains import best_chain, energies, typical_ranges
from noisette.releases.linear import ONE_ROW, Linear, Strategy, fitting
from noisette.releases.strategies import p_identity, toeplitz
from noisette.releases.strategies.haar import Haar
from noisette.releases.strategies.matrix import Matrix
from noisette.releases.tree import Tree

__all__ = ["Candidate", "Plan", "best", "best_for", "least_error"]

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Moved: TypeAlias = Callable[[Strategy], Sequence[Sensitivity]]


@dataclass(frozen=True)
class Candidate:
    """A strategy with its shares of the promise and the error that it would have."""

    name: str
    strategy: Strategy
    shares: tuple[float, ...]
    gaussian: bool
    error: float = float("nan")


@dataclass(frozen=True)
class Plan:
    """The release of least error, and all candidates from the best to the worst."""

    release: Linear
    candidates: tuple[Candidate, ...]
    """Their errors are root mean squared errors of the workload's queries."""


def best(
    spend: Spend,
    cells: int,
    *,
    ranges: tuple[Any, Any] | None = None,
    prefixes: bool = False,
    part: Contribution = ONE_ROW,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    optimise: bool = False,
) -> Plan:
    """The best release for `ranges` (their first and last cells), for all prefixes, or else for all ranges of a line.

    With `optimise`, a strategy is optimised for up to 1 024 cells, too: five to ten per cent less error, in seconds.

    >>> plan = best(1, 4096, prefixes=True)
    >>> [(one.name, round(one.error, 1)) for one in plan.candidates]
    [('blocks of 1024, 128, 16, 1', 13.9), ('Haar wavelet', 20.9), ('single cells', 61.4)]
    >>> best("rho=0.01", 4096, prefixes=True).candidates[0].name
    'square root of prefix sums'
    """
    low, high = _ends(ranges, whole(cells, "cells"), prefixes)

    def variances(strategy: Strategy, v: Sequence[float]) -> Floats:
        return strategy.variances(low, high, v)

    def moved(strategy: Strategy) -> Sequence[Sensitivity]:
        return strategy.sensitivities(part, neighbours)

    promise = as_promise(spend)
    found = [one for smooth in _noises(promise) for one in _on_a_line(cells, low, high, moved, smooth)]
    if optimise and cells <= p_identity.MOST_CELLS:
        at = np.arange(cells)
        gram = p_identity.gram_of((at >= low[:, None]) & (at <= high[:, None]))
        found += [_optimised(gram, smooth) for smooth in _noises(promise)]
    return _choose(promise, found, variances, part, neighbours)


def best_for(
    spend: Spend,
    workload: Any,
    *,
    weights: Any = None,
    part: Contribution = ONE_ROW,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    most: int = p_identity.MOST_CELLS,
) -> Plan:
    """The best release for any linear queries of cells, one query a row, of which some may weigh more than others.

    A strategy is optimised for up to `most` cells; beside it stand single cells, and the queries themselves if they are
    whole numbers.

    >>> best_for(1, [[1, 1, 1, 1, 1, 1, 1, 1]]).candidates[0].name
    'the queries themselves'
    """
    promise, queries = as_promise(spend), np.asarray(workload, float)
    weight = np.ones(len(queries)) if weights is None else np.asarray(weights, float)
    plain = Matrix(np.eye(queries.shape[-1], dtype=np.int64), name="single cells")

    def variances(strategy: Strategy, v: Sequence[float]) -> Floats:
        assert isinstance(strategy, Matrix)
        found: Floats = strategy.query_variances(queries, v) * (weight / weight.mean())
        return found

    tried = [plain]
    if (queries == np.rint(queries)).all():
        tried.append(Matrix(queries.astype(np.int64), name="the queries themselves"))
    found = [Candidate(one.name, one, (1.0,), smooth) for one in tried for smooth in _noises(promise)]
    if queries.shape[-1] <= most:
        gram = p_identity.gram_of(queries * np.sqrt(weight)[:, None])
        found += [_optimised(gram, smooth) for smooth in _noises(promise)]
    return _choose(promise, found, variances, part, neighbours)


def least_error(cells: int, *, prefixes: bool = False) -> float:
    """The error below which no strategy comes for all prefixes, or all ranges, with Gaussian noise of sigma 1 a row.

    >>> round(least_error(4096, prefixes=True), 4), round(least_error(256), 3)
    (3.3499, 2.876)
    """
    j, n = np.arange(1, whole(cells, "cells") + 1), cells
    if prefixes:
        return float((1 / (2 * np.sin((2 * j - 1) * np.pi / (4 * n + 2)))).sum() / n)
    singular = np.sqrt(n + 1) / (2 * np.sin(j * np.pi / (2 * n + 2)))
    return float(singular.sum() / n / np.sqrt((n + 1) / 2))


# Candidates


def _noises(promise: Promise) -> tuple[bool, ...]:
    """Whether noise is Gaussian: both kinds compete where there is a delta or a rho."""
    return (False,) if promise.is_pure else (False, True)


def _on_a_line(cells: int, low: Counts, high: Counts, moved: Moved, gaussian: bool) -> Iterator[Candidate]:
    workload = energies(low, high, cells)
    yield Candidate("single cells", Tree(cells), (1.0,), gaussian)
    far = tuple(float(moved(Tree(cells, (2**j, 1)[j == 0 :]))[0].l2) for j in range(len(workload.by_exponent)))
    chain = best_chain(workload, gaussian=gaussian, moved=far if gaussian else ())
    if len(chain.sizes) > 1:
        name = f"blocks of {', '.join(map(str, chain.sizes))}"
        yield Candidate(name, Tree(cells, chain.sizes), chain.shares, gaussian)
    haar = Haar(cells)
    norms = [float(one.l2 if gaussian else one.l1) for one in moved(haar)]
    yield Candidate("Haar wavelet", haar, haar.shares_for(workload, gaussian=gaussian, moved=norms), gaussian)
    if gaussian and cells <= toeplitz.MOST_CELLS and not low.any():
        yield Candidate("square root of prefix sums", toeplitz.SquareRoot(cells), (1.0,), gaussian)


def _optimised(gram: Floats, gaussian: bool) -> Candidate:
    made = p_identity.optimised(gram=gram, gaussian=gaussian)
    return Candidate(made.name, made, (1.0,), gaussian)


def _choose(
    promise: Promise,
    found: Sequence[Candidate],
    variances: Callable[[Strategy, Sequence[float]], Floats],
    part: Contribution,
    neighbours: Neighbours,
) -> Plan:
    given: dict[str, Any] = {"part": part, "neighbours": neighbours}

    def judged(one: Candidate) -> tuple[Candidate, Linear]:
        made = Linear.calibrated(promise, one.strategy, shares=one.shares, gaussian=one.gaussian, **given)
        return replace(one, error=float(np.sqrt(np.mean(variances(one.strategy, made.variance))))), made

    order = sorted(fitting(judged, found), key=lambda one: one[0].error)
    return Plan(order[0][1], tuple(one for one, _ in order))


def _ends(ranges: tuple[Any, Any] | None, cells: int, prefixes: bool) -> tuple[Counts, Counts]:
    if ranges is None:
        return typical_ranges(cells, prefixes=prefixes)
    low, high = (np.atleast_1d(np.asarray(ends)) for ends in ranges)
    if (
        prefixes
        or low.shape != high.shape
        or low.ndim != 1
        or not low.size
        or {low.dtype.kind, high.dtype.kind} - {"i", "u"}
    ):
        raise InputError(
            "ranges must be their first and their last cells, as whole numbers; leave out prefixes=True then."
        )
    if (low < 0).any() or (low > high).any() or (high >= cells).any():
        raise InputError("Each range must start at cell 0 or later, and end at its start or later, within the cells.")
    return low.astype(np.int64), high.astype(np.int64)
