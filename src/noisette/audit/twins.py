"""Broken twins: mechanisms that lie in one way each, to prove that the contract can tell.

A twin has the class, the parameters and all statements of an honest mechanism but for one method. `TWINS` names for
each lie the checks that must convict it. Where a lie makes no sense for a mechanism, its maker returns the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from noisette.audit import subject
from noisette.audit.checks.privacy import reached
from noisette.audit.subject import Subject
from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import (
    Gaussian,
    Geometric,
    Keep,
    Laplace,
    Quantile,
    RandomizedResponse,
    Staircase,
    TruncatedGeometric,
)
from noisette.privacy import ZCDP, Approx, Promise, Pure

__all__ = ["TWINS", "Twin", "twin"]

Made = Subject | str
"""A twin, or the reason why there is none."""


@dataclass(frozen=True)
class Twin:
    """One lie: how it is made, and the checks of which at least one must convict it."""

    lie: str
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


def scaled(m: Subject, factor: Fraction) -> Subject:
    """Return an honest mechanism of the same kind with noise of another size."""
    if hasattr(m, "scale"):
        return replace(m, scale=m.scale * factor)
    return replace(m, sigma=m.sigma * factor) if hasattr(m, "sigma") else replace(m, epsilon=m.epsilon / factor)


def noise_times(factor: Fraction) -> Callable[[Subject], Made]:
    return lambda m: lying(m, __call__=released_by(scaled(m, factor)))


def _half_noise(m: Subject) -> Made:
    if subject.is_vector(m):
        return "Vectors are drawn one by one, too few for a black-box attack to see this; `quiet` is the twin to catch."
    if subject.is_table(m):
        return "The output that tells most is too rare for a black-box attack to see; `quiet` is the twin to catch."
    if subject.is_choice(m):
        return "Choices are drawn one by one, too few for a black-box attack to see this; `quiet` is the twin to catch."
    if isinstance(m, Keep):
        return "A table for twice the epsilon keeps both groups of the attacked pair; `quiet` is the twin to catch."
    return noise_times(Fraction(1, 2))(m)


def _within(m: Subject, y: Any) -> Any:
    """Put an output back where the mechanism's outputs are."""
    if isinstance(m, RandomizedResponse):
        return y % m.categories
    if isinstance(m, Quantile):
        return y % m.cells
    if subject.is_choice(m):
        return int(y) % m.candidates
    if isinstance(m, TruncatedGeometric):
        y = np.clip(y, m.low, m.high)
    return y if np.ndim(y) else y.item() if isinstance(y, np.generic) else y


def _one_cell_further(m: Subject) -> Made:
    move = int(subject.step(m)) if subject.is_whole(m) else float(subject.step(m))
    return lying(m, __call__=released_by(lambda x: _within(m, np.add(m(x), move))))


def _zero_twice(m: Subject) -> Made:
    """A fair sign without rejecting -0: P(0) grows from p to 2p / (1 + p), as if noise were reset with p / (1 + p)."""
    if isinstance(m, TruncatedGeometric):
        untruncated: Any = _zero_twice(Geometric(m.scale))
        return lying(m, __call__=released_by(lambda x: _within(m, untruncated(x))))
    if not isinstance(m, Geometric | Laplace | Staircase | Gaussian):
        return "Its noise has no sign of its own."
    p, cell = float(m.law.pmf(0)), float(subject.step(m))

    def release(x: Any) -> Any:
        y, reset = m(x), np.random.default_rng().random(np.shape(x)) < p / (1 + p)
        exact = np.rint(np.asarray(x, float) / cell) * cell if not subject.is_whole(m) else x
        return np.where(reset, exact, y)[()]

    return lying(m, __call__=released_by(release))


def restated(change: Callable[[Promise], Promise]) -> Callable[[Subject], Made]:
    def make(m: Subject) -> Made:
        return lying(m, guarantee=lambda self, *distance: change(m.guarantee(*distance)))

    return make


def _modest(m: Subject) -> Made:
    part = min(Fraction(reached(m, *pair)) for pair in m.pairs())
    return restated(times(part * 9 / 10))(m)


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


def without_relation(g: Promise) -> Promise:
    return type(g)(*g.numbers.values())


def _same_noise(m: Subject) -> Made:
    if subject.is_vector(m):
        noise = np.subtract(m(subject.origin(m)), subject.origin(m))
        return lying(m, __call__=released_by(lambda x: np.add(x, noise)))
    if subject.is_choice(m):
        chosen = m(subject.drawn(m, None))
        return lying(m, __call__=released_by(lambda x: chosen))
    if subject.is_table(m):
        return lying(m, __call__=released_by(lambda x: np.full(np.shape(x)[:-1], np.ravel(m(x))[0])[()]))
    return lying(m, __call__=released_by(lambda x: np.full(np.shape(x), m(np.ravel(x)[:1])[0])[()]))


