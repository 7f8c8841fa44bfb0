"""Trees of boxes in any number of dimensions: what was measured of each box, and the least-squares counts of all.

Vocabulary: `y` the noisy count of a box, `v` its variance (infinite where the box was not measured) · `z` the best
estimate from a box and all below it, `s` its variance · `u` the estimate from all boxes · `siblings` the children of
one parent, which are disjoint and fill it. A box may have a single child of its own shape: it was measured once more.

Least squares in two passes, for trees of any shape. Up, z is the inverse-variance mean of y and of the sum of the
children's z. Down, what the parent's u has more than the children's z is shared among them in proportion to s. It is
the generalised least-squares estimate.   [Hay-Rastogi-Miklau-Suciu 2010; docs/proofs/map-strategies.md]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.mechanisms import Gaussian
from noisette.releases.linear import Noise, peak, variance_of

__all__ = ["Boxes", "Layer", "halves"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Layer:
    """Boxes of one depth: edges in cells, the place of each parent in the layer above, and which noise measured it.

    `kind` is the place of the noise in a list of all noises, -1 for a box that was not measured.
    """

    low: Ints
    high: Ints
    parent: Ints
    kind: Ints
    y: Floats

    @classmethod
    def whole(cls, shape: Sequence[int]) -> "Layer":
        """The box of all cells, not measured yet."""
        high = np.array([shape], np.int64)
        return cls(np.zeros_like(high), high, np.full(1, -1), np.full(1, -1), np.zeros(1))


@dataclass(frozen=True)
class Boxes:
    """The boxes of a tree, layer by layer from the one of all cells; the parents of each layer are in order."""

    layers: tuple[Layer, ...]
    noises: tuple[Noise, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(layer.y) for layer in self.layers), initial=0))

    def _slices(self) -> Iterator[tuple[slice, slice, Ints]]:
        """For each layer from the second: its parents' layer, itself, and the parents of its boxes."""
        starts = self._starts
        for i in range(1, len(self.layers)):
            yield slice(starts[i - 1], starts[i]), slice(starts[i], starts[i + 1]), self.layers[i].parent

    @cached_property
    def low(self) -> Ints:
        """The first cell of each box along each axis."""
        return np.concatenate([layer.low for layer in self.layers])

    @cached_property
    def high(self) -> Ints:
        """The cell after the last one."""
        return np.concatenate([layer.high for layer in self.layers])

    @cached_property
    def volume(self) -> Floats:
        """How many cells each box has."""
        return np.asarray((self.high - self.low).astype(float).prod(axis=1))

    @cached_property
    def y(self) -> Floats:
        """The noisy count of each box, 0 where it was not measured."""
        return np.concatenate([layer.y for layer in self.layers])

    @cached_property
    def _kind(self) -> Ints:
        return np.concatenate([layer.kind for layer in self.layers])

    @cached_property
    def v(self) -> Floats:
        """The variance of each noisy count, infinite where there is none."""
        return self._per_kind(variance_of)

    def _per_kind(self, figure: Callable[[Noise], float]) -> Floats:
        return np.array([*map(figure, self.noises), np.inf])[self._kind]

    @cached_property
    def plain(self) -> bool:
        """Whether the noise is Gaussian, so that sums of it need no care about whole numbers."""
        return isinstance(self.noises[0], Gaussian)

    @cached_property
    def family(self) -> tuple[Ints, Ints]:
        """The first child of each box, and how many children it has."""
        first, many = np.zeros(len(self.y), np.int64), np.zeros(len(self.y), np.int64)
        for above, here, parent in self._slices():
            many[above] = np.bincount(parent, minlength=above.stop - above.start)
            first[above] = here.start + np.cumsum(many[above]) - many[above]
        return first, many

    @property
    def leaf(self) -> Mask:
        """Whether a box has no children."""
        return np.asarray(self.family[1] == 0)

    # Least squares

    @cached_property
    def gathered(self) -> tuple[Floats, Floats, Floats]:
        """z and s of each box, and the weight of its own count in z; the rest goes to the sum of the children's z."""
        z, s, own = self.y.copy(), self.v.copy(), np.ones(len(self.y))
        for above, here, parent in reversed(list(self._slices())):
            size = above.stop - above.start
            known, room = (np.bincount(parent, part[here], minlength=size) for part in (z, s))
            own[above] = np.where(self.leaf[above], 1.0, _weight(self.v[above], room.astype(float)))
            z[above] = own[above] * self.y[above] + (1 - own[above]) * known
            s[above] = np.where(self.leaf[above], s[above], (1 - own[above]) * room)
        return z, s, own

    def sureness(self, *, decided: bool) -> tuple[Floats, Floats, Floats]:
        """An estimate of each box from itself and below, the variance of a less peaked one, and its squared weights.

        If decisions looked at counts, it is the box's own count or, where there is none, the sum over its children;
        else it is z. The squared weights are those of all noisy counts in it, added up.
        """
        own = np.where(self._kind < 0, 0.0, 1.0) if decided else self.gathered[2]
        wider, one = (self._per_kind(figure) for figure in (lambda noise: 2 * peak(noise) ** 2, lambda noise: 1.0))
        return self.upward(own, self.y), self.upward(own, wider, power=2), self.upward(own, one, power=2)

    def upward(self, own: Floats, figure: Floats, *, power: int = 1) -> Floats:
        """Sum from the leaves: a box's own figure with the weight `own`, its children's with the rest, to a power."""
        found = np.where(self._kind < 0, 0.0, figure)
        for above, here, parent in reversed(list(self._slices())):
            below = np.bincount(parent, found[here], minlength=above.stop - above.start)
            found[above] = own[above] ** power * found[above] + (1 - own[above]) ** power * below
        return found

    def estimated(self, *, nonnegative: bool = False, prune: float = -np.inf) -> Floats:
        """u of each box: children add up to their parent.

        `nonnegative` projects siblings on the non-negative numbers of the same sum. Below a box with a count under
        `prune` all is spread evenly. Both give up being unbiased.
        """
        z, s, _ = self.gathered
        u = z.copy()
        u[0] = max(u[0], 0.0) if nonnegative else u[0]
        cut = u < prune
        for above, here, parent in self._slices():
            total = u[above]
            u[here] = _projected(z[here], s[here], total, parent) if nonnegative else _shared(z, s, total, parent, here)
            ended = cut[above][parent]
            even = total[parent] * self.volume[here] / self.volume[above][parent]
            u[here] = np.where(ended, even, u[here])
            cut[here] = ended | (u[here] < prune)
        return u

    def ends(self, u: Floats, prune: float) -> Mask:
        """Boxes below which nothing is told apart: those without children, and those under `prune`."""
        return self.leaf | (u < prune)


