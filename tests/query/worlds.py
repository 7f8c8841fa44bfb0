"""All tiny tables at once: the exact measures of many worlds in one pass of the engine.

A world is a tuple of rows, or several of them for several tables. All worlds are stored together, with the number of
the world in a column w, and a question is asked for each w. The unit of person p in world w is stored as 10 w + p;
which rows of a unit are kept is chosen world by world, by p alone, as if each world were a table of its own.
"""

import math
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import pyarrow
import pytest

from noisette.engines.bounding import retained
from noisette.engines.duckdb import retained as retaining
from noisette.engines.duckdb.source import DuckDB
from noisette.engines.sql import relation as compiling
from noisette.engines.sql import retention
from noisette.query.canonical import canonical
from noisette.query.kind import Kind
from noisette.query.measure import sensitivity
from noisette.query.prepare import prepare
from noisette.query.schema import Column, Limits, Table
from noisette.query.sql import parse

SECRET = bytes(range(16))
PEOPLE = 10  # numbers of persons in a world are smaller


def multisets(rows, most):
    """All tables of at most so many rows."""
    return [world for size in range(most + 1) for world in combinations_with_replacement(rows, size)]


# The engine


@dataclass(frozen=True)
class Worlds:
    """Private tables of all worlds in one engine; `columns` are Arrow types by name, the first one the unit if any."""

    schema: dict
    columns: dict
    worlds: list  # each a dictionary from table names to rows
    public: dict

    def schema_with_worlds(self):
        number = Column("w", Kind("integer", 0, len(self.worlds) - 1, 1, nullable=False), rows_per_value=100)
        return {
            name: table if table.public else replace(table, columns=(number, *table.columns), through=_in_worlds(table))
            for name, table in self.schema.items()
        }

    def source(self):
        stored = {name: self._stored(name) for name in self.columns}
        return DuckDB({**stored, **self.public}, threads=1)

    def _stored(self, name):
        unit = None if self.schema[name].through else self.schema[name].unit
        rows = [(w, *self._owned(w, row, unit)) for w, world in enumerate(self.worlds) for row in world[name]]
        fields = [("w", pyarrow.int64()), *self.columns[name].items()]
        return pyarrow.table(
            [pyarrow.array([row[i] for row in rows], type) for i, (_, type) in enumerate(fields)],
            names=[field for field, _ in fields],
        )

    def _owned(self, w, row, unit):
        return row if unit is None or row[0] is None else (PEOPLE * w + row[0], *row[1:])


def _in_worlds(table):
    """The foreign keys of a table, each within a world."""
    return tuple(replace(link, on=(*link.on, ("w", "w"))) for link in table.through)


