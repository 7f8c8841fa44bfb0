"""What a guarantee means for one person: what an attacker can decide, and what an observer can come to believe.

Two worlds: the table with a person's data, and the one without (or with other data in its place). The attacker sees
everything that was released and says which world it is. A *false alarm* takes the world without for the one with; a
*miss* is the opposite.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, nearest_float
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Profile, Pure

__all__ = ["posterior_bounds", "tradeoff_curve"]

_DOWN = 2.0**-40  # covers the rounding of a handful of float operations
_TOLERANCE, _PROBES = 2e-4, 64  # how near the known curve, and how many deltas it may take
_LARGEST = 512.0  # beyond this epsilon there is nothing to draw


def tradeoff_curve(guarantee: Guarantee | Number, alphas: ArrayLike) -> NDArray[np.float64]:
    """Return the least miss rate that any attacker has at each false-alarm rate, rounded down.

    (epsilon, delta)-DP allows no test below 1 - delta - e^epsilon alpha, nor below e^-epsilon (1 - delta - alpha); the
    curve is the largest of these over all epsilon with delta(epsilon).   [Wasserman-Zhou 2010; Dong-Roth-Su 2022]
    It takes some dozens of epsilons up to 512, so chosen that others would hardly raise it (usually by less than 2e-4;
    fewer can only lower it, so that it stays true). A bare number is a pure epsilon.

    >>> [round(float(beta), 4) for beta in tradeoff_curve(1, [0, 0.05, 0.5, 1])]
    [1.0, 0.8641, 0.1839, 0.0]
    """
    alpha = np.asarray(alphas, dtype=float)
    if not np.all((alpha >= 0) & (alpha <= 1)):
        raise InputError("False-alarm rates must lie between 0 and 1.")
    with np.errstate(divide="ignore"):
        log_alpha = np.log(alpha)
    least = np.zeros_like(alpha)
    for epsilon, delta in _known_deltas(_read(guarantee)):
        steep = 1 - delta - np.exp(np.minimum(epsilon + log_alpha, 0.0))
        flat = math.exp(-epsilon) * (1 - delta - alpha)
        least = np.maximum(least, np.maximum(steep, flat) - _DOWN)
    return least


def _known_deltas(guarantee: Guarantee) -> list[tuple[float, float]]:
    """Pairs (epsilon, delta), until no other epsilon would raise the curve by more than the tolerance, or enough.

    delta is convex in x = e^epsilon, and a line of the curve is a point (x, delta). Between two points it lies below
    their chord and above its neighbours' chords, prolonged; where these meet is where it is worth asking next, and how
    far that is below the chord is the most that the curve can rise there.
    """
    known = {epsilon: guarantee.delta_at(epsilon) for epsilon in _own(guarantee)}
    epsilon = 2.0**-6
    while min(known.values()) > _TOLERANCE / 2 and epsilon <= _LARGEST:
        known[epsilon] = guarantee.delta_at(epsilon)
        epsilon *= 2
    for _ in range(_PROBES):
        gap, epsilon = _widest(sorted(known.items()))
        if gap <= _TOLERANCE or epsilon in known:
            break
        known[epsilon] = guarantee.delta_at(epsilon)
    return sorted(known.items())


def _own(guarantee: Guarantee) -> set[float]:
    stated = nearest_float(guarantee.epsilon, up=True) if isinstance(guarantee, Pure | Approx) else 0.0
    return {0.0, stated} if stated <= _LARGEST else {0.0}


def _widest(known: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The largest rise that is possible between two points, and the epsilon at which it would be."""
    x = np.exp([epsilon for epsilon, _ in known])
    delta = np.minimum.accumulate([d for _, d in known])  # delta falls with epsilon, even if its bounds do not
    slopes = np.concatenate(([-1.0], np.diff(delta) / np.diff(x), [0.0]))
    before, chord, after = slopes[:-2], slopes[1:-1], slopes[2:]
    bent = (before < chord) & (chord < after)
    step = np.zeros_like(chord)  # from the left point to where the prolonged chords meet
    step[bent] = (np.diff(x) * (after - chord))[bent] / (after - before)[bent]
    rise = (chord - before) * step
    if not rise.size:
        return 0.0, 0.0
    best = int(np.argmax(rise))
    return float(rise[best]), float(np.log(x[best] + step[best]))


def posterior_bounds(prior: Number, guarantee: Guarantee | Number, *, chance: Number = 0) -> tuple[float, float]:
    """Return between which beliefs an observer ends who held the belief `prior` before seeing the answers.

    A belief is the probability of one of the two worlds. Answers of epsilon-DP change its odds p/(1 - p) by a factor
    between e^-epsilon and e^epsilon. With a delta no such bounds hold for all answers; with a `chance` they hold for
    all but answers of that probability in all, since P(loss > t) <= delta(epsilon) / (1 - e^(epsilon - t)).

    >>> [round(belief, 4) for belief in posterior_bounds("0.1", 1)]
    [0.0393, 0.232]
    >>> posterior_bounds("0.1", Approx(1, "1e-6"))
    (0.0, 1.0)
    """
    belief, allowed = _probability(prior, "prior"), _probability(chance, "chance")
    return _shifted(float(belief), _largest_loss(_read(guarantee), allowed))


def _probability(value: Number, name: str) -> Fraction:
    number = fraction(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must lie between 0 and 1: it is a probability.")
    return number


def _shifted(prior: float, loss: float) -> tuple[float, float]:
    """The belief with its odds divided and multiplied by e^loss, rounded outwards."""
    if prior in (0.0, 1.0):
        return prior, prior
    factor = math.exp(-loss)
    low, high = prior * factor / (prior * factor + 1 - prior), prior / (prior + (1 - prior) * factor)
    return low * (1 - 2.0**-50), min(1.0, high * (1 + 2.0**-50))


def _largest_loss(guarantee: Guarantee, chance: Fraction) -> float:
    """What |ln P/Q| exceeds with at most that chance in either world, half of it for each sign; maybe infinite."""
    shares = [Fraction(1, 2**i) for i in range(1, 7)] if chance else []
    losses = [guarantee.epsilon_at(chance / 2 * share) - math.log1p(-float(share)) for share in shares]
    return min([guarantee.epsilon_at(0), *losses]) * (1 + _DOWN)


def _read(guarantee: Guarantee | Number) -> Guarantee:
    return guarantee if isinstance(guarantee, Pure | Approx | ZCDP | Profile) else Pure(guarantee)
