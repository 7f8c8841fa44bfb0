"""How far one unit can move a measure, where the larger bound is the negative one too."""

import itertools

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.query.measure import Contribution, Measure, contribution, moved, sensitivity
from noisette.query.prepare import prepare
from noisette.query.schema import Limits
from noisette.query.shape import ROW, Moved, Shape
from noisette.query.sql import parse

ADD_REMOVE, REPLACE = nz.Neighbours
BOUNDS = [(-5, 2), (-2, 5), (-5, -1), (1, 5), (0, 3), (-3, 0), (-4, 4)]


def vectors(low, high, part):
    """All that the rows of one unit can add to two groups."""
    most = range(part.rows + 1)
    for counts in itertools.product(most, repeat=2):
        if sum(counts) <= part.total and sum(c > 0 for c in counts) <= part.groups:
            yield from itertools.product(*({sum(v) for v in itertools.product((low, high), repeat=c)} for c in counts))


@pytest.mark.parametrize("part", [Contribution(1, 2, 2), Contribution(2, 1, 2), Contribution(2, 2, 3)], ids=str)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_a_sum_moves_as_far_as_is_stated_and_no_farther(low, high, part):
    found = {np.array(v).tobytes(): np.array(v) for v in vectors(low, high, part)}.values()
    stated = sensitivity(Measure("sum", low=low, high=high), part, ADD_REMOVE)
    assert max(np.abs(v).sum() for v in found) == stated.l1
    assert max((v**2).sum() for v in found) == stated.l2_squared
    assert max(np.abs(v).max() for v in found) == stated.linf
    stated = sensitivity(Measure("sum", low=low, high=high), part, REPLACE)
    moves = [a - b for a, b in itertools.product(found, repeat=2)]
    assert max(np.abs(v).sum() for v in moves) <= stated.l1
    assert max((v**2).sum() for v in moves) <= stated.l2_squared
    assert max(np.abs(v).max() for v in moves) <= stated.linf


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_rows_that_go_and_rows_that_come_move_a_sum_as_far_as_is_stated(low, high, rows):
    """A unit of a join of two: as many rows come as go, in any of two groups, or in the only one."""
    for groups, times in itertools.product((1, 2), (1, 2)):
        most = times * rows  # under replace those of both units
        found = {tuple(v) for v in vectors(low, high, Contribution(2, most, most)) if groups == 2 or not v[1]}
        moves = np.array([np.subtract(a, b) for a, b in itertools.product(found, repeat=2)])
        part, relation = Contribution(groups, rows, rows, returns=True), (ADD_REMOVE, REPLACE)[times - 1]
        stated = sensitivity(Measure("sum", low=low, high=high), part, relation)
        reached = [np.abs(moves).sum(axis=1).max(), (moves**2).sum(axis=1).max(), np.abs(moves).max()]
        norms = [stated.l1, stated.l2_squared, stated.linf]
        assert all(a <= b for a, b in zip(reached, norms, strict=True))
        assert reached == norms or low < 0 < high != -low  # both ends of a sign: no table has the larger one twice


@pytest.mark.parametrize(("grouped", "groups"), [(False, 1), (True, 6)])
def test_what_a_join_makes_of_a_unit_may_be_in_as_many_groups(grouped, groups):
    made = contribution(Shape({}, "person", 6), grouped=grouped)
    assert made == (Contribution(groups, 6, 6), Limits(rows=6))


@pytest.mark.parametrize(("grouped", "groups"), [(False, 1), (True, 6)])
def test_rows_that_go_and_rows_that_come_may_be_in_other_groups(grouped, groups):
    shape = Shape({}, ROW, None, moved=Moved("person", 3))
    assert moved(shape, grouped=grouped) == Contribution(groups, 3, 3, returns=True)


# Few declared groups

FEW = [
    (Limits(rows=16), 3, (3, 16, 16)),  # all rows may be in one group
    (Limits(rows=4), 3, (3, 4, 4)),
    (Limits(groups=16, rows_per_group=2), 3, (3, 2, 6)),
    (Limits(groups=5, rows_per_group=3, rows=7), 2, (2, 3, 6)),
    (Limits(groups=5, rows_per_group=3, rows=4), 2, (2, 3, 4)),
    (Limits(groups=3, rows_per_group=1), 1, (1, 1, 1)),
    (Limits(groups=2, rows_per_group=2), 3, (2, 2, 4)),  # as many groups as there are bind nothing
    (Limits(groups=3, rows_per_group=1), 3, (3, 1, 3)),
]


def largest(limits, cells):
    """The largest l0, l1, squared l2 and linf of all numbers of rows that limits allow in some cells, and of units."""
    most = min(n for n in (limits.rows, limits.rows_per_group) if n is not None)
    found = {"rows": (0, 0, 0, 0), "units": (0, 0, 0, 0)}
    for counts in itertools.product(range(most + 1), repeat=cells):
        used = sum(n > 0 for n in counts)
        if used <= (limits.groups or cells) and sum(counts) <= (limits.rows or most * cells):
            squares = sum(n * n for n in counts)
            found["rows"] = tuple(map(max, found["rows"], (used, sum(counts), squares, max(counts))))
            found["units"] = tuple(map(max, found["units"], (used, used, used, min(used, 1))))
    return found


def norms(stated):
    return stated.l0, stated.l1, stated.l2_squared, stated.linf


@pytest.mark.parametrize(("limits", "cells", "expected"), FEW, ids=str)
def test_a_unit_is_in_no_more_groups_than_are_declared(limits, cells, expected):
    plain, _ = contribution(Shape({}, "person", None, limits), grouped=True)
    part, found = plain.within(cells), largest(limits, cells)
    assert part == Contribution(*expected)
    for what, most in found.items():
        assert norms(sensitivity(Measure(what), part, ADD_REMOVE)) == most
        l0, l1, squares, linf = norms(sensitivity(Measure(what), part, REPLACE))  # the rows of two units
        assert (l0, l1, squares, linf) == (2 * most[0], 2 * most[1], 2 * most[2], most[3])
    if cells > 1 and part != plain:  # a twin that knows one cell too few states too little
        fewer = sensitivity(Measure("units"), plain.within(cells - 1), ADD_REMOVE)
        assert all(a < b for a, b in zip(norms(fewer)[:3], found["units"][:3], strict=True))


@pytest.mark.parametrize("returns", [False, True])
def test_as_many_groups_as_limits_allow_bind_nothing(returns):
    part = Contribution(3, 2, 5, returns=returns)
    assert part.within(3) == part.within(10**6) == part


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_the_engine_moves_as_far_as_is_stated(low, high):
    """Rows beyond the bounds, on either side: the farther one moves the sum by just the stated distance."""
    rules = {"unit": "p", "rows": 2, "columns": {"x": {"bounds": [low, high], "nullable": False}}}
    moved = []
    for value in (-100, 100):
        sums = []
        for rows in ([(1, 0)], [(1, 0), (2, value), (2, value), (2, value)]):
            table = pyarrow.table({"p": [p for p, _ in rows], "x": [x for _, x in rows]})
            data = nz.open({"t": table}, budget=1, policy={"tables": {"t": rules}})
            ready = prepare(parse("SELECT SUM(x) AS s FROM t", data.schema), data.schema)
            sums.append(int(data._source.aggregate(ready.request, data.schema, bytes(16)).measures[0][0]))
        moved.append(abs(sums[1] - sums[0]))
    (measure,) = ready.request.measures
    assert max(moved) == sensitivity(measure, ready.part, ADD_REMOVE).l1
