"""A synthetic table: rows with the same columns, types, categories and nulls as the input."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.beyond import rows_within
from noisette.query.caveats import Omission, omissions
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.expression import Name
from noisette.query.measure import Contribution, Measure
from noisette.query.plan import Key, Relation, Scan, Where
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.questions.contract import Offer, Packing
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.records import grouped
from noisette.questions.parts.rows import Rows, rows_of
from noisette.questions.parts.synthetic_columns import SyntheticColumn, as_stored
from noisette.questions.parts.synthetic_rule import Rule, values_of
from noisette.questions.parts.synthetic_table import SyntheticTable, described, packed, unpacked
from noisette.releases.linear import widest
from noisette.releases.synthetic.quality import qualities
from noisette.releases.synthetic.rake import MOST_ROWS, Rake, deviation
from noisette.releases.synthetic.schedule import Strategy
from noisette.releases.synthetic.tables import Coarse, Counts, Pair

__all__ = ["Synthetic"]

_ROWS = Measure("rows")
_MOST_COLUMNS = 60
_ASK = 'columns must name columns, each once: columns=["ward", "age"], or None for all of them.'
_ABOUT = Omission(
    "Rows are made up from noisy tables of single columns and of some pairs; answer.value.quality says which, and how "
    "far off they may be."
)


@dataclass(frozen=True)
class Synthetic(JsonQuestion):
    """Made-up rows in the form of the input, whose one-way and two-way tables are close to those of the data.

    Without `columns`, all except the unit's. Each has declared keys, or bounds; more values than `bins` are binned, and
    come back inside their bins. NULL is a value. `where` is a condition that every row keeps, such as
    "child_age < parent_age". The number of rows has noise, too; `most` of them are made of a larger table. The answer's
    `value` has the rows and a `quality` report, which is made of released numbers only.

    >>> Synthetic(["ward", "age"])
    Synthetic(columns=('ward', 'age'), of=None, where=None, bins=256, most=500000, strategy='rake')
    """

    columns: Sequence[str] | None = None
    of: Rows = None
    where: str | None = None
    bins: int = 256
    most: int = MOST_ROWS
    strategy: Strategy = "rake"

    def __post_init__(self) -> None:
        names = self.columns
        if isinstance(names, str) or (names is not None and not isinstance(names, Sequence)):
            raise InputError(_ASK)
        if names is not None and (not names or not all(isinstance(name, str) and name for name in names)):
            raise InputError(_ASK)
        super().__post_init__()
        whole(self.bins, "bins", least=2)
        whole(self.most, "most")
        object.__setattr__(self, "columns", None if names is None else tuple(names))

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose what to measure, and the noise."""
        names = _names(self.of, schema) if self.columns is None else tuple(self.columns)
        prepared = grouped(self.of, list(names), schema)
        columns = _columns(prepared, names, self.bins)
        rule = None if self.where is None else Rule.of(self.where, columns)
        made = Rake.calibrated(
            spend,
            [one.attribute for one in columns],
            rows=prepared.part.total,
            neighbours=neighbours,
            strategy=self.strategy,
            most=self.most,
        )
        rows = rows_within(prepared.query.source, schema, prepared.query.keys)
        procedure = Synthesising(prepared, made, level, columns, _requests(prepared, columns, rows), rule)
        return procedure.offer({"where": self.where, "bins": self.bins, "most": self.most, "strategy": self.strategy})


def _names(of: Rows, schema: Schema) -> tuple[str, ...]:
    """All columns of the rows, except the one that says whose row it is."""
    rows = rows_of(of, "", schema)
    shape = shape_of(rows.relation, schema)
    names = [name for name in (full.partition(".")[2] for full in shape.columns) if name != shape.unit]
    if len(set(names)) < len(names) or not names:
        raise InputError(_ASK)
    return tuple(names)


def _columns(prepared: Prepared, names: Sequence[str], bins: int) -> tuple[SyntheticColumn, ...]:
    outputs = dict(prepared.query.outputs)
    keys = [outputs[f"c{i}"] for i in range(len(names))]
    places = [key.position for key in keys if isinstance(key, Key)]
    if len(set(places)) < len(places):
        raise InputError("Two of the columns are the same: name each once.")
    if len(names) > _MOST_COLUMNS:
        raise InputError(f"A synthetic table has at most {_MOST_COLUMNS} columns: name fewer.")
    return tuple(
        SyntheticColumn.of(name, prepared.keys[at], prepared.query.keys[at], bins)
        for name, at in zip(names, places, strict=True)
    )


def _requests(
    prepared: Prepared, columns: Sequence[SyntheticColumn], rows: Relation
) -> dict[tuple[int, ...], Prepared]:
    """What the engine counts: each column, and each pair; one unit's rows may lie in as many groups as they are.

    All tables are about the same rows, those with no value beyond its bounds in any column.
    """
    k = prepared.part.total
    found = {}
    for some in [*((i,) for i in range(len(columns))), *combinations(range(len(columns)), 2)]:
        keys = tuple(columns[i].key for i in some)
        request = replace(prepared.request, source=rows, keys=keys, domains=(None,) * len(keys))
        found[some] = replace(prepared, part=Contribution(k, k, k), request=request)
    return found


