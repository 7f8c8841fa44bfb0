"""Broken twins: mechanisms that lie in one way each, to prove that the contract convicts them.

A twin has the class, the parameters and all statements of an honest mechanism, except for one method. `TWINS` says of
each lie for which kinds of mechanisms it makes sense, and which checks must convict it. Where a single mechanism cannot
tell the lie, its maker returns the reason.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from noisette.audit import subject
from noisette.audit.checks import outcomes, sampling
from noisette.audit.checks.privacy import reached
from noisette.audit.divergence import hockey_stick, laws_of
from noisette.audit.subject import ENUMERATED, Subject, scaled
from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.exact.random import SYSTEM, Random
from noisette.laws import DiscreteGaussian, DiscreteLaplace
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.options import options_of
from noisette.privacy import ZCDP, Approx, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["TWINS", "Twin", "twins_of"]

Made = Subject | str
"""A twin, or the reason why there is none."""


@dataclass(frozen=True)
class Twin:
    """One lie: the kinds that can tell it, how it is made, and the checks of which at least one must convict it."""

    name: str
    lie: str
    kinds: frozenset[Output]
    make: Callable[[Subject], Made]
    convicted_by: tuple[str, ...]


def lying(m: Subject, **methods: Any) -> Subject:
    """Return a copy of a frozen value whose class has other methods."""
    copy: Any = object.__new__(type(f"Lying{type(m).__name__}", (type(m),), methods))
    vars(copy).update(vars(m))
    return copy


def released_by(release: Callable[[Any], Any]) -> Callable[..., Any]:
    def __call__(self: Subject, x: Any, rng: Random = SYSTEM) -> Any:  # noqa: N807
        return release(x)

    return __call__


# The noise


def noise_times(factor: Fraction) -> Callable[[Subject], Made]:
    def make(m: Subject) -> Made:
        try:
            return lying(m, __call__=released_by(scaled(m, factor)))
        except InputError:
            return "Noise of that size would be another mechanism."

    return make


def _half_noise(m: Subject) -> Made:
    """Vectors, tables and choices have no such twin: they are drawn one by one, too few for a black-box attack."""
    half = scaled(m, Fraction(1, 2))
    x, x_prime, distance = sampling.neighbours(m)
    epsilon, delta = sampling.stated(m, distance)
    if m.kind is Output.GROUPS and hockey_stick(*laws_of(half, x, x_prime), epsilon) <= 2 * delta:
        return "The attacked pair hardly shows it; `quiet` is the twin to catch."
    return lying(m, __call__=released_by(half))


def _within(m: Subject, y: Any) -> Any:
    """Put an output back where the mechanism's outputs are."""
    match m.kind:
        case Output.REPORT:
            return y % m.categories
        case Output.TABLE:
            return y % m.cells
        case Output.CHOICE:
            return int(y) % m.candidates
        case Output.CLAMPED:
            y = np.clip(y, m.low, m.high)
    return y if np.ndim(y) else y.item() if isinstance(y, np.generic) else y


def _one_cell_further(m: Subject) -> Made:
    move = int(subject.step(m)) if subject.is_whole(m) else float(subject.step(m))
    return lying(m, __call__=released_by(lambda x: _within(m, np.add(m(x), move))))


def _zero_twice(m: Subject) -> Made:
    """A fair sign without rejecting -0: P(0) grows from p to 2p / (1 + p), as if noise were reset with p / (1 + p)."""
    if m.kind is Output.CLAMPED:
        unclamped: Any = _zero_twice(m.unclamped)
        return lying(m, __call__=released_by(lambda x: _within(m, unclamped(x))))
    p, cell = float(m.law.pmf(0)), float(subject.step(m))

    def release(x: Any) -> Any:
        y, reset = m(x), np.random.default_rng().random(np.shape(x)) < p / (1 + p)
        exact = np.rint(np.asarray(x, float) / cell) * cell if not subject.is_whole(m) else x
        return np.where(reset, exact, y)[()]

    return lying(m, __call__=released_by(release))


def _same_noise(m: Subject) -> Made:
    match m.kind:
        case Output.VECTOR:
            noise = np.subtract(m(subject.origin(m)), subject.origin(m))
            return lying(m, __call__=released_by(lambda x: np.add(x, noise)))
        case Output.CHOICE:
            chosen = m(subject.drawn(m, None))
            return lying(m, __call__=released_by(lambda x: chosen))
        case Output.TABLE:
            return lying(m, __call__=released_by(lambda x: np.full(np.shape(x)[:-1], np.ravel(m(x))[0])[()]))
        case _:
            return lying(m, __call__=released_by(lambda x: np.full(np.shape(x), m(np.ravel(x)[:1])[0])[()]))


