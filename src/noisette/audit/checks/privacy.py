"""Is the stated guarantee true, and is it no larger than it must be? Exact, by enumeration.

Probabilities are floats that are good to about 1e-12: `ROUNDING` is what a comparison of deltas forgives.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.audit import subject
from noisette.audit.divergence import Floats, enumerated, hockey_stick, largest_loss, laws_of, renyi, telling
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

Compared = tuple[float, float, Callable[[], str]]
"""(measured, allowed, what shows it)"""


def sums_to_one(m: Subject, _: Effort) -> Finding:
    """The probabilities of the support sum to one, for each answer of `pairs()`."""
    answers = [x for pair in m.pairs() for x in pair[:2]]
    sums = [math.fsum(enumerated(m, x)[1]) for x in answers]
    x, total = max(zip(answers, sums, strict=True), key=lambda one: abs(1 - one[1]))
    sentences = "The probabilities sum to one.", "The probabilities do not sum to one."
    witness = f"The probabilities of {x} sum to {total}, not to 1."
    return found("sums to one", abs(1 - total), ROUNDING, sentences, witness=lambda: witness)


def _worst(check: str, compared: list[Compared], sentences: tuple[str, str]) -> Finding:
    measured, allowed, witness = max(compared, key=lambda c: c[0] - c[1])
    return found(check, measured, allowed, sentences, witness=witness)


def _pair(m: Subject, x: Any, x_prime: Any, distance: Any, said: str) -> Callable[[], str]:
    """What a pair shows, and the output that tells it apart best."""
    return lambda: f"{x} and {x_prime} at distance {distance}: {said}; the output {telling(m, x, x_prime)} shows most."


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
    compared = []
    for x, x_prime, distance, promise, P, Q in _promised(m):
        for e in epsilons(promise):
            true, stated = hockey_stick(P, Q, e), promise.delta_at(e) + ROUNDING
            said = f"delta({e:.4g}) is {true:.4g}, where {promise} states {stated:.4g}"
            compared.append((true, stated, _pair(m, x, x_prime, distance, said)))
    sentences = "Every worst pair keeps the stated delta(epsilon).", "A pair of neighbours breaks the stated guarantee."
    return _worst("private", compared, sentences)


def _loss(promise: Promise, P: Floats, Q: Floats, orders: tuple[float, ...]) -> tuple[float, float]:
    if isinstance(promise, Approx):
        return hockey_stick(P, Q, float(promise.epsilon)) - _SUMMED, float(promise.delta)
    if isinstance(promise, ZCDP):
        return max(renyi(P, Q, a) / a for a in orders), float(promise.rho)
    return largest_loss(P, Q), float(promise.epsilon)


def bounded_loss(m: Subject, _: Effort) -> Finding:
    """The privacy loss stays below epsilon; for zCDP the Rényi divergence of order a below rho a.

    For (epsilon, delta) the divergence at epsilon stays below delta, however small that is.
    """
    compared: list[Compared] = []
    for x, x_prime, distance, promise, P, Q in _promised(m):
        measured, stated = _loss(promise, P, Q, (1.25, 1.5, 2, 3))
        said = f"{measured:.6g} is reached, where {promise} is stated"
        compared.append((measured, stated * (1 + 1e-9), _pair(m, x, x_prime, distance, said)))
    sentences = (
        "No output distinguishes neighbours better than stated.",
        "Some outputs distinguish neighbours too well.",
    )
    return _worst("loss", compared, sentences)


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
    compared: list[tuple[float, float, str]] = []
    if isinstance(m.guarantee(m.pairs()[0][2]), Approx):
        compared.append((_delta_reached(m), 1 - CLOSE, "No pair reaches its stated delta."))
    for x, x_prime, distance, promise, P, Q in _promised(m):
        if isinstance(promise, Approx):
            continue
        measured, stated = _loss(promise, P, Q, (2, 3))
        said = f"{x} and {x_prime} at distance {distance} reach {measured:.6g} of the stated {promise}."
        compared.append((measured, stated * reached(m, x, x_prime, distance) * (1 - CLOSE), said))
    measured, least, said = min(compared, key=lambda c: c[0] - c[1])
    charged = any(reached(m, *pair) < 1 - CLOSE for pair in m.pairs())
    tight_but = " except for what rounding vectors is charged" if charged else ""
    sentences = f"The guarantee is tight{tight_but}.", "The stated guarantee is larger than any pair shows."
    return found("tight", measured, least, sentences, least=True, witness=lambda: said)


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
    gaps = [(0.0, "")]
    for x, x_prime, distance, promise, P, Q in _promised(m):
        for e in epsilons(promise):
            true, stated = hockey_stick(P, Q, e), m.delta_at(e, distance)
            said = f"{x} and {x_prime} at distance {distance} have delta({e:.4g}) = {true:.6g}, not the stated"
            gaps.append(((true - stated - ROUNDING) / max(stated, ROUNDING), f"{said} {stated:.6g}."))
            if subject.is_whole(m) and true > ROUNDING / CLOSE:
                alone = m.delta_at(e, _alone(distance))
                gaps.append((abs(alone / true - 1), f"{said} {alone:.6g} of a single number."))
    sentences = "Its delta curve is right.", "Its delta curve is below the truth, or not exact where it should be."
    worst, witness = max(gaps)
    return found("delta curve", worst, CLOSE, sentences, witness=lambda: witness)


def claims_pure(m: Subject) -> bool:
    """Tell whether the mechanism promises a pure epsilon."""
    return isinstance(m.guarantee(m.pairs()[0][2]), Pure)
