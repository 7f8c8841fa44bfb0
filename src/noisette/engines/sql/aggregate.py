"""Measures of all groups from rows: one group-by for numbers, one more for each histogram."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray
from sqlglot import exp

from noisette.engines.sql.group_by import (
    Register,
    Valued,
    cleaned,
    coded,
    cut,
    matched,
    measured,
    numbered,
    released_keys,
    valued,
    whole_numbers,
)
from noisette.engines.sql.keys import Key
from noisette.engines.sql.syntax import column, is_null, selected
from noisette.query.measure import Exact, Measure

__all__ = ["Rows", "Run", "aggregate_retained", "aggregate_rows", "aggregates_of", "grouped", "needed"]

Run: TypeAlias = Callable[[Callable[[], exp.Select]], pyarrow.Table]
"""Runs a SELECT, which is written only on a cache miss."""

Rows: TypeAlias = Callable[[Mapping[Valued, str]], exp.Select]
"""Rows with the columns that are wanted of them: no statement computes what another one counts."""

_Counts = NDArray[np.int64]


def aggregate_rows(
    run: Run,
    register: Register,
    rows: Rows,
    keys: Sequence[Key],
    measures: Sequence[Measure],
    values: Mapping[Valued, str],
) -> Exact:
    """Measures of rows that are all counted; their keys are k0, k1, ..."""
    names = [f"k{i}" for i in range(len(keys))]
    if all(key.values is not None for key in keys):
        size = int(np.prod([key.size for key in keys], dtype=np.int64))

        def numbers(groups: exp.Select, others: Sequence[str]) -> exp.Select:
            return numbered(coded(cleaned(groups, keys, others), keys, others, register), keys, others)

        return Exact(None, _aggregated(run, rows, names, numbers, size, measures, values, bounded=False))
    plain = [m for m in measures if m.what != "histogram"]
    columns = [f"m{i}" for i in range(len(plain))]
    places = [f"g{i}" for i in range(len(keys))]

    def groups() -> exp.Select:
        made = cleaned(
            grouped(rows(needed(plain, values)), names, aggregates_of(plain, values, bounded=False)), keys, columns
        )
        return _cut(coded(made, keys, columns, register), places, columns)

    found = run(groups)
    index = found.select(places).append_column("code", pyarrow.array(np.arange(len(found))))

    def places_of(groups: exp.Select, others: Sequence[str]) -> exp.Select:
        return matched(
            coded(groups, keys, others, register), register(index), {g: g for g in places}, {"code": "code"}, others
        )

    made = dict(zip(plain, (whole_numbers(found.column(name)) for name in columns), strict=True))
    made |= {m: _histogram(run, rows, names, places_of, len(found), m, values) for m in measures if m not in made}
    return Exact(released_keys(found, keys), tuple(made[m] for m in measures))


def aggregate_retained(
    run: Run,
    rows: Rows,
    size: int,
    keys: pyarrow.Table | None,
    measures: Sequence[Measure],
    values: Mapping[Valued, str],
) -> Exact:
    """Measures of retained rows, by their `code`; of unknown keys, those that have a row left."""
    asked = (*measures, Measure("rows"))
    *made, rows_left = _aggregated(
        run, rows, ["code"], lambda groups, others: groups, size, asked, values, bounded=True
    )
    if keys is None:
        return Exact(None, tuple(made))
    there = np.flatnonzero(rows_left)
    return Exact(keys.take(pyarrow.array(there)), tuple(numbers[there] for numbers in made))


# Groups


_Numbers = Callable[[exp.Select, Sequence[str]], exp.Select]


def _aggregated(
    run: Run,
    rows: Rows,
    by: Sequence[str],
    numbers: _Numbers,
    size: int,
    measures: Sequence[Measure],
    values: Mapping[Valued, str],
    *,
    bounded: bool,
) -> tuple[_Counts, ...]:
    """One array for each measure; `numbers` gives grouped rows a `code` below `size`."""
    plain = list(dict.fromkeys(m for m in measures if m.what != "histogram"))
    columns = [f"m{i}" for i in range(len(plain))]
    made = {}
    if plain:
        aggregates = aggregates_of(plain, values, bounded=bounded)
        found = run(
            lambda: _cut(numbers(grouped(rows(needed(plain, values)), by, aggregates), columns), ["code"], columns)
        )
        at = whole_numbers(found.column("code"))
        made = {
            m: _scattered(at, whole_numbers(found.column(name)), size) for m, name in zip(plain, columns, strict=True)
        }
    made |= {m: _histogram(run, rows, by, numbers, size, m, values) for m in measures if m.what == "histogram"}
    return tuple(made[m] for m in measures)


def needed(measures: Iterable[Measure], values: Mapping[Valued, str]) -> dict[Valued, str]:
    """The columns that measures need, under their names."""
    return {wanted: values[wanted] for m in measures if (wanted := valued(m)) is not None}


def aggregates_of(measures: Sequence[Measure], values: Mapping[Valued, str], *, bounded: bool) -> dict[str, exp.Expr]:
    """What is computed of each group, as m0, m1, ..."""
    names = [values[v] if (v := valued(m)) is not None else "" for m in measures]
    return {
        f"m{i}": measured(m, name, bounded=bounded) for i, (m, name) in enumerate(zip(measures, names, strict=True))
    }


def _cut(groups: exp.Select, places: Sequence[str], columns: Sequence[str]) -> exp.Select:
    return selected(groups, {p: column(p) for p in places} | {name: cut(column(name)) for name in columns})


def grouped(rows: exp.Select, by: Sequence[str], made: Mapping[str, exp.Expr]) -> exp.Select:
    """The groups of rows by some columns, and what is made of each."""
    found = selected(rows, {name: column(name) for name in by} | dict(made))
    return found.group_by(*(column(name) for name in by), copy=False) if by else found


def _histogram(
    run: Run,
    rows: Rows,
    by: Sequence[str],
    numbers: _Numbers,
    size: int,
    m: Measure,
    values: Mapping[Valued, str],
) -> _Counts:
    """How many rows of each group at each step, groups x cells."""
    wanted = valued(m)
    assert wanted is not None
    name = values[wanted]

    def cells() -> exp.Select:
        there = selected(rows({wanted: name}), {n: column(n) for n in (*by, name)})
        there = there.where(exp.Not(this=is_null(column(name))))
        return numbers(grouped(there, [*by, name], {"n": exp.Count(this=exp.Star())}), [name, "n"])

    found = run(cells)
    cell = np.clip(whole_numbers(found.column(name)) - m.low, 0, m.cells - 1)
    at = whole_numbers(found.column("code")) * m.cells + cell
    return _scattered(at, whole_numbers(found.column("n")), size * m.cells).reshape(size, m.cells)


def _scattered(at: _Counts, numbers: _Counts, size: int) -> _Counts:
    """The numbers at their places; no place is beyond the size or comes twice, and if one did nothing would be lost."""
    made = np.zeros(size, np.int64)
    if size:
        np.add.at(made, np.clip(at, 0, size - 1), numbers)
    return made
