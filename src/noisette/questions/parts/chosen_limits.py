"""Questions about tables whose policy says rows = "each question": first choose the limits, then answer within them.

Every plan that a choice can lead to is made, and refused, before anything is paid. All of them keep the same promise,
which is fixed in advance; so the choice and the answer cost the sum of both, although the one decides about the other
(`docs/proofs/limits.md`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol

from noisette.answers import Column, Lasting
from noisette.answers.figures import percent
from noisette.engines.contract import Source
from noisette.errors import InputError, LimitError, PrivacyError
from noisette.exact.number import whole_of
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.query.caveats import Omission
from noisette.query.expected import Expected
from noisette.query.frequency import MinimumFrequency
from noisette.query.plan import Query
from noisette.query.prepare import strictest
from noisette.query.schema import Limits, Schema, least_rows, with_limits
from noisette.questions.contract import Offer, Packing, Question, Reads
from noisette.questions.parts.clipped_total import ClippedTotal, one_sum
from noisette.questions.parts.limit_choice import (
    CHOOSING,
    COUNTING,
    REST,
    Chosen,
    LimitChoice,
    TotalWords,
    limit_choice,
    one_of,
)
from noisette.questions.parts.limits_to_choose import (
    ToChoose,
    counts_units,
    largest,
    limits_needed,
    limits_of_queries,
    limits_to_choose,
    tables_to_settle,
    unlimited,
)

__all__ = ["Adaptive", "Planned", "Terms", "WithinLimits", "chosen", "drawn_within", "usual_numbers"]

_WHY = (
    f"The question chooses its limit with {percent(float(CHOOSING))} of the spend, counts with "
    f"{percent(float(COUNTING))} whom it cuts, and answers within it with the rest."
)
_TOTALS = "It clips the total of each unit and drops no rows, which loses less at the same noise."
_GROUPS = "It limits the groups of each unit, and the rows in each of them: with Gaussian noise that needs less."
_HIDDEN = "The limit is shown only beside a group that is shown, and how many have more only if they are many enough."
_CHANGED = "The stored answer to this question was changed: restore a backup of the ledger."


class Planned(Protocol):
    """How queries are planned whose limits are known."""

    def __call__(self, queries: Sequence[Query], schema: Schema, spend: Promise) -> Offer:
        """Plan with the limits of a schema."""
        ...


# The offer


class Terms(NamedTuple):
    """For what a choice is offered."""

    spend: Promise
    neighbours: Neighbours
    level: float

    @property
    def rest(self) -> Promise:
        """What is left for the answer."""
        return self.spend.share(REST, delta=1)


def chosen(queries: Sequence[Query], plan: Planned, schema: Schema, terms: Terms) -> Offer:
    """Choose the limits of the tables that leave them to each question, and answer within them."""
    tables = tables_to_settle(queries, schema)
    if not limits_needed(queries, schema, tables):
        plain = plan(queries, with_limits(schema, {name: {"rows": 1} for name in tables}), terms.spend)
        if all(map(counts_units, queries)):
            return replace(plain, caveats=_reads(plain).left_out([], dict.fromkeys(tables, Limits(rows=1))))
        return plain
    total = one_sum(queries) if unlimited(queries[0].source, schema) else None
    if total is not None:
        clipped = ClippedTotal.of(queries[0], total, schema, largest(schema, tables))
        return _of_total(clipped, plan, schema, terms, _rule(schema, tables))
    return within_limits(limits_of_queries(queries, schema, tables, terms.spend), partial(plan, queries), schema, terms)


def within_limits(
    found: Sequence[ToChoose], plan: Callable[[Schema, Promise], Offer], schema: Schema, terms: Terms
) -> Offer:
    """Choose the limits that were found, and answer by the plan for them; all plans are made here."""
    choices = tuple(limit_choice(one.words, one.prepared, one.limits, *terms, times=len(found)) for one in found)
    why = f"{_WHY} {_GROUPS}" if found[0].name == "groups" else _WHY
    tables = [name for one in found for name in one.tables]
    made = Adaptive(choices, tuple((one.tables, one.name) for one in found), why, _rule(schema, tables))
    places = product(*(range(len(choice.limits)) for choice in choices))
    return adaptive(made, _plans(places, lambda at: plan(made.settled(schema, at), terms.rest)), terms)


def chosen_for(question: Question, schema: Schema, terms: Terms) -> Offer:
    """Choose limits for any question: its plan within each of them is the one that it has where they are declared."""
    first = question.offer(least_rows(schema), terms.rest, terms.neighbours, terms.level)
    tables = () if first.reads is None else tables_to_settle([one.query for one in first.reads.prepared], schema)
    if not tables:
        raise InputError(
            "This question cannot choose how many rows of a unit are joined: ask about one table, or let the owner "
            "declare rows."
        )
    plans: dict[tuple[Limits, ...], Offer] = {}

    def plan(settled: Schema, spend: Promise) -> Offer:
        key = tuple(settled[name].limits for name in tables)
        if key not in plans:
            plans[key] = question.offer(settled, spend, terms.neighbours, terms.level)
        return plans[key]

    found = limits_to_choose(lambda settled: _reads(plan(settled, terms.rest)).prepared, schema, tables)
    return within_limits(found, plan, schema, terms)


def _reads(offer: Offer) -> Reads:
    assert offer.reads is not None
    return offer.reads


def _rule(schema: Schema, tables: Sequence[str]) -> MinimumFrequency | None:
    return strictest(schema[name] for name in tables)


@dataclass(frozen=True)
class WithinLimits:
    """A question that chooses a limit on the rows of a unit, if it needs one that the policy leaves to questions."""

    question: Question

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """The offer of the question, within limits that it chooses first where it needs some."""
        with usual_numbers():
            try:
                return self.question.offer(schema, spend, neighbours, level)
            except LimitError:
                if all(table.chosen_rows is None for table in schema.values()):
                    raise
            return chosen_for(self.question, schema, Terms(spend, neighbours, level))


@contextmanager
def usual_numbers() -> Iterator[None]:
    """Refuse a question whose numbers no float can hold; a plan reads no data, so none of them is of the data.

    >>> with usual_numbers():
    ...     float(10**400)
    Traceback (most recent call last):
    noisette.errors.InputError: A number of this question is too large or too near 0 to compute with: write a usual one.
    """
    try:
        yield
    except OverflowError:
        raise InputError(
            "A number of this question is too large or too near 0 to compute with: write a usual one."
        ) from None


def _of_total(total: ClippedTotal, plan: Planned, schema: Schema, terms: Terms, rule: MinimumFrequency | None) -> Offer:
    """Clip each unit's total: for the same sensitivity that leaves out less than dropping rows."""
    choice = limit_choice(TotalWords(total.unit), total.prepared(schema), total.limits, *terms)
    made = Adaptive((choice,), (((), ""),), f"{_WHY} {_TOTALS}", rule)
    places = [(at,) for at in range(len(total.limits))]
    return adaptive(
        made, _plans(places, lambda at: plan([total.clipped(total.limits[at[0]])], schema, terms.rest)), terms
    )