def _every_answer_twice(m: Subject) -> Made:
    released: dict[Any, Any] = {}

    def release(x: Any) -> Any:
        key = repr(x)
        once = released.pop(key, None)
        if once is not None:
            return once[0]
        released[key] = (m(x),)
        return released[key][0]

    return lying(m, __call__=released_by(release))


def _off_the_lattice(m: Subject) -> Made:
    third = float(subject.step(m)) / 3
    return lying(m, __call__=released_by(lambda x: np.add(m(x), third)))


def _floating(m: Subject) -> Made:
    generator = np.random.default_rng()
    match m.law:
        case _ if subject.is_whole(m):
            return "It releases whole numbers."
        case DiscreteLaplace(scale=scale):
            size = float(scale * m.grid)
            return lying(m, __call__=released_by(lambda x: x + generator.laplace(scale=size, size=np.shape(x))))
        case DiscreteGaussian(sigma2=sigma2):
            size = float(sigma2) ** 0.5 * float(m.grid)
            return lying(m, __call__=released_by(lambda x: x + generator.normal(scale=size, size=np.shape(x))))
        case _:
            return "There is no floating-point sampler that it would be mistaken for."


# What it claims


def restated(change: Callable[[Promise], Promise]) -> Callable[[Subject], Made]:
    def make(m: Subject) -> Made:
        return lying(m, guarantee=lambda self, *distance: change(m.guarantee(*distance)))

    return make


def _modest(m: Subject) -> Made:
    part = min(Fraction(reached(m, *pair)) for pair in m.pairs())
    return restated(times(part * 9 / 10))(m)


def _modest_outcome(m: Subject) -> Made:
    return restated(delta_too(Fraction(min(1.0, outcomes.reached(m))) * 9 / 10))(m)


def _immodest_outcome(m: Subject) -> Made:
    part = outcomes.reached(m)
    if math.isinf(part):
        return "A pair has an outcome without a counterpart, for which no claim is too large."
    return restated(delta_too(Fraction(5, 4) * Fraction(max(1.0, part)) / Fraction(m.tightness)))(m)


def times(factor: Fraction) -> Callable[[Promise], Promise]:
    def change(g: Promise) -> Promise:
        match g:
            case Pure():
                return Pure(g.epsilon * factor, neighbours=g.neighbours)
            case ZCDP():
                return ZCDP(g.rho * factor, neighbours=g.neighbours)
            case Approx():
                return Approx(g.epsilon * factor, g.delta, neighbours=g.neighbours)

    return change


def delta_too(factor: Fraction) -> Callable[[Promise], Promise]:
    """Both epsilon and delta, or rho, times a factor."""

    def change(promise: Promise) -> Promise:
        if not isinstance(promise, Approx):
            return times(factor)(promise)
        delta = min(factor * promise.delta, Fraction(99, 100))
        return Approx(factor * promise.epsilon, delta, neighbours=promise.neighbours)

    return change


def without_relation(g: Promise) -> Promise:
    return type(g)(*g.numbers.values())


# How it takes inputs


def credulous(m: Subject) -> Made:
    def release(x: Any) -> Any:
        try:
            return m(x)
        except InputError:
            return 0

    return lying(m, __call__=released_by(release))


def indiscreet(m: Subject) -> Made:
    def release(x: Any) -> Any:
        try:
            return m(x)
        except InputError:
            raise InputError(f"The answer {x} cannot be used.") from None

    return lying(m, __call__=released_by(release))


# What it is calibrated for


def _calibrated_for(change: Callable[[Distance], Distance]) -> Callable[[Subject], Made]:
    def make(m: Subject) -> Made:
        kind: type[Mechanism] = type(m)
        if m.sized_by in options_of(kind):
            return "The size of its noise is an option, and something else is calibrated."
        known = kind.calibrated

        def calibrated(_: type, /, promise: Promise, sensitivity: Distance = 1, **options: Any) -> Subject:
            return known(promise, change(sensitivity), **options)

        return lying(m, calibrated=classmethod(calibrated))

    return make


def _forgotten(_: Distance) -> Distance:
    return 1


def _twice(sensitivity: Distance) -> Distance:
    return sensitivity if isinstance(sensitivity, Sensitivity) else 2 * fraction(sensitivity, "sensitivity")


# What it tells users to expect


def _boasting(m: Subject) -> Made:
    return lying(m, variance=lambda self, *people, **share: 0.9 * m.variance(*people, **share))


def _narrow(m: Subject) -> Made:
    if m.kind is Output.REPORT:
        return lying(m, interval=lambda self, level, people=1: m.interval(level, people=people) / 10)
    if m.kind is Output.TABLE:
        return lying(m, interval=lambda self, level=0.95: 0.9 * m.interval(level))
    return lying(m, interval=lambda self, level=0.95: m.interval(level) - float(subject.step(m)))


