"""The rows of a request as numbers: each key as a column that can be matched with its domain, each value in steps.

k0, k1, ...   keys: whole numbers wherever possible      v0, v1, ...   what is measured of a row
code          the place of a key in its domain, or of a group among all groups (as `itertools.product` has them)
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray
from sqlglot import exp

from noisette.engines.sql.expressions import normalised, to_engine, to_steps
from noisette.engines.sql.keys import Key, plain
from noisette.engines.sql.relation import relation_sql
from noisette.engines.sql.stored import Stored, reaches_ends, stored_steps
from noisette.engines.sql.syntax import (
    binary,
    chain,
    choose,
    clamped,
    column,
    is_null,
    number,
    rounded,
    scaled,
    selected,
    try_cast,
)
from noisette.query.expression import Expression, Name, columns_of
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind
from noisette.query.measure import Measure, Request
from noisette.query.operations import declared, kind_of
from noisette.query.schema import Schema
from noisette.query.shape import ROW, UNIT
from noisette.query.stability import shape_of
from noisette.query.types import ARROW

__all__ = [
    "MOST",
    "Register",
    "Valued",
    "bounded_rows",
    "cleaned",
    "coded",
    "cut",
    "matched",
    "measured",
    "numbered",
    "released_keys",
    "request_rows",
    "unit_rows",
    "valued",
    "whole_numbers",
]

MOST = 2**62
"""Where sums are cut."""

Register: TypeAlias = Callable[[pyarrow.Table], str]
"""Registers a table with the engine for as long as a question takes; returns its name."""


# Values


Valued: TypeAlias = tuple[OneOf["steps", "present", "value"], Expression, Fraction, int, int]
"""A column of what is measured: what is taken of which expression, and for steps their grid and bounds."""


def valued(measure: Measure) -> Valued | None:
    """The column that a measure needs; None for those that only count rows or units."""
    if measure.of is None:
        return None
    match measure.what:
        case "sum" | "histogram":
            return "steps", measure.of, measure.grid, measure.low, measure.high
        case "count":
            return "present", measure.of, Fraction(1), 0, 1
        case _:
            return "value", measure.of, Fraction(1), 0, 1


def _value(wanted: Valued, scope: Mapping[str, Kind]) -> exp.Expr:
    what, of, grid, low, high = wanted
    if what == "steps":
        return _steps(of, replace(kind_of(of, scope), low=low * grid, high=high * grid), grid, scope)
    plain = to_engine(of, scope)
    return plain if what == "value" else choose((is_null(plain), exp.null()), otherwise=exp.true())


def _steps(of: Expression, kind: Kind, grid: Fraction, scope: Mapping[str, Kind]) -> exp.Expr:
    """Steps between the bounds of a kind; a column that was cut to the same bounds need not be cut again."""
    known = kind_of(of, scope)
    if not isinstance(of, Name) or (known.low, known.high, known.grid or 1) != (kind.low, kind.high, grid):
        return to_steps(of, kind, grid, scope)
    if known.type == "integer" and grid == 1:
        return to_engine(of, scope)
    return try_cast(rounded(scaled(exp.cast(to_engine(of, scope), "DOUBLE"), 1 / grid)), "BIGINT")


def _direct(request: Request, values: Iterable[Valued], schema: Schema, stored: Stored) -> dict[Valued, exp.Expr]:
    """Steps that are made of a stored double at once, by one CASE: cleaning it first would take a second one."""
    found = {}
    for wanted in values:
        what, of, grid, low, high = wanted
        kind, base = plain(of, request.source, schema, stored)
        if what != "steps" or not isinstance(of, Name) or kind is None or kind.type != "real" or base != "DOUBLE":
            continue
        own = declared(kind)
        if own.grid is not None or not own.bounded or not reaches_ends(own, grid):
            continue
        if step_bounds(own, grid) == (low, high):
            found[wanted] = stored_steps(column(of.name), own, grid)
    return found


def measured(measure: Measure, name: str, *, bounded: bool) -> exp.Expr:
    """A measure of one group, as the engine computes it from the measure's column; sums have yet to be `cut`."""
    match measure.what:
        case "count":
            return exp.Count(this=column(name))
        case "units" if bounded:
            return exp.Count(this=column("first"))
        case "distinct":
            return exp.Count(this=exp.Distinct(expressions=[column(name)]))
        case "sum":
            return exp.Sum(this=column(name))
        case _:
            return exp.Count(this=exp.Star())


