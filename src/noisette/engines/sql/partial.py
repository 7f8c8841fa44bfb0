"""Measures of some of all units, as rows that can be added to those of other units: an engine of many parts adds them.

Each group has a row of plain measures, with sums of any size. A histogram has a row for each of its steps that is
there, and a count of different values one for each value, since numbers of different values do not add up.

code, or k0, k1, ...   the group: its place where all domains are known, else its keys as they are released
what                   None in the row of plain measures, else which measure the row is a part of
cell, value            the step of a histogram from 0 on, or a value as text: equal texts for equal values
m0, m1, ...            plain measures, or the rows at a step
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow
from sqlglot import exp

from noisette.engines.sql.aggregate import Rows, Run, aggregates_of, grouped, needed
from noisette.engines.sql.group_by import (
    Register,
    Valued,
    cleaned,
    coded,
    cut,
    matched,
    numbered,
    released_keys,
    whole_numbers,
)
from noisette.engines.sql.keys import Key
from noisette.engines.sql.syntax import column, is_null, number, selected, try_cast
from noisette.query.measure import Measure

__all__ = ["Ask", "merged", "merged_schema", "multiplied", "partial_retained", "partial_rows", "partial_schema"]

WIDE = pyarrow.decimal128(38, 0)
"""Sums of up to 2^64 rows of at most 2^62 steps each."""

Ask: TypeAlias = Callable[[exp.Select, Mapping[str, pyarrow.Table]], pyarrow.Table]
"""Runs a SELECT over tables by name."""

_Numbers = Callable[[exp.Select, Sequence[str]], exp.Select]
_Keyed = Callable[[pyarrow.Table], pyarrow.Table]


def partial_rows(
    run: Run,
    register: Register,
    rows: Rows,
    keys: Sequence[Key],
    measures: Sequence[Measure],
    values: Mapping[Valued, str],
) -> pyarrow.Table:
    """Parts of the measures of rows that are all counted."""
    known = all(key.values is not None for key in keys)
    places = ["code"] if known else [f"g{i}" for i in range(len(keys))]

    def numbers(groups: exp.Select, others: Sequence[str]) -> exp.Select:
        made = coded(cleaned(groups, keys, others), keys, others, register)
        return numbered(made, keys, others) if known else made

    def keyed(found: pyarrow.Table) -> pyarrow.Table:
        return found.select(places) if known else released_keys(found, keys)

    by = [f"k{i}" for i in range(len(keys))]
    return _parts(run, rows, by, places, numbers, keyed, measures, values, bounded=False)


def partial_retained(
    run: Run,
    rows: Rows,
    size: int,
    keys: pyarrow.Table | None,
    measures: Sequence[Measure],
    values: Mapping[Valued, str],
) -> pyarrow.Table:
    """Parts of the measures of retained rows."""

    def keyed(found: pyarrow.Table) -> pyarrow.Table:
        return found.select(["code"]) if keys is None else keys.take(found.column("code").combine_chunks())

    return _parts(run, rows, ["code"], ["code"], lambda groups, _: groups, keyed, measures, values, bounded=True)


def _parts(
    run: Run,
    rows: Rows,
    by: Sequence[str],
    places: Sequence[str],
    numbers: _Numbers,
    keyed: _Keyed,
    measures: Sequence[Measure],
    values: Mapping[Valued, str],
    *,
    bounded: bool,
) -> pyarrow.Table:
    plain = {f"m{i}": m for i, m in enumerate(measures) if not _apart(m)}
    aggregates = dict(zip(plain, aggregates_of(list(plain.values()), values, bounded=bounded).values(), strict=True))

    def of_groups() -> exp.Select:
        made = numbers(grouped(rows(needed(plain.values(), values)), by, aggregates), list(plain))
        return selected(made, {p: column(p) for p in places} | {n: _whole(column(n), m) for n, m in plain.items()})

    def of_values(m: Measure) -> exp.Select:
        wanted = needed([m], values)
        name = next(iter(wanted.values()))
        there = selected(rows(wanted), {n: column(n) for n in (*by, name)})
        there = there.where(exp.Not(this=is_null(column(name))))
        made = numbers(grouped(there, [*by, name], {"n": exp.Count(this=exp.Star())}), [name, "n"])
        at: dict[str, exp.Expr] = {"cell": exp.Sub(this=column(name), expression=number(m.low))}
        if m.what == "distinct":
            at = {"value": exp.cast(column(name), "VARCHAR")}
        return selected(made, {p: column(p) for p in places} | at | {"n": column("n")})

    found = [(None, run(of_groups)), *((i, run(partial(of_values, m))) for i, m in enumerate(measures) if _apart(m))]
    return pyarrow.concat_tables([_filled(part, keyed(part), what, measures) for what, part in found])


def _apart(m: Measure) -> bool:
    """Whether the parts of a measure are more than one number."""
    return m.what in ("histogram", "distinct")


def _whole(total: exp.Expr, m: Measure) -> exp.Expr:
    """A whole number of any size; of nothing, 0."""
    to = "DECIMAL(38,0)" if m.what == "sum" else "BIGINT"
    return exp.Coalesce(this=try_cast(total, to), expressions=[number(0)])


def partial_schema(keys: Sequence[pyarrow.DataType] | None, measures: Sequence[Measure]) -> pyarrow.Schema:
    """The columns of parts; `keys` are the types of the keys, None where all domains are known."""
    places = {"code": pyarrow.int64()} if keys is None else {f"k{i}": type for i, type in enumerate(keys)}
    made = {f"m{i}": WIDE if m.what == "sum" else pyarrow.int64() for i, m in enumerate(measures)}
    apart = {"what": pyarrow.int32(), "cell": pyarrow.int64(), "value": pyarrow.string()}
    return pyarrow.schema({**places, **apart, **made})


def _filled(part: pyarrow.Table, keys: pyarrow.Table, what: int | None, measures: Sequence[Measure]) -> pyarrow.Table:
    """Rows with all columns of parts."""
    known = keys.column_names == ["code"]
    schema = partial_schema(None if known else [field.type for field in keys.schema], measures)
    made = {name: keys.column(i) for i, name in enumerate(schema.names[: keys.num_columns])}
    made |= {name: part.column(name) for name in part.column_names if name in schema.names}
    if what is not None:
        made |= {"what": pyarrow.array([what] * len(part), pyarrow.int32()), f"m{what}": part.column("n")}
    empty = {f.name: pyarrow.nulls(len(part), f.type) for f in schema if f.name not in made}
    columns = made | empty
    return pyarrow.table([columns[field.name].cast(field.type) for field in schema], schema)


def multiplied(parts: pyarrow.Table, times: int) -> pyarrow.Table:
    """The parts of as many copies of the rows: numbers of any size stay whole."""
    if times == 1:
        return parts
    for i in range(parts.column_names.index("value") + 1, parts.num_columns):
        field = parts.schema.field(i)
        numbers = [None if number is None else int(number) * times for number in parts.column(i).to_pylist()]
        parts = parts.set_column(i, field, pyarrow.array(numbers, field.type))
    return parts


# Parts of all units together


def merged(parts: pyarrow.Table, measures: Sequence[Measure], ask: Ask) -> pyarrow.Table:
    """The measures of groups from all of their parts: sums are exact, and cut at +-2^62 when they are complete.

    A histogram is a list of all its steps. `ask` runs a SELECT over tables of Arrow by name.
    """
    places = parts.column_names[: parts.column_names.index("what")]
    named = {f"m{i}": m for i, m in enumerate(measures)}
    sums: dict[str, exp.Expr] = {n: cut(exp.Sum(this=column(n))) for n, m in named.items() if not _apart(m)}
    plain = exp.select(*(exp.alias_(sql, n, quoted=True) for n, sql in ({p: column(p) for p in places} | sums).items()))
    plain = plain.from_("parts").where(is_null(column("what"))).group_by(*map(column, places))
    found = ask(plain, {"parts": parts})
    index = found.select(places).append_column("at", pyarrow.array(np.arange(len(found))))
    made = {place: found.column(place) for place in places}
    for i, (name, m) in enumerate(named.items()):
        made[name] = _together(i, m, index, parts, places, ask) if _apart(m) else found.column(name)
    return pyarrow.table(made, merged_schema(parts.schema, measures))


def merged_schema(parts: pyarrow.Schema, measures: Sequence[Measure]) -> pyarrow.Schema:
    """The columns of merged cells: keys as parts have them, and m0, m1, ..."""
    keys = [parts.field(i) for i in range(parts.get_field_index("what"))]
    sizes = (pyarrow.list_(pyarrow.int64()) if m.what == "histogram" else pyarrow.int64() for m in measures)
    return pyarrow.schema([*keys, *(pyarrow.field(f"m{i}", type) for i, type in enumerate(sizes))])


def _together(
    i: int, m: Measure, index: pyarrow.Table, parts: pyarrow.Table, places: Sequence[str], ask: Ask
) -> pyarrow.Array:
    """A measure whose parts are more than one number, for each group of the index."""
    own = exp.select(exp.Star()).from_("parts").where(exp.EQ(this=column("what"), expression=number(i)))
    rows = matched(own, "groups", {p: p for p in places}, {"at": "at"}, ["cell", "value", f"m{i}"])
    by = ["at"] if m.what == "distinct" else ["at", "cell"]
    n = exp.Count(this=exp.Distinct(expressions=[column("value")]))
    made = {"n": n if m.what == "distinct" else exp.Sum(this=column(f"m{i}"))}
    found = ask(grouped(rows, by, {"n": cut(made["n"])}), {"parts": parts, "groups": index})
    cells = m.cells if m.what == "histogram" else 1
    at = whole_numbers(found.column("at")) * cells
    if m.what == "histogram":
        at += np.clip(whole_numbers(found.column("cell")), 0, cells - 1)
    numbers = np.zeros(len(index) * cells, np.int64)
    np.add.at(numbers, at, whole_numbers(found.column("n")))
    if m.what == "distinct":
        return pyarrow.array(numbers)
    return pyarrow.ListArray.from_arrays(pyarrow.array(np.arange(len(index) + 1) * cells, pyarrow.int32()), numbers)
