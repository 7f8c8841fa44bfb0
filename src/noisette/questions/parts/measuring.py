"""Queries that are measured: noise on exact numbers, and the answers that are made of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.mechanisms import Keep
from noisette.privacy import Guarantee, Neighbours
from noisette.query.answer import Scene, columns, errors
from noisette.query.caveats import NOISE, Omission, minimum_frequency, omissions, selected, sentences, small_groups
from noisette.query.design import Design, among
from noisette.query.draw import Noised, TaskDraw, packed, unpacked
from noisette.query.expected import Expected, expected
from noisette.query.measure import sensitivity
from noisette.query.plan import Key
from noisette.query.prepare import Prepared, selected_among
from noisette.query.schema import Limits, Schema
from noisette.questions.contract import Offer, Packing, Reads
from noisette.questions.parts.offers import declared, of_declared, units_of

__all__ = ["Measuring", "offered"]

Caveats: TypeAlias = list[tuple[str, ...]]
"""Sentences for each answer."""

_NONE: Mapping[str, Limits] = {}


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
        return self.left_out()

    def left_out(self, by_limits: Sequence[Omission] | None = None, chosen: Mapping[str, Limits] = _NONE) -> Caveats:
        """The same, with other words for what is left out by limits that were chosen, by table."""
        return [self._caveats(one, at, by_limits, chosen) for one, at in zip(self.prepared, self.places, strict=True)]

    def _caveats(
        self, question: Prepared, place: int, by_limits: Sequence[Omission] | None, chosen: Mapping[str, Limits]
    ) -> tuple[str, ...]:
        rule = self.design.keys.get(place)
        numbers = any(not isinstance(result, Key) for _, result in question.query.outputs)
        hidden = [] if rule is None else [small_groups(rule, question.shape.whose)]
        left = omissions(question) if by_limits is None else [*by_limits, *omissions(of_declared(question, chosen))]
        frequent = () if question.frequency is None else self._frequency(question, place)
        return (*sentences([*left, *(frequent or hidden)], NOISE if numbers else ""), *selected(question))

    def _frequency(self, question: Prepared, place: int) -> Sequence[Omission]:
        """The minimum frequency in sentences, with what its number of units costs."""
        task, rule = self.design.tasks[place], question.frequency
        units = task.members or task.deciding
        opened = self.design.keys.get(place)
        assert rule is not None
        assert units is not None
        assert not isinstance(opened, Keep)
        least = self.design.shown[place] if opened is None else opened.threshold
        price: Guarantee | None = None
        if opened is not None:
            price = opened.guarantee(neighbours=self.neighbours)
        elif units not in task.asked:
            price = self.design.noise[place, units].guarantee(sensitivity(units, task.part, self.neighbours))
        return minimum_frequency(rule, least, question.shape.whose, price, declared=opened is None)

    @property
    def rules(self) -> dict[str, Any]:
        """The minimum frequency for the record: which noisy numbers of units decide, in each task."""
        found = [task.frequency for task in self.design.tasks if task.frequency is not None]
        if not found:
            return {}
        strict = max(found, key=lambda rule: rule.units)
        keys = {i: rule.threshold for i, rule in self.design.keys.items() if not isinstance(rule, Keep)}
        shown = {**self.design.shown, **keys}
        least = [shown[i] for i in sorted(shown)]
        return {"minimum_frequency": strict.units, "failure": str(strict.failure), "shown_from": least}

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error to expect, for each column of each answer."""
        return [
            expected(question, self.design, place, self.neighbours, self.level, sizes)
            for question, place in zip(self.prepared, self.places, strict=True)
        ]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> tuple[Noised, ...]:
        """One pass over the data for each task."""
        requests = enumerate(task.request for task in self.design.tasks)
        return tuple(source.release(one, TaskDraw(self.design, i), schema, secret, rng) for i, one in requests)

    def shows(self, drawn: Sequence[Noised]) -> bool:
        """Whether a minimum frequency leaves any group."""
        return any(one.size > 0 if one.keys is not None else one.numbered.any() for one in drawn)

    def answers(self, drawn: Sequence[Noised]) -> list[tuple[Column, ...]]:
        """Outputs with error bars."""
        pairs = zip(self.prepared, self.places, strict=True)
        return [tuple(columns(self._scene(question, place, drawn[place]))) for question, place in pairs]

    def _scene(self, question: Prepared, place: int, noised: Noised) -> Scene:
        level = among(self.level, selected_among(question.query, noised.size))
        return Scene.of(question, noised, errors(self.design, place, level))


def offered(procedure: Measuring, texts: Sequence[str], why: str = "", **more: Any) -> Offer:
    """The offer to measure; `more` says what else decides what is kept."""
    made = procedure.design
    bars = [(procedure.level, task.among) for task in made.tasks if task.quantiles]  # their ends are drawn, too
    vouching = ["rows vouch for bars"] if any(task.vouching - task.asked for task in made.tasks) else []
    return Offer(
        json.dumps({"asked": sorted(set(texts)), "declared": declared(procedure.prepared, *bars, *vouching), **more}),
        made.guarantee,
        units_of(procedure.prepared),
        f"{made.why} {why}".strip(),
        made.parts(procedure.neighbours),
        procedure.caveats,
        procedure,
        Packing(packed, lambda kept: unpacked(kept, made)),
        rules=procedure.rules,
        reads=Reads(procedure.prepared, procedure.left_out),
    )
