"""What can be asked, and the offer that is made for it.

A question is a value. For a promise it makes an offer: what would be measured, with what noise, at what cost and with
what error to expect; all of that is public and free. Only then, and after it was paid, an offer reads the data and
draws.

    question.offer(schema, spend, neighbours, level) -> offer     nothing is read
    offer.draw(source, schema, secret) -> drawn                   read once and noised; `drawn` may be kept
    offer.answers(drawn) -> columns of each answer                free again
    offer.pack(drawn) -> bytes, offer.unpack(bytes) -> drawn      to keep it for the next time
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.answer import Scene, columns, key_columns, noises
from noisette.query.canonical import canonical
from noisette.query.caveats import NOISE, omissions, sentences, small_groups
from noisette.query.design import Design, design, tasks_of
from noisette.query.draw import Noised, draw, packed, unpacked
from noisette.query.expected import SIZES, Expected, dry_run, expected
from noisette.query.plan import Key, Query
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema

__all__ = ["Offer", "Queries", "Question", "declared"]


class Offer(Protocol):
    """What would be released for a promise."""

    @property
    def text(self) -> str:
        """What is measured, in a form that does not depend on how it was written."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What holds when it is drawn: never more than what was to be spent."""
        ...

    @property
    def unit(self) -> str:
        """Whose data is protected, in a word."""
        ...

    @property
    def why(self) -> str:
        """Why this noise and no other, in a sentence."""
        ...

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms with what they are applied to, for the record."""
        ...

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What is left out or clamped before any noise, and what ± covers: sentences for each answer."""
        ...

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """The error to expect, for each column of each answer."""
        ...

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> Any:
        """Read the data and draw the noise; to be called once what it costs is charged."""
        ...

    def answers(self, drawn: Any) -> list[tuple[Column, ...]]:
        """The columns of each answer."""
        ...

    def pack(self, drawn: Any) -> bytes:
        """What was drawn as bytes, to be kept."""
        ...

    def unpack(self, kept: bytes) -> Any:
        """What was drawn, from its bytes."""
        ...


class Question(Protocol):
    """Something that can be asked."""

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """What would be released for a promise, or a sentence on why it cannot be asked."""
        ...


def declared(prepared: Sequence[Prepared], *more: object) -> str:
    """Bounds, keys and limits in a few letters: where they change, so does what is measured."""
    parts = sorted({repr(_rests_on(q)) for q in prepared})
    return hashlib.sha256(repr([*parts, *more]).encode()).hexdigest()[:16]


def _rests_on(prepared: Prepared) -> tuple[object, ...]:
    retained = (prepared.shape.retained,) if prepared.shape.retained else ()
    measures = sorted(map(repr, prepared.request.measures))
    return (measures, prepared.request.limits, prepared.keys, prepared.read, *retained)


@dataclass(frozen=True)
class Queries:
    """One query, or several that are planned together: they share passes over the data, noise and the promise."""

    queries: tuple[Query, ...]

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> "QueryOffer":
        """Analyse the queries and choose their noise."""
        if not self.queries:
            raise InputError("There is nothing to ask: give at least one question.")
        prepared = [prepare(canonical(query), schema) for query in self.queries]
        order = sorted(range(len(prepared)), key=lambda i: prepared[i].text)  # as `text` has them
        tasks, found = tasks_of([prepared[i] for i in order])
        places = [found[order.index(i)] for i in range(len(prepared))]
        made = design(tasks, spend, neighbours, level)
        for question, place in zip(prepared, places, strict=True):
            dry_run(question, made, place, neighbours, level)
        return QueryOffer(tuple(prepared), tuple(places), made, neighbours, level)


@dataclass(frozen=True)
class QueryOffer:
    """What would be released for queries; `places` says which task of the design is whose."""

    prepared: tuple[Prepared, ...]
    places: tuple[int, ...]
    design: Design
    neighbours: Neighbours
    level: float

    @cached_property
    def text(self) -> str:
        """The canonical texts of what is measured, sorted, and a digest of the declarations that it rests on."""
        asked = sorted({question.text for question in self.prepared})
        ends = [self.level] if self.design.quantiles else []  # the ends of these error bars are drawn, too
        return json.dumps({"asked": asked, "declared": declared(self.prepared, *ends)})

    @property
    def guarantee(self) -> Guarantee:
        """What holds for all queries together."""
        return self.design.guarantee

    @property
    def unit(self) -> str:
        """The declared unit column, or "row"."""
        return " and ".join(sorted({str(question.shape.unit) for question in self.prepared}))

    @property
    def why(self) -> str:
        """Why this noise and no other, in a sentence."""
        return self.design.why

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism of every measure with the sensitivity it is calibrated for."""
        return self.design.parts(self.neighbours)

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What each query leaves out: rows, values and groups."""
        return [self._caveats(one, place) for one, place in zip(self.prepared, self.places, strict=True)]

    def _caveats(self, question: Prepared, place: int) -> tuple[str, ...]:
        rule = self.design.keys.get(place)
        numbers = any(not isinstance(result, Key) for _, result in question.query.outputs)
        hidden = [] if rule is None else [small_groups(rule, str(question.shape.unit))]
        return sentences([*omissions(question), *hidden], NOISE if numbers else "")

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """The error to expect, for each column of each answer."""
        return [
            expected(question, self.design, place, self.neighbours, self.level, sizes)
            for question, place in zip(self.prepared, self.places, strict=True)
        ]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> tuple[Noised, ...]:
        """One pass over the data for each task."""
        requests = enumerate(task.request for task in self.design.tasks)
        return tuple(source.release(one, partial(draw, self.design, i), schema, secret, rng) for i, one in requests)

    def answers(self, drawn: Sequence[Noised]) -> list[tuple[Column, ...]]:
        """Outputs with error bars."""
        pairs = zip(self.prepared, self.places, strict=True)
        return [tuple(columns(self._scene(question, place, drawn[place]))) for question, place in pairs]

    def pack(self, drawn: Sequence[Noised]) -> bytes:
        """What was drawn as bytes, to be kept."""
        return packed(drawn)

    def unpack(self, kept: bytes) -> tuple[Noised, ...]:
        """What was drawn, from its bytes."""
        return unpacked(kept, self.design)

    def _scene(self, question: Prepared, place: int, noised: Noised) -> Scene:
        return Scene(question, noised, noises(self.design, place, self.level), key_columns(question, noised))