def _plans(places: Iterable[tuple[int, ...]], plan: Callable[[tuple[int, ...]], Offer]) -> dict[tuple[int, ...], Offer]:
    """The plan of each choice; where only large limits have none, a sentence on what to declare."""
    found: dict[tuple[int, ...], Offer] = {}
    for at in places:
        try:
            found[at] = plan(at)
            continue
        except InputError:
            if not found:
                raise
        raise InputError(
            "With limits that large the noise could not be drawn: declare a smaller most_rows in the policy."
        )
    return found


def adaptive(choosing: "Adaptive", plans: Mapping[tuple[int, ...], Offer], terms: Terms) -> Offer:
    """An offer that first chooses limits and then carries out one of the plans, which all keep the same promise."""
    first = next(iter(plans.values()))
    rule = choosing.rule if "minimum_frequency" in first.rules else None  # a purchase keeps none
    made = replace(choosing, plans=plans, rule=rule)
    if not all(plan.guarantee <= terms.rest for plan in plans.values()):
        raise PrivacyError("A plan of this question costs more than its share of the spend: ask another question.")
    asked = {"limits": [[choice.about, *map(str, choice.limits)] for choice in made.choices]}
    cost = sum((choice.guarantee for choice in made.choices), terms.rest.restated(terms.neighbours))
    named = {made.named(place): plan.parts for place, plan in made.plans.items()}
    return Offer(
        json.dumps({**json.loads(first.text), **asked, "shares": [str(CHOOSING), str(COUNTING)]}),
        cost,
        first.unit,
        f"{made.why} {first.why}",
        [*(part for choice in made.choices for part in choice.parts), one_of(terms.rest, named)],
        made.caveats,
        made,
        Packing(made.pack, made.unpack),
        None if first.value is None else made.value,
        found=made.found,
        rules=made.rules,
    )


