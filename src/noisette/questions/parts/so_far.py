"""What a stream measures after a step: numbers of each group so far, which no unit can lower while rows are added.

    rows     how many, of each unit at most `events` in each group
    sum      of values; what one unit adds to a group counts up to `events` times the largest value
    ends     rows that have begun, and rows that have ended: both are counted like sums of ones

A sum of the rows that contribution bounding retains would not do: another row may be retained when one comes, and the
sum may fall. So the values of a unit are added up in each group first, and what exceeds the limit is cut off: while
rows are added, min(sum, limit) of values from 0 on never falls. Values below 0 are a second sum, that is taken away.
"""

import datetime
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow

from noisette.engines import open_source
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.query.aggregate import measures_of
from noisette.query.canonical import canonical
from noisette.query.caveats import Omission, omissions
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.frame import Frame
from noisette.query.grouping import check_groups
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind, Type
from noisette.query.measure import Contribution, Measure, Request
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Copies, Key, PerUnit, Query, Relation, Result, Scan, Select, Where
from noisette.query.prepare import Prepared, read_of
from noisette.query.reads import tables_of
from noisette.query.schema import Limits, Schema
from noisette.query.shape import ROW, RetainedPerPeriod, Shape
from noisette.query.stability import shape_of
from noisette.releases.streams.participation import Participation

__all__ = [
    "Pushed",
    "RowsSoFar",
    "left_out",
    "participation",
    "prepared",
    "signed",
    "time_kind",
    "under_way",
    "written",
]

_ROWS = Measure("rows")
_MOST = 1 << 40  # steps of the grid that one unit moves a number by


def prepared(rows: Frame, by: str | None, values: tuple[Expression, ...], asked: int | None) -> Prepared:
    """The query of what there is so far: rows, or sums of values, the second of which is taken away."""
    schema = rows.schema
    query = (rows.group_by(c0=by).count() if by else rows.count()).query
    check_groups(query, schema)
    shape = shape_of(query.source, schema)
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    if any(isinstance(part, RetainedPerPeriod) for part in shape.retained):
        raise InputError(
            "A stream counts rows that stay once they are there, and by a limit of rows in each period a row that "
            "comes can take the place of another: ask the owner to declare rows = 10, a number in all."
        )
    if not _stays(query.source, schema) or (shape.unit == ROW and shape.rows != 1):
        raise InputError(
            "A stream counts rows that stay once they are there: leave out sub-queries, joins of private tables, "
            "and joins with public tables whose values repeat."
        )
    events = _events(asked, shape)
    part = Contribution(1, events, events)
    if values:
        query = _capped(query, values, events, shape)
    query = canonical(query)
    inner = shape_of(query.source, schema)
    keys = tuple(kind_of(key, inner.columns) for key in query.keys)
    limits = None if shape.rows == 1 or values else Limits(rows_per_group=events)
    measures = _measures(query, inner, _grid(values, shape)) if values else (_ROWS,)
    request = Request(query.source, query.keys, tuple(kind.values() for kind in keys), measures, limits)
    read = read_of(query, schema, *(measure.of for measure in measures))
    return Prepared(query, inner, part, keys, request, frozenset(measures), (), read)


def participation(query: Prepared, groups: int) -> Participation:
    """How far one unit moves what is measured: in steps of the grid, in each of the groups."""
    plus, *minus = query.request.measures
    if plus == _ROWS:
        return Participation(query.part.total, groups=groups)
    return Participation(max(1, plus.high), groups=groups, taken=max((m.high for m in minus), default=0))


def left_out(query: Prepared, *, rows: bool) -> list[Omission]:
    """What is left out before any noise, where `rows` are counted or else values added up."""
    if query.shape.unit == ROW:
        return list(omissions(query))
    if rows:
        limits = Limits(rows_per_group=query.part.total)
        return list(omissions(replace(query, request=replace(query.request, limits=limits))))
    most = ", or takes away ".join(f"{float(m.high * m.grid):,.6g}" for m in query.request.measures)
    text = f"What one {query.shape.whose} adds to a group counts up to {most}, in all; more is left out."
    return [*omissions(query), Omission(text, "raise the limits")]


# Reading


@dataclass(frozen=True)
class RowsSoFar:
    """The exact numbers of all groups; then those that are taken away, if there are any. `of` rows that are pushed."""

    prepared: Prepared
    of: Source | None = None

    def draw(self, source: Source, schema: Schema, secret: bytes) -> list[Any]:
        """Count; where keys are not declared, each number has its key before it."""
        exact = (self.of or source).aggregate(self.prepared.request, schema, secret)
        if exact.keys is None:
            return [int(n) for measure in exact.measures for n in measure]
        keys = exact.keys.column(0).to_pylist()
        return [(key, *map(int, row)) for key, row in zip(keys, zip(*exact.measures, strict=True), strict=True)]


@dataclass(frozen=True)
class Pushed:
    """Rows that are pushed: a table with the columns of the stream's own, or a sentence that says so."""

    rows: Any
    into: RowsSoFar

    def draw(self, source: Source, schema: Schema, secret: bytes) -> RowsSoFar:
        """Open the rows; none of them is read."""
        [table] = tables_of(self.into.prepared.request.source, schema)
        if not hasattr(self.rows, "__arrow_c_stream__"):
            raise InputError("Push an Arrow table with the rows of the step.")
        made = open_source({table.name: pyarrow.table(self.rows)})
        if made.stored(table.name) != source.stored(table.name):
            raise InputError(f"Push rows with the columns of {table.name}, stored as they are there.")
        return RowsSoFar(self.into.prepared, made)