def _weight(v: Floats, room: Floats) -> Floats:
    """The weight of a count of variance v, which may be infinite, beside one of variance `room`."""
    return np.divide(room, room + v, out=np.zeros_like(room), where=room + v > 0)


def _shared(z: Floats, s: Floats, total: Floats, parent: Ints, here: slice) -> Floats:
    """Children that add up to their parents' totals: what is missing is shared in proportion to s."""
    known, room = (np.bincount(parent, part[here], minlength=len(total)) for part in (z, s))
    missing = np.divide(total - known, room, out=np.zeros_like(total), where=room > 0)
    return np.asarray(z[here] + s[here] * missing[parent])


def _projected(z: Floats, s: Floats, total: Floats, parent: Ints) -> Floats:
    """The non-negative children nearest to z in units of s that add up to their parents' totals.   [Michelot 1986]"""
    active = np.ones(len(z), bool)
    while True:
        known, room = (np.bincount(parent, np.where(active, part, 0.0), minlength=len(total)) for part in (z, s))
        missing = np.divide(total - known, room, out=np.zeros_like(total), where=room > 0)
        found = np.where(active, z + s * missing[parent], 0.0)
        if (found >= 0).all():
            return found
        active &= found > 0


def halves(low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """Halve boxes along every axis of more than one cell: the edges of the parts, and which box each is a part of.

    >>> low, high, parent = halves(np.array([[0, 0]]), np.array([[1, 3]]))
    >>> low.tolist(), high.tolist(), parent.tolist()
    ([[0, 0], [0, 1]], [[1, 1], [1, 3]], [0, 0])
    """
    parent = np.arange(len(low))
    for axis in range(low.shape[1]):
        low, high, of = halved(low, high, np.full(len(low), axis), (low[:, axis] + high[:, axis]) // 2)
        parent = parent[of]
    return low, high, parent


def halved(low: Ints, high: Ints, axis: Ints, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Split each box along an axis before the cell `at`; a box that would have an empty part stays whole."""
    rows = np.arange(len(low))
    split = (at > low[rows, axis]) & (at < high[rows, axis])
    of = np.repeat(rows, 1 + split)
    second = np.concatenate([[False], of[1:] == of[:-1]]) if len(of) else np.zeros(0, bool)
    lower, upper, first = low[of], high[of], split[of] & ~second
    places = np.arange(len(of))
    upper[places[first], axis[of[first]]] = at[of[first]]
    lower[places[second], axis[of[second]]] = at[of[second]]
    return lower, upper, of
