"""How far are about k people from this place? The law, and what it costs: nearest.py."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, Read, default, frozen, optional
from noisette.exact.integers import Int64Array
from noisette.exact.number import whole
from noisette.mechanisms.selection.interval_choice import ENUMERATED
from noisette.mechanisms.spatial.nearest import NearestPoints

__all__ = ["NearestRadius"]


def _increasing(radii: Sequence[int], name: str) -> tuple[int, ...]:
    squares = tuple(whole(s, f"Each of the {name}", least=0) for s in radii)
    if not 2 <= len(squares) <= choice.LARGEST or list(squares) != sorted(set(squares)):
        raise InputError(f"The {name} must be two or more squares of distances, in increasing order.")
    if squares[-1] >= 1 << 62:
        raise InputError(f"The {name} must have squares below 2^62: choose smaller ones.")
    return squares


@frozen
class NearestRadius(NearestPoints):
    """The squared distance within which about k people are: a whole number, or one of the public `radii`.

    `radii` are squared as well, in increasing order. Few of them, that grow by factors, cost little accuracy.

    >>> m = NearestRadius(2, k=3, columns=(0, 9), rows=(0, 9), place=(4, 5), radii=[1, 4, 9, 16, 25, 100])
    >>> people = [(4, 5), (3, 5), (5, 7), (6, 7), (9, 9), (0, 0)]
    >>> m.guarantee(1), m(people) in m.radii
    (Pure('1'), True)
    >>> {s: round(p, 3) for s, p in m.outcomes(people).items()}
    {1: 0.15, 4: 0.15, 9: 0.248, 16: 0.15, 25: 0.15, 100: 0.15}
    """

    _: KW_ONLY
    radii: Annotated[Read[Sequence[int] | None, tuple[int, ...] | None], optional(_increasing)] = default(None)

    def __post_init__(self) -> None:
        if self.radii and self.radii[0] >= self._seen.farthest:
            raise InputError("The smallest of the radii must not reach every point: give their squares.")

    @property
    def _top(self) -> int:
        return self._seen.farthest if self.radii is None else len(self.radii) - 1

    def _level(self, squares: Int64Array) -> Int64Array:
        """Squares themselves, or the first of the radii that they are within."""
        return squares if self.radii is None else np.searchsorted(np.array(self.radii), squares)

    def _upto(self, levels: Int64Array) -> Int64Array:
        return np.minimum(levels, self._top) + 1

    def _outcome(self, after: int, upto: int, u: int) -> int:
        return after + 1 + u if self.radii is None else self.radii[after + 1 + u]

    def _level_of(self, y: int) -> int:
        return y if self.radii is None else self.radii.index(y)

    def _outcomes(self) -> tuple[list[Any], Int64Array, Int64Array]:
        if self._top >= ENUMERATED:
            raise InputError(f"Outcomes are written out if they are at most {ENUMERATED:,}: choose fewer radii.")
        levels = np.arange(self._top + 1)
        return list(levels.tolist() if self.radii is None else self.radii), levels, np.ones_like(levels)


_GRID: dict[str, Any] = {"columns": (0, 6), "rows": (0, 5)}

examples = [
    NearestRadius(2, k=3, **_GRID, place=(0, 0)),
    NearestRadius("10/3", k=2, **_GRID, place=(3, 1), radii=(0, 1, 2, 4, 8, 16, 32)),
]
