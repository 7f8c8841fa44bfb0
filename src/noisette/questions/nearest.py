"""Who is nearest to this place: how far about k people are, or a spot where such a person might be."""

import json
import math
from dataclasses import dataclass, fields
from typing import Any
from typing import Literal as OneOf

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.mechanisms.spatial.nearest_place import NearestPlace
from noisette.mechanisms.spatial.nearest_radius import NearestRadius
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical, canonical_text
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import sensitivity
from noisette.query.plan import Key
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import about, declared
from noisette.questions.parts.rows import Rows, rows_of

__all__ = ["Nearest"]


@dataclass(frozen=True)
class Nearest(JsonQuestion):
    """The distance within which about k rows are from a place, or (`tell="place"`) a point about as far.

    `x` and `y` are columns or expressions with whole numbers within declared bounds, such as FLOOR(east / 100). The
    point is as likely anywhere else at the same distance: nobody's own place is released.
    """

    x: str
    y: str
    place: tuple[int, int]
    k: int
    tell: OneOf["distance", "place"] = "distance"
    of: Rows = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose by ranks among all distances, or among all points."""
        query = rows_of(self.of, self.x, schema).group_by(x=self.x, y=self.y).count().query
        prepared = prepare(canonical(query), schema)
        across, up = (_whole(prepared, name) for name in ("x", "y"))
        measure = prepared.request.measures[0]
        moved = sensitivity(measure, prepared.part, neighbours)
        kind: type[Any] = NearestPlace if self.tell == "place" else NearestRadius
        options = {"k": self.k, "columns": (across[0], across[-1]), "rows": (up[0], up[-1]), "place": self.place}
        mechanism = kind.calibrated(spend, moved, **options)
        return about(
            prepared,
            Around(prepared, mechanism, moved, level),
            text=_text(prepared, mechanism),
            why="Ranks of distances: one person moves them by one, but the distance by as much as the map is wide.",
            guarantee=mechanism.guarantee(moved),
            parts=[recorded(mechanism, measure, moved)],
        )


def _text(prepared: Prepared, mechanism: Any) -> str:
    """What is measured and how it is released."""
    options = {field.name: str(getattr(mechanism, field.name)) for field in fields(mechanism)}
    asked = {"nearest": type(mechanism).__name__, "counted": canonical_text(prepared.query), **options}
    del asked["scale"]  # that is for what is spent
    asked["axes"] = str([_position(prepared, name) for name in ("x", "y")])  # keys are sorted, x may be either
    return json.dumps({**asked, "declared": declared([prepared])}, sort_keys=True)


def _position(prepared: Prepared, name: str) -> int:
    """Which of the canonical keys it is."""
    key = dict(prepared.query.outputs)[name]
    assert isinstance(key, Key)
    return key.position


def _whole(prepared: Prepared, name: str) -> list[int]:
    """All values a coordinate can have."""
    domain = prepared.request.domains[_position(prepared, name)]
    known = [value for value in domain or () if value is not None]
    if len(known) < 2 or not all(type(value) is int for value in known):
        raise InputError("Coordinates must be whole numbers within declared bounds: write FLOOR(x / 100), or ROUND(x).")
    return known  # type: ignore[return-value]


@dataclass(frozen=True)
class Around(Procedure):
    """A distance or a point, by the ranks of rows around a place."""

    prepared: Prepared
    mechanism: NearestPlace | NearestRadius
    sensitivity: Sensitivity
    level: float

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """By how many ranks it may be off."""
        ranks = self.mechanism.interval(self.level)
        names = ["x", "y"] if isinstance(self.mechanism, NearestPlace) else ["distance"]
        noise = (
            "exponential mechanism on ranks of distances",
            f"rows: {self.sensitivity.linf} at one point, {self.sensitivity.l1} in all",
        )
        note = "most maps err far less than the worst"
        return [tuple(Expected(name, *noise, None, {}, ranks, note) for name in names)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows at each point and choose."""
        found = self.mechanism(self._people(source, schema, secret), rng)
        if isinstance(found, tuple):
            return pyarrow.table({"x": [found[0]], "y": [found[1]]})
        return pyarrow.table({"distance": [math.sqrt(found)]})

    def _people(self, source: Source, schema: Schema, secret: bytes) -> NDArray[np.int64]:
        counts = source.aggregate(self.prepared.request, schema, secret).measures[0]
        domains = [domain or () for domain in self.prepared.request.domains]
        places = np.unravel_index(np.flatnonzero(counts), [len(domain) for domain in domains])
        points = [
            [domains[at][i] for i in places[at]] for at in (_position(self.prepared, name) for name in ("x", "y"))
        ]
        there = np.array([None not in pair for pair in zip(*points, strict=True)], bool)
        people = np.array([pair for pair in zip(*points, strict=True) if None not in pair], np.int64).reshape(-1, 2)
        return np.repeat(people, counts[counts > 0][there], axis=0)


examples = [
    Nearest("FLOOR(age / 10)", "age - 5", place=(3, 4), k=20),
    Nearest(
        "FLOOR(age / 10)",
        "age - 5",
        place=(3, 4),
        k=20,
        tell="place",
        of="SELECT * FROM visits WHERE ward = 'emergency'",
    ),
]
