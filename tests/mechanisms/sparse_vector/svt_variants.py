"""The six published variants of the sparse vector technique, as Lyu, Su and Li (2017) list them; four are broken.

Each takes queries of sensitivity 1 with their threshold subtracted, epsilon and c, and runs many times at once. Floats
will do: these stand for what was published, and are not released.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BELOW, ABOVE, ENDED = 0, 1, 2


@dataclass(frozen=True)
class Variant:
    """Scales of Laplace noise for epsilon and c; what is told after the comparison; when it ends."""

    threshold: Callable[[float, int], float]
    query: Callable[[float, int], float]
    refreshed: bool = False
    values: bool = False
    ends: bool = True

    def __call__(self, queries: list[int], epsilon: float, c: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return indicators (count x queries) and the values that were compared, for those that tell them."""
        draw = np.random.default_rng()
        z = draw.laplace(0, self.threshold(epsilon, c), count)
        given, told = np.zeros(count, int), np.full((count, len(queries)), ENDED)
        noisy = np.array(queries) + draw.laplace(0, 1, (count, len(queries))) * self.query(epsilon, c)
        for i in range(len(queries)):
            open_, above = (given < c) | (not self.ends), noisy[:, i] >= z
            told[:, i] = np.where(open_, above, ENDED)
            given += open_ & above
            if self.refreshed:
                z = np.where(open_ & above, draw.laplace(0, self.threshold(epsilon, c), count), z)
        return told, np.where(told == ABOVE, noisy, np.nan) if self.values else np.full_like(noisy, np.nan)


VARIANTS = {
    1: Variant(lambda e, c: 2 / e, lambda e, c: 4 * c / e),  # Lyu, Su, Li
    2: Variant(lambda e, c: 2 * c / e, lambda e, c: 4 * c / e, refreshed=True),  # Dwork, Roth
    3: Variant(lambda e, c: 2 / e, lambda e, c: 2 * c / e, values=True),  # the lecture notes' and the deck's
    4: Variant(lambda e, c: 4 / e, lambda e, c: 4 / (3 * e)),  # Lee, Clifton: (1 + 6c)/4 epsilon
    5: Variant(lambda e, c: 2 / e, lambda e, c: 0.0, ends=False),  # Stoddard et al.
    6: Variant(lambda e, c: 2 / e, lambda e, c: 2 / e, ends=False),  # Chen et al.
}
