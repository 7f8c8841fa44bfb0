"""Flows between the cells of two maps, released once: the largest ones, counts between rectangles, and a picture."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.exact.number import level_of, whole
from noisette.releases.line import Interval
from noisette.releases.maps.contract import Floats
from noisette.releases.maps.regions import MapFrame
from noisette.releases.sparse.counts import Released

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["ReleasedFlows"]

_LISTED, _DRAWN = 20, 40


@dataclass(frozen=True, repr=False)
class ReleasedFlows:
    """The flows whose noisy counts reached the threshold; a flow that is absent may have rows, but hardly many."""

    origin: MapFrame
    destination: MapFrame
    released: Released
    level: float

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The middles of the cells where each released flow starts and ends."""
        shape = (*self.origin.shape, *self.destination.shape)
        at = np.stack(np.unravel_index(self.released.codes, shape), axis=1) + 0.5
        return self.origin.first + at[:, :2] * self.origin.width, self.destination.first + at[
            :, 2:
        ] * self.destination.width

    def columns(self) -> tuple[Column, ...]:
        """The released flows by the middles of their cells, as columns of an answer."""
        names, ends = (*self.origin.names, *self.destination.names), np.hstack(self._ends)
        keys = (Column(name, pyarrow.array(ends[:, i])) for i, name in enumerate(names))
        return (*keys, Column("n", pyarrow.array(self.released.v), *self.released.bars(self.level)))

    def to_arrow(self) -> pyarrow.Table:
        """All released flows with their error bars."""
        *keys, n = self.columns()
        numbers = {"n": n.values, "n_low": n.low, "n_high": n.high}
        return pyarrow.table({**{key.name: key.values for key in keys}, **numbers})

    def top(self, k: int = _LISTED) -> pyarrow.Table:
        """The k largest released flows, the largest first."""
        return self.to_arrow().take(np.argsort(-self.released.v, kind="stable")[: whole(k, "k")])

    def count(self, origin: Any = None, destination: Any = None, *, level: float | None = None) -> Interval:
        """How many go from one rectangle to another, by cells whose middles lie in them; flows not released count 0."""
        chosen = self._inside(self.origin, self._ends[0], origin)
        chosen &= self._inside(self.destination, self._ends[1], destination)
        known = self.level if level is None else level_of(level)
        found = self.released.total(chosen, self.released.made.cells, known)
        return Interval(found.n, found.low, found.high)

    def _inside(self, frame: MapFrame, places: Floats, rectangle: Any) -> NDArray[np.bool_]:
        low, high = frame.edges([frame.bounds if rectangle is None else rectangle])
        at = (places - frame.first) / frame.width
        return np.asarray(((at >= low) & (at < high)).all(axis=1))

    def chart(self, *, outline: Any = None, title: str = "", note: str = "") -> "Chart":
        """The largest flows as arrows: wider where more people go."""
        from noisette.charts.flows import flows
        from noisette.releases.maps.regions import polygons_of

        order = np.argsort(-self.released.v, kind="stable")[:_DRAWN]
        bounds = np.array([self.origin.bounds, self.destination.bounds])
        span = np.r_[bounds[:, :2].min(axis=0), bounds[:, 2:].max(axis=0)]
        rings = [] if outline is None else [ring for rings in polygons_of(outline) for ring in rings]
        start, end = (places[order] for places in self._ends)
        heading = title or f"The {len(order):,} largest flows"
        return flows(
            start,
            end,
            self.released.v[order],
            span=span,
            names=self.origin.names,
            outline=rings,
            title=heading,
            note=note,
        )

    plot = chart

    def __repr__(self) -> str:
        return f"{len(self.released.codes):,} flows between {' × '.join(map(str, self.origin.shape))} cells"
