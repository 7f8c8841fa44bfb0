"""Broken twins of procedures: each lies in one way, and the checks it names must convict it."""

from fractions import Fraction
from typing import Any, Final

from noisette.audit.procedures import reached
from noisette.audit.subject import Subject
from noisette.audit.twins import (
    Made,
    Twin,
    credulous,
    indiscreet,
    lying,
    noise_times,
    released_by,
    restated,
    times,
    without_relation,
)
from noisette.errors import InputError
from noisette.privacy import Approx, Promise

__all__ = ["PROCEDURE_TWINS"]


def _noise(factor: Fraction) -> Any:
    def make(m: Subject) -> Made:
        if not hasattr(m, "scale") and not hasattr(m, "epsilon"):
            return "It has no noise of its own to scale."
        try:
            return noise_times(factor)(m)
        except InputError:
            return "Noise of that size would be another mechanism."

    return make


def _claimed(factor: Fraction) -> Any:
    """The same with so much of epsilon and delta, or of rho."""

    def change(promise: Promise) -> Promise:
        if not isinstance(promise, Approx):
            return times(factor)(promise)
        delta = min(factor * promise.delta, Fraction(99, 100))
        return Approx(factor * promise.epsilon, delta, neighbours=promise.neighbours)

    return restated(change)


def _modest(m: Subject) -> Made:
    return _claimed(Fraction(min(1.0, reached(m))) * 9 / 10)(m)


def _immodest(m: Subject) -> Made:
    return _claimed(Fraction(5, 4) * Fraction(max(1.0, reached(m))) / Fraction(m.tightness))(m)


def _same(m: Subject) -> Made:
    released: dict[Any, Any] = {}

    def release(x: Any) -> Any:
        key = repr(x)
        once = released.pop(key, None)
        if once is not None:
            return once[0]
        released[key] = (m(x),)
        return released[key][0]

    return lying(m, __call__=released_by(release))


PROCEDURE_TWINS: Final[dict[str, Twin]] = {
    "quiet": Twin("Its noise is 0.8 times what it states.", _noise(Fraction(4, 5)), ("one by one",)),
    "loud": Twin("Its noise is 1.25 times what it states.", _noise(Fraction(5, 4)), ("one by one",)),
    "modest claim": Twin("It claims 0.9 of what its worst pair shows.", _modest, ("private",)),
    "immodest claim": Twin("It claims 1.25 of its epsilon.", _immodest, ("tight",)),
    "no relation": Twin("It forgets the neighbouring relation.", restated(without_relation), ("relations",)),
    "same noise": Twin("It gives every answer twice.", _same, ("independent",)),
    "credulous": Twin("It takes any input.", credulous, ("refusals",)),
    "indiscreet": Twin("It quotes inputs in errors.", indiscreet, ("refusals",)),
    "boasting": Twin("It states that it never errs.", lambda m: lying(m, interval=lambda *_: 0.0), ("interval",)),
    "too probable": Twin(
        "Its probabilities sum to 1.01.",
        lambda m: lying(m, law=lambda _, x: {y: 1.01 * p for y, p in m.law(x).items()}),
        ("sums to one",),
    ),
    "telling": Twin("It releases its input.", lambda m: lying(m, __call__=released_by(repr)), ("black box",)),
}
