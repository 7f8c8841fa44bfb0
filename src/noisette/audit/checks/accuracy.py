"""Do the stated variance and intervals agree with the law? Exact, by enumeration.

What is stated depends on the kind. Numbers and vectors state the noise around x. Clamped numbers state the worst over
their range, with an interval that may be wider than it must be. Groups state the `error` at their `worst()` counts.
Reports state the error of an estimated share, tables rank errors at worst over all tables, and choices the loss of
score at worst over all scores.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from noisette.audit import subject
from noisette.audit.checks.privacy import ROUNDING
from noisette.audit.divergence import Floats, enumerated
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.subject import Subject
from noisette.mechanisms.contract import Output

__all__ = ["interval", "variance"]

LEVELS = (0.5, 0.9, 0.95, 0.99)
_PEOPLE = 12


def _errors(m: Subject, x: Any) -> tuple[Floats, Floats]:
    """The errors of one released number (a vector's first) with their probabilities."""
    outputs, chance = enumerated(m, x)
    if m.kind is Output.GROUPS:
        return np.asarray(m.error(outputs, x), float), chance
    first, centre = (outputs[:, 0], float(x[0])) if outputs.ndim > 1 else (outputs, float(x))
    return first - centre, chance


def _mean_square(m: Subject, x: Any) -> float:
    error, chance = _errors(m, x)
    return math.fsum(chance * error**2)


def variance(m: Subject, _: Effort) -> Finding:
    """The stated variance is the mean squared error of the law: at worst over x where it depends on x."""
    stated = m.variance(_PEOPLE, share=1 / _PEOPLE) if m.kind is Output.REPORT else m.variance()
    true = _variance(m)
    sentences = "The stated variance is that of the law.", "The stated variance is not that of the law."
    witness = f"It states {stated:.6g}, and the law has {true:.6g}."
    off = abs(stated / true - 1) if true else math.inf if stated else 0.0
    return found("variance", off, 1e-9, sentences, witness=lambda: witness)


def _variance(m: Subject) -> float:
    match m.kind:
        case Output.REPORT:
            return _share_variance(m)
        case Output.TABLE:
            return _rank_variance(m)
        case Output.CHOICE:
            return _score_variance(m)
        case Output.GROUPS | Output.CLAMPED:
            return max(_mean_square(m, x) for x in _answers(m))
        case _:
            return _mean_square(m, subject.origin(m))


def _answers(m: Subject) -> Sequence[int]:
    """All answers at which the errors of groups or of clamped numbers are stated."""
    worst: Sequence[int] = m.worst() if m.kind is Output.GROUPS else range(m.low, m.high + 1)
    return worst


def _estimates(m: Subject, having: int) -> tuple[Floats, Floats]:
    """The estimated share of an answer that `having` of the people have, with probabilities."""
    law = np.ones(1)
    for i in range(_PEOPLE):
        chance = float(m.pmf(0, 0 if i < having else 1))
        law = np.convolve(law, [1 - chance, chance])
    reports = ([0] * k + [1] * (_PEOPLE - k) for k in range(_PEOPLE + 1))
    return np.array([m.estimate(r)[0] for r in reports]), law


def _share_variance(m: Subject) -> float:
    estimate, chance = _estimates(m, 1)
    mean = math.fsum(chance * estimate)
    bias = abs(mean - 1 / _PEOPLE)
    return math.fsum(chance * (estimate - mean) ** 2) if bias < ROUNDING else math.nan


def _covered(error: Floats, chance: Floats, t: float) -> float:
    return math.fsum(chance[np.abs(error) <= t * (1 + ROUNDING)])


def _misses(m: Subject, level: float) -> Iterator[float]:
    """How far coverage lies below the level, for each answer, and above it for an interval that is a cell narrower."""
    match m.kind:
        case Output.REPORT:
            t = m.interval(level, people=_PEOPLE)
            for k in range(_PEOPLE + 1):
                estimate, chance = _estimates(m, k)
                yield level - _covered(estimate - k / _PEOPLE, chance, t)
        case Output.TABLE:
            yield level - _near_in_rank(m, m.interval(level))
            yield _near_in_rank(m, m.interval(level) - 1 / _rank_rate(m)) - level
        case Output.CHOICE:
            yield level - _near_in_score(m, m.interval(level))
            yield _near_in_score(m, m.interval(level) - 1) - level
        case Output.GROUPS:
            yield level - _least_covered(m, m.interval(level))
            yield _least_covered(m, m.interval(level) - 1) - level
        case Output.CLAMPED:
            yield level - _least_covered(m, m.interval(level))
        case _:
            t = m.interval(level)
            for x in (subject.origin(m), m.pairs()[0][0], m.pairs()[-1][1]):
                yield level - _covered(*_errors(m, x), t)
            yield _covered(*_errors(m, subject.origin(m)), t - float(subject.step(m))) - level


def _rank_rate(m: Subject) -> float:
    """The rate at which the law falls with the rank error, from two cells of a table."""
    x = m.pairs()[0][0]
    upto, target = np.cumsum(x), float(m.q * sum(x))
    error = np.maximum(np.maximum(upto - x - target, target - upto), 0)
    near, far = int(np.argmin(error)), int(np.argmax(error))
    return math.log(float(m.pmf(near, x)) / float(m.pmf(far, x))) / float(error[far] - error[near])


def _near_in_rank(m: Subject, t: float) -> float:
    """P(rank error <= t) at worst: one cell holds the quantile, and all others lie just above t."""
    return 1 / (1 + (m.cells - 1) * math.exp(-_rank_rate(m) * t)) if t >= 0 else 0.0


def _rank_variance(m: Subject) -> float:
    """The mean squared rank error at worst: one cell holds the quantile, and all others lie at the worst place."""
    from scipy.optimize import minimize_scalar

    rate = _rank_rate(m)

    def mean_square(t: float) -> float:
        return t**2 / (1 + math.exp(rate * t) / float(m.cells - 1))

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


def _least_covered(m: Subject, t: float) -> float:
    """P(error <= t) at worst over the answers at which it is stated."""
    return min(_covered(*_errors(m, x), t) for x in _answers(m))


def interval(m: Subject, _: Effort) -> Finding:
    """Each interval covers with its probability, and one a cell narrower does not (except where a bound is stated)."""
    misses, level = max((miss, level) for level in LEVELS for miss in _misses(m, level))
    sentences = (
        "Intervals cover as stated, and none is wider than it must be.",
        "An interval is too narrow or too wide.",
    )

    def witness() -> str:
        t = m.interval(level, people=_PEOPLE) if m.kind is Output.REPORT else m.interval(level)
        return f"At level {level} it states {t:.6g}, and the coverage is {misses:.3g} on the wrong side."

    return found("interval", misses, ROUNDING, sentences, witness=witness)
