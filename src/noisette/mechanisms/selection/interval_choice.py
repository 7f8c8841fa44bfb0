"""The exponential mechanism on a line: choose a point of a large public grid whose score is constant on a few pieces.

A point of score q is released with probability proportional to e^(q/scale). Points of one piece are alike, so a piece
of `size` points is drawn with a weight of size e^(q/scale), and then a point in it, evenly: it takes the time of the
pieces, for 2^60 points as for two.   [McSherry-Talwar 2007; Smith 2011 for intervals]

Where pieces begin may depend on the data, and so may their sizes. The guarantee is about the score at each point of the
grid, which is public: if a person moves these within a range r,

    epsilon = r / scale,

and no smaller epsilon holds. r = 2 d if the score at each point moves by at most d, r = d if all move in one direction.
A plane is a line of its points: give the pieces as numbers of points.

When: outcomes are values of a range or points of a map, far too many to list, but their scores change at few places.
Textbook: Cormode, the median by the exponential mechanism over half-open ranges; the lecture notes,
outputs in a space Y.

Vocabulary: `size` of a piece, how many points it has · `loss` of a point, by how much its score is below the best.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Self

import numpy as np

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.integers import Int64Array
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.samplers import Bounds, odds_real
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.exponential import ChoiceScale, Exponential, Monotone
from noisette.privacy import Promise

__all__ = ["ENUMERATED", "Pieces", "drawn"]

ENUMERATED = 1 << 16
"""How many points a law is written out for."""

_MOST = 2**62
_BEHIND = 16  # scales: rare enough to show the theorem, and likely enough to be seen


def drawn(losses: Int64Array, most: Int64Array, size: Callable[[int], int], scale: Fraction, rng: Random) -> int:
    """Draw i with probability proportional to size(i) e^(-losses[i]/scale), where size(i) <= most[i].

    It asks for the size of those that are proposed alone; where `most` is larger than need be, it takes longer.
    """
    some = most > 0
    with np.errstate(divide="ignore"):
        y = np.where(some, losses - losses[some].min(), 0) * float(1 / scale) - np.log(most.astype(float))
    best = int(np.argmin(y))

    def weight(i: int) -> Bounds:
        return odds_real((int(losses[best]) - int(losses[i])) / scale, Fraction(size(i), int(most[best])))

    return choice.choose(y - y[best], weight, rng)


@frozen
class Pieces(Mechanism):
    """One of the points 0 .. points-1, given pieces (size, score) from left to right, all whole numbers.

    >>> from noisette.privacy import Pure
    >>> m = Pieces.calibrated(Pure(1), points=2**60)
    >>> scores = [(2**59, 0), (1000, 90), (2**59 - 1000, 3)]
    >>> m.guarantee(1), 2**59 <= m(scores) < 2**59 + 1000, m.interval(0.95)
    (Pure('1'), True, 89.0)
    >>> {y: round(p, 3) for y, p in Pieces(2, points=4).outcomes([(3, 0), (1, 2)]).items()}
    {0: 0.175, 1: 0.175, 2: 0.175, 3: 0.475}
    """

    kind = Output.OUTCOME
    tightness = 0.9999  # all of epsilon but what the point behind weighs
    scale: ChoiceScale
    _: KW_ONLY
    points: Annotated[int, partial(whole, least=2)]
    monotone: Monotone = False

    def __post_init__(self) -> None:
        if self.points >= _MOST:
            raise InputError("points must be below 2^62: choose a coarser grid.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, points: int, monotone: bool = False) -> Self:
        """Return the least scale that keeps the guarantee, if the score at each point moves by at most that much.

        Under replace scores move in both directions, whatever `monotone` says of added and removed records.
        """
        two = Exponential.calibrated(guarantee, sensitivity, candidates=2, monotone=monotone)
        return cls(two.scale, points=points, monotone=monotone)

    @property
    def _worst(self) -> Exponential:
        """The worst that scores can do: one point is best or behind, and all others are alike."""
        return Exponential(self.scale, candidates=2, monotone=self.monotone, measure=(1, self.points - 1))

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(range / scale) for scores that move by at most `distance` at each point."""
        return self._worst.guarantee(distance)

    # What it releases

    def __call__(self, pieces: Any, rng: Random = SYSTEM) -> int:
        """Release a point."""
        sizes, scores = self._read(pieces)
        i = drawn(scores.max() - scores, sizes, lambda i: int(sizes[i]), self.scale, rng)
        return int(sizes[:i].sum()) + rng.below(int(sizes[i]))

    def _read(self, pieces: Any) -> tuple[Int64Array, Int64Array]:
        answer = integer_answer(pieces)
        if answer.ndim != 2 or answer.shape[1] != 2 or len(answer) > choice.LARGEST:
            raise InputError(f"The pieces must be at most {choice.LARGEST:,} pairs (size, score) of whole numbers.")
        sizes, scores = answer.T
        if sizes.min() < 0 or sum(map(int, sizes)) != self.points:
            raise InputError(f"The sizes of the pieces must be at least 0 and add up to {self.points:,} points.")
        if scores.min() <= -_MOST or scores.max() >= _MOST:
            raise InputError("The scores must lie between -2^62 and 2^62: use a coarser unit.")
        return sizes.astype(np.int64), scores.astype(np.int64)

    def outcomes(self, pieces: Any) -> dict[int, float]:
        """P(each point), for grids that can be written out."""
        if self.points > ENUMERATED:
            raise InputError(f"Probabilities are written out for at most {ENUMERATED:,} points: choose fewer.")
        sizes, scores = self._read(pieces)
        return dict(enumerate(_shares(np.repeat(scores, sizes), self.scale)))

    # What to expect

    def error(self, y: int, pieces: Any) -> float:
        """By how much the score of the point is below the best."""
        sizes, scores = self._read(pieces)
        piece = int(np.searchsorted(np.cumsum(sizes), y, side="right"))
        return float(scores[sizes > 0].max() - scores[piece])

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest whole t for which the score is within t of the best with that probability, at worst."""
        return self._worst.interval(level)

    # For audits

    def pairs(self) -> Sequence[tuple[list[tuple[int, int]], list[tuple[int, int]], int]]:
        """A point far behind gains on all others; and a piece that begins one point later."""
        n, step = self.points, math.ceil(3 * self.scale / 2)
        later = [(n - 2, 0), (2, step)], [(n - 1, 0), (1, step)], step
        return [self._worst_pair(1), self._worst_pair(2), later]

    def _worst_pair(self, d: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
        behind, lower = -math.ceil(_BEHIND * self.scale) - 2 * d, -math.ceil(3 * self.scale / 2)
        fall = 0 if self.monotone else d
        first = self.points // 2
        rest = self.points - 1 - first
        return (
            [(1, behind), (first, 0), (rest, lower)],
            [(1, behind + d), (first, -fall), (rest, lower - fall)],
            d,
        )


def _shares(scores: Int64Array, scale: Fraction) -> list[float]:
    """e^(q/scale), normalised."""
    weights = np.exp((scores - scores.max()) * float(1 / scale))
    return [float(w) for w in weights / math.fsum(weights)]


examples = [
    Pieces(2, points=8),
    Pieces("1/3", points=5, monotone=True),
    Pieces(40, points=30),
    Pieces("5/2", points=20),
]