def _off_the_lattice(m: Subject) -> Made:
    third = float(subject.step(m)) / 3
    return lying(m, __call__=released_by(lambda x: np.add(m(x), third)))


def _floating(m: Subject) -> Made:
    if subject.is_whole(m) or not isinstance(m, Laplace | Gaussian):
        return "There is no floating-point sampler that it would be mistaken for."
    generator = np.random.default_rng()

    def release(self: Subject, x: Any, rng: Random = SYSTEM) -> Any:
        size = np.shape(x)
        if hasattr(self, "scale"):
            return x + generator.laplace(scale=float(self.scale), size=size)
        return x + generator.normal(scale=float(self.sigma), size=size)

    return lying(m, __call__=release)


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


def _boasting(m: Subject) -> Made:
    return lying(m, variance=lambda self, *people, **share: 0.9 * m.variance(*people, **share))


def _narrow(m: Subject) -> Made:
    if isinstance(m, RandomizedResponse):
        return lying(m, interval=lambda self, level, people=1: m.interval(level, people=people) / 10)
    if isinstance(m, Quantile):
        return lying(m, interval=lambda self, level=0.95: 0.9 * m.interval(level))
    return lying(m, interval=lambda self, level=0.95: m.interval(level) - float(subject.step(m)))


def _wide(m: Subject) -> Made:
    if isinstance(m, RandomizedResponse | TruncatedGeometric | Quantile):
        return "Its interval is stated as a bound."
    return lying(m, interval=lambda self, level=0.95: m.interval(level) + float(subject.step(m)))


def _too_much_probability(m: Subject) -> Made:
    return lying(m, pmf=lambda self, y, x: 1.01 * m.pmf(y, x))


def _low_curve(m: Subject) -> Made:
    if not hasattr(m, "delta_at"):
        return "It states no delta curve of its own."
    return lying(m, delta_at=lambda self, *arguments: 0.5 * m.delta_at(*arguments))


TWINS: Final[dict[str, Twin]] = {
    "quiet": Twin("Its noise is 0.8 times what it states.", noise_times(Fraction(4, 5)), ("arrays", "one by one")),
    "loud": Twin("Its noise is 1.25 times what it states.", noise_times(Fraction(5, 4)), ("arrays", "one by one")),
    "half": Twin("Its noise is half of what it states.", _half_noise, ("black box",)),
    "shifted": Twin("It answers one cell too high.", _one_cell_further, ("arrays", "one by one")),
    "zero twice": Twin("It counts zero once for each sign.", _zero_twice, ("arrays", "one by one")),
    "modest claim": Twin("It claims 0.9 of the epsilon or rho that its worst pair has.", _modest, ("private", "loss")),
    "immodest claim": Twin("It claims 1.25 of its epsilon or rho.", restated(times(Fraction(5, 4))), ("tight",)),
    "no relation": Twin("It forgets the neighbouring relation.", restated(without_relation), ("relations",)),
    "same noise": Twin("It draws noise once and uses it again.", _same_noise, ("independent",)),
    "off the lattice": Twin("It answers between lattice points.", _off_the_lattice, ("lattice",)),
    "floating": Twin("It adds floating-point noise.", _floating, ("lattice", "floating point")),
    "credulous": Twin("It takes any answer.", credulous, ("refusals",)),
    "indiscreet": Twin("It quotes answers in errors.", indiscreet, ("refusals",)),
    "boasting": Twin("It states 0.9 of its variance.", _boasting, ("variance",)),
    "narrow": Twin("Its intervals are a cell too narrow.", _narrow, ("interval",)),
    "wide": Twin("Its intervals are a cell too wide.", _wide, ("interval",)),
    "too probable": Twin("Its probabilities sum to 1.01.", _too_much_probability, ("sums to one",)),
    "low curve": Twin("Its delta curve is half the truth.", _low_curve, ("delta curve",)),
}


def twin(name: str, mechanism: Subject) -> Made:
    """Return the broken twin of a mechanism, or the reason why it has none.

    >>> twin("zero twice", RandomizedResponse(1))
    'Its noise has no sign of its own.'
    >>> twin("modest claim", Geometric(1)).guarantee(1)
    Pure('9/10')
    """
    return TWINS[name].make(mechanism)
