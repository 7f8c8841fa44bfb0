"""Generalised randomized response (GRR): report your own value, or with a known probability another one.

With k values the own one is kept with p = e^epsilon/(e^epsilon + k - 1), each other one is named with q = p e^-epsilon.
Two people's values give any report with probabilities at most e^epsilon apart, and for the report of one's own value
exactly that.   [Warner 1965 for two values; Kairouz-Bonawitz-Ramage 2016]

When: the domain is small, k below about 3 e^epsilon + 2; with two values it is Warner's randomized response.
Textbook: lecture notes, the pets example: tell the truth with probability 3/4, which is epsilon = ln 3.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.exact import samplers
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.random import SYSTEM, Random
from noisette.local.contract import Epsilon, odds
from noisette.local.frequencies import Domain, PureProtocol, coded
from noisette.mechanisms.randomized_response import RandomizedResponse

__all__ = ["GRR"]


@frozen
class GRR(PureProtocol):
    """Reports are values, 0 .. domain-1.

    >>> import math
    >>> pets = GRR(math.log(3), domain=2)                       # do you have a pet? 0 or 1
    >>> round(float(pets.own), 6), round(pets.variance(people=100), 6)      # 3/4, and 3/(4 n)
    (0.75, 0.0075)
    >>> pets.estimate([1] * 60 + [0] * 40).shares.round(6).tolist()         # 60 % of the answers are yes
    [0.3, 0.7]
    """

    epsilon: Epsilon
    _: KW_ONLY
    domain: Domain

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """p = e^epsilon/(e^epsilon + k - 1), q = 1/(e^epsilon + k - 1)."""
        total = odds(self.epsilon) + self.domain - 1
        return odds(self.epsilon) / total, 1 / total

    def client(self, value: int, rng: Random = SYSTEM) -> int:
        """Return the value, or another one."""
        [own] = coded([value], self.domain).tolist()
        if samplers.logistic(self.epsilon, Fraction(self.domain - 1), rng):
            return int(own)
        other = rng.below(self.domain - 1)
        return other + int(other >= own)

    def clients(self, values: Any, rng: Random = SYSTEM) -> NDArray[np.int64]:
        """Return the reports of many people."""
        own = coded(values, self.domain)
        return np.asarray(RandomizedResponse(self.epsilon, categories=self.domain)(own, rng)) if own.size else own

    def likelihood(self, report: Any, value: Any) -> Fraction:
        """P(report | value)."""
        return self.own if report == value else self.other


examples = [GRR(1, domain=2), GRR("1/2", domain=5), GRR(4, domain=16)]
