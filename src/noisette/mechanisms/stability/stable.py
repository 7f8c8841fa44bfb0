"""Release a value exactly where it is stable: where a few changes of the table would not alter it.

Given f(x) and its distance to instability d(x), the largest d such that no d changes of x alter f, f(x) is released
with probability p_(d+1), and None otherwise, where p_0 = 0 and

    p_(c+1) = min(e^epsilon p_c + delta, 1 - e^-epsilon (1 - p_c - delta), 1).

It is (epsilon, delta)-DP under the relation in which changes are counted. Neighbours with one value have d that differ
by at most 1; neighbours with two values both have d = 0, and each value shows with probability delta. No other rule
that looks at d alone releases more often.   [Smith-Thakurta 2013 for the test; Desfontaines-Voss-Gipson-Mandayam 2022
for the curve; proof note: docs/proofs/stability.md]
Any whole lower bound of d will do that moves by at most 1 between neighbours (`check_distance` looks for a fault).

When: an exact value is to be released that few people cannot alter, and its distance to instability can be computed.
Textbook: Smith, stability, where Laplace noise on the distance decides, with a threshold that misses its delta.

Vocabulary: `distance` d · `changes` d + 1, what it takes to alter the value.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from noisette.exact.frozen import frozen
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import Stability, distance_steps, kept_by, read_pair
from noisette.privacy import Promise

__all__ = ["Stable"]


@frozen
class Stable(Stability):
    """The value of a pair (value, distance to instability), or None.

    >>> m = Stable(1, "1e-6")
    >>> m(("north", 40)), m.guarantee(1)
    ('north', Approx('1', '1/1000000'))
    >>> m.least(0.5), m.certain                           # changes that it must take to alter the value
    (14, 28)
    """

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1) -> "Stable":
        """Return the one that keeps the promise, if one person moves the distance by at most `sensitivity`.

        Where the value can change, the distance must then be below the sensitivity.
        """
        agreed(guarantee, sensitivity)
        keep = kept_by(guarantee, distance_steps(sensitivity)[0])
        return cls(keep.epsilon, keep.delta0)

    def _stable(self, x: Any) -> tuple[Hashable, int]:
        value, distance = read_pair(x)
        return value, distance + 1

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """Both halves of the curve."""
        low, high = self._halves
        return [((7, low - 1), (7, high - 1), 1), ((7, high), (7, high - 1), 1)]


examples = [Stable(1, "1e-6"), Stable("1/2", "1/50"), Stable(3, "1e-5")]