def _wide(m: Subject) -> Made:
    return lying(m, interval=lambda self, level=0.95: m.interval(level) + float(subject.step(m)))


def _too_much_probability(m: Subject) -> Made:
    if m.kind is Output.OUTCOME:
        return lying(m, outcomes=lambda _, x: {y: 1.01 * p for y, p in m.outcomes(x).items()})
    return lying(m, pmf=lambda self, y, x: 1.01 * m.pmf(y, x))


def _low_curve(m: Subject) -> Made:
    if not m.own_curve:
        return "It states no delta curve of its own."
    return lying(m, delta_at=lambda self, *arguments: 0.5 * m.delta_at(*arguments))


_ALL = frozenset(Output)
_OUTCOME = frozenset({Output.OUTCOME})
_NUMBERS = frozenset({Output.NUMBERS})
_RANGES = frozenset({Output.NUMBERS, Output.CLAMPED})
_ALONE = _RANGES | {Output.GROUPS, Output.REPORT}
_EXACT = ENUMERATED - {Output.CLAMPED, Output.REPORT, Output.TABLE}  # intervals that are no wider than they must be
_DRAWN = ("arrays", "one by one")

TWINS: Final[tuple[Twin, ...]] = (
    Twin("quiet", "Its noise is 0.8 times what it states.", _ALL, noise_times(Fraction(4, 5)), _DRAWN),
    Twin("loud", "Its noise is 1.25 times what it states.", _ALL, noise_times(Fraction(5, 4)), _DRAWN),
    Twin("half", "Its noise is half of what it states.", _ALONE, _half_noise, ("black box",)),
    Twin("shifted", "It answers one cell too high.", ENUMERATED, _one_cell_further, _DRAWN),
    Twin("zero twice", "It counts zero once for each sign.", _RANGES, _zero_twice, _DRAWN),
    Twin("same noise", "It draws noise once and uses it again.", ENUMERATED, _same_noise, ("independent",)),
    Twin("same noise", "It gives every answer twice.", _OUTCOME, _every_answer_twice, ("independent",)),
    Twin("off the lattice", "It answers between lattice points.", ENUMERATED, _off_the_lattice, ("lattice",)),
    Twin("floating", "It adds floating-point noise.", _NUMBERS, _floating, ("lattice", "floating point")),
    Twin(
        "telling",
        "It releases its input.",
        _OUTCOME,
        lambda m: lying(m, __call__=released_by(repr)),
        ("black box",),
    ),
    Twin("modest claim", "It claims 0.9 of what its worst pair shows.", ENUMERATED, _modest, ("private", "loss")),
    Twin("modest claim", "It claims 0.9 of what its worst pair shows.", _OUTCOME, _modest_outcome, ("private",)),
    Twin(
        "immodest claim",
        "It claims 1.25 of its epsilon or rho.",
        ENUMERATED,
        restated(times(Fraction(5, 4))),
        ("tight",),
    ),
    Twin("immodest claim", "It claims 1.25 of its epsilon or rho.", _OUTCOME, _immodest_outcome, ("tight",)),
    Twin(
        "forgetful",
        "It forgets the sensitivity that it is calibrated for.",
        _ALL,
        _calibrated_for(_forgotten),
        ("calibrated",),
    ),
    Twin("wasteful", "It is calibrated for twice the sensitivity.", _ALL, _calibrated_for(_twice), ("calibrated",)),
    Twin("no relation", "It forgets the neighbouring relation.", _ALL, restated(without_relation), ("relations",)),
    Twin("low curve", "Its delta curve is half the truth.", ENUMERATED, _low_curve, ("delta curve",)),
    Twin("credulous", "It takes any input.", _ALL, credulous, ("refusals",)),
    Twin("indiscreet", "It quotes inputs in errors.", _ALL, indiscreet, ("refusals",)),
    Twin("boasting", "It states 0.9 of its variance.", ENUMERATED, _boasting, ("variance",)),
    Twin(
        "boasting",
        "It states that it never errs.",
        _OUTCOME,
        lambda m: lying(m, interval=lambda *_: 0.0),
        ("interval",),
    ),
    Twin("narrow", "Its intervals are a cell too narrow.", ENUMERATED, _narrow, ("interval",)),
    Twin("wide", "Its intervals are a cell too wide.", _EXACT, _wide, ("interval",)),
    Twin("too probable", "Its probabilities sum to 1.01.", _ALL, _too_much_probability, ("sums to one",)),
)


def twins_of(mechanism: Subject) -> dict[str, Twin]:
    """Return the lies that a mechanism's kind can tell, by name.

    >>> from noisette.mechanisms import Geometric
    >>> twins_of(Geometric(1))["modest claim"].make(Geometric(1)).guarantee(1)
    Pure('9/10')
    """
    return {twin.name: twin for twin in TWINS if mechanism.kind in twin.kinds}
