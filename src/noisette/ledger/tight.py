"""The tight figure beside the filter's: what all charges together promise, had they been settled in advance."""

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from operator import add

from noisette.exact.number import Number
from noisette.privacy import Guarantee, Pure

__all__ = ["tight"]


def tight(guarantees: Iterable[Guarantee], delta: Number) -> float:
    """The epsilon of all of them together at a delta, rounded up; equal ones are counted, not added one by one.

    It composes privacy losses tightly, which is right for costs that no answer has influenced. It tells how much a
    filter has left unused; it is no promise to one who chose costs along the way.

    >>> round(tight([Pure("0.1")] * 100, "1e-6"), 3)
    4.775
    """
    counted = Counter((guarantee, guarantee.losses) for guarantee in guarantees)
    parts = [guarantee * count for (guarantee, _), count in counted.items()]
    return reduce(add, parts, Pure(0)).epsilon_at(delta)
