"""ROLLUP, CUBE and GROUPING SETS: several sets of groups in one release.

Where all keys are declared and all numbers add up, the rows of each unit are retained once, for the finest groups, and
each total is the exact sum of their cells: whatever is released is about the same rows. Every set gets noise of its
own, or the finest one alone, whichever makes the product of all errors less; least squares then makes totals and parts
consistent (`releases.lattice`). A unit changes a coarser set in at most as many groups, by at most all of its rows.

Where keys are unknown, or a number does not add up (different values, or units that are in several groups), each set is
a query by itself, with limits and noise of its own, and totals are consistent up to noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.query.answer import Scene, noises
from noisette.query.caveats import Omission
from noisette.query.design import Design, Task, design, tasks_of
from noisette.query.draw import Noised, draw
from noisette.query.estimate import Noise
from noisette.query.expected import Expected, dry_run, expected
from noisette.query.measure import Exact, Measure
from noisette.query.plan import Key, Ordering, Query, Result, ResultCall, ResultLiteral, aggregates_in
from noisette.query.prepare import Prepared, prepare, ruled
from noisette.query.schema import Limits, Schema
from noisette.questions.contract import Offer
from noisette.questions.parts.joined_sets import joined
from noisette.questions.parts.measuring import Measuring, offered
from noisette.releases.lattice import Axes, consistent, rolled_up, variances

__all__ = ["GroupingSets", "planned_sets"]

_EACH = "Each set of groups has noise of its own, and least squares makes totals and parts add up."
_FINEST = "Totals are sums of the finest groups: with noise of their own all errors would be larger together."
_APART = "Each set of groups is a query by itself, so totals and parts agree up to noise."
_COMPARISONS = ("equal", "unequal", "less", "at_most", "more", "at_least")


def planned_sets(
    queries: Sequence[Query],
    schema: Schema,
    spend: Promise,
    *,
    sets: tuple[Axes, ...],
    neighbours: Neighbours,
    level: float,
) -> Offer:
    """Plan one query with several sets of groups, within the limits of the schema."""
    [form] = queries
    finest = ruled(prepare(form, schema, narrow=True), schema)
    members = [_member(form, axes) for axes in sets]
    if not _adds_up(finest):
        return _apart(form, sets, members, schema, spend, neighbours, level)
    shape = tuple(len(domain) for domain in finest.request.domains if domain is not None)
    prepared = tuple(_coarser(finest, query, axes, shape) for query, axes in zip(members, sets, strict=True))
    made, measured = _best(prepared, sets, shape, spend, neighbours, level)
    places = tuple(measured.index(axes) if axes in measured else 0 for axes in sets)
    procedure = GroupingSets(prepared, places, made, neighbours, level, form, sets, finest, measured)
    for one, place in zip(prepared, places, strict=True):
        dry_run(one, made, place, neighbours, level)
    why = _EACH if measured == sets else _FINEST
    return offered(procedure, [finest.text], why, sets=sets, noised=measured)


def _apart(
    form: Query,
    sets: tuple[Axes, ...],
    members: list[Query],
    schema: Schema,
    spend: Promise,
    neighbours: Neighbours,
    level: float,
) -> Offer:
    prepared = tuple(ruled(prepare(query, schema, narrow=True), schema) for query in members)
    order = sorted(range(len(prepared)), key=lambda i: prepared[i].text)  # as the offer's text has them
    tasks, found = tasks_of([prepared[i] for i in order])
    places = [found[order.index(i)] for i in range(len(prepared))]
    made = design(tasks, spend, neighbours, level)
    for one, place in zip(prepared, places, strict=True):
        dry_run(one, made, place, neighbours, level)
    procedure = GroupingSets(prepared, tuple(places), made, neighbours, level, form, sets)
    return offered(procedure, [one.text for one in prepared], _APART, sets=sets)


# Which queries


def _member(form: Query, axes: Axes) -> Query:
    """The query of one set of groups: other keys are NULL there."""

    def result(old: Result) -> Result:
        match old:
            case Key(position):
                return Key(axes.index(position)) if position in axes else ResultLiteral(None)
            case ResultCall("grouping", keys):
                bits = "".join("0" if isinstance(key, Key) and key.position in axes else "1" for key in keys)
                return ResultLiteral(Fraction(int(bits, 2)))
            case ResultCall(operation, arguments):
                made = tuple(map(result, arguments))
                unknown = operation in _COMPARISONS and ResultLiteral(None) in made
                return ResultLiteral(False) if unknown else ResultCall(operation, made)
            case _:
                return old

    return replace(
        form,
        keys=tuple(form.keys[at] for at in axes),
        outputs=tuple((name, result(value)) for name, value in form.outputs),
        having=None if form.having is None else result(form.having),
        order=tuple(Ordering(result(one.by), one.descending) for one in form.order),
        limit=None,
    )


def _adds_up(finest: Prepared) -> bool:
    """Whether every total is the sum of its parts: keys are declared, and no unit or value is counted twice."""
    if finest.opens or finest.frequency is not None:
        return False
    counted = {aggregate.function for aggregate in aggregates_in(finest.query)}
    return "distinct" not in counted and ("units" not in counted or finest.part.groups == 1)


def _coarser(finest: Prepared, query: Query, axes: Axes, shape: Sequence[int]) -> Prepared:
    """What is measured of a set of groups: sums over the cells of the finest ones."""
    domains = tuple(finest.request.domains[at] for at in axes)
    request = replace(finest.request, keys=query.keys, domains=domains)
    groups = math.prod(shape[at] for at in axes)
    part = finest.part.within(groups, cells=math.prod(shape) // groups)
    return replace(finest, query=query, part=part, keys=tuple(finest.keys[at] for at in axes), request=request)


# Which noise


def _best(
    prepared: Sequence[Prepared],
    sets: tuple[Axes, ...],
    shape: Sequence[int],
    spend: Promise,
    neighbours: Neighbours,
    level: float,
) -> tuple[Design, tuple[Axes, ...]]:
    """Noise for every set, or for the finest one alone if that makes the product of all errors less."""
    tasks = [Task(one.request, one.part, one.asked, one.quantiles, None) for one in prepared]
    every = design(tasks, spend, neighbours, level)
    whole = tuple(range(len(shape)))
    if whole not in sets or prepared[0].quantiles or len(sets) == 1:
        return every, sets
    alone = design([tasks[sets.index(whole)]], spend, neighbours, level)
    if _log_errors(every, sets, sets, shape) <= _log_errors(alone, (whole,), sets, shape):
        return every, sets
    return alone, (whole,)


def _log_errors(made: Design, measured: Sequence[Axes], sets: Sequence[Axes], shape: Sequence[int]) -> float:
    found = 0.0
    for measure in made.tasks[0].noised:
        variance = {axes: made.noise[i, measure].variance() for i, axes in enumerate(measured)}
        found += sum(math.log(variances(shape, variance, axes)) for axes in sets)
    return found


# The release


@dataclass(frozen=True)
class GroupingSets(Measuring):
    """Queries of several sets of groups, one answer; with `finest`, all are sums of its cells and made consistent."""

    form: Query
    sets: tuple[Axes, ...]
    finest: Prepared | None = None
    measured: tuple[Axes, ...] = ()

    @property
    def _shape(self) -> tuple[int, ...]:
        assert self.finest is not None
        return tuple(len(domain) for domain in self.finest.request.domains if domain is not None)

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> tuple[Noised, ...]:
        """One pass over the data for the finest groups, from which all others are added up."""
        if self.finest is None:
            return super().draw(source, schema, secret, rng)
        return source.release(self.finest.request, self._drawn, schema, secret, rng)

    def _drawn(self, exact: Exact, rng: Random) -> tuple[Noised, ...]:
        return tuple(
            draw(self.design, i, Exact(None, tuple(rolled_up(m, self._shape, axes) for m in exact.measures)), rng)
            for i, axes in enumerate(self.measured)
        )

    def answers(self, drawn: Sequence[Noised]) -> list[tuple[Column, ...]]:
        """The groups of all sets, one set after the other."""
        scenes = [self._released(at, drawn) for at in range(len(self.sets))]
        return [joined(scenes, self.form)]

    def _released(self, at: int, drawn: Sequence[Noised]) -> Scene:
        """One set of groups as it is released."""
        place, question = self.places[at], self.prepared[at]
        if self.finest is None:
            return self._scene(question, place, drawn[place])
        axes = self.sets[at]
        sizes = [[self._shape[k] for k in one] for one in self.measured]
        measures: dict[Measure, Any] = {}
        for measure in self.design.tasks[0].noised:
            tables = {one: drawn[i].measures[measure].reshape(sizes[i]) for i, one in enumerate(self.measured)}
            measures[measure] = consistent(self._shape, tables, self._variances[measure], axes).reshape(-1)
        quantiles = drawn[place].quantiles if axes in self.measured else {}
        size = math.prod(self._shape[k] for k in axes)
        return Scene.of(question, Noised(None, size, measures, quantiles), self._errors(axes))

    @cached_property
    def _noises(self) -> list[dict[Any, Noise]]:
        return [noises(self.design, i, self.level) for i in range(len(self.measured))]

    @cached_property
    def _variances(self) -> Mapping[Measure, dict[Axes, float]]:
        """Of each measured set, in natural units."""
        return {
            measure: {axes: self._noises[i][measure].spread ** 2 for i, axes in enumerate(self.measured)}
            for measure in self.design.tasks[0].noised
        }

    def _errors(self, axes: Axes) -> dict[Any, Noise]:
        """What is known of the errors of a set: its quantiles lie between those of the noise and of a normal one."""
        found = {}
        for measure, variance in self._variances.items():
            every = [each[measure] for each in self._noises]
            reach = max(max(one.half_width / one.spread, one.normal) for one in every)
            spread = math.sqrt(variances(self._shape, variance, axes))
            found[measure] = Noise(spread, spread * reach, every[0].normal)
        return found

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error to expect in the finest of the groups; totals err less, relative to what they are."""
        at = max(range(len(self.sets)), key=lambda i: len(self.sets[i]))
        known = None if self.finest is None else self._errors(self.sets[at])
        one = self.prepared[at], self.design, self.places[at], self.neighbours, self.level, sizes, known
        grouped = {name for name, value in self.form.outputs if isinstance(value, ResultCall | Key) and plain(value)}
        return [tuple(each for each in expected(*one) if each.name not in grouped)]

    def left_out(
        self, by_limits: Sequence[Omission] | None = None, chosen: Mapping[str, Limits] | None = None
    ) -> list[tuple[str, ...]]:
        """What all sets leave out, each sentence once."""
        every = dict.fromkeys(one for each in super().left_out(by_limits, chosen or {}) for one in each)
        last = [one for one in every if one.startswith(("±", "The owner can"))]
        return [(*(one for one in every if one not in last), *sorted(last, key=len)[-1:])]


def plain(value: Result) -> bool:
    """Whether an output is a key, or says over which keys a row is a total."""
    return isinstance(value, Key) or (isinstance(value, ResultCall) and value.operation == "grouping")