@contextmanager
def world_by_world(size, more=0):
    """Within it, rows are kept in each world by itself; `size` groups a world has, None if it is not grouped."""

    def choice(unit, *, rows, key, limits, group=None, identity=None):
        loose = Limits(**{name: value and value + more for name, value in vars(limits).items()})
        mask = np.zeros(len(unit), bool)
        for w in np.unique(unit // PEOPLE):
            at = np.flatnonzero(unit // PEOPLE == w)
            place = None if size is None else group[at] % size
            content = None if rows is None else rows[at]
            mask[at] = retained(unit[at] % PEOPLE, group=place, rows=content, key=key, limits=loose)
        return mask

    def looser(cut):
        return lambda rows, names, limit: cut(rows, names, limit + more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retaining, "retained", choice)
        patch.setattr(retention, "hash_of", lambda *_: retention.number(0))  # of a row's world, too
        for cut in (retention.retained, retention.retained_of_few):
            for where in (compiling, retention):
                patch.setattr(where, cut.__name__, looser(cut))
        yield


def measured(question, worlds, *, world="w", limited=True, more=0):
    """(prepared, arrays worlds x groups (x cells) for each measure); the question's keys must be declared.

    In a question, {w} stands for the column of worlds, {g} for GROUP BY and that column, {m} for its maximum in a
    sub-query, {v} for the column itself there, {a.w = b.w} for the condition that rows are joined within a world; all
    are left out where one world is asked. `more` rows than allowed are kept by a broken twin.
    """
    plain = prepare(canonical(parse(written(question, None), worlds.schema)), worlds.schema, of_two_units=True)
    schema = worlds.schema_with_worlds()
    asked = prepare(canonical(parse(written(question, world), schema)), schema, of_two_units=True)
    assert [m.what for m in asked.request.measures] == [m.what for m in plain.request.measures]
    request = _worlds_first(asked.request, tuple(range(len(worlds.worlds))), plain.request.limits)
    if not limited:
        firsts = tuple(m for m in request.measures if m.what != "units")
        request = replace(request, limits=None, measures=firsts)
    size = math.prod(len(domain) for domain in plain.request.domains)
    with world_by_world(size if plain.request.keys else None, more):
        exact = worlds.source().aggregate(request, schema, SECRET)
    found = zip(request.measures, exact.measures, strict=True)
    return plain, {m: values.reshape(len(worlds.worlds), size, *values.shape[1:]) for m, values in found}


def _worlds_first(request, numbers, limits):
    """The request with the number of the world as its first key, and limits of each world's own."""
    at = [domain[: len(numbers)] for domain in request.domains].index(numbers)
    others = [i for i in range(len(request.keys)) if i != at]
    keys = (request.keys[at], *(request.keys[i] for i in others))
    return replace(request, keys=keys, domains=(numbers, *(request.domains[i] for i in others)), limits=limits)


def written(question, world):
    """The question for all worlds, or for one of them if there is no column of worlds."""
    one = re.sub(r"\{(\w+\.w = \w+\.w)\}", r" AND \1" if world else "", question).partition("{g}")
    keys = [part for part in (world, one[2].strip()) if part]
    parts = {"{w}": f"{world}, ", "{m}": ", MAX(w) AS w", "{v}": ", w"}
    head = one[0]
    for part, text in parts.items():
        head = head.replace(part, text if world else "")
    return f"{head} GROUP BY {', '.join(keys)}" if keys else head


def alone(question, worlds, world):
    """What the engine answers for one world, as it is asked in earnest: keys -> numbers, and what is prepared."""
    schema = worlds.schema
    prepared = prepare(canonical(parse(written(question, None), schema)), schema)
    types = worlds.columns["v"]
    rows = [[row[i] for row in world["v"]] for i in range(len(types))]
    stored = pyarrow.table([pyarrow.array(c, t) for c, t in zip(rows, types.values(), strict=True)], names=list(types))
    exact = DuckDB({"v": stored, **worlds.public}, threads=1).aggregate(prepared.request, schema, SECRET)
    return prepared, exact


# Neighbours


def neighbours(worlds, *, unit, without=None):
    """Pairs of numbers of worlds: one unit's rows removed, from all tables. Without a unit each row is one.

    `without(world, person)` says what is left, where rows do not begin with their unit.
    """
    without = without or (lambda world, p: {n: tuple(r for r in rows if r[0] != p) for n, rows in world.items()})
    index = {_key(world): number for number, world in enumerate(worlds)}
    for number, world in enumerate(worlds):
        if unit:
            people = {row[0] for rows in world.values() for row in rows} - {None}
            smaller = [without(world, p) for p in people]
        else:
            smaller = [
                {**world, name: rows[:i] + rows[i + 1 :]} for name, rows in world.items() for i in range(len(rows))
            ]
        for other in smaller:
            if _key(other) in index:
                yield index[_key(other)], number


def replaced(pairs):
    """Pairs of worlds that become the same when one unit leaves each: one unit's rows are replaced."""
    larger = {}
    for smaller, number in set(pairs):
        larger.setdefault(smaller, []).append(number)
    return [(a, b) for family in larger.values() for a in family for b in family if a < b]


def _key(world):
    return tuple((name, tuple(sorted(Counter(world[name]).items(), key=repr))) for name in sorted(world))


# What is checked


def norms(before, after):
    """The largest l0, l1, squared l2 and linf over pairs; of histograms l0 counts groups, linf ranks."""
    change = after.astype(object) - before.astype(object)
    if change.ndim == 3:  # pairs x groups x cells
        ranks = np.abs(np.cumsum(change, axis=2)).max(axis=(1, 2))
        return (
            (change != 0).any(axis=2).sum(axis=1).max(),
            np.abs(change).sum(axis=(1, 2)).max(),
            None,
            ranks.max(),
        )
    return (
        (change != 0).sum(axis=1).max(),
        np.abs(change).sum(axis=1).max(),
        (change**2).sum(axis=1).max(),
        np.abs(change).max(),
    )


def faults(prepared, arrays, pairs, relation, *, share=1):
    """Where one unit moves a measure by more than `share` of what is stated, as (measure, norm, found, stated)."""
    before, after = np.array(pairs).T
    found = []
    for measure, numbers in arrays.items():
        stated = sensitivity(measure, prepared.part, relation)
        bounds = (stated.l0, stated.l1, stated.l2_squared, stated.linf)
        reached = norms(numbers[before], numbers[after])
        for name, most, bound in zip(("l0", "l1", "l2", "linf"), reached, bounds, strict=True):
            if most is not None and most > bound * share:
                found.append((measure.what, name, int(most), float(bound)))
    return found


def loose(prepared, arrays, pairs, relation):
    """The norms that no pair attains."""
    before, after = np.array(pairs).T
    found = []
    for measure, numbers in arrays.items():
        stated = sensitivity(measure, prepared.part, relation)
        bounds = (stated.l0, stated.l1, stated.l2_squared, stated.linf)
        reached = norms(numbers[before], numbers[after])
        names = zip(("l0", "l1", "l2", "linf"), reached, bounds, strict=True)
        found += [(measure.what, n, most, bound) for n, most, bound in names if most is not None and most < bound]
    return found


def table(name, columns, **more):
    """A table of columns by name."""
    return Table(name, tuple(Column(n, kind) for n, kind in columns.items()), **more)
