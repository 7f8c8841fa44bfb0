"""How far one unit can move a measure, where the larger bound is the negative one too."""

import itertools

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.query.measure import Contribution, Measure, sensitivity
from noisette.query.prepare import prepare
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
