"""Any function of the rows: run on blocks of them, its outputs aggregated privately (sample and aggregate).

Let f be any function of rows. The units are divided at random into m blocks, f is computed on each, and a private
aggregate of the m outputs is released. One unit is in one block, whose output is one of m records; so neighbouring
tables, under add/remove or under replace, give m outputs of which one may be replaced. What the aggregate promises for
one replaced record holds for a unit, whatever f does and however many rows the unit has.
[Nissim-Raskhodnikova-Smith 2007; Smith 2011; Mohan-Thakurta-Shi-Song-Culler 2012 (GUPT)]

Blocks may overlap: a unit is then in `each` of them, chosen at random, and as many records may be replaced.
[Smith-Thakurta 2013 for stable modes; proof note: docs/proofs/stability.md]

That needs f to see one block alone, and to have no other way out than its output: `noisette.sandbox` sees to it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise, Spend, as_promise
from noisette.query.canonical import canonical_text, conditions_first
from noisette.query.caveats import NOISE, beyond_bounds, retained, sentences
from noisette.query.expected import Expected
from noisette.query.expression import Name
from noisette.query.grouping import check_groups
from noisette.query.plan import Aggregate, Query, Relation
from noisette.query.reads import kinds_read
from noisette.query.schema import Schema
from noisette.query.shape import ROW, Shape
from noisette.query.stability import shape_of
from noisette.query.unit_keys import unit_names
from noisette.query.uses import changed_by_bounds, uses_of
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.rows import Rows, rows_of, rows_text
from noisette.questions.parts.tables import columns_of
from noisette.releases.blocks import options, votes
from noisette.releases.blocks.advice import LEAD, Advice, advice, widest
from noisette.releases.blocks.means import Mean, Winsorized, mean, winsorized
from noisette.releases.blocks.medians import Median, median
from noisette.releases.blocks.numbers import Numbers, Range
from noisette.releases.blocks.terms import Terms
from noisette.sandbox import running
from noisette.sandbox.dividing import as_bytes, divided
from noisette.sandbox.payload import Payload, payload_of
from noisette.sandbox.running import bar

__all__ = ["Apply"]

Aggregator: TypeAlias = Mean | Winsorized | Median | votes.Vote

_OF_NUMBERS: dict[str, Callable[[Numbers, Terms], Aggregator]] = {
    "mean": mean,
    "winsorized": winsorized,
    "median": median,
}
_OF_LABELS = ("mode", "stable")

Named: TypeAlias = tuple[tuple[str, str], ...]
"""Full names of columns, with the names that the function sees."""


@dataclass(frozen=True, repr=False)
class Apply(JsonQuestion):
    """What a function gives for the rows, privately: of `blocks` parts of them, their outputs aggregated.

    The function gets a pyarrow.Table of one block with `columns` (all but the unit's, unless named), and gives a number
    within `bounds`, or several if `outputs` says how many or what they are called, or a label (of `labels`). What else
    it does counts as `default`: the middle of the bounds, or no vote. It may take `seconds` and
    `memory` for a block, and has no files, no network, no threads; it finds the modules that it names, and `modules`.
    A unit is in `each` of the blocks: in one, or in several, which are then larger and need as many times the noise.

    >>> def share_of_old(rows):
    ...     return (rows["age"].to_numpy() >= 65).mean()
    >>> Apply(share_of_old, blocks=50, bounds=(0, 1), columns=["age"])
    Apply(share_of_old, blocks=50, aggregate='mean')
    """

    payload: Payload
    name: str
    blocks: int
    each: int
    aggregate: str
    columns: tuple[str, ...] | None
    of: Rows
    limits: running.BlockLimits
    numbers: Numbers | None
    labels: tuple[str, ...] | None
    default: str | None

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        blocks: int,
        bounds: Any = None,
        columns: Sequence[str] | None = None,
        of: Rows = None,
        aggregate: str = "mean",
        each: int = 1,
        default: Any = None,
        seconds: float = 1.0,
        memory: str | int = "1 GiB",
        outputs: int | Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        if not callable(function):
            raise InputError(
                "Apply needs a function of a table, which JSON cannot carry: write Apply(lambda rows: …, blocks=50, "
                "bounds=(0, 1)) in Python."
            )
        if aggregate not in (*_OF_NUMBERS, *_OF_LABELS):
            raise InputError(f"aggregate must be one of {', '.join((*_OF_NUMBERS, *_OF_LABELS))}.")
        of_numbers = aggregate in _OF_NUMBERS
        if (labels if of_numbers else bounds or outputs) is not None:
            raise InputError("bounds and outputs are for numbers, labels for the aggregates mode and stable.")
        m, r = options.blocks(blocks, each)
        numbers = options.numbers(bounds, outputs, default) if of_numbers else None
        listed, vote = (None, None) if of_numbers else options.labels(labels, default, aggregate)
        count = None if numbers is None else len(numbers.names)
        put = {
            "payload": payload_of(function, count, options.texts(modules, "modules")),
            "name": getattr(function, "__name__", "function"),
            "blocks": m,
            "each": r,
            "aggregate": aggregate,
            "columns": None if columns is None else options.texts(columns, "columns"),
            "of": rows_text(of),
            "limits": running.BlockLimits(options.seconds(seconds), options.memory(memory)),
            "numbers": numbers,
            "labels": listed,
            "default": vote,
        }
        for name, value in put.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        overlap = "" if self.each == 1 else f", each={self.each}"
        return f"Apply({self.name}, blocks={self.blocks}, aggregate={self.aggregate!r}{overlap})"

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """What would be released, if functions can be run here."""
        relation, columns = _rows(self.columns, self.of, schema)
        check_groups(Query(relation, tuple(Name(full) for full, _ in columns), ()), schema)  # it can group by anything
        aggregate = self._aggregate(Terms(self.blocks, self.each, spend, neighbours, level))
        running.check(self.payload, self.limits)
        read, shape = kinds_read(relation, schema, [full for full, _ in columns]), shape_of(relation, schema)
        uses = uses_of(relation, [("number", Name(full)) for full, _ in columns], dict(read))
        covers = "" if self.numbers is None else f"{NOISE}, not how much the blocks differ"
        return Offer(
            _text(self, relation, columns, shape, aggregate, (*read, *changed_by_bounds(uses))),
            aggregate.guarantee,
            shape.whose,
            aggregate.why,
            aggregate.parts,
            [sentences([*retained(shape), *beyond_bounds(uses, dict(read), shape), *aggregate.omitted], covers)],
            InBlocks(self, relation, columns, aggregate),
        )

    def fields(self) -> Any:
        """The fields, with the name and the hash of the function: JSON cannot carry the function itself."""
        of_numbers = self.numbers
        named = {} if of_numbers is None else {"bounds": of_numbers.bounds, "outputs": of_numbers.names}
        others = {"columns": self.columns, "of": self.of, "labels": self.labels}
        return {
            "function": {"name": self.name, "sha256": hashlib.sha256(self.payload.bytes).hexdigest()},
            "blocks": self.blocks,
            "aggregate": self.aggregate,
            "each": self.each,
            "seconds": self.limits.seconds,
            "memory": self.limits.memory,
            **named,
            **{name: value for name, value in others.items() if value is not None},
        }

    def _aggregate(self, terms: Terms) -> Aggregator:
        if self.numbers is not None:
            return _OF_NUMBERS[self.aggregate](self.numbers, terms)
        if self.aggregate == "stable":
            return votes.stable(self.labels, self.default, terms)
        assert self.labels is not None
        return votes.mode(self.labels, self.default, terms)

    def rehearse(self, rows: pyarrow.Table) -> Any:
        """What the function gives for made-up rows, in the place where it will run; if it fails, why.

        A real block that fails says nothing, so try it here first. Never on private rows: nothing is noised.
        """
        if not isinstance(rows, pyarrow.Table):
            raise InputError("Rehearse with a pyarrow.Table of made-up rows.")
        said = running.tried(self.payload, as_bytes(rows), self.limits)
        if "failed" in said:
            error = InputError(f"The function fails on these rows: {said['failed'].strip().splitlines()[-1]}")
            error.add_note(said["failed"])
            raise error
        gave = bytes.fromhex(said["gave"])
        if self.numbers is None:
            return gave.decode()
        found = np.frombuffer(gave, "<f8").tolist()
        return found if len(found) > 1 else found[0]

    def advise(self, units: int, *, spend: Spend, level: float = 0.95) -> Advice:
        """For several numbers of blocks: the units in each, the noise and the time. `units` is a guess, or public.

        Of a stable mode, for the noise: the share of the votes by which a label must lead to be released at that level.
        """
        asked = as_promise(spend)
        if whole(units, "units") * self.each < 2 * self.blocks:
            raise InputError("There are fewer than two units for each block: name fewer blocks.")

        def error(blocks: int) -> float:
            made = self._aggregate(Terms(blocks, self.each, asked, Neighbours.ADD_REMOVE, level))
            lead = made.lead if isinstance(made, votes.Vote) else None
            return widest(made) if lead is None else lead / blocks

        def seconds(blocks: int) -> float:
            return -(-blocks // len(running.cores())) * self.limits.slot

        named = {"median": "blocks off", "mode": "blocks off", "stable": LEAD}
        return advice(units, self.each, error, seconds, named.get(self.aggregate, "±"))


def _text(
    asked: Apply, relation: Relation, columns: Named, shape: Shape, aggregate: Aggregator, read: tuple[Any, ...]
) -> str:
    """The rows, the function, and how its outputs are aggregated."""
    counted = tuple((name, Aggregate("count", Name(full))) for full, name in columns)
    known = [
        [shape.columns[full] for full, _ in columns],
        read,
        *((shape.retained,) if shape.retained else ()),
        asked.numbers,
        asked.labels,
        asked.default,
        asked.limits,
        asked.payload.modules,
    ]
    ends = [] if isinstance(aggregate, votes.Vote) else [aggregate.terms.level]  # bars are kept, too
    overlap = "" if asked.each == 1 else f", {asked.each} for each unit"
    return json.dumps(
        {
            "question": f"apply {asked.aggregate} of {asked.blocks}{overlap}",
            "asked": canonical_text(Query(relation, (), counted)),
            "columns": [(name, _measured(relation, full)) for full, name in columns],
            "function": hashlib.sha256(asked.payload.bytes).hexdigest(),
            "declared": hashlib.sha256(repr([*known, *ends]).encode()).hexdigest()[:16],
        }
        | (
            {"bars": "hold"} if asked.aggregate == "median" else {}
        )  # before, a median's bars held for usual values only
    )


def _measured(relation: Relation, full: str) -> str:
    """What a column is, whatever it is called: `asked` sorts columns, and the function tells them apart by name."""
    return canonical_text(Query(relation, (), (("n", Aggregate("count", Name(full))),)))


@dataclass(frozen=True)
class InBlocks:
    """A function that would be run on blocks of rows, and the aggregate of its outputs."""

    question: Apply
    relation: Relation
    columns: Named
    aggregate: Aggregator

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The columns of the answer; ends of error bars lie within the bounds, since all outputs do."""
        columns, numbers = columns_of(drawn), self.question.numbers
        spans = {} if numbers is None else dict(zip(numbers.names, numbers.bounds, strict=True))
        return [tuple(_within(column, spans.get(column.name)) for column in columns)]

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The noise to expect."""
        return [self.aggregate.expected()]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Fetch the rows, divide them, run the function on each block and aggregate."""
        asked = self.question
        short = {full: f"c{i}" for i, (full, _) in enumerate(self.columns)}
        rows = source.rows(self.relation, short, schema, secret)
        blocks = divided(rows, [name for _, name in self.columns], asked.blocks, rng, each=asked.each)
        progress = bar(asked.blocks, asked.limits.slot, len(running.cores()))
        return self.aggregate.draw(running.outputs(asked.payload, blocks, asked.limits, progress), rng)


def _within(column: Column, bounds: Range | None) -> Column:
    return column if bounds is None else column.within((float(bounds[0]), float(bounds[1])))


# Rows


def _rows(columns: tuple[str, ...] | None, of: Rows, schema: Schema) -> tuple[Relation, Named]:
    """The relation, and its columns with the names that the function sees."""
    frame = rows_of(of, columns[0] if columns else "", schema)
    relation = conditions_first(frame.relation if columns is None else frame.select(*columns).relation)
    shape = shape_of(relation, schema)
    if shape.public:
        raise InputError("All tables of this question are public: run the function on them directly.")
    if shape.unit == ROW and shape.rows != 1:
        raise InputError("Join on a column of the public table that has no repeats: each row here must stay one row.")
    hidden = set(unit_names(relation, schema)) | frame.hidden if columns is None else set()
    shown = [full for full in shape.columns if full not in hidden]
    short = [full.partition(".")[2] for full in shown]
    return relation, tuple((full, s if short.count(s) == 1 else full) for full, s in zip(shown, short, strict=True))


def _share_of_old(rows: pyarrow.Table) -> float:
    return float((rows["age"].to_numpy() >= 65).mean())


def _ward(rows: pyarrow.Table) -> str:
    return str(rows["ward"][0])


examples = [
    Apply(_share_of_old, blocks=2, bounds=(0, 1), columns=["age"], seconds=0.3, memory="128 MiB"),
    Apply(
        _ward,
        blocks=2,
        labels=["emergency", "oncology"],
        aggregate="mode",
        columns=["ward"],
        seconds=0.3,
        memory="128 MiB",
    ),
]
