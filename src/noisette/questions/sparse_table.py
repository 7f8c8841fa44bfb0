"""Counts by several columns whose combinations are far too many to list."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, level_of, positive, whole
from noisette.exact.random import Random
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.caveats import NOISE, Omission, omissions
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.grouping import check_groups
from noisette.query.measure import Measure, Request, contribution
from noisette.query.operations import kind_of
from noisette.query.plan import Key
from noisette.query.prepare import Prepared, read_of
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.questions.contract import Offer, Packing
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.key_domains import KeyDomain, domain_of
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.rows import Rows, rows_of
from noisette.questions.parts.tables import pack_table, unpack_table
from noisette.releases.sparse.counts import LARGEST, Released, SparseCounts, Total

if TYPE_CHECKING:
    from noisette.charts import Chart

__all__ = ["Cells", "SparseTable", "Sparsely"]

_ROWS = Measure("rows")
_USUAL = 100  # empty cells
_DRAWN = 1_000  # cells of a picture
_THRESHOLD = b"threshold"


@dataclass(frozen=True)
class SparseTable(JsonQuestion):
    """How many rows each combination of values of some columns has, up to 2^62 combinations, of which few have any.

    Each column has declared keys, or bounds and a grid. All combinations get noise, the empty ones too, and those that
    reach a threshold are released, with an error bar. The threshold follows from the `size`, which is how many empty
    combinations reach it in expectation (100 if nothing is named), or is the `threshold` itself. With a `sample`, that
    many combinations are released, larger ones more probably; of all of them if there is no threshold.

    The answer's `value` counts the rows of any part of the table: `value.count({"ward": ["north"], "age": (18, 65)})`.
    """

    columns: str | Sequence[str]
    size: Number | None = None
    threshold: int | None = None
    sample: int | None = None
    of: Rows = None

    def __post_init__(self) -> None:
        columns = (self.columns,) if isinstance(self.columns, str) else self.columns
        if not isinstance(columns, tuple | list) or not columns or not all(isinstance(c, str) and c for c in columns):
            raise InputError('columns must name what is counted by: columns=["ward", "age", "FLOOR(cost / 100)"].')
        super().__post_init__()
        object.__setattr__(self, "columns", tuple(columns))
        if self.size is not None and self.threshold is not None:
            raise InputError("Name a size or a threshold, not both: one follows from the other.")
        for name in ("threshold", "sample"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name)
        if self.size is not None:
            positive(self.size, "size")

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose noise for all combinations, and the threshold."""
        prepared = _prepared(self.columns, self.of, schema)
        outputs = [(name, result) for name, result in prepared.query.outputs if isinstance(result, Key)]
        names = {result.position: name for name, result in outputs}
        domains = tuple(domain_of(kind, names[i]) for i, kind in enumerate(prepared.keys))
        cells = math.prod(domain.size for domain in domains)
        if cells > LARGEST:
            raise InputError("There are more than 2^62 combinations: name fewer columns, or coarser ones.")
        rule: dict[str, Any] = {"size": self.size, "threshold": self.threshold, "sample": self.sample}
        if not any(one is not None for one in rule.values()):
            rule["size"] = _USUAL
        made = SparseCounts.calibrated(spend, cells, **rule, part=prepared.part, neighbours=neighbours)
        prepared = _read_sparsely(prepared, domains)
        procedure = Sparsely(prepared, made, made.moved, level, domains, tuple((n, r.position) for n, r in outputs))
        return _offer(prepared, procedure, rule)


def _prepared(columns: Sequence[str], of: Rows, schema: Schema) -> Prepared:
    taken = {name.removesuffix(end) for name in columns for end in ("_low", "_high", "_weight")} | set(columns)
    number = next(name for name in ("n", "rows", "number", "_n") if name not in taken or name == "_n")
    query = canonical(rows_of(of, columns[0], schema).group_by(*columns).agg(**{number: "COUNT(*)"}).query)
    if len(query.keys) < len(columns):
        raise InputError("Two of the columns are the same: name each of them once.")
    check_groups(query, schema)
    shape = shape_of(query.source, schema)
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    part, limits = contribution(shape, grouped=True)
    kinds = tuple(kind_of(key, shape.columns) for key in query.keys)
    request = Request(query.source, query.keys, (None,) * len(kinds), (_ROWS,), limits)
    return Prepared(query, shape, part, kinds, request, frozenset((_ROWS,)), (), read_of(query, schema))


