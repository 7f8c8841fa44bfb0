"""Is the stated guarantee true, and is it no larger than it must be? Exact, by enumeration.

Probabilities are floats that are good to about 1e-12: `ROUNDING` is what a comparison of deltas forgives.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.audit import subject
from noisette.audit.divergence import Floats, enumerated, hockey_stick, largest_loss, laws_of, renyi
from noisette.audit.finding import Effort, Finding, found, not_applicable
from noisette.audit.subject import Subject
from noisette.mechanisms.additive.lattice import lattice_point
from noisette.mechanisms.calibration import slack
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["bounded_loss", "delta_curve", "private", "sums_to_one", "tight"]

ROUNDING = 1e-12
CLOSE = 1e-6
NEARLY = 0.99  # of an epsilon at which the stated delta must not hold
_SUMMED = 1e-15  # what sums of floats may be off

Compared = tuple[float, float]
"""(measured, allowed)"""


def sums_to_one(m: Subject, _: Effort) -> Finding:
    """The probabilities of the support sum to one, for each answer of `pairs()`."""
    answers = [x for pair in m.pairs() for x in pair[:2]]
    gap = max(abs(1 - math.fsum(enumerated(m, x)[1])) for x in answers)
    sentences = "The probabilities sum to one.", "The probabilities do not sum to one."
    return found("sums to one", gap, ROUNDING, sentences)


def _worst(compared: list[Compared]) -> Compared:
    return max(compared, key=lambda c: c[0] - c[1])


def _promised(m: Subject) -> Iterator[tuple[Any, Any, Fraction, Promise, Floats, Floats]]:
    """Each pair with what is promised for it and its two laws; for zCDP with room for Rényi orders up to three."""
    for x, x_prime, distance in m.pairs():
        promise = m.guarantee(distance)
        wide = isinstance(promise, ZCDP)
        also = (2 * x - x_prime, 2 * x_prime - x) if wide else ()
        yield x, x_prime, distance, promise, *laws_of(m, x, x_prime, also=also)


def epsilons(promise: Promise) -> list[float]:
    """Return epsilons at which a promise says something different each time."""
    match promise:
        case ZCDP():
            root = math.sqrt(promise.rho)
            return [0.0, root, float(promise.rho) + root, float(promise.rho) + 4 * root]
        case _:
            return [0.0, float(promise.epsilon) / 2, float(promise.epsilon), 2 * float(promise.epsilon)]


def private(m: Subject, _: Effort) -> Finding:
    """The hockey-stick divergence of every pair stays below the stated delta(epsilon)."""
    compared = [
        (hockey_stick(P, Q, e), promise.delta_at(e) + ROUNDING)
        for *_, promise, P, Q in _promised(m)
        for e in epsilons(promise)
    ]
    sentences = "Every worst pair keeps the stated delta(epsilon).", "A pair of neighbours breaks the stated guarantee."
    return found("private", *_worst(compared), sentences)


def _loss(promise: Promise, P: Floats, Q: Floats, orders: tuple[float, ...]) -> Compared:
    if isinstance(promise, Approx):
        return hockey_stick(P, Q, float(promise.epsilon)) - _SUMMED, float(promise.delta)
    if isinstance(promise, ZCDP):
        return max(renyi(P, Q, a) / a for a in orders), float(promise.rho)
    return largest_loss(P, Q), float(promise.epsilon)


def bounded_loss(m: Subject, _: Effort) -> Finding:
    """The privacy loss stays below epsilon; for zCDP the Rényi divergence of order a below rho a.

    For (epsilon, delta) the divergence at epsilon stays below delta, however small that is.
    """
    losses = [_loss(promise, P, Q, (1.25, 1.5, 2, 3)) for *_, promise, P, Q in _promised(m)]
    compared = [(measured, stated * (1 + 1e-9)) for measured, stated in losses]
    sentences = (
        "No output distinguishes neighbours better than stated.",
        "Some outputs distinguish neighbours too well.",
    )
    return found("loss", *_worst(compared), sentences)


def reached(m: Subject, x: Any, x_prime: Any, distance: Fraction) -> float:
    """Return the part of distance + grid that rounding really reaches with a pair: all of it, except for vectors."""
    if not subject.is_vector(m) or subject.is_whole(m):
        return 1.0
    moved = [lattice_point(a, m.step) - lattice_point(b, m.step) for a, b in zip(x, x_prime, strict=True)]
    return float(np.linalg.norm(moved, ord=m.norm) * float(m.step) / float(distance + slack(m.grid)))


def tight(m: Subject, _: Effort) -> Finding:
    """The stated epsilon (or rho, at a whole Rényi order) is reached by every pair: no smaller one would be true.

    Rounding vectors may cost less than the one grid that is charged for it; they must reach what their pair moves.
    """
    compared = []
    if isinstance(m.guarantee(m.pairs()[0][2]), Approx):
        compared.append((_delta_reached(m), 1 - CLOSE))
    for x, x_prime, distance, promise, P, Q in _promised(m):
        if isinstance(promise, Approx):
            continue
        measured, stated = _loss(promise, P, Q, (2, 3))
        compared.append((measured, stated * reached(m, x, x_prime, distance) * (1 - CLOSE)))
    measured, least = min(compared, key=lambda c: c[0] - c[1])
    charged = any(reached(m, *pair) < 1 - CLOSE for pair in m.pairs())
    tight_but = " except for what rounding vectors is charged" if charged else ""
    sentences = f"The guarantee is tight{tight_but}.", "The stated guarantee is larger than any pair shows."
    return found("tight", measured, least, sentences, least=True)


def _delta_reached(m: Subject) -> float:
    """The part of delta that some pair reaches at epsilon, and some pair at hardly less than epsilon."""

    def part(factor: float) -> float:
        return max(
            hockey_stick(P, Q, factor * float(promise.epsilon)) / float(promise.delta)
            for *_, promise, P, Q in _promised(m)
            if isinstance(promise, Approx)
        )

    return min(part(1.0), part(NEARLY) * (1 - 2 * CLOSE))


def _alone(distance: Fraction) -> Sensitivity:
    """One number moves by the distance, no other moves; the relation does not matter."""
    return Sensitivity(distance, distance**2, distance, 1, neighbours=Neighbours.REPLACE)


def delta_curve(m: Subject, _: Effort) -> Finding:
    """The mechanism's own delta(epsilon) is true, and for single whole numbers exact to a relative 1e-6."""
    if not m.own_curve:
        return not_applicable("delta curve", "It states no delta curve of its own.")
    gaps = [0.0]
    for _x, _x_prime, distance, promise, P, Q in _promised(m):
        for e in epsilons(promise):
            true, stated = hockey_stick(P, Q, e), m.delta_at(e, distance)
            gaps.append((true - stated - ROUNDING) / max(stated, ROUNDING))
            if subject.is_whole(m) and true > ROUNDING / CLOSE:
                gaps.append(abs(m.delta_at(e, _alone(distance)) / true - 1))
    sentences = "Its delta curve is right.", "Its delta curve is below the truth, or not exact where it should be."
    return found("delta curve", max(gaps), CLOSE, sentences)


def claims_pure(m: Subject) -> bool:
    """Tell whether the mechanism promises a pure epsilon."""
    return isinstance(m.guarantee(m.pairs()[0][2]), Pure)