class Drawn(NamedTuple):
    """The limits that were chosen, and what was drawn within them."""

    chosen: tuple[Chosen, ...]
    within: Any


@dataclass(frozen=True)
class Adaptive:
    """Limits to choose, and a plan for each choice of them; `sets` says which limit of which tables each of them is.

    Under a minimum frequency, `rule`, each plan has its own threshold. The limit is said only beside a group that is
    shown, and how many units have more only if these are many enough themselves.
    """

    choices: tuple[LimitChoice, ...]
    sets: tuple[tuple[tuple[str, ...], str], ...]
    why: str
    rule: MinimumFrequency | None = None
    plans: Mapping[tuple[int, ...], Offer] = field(default_factory=dict)

    def limits(self, places: tuple[int, ...]) -> dict[str, Limits]:
        """The limits of each table that were chosen."""
        found: dict[str, Limits] = {}
        for (tables, name), choice, place in zip(self.sets, self.choices, places, strict=True):
            for table in tables:
                found[table] = replace(found.get(table, Limits()), **{name: int(choice.limits[place])})
        return found

    def settled(self, schema: Schema, places: tuple[int, ...]) -> Schema:
        """The tables with the limits that were chosen."""
        found = self.limits(places)
        return with_limits(schema, {name: {n: t for n, t in vars(one).items() if t} for name, one in found.items()})

    def named(self, places: tuple[int, ...]) -> str:
        """Limits in words."""
        pairs = zip(self.choices, places, strict=True)
        return " and ".join(choice.named(place) for choice, place in pairs)

    # Before it is paid

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What is left out, whichever limits are chosen; where that depends on them, at the least and the largest."""
        said = [Omission(choice.outlook) for choice in self.choices]
        said += [] if self.rule is None else [Omission(_HIDDEN)]
        ends = min(self.plans), max(self.plans)
        low, high = (_reads(self.plans[place]).left_out(said, self.limits(place)) for place in ends)
        return [_at_ends(self.named(ends[0]), self.named(ends[1]), *both) for both in zip(low, high, strict=True)]

    @property
    def rules(self) -> dict[str, Any]:
        """The minimum frequency for the record: which noisy numbers of units decide at each of the limits."""
        found = {self.named(place): plan.rules for place, plan in self.plans.items()}
        first = dict(next(iter(found.values())))
        if "shown_from" in first:
            first["shown_from"] = {name: rules["shown_from"] for name, rules in found.items()}
        return first

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of each column at each of the limits that may be chosen."""
        by_limit = {self.named(place): plan.expected(sizes) for place, plan in self.plans.items()}
        first = next(iter(by_limit.values()))
        return [
            tuple(_at_each(one, {name: found[i][j] for name, found in by_limit.items()}) for j, one in enumerate(row))
            for i, row in enumerate(first)
        ]

    # Once it is paid

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> Drawn:
        """Choose each limit, then carry out the plan for them."""
        found = tuple(choice.draw(source, schema, secret, rng) for choice in self.choices)
        places = tuple(one.place for one in found)
        return Drawn(found, self.plans[places].draw(source, self.settled(schema, places), secret, rng))

    def answers(self, drawn: Drawn) -> list[tuple[Column, ...]]:
        """The answers within the limits."""
        return self._plan(drawn).answers(drawn.within)

    def found(self, drawn: Drawn) -> list[tuple[str, ...]]:
        """What was left out by the limits that were chosen, which are not said where no group is shown."""
        if self.rule is not None and not self._plan(drawn).procedure.shows(drawn.within):  # type: ignore[attr-defined]
            return self.caveats
        places = tuple(one.place for one in drawn.chosen)
        parts = zip(self.choices, drawn.chosen, strict=True)
        omitted = [Omission(choice.outcome(one, self.rule)) for choice, one in parts]
        return _reads(self._plan(drawn)).left_out(omitted, self.limits(places))

    def within(self, drawn: Drawn, change: Callable[[Any, Any], Any]) -> Drawn:
        """What was drawn, with a change of what the plan for the limits drew."""
        return drawn._replace(within=change(self._plan(drawn).procedure, drawn.within))

    def value(self, drawn: Drawn) -> Lasting:
        """What goes on answering, within the limits."""
        value = self._plan(drawn).value
        assert value is not None
        return value(drawn.within)

    def _plan(self, drawn: Drawn) -> Offer:
        return self.plans[tuple(one.place for one in drawn.chosen)]

    def pack(self, drawn: Drawn) -> bytes:
        """The limits in a line, then what was drawn within them."""
        return json.dumps([list(one) for one in drawn.chosen]).encode() + b"\n" + self._plan(drawn).pack(drawn.within)

    def unpack(self, kept: bytes) -> Drawn:
        """What was packed; raise PrivacyError if it is not that."""
        line, _, within = kept.partition(b"\n")
        try:
            read = ((whole_of(place, "place"), whole_of(above, "above")) for place, above in json.loads(line))
            found = tuple(Chosen(*pair) for pair in read)
            plan = self.plans[tuple(one.place for one in found)]
        except (ValueError, TypeError, KeyError):
            raise PrivacyError(_CHANGED) from None
        return Drawn(found, plan.unpack(within))


