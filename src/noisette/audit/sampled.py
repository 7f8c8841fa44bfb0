"""A lower bound on epsilon for any callable, by running it: no law need be known, and no claim believed.

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
    >>> 2 < epsilon_lower_bound(RandomizedResponse(3), 0, 1, confidence=1 - 1e-9) <= 3
    True
    """
    if not 0 < confidence < 1 or not 0 <= delta < 1:
        raise InputError("confidence must lie strictly between 0 and 1, and delta between 0 and 1.")
    draw: Batch = batch or (lambda answer, count: [mechanism(answer) for _ in range(count)])
    half = whole(runs, "runs", least=4) // 2
    first, second = _outputs(draw(x, 2 * half)), _outputs(draw(x_prime, 2 * half))
    cells = _cells([*first[:half], *second[:half]])
    chosen, chosen_prime = cells.count(first[:half]), cells.count(second[:half])
    tested, tested_prime = cells.count(first[half:]), cells.count(second[half:])
    error = (1 - confidence) / 2
    event, swapped = _best_event(chosen, chosen_prime, half, delta, error)
    if swapped:
        tested, tested_prime = tested_prime, tested
    bound = _bounds(tested[event].sum(keepdims=True), tested_prime[event].sum(keepdims=True), half, delta, error)
    return max(0.0, float(bound[0]))


def _outputs(released: Any) -> list[Hashable]:
    listed = np.asarray(released).tolist() if isinstance(released, np.ndarray) else list(released)
    return [_hashable(y) for y in listed]


def _hashable(y: Any) -> Hashable:
    if isinstance(y, np.ndarray | np.generic):
        y = y.tolist()
    return tuple(_hashable(v) for v in y) if isinstance(y, list) else y


@dataclass(frozen=True)
class _Cells:
    """Outputs gathered into cells: one for each value, or intervals where numbers hardly repeat."""

    known: dict[Hashable, int] | None
    edges: NDArray[np.float64]
    total: int

    def count(self, outputs: list[Hashable]) -> Counts:
        """How many outputs fall into each cell; the last one is for values never seen before."""
        if self.known is None:
            places = np.searchsorted(self.edges, np.array(outputs, float), side="right")
        else:
            places = np.array([self.known.get(y, self.total - 1) for y in outputs])
        return np.bincount(places, minlength=self.total)


def _cells(outputs: list[Hashable]) -> _Cells:
    values = set(outputs)
    numbers = all(isinstance(y, int | float) and not math.isnan(y) for y in values)
    if numbers and len(values) > _BINS:
        ordered = np.sort(np.array(outputs, float))
        edges = np.unique(ordered[np.arange(1, _BINS) * len(ordered) // _BINS])
        return _Cells(None, edges, len(edges) + 2)
    order = sorted(values) if numbers else list(values)  # type: ignore[type-var]
    return _Cells({y: i for i, y in enumerate(order)}, np.empty(0), len(order) + 1)


def _bounds(hits: Counts, hits_prime: Counts, n: int, delta: float, error: float) -> NDArray[np.float64]:
    """ln((P_low - delta) / P'_up) for events that were hit so often in n runs; -inf where it says nothing."""
    from scipy.special import betaincinv

    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, error), 0.0)
    up = np.where(hits_prime < n, betaincinv(hits_prime + 1, np.maximum(n - hits_prime, 1), 1 - error), 1.0)
    above = np.maximum(low - delta, 0)
    return np.asarray(np.where(above > 0, np.log(np.where(above > 0, above, 1) / up), -np.inf))


def _best_event(a: Counts, b: Counts, n: int, delta: float, error: float) -> tuple[Counts, bool]:
    """The set of cells with the largest bound among thresholds and likelihood-ratio sets, and its direction."""
    best: tuple[float, Counts, bool] = (-math.inf, np.arange(len(a) - 1), False)
    for swapped, p, q in ((False, a, b), (True, b, a)):
        cells = np.arange(len(p) - 1)
        by_ratio = cells[np.argsort(-(p[:-1] + 0.5) / (q[:-1] + 0.5), kind="stable")]
        for order in (cells, cells[::-1], by_ratio):
            bounds = _bounds(np.cumsum(p[order]), np.cumsum(q[order]), n, delta, error)
            top = int(np.argmax(bounds))
            if bounds[top] > best[0]:
                best = float(bounds[top]), order[: top + 1], swapped
    return best[1], best[2]
