"""Do the stated variance and intervals agree with the law? Exact, by enumeration.

Some statements differ from "noise around x": randomized response states the error of an estimated share, and the
truncated geometric mechanism states the worst over its range, with an interval that may be a bound.
`Quantile` states rank errors, at worst over all tables, and choices state the loss of score, at worst over all scores;
`Keep` states how many units go unnamed, and `Threshold` the noise where selection does not touch it.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from noisette.audit import subject
from noisette.audit.divergence import Floats, enumerated
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.subject import Subject
from noisette.mechanisms import Keep, Quantile, RandomizedResponse, Threshold, TruncatedGeometric

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
        case Quantile():
            true, stated = _rank_variance(m), m.variance()
        case _ if subject.is_choice(m):
            true, stated = _score_variance(m), m.variance()
        case Keep():
            true, stated = max(float(m.pmf(False, n)) * n**2 for n in range(m.certain + 1)), m.variance()
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
        case Quantile():
            yield level - _near_in_rank(m, m.interval(level))
            yield _near_in_rank(m, m.interval(level) - 1 / _rank_rate(m)) - level
        case _ if subject.is_choice(m):
            yield level - _near_in_score(m, m.interval(level))
            yield _near_in_score(m, m.interval(level) - 1) - level
        case Keep():
            yield level - _named(m, m.interval(level))
            yield _named(m, m.interval(level) - 1) - level
        case Threshold():
            errors = _errors(m, subject.origin(m))
            yield level - _covered(*errors, m.interval(level))
            yield _covered(*errors, m.interval(level) - 1) - level
        case TruncatedGeometric():
            t = m.interval(level)
            yield from (level - _covered(*_errors(m, x), t) for x in range(m.low, m.high + 1))
        case _:
            t = m.interval(level)
            for x in (subject.origin(m), m.pairs()[0][0], m.pairs()[-1][1]):
                yield level - _covered(*_errors(m, x), t)
            yield _covered(*_errors(m, subject.origin(m)), t - float(subject.step(m))) - level


def _rank_rate(m: Quantile) -> float:
    """The rate at which the law falls with the rank error, from two cells of a table."""
    x = m.pairs()[0][0]
    upto, target = np.cumsum(x), float(m.q * sum(x))
    error = np.maximum(np.maximum(upto - x - target, target - upto), 0)
    near, far = int(np.argmin(error)), int(np.argmax(error))
    return math.log(float(m.pmf(near, x)) / float(m.pmf(far, x))) / float(error[far] - error[near])


def _near_in_rank(m: Quantile, t: float) -> float:
    """P(rank error <= t) at worst: one cell holds the quantile, and all others lie just above t."""
    return 1 / (1 + (m.cells - 1) * math.exp(-_rank_rate(m) * t)) if t >= 0 else 0.0


def _rank_variance(m: Quantile) -> float:
    """The mean squared rank error at worst: one cell holds the quantile, and all others lie at the worst place."""
    from scipy.optimize import minimize_scalar

    rate = _rank_rate(m)

    def mean_square(t: float) -> float:
        return t**2 / (1 + math.exp(rate * t) / (m.cells - 1))

    return -float(minimize_scalar(lambda t: -mean_square(t), bounds=(0, 60 / rate), method="bounded").fun)


def _one_best(m: Subject, loss: int) -> Iterator[list[int]]:
    """Scores of which one is best and all others lose as much, whichever it is."""
    for best in range(m.candidates):
        yield [0 if i == best else -loss for i in range(m.candidates)]


def _near_in_score(m: Subject, t: float) -> float:
    """P(loss of score <= t) at worst: all but the best lose one more than t."""
    return min(float(m.pmf(x.index(0), x)) for x in _one_best(m, int(t) + 1)) if t >= 0 else 0.0


def _score_variance(m: Subject) -> float:
    """The mean squared loss of score at worst: all but the best lose the same, at the worst place."""
    losses = range(1, math.ceil(m.scale * 20))
    return max(math.fsum(enumerated(m, x)[1] * np.square(x)) for loss in losses for x in _one_best(m, loss))


def _named(m: Keep, most: float) -> float:
    """The least chance, over all groups, that no more than `most` units go unnamed."""
    return min(float(m.pmf(True, n)) + (n <= most) * float(m.pmf(False, n)) for n in range(m.certain + 1))


def interval(m: Subject, _: Effort) -> Finding:
    """Each interval covers with its probability, and one a cell narrower does not (but for stated bounds)."""
    misses = max(miss for level in LEVELS for miss in _misses(m, level))
    sentences = (
        "Intervals cover as stated, and none is wider than it must be.",
        "An interval is too narrow or too wide.",
    )
    return found("interval", misses, _ROUNDING, sentences)
