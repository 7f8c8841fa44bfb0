"""What mechanisms for unknown keys share: units in several groups, and the split of delta among these."""

import math
from fractions import Fraction

from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.mechanisms.contract import Distance
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["all_but", "moved", "read_promise", "share"]

_PLACES = 160  # of deltas that are not exact


def moved(distance: Distance, groups: int, neighbours: Neighbours, weight: int = 1) -> Sensitivity:
    """Return how far a number of units, in up to `groups` groups each, move the counts, each by up to `weight`.

    >>> moved(1, 3, Neighbours.REPLACE)
    Sensitivity(l1='6', l2_squared='6', linf='1', l0=6, neighbours=REPLACE)
    >>> moved(1, 3, Neighbours.ADD_REMOVE, weight=5)
    Sensitivity(l1='15', l2_squared='75', linf='5', l0=3, neighbours=ADD_REMOVE)
    """
    if isinstance(distance, Sensitivity):
        return distance
    number = fraction(distance, "distance")
    if number.denominator != 1 or number < 0:
        raise InputError("distance must be a whole number of units, at least 0.")
    if not isinstance(neighbours, Neighbours):
        raise InputError("neighbours must be Neighbours.ADD_REMOVE or Neighbours.REPLACE.")
    units, keys = int(number), groups * (2 if neighbours is Neighbours.REPLACE else 1)
    steps, most = units * keys, units * weight
    return Sensitivity(weight * steps, weight * most * steps, most, steps, neighbours=neighbours)


def read_promise(guarantee: Promise) -> Approx:
    """Return an (epsilon, delta) promise with both above 0; nothing else can be kept where keys are not known.

    A group that only one unit holds is named with some probability with the unit, and never without.
    """
    if not isinstance(guarantee, Approx) or not guarantee.delta:
        raise InputError("Keys that are not known in advance need a delta above 0: ask for Approx(epsilon, delta).")
    if guarantee.delta < Fraction(1, 10**30):
        raise InputError("delta must be at least 1e-30: a usual one is '1e-6'.")
    if not guarantee.epsilon:
        raise InputError("The guarantee allows no release at all: its epsilon must be above 0.")
    return guarantee


def all_but(delta: Fraction, keys: int) -> Fraction:
    """1 - (1 - delta)^keys, rounded up by at most 2^-140 or so: the chance that one of `keys` events happens.

    >>> all_but(Fraction(1, 4), 1), float(all_but(Fraction(1, 10), 2))
    (Fraction(1, 4), 0.19)
    """
    if keys == 1 or delta >= 1:
        return min(delta, Fraction(1))
    one = 1 << _PLACES
    none, power, left = one, math.floor((1 - delta) * one), keys
    while left:  # (1 - delta)^keys by squaring, each product rounded down
        if left % 2:
            none = none * power >> _PLACES
        power, left = power * power >> _PLACES, left // 2
    return min(Fraction(one - none, one), keys * delta)


def share(delta: Fraction, keys: int) -> Fraction:
    """1 - (1 - delta)^(1/keys), rounded down: the delta of each of `keys` groups.

    >>> share(Fraction(19, 100), 2) <= Fraction(1, 10), float(share(Fraction(19, 100), 2))
    (True, 0.1)
    """
    if whole(keys, "groups") == 1:
        return delta
    low, high = delta / keys, delta  # (1 - d)^k >= 1 - k d, so delta / keys is safe
    for _ in range(60):
        middle = Fraction(math.floor((low + high) / 2 * 2**_PLACES), 2**_PLACES)
        low, high = (middle, high) if all_but(middle, keys) <= delta else (low, middle)
    return low
