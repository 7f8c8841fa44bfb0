"""Do releases follow the stated law? Statistical, through the calls that a user makes.

A sound mechanism fails one of these with probability 1e-9 (`ALPHA`).
"""

import numpy as np

from noisette.audit import subject
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.goodness import ALPHA, fit, joint_fit
from noisette.audit.subject import Subject

__all__ = ["arrays", "independent", "one_by_one"]

_FITS = "Releases follow the stated probabilities.", "Releases do not follow the stated probabilities."


def arrays(m: Subject, effort: Effort) -> Finding:
    """An array of equal answers is released by the law of a single one."""
    x, count = subject.drawn(m, m.pairs()[0][0]), subject.array_size(m, effort)
    p = fit(m, x, subject.many(m, x, count), count)
    return found("arrays", p, ALPHA, _FITS, least=True)


def one_by_one(m: Subject, effort: Effort) -> Finding:
    """Calls with one answer follow the law."""
    x, count = subject.drawn(m, m.pairs()[-1][1]), effort.vector if subject.is_vector(m) else effort.single
    p = fit(m, x, subject.one_by_one(m, x, count))
    return found("one by one", p, ALPHA, _FITS, least=True)


def independent(m: Subject, effort: Effort) -> Finding:
    """Neighbours in an array, its two halves, and calls that follow each other draw noise that is independent."""
    sentences = "Draws do not depend on each other.", "Draws depend on each other."
    x = subject.drawn(m, m.pairs()[0][0])
    singles = subject.one_by_one(m, x, effort.vector // 8 * 2)
    p_values = [joint_fit(m, x, singles[::2], singles[1::2], 1)]
    if not subject.is_vector(m):
        count = min(2**16, effort.slow_array, 4 * subject.array_size(m, effort)) // 8 * 4
        first, second = np.split(subject.many(m, x, count), 2)
        p_values += [joint_fit(m, x, first, second, count), joint_fit(m, x, first[::2], first[1::2], count)]
    return found("independent", min(1.0, len(p_values) * min(p_values)), ALPHA, sentences, least=True)