def cut(total: exp.Expr) -> exp.Expr:
    """A whole number of any size within +-2^62; of nothing, 0."""
    within = clamped(total, number(-MOST), number(MOST), try_cast(total, "BIGINT"))
    return exp.Coalesce(this=within, expressions=[number(0)])


# Rows


def request_rows(
    request: Request, keys: Sequence[Key], values: Mapping[Valued, str], schema: Schema, stored: Stored, secret: bytes
) -> exp.Select:
    """The rows of a request with keys and values, and the unit if there is one; rows outside a range are left out."""
    shape = shape_of(request.source, schema)
    used = (*request.keys, *(wanted[1] for wanted in values))
    late = {e for e, key in zip(request.keys, keys, strict=True) if key.late}
    direct = _direct(request, values, schema, stored)
    clean = {name for e in request.keys if e not in late for name in columns_of(e)}
    clean |= {name for wanted in values if wanted not in direct for name in columns_of(wanted[1])}
    raw = {name for e in (*late, *(wanted[1] for wanted in direct)) for name in columns_of(e)} - clean
    rows = relation_sql(request.source, schema, stored, {name for e in used for name in columns_of(e)}, raw, secret)
    made = {f"k{i}": key.sql for i, key in enumerate(keys)}
    for wanted, name in values.items():
        at_once = wanted in direct and set(columns_of(wanted[1])) <= raw
        made[name] = direct[wanted] if at_once else _value(wanted, shape.columns)
    if shape.unit not in (None, ROW):
        made[UNIT] = column(UNIT)
    return _inside(selected(rows, made), made, keys)


def unit_rows(
    request: Request,
    keys: Sequence[Key],
    columns: Mapping[str, exp.Expr],
    schema: Schema,
    stored: Stored,
    secret: bytes,
) -> exp.Select:
    """The rows of a request with keys, their unit, and what is made of the relation's columns."""
    used = {found.name for made in columns.values() for found in made.find_all(exp.Column)}
    used |= {name for e in request.keys for name in columns_of(e)}
    rows = relation_sql(request.source, schema, stored, used, secret=secret)
    made = {f"k{i}": key.sql for i, key in enumerate(keys)} | {UNIT: column(UNIT)} | dict(columns)
    return _inside(selected(rows, made), made, keys)


def bounded_rows(
    table: str,
    columns: Mapping[str, str],
    others: Iterable[str],
    values: Mapping[Valued, str],
    scope: Mapping[str, Kind],
) -> exp.Select:
    """The rows with a code of a table that holds columns of a relation under other names, with what is measured."""
    others = {name: column(name) for name in others}
    asked = {name for wanted in values for name in columns_of(wanted[1])}
    held = {name: column(new) for name, new in columns.items() if name in asked}
    clean: dict[str, exp.Expr] = {
        n: exp.cast(sql, "BIGINT") if scope[n].type == "integer" else sql for n, sql in held.items()
    }
    rows = exp.select(exp.Star()).from_(exp.to_identifier(table, quoted=True))
    rows = rows.where(exp.Not(this=is_null(column("code"))), copy=False)
    return selected(selected(rows, clean | others), {n: _value(v, scope) for v, n in values.items()} | others)


def _inside(rows: exp.Select, names: Iterable[str], keys: Sequence[Key]) -> exp.Select:
    """Rows whose keys are in their domains, where a comparison must say it; late keys are compared later."""
    open_keys = [(f"k{i}", key) for i, key in enumerate(keys) if not key.late and not key.clean]
    conditions = [c for name, key in open_keys if (c := key.inside(name)) is not None]
    return selected(rows, {name: column(name) for name in names}).where(*conditions, copy=False) if conditions else rows


