"""Who is nearest to a place? Release how far about k people are, or where such a person might be; nobody is named.

People are points of a public grid, and a place is one of its points. An outcome is a distance, or a point of the grid
with its distance. L people are nearer to the place than that, R are as near or nearer, so it spans the ranks L .. R.
Its rank error D is the distance of k from there: 0 for the k-th person's own distance, whatever its ties. An outcome is
released with probability proportional to e^(-D/scale): the exponential mechanism.   [McSherry-Talwar 2007]

One person who comes, goes or moves shifts L and R by one at most, all in the same direction. Outcomes too near gain by
that what outcomes too far lose, so the D move within a range of 2: d people are worth

    epsilon = 2 d / scale,

under add/remove and under replace; (2 d/scale)^2/8-zCDP as well.   [Dong-Durfee-Rogers 2020; Cesar-Rogers 2021]
On a grid of many points it is tight. Let k people be one step away from the place, so that all D are 0 but the place's
own, and let one more come there. With w0 points at the place, w1 one step away and M others, each counted by its
e^(-D/scale), the place's own point tells the two tables apart by

    1/scale + ln((w0 e^(-k/scale) + w1 + M) / (w0 e^(-(k-1)/scale) + w1 + M e^(-1/scale))).

When: somebody asks how far the nearest people are, or for a spot that is typical of where they are, around a public
place; k should be well above ln(number of outcomes) scales. For shops and other public places, count and use
`Exponential`. The score "minus the distance" moves by the diameter of the grid if a person does, and is useless.
Textbook: the lecture notes, the exponential mechanism: who is the closest individual to a query location?

Vocabulary: `level` of an outcome or person, whole, that orders distances · `upto` how many outcomes have a level up to
that · `edges` of the pieces of levels, between which D is constant.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Whole, frozen
from noisette.exact.integers import Int64Array
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.additive.lattice import integer_answer
from noisette.mechanisms.calibration import agreed, whole_records
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.exponential import ChoiceScale, Exponential
from noisette.mechanisms.selection.interval_choice import drawn
from noisette.mechanisms.spatial.annuli import Pair, Point, Rectangle
from noisette.privacy import Promise, Pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.ranges import BoundedRange

__all__ = ["Int64Array", "NearestPoints"]

Table = tuple[Point, ...]
_LARGEST_K = 1 << 40


@frozen
class NearestPoints(Mechanism):
    """What both share: how people are read, what one of them costs, how a piece of levels is drawn."""

    kind = Output.OUTCOME
    scale: ChoiceScale
    _: KW_ONLY
    k: Whole
    columns: Pair
    rows: Pair
    place: Pair

    def __post_init__(self) -> None:
        Rectangle(self.columns, self.rows, self.place)  # which refuses a place outside
        if self.k > _LARGEST_K:
            raise InputError("k must be at most 2^40: it is a number of people.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, **options: Any) -> Self:
        """Return the least scale that keeps the guarantee, for that many points of one person."""
        agreed(guarantee, sensitivity)
        people, _ = whole_records(sensitivity)
        return cls(Exponential.calibrated(guarantee, people, candidates=2).scale, **options)

    def guarantee(self, distance: Distance = 1) -> Pure:
        """Return Pure(2 d/scale) for d people, with the rho of that range."""
        people, neighbours = whole_records(distance)
        epsilon = 2 * people / self.scale
        return Pure(epsilon, neighbours=neighbours, losses=once(BoundedRange(epsilon) if epsilon else None))

    # What it releases

    def __call__(self, people: Any, rng: Random = SYSTEM) -> Any:
        """Release an outcome, given one row (x, y) of whole numbers for each person."""
        edges, errors = self._pieces(self._levels(people))
        first, last = self._window(errors)
        upto = self._upto(edges[first : last + 1])
        before, after = np.full(first, upto[0]), np.full(len(errors) - last, self._total - upto[-1])
        most = np.concatenate([before, np.diff(upto), after])

        def size(i: int) -> int:
            return int(most[i] if first <= i < last else np.diff(self._upto(edges[i : i + 2]))[0])

        i = drawn(errors, most, size, self.scale, rng)
        return self._outcome(int(edges[i]), int(edges[i + 1]), rng.below(size(i)))

    def _levels(self, people: Any) -> Int64Array:
        if isinstance(people, list | tuple | np.ndarray) and not len(people):  # that nobody is there shall not show
            return np.empty(0, np.int64)
        points = integer_answer(people)
        if points.ndim != 2 or points.shape[1] != 2:
            raise InputError("The people must be rows (x, y) of whole numbers, one for each person.")
        return self._level(self._seen.squares(points))

    def _pieces(self, levels: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Edges, and D on the levels after each edge up to the next: levels of people, and those between them."""
        own, counts = np.unique(levels, return_counts=True)
        ranks = np.repeat(np.concatenate([[0], np.cumsum(counts)]), 2)
        top = max(self._top, int(own[-1]) if len(own) else 0)
        edges = np.concatenate([[-1], np.column_stack([own - 1, own]).ravel(), [top]])
        return edges, self._rank_errors(ranks[:-1], ranks[1:])

    def _rank_errors(self, nearer: Any, upto: Any) -> Any:
        return np.maximum(np.maximum(nearer - self.k, self.k - upto), 0)

    def _window(self, errors: Int64Array) -> tuple[int, int]:
        """Which pieces are counted before one is drawn."""
        return 0, len(errors)

    @property
    def _seen(self) -> Rectangle:
        return _rectangle(self.columns, self.rows, self.place)

    @property
    def _top(self) -> int:
        """The largest level of an outcome."""
        return self._seen.farthest

    @property
    def _total(self) -> int:
        return int(self._upto(np.array([self._top]))[0])

    @property
    def _least(self) -> int:
        """How much the lightest outcome counts."""
        return 1

    def _level(self, squares: Int64Array) -> Int64Array:
        return squares

    def _upto(self, levels: Int64Array) -> Int64Array:
        raise NotImplementedError

    def _outcome(self, after: int, upto: int, u: int) -> Any:
        """The u-th outcome of a piece."""
        raise NotImplementedError

    def _outcomes(self) -> tuple[list[Any], Int64Array, Int64Array]:
        """All outcomes, their levels, and how much each counts."""
        raise NotImplementedError

    def _level_of(self, y: Any) -> int:
        raise NotImplementedError

    def outcomes(self, people: Any) -> dict[Any, float]:
        """P(each outcome), for grids that can be written out."""
        outcomes, levels, weights = self._outcomes()
        sorted_levels = np.sort(self._levels(people))
        errors = self._rank_errors(*(np.searchsorted(sorted_levels, levels, side=side) for side in ("left", "right")))
        chances = weights * np.exp((errors.min() - errors) * float(1 / self.scale))
        return dict(zip(outcomes, (chances / math.fsum(chances)).tolist(), strict=True))

    # What to expect

    def error(self, y: Any, people: Any) -> float:
        """How many people further from the k-th its rank is than need be: D less the least D of all outcomes."""
        levels, own = self._levels(people), self._level_of(y)
        edges, errors = self._pieces(levels)
        here = self._rank_errors(np.count_nonzero(levels < own), np.count_nonzero(levels <= own))
        return float(here - errors[np.diff(self._upto(edges)) > 0].min())

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest whole t with P(error <= t) >= level if one outcome is best and all others miss by t + 1.

        No table is worse than that; most are far better, because many outcomes are good.
        """
        worst = Exponential(self.scale, candidates=2, measure=(self._least, self._total - self._least))
        return worst.interval(level)

    # For audits

    def pairs(self) -> Sequence[tuple[Table, Table, int]]:
        """k people are one step away and some further off; one more comes to the place, or moves there from afar."""
        near, middle, far = self._stations()
        crowd = (near,) * self.k + (middle,) * self._further
        return [(crowd, (*crowd, self.place), 1), ((*crowd, far), (*crowd, self.place), 1)]

    @property
    def _further(self) -> int:
        return math.ceil(self.scale * Fraction(3, 2))

    def _stations(self) -> tuple[Point, Point, Point]:
        """Points that are as near as can be without being at the place, halfway and as far as can be."""
        points = self._seen.all
        levels = self._level(self._seen.squares(points))
        order = np.argsort(levels, kind="stable")
        order = order[levels[order] > levels.min()]
        near, middle, far = ((int(x), int(y)) for x, y in points[order[[0, len(order) // 2, -1]]])
        return near, middle, far

    @property
    def tightness(self) -> float:
        """What the pairs reach of epsilon, by the formula above."""
        at = np.array([self.place, *self._stations()[:2]])
        w0, w1, middle = self._upto(self._level(self._seen.squares(at))).astype(float)
        g = float(1 / self.scale)
        others = middle - w1 + (self._total - middle) * math.exp(-g * self._further)
        before = w0 * math.exp(-g * self.k) + w1 - w0 + others
        after = w0 * math.exp(-g * (self.k - 1)) + w1 - w0 + others * math.exp(-g)
        return (g + math.log(before / after)) / (2 * g)


@lru_cache(maxsize=64)
def _rectangle(columns: Point, rows: Point, place: Point) -> Rectangle:
    return Rectangle(columns, rows, place)
