"""Statistics that one record can move far on some tables and hardly on most: how far, and how fast that can change.

Let A_k(x) be the furthest that one record can move the answer of any table within k changes of x. Then

    S(x) = max_k A_k(x) e^(-beta k)

is at least A_0, and between neighbours it changes by at most a factor e^beta, because A_k(x) <= A_(k+1)(x').
[Nissim-Raskhodnikova-Smith 2007; proof note: docs/proofs/smooth-sensitivity.md]

Answers and A_k are whole numbers. S is given as the pair (A_k, k) at which it is attained, found exactly: floats only
compare what differs by far.

Vocabulary: `gap` A_k · `changes` k · `reach` how far from the answer t changes can bring it, for t = 1, 2, ….
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.calibration import agreed, pure_epsilon
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.smooth.largest_sensitivity import Fall
from noisette.mechanisms.stability.stability import whole_steps
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.convert import powers_up
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Pairs", "Statistic", "Whole", "people", "related"]

Whole = NDArray[np.int64]
Pairs = Sequence[tuple[Any, Any, int]]


class Statistic(Protocol):
    """A whole-number answer, with what is known of how far records can move it."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation for which all of it holds."""
        ...

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest answer of all tables."""
        ...

    @property
    def furthest(self) -> int:
        """The global sensitivity."""
        ...

    def read(self, x: Any) -> Any:
        """Read a table, for the other methods."""
        ...

    def value(self, table: Any) -> int:
        """The answer."""
        ...

    def smooth(self, table: Any, beta: Fraction) -> Fall:
        """S, exactly."""
        ...

    def reaches(self, table: Any) -> tuple[Whole, Whole]:
        """How far down and up t = 1, 2, … changes can bring the answer, at most; the last covers the span."""
        ...

    def pairs(self, beta: Fraction) -> Pairs:
        """Neighbouring tables that show much."""
        ...


# Promises of mechanisms that read tables and know their neighbouring relation


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
    """Return the epsilon and delta that are left for one record, if several are protected together.

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
