"""A lower bound on epsilon for any callable, by running it: it needs no law and believes no claim.

Run it on x and on x'. On one half of the runs, look for the event that tells them apart best; on the other half, bound
the event's two probabilities by Clopper and Pearson. Then, with the stated confidence,

    epsilon >= ln((P(event | x) - delta) / P(event | x')).   [Ding et al. 2018; Jagielski-Ullman-Oprea 2020]

Floats say more than numbers.   [Mironov 2012] `x + generator.laplace()` cannot reach every float: near zero, 0 + noise
has finer last bits than 1 + noise, and the noise itself is a logarithm of one of 2^53 numbers, so most floats are no
value of it. An output that x can release and x' cannot gives x away for certain, whatever epsilon is claimed. A view
maps an output to what an attacker would look at. A view is post-processing, so `epsilon_lower_bound` of it never
exceeds the true epsilon: honest mechanisms pass, whatever the view.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole

__all__ = ["attainable_by_laplace", "epsilon_lower_bound", "floating_point_epsilon", "last_bits", "porous_share"]

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


# Attacks on floating-point noise: the last bits of x + noise give x away   [Mironov 2012]


_NEAREST = np.arange(-12, 13)


def last_bits(y: Any) -> Hashable:
    """Return (exponent of the first bit, exponent of the last bit set) of a float, or those of a vector's numbers.

    >>> last_bits(0.75), last_bits(0.1), last_bits(0.0)
    ((-1, -2), (-4, -55), None)
    """
    if isinstance(y, list | tuple | np.ndarray):
        return tuple(last_bits(v) for v in y)
    if y == 0 or not math.isfinite(y):
        return None
    numerator, denominator = float(y).as_integer_ratio()
    trailing = (numerator & -numerator).bit_length() - denominator.bit_length()
    return math.frexp(y)[1] - 1, trailing


def porous_share(released: Any, x_prime: float) -> float:
    """Return the share of outputs that no float x' + noise could be, if x' is not 0.

    If |y| <= |x'|/2 then the noise is at least |x'|/2, so y = x' + noise is a multiple of the last bit of |x'|/2.

    >>> noise = np.random.default_rng().laplace(size=1000)
    >>> porous_share(noise, 1.0) > 0.2, porous_share(1 + noise, 1.0), porous_share(np.rint(noise * 64) / 64, 1.0)
    (True, 0.0, 0.0)
    """
    y = np.asarray(released, float)
    unit = math.ulp(abs(x_prime) / 2)
    return float(np.mean((np.abs(y) <= abs(x_prime) / 2) & (np.fmod(y, unit) != 0)))


def attainable_by_laplace(y: Any, x: float, scale: float) -> NDArray[np.bool_]:
    """Tell which outputs numpy's sampler can make of x: x + scale log(2u) or x - scale log(2 - u - u), u = k / 2^53.

    >>> noise = np.random.default_rng().laplace(size=1000)
    >>> [bool(attainable_by_laplace(5 + noise, x, 1.0).mean() > 0.95) for x in (5.0, 6.0)]
    [True, False]
    """
    y = np.asarray(y, float)[..., None]
    half = np.exp(-np.abs(y - x) / scale) / 2
    u = (np.rint(np.where(y >= x, 1 - half, half) * 2.0**53) + _NEAREST) * 2.0**-53
    log = np.vectorize(math.log, otypes=[float])
    reached = np.where(
        y >= x,
        x - scale * log(np.clip(2.0 - u - u, 2.0**-53, 1)),
        x + scale * log(np.clip(u + u, 2.0**-53, 1)),
    )
    return np.asarray((reached == y).any(axis=-1))


def laplace_view(x: float, x_prime: float, scale: float) -> Callable[[Any], Hashable]:
    """Return the view of an attacker who knows numpy's sampler: could y come from x, and could it come from x'?"""
    return lambda y: (
        bool(attainable_by_laplace(y, x, scale)),
        bool(attainable_by_laplace(y, x_prime, scale)),
    )


def floating_point_epsilon(
    mechanism: Callable[[Any], Any],
    x: Any,
    x_prime: Any,
    *,
    view: Callable[[Any], Hashable] = last_bits,
    runs: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.99,
    batch: Batch | None = None,
) -> float:
    """Return a lower bound on epsilon that an attacker who looks at the floats' bits can prove.

    >>> generator = np.random.default_rng()
    >>> floating_point_epsilon(lambda x: x + generator.laplace(), 0.0, 1.0) > 2      # claims epsilon 1
    True
    """

    def viewed(answer: Any, count: int) -> list[Hashable]:
        released = batch(answer, count) if batch else [mechanism(answer) for _ in range(count)]
        return [view(y) for y in released]

    bound = partial(epsilon_lower_bound, runs=runs, delta=delta, confidence=confidence)
    return bound(mechanism, x, x_prime, batch=viewed)
