"""Promises for so many people, of mechanisms that read tables and know the relation of their neighbours."""

import math
from fractions import Fraction

from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.calibration import agreed, pure_epsilon
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import whole_steps
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import powers_up
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["people", "related"]


def people(distance: Distance, neighbours: Neighbours) -> int:
    """Read how many records two tables differ by; a replaced one moves two counts of a histogram.

    >>> from noisette.privacy import sensitivity
    >>> replace = Neighbours.REPLACE
    >>> people(3, replace), people(sensitivity.histogram(neighbours=replace), replace)
    (3, 1)
    """
    if not isinstance(distance, Sensitivity):
        return whole_steps(distance)
    if distance.neighbours is not neighbours:
        raise PrivacyError(f"The statistic is for {neighbours}: make one for {distance.neighbours}.")
    return math.ceil(distance.l1 / (2 if neighbours is Neighbours.REPLACE else 1))


def related(
    guarantee: Promise, sensitivity: Distance, neighbours: Neighbours, *, pure: bool
) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that are left for one record, if so many are protected together.

    >>> from noisette.privacy import Pure
    >>> related(Pure(1), 2, Neighbours.REPLACE, pure=True)
    (Fraction(1, 2), Fraction(0, 1))
    """
    agreed(guarantee, sensitivity)
    if guarantee.neighbours not in (None, neighbours):
        raise PrivacyError(f"The statistic is for {neighbours}: make one for {guarantee.neighbours}.")
    k = people(sensitivity, neighbours)
    if not k:
        raise InputError("sensitivity must be at least 1: it is how many records one person can have.")
    if pure:
        return pure_epsilon(guarantee) / k, Fraction(0)
    if not isinstance(guarantee, Approx) or not guarantee.delta:
        raise InputError("This noise needs a delta above 0: ask for Approx(epsilon, delta).")
    return guarantee.epsilon / k, guarantee.delta / powers_up(guarantee.epsilon / k, k)
