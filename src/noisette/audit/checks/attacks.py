"""Does an attacker who sees only releases prove more than the mechanism states? Statistical, from outside.

An honest mechanism fails one of these with probability at most 1e-9.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from noisette.audit import subject
from noisette.audit.checks.sampling import ALPHA
from noisette.audit.finding import Effort, Finding, found, not_applicable
from noisette.audit.sampled import epsilon_lower_bound, floating_point_epsilon
from noisette.audit.subject import Subject
from noisette.privacy import Pure

__all__ = ["black_box", "floating_point"]

_DELTA = 0.01  # at which attacks on mechanisms without a pure guarantee are judged
_SENTENCES = "No attack proves more than is stated.", "An attack proves a larger epsilon than is stated."


def stated(m: Subject, distance: Any) -> tuple[float, float]:
    """Return an (epsilon, delta) that the mechanism states for a distance."""
    promise = m.guarantee(distance)
    if isinstance(promise, Pure):
        return float(promise.epsilon), 0.0
    return m.epsilon_at(_DELTA, distance), _DELTA


def neighbours(m: Subject) -> tuple[Any, Any, Fraction]:
    """Return a pair that an attacker would choose: about as far apart as the noise is wide."""
    if subject.is_vector(m) or subject.is_whole(m):
        x, x_prime, distance = min(m.pairs(), key=lambda pair: abs(stated(m, pair[2])[0] - 1))
        return subject.plain(m, x), subject.plain(m, x_prime), Fraction(distance)
    apart = _about(math.sqrt(m.variance()))
    return 0.0, float(apart), apart


def _about(size: float) -> Fraction:
    """The power of two below a size."""
    return Fraction(2) ** math.floor(math.log2(size))


def black_box(m: Subject, effort: Effort) -> Finding:
    """Sampled releases of two neighbours do not prove a larger epsilon."""
    x, x_prime, distance = neighbours(m)
    epsilon, delta = stated(m, distance)
    runs = min(subject.array_size(m, effort) // 2, 2**18)
    batch = partial(subject.many, m)
    bound = epsilon_lower_bound(m, x, x_prime, runs=runs, delta=delta, confidence=1 - ALPHA, batch=batch)
    return found("black box", bound, epsilon, _SENTENCES)


def floating_point(m: Subject, effort: Effort) -> Finding:
    """The bits of released floats do not either, on the grid that the mechanism chooses by itself."""
    if subject.is_whole(m):
        return not_applicable("floating point", "It releases whole numbers.")
    apart = _about(math.sqrt(m.variance()) / 8)
    m = replace(m, grid=None)
    epsilon, delta = stated(m, apart)
    x = subject.origin(m)
    x_prime = [float(apart), *x[1:]] if subject.is_vector(m) else float(apart)
    runs = effort.vector // 2 if subject.is_vector(m) else min(2**15, effort.array)
    bound = floating_point_epsilon(
        m, x, x_prime, runs=runs, delta=delta, confidence=1 - ALPHA, batch=partial(subject.many, m)
    )
    return found("floating point", bound, epsilon, _SENTENCES)
