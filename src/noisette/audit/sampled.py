"""A lower bound on epsilon for any callable, by running it: it needs no law and believes no claim.

Run it on x and on x'. On one half of the runs, look for the event that tells them apart best; on the other half, bound
the event's two probabilities by Clopper and Pearson. Then, with the stated confidence,

    epsilon >= ln((P(event | x) - delta) / P(event | x')).   [Ding et al. 2018; Jagielski-Ullman-Oprea 2020]
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole

__all__ = ["epsilon_lower_bound"]

_BINS = 128

Batch = Callable[[Any, int], Sequence[Any] | NDArray[Any]]
"""(x, count) -> that many releases of x."""

Counts = NDArray[np.int64]
Outputs = list[Any] | NDArray[Any]


def epsilon_lower_bound(
    mechanism: Callable[[Any], Any],
    x: Any,
    x_prime: Any,
    *,
    runs: int = 20_000,
    delta: float = 0.0,
    confidence: float = 0.99,
    batch: Batch | None = None,
) -> float:
    """Return an epsilon below which no (epsilon, delta) guarantee can be true, wrong with at most 1 - confidence.

    `runs` calls for each of the two answers; `batch(x, count)` may make many at once. Outputs are numbers, or anything
    that can be hashed; arrays count as the tuple of their entries.

    >>> from noisette.mechanisms import RandomizedResponse
    >>> m = RandomizedResponse(3)
    >>> at_once = lambda x, count: m(np.full(count, x))
    >>> 2 < epsilon_lower_bound(m, 0, 1, confidence=1 - 1e-9, batch=at_once) <= 3
    True
    """
    if not 0 < confidence < 1 or not 0 <= delta < 1:
        raise InputError("confidence must lie strictly between 0 and 1, and delta between 0 and 1.")
    draw: Batch = batch or (lambda answer, count: [mechanism(answer) for _ in range(count)])
    half = whole(runs, "runs", least=4) // 2
    first, second = _outputs(draw(x, 2 * half)), _outputs(draw(x_prime, 2 * half))
    cells = _cells(first[:half], second[:half])
    chosen, chosen_prime = cells.count(first[:half]), cells.count(second[:half])
    tested, tested_prime = cells.count(first[half:]), cells.count(second[half:])
    error = (1 - confidence) / 2
    event, swapped = _best_event(chosen, chosen_prime, half, delta, error)
    if swapped:
        tested, tested_prime = tested_prime, tested
    bound = _bounds(tested[event].sum(keepdims=True), tested_prime[event].sum(keepdims=True), half, delta, error)
    return max(0.0, float(bound[0]))


def _outputs(released: Any) -> Outputs:
    """An array for numbers, a list for anything else."""
    listed = released if isinstance(released, np.ndarray) and released.ndim == 1 else [_hashable(y) for y in released]
    if all(isinstance(y, int | float) for y in listed) or getattr(listed, "dtype", np.dtype(object)).kind in "iuf":
        numbers = np.array(listed, float)
        return listed if np.isnan(numbers).any() else numbers
    return listed


def _hashable(y: Any) -> Hashable:
    if isinstance(y, np.ndarray | np.generic):
        y = y.tolist()
    return tuple(_hashable(v) for v in y) if isinstance(y, list) else y


@dataclass(frozen=True)
class _Intervals:
    """Numbers gathered by edges between them."""

    edges: NDArray[np.float64]

    def count(self, outputs: Outputs) -> Counts:
        return np.bincount(np.searchsorted(self.edges, outputs), minlength=len(self.edges) + 1)


@dataclass(frozen=True)
class _Values:
    """Each output a cell of its own, and one for outputs never seen before."""

    known: dict[Hashable, int]

    def count(self, outputs: Outputs) -> Counts:
        places = [self.known.get(y, len(self.known)) for y in outputs]
        return np.bincount(places, minlength=len(self.known) + 1)


def _cells(first: Outputs, second: Outputs) -> _Intervals | _Values:
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return _Values({y: i for i, y in enumerate(dict.fromkeys([*first, *second]))})
    values = np.unique(np.concatenate([first, second]))
    if len(values) > _BINS:
        ordered = np.sort(np.concatenate([first, second]))
        values = np.unique(ordered[np.arange(_BINS) * len(ordered) // _BINS])
    return _Intervals((values[1:] + values[:-1]) / 2)


def _bounds(hits: Counts, hits_prime: Counts, n: int, delta: float, error: float) -> NDArray[np.float64]:
    """ln((P_low - delta) / P'_up) for events that were hit so often in n runs; -inf where it says nothing."""
    from scipy.special import betaincinv

    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, error), 0.0)
    up = np.where(hits_prime < n, betaincinv(hits_prime + 1, np.maximum(n - hits_prime, 1), 1 - error), 1.0)
    above = np.maximum(low - delta, 0)
    return np.asarray(np.where(above > 0, np.log(np.where(above > 0, above, 1) / up), -np.inf))


def _best_event(a: Counts, b: Counts, n: int, delta: float, error: float) -> tuple[Counts, bool]:
    """The set of cells with the largest bound among thresholds and likelihood-ratio sets, and its direction."""
    best: tuple[float, Counts, bool] = (-math.inf, np.arange(len(a)), False)
    for swapped, p, q in ((False, a, b), (True, b, a)):
        cells = np.arange(len(p))
        by_ratio = cells[np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")]
        for order in (cells, cells[::-1], by_ratio):
            bounds = _bounds(np.cumsum(p[order]), np.cumsum(q[order]), n, delta, error)
            top = int(np.argmax(bounds))
            if bounds[top] > best[0]:
                best = float(bounds[top]), order[: top + 1], swapped
    return best[1], best[2]