@dataclass(frozen=True)
class Synthesising:
    """Rows of codes from tables that the engine counts, and their values."""

    prepared: Prepared
    made: Rake
    level: float
    columns: tuple[SyntheticColumn, ...]
    requests: dict[tuple[int, ...], Prepared]
    rule: Rule | None

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one unit moves any of the tables."""
        return self.made.schedule.moved

    def offer(self, options: dict[str, Any]) -> Offer:
        """What would be released."""
        prepared, schedule = self.prepared, self.made.schedule
        named = replace(prepared, request=replace(prepared.request, domains=((),) * len(prepared.keys)))
        undeclared = [one for one in omissions(named) if one not in list(omissions(prepared))]
        noises = [
            *schedule.singles,
            *([schedule.forest] * schedule.forest_edges if schedule.forest else []),
            *([schedule.round] * schedule.rounds if schedule.round else []),
        ]
        picks = [recorded(schedule.chooser(2), _ROWS, schedule.scores_moved) for _ in range(schedule.picks)]
        found = about(
            prepared,
            self,
            text=text_of("synthetic", prepared, **options),
            why=_why(self.made),
            guarantee=self.made.guarantee(),
            parts=[*(recorded(noise, _ROWS, schedule.moved) for noise in noises), *picks],
            omitted=[*undeclared, _ABOUT],
            value=lambda drawn: SyntheticTable(drawn, self.level),
        )
        return replace(found, packing=Packing(packed, unpacked))

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of how many rows have one value, for each column."""
        found = []
        for column, noise in zip(self.columns, self.made.schedule.singles, strict=True):
            kind = "Gaussian" if self.made.gaussian else "Laplace"
            half = widest(noise, self.level) * deviation(noise)
            drowned = round(deviation(noise) * column.size)
            note = f"for the rows of one value of {column.size:,}; of fewer than {drowned:,} rows mostly noise is left"
            moved = f"rows: {self.prepared.part.total:,}"
            found.append(Expected(column.name, f"{kind} noise on {column.size:,} counts", moved, half, {}, None, note))
        return [tuple(found)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count, and make rows up."""
        tables = _Counted(self, source, schema, secret)
        fit = self.made(tables, rng, None if self.rule is None else self.rule.allows(self.columns, rng))
        made = values_of if self.rule is None else self.rule.kept
        rows = made(self.columns, fit.codes, rng)
        typed = [as_stored(rows.column(i).combine_chunks(), kind) for i, kind in enumerate(self._stored(source))]
        about_rows = qualities(fit, rows.column_names, self.level)
        return described(pyarrow.table(typed, names=rows.column_names), about_rows)

    def _stored(self, source: Source) -> list[str]:
        """How each column is stored, where it is one of a table."""
        relation = self.prepared.query.source
        while isinstance(relation, Where):
            relation = relation.source
        known = source.stored(relation.table) if isinstance(relation, Scan) else {}
        plain = [self.prepared.query.keys[at] for at in self._places]
        names = [key.name.partition(".")[2] if isinstance(key, Name) else "" for key in plain]
        return [known.get(name, "") for name in names]

    @property
    def _places(self) -> list[int]:
        outputs = dict(self.prepared.query.outputs)
        return [outputs[f"c{i}"].position for i in range(len(self.columns))]  # type: ignore[union-attr]

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The rows."""
        plain = [drawn.column(name).combine_chunks() for name in drawn.column_names]
        texts = [one.dictionary_decode() if pyarrow.types.is_dictionary(one.type) else one for one in plain]
        return [tuple(Column(name, values) for name, values in zip(drawn.column_names, texts, strict=True))]


def _why(made: Rake) -> str:
    schedule = made.schedule
    kind = "Gaussian" if made.gaussian else "Laplace"
    pairs = schedule.forest_edges + schedule.rounds
    return (
        f"{kind} noise on each column's counts and on those of pairs that are picked where rows would err most, at "
        f"most {pairs:,}."
    )


@dataclass(frozen=True)
class _Counted:
    """The tables of a synthesiser, counted by an engine: their size does not depend on the number of rows."""

    of: Synthesising
    source: Source
    schema: Schema
    secret: bytes

    def _read(self, some: tuple[int, ...]) -> tuple[list[NDArray[np.int64]], Counts]:
        exact = self.source.aggregate(self.of.requests[some].request, self.schema, self.secret)
        assert exact.keys is not None
        codes = [self.of.columns[i].codes(exact.keys.column(at).combine_chunks()) for at, i in enumerate(some)]
        inside = np.all([one >= 0 for one in codes], axis=0)
        return [one[inside] for one in codes], exact.measures[0][inside]

    def one_way(self, i: int) -> Counts:
        """How many rows have each code of a column."""
        [codes], counts = self._read((i,))
        found = np.zeros(self.of.columns[i].size, np.int64)
        np.add.at(found, codes, counts)
        return found

    def pairs(self, coarse: Sequence[Coarse], wanted: Sequence[Pair]) -> dict[Pair, Counts]:
        """How many rows lie in each pair of bins."""
        found = {}
        for i, j in wanted:
            [first, second], counts = self._read((i, j))
            table = np.zeros((coarse[i].bins, coarse[j].bins), np.int64)
            np.add.at(table, (coarse[i].bin_of[first], coarse[j].bin_of[second]), counts)
            found[i, j] = table
        return found


examples = [
    Synthetic(["ward", "age", "cost"]),
    Synthetic(["ward", "FLOOR(age / 10)"], of="SELECT * FROM visits WHERE age >= 18"),
    Synthetic(["age", "cost"], where="cost >= age", bins=32, most=2_000, strategy="mst"),
]
