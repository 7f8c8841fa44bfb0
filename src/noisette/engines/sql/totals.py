"""Totals that an engine adds up where the rows are: a request about rows becomes one about groups of them.

Where each row is a unit, rows with equal keys count alike. So an engine groups rows by the stored columns that keys and
conditions read, and sends for each group how many rows it has and the totals of what is measured. Keys are cleaned and
conditions decided here, for groups in place of rows; every number is the same, to the last bit.

What engines compute is CASE, comparisons and sums of whole numbers: nothing in it can fail on a value. A total of any
size is sent in digits, and no sum of fewer than 2^45 rows overflows.

    `steps` of a row: a whole number within public bounds · `limbs`: 18 bits of it, which are added up ·
    `digits`: 31 bits of such a sum, which are sent
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from sqlglot import exp

from noisette.engines.needed import needed_of_request
from noisette.engines.sql.aggregate import grouped
from noisette.engines.sql.group_by import MOST, whole_numbers
from noisette.engines.sql.keys import plain
from noisette.engines.sql.steps import counts, present, row_steps, sums
from noisette.engines.sql.stored import Stored, stays_apart
from noisette.engines.sql.syntax import binary, column, number, selected
from noisette.query.expression import Name
from noisette.query.kind import LARGEST, Kind
from noisette.query.measure import Exact, Measure, Request
from noisette.query.operations import declared
from noisette.query.plan import Relation, Scan, Where
from noisette.query.schema import Column, Schema

__all__ = ["Total", "Totals", "added_up", "digits_of", "steps_of", "sums_of", "totals_of"]

_LIMB, _DIGIT = 18, 31
_CARRIED = Kind("integer", Fraction(-LARGEST), Fraction(LARGEST), Fraction(1), nullable=False)


@dataclass(frozen=True)
class Total:
    """What is added up over rows: the steps of a stored column, whether it has a value, or 1 where there is none."""

    measure: Measure
    column: str | None = None
    kind: Kind | None = None
    stored: str = ""

    @property
    def steps(self) -> exp.Expr:
        """The whole number that one row adds."""
        if self.column is None or self.kind is None:
            return number(1)
        own = column(self.column)
        if self.measure.what == "count":
            return present(own, self.stored)
        return row_steps(own, self.kind, self.stored, self.measure)

    @property
    def limbs(self) -> int:
        """How many sums it takes."""
        most = max(abs(self.measure.low), abs(self.measure.high))
        return max(-(-most.bit_length() // _LIMB), 1)

    def sums(self, steps: exp.Expr) -> list[exp.Expr]:
        """The sums over a group of what its rows add, in limbs: each counts 2^18 times as much as the one before."""
        last = self.limbs - 1
        every = [_bits(steps, i, _LIMB, last=i == last) for i in range(last + 1)]
        return [exp.cast(exp.Sum(this=limb), "BIGINT") for limb in every]

    def digits(self, total: exp.Expr) -> list[exp.Expr]:
        """What is sent of one such sum: two digits, the second one with its sign; a number of rows fits into one."""
        if self.measure.what != "sum":
            return [total]
        return [_bits(total, 0, _DIGIT, last=False), _bits(total, 1, _DIGIT, last=True)]

    @property
    def weights(self) -> list[int]:
        """How often each digit counts."""
        sizes = [_DIGIT * i for i in range(2 if self.measure.what == "sum" else 1)]
        return [1 << (_LIMB * i + size) for i in range(self.limbs) for size in sizes]


def _bits(whole: exp.Expr, place: int, size: int, *, last: bool) -> exp.Expr:
    """The digit of a whole number at a place; the last one is all that is left."""
    moved = exp.BitwiseRightShift(this=whole.copy(), expression=number(place * size)) if place else whole.copy()
    return moved if last else binary(exp.BitwiseAnd, exp.Paren(this=moved), number((1 << size) - 1))


# Groups


def steps_of(totals: Sequence[Total]) -> dict[str, exp.Expr]:
    """What each row adds to the totals, by name."""
    return {f"steps{i}": total.steps for i, total in enumerate(totals)}


def sums_of(totals: Sequence[Total]) -> dict[str, exp.Expr]:
    """The sums of these over a group, by name."""
    every = (one for i, total in enumerate(totals) for one in total.sums(column(f"steps{i}")))
    return {f"sum{i}": one for i, one in enumerate(every)}


def digits_of(totals: Sequence[Total]) -> list[exp.Expr]:
    """What is sent of these."""
    each = enumerate(total for total in totals for _ in range(total.limbs))
    return [digit for i, total in each for digit in total.digits(column(f"sum{i}"))]


def added_up(table: exp.Expr, by: Mapping[str, exp.Expr], totals: Sequence[Total], names: Sequence[str]) -> exp.Select:
    """The SELECT of groups of a table's rows by some expressions, and the digits of their totals under some names."""
    made = [exp.alias_(sql, name, quoted=True) for name, sql in (dict(by) | steps_of(totals)).items()]
    groups = grouped(exp.select(*made).from_(table), list(by), sums_of(totals))
    digits = zip(names, digits_of(totals), strict=True)
    return selected(groups, {name: column(name) for name in by} | dict(digits))


# Requests