# Sums


def signed(rows: Frame, text: str) -> tuple[Expression, ...]:
    """The values to add up, and those to take away if there may be any."""
    [(_, found)] = rows.sum(text).query.outputs
    assert isinstance(found, Aggregate)
    value = found.of
    assert value is not None
    least, _ = _bounded(kind_of(value, shape_of(rows.relation, rows.schema).columns))
    zero = Literal(0)
    if least >= 0:
        return (value,)
    minus = Call("greatest", (Call("negate", (value,)), zero))
    return Call("greatest", (value, zero)), minus


def _bounded(kind: Kind) -> tuple[Fraction, Fraction]:
    if not kind.number or not kind.bounded:
        raise InputError(
            "What is added up must be a number with bounds: declare them in the policy, or write "
            "LEAST(GREATEST(x, low), high)."
        )
    return kind.ends


def _capped(query: Query, values: tuple[Expression, ...], events: int, shape: Shape) -> Query:
    """Sums of values over each group, with what one unit adds cut off at `events` times the largest value."""
    if shape.rows == 1:
        return replace(query, outputs=_outputs(query, values))
    names = tuple(f"u.v{i}" for i in range(len(values)))
    sums = tuple((name, Aggregate("sum", value)) for name, value in zip(names, values, strict=True))
    source = PerUnit(query.source, tuple((f"u.c{i}", key) for i, key in enumerate(query.keys)), sums)
    caps = [events * kind_of(value, shape.columns).ends[1] for value in values]
    cut = tuple(Call("least", (Name(name), _literal(cap))) for name, cap in zip(names, caps, strict=True))
    keys = tuple(Name(f"u.c{i}") for i in range(len(query.keys)))
    return Query(source, keys, _outputs(query, cut))


def _outputs(query: Query, values: tuple[Expression, ...]) -> tuple[tuple[str, Result], ...]:
    keys = tuple((name, result) for name, result in query.outputs if isinstance(result, Key))
    return (*keys, *((f"v{i}", Aggregate("sum", value)) for i, value in enumerate(values)))


def _literal(cap: Fraction) -> Literal:
    return Literal(int(cap) if cap.denominator == 1 else cap)


def _grid(values: tuple[Expression, ...], shape: Shape) -> Fraction:
    """The steps in which all values are added up."""
    once = Contribution(1, 1, 1)
    return max(measures_of(Aggregate("sum", value), shape, once)[0].grid for value in values)


def _measures(query: Query, shape: Shape, grid: Fraction) -> tuple[Measure, ...]:
    """One sum for each value."""
    found = [out.of for _, out in query.outputs if isinstance(out, Aggregate) and out.of is not None]
    ends = [step_bounds(kind_of(value, shape.columns), grid)[1] for value in found]
    if max(ends) > _MOST:
        raise InputError("One unit could add more than 2^40 steps: declare a coarser grid or narrower bounds.")
    return tuple(Measure("sum", value, grid, 0, high) for value, high in zip(found, ends, strict=True))


# Rows that end


def under_way(rows: Frame, ends: str, until: datetime.datetime) -> tuple[Expression, ...]:
    """One for each row, and one for each that has ended."""
    kind = time_kind(rows, ends)
    ended = rows.where(f"{rows.text(ends)} < {written(until, kind.type)}").relation
    assert isinstance(ended, Where)
    return Literal(1), Call("case", (ended.condition, Literal(1), Literal(0)))


def time_kind(rows: Frame, column: str) -> Kind:
    """What is known of a column of dates or timestamps."""
    kind = kind_of(rows.group_by(c0=column).count().query.keys[0], shape_of(rows.relation, rows.schema).columns)
    if kind.type not in ("date", "timestamp"):
        raise InputError("time must name a column of dates or timestamps: it says when each row came.")
    return kind


def written(end: datetime.datetime, type: Type) -> str:
    """A moment as SQL has it."""
    return f"DATE '{end:%Y-%m-%d}'" if type == "date" else f"TIMESTAMP '{end:%Y-%m-%d %H:%M:%S}'"


# Limits


def _events(asked: int | None, shape: Shape) -> int:
    if shape.rows == 1:
        return 1
    limits = shape.limits
    found = asked or limits.rows_per_group or limits.rows
    if shape.rows is not None:
        found = min(found or shape.rows, shape.rows)
    if found is None:
        raise InputError(f"Say how many rows of one {shape.whose} may count in each group: events=3.")
    return int(found)


def _stays(relation: Relation, schema: Schema) -> bool:
    """Whether a row of the relation stays, whatever other rows come: then what a unit counts for never falls.

    Sub-queries per unit compare a unit's rows with each other, and joins that multiply rows retain some of them.
    """
    if isinstance(relation, Scan):
        return True
    if isinstance(relation, Where | Select):
        return _stays(relation.source, schema)
    if isinstance(relation, PerUnit | Copies) or shape_of(relation, schema).retained:
        return False
    private = [side for side in (relation.left, relation.right) if not shape_of(side, schema).public]
    return len(private) == 1 and _stays(private[0], schema)
