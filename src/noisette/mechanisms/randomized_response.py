"""Randomized response: each person answers for themselves, and lies with a known probability.

With k answers the true one is kept with e^epsilon/(e^epsilon + k - 1), else another is named uniformly: any two true
answers give the same report with probabilities at most e^epsilon apart, so each report is epsilon-DP on its own, with
no curator.   [Warner 1965; Kairouz-Oh-Viswanath 2016 for k answers]

Frequencies are estimated without bias: (share of reports - q)/(p - q), p the chance to keep, q that of each lie.

When: nobody may see the true answers, not even a curator; the error is then larger by the root of the number of people.
Textbook: lecture notes, the pets example; lecture on workloads, where dividing the people beats dividing epsilon.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, Positive, frozen
from noisette.exact.number import fraction, level_of, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_distance
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import Neighbours, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["RandomizedResponse"]


@frozen
class RandomizedResponse(Mechanism):
    """Answers coded 0 .. categories-1, one for each person.

    >>> m = RandomizedResponse(1)
    >>> round(m.keep, 6), m.guarantee(), m([0, 1, 1, 0]).shape
    (0.731059, Pure('1', neighbours=REPLACE), (4,))
    """

    kind = Output.REPORT
    sized_by = "epsilon"
    epsilon: Annotated[Positive, partial(positive, most=1000)]
    _: KW_ONLY
    categories: Annotated[int, partial(whole, least=2)] = 2
    norm: ClassVar[float] = 1

    def __post_init__(self) -> None:
        if self.categories > 2**62:
            raise InputError("categories must be at most 2^62: code the answers more coarsely.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, categories: int = 2) -> "RandomizedResponse":
        """Return the response that keeps the guarantee for people who answer `sensitivity` times."""
        agreed(guarantee, sensitivity)
        reports, _ = cls._answers(sensitivity)
        return cls(pure_epsilon(guarantee) / whole(reports, "sensitivity"), categories=categories)

    @staticmethod
    def _answers(distance: Distance) -> tuple[int, Neighbours]:
        """How many reports one person gives; the relation is always replace, since the number of reports is public."""
        number = Fraction(distance.l0) if isinstance(distance, Sensitivity) else fraction(distance, "distance")
        _, neighbours = read_distance(distance, 1)
        if neighbours is Neighbours.ADD_REMOVE:
            raise InputError(
                "Randomized response shows how many people answered, so it promises nothing under add/remove: "
                "use a sensitivity under replace."
            )
        if number < 0 or number.denominator != 1:
            raise InputError("distance must be the whole number of reports that one person gives.")
        return int(number), Neighbours.REPLACE

    @property
    def keep(self) -> float:
        """The probability that the true answer is reported."""
        return 1 / (1 + (self.categories - 1) * math.exp(-float(self.epsilon)))

    @property
    def lie(self) -> float:
        """The probability of each other answer."""
        return 1 / (math.exp(float(self.epsilon)) + self.categories - 1)

    @property
    def _contrast(self) -> float:
        """p - q = (1 - e^-epsilon)/(1 + (k-1) e^-epsilon)."""
        return -math.expm1(-float(self.epsilon)) * self.keep

    def __call__(self, x: Any, rng: Random = SYSTEM) -> Any:
        """Report for each person; a coin decides whether a uniformly drawn other answer is named."""
        answers = integer_answer(x)
        if not ((answers >= 0) & (answers < self.categories)).all():
            raise InputError(f"Answers must be coded 0 to {self.categories - 1}: recode them first.")
        kept = vector.logistic(self.epsilon, answers.shape, weight=self.categories - 1, rng=rng)
        other = vector.uniform(self.categories - 1, answers.shape, rng=rng)
        reports = np.where(kept, answers, other + (other >= answers))
        return reports if np.ndim(x) else int(reports)

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(epsilon) for each report that one person gives, under replace."""
        reports, neighbours = self._answers(distance)
        return Pure(self.epsilon * reports, neighbours=neighbours)

    def pmf(self, y: Any, x: Any) -> Any:
        """P(the answer x is reported as y)."""
        y = np.asarray(y)
        valid = (y >= 0) & (y < self.categories)
        return np.where(valid, np.where(y == x, self.keep, self.lie), 0.0)[()]

    def estimate(self, reports: Any) -> NDArray[np.float64]:
        """Return unbiased estimates of the share of each answer; they may be below 0 or above 1."""
        given = integer_answer(reports).ravel()
        if not ((given >= 0) & (given < self.categories)).all():
            raise InputError(f"Reports must be coded 0 to {self.categories - 1}.")
        shares = np.bincount(given.astype(np.int64), minlength=self.categories) / given.size
        return np.asarray((shares - self.lie) / self._contrast)

    def variance(self, people: int = 1, *, share: float = 0.0) -> float:
        """Variance, over the coins, of the estimated share of an answer that a given share of people have.

        At share 0 it is q(1-q)/(n (p-q)^2) = (k - 2 + e^epsilon)/(n (e^epsilon - 1)^2).
        """
        n = whole(people, "people")
        if not 0 <= share <= 1:
            raise InputError("share must lie between 0 and 1.")
        p, q = self.keep, self.lie
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (n * self._contrast**2)

    def interval(self, level: float = 0.95, *, people: int = 1) -> float:
        """Return a t with P(|estimated share - true share| <= t) >= level, by Hoeffding's inequality."""
        level_of(level)
        return math.sqrt(math.log(2 / (1 - level)) / (2 * whole(people, "people"))) / self._contrast

    def pairs(self) -> Sequence[tuple[int, int, int]]:
        """Any two different answers."""
        return [(0, 1, 1), (self.categories - 1, 0, 1)]

    def support(self, x: int) -> Any:
        """All answers."""
        return np.arange(self.categories)


examples = [RandomizedResponse(1), RandomizedResponse("1/2", categories=5), RandomizedResponse(4, categories=3)]