@dataclass(frozen=True)
class Totals:
    """A request about groups of a table's rows, and what is to be sent of each group.

    `alias` of the table · `by`: the stored columns that rows are grouped by · `names` of the digits that are sent after
    them, the first the number of rows · `request` and `schema`: the question about groups, as if each were a row ·
    `parts`: for each measure that was asked for, which measures of the groups it is made of and how often each counts.
    """

    table: str
    alias: str
    by: tuple[str, ...]
    totals: tuple[Total, ...]
    names: tuple[str, ...]
    request: Request
    schema: Schema
    parts: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def counted(self) -> bool:
        """Whether rows are only counted."""
        return all(total.column is None for total in self.totals)

    def keys_apart(self, stored: Mapping[str, str]) -> list[str] | None:
        """The stored columns of unknown keys; None where computing or cleaning may make two values of them one."""
        unknown = [key for key, domain in zip(self.request.keys, self.request.domains, strict=True) if domain is None]
        found = []
        for key in unknown:
            kind, there = plain(key, self.request.source, self.schema, {self.table: stored})
            if kind is None or not isinstance(key, Name) or not stays_apart(kind, there):
                return None
            found.append(key.name.removeprefix(f"{self.alias}."))
        return found

    def with_place(self) -> "Totals":
        """The same with a whole number before the other columns: groups that differ in it are two."""
        table, name = self.schema[self.table], f"{self.names[0]} place"
        more = replace(table, columns=(*table.columns, Column(name, Kind("integer", nullable=False))))
        keys = Name(f"{self.alias}.{name}"), *self.request.keys
        asked = replace(self.request, keys=keys, domains=(None, *self.request.domains))
        return replace(self, by=(name, *self.by), request=asked, schema={**self.schema, self.table: more})

    def exact(self, found: Exact) -> Exact:
        """The measures that were asked for, from those of the groups."""
        made = (_weighed([(found.measures[i], times) for i, times in parts]) for parts in self.parts)
        return Exact(found.keys, tuple(np.clip(total, -MOST, MOST).astype(np.int64) for total in made))

    def merged(self, found: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
        """The same of parts of cells (`partial`); `schema` has the columns of the parts of what was asked for."""
        first = found.column_names.index("value") + 1
        numbers = [whole_numbers(column.cast(pyarrow.int64())) for column in found.columns[first:]]
        made = (_weighed([(numbers[i], times) for i, times in parts]) for parts in self.parts)
        fields = list(schema)[first:]
        totals = [_column(total, field.type) for total, field in zip(made, fields, strict=True)]
        return pyarrow.table([*found.columns[:first], *totals], schema)


def _column(total: NDArray[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    return pyarrow.array(total, kind) if total.dtype == object else pyarrow.array(total).cast(kind)


def _weighed(parts: Sequence[tuple[NDArray[np.int64], int]]) -> NDArray[Any]:
    """A sum of whole numbers, each as often as it counts: 64 bits where that is enough, or else of any size.

    >>> _weighed([(np.array([1, 2]), 1), (np.array([0, -3]), 2**62)]).tolist()
    [1, -13835058055282163710]
    """
    most = sum(max(abs(int(digit.min(initial=0))), int(digit.max(initial=0))) * times for digit, times in parts)
    if most >= MOST:
        parts = [(digit.astype(object), times) for digit, times in parts]
    total = parts[0][0] * parts[0][1]
    for digit, times in parts[1:]:
        if digit.any():  # or else the weight may be more than 64 bits hold
            total = total + digit * times
    return total


def totals_of(request: Request, schema: Schema, stored: Stored) -> Totals | None:
    """The request as one about groups of rows; None where a measure is more than a sum over a stored column.

    Each row must be a unit of its own, of one table without joins.
    """
    scan = _scan(request.source)
    if scan is None or schema[scan.table].public or schema[scan.table].unit is not None or request.limits is not None:
        return None
    wanted = [_total(m, request.source, scan, schema, stored) for m in request.measures]
    totals = list(dict.fromkeys(total for total in wanted if total is not None))
    if None in wanted:
        return None
    table = schema[scan.table]
    keyed = needed_of_request(replace(request, measures=()), schema)[scan.table]
    by = tuple(column.name for column in table.columns if column.name in keyed)
    weights = [(place, weight) for place, total in enumerate(totals) for weight in total.weights]
    names = _new_names([column.name for column in table.columns], len(weights))
    carried = tuple(Column(name, _CARRIED) for name in names)
    groups = replace(table, columns=tuple(c for c in table.columns if c.name in by) + carried)
    measures = tuple(Measure("sum", Name(f"{scan.alias}.{n}"), Fraction(1), -LARGEST, LARGEST) for n in names)
    parts = tuple(
        tuple((i, weight) for i, (place, weight) in enumerate(weights) if totals[place] == total) for total in wanted
    )
    asked = replace(request, measures=measures)
    return Totals(table.name, scan.alias, by, tuple(totals), names, asked, {**schema, table.name: groups}, parts)


def _scan(relation: Relation) -> Scan | None:
    """The table of a relation that takes some of its rows as they are."""
    while isinstance(relation, Where):
        relation = relation.source
    return relation if isinstance(relation, Scan) else None


def _total(m: Measure, relation: Relation, scan: Scan, schema: Schema, stored: Stored) -> Total | None:
    """What is added up for a measure; None where it is not a sum, or not of a column that engines read alike."""
    rows = Total(Measure("rows"))
    if m.what in ("rows", "units"):
        return rows
    if m.what not in ("count", "sum") or not isinstance(m.of, Name):
        return None
    kind, _ = plain(m.of, relation, schema, stored)
    if kind is None:
        return None
    if m.what == "count" and not kind.nullable:
        return rows
    name, known = m.of.name.removeprefix(f"{scan.alias}."), declared(kind)
    there = stored[scan.table].get(name, "")
    alike = counts(known, there) if m.what == "count" else sums(known, there, m)
    return Total(m, name, known, there) if alike else None


def _new_names(taken: Sequence[str], count: int) -> tuple[str, ...]:
    stem = "total"
    while any(name.lower().startswith(stem) for name in taken):
        stem += " of"
    return tuple(f"{stem} {i}" for i in range(count))