def drawn_within(kept: bytes) -> bytes:
    """What was packed of an answer, without the line of its limits if it chose some.

    >>> drawn_within(b"[[0, 7]]\\nARROW"), drawn_within(b"ARROW")
    (b'ARROW', b'ARROW')
    """
    return kept.partition(b"\n")[2] if kept.startswith(b"[[") else kept


def _at_ends(low: str, high: str, before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """Sentences that hold at every limit, and before the last of them those of the least and the largest limit alone.

    >>> _at_ends("1 row", "8 rows", ["Below 3.", "± covers noise."], ["Below 9.", "± covers noise."])
    ('At a limit of 1 row: Below 3.', 'At a limit of 8 rows: Below 9.', '± covers noise.')
    """
    same = [one for one in before if one in after]
    own = [
        f"At a limit of {name}: {one}"
        for name, all_ in ((low, before), (high, after))
        for one in all_
        if one not in same
    ]
    return (*same[:-1], *own, *same[-1:])


def _at_each(column: Expected, by_limit: Mapping[str, Expected]) -> Expected:
    """A column whose error depends on the limit: one line for each of them, and what all of them rest on."""
    notes = [one.assumes.split("; ") for one in by_limit.values()]
    assumes = "; ".join(note for note in notes[0] if all(note in others for others in notes))
    same = replace(column, mechanism="", sensitivity="", assumes=assumes)
    return replace(same, half_width=None, by_size={}, ranks=None, by_limit=by_limit)
