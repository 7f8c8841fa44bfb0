"""A map whose counts are known: what every strategy's fit offers, with a bar of a known width."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from noisette.query.kind import Kind
from noisette.releases.axis import Axis
from noisette.releases.maps.regions import MapFrame
from noisette.releases.maps.released_map import ReleasedMap


@dataclass(frozen=True)
class KnownFit:
    """Counts as given; a bar is as wide as the root of the area, times what fails."""

    x: np.ndarray

    def counts(self, low, high):
        sides = box_sides(low, high, self.x.shape)
        found = sides[0] @ self.x.reshape(self.x.shape[0], -1)
        for side in sides[1:]:
            found = np.einsum("nij,ni->nj", found.reshape(len(low), side.shape[1], -1), side)
        return found.reshape(len(low))

    def bars(self, low, high, level):
        value, half = self.counts(low, high), np.sqrt(np.prod(high - low, axis=1)) / (1 - level)
        return value - half, value + half

    def guaranteed(self, low, high, level):
        return self.bars(low, high, 1 - (1 - level) / 2)

    def region(self, part, level, *, guaranteed=False):
        value, half = float((self.x * part).sum()), np.sqrt(part.sum()) / (1 - level) * (2 if guaranteed else 1)
        return value, value - half, value + half


def box_sides(low, high, shape):
    """How much of each cell's side lies in each box, axis by axis."""
    ends = zip(np.asarray(low).T, np.asarray(high).T, map(np.arange, shape), strict=True)
    return [np.clip(np.minimum(b[:, None], at + 1) - np.maximum(a[:, None], at), 0, 1) for a, b, at in ends]


def known(x, bounds=None, names=("lon", "lat", "z")):
    """A map of these counts between bounds; without any, cells of 1 from 0 on."""
    many = x.ndim
    ends = [0] * many + list(x.shape) if bounds is None else bounds
    axes = [
        Axis(names[i], Kind("real"), n, Fraction(ends[i]), (Fraction(ends[many + i]) - Fraction(ends[i])) / n)
        for i, n in enumerate(x.shape)
    ]
    return ReleasedMap(MapFrame(tuple(axes)), KnownFit(x), 0.95)
