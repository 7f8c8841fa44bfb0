"""Pan-privacy: which share of people was ever seen, from a state that may be seized.

Vocabulary: `people` a public number of people, each with a bit · `p`, `q` the chances that a bit is 1 for who was seen
and for who was not · an `intrusion` looks at all bits once.

Every bit begins as a coin that is 1 with chance q. Each time a person appears, the bit is drawn anew, 1 with chance p.
So the state tells of each person what one randomized response tells, however often and whenever they appeared; with
p = e^eps/(1 + e^eps) and q = 1 - p it is eps-differentially private for whole people, at any one moment. The textbook's
law (1/2 and 1/2 + eps/4) has four times the variance at the same eps, and uses about .6 of it.
[Dwork-Naor-Pitassi-Rothblum-Yekhanin 2010, the density estimator; the coins of randomized response instead]

**What is promised.** An intrusion, whenever it comes, tells eps. A release is the number of ones with Laplace noise of
its own, and tells its own epsilon. All of them add up: a bit may be drawn anew between two looks, so that a release is
no function of the bits that were seen before, and may tell more than eps.

**One intrusion, not two.** The bit of somebody who stayed away between two intrusions is the same in both; that of
somebody who appeared may differ. So a second look at the same state has no epsilon. After an announced intrusion go on
with new bits (`begin`), which know nobody; what both states tell adds up.   (docs/proofs/streams.md)

It is for those who must fear that the machine is seized. A curator that is safe counts with far less noise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, level_of, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.vector import logistic
from noisette.mechanisms import Geometric
from noisette.privacy import Neighbours, Pure

__all__ = ["PanPrivateDensity", "Seen"]


@dataclass(frozen=True)
class PanPrivateDensity:
    """The share of `people` who ever appeared; the state keeps `epsilon`, each release adds `release_epsilon`.

    >>> density = PanPrivateDensity(10_000, epsilon=1, release_epsilon=1)
    >>> density.state_guarantee(), density.guarantee(releases=1)
    (Pure('1', neighbours=ADD_REMOVE), Pure('2', neighbours=ADD_REMOVE))
    >>> bits = density.begin()
    >>> bits = density.see(bits, np.arange(2000))
    >>> bool(abs(density.release(bits).share - 0.2) < 0.15)
    True
    """

    people: int
    epsilon: Fraction
    release_epsilon: Fraction

    def __init__(self, people: int, *, epsilon: Number, release_epsilon: Number = 1) -> None:
        if whole(people, "people") > 1 << 32:
            raise InputError("people must be at most 2^32: sample some of them, by a public rule.")
        object.__setattr__(self, "people", people)
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "release_epsilon", positive(release_epsilon, "release_epsilon"))

    # What it promises

    def state_guarantee(self) -> Pure:
        """What one look at the state tells about one person, whenever it comes."""
        return Pure(self.epsilon, neighbours=Neighbours.ADD_REMOVE)

    def guarantee(self, *, releases: int = 1, intrusions: int = 1) -> Pure:
        """What all releases and at most one intrusion tell together about one person, in whatever order they come."""
        looks = whole(intrusions, "intrusions", least=0)
        if looks > 1:
            raise InputError(
                "A second intrusion tells who appeared since the first: after one that is announced go on with new "
                "bits from begin(), and add up the guarantees of both states."
            )
        total = looks * self.epsilon + whole(releases, "releases", least=0) * self.release_epsilon
        return Pure(total, neighbours=Neighbours.ADD_REMOVE)

    # The state

    def begin(self, rng: Random = SYSTEM) -> NDArray[np.bool_]:
        """Bits before anybody appeared; also those to go on with after an announced intrusion."""
        return ~logistic(self.epsilon, self.people, rng=rng)

    def see(self, bits: NDArray[np.bool_], who: Any, rng: Random = SYSTEM) -> NDArray[np.bool_]:
        """Bits after some people appeared, by their numbers; others are left out, and each appearance draws anew."""
        numbers = np.asarray(who)
        if numbers.dtype.kind not in "iu":
            raise InputError("People are known by whole numbers from 0 to one less than there are.")
        inside = np.unique(numbers[(numbers >= 0) & (numbers < self.people)])
        after = np.array(bits, bool)
        after[inside] = logistic(self.epsilon, len(inside), rng=rng)
        return after

    # The estimate

    @property
    def chance(self) -> float:
        """The chance that the bit of somebody who was seen is 1."""
        return 1 / (1 + math.exp(-float(self.epsilon)))

    @property
    def noise(self) -> Geometric:
        """The noise of a release."""
        return Geometric(1 / self.release_epsilon)

    def release(self, bits: NDArray[np.bool_], level: float = 0.95, rng: Random = SYSTEM) -> "Seen":
        """The share of people who were seen, with an error bar for the bits and for the release."""
        ones = int(np.count_nonzero(bits)) + int(self.noise(0, rng))
        p = self.chance
        share = (ones / self.people - (1 - p)) / (2 * p - 1)
        wide = NormalDist().inv_cdf((1 + float(level_of(level))) / 2) * self.deviation
        return Seen(share, max(0.0, share - wide), min(1.0, share + wide), share * self.people)

    @property
    def deviation(self) -> float:
        """The standard deviation of a released share: a bit has the same variance, whether or not somebody was seen."""
        p, m = self.chance, self.people
        return math.sqrt(m * p * (1 - p) + self.noise.variance()) / (m * (2 * p - 1))


@dataclass(frozen=True)
class Seen:
    """The share of people who were seen, with its error bar, and about how many they are."""

    share: float
    low: float
    high: float
    people: float
