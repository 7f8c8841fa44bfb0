"""Counts of rectangles and regions from a tree of boxes that was measured, with error bars.

Vocabulary: `u`, `z`, `s` as in `boxes` · a box is *inside* a rectangle, *cut* by it, or neither · f is the part of a
cut box that the rectangle holds.

**Usual bars.** Take the largest boxes inside a rectangle. The sum of their z is unbiased and has the sum of their s as
variance; the least-squares estimate is the best linear unbiased one, so its variance is at most that (Gauss-Markov).
What a cut box without children holds is spread evenly by assumption: it adds a deviation of (u + 2 b) sqrt(2 f (1 - f))
with 2 b^2 = s, and no bar beyond max(f, 1 - f) (u + 2 b). Not guaranteed: where boxes are uneven, single rectangles
may miss nearly always.

**Guaranteed bars.** If no decision looked at a count, take the same boxes with their z; else with their own count or,
for a box that was not measured, the sum over its children. Whether such a box was measured is decided by boxes that the
rectangle cuts. A cut box without children, whose count no decision looked at, adds anything from 0 to its count. So the
lower end rests on the sum over the boxes inside, and the upper end on that over boxes inside and cut, each with half of
what may fail. The noise of either sum has fixed weights, given all decisions.   (docs/proofs/map-strategies.md)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.linear import widest
from noisette.releases.maps.boxes import Boxes
from noisette.releases.maps.contract import Ends, Floats
from noisette.releases.maps.transcript import box_sums, summed

__all__ = ["BoxFit"]

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Held: TypeAlias = Callable[[Ints, Ints], Floats]
"""The part of each box that a query holds, exactly 1 if all of it: of queries and boxes by their numbers."""

_UNIFORM = 0.02  # the part of what may fail that goes to Hoeffding's bound
_LITTLE = 1e-9  # of a box: what a region that cuts it holds at least, and leaves out at least
_TOGETHER = 256  # queries that go down the tree at once


@dataclass(frozen=True)
class BoxFit:
    """What was measured of a tree of boxes.

    `decided` says whether a decision looked at a noisy count; `nonnegative` and `prune` are those of `Boxes.estimated`.
    """

    boxes: Boxes
    shape: tuple[int, ...]
    decided: bool = False
    nonnegative: bool = False
    prune: float = -math.inf

    @cached_property
    def _u(self) -> Floats:
        return self.boxes.estimated(nonnegative=self.nonnegative, prune=self.prune)

    @cached_property
    def x(self) -> Floats:
        """The count of each cell: that of a box without children is spread evenly over its cells."""
        leaf = np.flatnonzero(self.boxes.leaf)
        corners = tuple(size + 1 for size in self.shape)
        owner = np.zeros(corners)  # the number of each cell's box, from its changes at corners; exact, being whole
        for upper in product((False, True), repeat=len(self.shape)):
            corner = np.where(upper, self.boxes.high[leaf], self.boxes.low[leaf])
            places = np.ravel_multi_index(tuple(corner.T), corners)
            owner += np.bincount(places, (-1.0) ** sum(upper) * leaf, minlength=owner.size).reshape(corners)
        for axis in range(len(self.shape)):
            np.cumsum(owner, axis=axis, out=owner)
        even: Floats = self._u / self.boxes.volume
        return np.asarray(even[owner[tuple(slice(size) for size in self.shape)].astype(np.int64)])

    @cached_property
    def _table(self) -> Floats:
        return summed(self.x)

    def counts(self, low: Floats, high: Floats) -> Floats:
        """The number in each rectangle."""
        first, last = self._clipped(low, high)
        found = np.zeros(len(first))
        for upper in product((False, True), repeat=len(self.shape)):
            found += (-1) ** (len(self.shape) - sum(upper)) * self._before(np.where(upper, last, first))
        return found

    def _clipped(self, low: Floats, high: Floats) -> Ends:
        first = np.clip(np.asarray(low, float), 0.0, self.shape)
        return first, np.maximum(np.clip(np.asarray(high, float), 0.0, self.shape), first)

    def _before(self, point: Floats) -> Floats:
        """The number below each point along every axis: the table between its whole places."""
        cell = np.minimum(point.astype(np.int64), np.array(self.shape) - 1)
        rest, found = point - cell, np.zeros(len(point))
        for upper in product((0, 1), repeat=len(self.shape)):
            weight = np.where(upper, rest, 1 - rest).prod(axis=1)
            found += weight * self._table[tuple((cell + upper).T)]
        return found

    # Error bars

    def bars(self, low: Floats, high: Floats, level: float) -> Ends:
        """The ends of the usual error bars of rectangles: about the level, not guaranteed."""
        first, last = self._clipped(low, high)
        return self._usual(self.counts(first, last), self._part(first, last), level)

    def guaranteed(self, low: Floats, high: Floats, level: float) -> Ends:
        """The ends of error bars that hold with at least the level's probability, whatever the data."""
        first, last = self._clipped(low, high)
        return self._certain(len(first), self._part(first, last), level)

    def region(self, part: Floats, level: float, *, guaranteed: bool = False) -> tuple[float, float, float]:
        """The number in a region, which holds a `part` from 0 to 1 of each cell, with the ends of its error bar."""
        value = np.array([float((self.x * part).sum())])
        held = self._held(part)
        low, high = self._certain(1, held, level) if guaranteed else self._usual(value, held, level)
        return float(value[0]), float(low[0]), float(high[0])

    def _part(self, low: Floats, high: Floats) -> Held:
        start, stop = self.boxes.low, self.boxes.high

        def held(query: Ints, box: Ints) -> Floats:
            inside = np.minimum(stop[box], high[query]) - np.maximum(start[box], low[query])
            return np.asarray((np.maximum(inside, 0.0) / (stop[box] - start[box])).prod(axis=1))

        return held

    def _held(self, part: Floats) -> Held:
        """The same for a region; whole cells are counted, so that a box is inside exactly or not at all."""
        boxes, cells = self.boxes, np.asarray(part, float)
        full, some, held = (
            box_sums(summed(one), boxes.low, boxes.high) for one in ((cells == 1) * 1.0, (cells > 0) * 1.0, cells)
        )
        share = np.clip(held / boxes.volume, _LITTLE, 1 - _LITTLE)
        share = np.where(full == boxes.volume, 1.0, np.where(some == 0, 0.0, share))
        return lambda query, box: share[box]

    def _met(self, queries: int, held: Held, ends: Mask) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Go down from the top: for each query the largest boxes inside it (f = 1), and the ends that it cuts."""
        first, many = self.boxes.family
        for start in range(0, queries, _TOGETHER):
            query = np.arange(start, min(start + _TOGETHER, queries))
            box = np.zeros(len(query), np.int64)
            while len(query):
                f = held(query, box)
                done = (f == 1) | ((f > 0) & ends[box])
                yield query[done], box[done], f[done]
                going = (f > 0) & ~done
                query, box = query[going], box[going]
                before = np.repeat(np.cumsum(many[box]) - many[box], many[box])
                query, box = (
                    np.repeat(query, many[box]),
                    np.repeat(first[box], many[box]) + np.arange(len(before)) - before,
                )

    def _usual(self, value: Floats, held: Held, level: float) -> Ends:
        s, wide = self.boxes.gathered[1], widest(self.boxes.noises[0], level)
        hidden, square = np.maximum(self._u, 0.0) + np.sqrt(2 * s), np.zeros(len(value))
        for query, box, f in self._met(len(value), held, self.boxes.ends(self._u, self.prune)):
            unknown = np.minimum(wide * np.sqrt(2 * f * (1 - f)), np.maximum(f, 1 - f) * (f < 1))
            add = (wide * f) ** 2 * s[box] + (unknown * hidden[box]) ** 2
            square += np.bincount(query, add, minlength=len(value))
        half = np.sqrt(square)
        return np.maximum(value - half, 0.0), np.maximum(value + half, 0.0)

    def _certain(self, queries: int, held: Held, level: float) -> Ends:
        inside, both = _Total(queries), _Total(queries)
        figures = self.boxes.sureness(decided=self.decided)
        for query, box, f in self._met(queries, held, self.boxes.leaf):
            both.add(query, box, figures)
            inside.add(query[f == 1], box[f == 1], figures)
        low = inside.value - inside.half(self.boxes, 1 - level)
        high = np.maximum(both.value, 0.0) + both.half(self.boxes, 1 - level)  # no point: as far from 0 as from it
        return np.maximum(low, 0.0), high


class _Total:
    """Sums over boxes for each query: of their counts, of their variances, of the squared weights of noises."""

    def __init__(self, queries: int) -> None:
        self.value, self.variance, self.weight = (np.zeros(queries) for _ in range(3))

    def add(self, query: Ints, box: Ints, figures: tuple[Floats, Floats, Floats]) -> None:
        for total, figure in zip((self.value, self.variance, self.weight), figures, strict=True):
            total += np.bincount(query, figure[box], minlength=len(total))

    def half(self, boxes: Boxes, fails: float) -> Floats:
        """A t that the noise of the sum exceeds on either side with a probability of at most half of `fails`."""
        if boxes.plain:
            return np.asarray(widest(boxes.noises[0], 1 - fails) * (1 + 1e-9) * np.sqrt(self.variance))
        beyond = np.sqrt(-math.log(_UNIFORM) / 2 * self.weight)
        return np.asarray(widest(boxes.noises[0], 1 - fails * (1 - _UNIFORM)) * np.sqrt(self.variance) + beyond)
