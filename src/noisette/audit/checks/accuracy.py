"""Do the stated variance and intervals agree with the law? Exact, by enumeration.

Two statements differ from "noise around x": randomized response states the error of an estimated share, and the
truncated geometric mechanism states the worst over its range, with an interval that may be a bound.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from noisette.audit import subject
from noisette.audit.divergence import Floats, enumerated
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.subject import Subject
from noisette.mechanisms import RandomizedResponse, TruncatedGeometric

__all__ = ["interval", "variance"]

LEVELS = (0.5, 0.9, 0.95, 0.99)
_ROUNDING = 1e-12
_PEOPLE = 12


def _errors(m: Subject, x: Any) -> tuple[Floats, Floats]:
    """The errors of one released number (a vector's first) with their probabilities."""
    outputs, chance = enumerated(m, x)
    first, centre = (outputs[:, 0], float(x[0])) if outputs.ndim > 1 else (outputs, float(x))
    return first - centre, chance


def _mean_square(m: Subject, x: Any) -> float:
    error, chance = _errors(m, x)
    return math.fsum(chance * error**2)


def variance(m: Subject, _: Effort) -> Finding:
    """The stated variance is the mean squared error of the law: at worst over x where it depends on x."""
    match m:
        case RandomizedResponse():
            true, stated = _share_variance(m), m.variance(_PEOPLE, share=1 / _PEOPLE)
        case TruncatedGeometric():
            true, stated = max(_mean_square(m, x) for x in range(m.low, m.high + 1)), m.variance()
        case _:
            true, stated = _mean_square(m, subject.origin(m)), m.variance()
    sentences = "The stated variance is that of the law.", "The stated variance is not that of the law."
    return found("variance", abs(stated / true - 1), 1e-9, sentences)


def _estimates(m: RandomizedResponse, having: int) -> tuple[Floats, Floats]:
    """The estimated share of an answer that `having` of the people have, with probabilities."""
    law = np.ones(1)
    for i in range(_PEOPLE):
        chance = float(m.pmf(0, 0 if i < having else 1))
        law = np.convolve(law, [1 - chance, chance])
    reports = ([0] * k + [1] * (_PEOPLE - k) for k in range(_PEOPLE + 1))
    return np.array([m.estimate(r)[0] for r in reports]), law


def _share_variance(m: RandomizedResponse) -> float:
    estimate, chance = _estimates(m, 1)
    mean = math.fsum(chance * estimate)
    bias = abs(mean - 1 / _PEOPLE)
    return math.fsum(chance * (estimate - mean) ** 2) if bias < _ROUNDING else math.nan


def _covered(error: Floats, chance: Floats, t: float) -> float:
    return math.fsum(chance[np.abs(error) <= t * (1 + _ROUNDING)])


def _misses(m: Subject, level: float) -> Iterator[float]:
    """How far coverage lies below the level, for each answer, and above it for an interval that is a cell narrower."""
    match m:
        case RandomizedResponse():
            t = m.interval(level, people=_PEOPLE)
            for k in range(_PEOPLE + 1):
                estimate, chance = _estimates(m, k)
                yield level - _covered(estimate - k / _PEOPLE, chance, t)
        case TruncatedGeometric():
            t = m.interval(level)
            yield from (level - _covered(*_errors(m, x), t) for x in range(m.low, m.high + 1))
        case _:
            t = m.interval(level)
            for x in (subject.origin(m), m.pairs()[0][0], m.pairs()[-1][1]):
                yield level - _covered(*_errors(m, x), t)
            yield _covered(*_errors(m, subject.origin(m)), t - float(subject.step(m))) - level


def interval(m: Subject, _: Effort) -> Finding:
    """Each interval covers with its probability, and one a cell narrower does not (but for stated bounds)."""
    misses = max(miss for level in LEVELS for miss in _misses(m, level))
    sentences = (
        "Intervals cover as stated, and none is wider than it must be.",
        "An interval is too narrow or too wide.",
    )
    return found("interval", misses, _ROUNDING, sentences)
