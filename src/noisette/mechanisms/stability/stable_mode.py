"""The stable mode: the most frequent value, exactly, if it is well ahead of the next.

It is released with probability p_c, where c counts the changes that it takes until another value is the most frequent
one (see `stable`), and None is released otherwise: (epsilon, delta)-DP, and delta is attained.

Let the mode be ahead of its rival by `gap` records. The first of several candidates keeps a tie, so

    add/remove:  c = gap + [the mode comes before its rival],      replace:  c = half of that, rounded up,

since a replaced record may leave the mode for its rival. So the gap itself is no distance under replace.
[Smith-Thakurta 2013; proof note: docs/proofs/stability.md]
In an open domain there is no public order: c = gap, or half of it, and a tie is never released. What it takes does not
depend on how many values there could be.

When: the most frequent value is likely to lead by far, or nobody can list the values. Where they are few,
`PermuteAndFlip` always answers, with a pure guarantee; for scores other than counts there is `GapMax`.
Textbook: Smith, the stability-based mode, where the gap is taken for the distance.

Vocabulary: `rival` who gets ahead first · `gap` how many records the mode is ahead.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from heapq import nlargest
from typing import Annotated, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, frozen, optional
from noisette.exact.number import whole
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.contract import Distance
from noisette.mechanisms.stability.stability import ADD_REMOVE, Counted, checked_key
from noisette.privacy import Neighbours, Promise

__all__ = ["StableMode", "ahead"]

_MOST = 2**62


@frozen
class StableMode(Counted):
    """The most frequent of `candidates` by index, given their counts; or of any keys, given a mapping key -> count.

    >>> m = StableMode(1, "1e-6", candidates=3)
    >>> m([3, 120, 40]), m.guarantee(1), m.certain
    (1, Approx('1', '1/1000000', neighbours=ADD_REMOVE), 28)
    >>> StableMode(1, "1e-6")({"oak": 80, "ash": 3})
    'oak'
    """

    _: KW_ONLY
    candidates: Annotated[int | None, optional(partial(whole, least=2))] = None

    @classmethod
    def calibrated(
        cls, guarantee: Promise, sensitivity: Distance = 1, *, candidates: int | None = None
    ) -> "StableMode":
        """Return the one that keeps the promise for a histogram's sensitivity, or for that many people."""
        return cls._kept(guarantee, sensitivity, candidates=candidates)

    def _stable(self, x: Any) -> tuple[Hashable, int]:
        best, records = self._first(x) if self.candidates else ahead(x)
        return best, self._counted(records)

    def _first(self, counts: Any) -> tuple[int, int]:
        """The first of the largest, and how many records must be added or removed until another is."""
        answer = integer_answer(counts)
        if answer.shape != (self.candidates,) or answer.min() < 0 or answer.max() >= _MOST:
            raise InputError(f"The counts must be {self.candidates} whole numbers from 0 to 2^62, one a candidate.")
        c = answer.astype(np.int64)
        best = int(np.argmax(c))
        earlier, later = c[:best], c[best + 1 :] - 1
        return best, int(c[best]) - int(max(part.max() for part in (earlier, later) if part.size))

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """A record more on either side of the middle of the curve."""
        low, high = self._halves
        if self.neighbours is not ADD_REMOVE:
            return [(self._table(low + high - 1, 1), self._table(2 * high - 1, 0), 1)]
        tie = 1 if self.candidates else 0
        return [(self._table(c - tie, 0), self._table(c + 1 - tie, 0), 1) for c in (low, high)]

    def _table(self, first: int, second: int) -> Any:
        if self.candidates:
            return [first, second] + [0] * (self.candidates - 2)
        return {key: count for key, count in ((7, first), (8, second)) if count}


def ahead(counts: Any) -> tuple[Hashable, int]:
    """Return the key with the largest count and how far it is ahead of the next, or of 0.

    >>> ahead({"oak": 5, "ash": 3}), ahead({"oak": 5}), ahead({})
    (('oak', 2), ('oak', 5), (None, 0))
    """
    if not isinstance(counts, Mapping):
        raise InputError("The counts must be a mapping from keys to whole numbers, or give the number of candidates.")
    read = ((checked_key(key), whole(n, "A count", least=0)) for key, n in counts.items())
    top = nlargest(2, read, key=lambda item: item[1])
    largest, second = [*(n for _, n in top), 0, 0][:2]
    return top[0][0] if top else None, largest - second


examples = [
    StableMode(1, "1e-6", candidates=3),
    StableMode("1/2", "1/50", candidates=2, neighbours=Neighbours.REPLACE),
    StableMode(2, "1e-4"),
    StableMode(1, "1e-3", neighbours=Neighbours.REPLACE),
]