def _read_sparsely(prepared: Prepared, domains: Sequence[KeyDomain]) -> Prepared:
    """Let the engine compare listed keys; one column at least is left open, so that only filled cells come back."""
    listed = [None if domain.listed is None else domain.kind.values() for domain in domains]
    if None not in listed:
        listed[max(range(len(listed)), key=lambda i: domains[i].size)] = None
    return replace(prepared, request=replace(prepared.request, domains=tuple(listed)))


def _offer(prepared: Prepared, procedure: "Sparsely", rule: Mapping[str, Any]) -> Offer:
    made = procedure.made
    closed = replace(prepared, request=replace(prepared.request, domains=((),) * len(prepared.keys)))
    undeclared = [one for one in omissions(closed) if one not in list(omissions(prepared))]
    offer = about(
        prepared,
        procedure,
        text=text_of("sparse table", prepared, **{name: one for name, one in rule.items() if one is not None}),
        why=f"All {made.cells:,} combinations have noise and few are released; of the empty ones only those are drawn.",
        guarantee=made.guarantee(),
        parts=[recorded(made.noise, _ROWS, made.moved)],
        covers=NOISE,
        omitted=[*undeclared, *map(Omission, procedure.left_out)],
        value=lambda drawn: Cells(procedure, procedure.released(drawn)),
    )
    return replace(offer, packing=Packing(pack_table, procedure.unpack))


@dataclass(frozen=True)
class Sparsely:
    """Noisy counts of some combinations: `made` says which; `outputs` are the names of the keys and their places."""

    prepared: Prepared
    made: SparseCounts
    sensitivity: Sensitivity
    level: float
    domains: tuple[KeyDomain, ...]
    outputs: tuple[tuple[str, int], ...]

    @property
    def left_out(self) -> list[str]:
        """What it means that a combination is absent, or there."""
        if self.made.filter is None:
            return ["Combinations are a sample: one that is absent may have rows; value.count() allows for that."]
        least = self.made.filter.threshold
        surely = least + int(self.made.noise.interval(self.level))
        found = [
            f"Combinations whose noisy count is below {least:,} are left out: one that is absent may have rows, "
            f"but rarely {surely:,} or more.",
            f"At most about {self.made.empty:,.3g} released combinations are expected to have no row at all; "
            "the error bars allow for that.",
        ]
        sampled = "Of the others a sample is released, larger ones more probably; value.count() allows for that."
        return [*found, sampled] if self.made.rule != self.made.filter else found

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error of a combination that is far above the threshold, and how many empty ones are released."""
        spread = math.sqrt(self.made.noise.variance())
        noise = f"Geometric noise, standard deviation {spread:.4g}"
        moved = f"rows: {float(self.sensitivity.linf):.6g} in one group, {float(self.sensitivity.l1):.6g} in all"
        note = f"for combinations far above the threshold; at most about {self.made.empty:,.3g} empty ones are released"
        return [(Expected(self.number, noise, moved, self.made.noise.interval(self.level), {}, None, note),)]

    @property
    def number(self) -> str:
        """What the column of counts is called."""
        return next(name for name, result in self.prepared.query.outputs if not isinstance(result, Key))

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows of combinations that have any, and release some."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        assert exact.keys is not None
        there, codes = np.ones(exact.keys.num_rows, bool), np.zeros(exact.keys.num_rows, np.int64)
        for i, domain in enumerate(self.domains):
            known, part = domain.codes(exact.keys.column(i).combine_chunks())
            codes *= domain.size
            codes[known] += part
            there &= known
        return self.measured(codes[there], exact.measures[0][there], rng)

    def measured(self, codes: NDArray[np.int64], counts: NDArray[np.int64], rng: Random) -> pyarrow.Table:
        """Release some cells, of which the filled ones are listed with their counts."""
        released = self.made(*_added_up(codes, counts), rng)
        table = pyarrow.table({"cell": released.codes, "n": released.v})
        return table.replace_schema_metadata({_THRESHOLD: released.threshold.hex()})

    def unpack(self, kept: bytes) -> pyarrow.Table:
        """What was drawn, from its bytes."""
        table = unpack_table(kept)
        if table.column_names != ["cell", "n"] or _THRESHOLD not in (table.schema.metadata or {}):
            raise PrivacyError(
                "The answer that was kept for this question was changed: restore a backup of the ledger."
            )
        return table

    def released(self, drawn: pyarrow.Table) -> Released:
        """The released cells of what was drawn."""
        threshold = float.fromhex(drawn.schema.metadata[_THRESHOLD].decode())
        return Released(self.made, drawn.column("cell").to_numpy(), drawn.column("n").to_numpy(), threshold)

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """A row for each released combination."""
        released = self.released(drawn)
        low, high = released.bars(self.level)
        codes = self.codes_of(released.codes)
        keys = [Column(name, self.domains[at].values(codes[at])) for name, at in self.outputs]
        return [(*keys, Column(self.number, pyarrow.array(released.v), low, high))]

    def codes_of(self, cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The code of each key."""
        found = []
        for domain in reversed(self.domains):
            cells, code = np.divmod(cells, domain.size)
            found.append(code)
        return found[::-1]


