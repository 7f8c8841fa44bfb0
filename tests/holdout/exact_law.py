"""The law of a reusable holdout by itself: sums over the threshold's noise, written without the package's loop.

`transcripts(mechanism, questions)` are the probabilities of all outcomes of questions (exact, guess, threshold) in
steps: None, or what is released of the answer. Broken twins are mechanisms whose law is computed alike.
"""

import math

import numpy as np

from noisette.holdout.thresholdout import Thresholdout
from noisette.mechanisms import NumericSparse, SparseVector

FAR = 40  # scales


def gaps_of(threshold_scale, scale, budget, records=3, grid=2, threshold="1/3"):
    return Thresholdout(
        SparseVector(threshold_scale, scale, positives=budget), records=records, threshold=threshold, grid=grid
    )


def published(sigma, budget, records=3, grid=2, threshold="1/3"):
    return Thresholdout.published(sigma, budget=budget, records=records, threshold=threshold, grid=grid)


def transcripts(m, questions, *, fixed=False):
    """Probabilities by transcript; `fixed` is a twin without noise on the threshold."""
    laws = _one_sided(m.comparing, fixed) if isinstance(m.comparing, SparseVector) else _two_sided(m.comparing, fixed)
    z, first, below, equal = laws
    alive, ended = {(): first}, {}
    for exact, guess, threshold in questions:
        before, alive = alive, {}
        for told, weight in before.items():
            silent = np.ones(len(z))
            for side, off in enumerate(differences(m, exact - guess)):
                need = z - (off - threshold)  # the least noise that is above
                for outcome, chance in _above(m, exact, side, need, below, equal):
                    mass = weight * silent * chance
                    _add(ended if _positives(told) + 1 == m.budget else alive, (*told, outcome), mass, m, first)
                silent = silent * below(need)
            alive[(*told, None)] = alive.get((*told, None), 0) + weight * silent
    for told, weight in alive.items():
        ended[told] = ended.get(told, 0) + weight.sum()
    return {told: float(np.sum(p)) for told, p in ended.items()}


def differences(m, off):
    return [off, -off] if isinstance(m.comparing, SparseVector) else [abs(off)]


def _positives(told):
    return sum(each is not None for each in told)


def _add(into, told, mass, m, first):
    if isinstance(m.comparing, NumericSparse):
        mass = mass.sum() * first  # the threshold's noise is drawn anew
    into[told] = into.get(told, 0) + mass


def _one_sided(m, fixed):
    a, b = math.exp(-1 / float(m.scale)), math.exp(-1 / float(m.threshold_scale))
    n = np.arange(1 if fixed else math.ceil(FAR * m.threshold_scale))
    first = np.ones(1) if fixed else (1 - b) * b**n

    def below(need):
        return np.where(need > 0, 1 - a ** np.maximum(need, 0), 0.0)

    def equal(noise):
        return np.where(noise >= 0, (1 - a) * a ** np.maximum(noise, 0), 0.0)

    return n + m.centre, first, below, equal


def _two_sided(m, fixed):
    reach = 0 if fixed else math.ceil(FAR * m.scale)
    z = np.arange(-reach, reach + 1)
    first = np.ones(1) if fixed else _laplace(z, m.scale)
    a = math.exp(-1 / float(2 * m.scale))

    def below(need):
        above_zero = 1 - a ** np.maximum(need, 0) / (1 + a)
        return np.where(need > 0, above_zero, a ** (1 - np.minimum(need, 0)) / (1 + a))

    return z, first, below, None


def _laplace(z, scale):
    a = math.exp(-1 / float(scale))
    return (1 - a) / (1 + a) * a ** np.abs(z)


def _above(m, exact, side, need, below, equal):
    if equal is not None:
        for gap in range(math.ceil(12 * m.comparing.scale)):
            yield (side, gap), equal(gap + need)
        return
    top = math.ceil(10 * m.comparing.value_scale)
    for value in range(-top, 3 * m.grid + top):
        yield value, (1 - below(need)) * _laplace(np.array(value - exact), m.comparing.value_scale)


def loss(P, Q):
    """The largest ln P/Q over transcripts that are not of negligible probability."""
    return max(math.log(P[told] / Q.get(told, 1e-300)) for told in P if P[told] > 1e-12)
