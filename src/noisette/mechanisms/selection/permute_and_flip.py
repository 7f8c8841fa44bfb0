"""Permute and flip: ask the candidates in random order, and take the first whose coin falls the right way.

The coin of candidate i has p_i = e^((q_i - max q)/scale), so the best is sure to be taken if it is asked. In other
words, all coins are flipped, and one is chosen evenly of those that fall the right way:

    P(i) = p_i times the integral over 0 < u < 1 of prod_(j != i) (1 - u p_j).

It is also the largest of q_i plus exponential noise of mean `scale`. If a person moves the scores within a range r, it
is (r/scale)-DP: r = 2 d if each moves by at most d, r = d if all move in one direction. It is never worse than the
exponential mechanism of the same epsilon, in mean score and at every level.   [McKenna-Sheldon 2020; Ding et al. 2021]
Its losses range further than epsilon, from -epsilon on: of many choices that are composed, exponential ones cost less.

When: one of several candidates is to be released, once, with a pure epsilon.
Textbook: not in the textbooks; it is report noisy max with exponential noise .
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import frozen
from noisette.exact.random import SYSTEM, Random
from noisette.exact.samplers import Bounds, exp_real
from noisette.mechanisms.selection.exponential import Scores, Selection, unit_rule

__all__ = ["ENUMERATED", "PermuteAndFlip"]

ENUMERATED = 1024
"""How many candidates probabilities are computed for."""


@frozen
class PermuteAndFlip(Selection):
    """One of the candidates 0 .. candidates-1, given their whole scores.

    >>> from noisette.privacy import Pure
    >>> m = PermuteAndFlip.calibrated(Pure(1), candidates=4)
    >>> m, m.guarantee(1), m([0, 1, 3, 2]) in range(4)
    (PermuteAndFlip(scale=Fraction(2, 1), candidates=4, monotone=False), Pure('1'), True)
    >>> m.pmf(range(4), [0, 1, 3, 2]).round(4).tolist(), m.interval(0.95)
    ([0.0795, 0.1372, 0.5356, 0.2477], 6.0)
    """

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> int:
        """Release a candidate."""
        q = self._read(scores)
        losses = q.max() - q

        def weight(i: int) -> Bounds:
            return exp_real(int(losses[i]) / self.scale)

        taken = np.flatnonzero(choice.flips(self._near(losses), weight, rng))
        return int(taken[rng.below(len(taken))])

    def _law(self, scores: Scores) -> NDArray[np.float64]:
        """The integral, by a rule that is exact for polynomials of that degree; every term is positive."""
        if self.candidates > ENUMERATED:
            raise InputError(f"Probabilities are computed for at most {ENUMERATED:,} candidates: choose among fewer.")
        p = np.exp(-self._near(scores.max() - scores))
        nodes, weights = unit_rule(-(-self.candidates // 2))
        misses = 1 - np.multiply.outer(nodes, p)
        return np.asarray(p * (weights @ (misses.prod(axis=1, keepdims=True) / misses)))

    def _strays(self, loss: int) -> float:
        """1 - (1 - (1 - p)^k)/(k p)."""
        p, k = math.exp(-min(float(loss / self.scale), 700.0)), self.candidates
        if k * p < 1e-4:  # the sum of C(k, j) (-p)^(j-1)/k from j = 2
            return (k - 1) * p / 2 * (1 - (k - 2) * p / 3 * (1 - (k - 3) * p / 4 * (1 - (k - 4) * p / 5)))
        return 1 + math.expm1(k * math.log1p(-p)) / (k * p) if p < 1 else 1 - 1 / k


examples = [
    PermuteAndFlip(2, candidates=4),
    PermuteAndFlip("1/3", candidates=3, monotone=True),
    PermuteAndFlip(40, candidates=12),
    PermuteAndFlip("5/2", candidates=2),
]
