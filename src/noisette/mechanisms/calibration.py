"""From a promise to a mechanism: `calibrate`, and how mechanisms read promises, sensitivities and grids."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, TypeVar

from noisette.errors import InputError, PrivacyError
from noisette.exact.frozen import Read
from noisette.exact.number import Number, floor_log2, fraction, positive, whole
from noisette.exact.rational import sqrt_down
from noisette.mechanisms.contract import Distance, Mechanism
from noisette.mechanisms.options import check_options
from noisette.privacy.convert import gaussian_distance, pure_within_approx, pure_within_zcdp, range_within_approx
from noisette.privacy.guarantee import ZCDP, Approx, Promise, Pure
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.promise import Spend, as_promise
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["calibrate"]

M = TypeVar("M", bound=Mechanism)

GRID_BITS = 30
Grid: TypeAlias = Read[Number | None, Fraction]
"""The field of a grid; None stands for one that `read_grid` chooses."""

_LARGE = 100  # from this epsilon of one release on, tight composition hardly gains anything


def calibrate(
    mechanism: type[M],
    guarantee: Spend | None = None,
    *,
    sensitivity: Distance = 1,
    times: int = 1,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    **options: Any,
) -> M:
    """Return the most accurate mechanism of a kind that keeps a guarantee; a bare number is a pure epsilon.

    The guarantee may be written as `epsilon`, with or without `delta`, or as `rho` instead. With `times`, that many
    releases of it together keep the guarantee, by tight composition. What a mechanism returns is held to the guarantee:
    one that does not keep it is refused, whoever wrote it.

    >>> from noisette.mechanisms import Geometric
    >>> calibrate(Geometric, Pure("1/2"), sensitivity=3)
    Geometric(scale=6)
    >>> calibrate(Geometric, epsilon="1/2", sensitivity=3)
    Geometric(scale=6)
    >>> round(float(calibrate(Geometric, Approx(1, "1e-6"), times=100).scale), 2)      # 100 by plain addition
    41.65
    """
    promise = _guarantee(guarantee, epsilon, delta, rho)
    check_options(mechanism, options)
    agreed(promise, sensitivity)
    if whole(times, "times") > 1:
        return _shared(mechanism, promise, sensitivity, times, options)
    made = mechanism.calibrated(promise, sensitivity, **options)
    assert isinstance(made, mechanism)
    if not keeps(made, promise, sensitivity):
        raise PrivacyError(
            f"{mechanism.__name__} does not keep {promise} at the sensitivity it was calibrated for: "
            "its method `calibrated` is wrong, so use another mechanism."
        )
    return made


def keeps(made: Mechanism, promise: Promise, sensitivity: Distance) -> bool:
    """Whether a mechanism keeps a promise, by its guarantee, or by its own delta where that says more.

    One that refuses to state a guarantee at that sensitivity keeps none.

    >>> from noisette.mechanisms import Geometric
    >>> keeps(Geometric(6), Pure("1/2"), 3), keeps(Geometric(6), Pure("1/2"), 4)
    (True, False)
    """
    try:
        if made.guarantee(sensitivity) <= promise:
            return True
    except (InputError, PrivacyError):
        return False
    if not isinstance(promise, Approx) or not made.own_curve:
        return False
    return Fraction(made.delta_at(promise.epsilon, sensitivity)) <= promise.delta


def _guarantee(given: Spend | None, epsilon: Number | None, delta: Number | None, rho: Number | None) -> Promise:
    """The guarantee, however it is written."""
    written = [part is not None for part in (given, epsilon, rho)]
    if sum(written) != 1 or (delta is not None and epsilon is None):
        raise InputError("Say the guarantee once: Pure(1), epsilon=1, epsilon=1 with delta='1e-6', or rho='0.5'.")
    if rho is not None:
        return ZCDP(rho)
    if epsilon is not None:
        return Pure(epsilon) if delta is None else Approx(epsilon, delta)
    assert given is not None
    return as_promise(given, "guarantee")


def _shared(mechanism: type[M], promise: Promise, sensitivity: Distance, times: int, options: dict[str, Any]) -> M:
    """The mechanism with the least noise for which `times` releases keep the promise, to a relative 1e-4.

    A large epsilon is divided evenly: the loss is then nearly certain to be near its bound, so tight composition would
    gain about 1 in each release, at most a hundredth, and its lattice would grow with epsilon.
    """

    def one(share: Promise) -> M:
        return calibrate(mechanism, share, sensitivity=sensitivity, **options)

    match promise:
        case Pure() | Approx(delta=0):
            return one(Pure(promise.epsilon / times, neighbours=promise.neighbours))
        case ZCDP():
            return one(ZCDP(promise.rho / times, neighbours=promise.neighbours))
        case Approx():
            pass
    concentrated = not _keeps_pure(mechanism, promise, sensitivity, options)
    if not concentrated and promise.epsilon >= _LARGE * times:
        return one(Pure(promise.epsilon / times, neighbours=promise.neighbours))

    def share(budget: Fraction) -> Promise:
        kind = ZCDP if concentrated else Pure
        return kind(budget, neighbours=promise.neighbours)

    @cache
    def delta(budget: Fraction) -> float:
        return (one(share(budget)).guarantee(sensitivity) * times).delta_at(promise.epsilon)

    near = Fraction(gaussian_distance(promise.epsilon, promise.delta)) ** 2 / 2 / times if concentrated else None
    low = promise.epsilon**2 / (100 * times * (1 - _log(promise.delta))) if concentrated else promise.epsilon / times
    start = near or (_pure_within(promise) / times if not concentrated else None)
    if start:
        low = low * (1 << max(0, floor_log2(start / low))) if low else start
    while delta(low) > promise.delta:
        low /= 2
    high = 2 * low
    while delta(high) <= promise.delta:
        low, high = high, 2 * high
    monotone = options.get("grid") is None
    low, high = halved(delta, promise.delta, low, high, times=13, monotone=monotone, near=near)
    while high > low * Fraction(10001, 10000):
        low, high = halved(delta, promise.delta, low, high, times=1)
    return one(share(low))


def _pure_within(promise: Approx) -> Fraction:
    """About the largest total t for which Pure(t) keeps the promise: (e^t - e^epsilon)/(e^t + 1) <= delta."""
    e, delta = float(promise.epsilon), float(promise.delta)
    return Fraction(e + math.log1p(delta * math.exp(-e)) - math.log1p(-delta)) if delta < 1 else promise.epsilon


def _log(delta: Fraction) -> Fraction:
    return Fraction(math.log(delta.numerator) - math.log(delta.denominator))


def halved(
    delta: Callable[[Fraction], float],
    most: Fraction,
    inside: Fraction,
    outside: Fraction,
    *,
    times: int,
    monotone: bool = True,
    near: Fraction | None = None,
) -> tuple[Fraction, Fraction]:
    """Halve an interval several times, keeping delta <= most at the end `inside` and delta > most at the other.

    Bisection finds the same ends where delta is monotone, in more steps. Here delta is computed where the line through
    the logarithms at both ends meets that of `most`, or the line through the deltas where one is 0. An end that stays
    counts half the next time (the Illinois algorithm, Dowell-Jarratt 1971); too many steps end in bisection. So does
    a delta that is not monotone, such as that of whole Gaussian noise with a sigma below 1. `near` is where delta is
    expected to meet `most`, if that is known.

    >>> places = []
    >>> def delta(x):
    ...     places.append(x)
    ...     return float(x) ** 9
    >>> low, high = halved(delta, Fraction(1, 100), Fraction(1, 2), Fraction(1), times=40)
    >>> delta(low) <= 0.01 < delta(high), high - low == Fraction(1, 2**41), len(places)
    (True, True, 12)
    """
    step, target, last = (outside - inside) / 2**times, float(most), None
    places, weights = [0, 2**times], [1.0, 1.0]
    deltas = [delta(inside), delta(outside)] if monotone else [0.0, 1.0]
    first = math.floor(((near or inside) - inside) / step)
    guesses = [first, first + 1] if near is not None and monotone else []
    for count in itertools.count(0 if monotone else times):
        if places[1] - places[0] == 1:
            break
        scale = math.log if deltas[0] and target else float
        under, over = (abs(scale(d) - scale(target)) * weight for d, weight in zip(deltas, weights, strict=True))
        share = under / (under + over) if count < times and under + over else 0.5
        place = places[0] + int((places[1] - places[0]) * share)
        place = min(max(guesses.pop(0) if guesses else place, places[0] + 1), places[1] - 1)
        found = delta(inside + place * step)
        end = int(found > most)
        places[end], deltas[end], weights[end] = place, found, 1.0
        weights[1 - end] = weights[1 - end] / 2 if end == last else 1.0
        last = end
    return inside + places[0] * step, inside + places[1] * step


def _keeps_pure(mechanism: type[M], promise: Approx, sensitivity: Distance, options: dict[str, Any]) -> bool:
    """Tell whether a mechanism can keep a pure guarantee at all."""
    try:
        mechanism.calibrated(Pure(promise.epsilon, neighbours=promise.neighbours), sensitivity, **options)
    except InputError:
        return False
    return True


def read_distance(distance: Distance, norm: float) -> tuple[Fraction, Neighbours | None]:
    """Return the distance in a norm, rounded up where it is irrational, and the relation if one is named."""
    if isinstance(distance, Sensitivity):
        return distance.norm(norm), distance.neighbours
    value = fraction(distance, "distance")
    if value < 0:
        raise InputError("distance must be at least 0.")
    return value, None


def whole_records(distance: Distance) -> tuple[int, Neighbours | None]:
    """How many records differ, a started one counted whole, and the relation if one is named.

    Of a histogram, a record that is added or removed moves one count by one, and a record that is replaced two.
    """
    if isinstance(distance, Sensitivity) and distance.neighbours is Neighbours.REPLACE:
        return math.ceil(max(distance.linf, distance.l1 / 2)), Neighbours.REPLACE
    d, named = read_distance(distance, 1)
    return math.ceil(d), named


def agreed_records(guarantee: Promise, sensitivity: Distance) -> tuple[int, Neighbours]:
    """How many records of one person a promise is for, at least one, and under which relation."""
    agreed(guarantee, sensitivity)
    records, named = whole_records(sensitivity)
    if not records:
        raise InputError("sensitivity must be above 0: it is how many records one person can have.")
    return records, named or guarantee.neighbours or Neighbours.ADD_REMOVE


def read_sensitivity(sensitivity: Distance, norm: float) -> Fraction:
    """Return a sensitivity to calibrate for; it must be above zero."""
    if isinstance(sensitivity, Sensitivity):
        sensitivity = sensitivity.norm(norm)
    return positive(sensitivity, "sensitivity")


def pure_epsilon(guarantee: Promise) -> Fraction:
    """Return the largest epsilon, rounded down, for which every epsilon-DP mechanism keeps the guarantee."""
    match guarantee:
        case Pure():
            epsilon = guarantee.epsilon
        case Approx():
            epsilon = pure_within_approx(guarantee.epsilon, guarantee.delta)
        case ZCDP():
            epsilon = pure_within_zcdp(guarantee.rho)
    if epsilon <= 0:
        raise InputError("The guarantee allows no release at all: its epsilon or rho must be above 0.")
    return epsilon


def range_epsilon(guarantee: Promise) -> Fraction:
    """Return the largest epsilon, rounded down, for which losses within a range of epsilon keep the guarantee."""
    match guarantee:
        case Approx() if guarantee.epsilon:
            return range_within_approx(guarantee.epsilon, guarantee.delta)
        case ZCDP() if guarantee.rho:
            return sqrt_down(8 * guarantee.rho)
        case _:
            return pure_epsilon(guarantee)


def agreed(guarantee: Promise, sensitivity: Distance) -> None:
    """Refuse a promise under one relation with a sensitivity under another."""
    named = sensitivity.neighbours if isinstance(sensitivity, Sensitivity) else None
    if named and guarantee.neighbours and named is not guarantee.neighbours:
        raise PrivacyError(
            f"The guarantee is stated under {guarantee.neighbours} but the sensitivity under {named}: "
            "compute the sensitivity for the guarantee's relation."
        )


def read_grid(grid: Number | None, size: Fraction, *, bits: int = GRID_BITS) -> Fraction:
    """Return the grid, or a power of two about 2^-bits of the noise's size."""
    if grid is None:
        return Fraction(2) ** (floor_log2(size) - bits)
    step = positive(grid, "grid")
    if step != 1 and step > size:
        raise InputError("grid must not be coarser than the noise: choose a smaller one, or leave it out.")
    return step


def slack(grid: Fraction) -> Fraction:
    """Return what rounding to the grid may add to a distance: nothing for whole numbers (grid 1), else one grid."""
    return Fraction(0) if grid == 1 else grid
