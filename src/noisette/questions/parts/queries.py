"""Queries as a question: what SQL and frames ask, one by one or planned together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.query.answer import Scene, columns, key_columns, noises
from noisette.query.canonical import canonical
from noisette.query.caveats import NOISE, omissions, sentences, small_groups
from noisette.query.design import Design, design, tasks_of
from noisette.query.draw import Noised, draw, packed, unpacked
from noisette.query.expected import Expected, dry_run, expected
from noisette.query.frame import Asked
from noisette.query.plan import Key, Query
from noisette.query.prepare import Prepared, prepare
from noisette.query.schema import Schema
from noisette.query.sql import parse
from noisette.query.sql.writer import query_sql
from noisette.questions.contract import Offer, Packing
from noisette.questions.parts.offers import declared, units_of

__all__ = ["Measuring", "Queries", "query_of", "query_text"]


@dataclass(frozen=True)
class Queries:
    """One query, or several that are planned together: they share passes over the data, noise and the promise."""

    queries: tuple[Query, ...]

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Analyse the queries and choose their noise."""
        if not self.queries:
            raise InputError("There is nothing to ask: give at least one question.")
        prepared = [prepare(canonical(query), schema) for query in self.queries]
        texts = [one.text for one in prepared]
        order = sorted(range(len(prepared)), key=texts.__getitem__)  # as the offer's text has them
        tasks, found = tasks_of([prepared[i] for i in order])
        places = [found[order.index(i)] for i in range(len(prepared))]
        made = design(tasks, spend, neighbours, level)
        for question, place in zip(prepared, places, strict=True):
            dry_run(question, made, place, neighbours, level)
        ends = [level] if made.quantiles else []  # the ends of these error bars are drawn, too
        procedure = Measuring(tuple(prepared), tuple(places), made, neighbours, level)
        return Offer(
            json.dumps({"asked": sorted(set(texts)), "declared": declared(prepared, *ends)}),
            made.guarantee,
            units_of(prepared),
            made.why,
            made.parts(neighbours),
            procedure.caveats,
            procedure,
            Packing(packed, lambda kept: unpacked(kept, made)),
        )


@dataclass(frozen=True)
class Measuring:
    """Measures with noise, and what is made of them; `places` says which task of the design belongs to each query."""

    prepared: tuple[Prepared, ...]
    places: tuple[int, ...]
    design: Design
    neighbours: Neighbours
    level: float

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What each query leaves out: rows, values and groups."""
        return [self._caveats(one, place) for one, place in zip(self.prepared, self.places, strict=True)]

    def _caveats(self, question: Prepared, place: int) -> tuple[str, ...]:
        rule = self.design.keys.get(place)
        numbers = any(not isinstance(result, Key) for _, result in question.query.outputs)
        hidden = [] if rule is None else [small_groups(rule, str(question.shape.unit))]
        return sentences([*omissions(question), *hidden], NOISE if numbers else "")

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error to expect, for each column of each answer."""
        return [
            expected(question, self.design, place, self.neighbours, self.level, sizes)
            for question, place in zip(self.prepared, self.places, strict=True)
        ]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> tuple[Noised, ...]:
        """One pass over the data for each task."""
        requests = enumerate(task.request for task in self.design.tasks)
        return tuple(source.release(one, partial(draw, self.design, i), schema, secret, rng) for i, one in requests)

    def answers(self, drawn: Sequence[Noised]) -> list[tuple[Column, ...]]:
        """Outputs with error bars."""
        pairs = zip(self.prepared, self.places, strict=True)
        return [tuple(columns(self._scene(question, place, drawn[place]))) for question, place in pairs]

    def _scene(self, question: Prepared, place: int, noised: Noised) -> Scene:
        return Scene(question, noised, noises(self.design, place, self.level), key_columns(question, noised))


# What is asked, as a plan and as a text


def query_of(asked: Any, schema: Schema) -> Query:
    """The query that SQL or a table's methods ask."""
    if isinstance(asked, str):
        return parse(asked, schema)
    if isinstance(asked, Asked):
        return asked.query
    if isinstance(asked, Query):
        return asked
    raise InputError("Write a query in SQL, or make it with a table's methods.")


def query_text(asked: Any) -> str | Query:
    """The SQL text of a query; a plan that SQL has no text for stays a plan."""
    if isinstance(asked, str):
        return asked
    units = asked.groups.scope.units if isinstance(asked, Asked) else ()
    query = asked.query if isinstance(asked, Asked) else asked
    if not isinstance(query, Query):
        raise InputError("Write a query in SQL, or make it with a table's methods.")
    try:
        return query_sql(query, units)
    except InputError:
        return query
