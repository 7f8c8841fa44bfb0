"""Inverse sensitivity: an outcome is the likelier the fewer records must change for it to be the answer.

A point y of the public span is released with probability proportional to e^(-D(y)/scale), where D is the least number
of records that must change until the answer is y. A neighbour's D differs by at most 1 at every point, so

    epsilon = 2/scale

by the exponential mechanism, and no smaller epsilon holds for all spans.   [Asi-Duchi 2020, "Instance-optimality in
differential privacy via approximate inverse sensitivity mechanisms"; McSherry-Talwar 2007]
It needs no smooth bound and no delta, and has nothing to tune.

For medians and sums D is exact. For triangles a ladder takes its place, whose rung t covers what t changes could do at
most, and for other quantiles a rank; they move by at most 1 too, and that is all that epsilon needs.
[Zhang-Cormode-Procopiuc-Srivastava-Xiao 2015; proof note: docs/proofs/smooth-sensitivity.md]
All points that one number of changes reaches are alike, so a choice takes the time of the rungs, not of the span.

When: quantiles of bounded values, and whatever else has such distances. For triangles `Smooth` errs half as much, and
for sums of bounded values plain noise of their global sensitivity is best (see docs/smooth-sensitivity.md).
Textbook: not in the textbooks; it replaces smooth sensitivity.

Vocabulary: `statistic` the answer and its distances · D `distance`, in records.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import choice
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.integers import Int64Array
from noisette.exact.number import level_of
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.exponential import ChoiceScale, Exponential
from noisette.mechanisms.selection.interval_choice import ENUMERATED, Pieces, drawn
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.statistic import Statistic, people, pieces, related
from noisette.mechanisms.smooth.triangles import TriangleCount
from noisette.mechanisms.smooth.trimmed import Trimmed
from noisette.privacy import ZCDP, Neighbours, Promise, Pure

__all__ = ["InverseSensitivity"]


@frozen
class InverseSensitivity(Mechanism):
    """A point of the statistic's span, given a table.

    >>> m = InverseSensitivity.calibrated(Pure(1), statistic=Order("1/2", 0, 1000))
    >>> table = list(range(400, 600))
    >>> m.guarantee(), m.scale, 0 <= m(table) <= 1000
    (Pure('1', neighbours=ADD_REMOVE), Fraction(2, 1), True)
    >>> m.half_width(table), m.interval()
    (3.0, 19.0)
    """

    kind = Output.OUTCOME
    own_relation = True
    scale: ChoiceScale
    _: KW_ONLY
    statistic: Statistic

    def __post_init__(self) -> None:
        if isinstance(self.statistic, Trimmed) and self.statistic.trim:
            raise InputError("Distances to other trimmed sums are not known: choose trim=0, or Smooth.")
        assert self._line  # which refuses a span that is too long

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, statistic: Statistic) -> "InverseSensitivity":
        """Return the one that keeps the guarantee for `sensitivity` records of one person."""
        if isinstance(guarantee, ZCDP):
            related(guarantee, sensitivity, statistic.neighbours, pure=True)  # refuses what does not fit
            records = people(sensitivity, statistic.neighbours)
            return cls(Exponential.calibrated(guarantee, records, candidates=2).scale, statistic=statistic)
        epsilon, _ = related(guarantee, sensitivity, statistic.neighbours, pure=True)
        return cls(2 / epsilon, statistic=statistic)

    @property
    def _line(self) -> Pieces:
        low, high = self.statistic.span
        return Pieces(self.scale, points=high - low + 1)

    @property
    def neighbours(self) -> Neighbours:
        """The relation of the statistic."""
        return self.statistic.neighbours

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(2/scale) for each record that differs, with the rho of that range."""
        known = self._line.guarantee(people(distance, self.neighbours))
        assert isinstance(known, Pure)
        return Pure(known.epsilon, neighbours=self.neighbours, losses=known.losses)

    # What it releases

    def _pieces(self, x: Any) -> tuple[Int64Array, Int64Array]:
        table = self.statistic.read(x)
        value, reaches = self.statistic.value(table), self.statistic.reaches(table)
        sizes, distances = pieces(self.statistic.span, value, reaches)
        if len(sizes) > choice.LARGEST:
            raise InputError(f"There must be at most {choice.LARGEST:,} numbers of changes: use a smaller table.")
        return sizes, distances

    def __call__(self, x: Any, rng: Random = SYSTEM) -> int:
        """Release a point of the span."""
        sizes, distances = self._pieces(x)
        i = drawn(distances, sizes, lambda i: int(sizes[i]), self.scale, rng)
        return self.statistic.span[0] + int(sizes[:i].sum()) + rng.below(int(sizes[i]))

    def outcomes(self, x: Any) -> dict[int, float]:
        """P(each point of the span), for spans that can be written out."""
        sizes, distances = self._pieces(x)
        low, high = self.statistic.span
        if high - low > ENUMERATED:
            raise InputError(f"Probabilities are written out for at most {ENUMERATED:,} points: choose a smaller span.")
        weights = np.exp(-np.repeat(distances, sizes) / float(self.scale))
        return dict(zip(range(low, high + 1), (weights / weights.sum()).tolist(), strict=True))

    # What to expect

    def error(self, y: Any, x: Any) -> float:
        """The number of records that would have to change for the outcome to be right (at least: of triangles)."""
        sizes, distances = self._pieces(x)
        return float(distances[np.searchsorted(np.cumsum(sizes), int(y) - self.statistic.span[0], side="right")])

    def interval(self, level: float = 0.95) -> float:
        """Return a number of changes that the outcome stays within, with that probability, for every table."""
        return self._line.interval(level)

    def half_width(self, x: Any, level: float = 0.95) -> float:
        """Return the t with P(|released - answer| <= t) >= level for one table: for planning on public ones."""
        level_of(level)
        sizes, distances = self._pieces(x)
        each = np.exp(-distances / float(self.scale))
        total, at = float((each * sizes).sum()), int(np.flatnonzero(distances == 0)[0])
        sides = [_within(each[:at][::-1], sizes[:at][::-1]), _within(each[at + 1 :], sizes[at + 1 :])]
        low, high = -1, self.statistic.span[1] - self.statistic.span[0]
        while high - low > 1:
            t = (low + high) // 2
            inside = 1.0 + sum(float(np.interp(t, *side)) for side in sides)
            low, high = (low, t) if inside >= level * total else (t, high)
        return float(high)

    # For audits

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """Those of the statistic."""
        return self.statistic.pairs(Fraction(1, 4))

    @property
    def tightness(self) -> float:
        """Nearly all on a span of many points, most of which move away while a rare one comes nearer; half on few."""
        return 0.5 if isinstance(self.statistic, Order) else 0.3


def _within(each: NDArray[np.float64], sizes: Int64Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far a side goes, and how much weight it has up to there."""
    return np.append(0.0, np.cumsum(sizes)), np.append(0.0, np.cumsum(each * sizes))


examples = [
    InverseSensitivity("1/2", statistic=Order("1/2", 0, 20, neighbours=Neighbours.REPLACE)),
    InverseSensitivity("1/2", statistic=Order("1/2", -5, 5)),
    InverseSensitivity("2/3", statistic=Order("4/5", 0, 6)),
    InverseSensitivity("3/2", statistic=Trimmed(4, 0, 6)),
    InverseSensitivity(2, statistic=TriangleCount(6)),
]