def _added_up(codes: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each cell once: two doubles may round to the same step."""
    if not codes.size:
        return codes, counts
    order = np.argsort(codes)
    codes, counts = codes[order], counts[order]
    first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return codes[first], np.add.reduceat(counts, first)


@dataclass(frozen=True)
class Cells:
    """The released combinations: counts of any part of the table, at no further cost."""

    procedure: Sparsely
    released: Released

    @cached_property
    def _codes(self) -> list[NDArray[np.int64]]:
        return self.procedure.codes_of(self.released.codes)

    def count(self, where: Mapping[str, Any] | None = None, *, level: float | None = None) -> Total:
        """How many rows have these values: a value, a list of values, or a pair (low, high) for some of the columns.

        Of a sample it is unbiased; of all released combinations, those that are not released count as empty.
        """
        places = dict(self.procedure.outputs)
        if not set(where or {}) <= set(places):
            raise InputError(f"There is no such column: name some of {', '.join(places)}.")
        chosen, cells = np.ones(self.released.codes.size, bool), self.procedure.made.cells
        for name, given in (where or {}).items():
            domain, codes = self.procedure.domains[places[name]], self._codes[places[name]]
            number, some = domain.chosen(given)
            chosen &= some.holds(codes)
            cells = cells // domain.size * number
        return self.released.total(chosen, cells, level_of(self.procedure.level if level is None else level))

    def to_arrow(self) -> pyarrow.Table:
        """The released combinations with their noisy counts, error bars, and what each counts for in a sum."""
        low, high = self.released.bars(self.procedure.level)
        keys = {name: self.procedure.domains[at].values(self._codes[at]) for name, at in self.procedure.outputs}
        numbers = {"": self.released.v, "_low": low, "_high": high, "_weight": self.released.weights}
        return pyarrow.table({**keys, **{f"{self.procedure.number}{end}": part for end, part in numbers.items()}})

    def chart(self, *, note: str = "") -> "Chart":
        """The largest combinations, with their error bars."""
        from noisette.charts.answers import bars

        if not self.released.codes.size:
            raise InputError("There is nothing to draw: no combination reached the threshold.")
        table = self.to_arrow().take(np.argsort(-self.released.v, kind="stable")[:_DRAWN])
        names = [name for name, _ in self.procedure.outputs]
        groups = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
        number = self.procedure.number
        n, low, high = (table.column(f"{number}{end}").to_pylist() for end in ("", "_low", "_high"))
        title = f"{number} by {', '.join(names)}"
        return bars(groups, {number: (n, low, high)}, name=", ".join(names), title=title, note=note)


examples = [
    SparseTable(["ward", "age", "FLOOR(cost / 100)"]),
    SparseTable(["ward", "age"], threshold=5, of="SELECT * FROM visits WHERE age >= 18"),
    SparseTable(["ward", "FLOOR(age / 10)"], sample=20),
]
