"""The first of several whole queries that is above a threshold, by one-sided noise: what searches along a line share.

The first i is found with f_i + N_i >= Z + limit, Z and all N_i one-sided geometric: P(k) = (1 - a) a^k, a =
e^(-1/scale).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.integers import added
from noisette.exact.random import SYSTEM, Random

__all__ = ["FirstAbove"]

_ENUMERATED = 2**24


@dataclass(frozen=True)
class FirstAbove:
    """Noise for the threshold and for the queries, and the limit that both are compared at."""

    threshold_scale: Fraction
    scale: Fraction
    limit: int

    def __call__(self, queries: NDArray[np.int64], rng: Random = SYSTEM) -> int | None:
        """Draw which query is the first; noise is drawn for all of them, however early it ends."""
        over = self.limit + int(vector.geometric_noise(self.threshold_scale, None, rng))
        noise = np.asarray(vector.geometric_noise(self.scale, len(queries), rng))
        above = np.flatnonzero(added(queries, noise) >= over)
        return int(above[0]) if len(above) else None

    def chances(self, queries: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that each is the first, and last that none is."""
        over, rate = float(1 / self.threshold_scale), float(1 / self.scale)
        highest = int(queries.max(initial=self.limit))
        z = np.arange(math.ceil(max(0, highest - self.limit) + 80 / over))  # so that rare ones are right as well
        if len(z) * max(1, len(queries)) > _ENUMERATED:
            raise InputError("The law is enumerated for few steps and simple q only: choose fewer of them.")
        missing = np.add.outer(self.limit - queries, z)
        logs = -rate * np.maximum(missing, 0)  # ln P(N >= what is missing), of query and z
        passed = np.cumprod(np.vstack([np.ones(len(z)), -np.expm1(logs)]), axis=0)
        stopped = np.vstack([passed[:-1] * np.exp(logs), passed[-1:]])
        chances: Any = stopped @ (-np.expm1(-over) * np.exp(-over * z))
        return np.asarray(chances)

    def strays(self, steps: int, below: int) -> float:
        """Return a bound of the chance that one of so many queries is above, all of them so far below the limit."""
        over, rate = float(1 / self.threshold_scale), float(1 / self.scale)
        return steps * math.exp(-rate * below) * math.expm1(-over) / math.expm1(-over - rate)
