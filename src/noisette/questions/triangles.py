"""The number of triangles of a graph whose edges are rows.

A row is an edge between two vertices of a public set: those that the policy lists as keys (or bounds, for whole
numbers) of either column. A row with NULL, with an undeclared vertex, or with one vertex twice makes no edge; the order
of both does not matter, and an edge that several rows make is one. So a row that comes or goes adds or removes one edge
at most, and one unit changes at most as many edges as it has rows (twice as many under replace; see `records`).

That is *edge* privacy: it hides whether rows are there, not everything about a person who is a vertex in the rows of
others.   [Nissim-Raskhodnikova-Smith 2007; Zhang-Cormode-Procopiuc-Srivastava-Xiao 2015]
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.triangles import TriangleCount as Counted
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.expected import Expected
from noisette.query.kind import Kind, Value
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.noisy_number import By, Noisy, NoisyNumber, bar_of, of_another, smooth, without_bar
from noisette.questions.parts.offers import text_of
from noisette.questions.parts.records import changed, grouped
from noisette.questions.parts.rows import Rows

__all__ = ["Triangles"]

_MOST = 2000
_RING, _NEXT = 100, 3  # a made-up graph: each of 100 vertices has an edge to the next 3
_WHY = {
    "smooth": "Noise as wide as one edge could change this graph's triangles, or those of graphs near it.",
    "inverse": "The fewer edges would have to change for a number to be right, as far as known, the likelier it is.",
}


@dataclass(frozen=True)
class Triangles(JsonQuestion):
    """How many triangles the edges between columns `a` and `b` make, by the better of both mechanisms or as named.

    >>> Triangles("buyer", "seller")
    Triangles(a='buyer', b='seller', of=None, by=None)
    """

    a: str
    b: str
    of: Rows = None
    by: By | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Noise, or a choice on a ladder, for the edges that one unit can change."""
        prepared = grouped(self.of, [self.a, self.b], schema)
        if len(prepared.keys) < 2:
            raise InputError("An edge has two ends: name two columns that are not the same.")
        prepared, vertices = _declared(prepared)
        moved, statistic = changed(prepared, neighbours), Counted(len(vertices))
        mechanism = _mechanism(self.by, spend.share(1), moved, statistic)
        rungs = statistic.furthest if isinstance(mechanism, InverseSensitivity) else 1
        worst = min(mechanism.interval(level) * rungs, float(statistic.span[1]))
        ends = 0.0, float(statistic.span[1])
        shown = "triangles", Fraction(1), worst, ends, bar_of(spend.share(1), moved, mechanism)
        number = NoisyNumber(prepared, mechanism, moved, level, *shown, Edges(vertices))
        return number.offer(neighbours, text=text_of("triangles", prepared, by=number.by), why=_WHY[number.by])


def _declared(prepared: Prepared) -> tuple[Prepared, tuple[Value, ...]]:
    """The same, of declared vertices alone, and these."""
    domains = tuple(_vertices(kind) for kind in prepared.keys)
    if len({kind.type for kind in prepared.keys}) > 1:
        raise InputError("Both ends of an edge must be vertices of one sort: declare both columns as the same type.")
    known = dict.fromkeys(value for domain in domains for value in domain if value is not None)
    if not 3 <= len(known) <= _MOST:
        raise InputError(f"There must be 3 to {_MOST:,} vertices: all their pairs are looked at.")
    return replace(prepared, request=replace(prepared.request, domains=domains)), tuple(known)


def _vertices(kind: Kind) -> tuple[Value, ...]:
    if kind.count is None:
        raise InputError(
            "The vertices must be public: declare the keys of both columns in the policy, buy them with keys(column, "
            "spend=...), or declare bounds if they are whole numbers."
        )
    found = kind.values() if kind.count <= _MOST else None
    if found is None:
        raise InputError(f"There must be 3 to {_MOST:,} vertices: all their pairs are looked at.")
    return found


def _mechanism(by: By | None, spend: Promise, moved: Sensitivity, statistic: Counted) -> Noisy:
    """The one that is named, or the one that errs less on a made-up graph."""
    few, made = _few(statistic), list[Noisy]()
    ring = _ring(few.nodes)
    if by is None or by == "smooth":
        made.append(smooth(without_bar(spend), moved, few, ring))
    if by is None or by == "inverse":
        made.append(InverseSensitivity.calibrated(spend, moved, statistic=few))
    return of_another(min(made, key=lambda m: m.half_width(ring)), statistic)


def _few(statistic: Counted) -> Counted:
    return Counted(min(statistic.nodes, _RING))


def _ring(nodes: int) -> list[tuple[int, int]]:
    return [(i, (i + d) % nodes) for d in range(1, min(_NEXT, (nodes - 1) // 2) + 1) for i in range(nodes)]


@dataclass(frozen=True)
class Edges:
    """Edges between declared vertices."""

    vertices: tuple[Value, ...]

    def records(self, prepared: Prepared, source: Source, schema: Schema, secret: bytes) -> Any:
        """The edges as pairs of numbers."""
        request = prepared.request
        rows = source.aggregate(request, schema, secret).measures[0]
        number = {value: i for i, value in enumerate(self.vertices)}
        places = [np.array([number.get(value, -1) for value in domain or ()]) for domain in request.domains]
        found = np.unravel_index(np.flatnonzero(rows), [len(place) for place in places])
        a, b = (place[at] for place, at in zip(places, found, strict=True))
        return np.stack([a, b], axis=1)[(a >= 0) & (b >= 0) & (a != b)]

    def shown(self, drawn: Any, step: Fraction) -> pyarrow.Array:
        """The number of triangles."""
        return pyarrow.array([drawn])

    def expected(self, number: NoisyNumber, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error on the worst graph, and on one with few edges."""
        nodes, few = len(self.vertices), _few(Counted(len(self.vertices)))
        usual = of_another(number.mechanism, few).half_width(_ring(few.nodes), number.level)
        return number.expects(
            f"edges: {number.sensitivity.l1}",
            number.worst,
            None,
            f"there are {nodes:,} vertices",
            f"the error is that of the worst graph: in a ring of edges to {2 * _NEXT} others each it is {usual:,.0f}",
        )


examples = [Triangles("age", "age + 1"), Triangles("age", "FLOOR(age / 2)", by="inverse")]
