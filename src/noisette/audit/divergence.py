"""How far apart two laws are, by enumeration.

Vocabulary: `P`, `Q` probabilities of the same outputs under x and x'. They come from `laws_of`, which enumerates the
union of both supports.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["enumerated", "hockey_stick", "largest_loss", "laws_of", "renyi", "telling"]

Floats = NDArray[np.float64]


def enumerated(mechanism: Any, x: Any) -> tuple[NDArray[Any], Floats]:
    """Return the outputs that x can have, and their probabilities.

    >>> from noisette.mechanisms import RandomizedResponse
    >>> outputs, P = enumerated(RandomizedResponse(1), 0)
    >>> outputs.tolist(), P.round(3).tolist()
    ([0, 1], [0.731, 0.269])
    """
    return _enumerated(mechanism, _key(x))


@lru_cache(maxsize=64)
def _enumerated(mechanism: Any, x: Any) -> tuple[NDArray[Any], Floats]:
    outputs = np.asarray(mechanism.support(x))
    return outputs, np.asarray(mechanism.pmf(outputs, x), float)


def laws_of(mechanism: Any, x: Any, x_prime: Any, *, also: tuple[Any, ...] = ()) -> tuple[Floats, Floats]:
    """Return P and Q on the union of the supports of x, x' and of further centres.

    >>> from noisette.mechanisms import RandomizedResponse
    >>> P, Q = laws_of(RandomizedResponse(1), 0, 1)
    >>> P.round(3).tolist(), Q.round(3).tolist()
    ([0.731, 0.269], [0.269, 0.731])
    """
    return _laws_of(mechanism, _key(x), _key(x_prime), also)


@lru_cache(maxsize=64)
def _laws_of(mechanism: Any, x: Any, x_prime: Any, also: tuple[Any, ...]) -> tuple[Floats, Floats]:
    points = np.unique(np.concatenate([enumerated(mechanism, c)[0] for c in (x, x_prime, *also)]), axis=0)
    return np.asarray(mechanism.pmf(points, x), float), np.asarray(mechanism.pmf(points, x_prime), float)


def telling(mechanism: Any, x: Any, x_prime: Any) -> Any:
    """Return the output that tells two answers apart best, of those that their laws share or do not.

    >>> from noisette.mechanisms import TruncatedGeometric
    >>> telling(TruncatedGeometric(2, high=5), 2, 3)
    0
    """
    points = np.unique(np.concatenate([enumerated(mechanism, c)[0] for c in (x, x_prime)]), axis=0)
    P, Q = (np.asarray(mechanism.pmf(points, c), float) for c in (x, x_prime))
    with np.errstate(divide="ignore", invalid="ignore"):
        return points[int(np.argmax(np.nan_to_num(np.abs(np.log(P) - np.log(Q)), posinf=np.inf)))].tolist()


def _key(x: Any) -> Any:
    return tuple(x) if isinstance(x, Sequence) else x


def _beyond(P: Floats) -> float:
    """The probability outside the enumerated outputs."""
    return max(0.0, 1 - math.fsum(P))


def hockey_stick(P: Floats, Q: Floats, epsilon: float) -> float:
    """Return the least delta for which (epsilon, delta)-DP holds between P and Q, in both directions.

    sum (P - e^epsilon Q)_+, and what lies outside the enumerated outputs: never understated.

    >>> P, Q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    >>> hockey_stick(P, Q, 0.0), hockey_stick(P, Q, 2.0), hockey_stick(0.5 * P, Q, 0.0)
    (0.5, 0.0, 0.625)
    """
    factor = math.exp(epsilon)
    return max(math.fsum(np.maximum(a - factor * b, 0)) + _beyond(a) for a, b in ((P, Q), (Q, P)))


def largest_loss(P: Floats, Q: Floats) -> float:
    """Return max |ln P/Q|, the least epsilon for which epsilon-DP holds on the enumerated outputs.

    >>> round(largest_loss(np.array([0.75, 0.25]), np.array([0.25, 0.75])), 6)
    1.098612
    """
    known = (P > 0) | (Q > 0)
    with np.errstate(divide="ignore"):
        return float(np.max(np.abs(np.log(P[known]) - np.log(Q[known]))))


def renyi(P: Floats, Q: Floats, order: float) -> float:
    """Return the Rényi divergence ln(sum P^a Q^(1-a)) / (a - 1), the larger of both directions.

    Between discrete Gaussians d apart it is a d^2 / (2 sigma^2) if a d is whole, and less if not.
    [Canonne-Kamath-Steinke 2020, Theorem 4; the enumerated outputs alone, so it is not overstated]

    >>> round(renyi(np.array([0.75, 0.25]), np.array([0.25, 0.75]), 2), 6)
    0.847298
    """
    return max(_one_way(P, Q, order), _one_way(Q, P, order))


def _one_way(P: Floats, Q: Floats, order: float) -> float:
    if np.any((P > 0) & (Q == 0)):
        return math.inf
    shared = (P > 0) & (Q > 0)
    logs = order * np.log(P[shared]) + (1 - order) * np.log(Q[shared])
    return (float(logs.max()) + math.log(math.fsum(np.exp(logs - logs.max())))) / (order - 1)