def coded(rows: exp.Select, keys: Sequence[Key], others: Iterable[str], register: Register) -> exp.Select:
    """Rows with keys k0, k1, ... as g0, g1, ...: codes of known domains, the values themselves of unknown ones."""
    others, made = tuple(others), {}
    names = {f"k{i}" for i in range(len(keys))}
    for i, key in enumerate(keys):
        if key.first is not None:
            made[f"g{i}"] = key.code(f"k{i}")
        elif key.values is not None:
            names.remove(f"k{i}")
            names.add(f"g{i}")
            rows = matched(
                rows, register(key.table()), {f"k{i}": "match"}, {f"g{i}": "code"}, names - {f"g{i}"} | set(others)
            )
            made[f"g{i}"] = column(f"g{i}")
        else:
            made[f"g{i}"] = column(f"k{i}")
    return selected(rows, made | {name: column(name) for name in others})


def numbered(rows: exp.Select, keys: Sequence[Key], others: Iterable[str]) -> exp.Select:
    """Rows with the codes g0, g1, ... of known domains as one code, their place in the product of the domains."""
    parts, stride = [], math.prod(key.size for key in keys)
    for i, key in enumerate(keys):
        stride //= max(key.size, 1)
        parts.append(binary(exp.Mul, column(f"g{i}"), number(stride)) if stride > 1 else column(f"g{i}"))
    code = chain(exp.Add, parts) if parts else number(0)
    return selected(rows, {"code": exp.cast(code, "BIGINT")} | {name: column(name) for name in others})


def cleaned(groups: exp.Select, keys: Sequence[Key], others: Sequence[str]) -> exp.Select:
    """Groups whose late keys are cleaned; groups that become one are added up.

    Whoever reads groups of late keys has to clean them first: before, a key may be anything that can be stored.
    """
    if not any(key.late for key in keys):
        return groups
    names = [f"k{i}" for i in range(len(keys))]
    made = {n: normalised(column(n), *key.late) if key.late else column(n) for n, key in zip(names, keys, strict=True)}
    clean = selected(groups, made | {name: column(name) for name in others})
    inside = [c for n, key in zip(names, keys, strict=True) if key.late and (c := key.inside(n)) is not None]
    total = {n: column(n) for n in names} | {name: exp.Sum(this=column(name)) for name in others}
    return selected(clean, total).where(*inside, copy=False).group_by(*(column(n) for n in names), copy=False)


def matched(
    rows: exp.Select, table: str, on: Mapping[str, str], taken: Mapping[str, str], others: Iterable[str]
) -> exp.Select:
    """Rows with columns of a table where other columns are equal (NULL equals NULL); rows without a match are left out.

    `on` maps columns of the rows to columns of the table, `taken` maps new names to columns of the table.
    """
    made = [exp.alias_(column(name, "rows"), name, quoted=True, copy=False) for name in sorted(others)]
    made += [exp.alias_(column(name, "domain"), new, quoted=True, copy=False) for new, name in taken.items()]
    pairs = [exp.NullSafeEQ(this=column(a, "rows"), expression=column(b, "domain")) for a, b in on.items()]
    other = exp.Table(
        this=exp.to_identifier(table, quoted=True), alias=exp.TableAlias(this=exp.to_identifier("domain"))
    )
    found = exp.select(*made, copy=False).from_(rows.subquery("rows", copy=False), copy=False)
    return found.join(other, on=exp.and_(*pairs), join_type="inner", copy=False)


def released_keys(groups: pyarrow.Table, keys: Sequence[Key]) -> pyarrow.Table:
    """The keys g0, g1, ... of groups as they are released: the values that codes stand for, in the types of the plan.

    No code lies outside of its domain; if one did, it would stand for the nearest value rather than fail.
    """
    found = []
    for i, key in enumerate(keys):
        values = groups.column(f"g{i}").combine_chunks()
        if key.values is None:
            found.append(values.cast(ARROW[key.type]))
            continue
        codes = np.clip(whole_numbers(values), 0, key.size - 1)
        found.append(key.table().column("released").combine_chunks().take(pyarrow.array(codes)))
    return pyarrow.table(found, [f"key{i}" for i in range(len(keys))])


def whole_numbers(found: pyarrow.Array | pyarrow.ChunkedArray) -> NDArray[np.int64]:
    """Codes or measures of groups as an array; there is no NULL among them, and if there were it would be 0."""
    return np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
