"""Where might a person be who is about k-th nearest to this place? The law, and what it costs: nearest.py."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Read, default, frozen, set_fields
from noisette.exact.integers import Int64Array
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.selection.interval_choice import ENUMERATED
from noisette.mechanisms.spatial.annuli import Point, Rectangle, Weighted
from noisette.mechanisms.spatial.nearest import NearestPoints

__all__ = ["NearestPlace", "nearest_of"]

_BEYOND = 24  # scales, after which no number of outcomes makes up for a rank error


@frozen
class NearestPlace(NearestPoints):
    """A point of the grid, about as far from the place as the k-th nearest person is.

    With a public `prior`, say of where people live, a point counts by its weight there: one row of whole numbers for
    each row of the grid.

    >>> import numpy as np
    >>> from noisette.privacy import Pure
    >>> m = NearestPlace.calibrated(Pure(1), k=50, columns=(0, 999), rows=(0, 999), place=(300, 400))
    >>> x, y = m(np.column_stack([np.arange(10**4) % 1000, np.arange(10**4) * 7 % 1000]))
    >>> m.guarantee(1), 0 <= x < 1000, 0 <= y < 1000
    (Pure('1'), True, True)
    """

    _: KW_ONLY
    prior: Read[Sequence[Sequence[int]] | None, tuple[tuple[int, ...], ...] | None] = default(None)

    def __post_init__(self) -> None:
        if self.prior is not None:
            set_fields(self, prior=self._weights(self.prior))

    def _weights(self, prior: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        (left, right), (low, high) = self.columns, self.rows
        shape = high - low + 1, right - left + 1
        if shape[0] * shape[1] > ENUMERATED:
            raise InputError(f"A prior is for at most {ENUMERATED:,} points: choose a coarser grid.")
        weights = integer_answer(prior)
        if weights.shape != shape:
            raise InputError(f"The prior must have {shape[0]} rows of {shape[1]} whole numbers.")
        if weights.min() < 1 or weights.max() >= 1 << 40:
            raise InputError("The prior must be whole numbers from 1 to 2^40: no point may be impossible.")
        return tuple(tuple(map(int, row)) for row in weights)

    @property
    def _ground(self) -> Rectangle | Weighted:
        return self._seen if self.prior is None else _weighted(self._seen, self.prior)

    @property
    def _total(self) -> int:
        return self._ground.count

    @property
    def _least(self) -> int:
        return self._ground.least

    def _upto(self, levels: Int64Array) -> Int64Array:
        return self._ground.upto(levels)

    def _outcome(self, after: int, upto: int, u: int) -> Point:
        return self._ground.point(after, upto, u)

    def _level_of(self, y: Point) -> int:
        return int(self._seen.squares(np.array([y]))[0])

    def _outcomes(self) -> tuple[list[Any], Int64Array, Int64Array]:
        points = self._seen.all
        weights = np.ones(len(points), np.int64) if self.prior is None else np.array(self.prior).ravel()
        return list(map(tuple, points.tolist())), self._seen.squares(points), weights

    def _window(self, errors: Int64Array) -> tuple[int, int]:
        """Those that no number of points elsewhere outweighs: counting row by row takes long for every person.

        They are neighbours, because D falls to its least and rises again.
        """
        reach = errors.min() + math.ceil(self.scale * Fraction(_BEYOND + math.log(self._total)))
        inside = np.flatnonzero(errors <= reach)
        return int(inside[0]), int(inside[-1]) + 1


def nearest_of(point: Point, places: Sequence[Point]) -> int:
    """Return which of some public places is nearest to a released point, the first of several: it costs nothing.

    >>> nearest_of((3, 4), [(0, 0), (5, 5), (3, 9)])
    1
    """
    if not len(places):
        raise InputError("There must be at least one place to choose from.")
    x, y = point
    return min(range(len(places)), key=lambda i: (places[i][0] - x) ** 2 + (places[i][1] - y) ** 2)


@lru_cache(maxsize=8)
def _weighted(rectangle: Rectangle, prior: tuple[tuple[int, ...], ...]) -> Weighted:
    return Weighted(rectangle, np.array(prior).ravel())


_LIVED_IN = (1, 9, 3, 3), (4, 7, 2, 5), (8, 8, 1, 6)

examples = [
    NearestPlace(2, k=3, columns=(0, 6), rows=(0, 5), place=(0, 0)),
    NearestPlace(5, k=1, columns=(-3, 6), rows=(10, 13), place=(2, 11)),
    NearestPlace("3/2", k=2, columns=(0, 3), rows=(0, 2), place=(0, 0), prior=_LIVED_IN),
]
