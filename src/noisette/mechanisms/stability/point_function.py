"""Learn a point function: which single key is labelled True, among more keys than anybody could list.

A point function is True for one key and False elsewhere. Each key scores its True examples minus its False ones, or 0
if that is less. The key with the largest score is released if it is stable, as the `StableMode` of an open domain is:
(epsilon, delta)-DP, and delta is attained. None stands for the function that is False everywhere.

Where some point function c fits all examples, and k of them are True, c is released with probability p_k (add/remove;
p of k/2 rounded up under replace), and None makes k mistakes. So with probability at least `level` fewer than
`least(level)` examples are misjudged, however many keys there are; a pure guarantee needs a multiple of ln(keys).
[Beimel-Nissim-Stemmer 2013; proof note: docs/proofs/stability.md]

When: one key of a huge domain is the right one, and examples say so; among few keys, use `PermuteAndFlip`.
Textbook: not in the textbooks; it is what a delta buys for learning.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from noisette.errors import InputError
from noisette.exact.frozen import frozen
from noisette.exact.number import Number, fraction
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import ADD_REMOVE, Counted, checked_key
from noisette.mechanisms.stability.stable_mode import ahead
from noisette.privacy import Neighbours, Promise

__all__ = ["PointFunction"]


@frozen
class PointFunction(Counted):
    """The key that is labelled True, or None, given examples (key, label).

    >>> m = PointFunction(1, "1e-6")
    >>> m([("ash", False), ("elm", False)] + [("oak", True)] * 40)
    'oak'
    >>> m.examples_needed("0.05", level=0.95)               # for any number of keys
    680
    """

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1) -> "PointFunction":
        """Return the one that keeps the promise for a histogram's sensitivity, or for that many people."""
        return cls._kept(guarantee, sensitivity)

    def _stable(self, x: Any) -> tuple[Hashable, int]:
        key, gap = ahead(_scores(x))
        return key, self._counted(gap)

    def examples_needed(self, share: Number, level: float = 0.95) -> int:
        """Return how many random examples suffice to misjudge at most that share of the keys, if some function fits.

        Half of the failures are left to the sample: Bin(n, a) < n a/2 with probability at most e^(-n a/8).
        """
        part, least = fraction(share, "share"), self.least(0.5 + level / 2)
        if not 0 < part < 1:
            raise InputError("share must lie strictly between 0 and 1: a usual one is 0.05.")
        positives = least if self.neighbours is ADD_REMOVE else 2 * least - 1
        return math.ceil(max(2 * positives, 8 * math.log(2 / (1 - level))) / part)

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """A record more in the middle of the curve."""
        low, high = self._halves
        if self.neighbours is ADD_REMOVE:
            return [(_true(low), _true(high), 1)]
        return [([*_true(low + high - 1), (8, True)], _true(2 * high - 1), 1)]


def _true(count: int) -> list[tuple[int, bool]]:
    return [(7, True)] * count


def _scores(examples: Any) -> dict[Hashable, int]:
    """True examples minus False ones of each key, where that is above 0."""
    problem = "The examples must be pairs (key, label) with labels True or False."
    if not isinstance(examples, Iterable) or isinstance(examples, str | bytes):
        raise InputError(problem)
    scores: Counter[Hashable] = Counter()
    for example in examples:
        if not isinstance(example, tuple) or len(example) != 2 or not isinstance(example[1], bool):
            raise InputError(problem)
        scores[checked_key(example[0])] += 1 if example[1] else -1
    if not scores:
        raise InputError("There are no examples: pass at least one pair (key, label).")
    return dict(+scores)


examples = [PointFunction(1, "1e-4"), PointFunction("1/2", "1/50", neighbours=Neighbours.REPLACE)]
